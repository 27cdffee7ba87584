use super::group::{around, processes, with_quota};
use super::*;
use overspin_report::text_on;
use overspin_scenario::Shares;
use std::fs;
use std::path::Path;

fn shares(user: f64, idle: f64, steal: f64) -> Option<Shares> {
    Some(Shares { user, system: 0.0, idle, iowait: 0.0, steal })
}

/// A second of a machine with 4 CPUs, half idle, and all counters.
fn quiet() -> Interval {
    let machine = Second {
        shares: shares(50.0, 50.0, 0.0),
        cpu_pressure: Some(1.0),
        io_pressure: Some(0.0),
        memory_pressure: Some(0.0),
        run_delay: Some(0.01),
        ..Second::default()
    };
    let guests = Some(Guests::default());
    Interval { length_s: 1.0, cpus: 4, machine, guests, ..Interval::default() }
}

/// A program that has a CPU whenever it wants one.
fn app() -> Program {
    Program {
        name: "app".into(),
        processes: 1,
        threads: 8,
        allowed: Some(4),
        running: 2.0,
        waiting: 0.002,
        ..Program::default()
    }
}

fn with_program(change: impl FnOnce(&mut Interval, &mut Program)) -> Judgement {
    let (mut interval, mut program) = (quiet(), app());
    change(&mut interval, &mut program);
    interval.program = Some(program);
    judge(&interval)
}

#[test]
fn nothing_is_wrong_on_a_quiet_machine() {
    let judgement = judge(&quiet());
    assert_eq!(judgement.cause, Cause::Nothing);
    assert!(judgement.sentence.starts_with("nothing is wrong: "), "{}", judgement.sentence);
    let judgement = with_program(|_, _| ());
    assert_eq!(judgement.cause, Cause::Nothing);
    // 2 of 2.002 s.
    assert!(judgement.sentence.contains("`app` had a CPU for 100 %"), "{}", judgement.sentence);
}

#[test]
fn steal_counts_where_cpus_were_wanted() {
    let judgement = with_program(|interval, _| interval.machine.shares = shares(66.0, 25.0, 9.0));
    assert_eq!(judgement.cause, Cause::Steal);
    // 9 of 75.
    assert!(judgement.sentence.starts_with("steal 12 %: "), "{}", judgement.sentence);
    // A tick of an idle machine, of 400: a third of what it wanted.
    let idle = with_program(|interval, _| interval.machine.shares = shares(0.5, 99.25, 0.25));
    assert_eq!(idle.cause, Cause::Nothing);
}

fn stopped(cpus: f64, throttled: u64, throttled_ns: u64) -> Vec<Quota> {
    let counted = Throttling { periods: 10, throttled, throttled_ns };
    vec![Quota { group: "/a".into(), cpus, counted }]
}

#[test]
fn a_quota_comes_before_the_run_delay_that_it_causes() {
    let judgement = with_program(|interval, program| {
        interval.quotas = stopped(0.5, 9, 1_500_000_000);
        (program.running, program.waiting) = (0.5, 1.6);
    });
    assert_eq!(judgement.cause, Cause::Quota);
    let expected = "quota: group /a of `app` used up its 0.50 CPUs in 90 % of its periods";
    assert!(judgement.sentence.starts_with(expected), "{}", judgement.sentence);
    // A group that stays within its quota is no cause, and one without programs of ours is.
    let fine = with_program(|interval, _| interval.quotas = stopped(0.5, 0, 0));
    assert_eq!(fine.cause, Cause::Nothing);
    let other = judge(&Interval { quotas: stopped(2.0, 5, 400_000_000), ..quiet() });
    assert_eq!(other.cause, Cause::Quota);
}

#[test]
fn run_delay_says_who_has_the_cpus() {
    let busy = |interval: &mut Interval| interval.machine.shares = shares(100.0, 0.0, 0.0);
    let sentence = |judgement: Judgement| {
        assert_eq!(judgement.cause, Cause::Cpus);
        judgement.sentence
    };
    let beside = sentence(with_program(|interval, program| {
        busy(interval);
        (program.running, program.waiting) = (1.0, 3.0);
    }));
    assert!(beside.contains("75 %"), "{beside}");
    assert!(beside.contains("other programs used 3.0 of the 4 CPUs"), "{beside}");
    assert!(!beside.contains("its own threads"), "4 threads would fit: {beside}");
    let both = sentence(with_program(|interval, program| {
        busy(interval);
        (program.running, program.waiting) = (2.0, 6.0);
    }));
    // 4 more than it may use, and others used 2.
    let expected =
        "its own threads wanted 8.0 CPUs of the 4 that it may use, and other programs used 2.0";
    assert!(both.contains(expected), "{both}");
    let mostly_others = sentence(with_program(|interval, program| {
        busy(interval);
        (program.running, program.waiting) = (1.0, 4.0);
    }));
    let expected = "other programs used 3.0 of the 4 CPUs, and its own threads wanted 5.0";
    assert!(mostly_others.contains(expected), "{mostly_others}");
    let alone = sentence(with_program(|interval, program| {
        busy(interval);
        (program.running, program.waiting) = (3.9, 3.9);
    }));
    assert!(alone.contains("its own threads wanted 7.8 CPUs of the 4"), "{alone}");
    let confined = sentence(with_program(|interval, program| {
        interval.machine.shares = shares(25.0, 75.0, 0.0);
        (program.running, program.waiting, program.allowed) = (1.0, 7.0, Some(1));
    }));
    assert!(confined.starts_with("confined: "), "{confined}");
    assert!(confined.contains("only 1 of the 4 CPUs"), "{confined}");
    let pinned = sentence(with_program(|interval, program| {
        interval.machine.shares = shares(25.0, 75.0, 0.0);
        (program.running, program.waiting) = (1.0, 7.0);
    }));
    assert!(pinned.contains("although CPUs were idle for 75 %"), "{pinned}");
}

#[test]
fn a_program_that_mostly_sleeps_has_enough_cpus() {
    let judgement = with_program(|_, program| {
        (program.running, program.waiting) = (0.004, 0.004);
    });
    assert_eq!(judgement.cause, Cause::Nothing);
}

#[test]
fn without_a_program_the_machine_tells_what_it_has() {
    let mut interval = quiet();
    interval.machine.shares = shares(100.0, 0.0, 0.0);
    interval.machine.run_delay = Some(4.0);
    let judgement = judge(&interval);
    // 4 threads waited while 4 ran.
    assert!(judgement.sentence.contains("for 50 % of the time"), "{}", judgement.sentence);
    interval.machine.run_delay = None;
    interval.machine.cpu_pressure = Some(88.0);
    let judgement = judge(&interval);
    assert_eq!(judgement.cause, Cause::Cpus);
    assert!(judgement.sentence.contains("some thread was ready"), "{}", judgement.sentence);
}

#[test]
fn mutexes_are_the_cause_unless_their_holders_lack_cpus() {
    let mutexes = Some(Mutexes { waits: 20_000.0, waited: 3.0, holders: Holders::default() });
    let alone = with_program(|_, program| {
        (program.running, program.mutexes) = (1.0, mutexes);
    });
    assert_eq!(alone.cause, Cause::Mutexes);
    // 3 of 4.002 s.
    assert!(alone.sentence.contains("for 75 % of the time"), "{}", alone.sentence);
    let behind = with_program(|interval, program| {
        interval.machine.shares = shares(100.0, 0.0, 0.0);
        (program.running, program.waiting, program.mutexes) = (1.0, 1.0, mutexes);
    });
    assert_eq!(behind.cause, Cause::Cpus);
    assert!(behind.sentence.contains("threads waited for mutexes"), "{}", behind.sentence);
    assert!(!behind.sentence.contains("holders"), "{}", behind.sentence);
}

#[test]
fn holders_are_told_about_if_enough_were_looked_at() {
    let of = |looks, descheduled_ns, asleep_ns| {
        let holders = Holders { looks, held_ns: 1000, descheduled_ns, asleep_ns };
        with_program(|interval, program| {
            interval.machine.shares = shares(80.0, 0.0, 12.0);
            program.mutexes = Some(Mutexes { waits: 10.0, waited: 0.0, holders });
        })
        .sentence
    };
    let words = "; mutex holders of `app` were off their CPU for 12 % of the time that they held";
    let told = of(100, 120, 5);
    assert!(told.starts_with("steal 13 %: ") && told.ends_with(words), "{told}");
    assert!(
        of(100, 120, 50)
            .ends_with("off their CPU for 12 %, and slept for 5.0 % of the time that they held")
    );
    for few in [of(19, 120, 50), of(100, 9, 9)] {
        assert!(!few.contains("holders"), "{few}");
    }
}

#[test]
fn pause_loops_and_other_pressure_are_named() {
    let guests = Some(Guests { yields: 40_000, yielded: 9, halt_polling_ns: 0 });
    let judgement = judge(&Interval { guests, ..quiet() });
    assert_eq!(judgement.cause, Cause::PauseLoops);
    let few = Some(Guests { yields: 3_000, ..Guests::default() });
    assert_eq!(judge(&Interval { guests: few, ..quiet() }).cause, Cause::Nothing);
    let mut disk = quiet();
    disk.machine.io_pressure = Some(60.0);
    assert_eq!(judge(&disk).cause, Cause::Disk);
}

#[test]
fn what_cannot_be_read_is_not_called_fine() {
    let blind = Interval { length_s: 1.0, cpus: 4, ..Interval::default() };
    assert_eq!(judge(&blind).cause, Cause::Unknown);
    let unseen = Unseen { what: "pause-loop exits".into(), remedy: "run this as root".into() };
    let interval = Interval { unseen: vec![unseen], ..quiet() };
    let judgement = judge(&interval);
    assert!(judgement.sentence.contains("1 counter is not readable"), "{}", judgement.sentence);
    let screen = text_on(&report(&interval, &judgement), &overspin_report::Screen::default());
    assert!(screen.contains("- pause-loop exits: run this as root."), "{screen}");
}

#[test]
fn a_screen_begins_with_the_sentence_and_has_80_columns() {
    let interval = Interval {
        program: Some(Program { preempted: 123_456.0, slept: 1.0, ..app() }),
        quotas: stopped(0.5, 9, 1_500_000_000),
        own_cpu: Some(0.001),
        ..quiet()
    };
    let judgement = judge(&interval);
    let screen = text_on(&report(&interval, &judgement), &overspin_report::Screen::default());
    assert!(screen.starts_with("quota: group /a of `app` used up"), "{screen}");
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(screen.contains("watching took 0.10 % of a CPU"), "{screen}");
}

#[test]
fn prometheus_gets_a_series_for_each_cause() {
    let quotas = vec![Quota { group: "/a\"b\\".into(), cpus: 1.0, ..Quota::default() }];
    let interval = Interval { program: Some(app()), quotas, ..quiet() };
    let text = prometheus(&interval, &judge(&interval));
    for line in [
        "# TYPE overspin_cause gauge",
        "overspin_cause{cause=\"steal\"} 0",
        "overspin_cause{cause=\"nothing\"} 1",
        "overspin_program_running_cpus{program=\"app\"} 2",
        "overspin_throttled_periods_ratio{group=\"/a\\\"b\\\\\"} 0",
        "overspin_idle_ratio 0.5",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    let mut names: Vec<&str> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a metric has one group of lines");
}

/// Files of a machine below a folder.
fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn both_versions_of_groups_are_read() {
    // Kernel's Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
    let second = "usage_usec 99\nuser_usec 5\nsystem_usec 3\nnr_periods 10\nnr_throttled 3\nthrottled_usec 2500\n";
    let first = "nr_periods 10\nnr_throttled 3\nthrottled_time 2500000\n";
    let expected = Throttling { periods: 10, throttled: 3, throttled_ns: 2_500_000 };
    assert_eq!(Throttling::parse(second), Some(expected));
    assert_eq!(Throttling::parse(first), Some(expected));
    assert_eq!(Throttling::parse("usage_usec 99\n"), None, "no controller");

    let root = tempfile::tempdir().unwrap();
    let group = "sys/fs/cgroup/a/b";
    write(root.path(), &format!("{group}/cpu.max"), "50000 100000\n");
    write(root.path(), &format!("{group}/cpu.stat"), second);
    write(root.path(), &format!("{group}/cgroup.procs"), "7\n9\n");
    write(root.path(), "sys/fs/cgroup/a/cpu.max", "max 100000\n");
    let folder = root.path().join(group);
    assert_eq!(quota(&folder), Some(0.5));
    assert_eq!(with_quota(root.path()), std::slice::from_ref(&folder));
    assert_eq!(
        around(root.path(), "0::/a/b/c\n"),
        std::slice::from_ref(&folder),
        "its own group and those around"
    );
    assert_eq!(processes(&root.path().join("sys/fs/cgroup/a")), [7, 9]);
    assert_eq!(throttling_within(&root.path().join("sys/fs/cgroup")), Some(expected));

    let root = tempfile::tempdir().unwrap();
    let group = "sys/fs/cgroup/cpu/a";
    write(root.path(), &format!("{group}/cpu.cfs_quota_us"), "150000\n");
    write(root.path(), &format!("{group}/cpu.cfs_period_us"), "100000\n");
    write(root.path(), "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write(root.path(), "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    let folder = root.path().join(group);
    assert_eq!(quota(&folder), Some(1.5));
    assert_eq!(around(root.path(), "3:cpuset:/x\n1:cpu,cpuacct:/a\n0::/\n"), [folder]);
}

#[test]
fn kvm_tells_or_says_why_not() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Guests::read(root.path()), Err(std::io::ErrorKind::NotFound));
    for (name, value) in [
        ("directed_yield_attempted", "70\n"),
        ("directed_yield_successful", "7\n"),
        ("halt_poll_success_ns", "100\n"),
        ("halt_poll_fail_ns", "20\n"),
    ] {
        write(root.path(), &format!("sys/kernel/debug/kvm/{name}"), value);
    }
    let expected = Guests { yields: 70, yielded: 7, halt_polling_ns: 120 };
    assert_eq!(Guests::read(root.path()), Ok(expected));
}

#[test]
fn a_watcher_sees_what_happens_between_two_readings() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let cpus = "cpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 1\n";
    write(root, "proc/stat", &format!("cpu 100 0 0 100 0 0 0 0\n{cpus}"));
    write(root, "proc/7/comm", "app\n");
    write(root, "proc/7/stat", "7 (app) S 1 7 7");
    write(root, "proc/7/cgroup", "0::/a\n");
    write(root, "proc/7/environ", "PATH=/bin\0");
    write(root, "proc/7/task/7/schedstat", "1000 2000 1");
    write(root, "proc/7/task/7/status", "Cpus_allowed_list:\t0\n");
    write(root, "proc/7/task/7/children", "");
    write(root, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    write(root, "sys/fs/cgroup/a/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_usec 1\n");
    let mut watcher = Watcher::begin(root, Target::Process(7));
    write(root, "proc/stat", &format!("cpu 190 0 0 100 0 0 0 10\n{cpus}"));
    write(root, "proc/7/task/7/schedstat", "3001000 1002000 2");
    write(root, "sys/fs/cgroup/a/cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_usec 9\n");
    let interval = watcher.interval();
    assert_eq!(interval.cpus, 2);
    assert_eq!(interval.machine.shares.map(|shares| shares.steal), Some(10.0));
    let program = interval.program.as_ref().unwrap();
    assert_eq!((program.name.as_str(), program.allowed), ("app", Some(1)));
    // 3 ms on the CPU and 1 ms without.
    assert!((program.running / program.waiting - 3.0).abs() < 1e-9, "{program:?}");
    let counted = Throttling { periods: 4, throttled: 2, throttled_ns: 8_000 };
    assert_eq!(interval.quotas, [Quota { group: "/a".into(), cpus: 0.5, counted }]);
    let unseen: Vec<&str> = interval.unseen.iter().map(|unseen| unseen.what.as_str()).collect();
    assert_eq!(unseen, ["pressure on CPUs", "run delay of all threads", "waits for mutexes"]);
    assert!(!watcher.is_over());

    // The program ends; what it did stays in the whole.
    fs::remove_dir_all(root.join("proc/7")).unwrap();
    let last = watcher.interval();
    assert!(watcher.is_over());
    assert_eq!(last.program.as_ref().map(|program| program.running), Some(0.0));
    let whole = watcher.whole().unwrap();
    let program = whole.program.as_ref().unwrap();
    let ms = program.running * whole.length_s * 1e3;
    assert!((ms - 3.0).abs() < 1e-6, "{ms}");
    assert_eq!((program.name.as_str(), program.threads), ("app", 1));
}
