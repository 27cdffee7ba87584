//! A recording by hand whose every figure is known, and one of a real kernel.

use super::*;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file;
use overspin_scenario::{Ending, MS};

/// All tasks.
const ALL: Choice = Choice { names: Vec::new(), pids: Vec::new(), groups: Vec::new() };

/// On CPU 0, `a` runs for 100 us and wakes `b`, which runs on CPU 1 for 50 us and waits again; then `a` sleeps for
/// 500 us by a timer, is preempted by `c` for 30 us, and ends.
const SMALL: &str = "\
# a comment
 a 10 [000] 1.000000: sched:sched_stat_runtime: comm=a pid=10 runtime=1000 [ns]
 swapper 0 [001] 1.000000: sched:sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=0 dest_cpu=1
 a 10 [000] 1.000100: sched:sched_waking: comm=b pid=11 prio=120 target_cpu=001
 swapper 0 [001] 1.000110: sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
 a 10 [000] 1.000120: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 b 11 [001] 1.000160: sched:sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
 swapper 0 [000] 1.000620: sched:sched_waking: comm=a pid=10 prio=120 target_cpu=000
 swapper 0 [000] 1.000625: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
 a 10 [000] 1.000640: sched:sched_waking: comm=c pid=12 prio=49 target_cpu=000
 a 10 [000] 1.000641: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=12 next_prio=49
 c 12 [000] 1.000671: sched:sched_switch: prev_comm=c prev_pid=12 prev_prio=49 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
 a 10 [000] 1.000700: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn a_small_recording_is_understood() {
    let all = import("s.txt", SMALL, Part::default(), &ALL).unwrap();
    assert_eq!(all.names, ["a-10", "b-11", "c-12"]);
    let scenario = &all.imported.scenario;
    for task in [
        "a-10: run 100us, wake 1, run 20us, sleep 500us, run 15us, wake 2, run 30us",
        "b-11: wait, run 50us",
        "c-12: wait, run 30us",
    ] {
        assert!(scenario.contains(&format!("\"{task}\"")), "{scenario}");
    }
    let m = &all.measured;
    assert_eq!((m.elapsed, m.cpus, m.switches), (700_000, 2, 7));
    assert_eq!(m.ran, [165_000, 50_000, 30_000]);
    // Task after task: a after 5 us, b after 10 us, c after 1 us; a after the 30 us of c.
    assert_eq!(m.delays, Delays { woken: vec![5_000, 10_000, 1_000], preempted: vec![30_000] });
    let dropped = all.imported.dropped.join("\n");
    assert!(dropped.contains("the causes of 1 wake-ups by interrupts"), "{dropped}");
    assert!(dropped.contains("real-time priority of 1 tasks, which are ordinary ones here: c-12"));
}

/// In the simulator each task has its recorded CPU time, and what one task wakes begins after that.
#[test]
fn the_scenario_does_the_recorded_work() {
    let all = import("s.txt", SMALL, Part::default(), &ALL).unwrap();
    let s = scenario_file::parse("s.toml", "s", &all.imported.scenario, &[]).unwrap();
    let mut watch = Watch::default();
    let outcome = Runner::default().run(&s, 1, &mut watch, &|_| {}).unwrap();
    assert_eq!(outcome.ending, Ending::Finished);
    // The longest path: 100 + 20 us of a, its sleep, 45 us more, and what c takes of a's CPU or not.
    assert!((665..700).contains(&(outcome.elapsed.0 / 1_000_000)), "{}", outcome.elapsed);
    let run = watch.finish(&outcome, 2);
    for (was, is) in all.measured.ran.iter().zip(&run.ran) {
        // A microsecond for the kernel's locks.
        assert!((*was..was + 1_000).contains(is), "{was} {is}");
    }
}

#[test]
fn a_part_of_a_recording() {
    let part = Part { from: Picos::us(130), to: Some(Picos::us(645)) };
    let all = import("s.txt", SMALL, part, &ALL).unwrap();
    // The first event of the part is at 160 us, where b leaves its CPU; the last one is at 641 us.
    let scenario = &all.imported.scenario;
    assert!(scenario.contains("\"a-10: sleep 460us, run 15us, wake 2, run 1us\""), "{scenario}");
    assert_eq!(all.measured.elapsed, 481_000);
    let e = import("s.txt", SMALL, Part { from: MS, to: None }, &ALL).unwrap_err();
    assert!(e.message.contains("no `sched_switch`"), "{e}");
}

#[test]
fn faults_have_a_line() {
    for (from, to, line, message) in [
        ("# a comment", "what is this?", 1, "no task with a CPU"),
        ("prev_state=X ==>", "prev_state=X", 13, "the fields of `sched:sched_switch`"),
        ("1.000700", "1.000600", 13, "71000 ns earlier"),
        ("# a comment", "  Task | Runtime ms | Switches | Avg delay ms |", 1, "a summary"),
        ("# a comment", " contended   total wait     max wait", 1, "`perf lock contention`"),
        ("# a comment", "     usecs    : count    distribution", 1, "a histogram"),
    ] {
        let e = import("s.txt", &SMALL.replacen(from, to, 1), Part::default(), &ALL).unwrap_err();
        assert_eq!(e.line, line, "{e}");
        assert!(e.message.contains(message), "{e}");
    }
}

/// Two tasks spin for a lock one after the other.
const LOCKS: &str = "\
 a 10 [000] 1.000000: lock:contention_begin: 0xff (flags=SPIN)
 b 11 [001] 1.000005: lock:contention_begin: 0xff (flags=SPIN)
 a 10 [000] 1.000010: lock:contention_end: 0xff (ret=0)
 b 11 [001] 1.000014: lock:contention_end: 0xff (ret=0)
 a 10 [000] 1.000040: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 b 11 [001] 1.000050: sched:sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

#[test]
fn waits_for_spin_locks_become_sections() {
    let all = import("s.txt", LOCKS, Part::default(), &ALL).unwrap();
    // a held the lock until b got it: 4 us of the 30 us until its switch. b ran for 5 us before it waited.
    assert!(all.imported.scenario.contains("\"a-10: hold 0xff 4us, run 26us\""));
    assert!(all.imported.scenario.contains("\"b-11: run 5us, hold 0xff 4us, run 32us\""));
    let s = scenario_file::parse("s.toml", "s", &all.imported.scenario, &[]).unwrap();
    let outcome = overspin_sim::run(&s, 1).unwrap();
    assert_eq!(outcome.domains[0].locks[0].acquisitions, 2);
}

/// `perf bench sched messaging -g 1 -l 10`, recorded by Linux 6.18 on two CPUs.
const HACKBENCH: &str = include_str!("../../../../examples/hackbench.perf.txt");

/// Expected values are those of other programs: `grep -c`, the kernel's account, and `perf sched timehist`.
#[test]
fn a_recording_of_hackbench() {
    let all = import("h.txt", HACKBENCH, Part::default(), &ALL).unwrap();
    let m = &all.measured;
    // The parent, 20 senders and 20 receivers.
    let workers = all.names.iter().filter(|name| name.starts_with("sched-messaging-")).count();
    assert_eq!((workers, m.cpus), (41, 2));
    // 439 lines have a switch; a few more follow from other events.
    assert!((439..439 + 50).contains(&m.switches), "{}", m.switches);
    let (ran, accounted) = (m.all_ran() as f64, m.accounted as f64);
    assert!((accounted / ran - 1.0).abs() < 0.01, "{ran} {accounted}");
    // timehist prints 9.916 ms as the p99 of its delays that are not 0.
    let p99 = m.delays.percentile(99, false).unwrap();
    assert!(p99.abs_diff(9_916_000) < 100_000, "{p99}");
}

#[test]
fn its_scenario_runs_to_the_end_with_the_recorded_cpu_time() {
    let all = import("h.txt", HACKBENCH, Part::default(), &ALL).unwrap();
    let s = scenario_file::parse("h.toml", "h", &all.imported.scenario, &[]).unwrap();
    let mut watch = Watch::default();
    let outcome = Runner::default().run(&s, 1, &mut watch, &|_| {}).unwrap();
    assert_eq!(outcome.ending, Ending::Finished);
    let (was, is) = (all.measured.all_ran() as f64, watch.finish(&outcome, 2).all_ran() as f64);
    assert!((is / was - 1.0).abs() < 0.01, "{was} {is}");
    let text = overspin_report::text(&beside(&all.names, &all.measured, &all.measured, "again"));
    assert!(text.contains("share of `sched-messaging`") && text.contains("+0 %"), "{text}");
}

/// Recordings of programs with odd names of tasks, by these tools on Linux 6.18, cut to a few milliseconds.
const RECORDINGS: [(&str, &str); 9] = [
    ("perf-6.1-call-chains.txt", include_str!("recordings/perf-6.1-call-chains.txt")),
    ("perf-6.1-task-events.txt", include_str!("recordings/perf-6.1-task-events.txt")),
    ("perf-6.1-fields.txt", include_str!("recordings/perf-6.1-fields.txt")),
    ("trace-cmd-3.1.txt", include_str!("recordings/trace-cmd-3.1.txt")),
    ("trace-cmd-3.1-raw.txt", include_str!("recordings/trace-cmd-3.1-raw.txt")),
    ("trace-cmd-3.1-latency.txt", include_str!("recordings/trace-cmd-3.1-latency.txt")),
    ("kernel-6.18-trace.txt", include_str!("recordings/kernel-6.18-trace.txt")),
    ("perf-6.12-cgroups.txt", include_str!("recordings/perf-6.12-cgroups.txt")),
    ("trace-cmd-3.3.txt", include_str!("recordings/trace-cmd-3.3.txt")),
];

/// Every switch of a recording is seen, every odd name is whole, and the scenario runs to its end.
#[test]
fn recordings_of_several_tools_are_read() {
    for (name, text) in RECORDINGS {
        let all = import(name, text, Part::default(), &ALL).unwrap_or_else(|e| panic!("{e}"));
        let lines = text.lines().filter(|line| line.contains("sched_switch: ")).count() as u64;
        let switches = all.measured.switches;
        // A few more follow from other events, where the recorder wrote none.
        assert!((lines..lines + 8).contains(&switches), "{name}: {switches} of {lines}");
        assert!(
            all.names.iter().any(|task| task.starts_with("a ==> b-")),
            "{name}: {:?}",
            all.names
        );
        assert_eq!(all.measured.cpus, 2, "{name}");
        let s = scenario_file::parse(name, name, &all.imported.scenario, &[]).unwrap();
        let outcome = overspin_sim::run(&s, 1).unwrap();
        assert_eq!(outcome.ending, Ending::Finished, "{name}");
    }
}

/// The three forms of one recording of trace-cmd are the same, but for interrupts, which only `-l` shows.
#[test]
fn forms_of_one_recording_agree() {
    let of = |i: usize| import("t", RECORDINGS[i].1, Part::default(), &ALL).unwrap();
    let [plain, raw, latency] = [of(3), of(4), of(5)];
    assert_eq!(plain.imported.scenario, raw.imported.scenario);
    assert_eq!(plain.measured, raw.measured);
    assert_eq!(plain.measured.ran, latency.measured.ran);
    assert_eq!(plain.measured.delays, latency.measured.delays);
    let waits = |of: &Recording| of.imported.scenario.matches("wait").count();
    assert!(waits(&latency) < waits(&plain), "timers are no tasks");
}

#[test]
fn cpus_without_events_are_told() {
    let text = format!("cpus=4\nCPU 2 is empty\nCPU 3 is empty\n{SMALL}");
    let all = import("s.txt", &text, Part::default(), &ALL).unwrap();
    let dropped = all.imported.dropped.join("\n");
    assert!(dropped.contains("2 CPUs of the recorded machine"), "{dropped}");
}

fn chosen(choice: &Choice) -> Recording {
    import("s.txt", SMALL, Part::default(), choice).unwrap()
}

#[test]
fn tasks_are_chosen_by_name_or_number() {
    for choice in [Choice { names: vec!["b".into()], ..ALL }, Choice { pids: vec![11], ..ALL }] {
        let all = chosen(&choice);
        assert_eq!(all.names, ["b-11"]);
        // `a`, which woke it after 100 us, is not there.
        assert!(
            all.imported.scenario.contains("\"b-11: sleep 100us, run 50us\""),
            "{}",
            all.imported.scenario
        );
        // The switches to it and from it.
        assert_eq!((all.measured.switches, all.measured.ran.as_slice()), (2, &[50_000][..]));
        assert_eq!(all.measured.delays.woken, [10_000]);
        let dropped = all.imported.dropped.join("\n");
        // 195 us of 245 us were those of the others.
        assert!(dropped.contains("2 tasks that were not chosen, with 79.6 %"), "{dropped}");
        assert!(dropped.contains("1 wake-ups by tasks that were not chosen"), "{dropped}");
    }
    let both = chosen(&Choice { names: vec!["*".into()], ..ALL });
    assert_eq!(both.names, ["a-10", "b-11", "c-12"]);
    // Numbers of tasks follow from those that are chosen.
    let two = chosen(&Choice { pids: vec![10, 12], ..ALL });
    assert!(
        two.imported.scenario.contains("run 15us, wake 1, run 30us"),
        "{}",
        two.imported.scenario
    );
    for (choice, message, help) in [
        (
            Choice { names: vec!["x".into()], ..ALL },
            "no task of this recording is called `x`",
            "`a`",
        ),
        (
            Choice { pids: vec![99], ..ALL },
            "no task of this recording, and no process",
            "10 (`a`), 11 (`b`), 12 (`c`)",
        ),
        (Choice { groups: vec!["/a".into()], ..ALL }, "does not say in which", "--all-cgroups"),
    ] {
        let e = import("s.txt", SMALL, Part::default(), &choice).unwrap_err();
        assert!(e.message.contains(message) && e.help.contains(help), "{e}");
    }
}

#[test]
fn threads_are_chosen_by_their_process() {
    // `perf script --show-task-events` and the kernel's option record-tgid say to which process a thread belongs.
    for (i, process, thread) in [(1, 8044, "x [001] 1.5:_y-"), (6, 13690, "a ==> b-")] {
        let text = RECORDINGS[i].1;
        let all = import("t", text, Part::default(), &Choice { pids: vec![process], ..ALL });
        let all = all.unwrap_or_else(|e| panic!("{e}"));
        let names = all.names.join(" ");
        assert!(names.contains(thread) && names.contains("odd main-"), "{names}");
        assert!(!names.contains("rustc"), "{names}");
        let dropped = all.imported.dropped.join("\n");
        assert!(!dropped.contains("does not say to which process"), "{dropped}");
    }
}

#[test]
fn tasks_are_chosen_by_their_control_group() {
    // A shell that moves itself to the group and takes another name there, and what it starts.
    let choice = Choice { groups: vec!["/ovtest".into()], ..ALL };
    let all = import("t", RECORDINGS[7].1, Part::default(), &choice).unwrap();
    assert!(all.names.contains(&"a ==> b-2295".into()), "{:?}", all.names);
    assert!(all.names.len() < 5, "{:?}", all.names);
    // perf 6.5 and later write the group behind the fields, or below the call chain.
    let behind = SMALL.replace(
        "next_comm=swapper/1 next_pid=0 next_prio=120",
        "next_comm=swapper/1 next_pid=0 next_prio=120 /web/b",
    );
    let below = SMALL.replace(
        "next_comm=swapper/1 next_pid=0 next_prio=120\n",
        "next_comm=swapper/1 next_pid=0 next_prio=120\n\tffffffff8109c1b5 schedule+0x5 ([kernel])\n /web/b\n\n",
    );
    let event = " x 99 [001] 1.000000: cgroup:cgroup_attach_task: dst_root=0 dst_id=9 dst_level=1 dst_path=/web/b pid=11 comm=b\n";
    let attached = SMALL.replacen(
        " swapper 0 [001] 1.000000",
        &format!("{event} swapper 0 [001] 1.000000"),
        1,
    );
    // A child is in the group in which its parent is, and not in one to which the parent moves later.
    let (task, cgroup) =
        (" x 99 [001] 1.000000:", "cgroup:cgroup_attach_task: dst_root=0 dst_id=9");
    let moves = |path: &str| format!("{task} {cgroup} dst_level=1 dst_path={path} pid=97 comm=x\n");
    let forks = |parent: u32, child: u32| {
        format!(
            "{task} sched:sched_process_fork: comm=x pid={parent} child_comm=x child_pid={child}\n"
        )
    };
    let (first, second) = (moves("/web/b") + &forks(97, 98) + &forks(98, 11), moves("/later"));
    let forked = SMALL.replacen(
        " swapper 0 [001] 1.000000",
        &format!("{first}{second}{} swapper 0 [001] 1.000000", forks(97, 12)),
        1,
    );
    let later = Choice { groups: vec!["/later".into()], ..ALL };
    assert_eq!(import("s.txt", &forked, Part::default(), &later).unwrap().names, ["c-12"]);
    for text in [behind, below, attached, forked] {
        for group in ["/web/b", "/web"] {
            let choice = Choice { groups: vec![group.into()], ..ALL };
            let all =
                import("s.txt", &text, Part::default(), &choice).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(all.names, ["b-11"]);
        }
        let choice = Choice { groups: vec!["/we".into()], ..ALL };
        let e = import("s.txt", &text, Part::default(), &choice).unwrap_err();
        assert!(e.help.contains("/web/b"), "{e}");
    }
}

#[test]
fn nice_values_are_weights() {
    let text = SMALL.replace("prev_pid=11 prev_prio=120", "prev_pid=11 prev_prio=125");
    let all = import("s.txt", &text, Part::default(), &ALL).unwrap();
    let s = scenario_file::parse("s.toml", "s", &all.imported.scenario, &[]).unwrap();
    // Linux's weights of nice 0 and 5 are 1024 and 335; a real-time task counts as nice 0.
    assert_eq!(s.domains[0].weights, [256, 84, 256]);
    let dropped = all.imported.dropped.join("\n");
    assert!(
        dropped.contains("the earlier priorities of 1 tasks") && dropped.contains("b-11"),
        "{dropped}"
    );
    assert!(!chosen(&ALL).imported.scenario.contains("weights"));
}

/// A recording with `sched_wakeup`, and what `perf sched latency` of perf 6.1 says of it.
const WAKEUPS: &str = include_str!("recordings/perf-6.1-wakeups.txt");
const LATENCY: &str = include_str!("recordings/perf-6.1-wakeups.latency.txt");

/// perf counts the first run of a task that it did not know as a switch without a delay; all else is the same.
#[test]
fn delays_are_those_of_perf_sched_latency() {
    let all = import("w.txt", WAKEUPS, Part::default(), &ALL).unwrap();
    let mut compared = 0;
    for row in LATENCY.lines().filter(|line| line.contains("avg:")) {
        let cells: Vec<&str> = row.split('|').collect();
        let number = |i: usize| {
            let is_digit = |c: char| c.is_ascii_digit() || c == '.';
            cells[i].trim_matches(|c: char| !is_digit(c)).parse::<f64>().unwrap()
        };
        // `rustc:22706`, or `bash:(5)` for five tasks.
        let name = cells[0].trim().rsplit_once(':').unwrap().0;
        let of: Vec<_> = all.measured.tasks.iter().filter(|task| task.name == name).collect();
        let dispatches: u64 = of.iter().map(|task| task.dispatches).sum();
        let delay = of.iter().map(|task| task.delay).sum::<u64>() as f64 / 1e6;
        let longest = of.iter().map(|task| task.longest).max().unwrap_or_default() as f64 / 1e6;
        let [ran, switches, mean, max] = [1, 2, 3, 4].map(number);
        let known = switches as u64 - dispatches;
        assert!(known <= of.len() as u64, "{row}: {dispatches}");
        // perf rounds the mean to a microsecond.
        assert!((delay - mean * switches).abs() < 0.001 * switches + 0.001, "{row}: {delay}");
        assert!((longest - max).abs() < 0.001, "{row}: {longest}");
        let own = of.iter().map(|task| task.ran).sum::<u64>() as f64 / 1e6;
        assert!((own - ran).abs() < 0.1 * ran + 0.2, "{row}: {own}");
        compared += 1;
    }
    assert!(compared > 8, "{compared}");
    let text = overspin_report::text(&measured(&all.measured));
    assert!(
        text.contains("mean ms") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn times_are_those_that_a_scenario_can_have() {
    // The last event of the recording, and one that would be 1,001 hours after the first.
    let late = " a 10 [000] 3603601.000000: sched:sched_wakeup_new: comm=d pid=13 prio=120 target_cpu=000\n";
    let text = format!("{SMALL}{late}");
    let e = import("s.txt", &text, Part::default(), &ALL).unwrap_err();
    assert!(
        e.message.contains("1000 hours after the first") || e.message.contains("1001 hours"),
        "{e}"
    );
    assert!(e.help.contains("--to"), "{e}");
    let part = Part { to: Some(MS * 100), ..Part::default() };
    import("s.txt", &text, part, &ALL).unwrap();
    // By the kernel's account these tasks ran for ever, in turn.
    let mut text = String::new();
    for i in 0..10 {
        let pid = 10 + i % 2;
        text += &format!(
            " a {pid} [000] 1000000000{i}.0: sched:sched_stat_runtime: comm=a pid={pid} runtime=18446744073709551615 [ns]\n"
        );
    }
    let switch = " a 10 [000] 10000000010.0: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> \
                  next_comm=a next_pid=11 next_prio=120\n";
    let all = import("s.txt", &(text + switch), Part::default(), &ALL).unwrap();
    scenario_file::parse("s.toml", "s", &all.imported.scenario, &[]).unwrap();
    assert!(!overspin_report::text(&measured(&all.measured)).is_empty());
}

mod names {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// Any name that a task can have comes out of each form as it was.
        #[test]
        fn names_are_read_whole(name in "[ -~]{1,15}") {
            prop_assume!(name.trim() == name && name != "<...>");
            let short = format!("{name}:12 [120]");
            let long = |prefix: &str| format!("{prefix}comm={name} {prefix}pid=12 {prefix}prio=120");
            for head in ["{} 12 [001] 28.5:", "{}-12 [001] d..2. 28.5:", "{} 9/12 [001] 28.5:"] {
                for fields in [
                    format!("{} prev_state=S ==> {}", long("prev_"), long("next_")),
                    format!("{short} S ==> {short}"),
                ] {
                    let line = format!("{} sched_switch: {fields}", head.replace("{}", &name));
                    let read = line::read(&line, false);
                    let Ok(Line::Event(event)) = read else { panic!("{line}: {read:?}") };
                    let EventKind::Switch { prev, next, .. } = event.what else { panic!("{line}") };
                    prop_assert_eq!((prev.comm, next.comm), (&*name, &*name), "{}", line);
                    prop_assert_eq!(event.current.map(|who| (who.comm, who.pid)), Some((&*name, 12)), "{}", line);
                }
            }
        }
    }
}
