//! A recording by hand whose every figure is known, and one of a real kernel.

use super::*;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file;
use overspin_scenario::{Ending, MS};

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
    let all = import("s.txt", SMALL, Part::default()).unwrap();
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
    // b after 10 us, a after 5 us, c after 1 us; a after the 30 us of c.
    assert_eq!(m.delays, Delays { woken: vec![10_000, 5_000, 1_000], preempted: vec![30_000] });
    let dropped = all.imported.dropped.join("\n");
    assert!(dropped.contains("the causes of 1 wake-ups by interrupts"), "{dropped}");
    assert!(dropped.contains("real-time priority of 1 tasks, which are ordinary ones here: c-12"));
}

/// In the simulator each task has its recorded CPU time, and what one task wakes begins after that.
#[test]
fn the_scenario_does_the_recorded_work() {
    let all = import("s.txt", SMALL, Part::default()).unwrap();
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
    let all = import("s.txt", SMALL, part).unwrap();
    // The first event of the part is at 160 us, where b leaves its CPU; the last one is at 641 us.
    let scenario = &all.imported.scenario;
    assert!(scenario.contains("\"a-10: sleep 460us, run 15us, wake 2, run 1us\""), "{scenario}");
    assert_eq!(all.measured.elapsed, 481_000);
    let e = import("s.txt", SMALL, Part { from: MS, to: None }).unwrap_err();
    assert!(e.message.contains("no `sched_switch`"), "{e}");
}

#[test]
fn faults_have_a_line() {
    for (from, to, line, message) in [
        ("# a comment", "what is this?", 1, "no task with a CPU"),
        ("prev_state=X ==>", "prev_state=X", 13, "the fields of `sched:sched_switch`"),
        ("1.000700", "1.000600", 13, "71000 ns earlier"),
    ] {
        let e = import("s.txt", &SMALL.replacen(from, to, 1), Part::default()).unwrap_err();
        assert_eq!(e.line, line, "{e}");
        assert!(e.message.contains(message), "{e}");
    }
}

/// Two tasks spin for a lock one after the other.
#[test]
fn waits_for_spin_locks_become_sections() {
    let text = "\
 a 10 [000] 1.000000: lock:contention_begin: 0xff (flags=SPIN)
 b 11 [001] 1.000005: lock:contention_begin: 0xff (flags=SPIN)
 a 10 [000] 1.000010: lock:contention_end: 0xff (ret=0)
 b 11 [001] 1.000014: lock:contention_end: 0xff (ret=0)
 a 10 [000] 1.000040: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 b 11 [001] 1.000050: sched:sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";
    let all = import("s.txt", text, Part::default()).unwrap();
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
    let all = import("h.txt", HACKBENCH, Part::default()).unwrap();
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
    let all = import("h.txt", HACKBENCH, Part::default()).unwrap();
    let s = scenario_file::parse("h.toml", "h", &all.imported.scenario, &[]).unwrap();
    let mut watch = Watch::default();
    let outcome = Runner::default().run(&s, 1, &mut watch, &|_| {}).unwrap();
    assert_eq!(outcome.ending, Ending::Finished);
    let (was, is) = (all.measured.all_ran() as f64, watch.finish(&outcome, 2).all_ran() as f64);
    assert!((is / was - 1.0).abs() < 0.01, "{was} {is}");
    let text = overspin_report::text(&beside(&all.names, &all.measured, &all.measured, "again"));
    assert!(text.contains("share of `sched-messaging`") && text.contains("+0 %"), "{text}");
}
