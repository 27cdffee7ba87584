//! The guarantees of credit2 (specification §4.9 and T2 to T6 of §12), on random hosts and loads.

use crate::common::Driver;
use overspin_sched::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Least and most credit of any vCPU, without the gifts for moves. The clip is half a ms above 10 ms.
const CREDIT: std::ops::RangeInclusive<i64> = -10_000_000..=10_500_000;

fn topology() -> impl Strategy<Value = Topology> {
    (1..=2u32, 1..=2u32, 1..=2u32).prop_map(|(sockets, cores_per_socket, threads_per_core)| {
        Topology { sockets, cores_per_socket, threads_per_core }
    })
}

fn runqueue(word: &str) -> Params {
    Params::default().with("runqueue", ParamValue::Word(word.into()))
}

proptest! {
    // Statistical: the same cases each time.
    #![proptest_config(ProptestConfig {
        cases: 40,
        rng_seed: RngSeed::Fixed(2016),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// T2 and the bounds of credit: sleepers and hogs on one runqueue; after each instant no pCPU
    /// idles while a vCPU waits.
    #[test]
    fn no_pcpu_of_a_runqueue_idles_beside_work(
        topology in topology(),
        naps in proptest::collection::vec((1..4_000i64, 0..4_000i64), 1..12),
        options_of_threads in any::<bool>(),
    ) {
        let params = runqueue("all")
            .with("smt_charge", ParamValue::Number(if options_of_threads { 455 } else { 1000 }))
            .with("smt_space", ParamValue::Flag(options_of_threads));
        let mut d = Driver::new("credit2", &params, topology);
        let vcpus = d.domain(256, 0, naps.len() as u32);
        vcpus.iter().for_each(|v| d.up(*v));
        let mut moves = 0;
        for t in 1..400 {
            d.run_to(t * Nanos::us(250));
            for (v, (run, nap)) in vcpus.iter().zip(&naps) {
                let asleep = (t * 250) % (run + nap) >= *run;
                if asleep && d.h.runstate(*v) == RunState::Running {
                    d.block(*v);
                } else if !asleep {
                    d.unblock(*v);
                }
            }
            d.settle();
            let waiting = vcpus.iter().filter(|v| d.h.runstate(**v) == RunState::Runnable).count();
            let idle = (0..topology.pcpus()).filter(|p| d.h.current(PcpuId(*p)).is_none()).count();
            prop_assert!(waiting == 0 || idle == 0, "{waiting} wait, {idle} pCPUs idle");
            // If there is another pCPU, a vCPU changes it at most twice in a step: at a wake-up, and
            // at the end of a slice. Each slice lasts longer than a step.
            moves += 2 * i64::from(topology.pcpus() > 1);
            for v in &vcpus {
                let most = CREDIT.end() + 50_000 * moves;
                prop_assert!((*CREDIT.start()..=most).contains(&d.credit(*v)));
            }
        }
    }

    /// T4: over any number of periods, a capped domain uses no more than its budgets, the budget that
    /// its vCPUs hold at the start, and for each vCPU an overrun of a least slice (the ratelimit);
    /// and not much less.
    #[test]
    fn caps_hold_from_period_to_period(cap in 5..=300u32, vcpus in 3..=4u32) {
        let mut d = Driver::flat("credit2", 4);
        let capped = d.domain(256, cap, vcpus);
        for v in &capped {
            d.up(*v);
            d.settle();
        }
        let budget = Nanos::ms(10) * i64::from(cap) / 100;
        let mut last = Nanos::ZERO;
        for period in 1..=200 {
            d.run_to(period * Nanos::ms(10));
            let ran: Nanos = capped.iter().map(|v| d.running(*v)).sum();
            let overrun = Nanos::MS * i64::from(vcpus);
            prop_assert!(ran - last <= 2 * budget + overrun, "period {period}: {}", ran - last);
            prop_assert!(ran <= period * budget + overrun, "{ran} after {period} periods");
            last = ran;
        }
        prop_assert!(last >= 199 * budget * 98 / 100, "{last}: too little");
    }

    /// T5: a sleeper has more credit than any hog when it wakes, and runs within the longest slice.
    #[test]
    fn a_sleeper_runs_within_a_slice(hogs in 1..8u32, pcpus in 1..4u32, nap in 30..60i64) {
        let mut d = Driver::flat("credit2", pcpus);
        let sleeper = d.domain(256, 0, 1)[0];
        d.up_and_blocked(sleeper);
        for v in d.domain(256, 0, hogs) {
            d.up(v);
            d.settle();
        }
        for _ in 0..20 {
            d.run_to(d.now + nap * Nanos::MS + Nanos::us(130));
            d.settle();
            d.unblock(sleeper);
            d.settle();
            let woken = d.now;
            while d.h.runstate(sleeper) != RunState::Running {
                d.run_to(d.now + Nanos::us(10));
                d.settle();
                prop_assert!(d.now - woken <= Nanos::ms(10), "it waits for {} us", (d.now - woken) / Nanos::US);
            }
            d.run_to(d.now + Nanos::us(200));
            d.block(sleeper);
            d.settle();
        }
    }

    /// T6: with any weights, each vCPU runs before the second end of an epoch after it was queued.
    #[test]
    fn nobody_starves(weights in proptest::collection::vec(1..=4096u32, 2..=8)) {
        let mut d = Driver::flat("credit2", 1);
        let hogs: Vec<_> = weights.iter().map(|w| d.domain(*w, 0, 1)[0]).collect();
        hogs.iter().for_each(|v| d.up(*v));
        // An epoch lasts at most 10 ms for each hog. A light hog may pay its whole credit for an
        // overrun of its slice; at the clamp it waits for a third epoch.
        let bound = 3 * Nanos::ms(10) * hogs.len() as i64;
        let mut before = vec![Nanos::ZERO; hogs.len()];
        for round in 1..20 {
            d.run_to(round * bound);
            for (v, before) in hogs.iter().zip(&mut before) {
                let ran = d.running(*v);
                prop_assert!(ran > std::mem::replace(before, ran), "{v:?} starves: {weights:?}");
            }
        }
    }
}
