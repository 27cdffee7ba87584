//! Quotas of Linux hosts: slices, what comes back of them, and domains of which only a part has a quota.

use crate::common::Driver;
use overspin_sched::*;
use proptest::prelude::*;

const HOSTS: [&str; 3] = ["cfs", "eevdf", "eevdf-6.18"];

/// A host of `pcpus` with a tick of 1 ms, and its slice.
fn host(name: &str, pcpus: u32, slice: Nanos, returns: bool) -> Driver {
    let params = Params::default()
        .with("tick", ParamValue::Time(Nanos::MS))
        .with("bandwidth_slice", ParamValue::Time(slice))
        .with("bandwidth_return", ParamValue::Flag(returns));
    Driver::new(name, &params, Topology::flat(pcpus))
}

/// 10 ms for two vCPUs. Each takes a slice of 5 ms, and the pool is empty. One sleeps after 1 ms: 4 ms of its slice are
/// left, of which its pCPU keeps 1 ms.
#[test]
fn the_rest_of_a_slice_comes_back() {
    for (name, returns, until) in
        HOSTS.into_iter().flat_map(|name| [(name, false, 5.), (name, true, 8.)])
    {
        let mut d = host(name, 2, Nanos::ms(5), returns);
        let v = d.domain(256, 10, 2);
        v.iter().for_each(|v| d.up(*v));
        d.settle();
        let p = d.h.machine().home(v[0]).0;
        d.run_to(Nanos::MS);
        d.block(v[1]);
        d.run_to(Nanos::ms(50));
        assert_eq!(d.ran(p), [(0., until, v[0].0)], "{name}, returns: {returns}");
    }
}

/// 30 ms for three vCPUs, in slices of 10 ms. The first one is throttled at 10 ms. The others begin at 8 ms and sleep at 11 ms;
/// each leaves 7 ms, of which 6 ms come back. 5 ms later the first one gets these 12 ms. The next period begins at 100 ms.
#[test]
fn throttled_vcpus_get_what_came_back() {
    for name in HOSTS {
        let mut d = host(name, 3, Nanos::ms(10), true);
        let v = d.domain(256, 30, 3);
        d.up(v[0]);
        d.settle();
        let p = d.h.machine().home(v[0]).0;
        d.run_to(Nanos::ms(8));
        d.up(v[1]);
        d.up(v[2]);
        d.run_to(Nanos::ms(11));
        d.block(v[1]);
        d.block(v[2]);
        d.run_to(Nanos::ms(12));
        assert!(d.h.machine().is_capped(v[0]), "{name}");
        d.run_to(Nanos::ms(200));
        assert_eq!(d.ran(p), [(0., 10., 0), (16., 28., 0), (100., 130., 0)], "{name}");
        // From 10 to 16, from 28 to 100 and from 130 on.
        let told = d.h.throttling(DomainId(0), Nanos::ms(200)).unwrap();
        assert_eq!(
            (told.periods, told.throttled, told.time),
            (2, 2, Nanos::ms(6 + 72 + 70)),
            "{name}"
        );
    }
}

#[test]
fn a_quota_can_be_for_the_first_vcpus_of_a_domain() {
    for name in HOSTS {
        let mut d = host(name, 2, Nanos::ms(5), false);
        let v = d.domain(256, 30, 2);
        let capped = Params::default().with("capped_vcpus", ParamValue::Number(1));
        let domain = Whose::Domain(DomainId(0));
        d.call(|h, now, out| h.configure(now, domain, &capped, out)).unwrap();
        v.iter().for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(150));
        d.settle();
        assert_eq!((d.running(v[0]), d.running(v[1])), (Nanos::ms(60), Nanos::ms(150)), "{name}");
        assert!(d.h.machine().is_capped(v[0]) && !d.h.machine().is_capped(v[1]));
        // From now on it is for both: of this period's quota nothing is left.
        let both = Params::default().with("capped_vcpus", ParamValue::Number(0));
        d.call(|h, now, out| h.configure(now, domain, &both, out)).unwrap();
        d.run_to(Nanos::ms(199));
        d.settle();
        let others = d.running(v[1]) - Nanos::ms(150);
        assert!(others <= Nanos::MS, "{name}: at most until the next tick, {others:?}");
        let one = Whose::Vcpu(v[0]);
        let refused = d.call(|h, now, out| h.configure(now, one, &capped, out));
        assert!(refused.is_err(), "a vCPU has no such number");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever sleeps and wakes: vCPUs with a quota never run for more than it, but for a slice and a tick on each pCPU,
    /// and those without one run all the time on pCPUs of their own.
    #[test]
    fn a_quota_holds_over_all_periods(
        name in proptest::sample::select(HOSTS.to_vec()),
        (slice_us, cap, returns) in (100..20_000i64, 1..300u32, any::<bool>()),
        naps in proptest::collection::vec((0..3usize, 1..30_000i64), 1..60),
    ) {
        let slice = Nanos::us(slice_us);
        let mut d = host(name, 4, slice, returns);
        let v = d.domain(256, cap, 4);
        let capped = Params::default().with("capped_vcpus", ParamValue::Number(3));
        d.call(|h, now, out| h.configure(now, Whose::Domain(DomainId(0)), &capped, out)).unwrap();
        v.iter().for_each(|v| d.up(*v));
        let mut asleep = [false; 3];
        for (who, us) in naps {
            let until = d.now + Nanos::us(us);
            d.run_to(until);
            d.settle();
            asleep[who] = !asleep[who];
            match asleep[who] {
                true => d.block(v[who]),
                false => _ = d.unblock(v[who]),
            }
        }
        d.settle();
        let period = Nanos::ms(100);
        let periods = d.now.div_euclid(period) + 1;
        let most = period * i64::from(cap) / 100 * periods + (slice + Nanos::MS) * 4;
        let ran: Nanos = v[..3].iter().map(|v| d.running(*v)).sum();
        prop_assert!(ran <= most, "{ran:?} of {most:?}");
        prop_assert_eq!(d.running(v[3]), d.now);
    }
}
