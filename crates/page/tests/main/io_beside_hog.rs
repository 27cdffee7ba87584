//! Tests of `examples/io-beside-hog.toml`; docs/pause-loop-exits.md compares its results with the published
//! figures.

use overspin_runs::scenario_file;

/// Answers per second of the guest that does I/O.
fn answers(sets: &[&str]) -> f64 {
    // The closed form has no noise.
    let quiet = ["host.noise.placement=none", "host.stagger=0"];
    let sets: Vec<String> = sets.iter().chain(&quiet).map(|s| (*s).to_owned()).collect();
    let text = include_str!("../../../../examples/io-beside-hog.toml");
    let scenario =
        scenario_file::parse("io-beside-hog.toml", "io-beside-hog", text, &sets).unwrap();
    let outcome = overspin_sim::run(&scenario, 1).unwrap();
    outcome.domains[0].tasks[0].items as f64 / outcome.counted().seconds()
}

const MENDED: &str = "host.scheduler_params.kick_always=false";
const ALONE: &str = "domain.hog.affinity=1-1";

#[test]
fn a_futile_kick_leaves_the_guest_two_answers_for_each_slice_of_the_hog() {
    // Times in ms. A wake-up that preempts boosts the hog. The next wake-up, one round trip later, finds it
    // boosted and waits for the end of its slice of 30; the one after that preempts and boosts it again. That
    // makes two answers in 30 plus a round trip. But a tick, every 10, ends the boost. With the probability p
    // = round trip / 10 it falls between boost and wake-up, and the guest need not wait that time. So a cycle
    // has on average p / (1 - p) more answers, each a round trip long. Every answer itself takes 0.1.
    for round_trip in [0.1, 0.3, 1.0, 3.0] {
        let more = round_trip / 10.0 / (1.0 - round_trip / 10.0);
        let answers_of_cycle = 2.0 + more;
        let cycle = 30.0 + round_trip * (1.0 + more) + 0.1 * answers_of_cycle;
        let set = format!("domain.io.workload.round_trip={}us", round_trip * 1000.0);
        let (rate, expected) = (answers(&[&set]), answers_of_cycle / cycle * 1000.0);
        assert!((rate / expected - 1.0).abs() < 0.02, "{set}: {rate} a second, not {expected}");
    }
}

#[test]
fn either_mend_gives_the_guest_what_it_has_alone() {
    let alone = answers(&[ALONE]);
    let (kick, boost) = ("host.scheduler_params.kick_always=true", "host.scheduler=credit-2016");
    for sets in [&[MENDED][..], &[boost], &[boost, kick]] {
        let beside = answers(sets);
        assert!((0.99..=1.0).contains(&(beside / alone)), "{sets:?}: {beside} of {alone}");
    }
}

#[test]
fn a_guest_that_comes_back_within_the_ratelimit_waits_for_it() {
    // The hog keeps the pCPU for 1 ms after it was dispatched; 100 us are the guest's.
    let rate = answers(&[MENDED, "domain.io.workload.round_trip=100us"]);
    assert!((0.85 / 0.0011..=1.0 / 0.0011).contains(&rate), "{rate} a second");
}

#[test]
fn without_an_idle_pcpu_nothing_is_kicked() {
    let alone = answers(&[ALONE]);
    let beside = answers(&["host.cores=1"]);
    assert!(beside / alone >= 0.99, "{beside} of {alone}");
}
