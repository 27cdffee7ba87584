//! A run in a real world: while it runs, the screen of `overspin watch` on this process and the guests that it starts.

use super::{Run, fault};
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use crate::watch::Session;
use crate::world;
use overspin_lab::watch::{Target, Watcher, judge, report};
use overspin_scenario::{Ending, Stopped};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Real time of an interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the run, on the terminal if `is_live`, else as text: each interval, or only the whole time.
pub(super) fn show(
    run: &Run<'_>,
    is_live: bool,
    only_whole: bool,
    global: &Global,
) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[])?;
    let (left, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let cancel = |_| match left.load(Ordering::Relaxed) {
        true => Some(Stopped::Interrupted),
        false => run.runner.until.over(),
    };
    let watcher = Watcher::begin(Path::new("/"), Target::Process(std::process::id()));
    let mut session = Session::new(watcher, INTERVAL, &over);
    let (shown, made) = std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let made =
                overspin_host::run(run.runner.world, run.scenario, run.seed, &mut (), &cancel);
            // The flags stand alone: no other memory depends on them.
            over.store(true, Ordering::Relaxed);
            made
        });
        let shown = match is_live {
            true => session.view(),
            false => session.plain(&outputs, None, only_whole),
        };
        left.store(true, Ordering::Relaxed);
        (shown, made.join())
    });
    shown?;
    let outcome = made.map_err(|_| fault())?.map_err(|e| Failure::refused(run.name, &e))?;
    if (is_live || only_whole)
        && let Some(whole) = session.whole()
    {
        outputs.report_as_page(&report(whole, &judge(whole)))?;
    }
    Ok(match outcome.ending {
        // A run that the user left is as good as one that ended.
        Ending::Stopped { by } if !is_live => world::stopped(by),
        _ => Verdict::Fine,
    })
}
