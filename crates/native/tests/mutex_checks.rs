//! The mutex in the worlds that can find a fault in it.

use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::StdPlatform;
use overspin_check::{Check, Limits, Profile, Verdict, World, checks, quietly};
use overspin_native::mutex::Rotating;

fn all() -> Vec<Check> {
    // Its release looks at the lock afterwards, which its documentation says, and the checks must find.
    let profile =
        Profile { preemptions: [5, 3, 1], touches_after_release: true, records_waiters: true };
    let limits = Limits { schedules: 500, ..Limits::default() };
    checks::<Rotating<LoomPlatform>, Rotating<SchedulePlatform>, Rotating<StdPlatform>>(
        profile, &limits,
    )
}

#[test]
fn passes_every_check() {
    for check in all() {
        // The model has two CPUs, and there only the releaser can wake the sleeper, after it has looked at
        // the lock for the last time. The schedules of more find it.
        if check.world == World::Model && check.name == "access after release" {
            continue;
        }
        let report = quietly(|| check.run());
        let verdict = check.verdict(&report);
        println!("{check:?}: {} runs, {:?}, {verdict:?}", report.runs, report.time);
        assert!(matches!(verdict, Verdict::Passes | Verdict::KnownFlaw), "{check:?}: {report:?}");
    }
}
