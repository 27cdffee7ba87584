//! Runs against a script that stands for `xl`: it records its calls, and its guests answer as real ones do.

use overspin_xl::{Guest, GuestType, Images, Job, Pool, Sample, Xl, XlError, run, watch};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Keeps its calls in `calls`. `fail` holds the beginning of a call that fails, `console` what a guest does.
const SCRIPT: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
if [ -s fail ] && case "$*" in "$(cat fail)"*) true ;; *) false ;; esac; then
    echo "libxl: error: something" >&2
    echo "the cause" >&2
    exit 1
fi
case "$1" in
    info) echo "host      : box"; echo "xen_version            : 4.17.7" ;;
    cpupool-list) echo "Name               CPU list"; echo "Pool-0             0,1,2,3"; cat pools 2> /dev/null ;;
    console) . ./console ;;
esac
exit 0
"#;

/// A guest that is up, hears its start, and reports it.
const GUEST: &str = r#"
echo "[    0.1] Linux version"
echo 'overspin: {"ready":{"now":1000}}'
read -r go at seconds
echo "overspin: {\"sample\":{\"vcpu\":0,\"at\":$at,\"operations\":$seconds,\"max_delta\":1,\"cpu_time\":2,\"deadlines\":0,\"missed\":0}}"
echo 'overspin: {"end":{"samples":1}}'
sleep 60
"#;

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new(console: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let xl = folder.path().join("xl");
        // Another process writes it. Were it open for writing here, a program that another test starts meanwhile would
        // inherit that, and the kernel refuses to execute a file that is open for writing ("text file busy").
        fs::write(folder.path().join("script"), SCRIPT).unwrap();
        let mut copy = Command::new("install");
        let copied = copy.arg("-m").arg("755").arg(folder.path().join("script")).arg(&xl).status();
        assert!(copied.unwrap().success());
        fs::write(folder.path().join("console"), console).unwrap();
        Self { folder }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn xl(&self) -> Xl {
        Xl::at(self.folder.path().join("xl"))
    }

    fn run(&self, stop: &dyn Fn() -> bool) -> Result<Vec<Vec<Sample>>, XlError> {
        let images = Images {
            kernel: "/k".into(),
            initramfs: "/i".into(),
            guest_type: GuestType::Pv,
            more: String::new(),
        };
        run(&self.xl(), &job(), &images, self.folder.path(), &mut |_| {}, stop)
    }

    /// The calls so far, without paths.
    fn calls(&self) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        let calls = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        calls.lines().map(|line| line.replace(&folder, "")).collect()
    }

    /// Whether everything that was made was destroyed, and the pCPUs are back.
    fn assert_restored(&self) {
        let calls = self.calls();
        let count = |call: &str| calls.iter().filter(|c| *c == call).count();
        for cpu in [2, 3] {
            let taken = count(&format!("cpupool-cpu-remove Pool-0 {cpu}"));
            assert_eq!(taken, count(&format!("cpupool-cpu-add Pool-0 {cpu}")), "{calls:#?}");
        }
        for guest in ["a", "b"] {
            let made = count(&format!("create -p {guest}.cfg"));
            assert_eq!(made, count(&format!("destroy {guest}")), "{calls:#?}");
        }
    }
}

fn job() -> Job {
    let guest = |name: &str| Guest {
        name: name.into(),
        vcpus: 1,
        memory: 96,
        work: vec!["dup".into()],
        seed: 1,
        kernel_options: String::new(),
    };
    Job {
        name: "test".into(),
        pool: Pool { name: "bench".into(), scheduler: Some("credit".into()), cpus: vec![2, 3] },
        guests: vec![guest("a"), guest("b")],
        seconds: 7,
    }
}

#[test]
fn a_run_leaves_the_host_as_it_was() {
    let host = Host::new(GUEST);
    let reports = host.run(&|| false).unwrap();
    // Both guests were told the same start, later than the time of their clocks, and the same length.
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0][0].at, reports[1][0].at);
    assert!(reports[0][0].at > 1000);
    assert_eq!(reports[0][0].operations, 7);
    let calls: Vec<String> =
        host.calls().into_iter().filter(|c| !c.starts_with("console")).collect();
    let expected = [
        "cpupool-list -c",
        "cpupool-cpu-remove Pool-0 2",
        "cpupool-cpu-remove Pool-0 3",
        "cpupool-create pool.cfg",
        "create -p a.cfg",
        "create -p b.cfg",
        "unpause a",
        "unpause b",
        "destroy a",
        "destroy b",
        "cpupool-destroy bench",
        "cpupool-cpu-add Pool-0 2",
        "cpupool-cpu-add Pool-0 3",
    ];
    assert_eq!(calls, expected);
    let pool = fs::read_to_string(host.folder.path().join("pool.cfg")).unwrap();
    assert_eq!(pool, "name = \"bench\"\nsched = \"credit\"\ncpus = [\"2\", \"3\"]\n");
}

#[test]
fn a_failure_anywhere_restores_the_host() {
    for call in
        ["cpupool-list", "cpupool-cpu-remove Pool-0 3", "cpupool-create", "create -p", "unpause b"]
    {
        let host = Host::new(GUEST);
        host.write("fail", call);
        let error = host.run(&|| false).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(call) && said.contains("the cause"), "{said}");
        let calls = host.calls();
        // A pCPU that was not taken is not given back, so this is checked but for the call that failed.
        if !call.starts_with("cpupool-cpu-remove") {
            host.assert_restored();
        }
        let made =
            calls.iter().any(|c| c.starts_with("cpupool-create")) && call != "cpupool-create";
        assert_eq!(calls.contains(&"cpupool-destroy bench".into()), made, "{call}: {calls:#?}");
        if call.ends_with('3') {
            assert!(calls.contains(&"cpupool-cpu-add Pool-0 2".into()), "{calls:#?}");
            assert!(!calls.contains(&"cpupool-cpu-add Pool-0 3".into()), "{calls:#?}");
        }
    }
}

#[test]
fn a_guest_that_cannot_work_is_named_with_its_reason() {
    let cases = [
        ("echo 'overspin: {\"error\":{\"message\":\"no privcmd\"}}'; sleep 60", "no privcmd"),
        ("echo 'Kernel panic - not syncing'; exit 0", "Kernel panic"),
        (
            "echo 'overspin: {\"ready\":{\"now\":1}}'; read -r go; echo 'overspin: {\"end\":{\"samples\":4}}'; sleep 60",
            "0 of its 4 reports",
        ),
        // Numbers at which sums and tables of vCPUs would go wrong.
        (
            "echo 'overspin: {\"ready\":{\"now\":18446744073709551615}}'; read -r go at seconds; \
             echo \"overspin: {\\\"error\\\":{\\\"message\\\":\\\"told $at\\\"}}\"; sleep 60",
            "told 18446744073709551615",
        ),
        (
            "echo 'overspin: {\"ready\":{\"now\":1}}'; read -r go; echo 'overspin: {\"sample\":{\"vcpu\":4294967295,\"at\":1,\
             \"operations\":1,\"max_delta\":1,\"cpu_time\":2,\"deadlines\":0,\"missed\":0}}'; sleep 60",
            "vCPU 4294967295",
        ),
        // 100,000 bytes without an end are two lines of a console, and no reason to wait for the end.
        (
            "head -c 100000 /dev/zero | tr '\\0' x; echo; echo 'overspin: {\"error\":{\"message\":\"after it\"}}'; sleep 60",
            "after it",
        ),
    ];
    for (console, reason) in cases {
        let host = Host::new(console);
        let error = host.run(&|| false).unwrap_err();
        assert!(matches!(error, XlError::Guest { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
        host.assert_restored();
    }
}

#[test]
fn a_stop_restores_the_host() {
    // Guests that never say anything; the caller loses patience at the tenth look.
    let host = Host::new("sleep 60");
    let looks = Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        looks.get() > 10
    };
    assert!(matches!(host.run(&stop), Err(XlError::Stopped)));
    host.assert_restored();
}

/// Guests that switch themselves off: `xl` knows them no more when they are to be destroyed.
#[test]
fn watched_guests_say_what_is_on_their_consoles() {
    let host = Host::new("echo '[ 0.1] spinlocks are xen-pv'; echo '[ 9.9] End of test: SUCCESS'");
    host.write("fail", "destroy");
    let images = Images {
        kernel: "/k".into(),
        initramfs: "/i".into(),
        guest_type: GuestType::Pv,
        more: String::new(),
    };
    let see = |job: &Job, stop: &dyn Fn() -> bool| {
        watch(&host.xl(), job, &images, host.folder.path(), &mut |_| {}, stop)
    };
    let consoles = see(&job(), &|| false).unwrap();
    assert_eq!(consoles, ["[ 0.1] spinlocks are xen-pv\n[ 9.9] End of test: SUCCESS\n"; 2]);
    host.assert_restored();
    // One that halts is not waited for.
    host.write("console", "echo 'reboot: Power down'; sleep 60");
    let long = Job { seconds: 50, ..job() };
    let began = Instant::now();
    assert_eq!(see(&long, &|| false).unwrap(), ["reboot: Power down\n"; 2]);
    assert!(began.elapsed().as_secs() < 40, "{:?}", began.elapsed());
    // One that hangs says what it said, when its time is over.
    host.write("console", "echo 'the last words'; sleep 60");
    let short = Job { seconds: 1, ..job() };
    assert_eq!(see(&short, &|| false).unwrap(), ["the last words\n"; 2]);
    assert!(matches!(see(&short, &|| true), Err(XlError::Stopped)));
    host.assert_restored();
}

#[test]
fn what_belongs_to_others_is_left_alone() {
    let host = Host::new(GUEST);
    host.write("pools", "bench                  4\n");
    assert!(matches!(host.run(&|| false), Err(XlError::PoolExists(name)) if name == "bench"));
    assert_eq!(host.calls(), ["cpupool-list -c"]);

    let with = |cpus: &[u32]| {
        let host = Host::new(GUEST);
        let images = Images {
            kernel: "/k".into(),
            initramfs: "/i".into(),
            guest_type: GuestType::Pv,
            more: String::new(),
        };
        let mut job = job();
        job.pool.cpus = cpus.to_vec();
        let error =
            run(&host.xl(), &job, &images, host.folder.path(), &mut |_| {}, &|| false).unwrap_err();
        assert_eq!(host.calls(), ["cpupool-list -c"], "nothing was changed");
        error
    };
    assert!(matches!(with(&[1, 9]), XlError::NoCpu { cpu: 9, .. }));
    assert!(matches!(with(&[0, 1, 2, 3]), XlError::AllCpus(_)));
}

#[test]
fn the_version_is_xens() {
    let host = Host::new(GUEST);
    assert_eq!(host.xl().version().unwrap(), "4.17.7");
    host.write("fail", "info");
    assert!(
        matches!(host.xl().version(), Err(XlError::NoXen { said, .. }) if said.contains("the cause"))
    );
    let missing = Xl::at(Path::new("/nowhere/xl"));
    assert!(matches!(missing.version(), Err(XlError::NoXl { .. })));
}
