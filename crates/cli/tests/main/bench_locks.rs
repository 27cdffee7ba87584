//! `overspin bench locks`: its output, and its mistakes. The speed of the locks is not tested.

use crate::{json, overspin};
use overspin_testing::Ended;
use serde_json::Value;

fn bench_locks(args: &[&str]) -> Ended {
    overspin().run(&[&["bench", "locks"], args].concat())
}

#[test]
fn every_combination_with_all_its_runs() {
    let (out, _) = bench_locks(&[
        "--locks=mutex,mutexee,byte,std,parking_lot,usync,spin,pthread,pthread-adaptive,pthread-spin",
        "--threads=1,2",
        "--section=100ns",
        "--outside=0ns,1.5us",
        "--time=2ms",
        "--runs=2",
        "--json=-",
    ])
    .with(0);
    let record = json(&out);
    assert_eq!(
        (&record["schema"], &record["kind"]),
        (&"overspin-record/1".into(), &"bench-locks".into())
    );
    let list = |key: &str| record[key].as_array().expect("a list").clone();
    let (runs, samples) = (list("runs"), list("samples"));
    assert_eq!(runs.len(), 10 * 2 * 2 * 2);
    let numbers: Vec<u64> = runs.iter().map(|r| r["number"].as_u64().expect("a number")).collect();
    assert!(numbers.into_iter().eq(0..10 * 2 * 2 * 2), "each run has its place in the order");
    let place = "lock-byte.threads-2.section-100ns.outside-1500ns";
    let of = |place: &str, metric: &str| -> Vec<(u64, f64)> {
        let here = samples.iter().filter(|s| s["where"] == place && s["metric"] == metric);
        let pair = |s: &Value| Some((s["run"].as_u64()?, s["value"].as_f64()?));
        here.map(|s| pair(s).expect("numbers")).collect()
    };
    let rates = of(place, "acquisitions");
    assert_eq!(rates.len(), 2, "an alias stands for its name");
    for (i, (run, rate)) in rates.into_iter().enumerate() {
        assert_eq!(runs[run as usize]["where"], place);
        let length = of(place, "length")[i].1;
        assert!(length >= 0.002);
        let shares: f64 = (0..2).map(|t| of(&format!("{place}.thread-{t}"), "share")[i].1).sum();
        assert!((rate * length - shares).abs() < 1e-6 * shares.max(1.0));
        let waits = ["wait-p50", "wait-p99.9", "wait-max"].map(|metric| of(place, metric)[i].1);
        assert!(waits.is_sorted());
    }
    // The runs of a point are not neighbours in the order of all runs.
    let order: Vec<u64> = samples
        .iter()
        .filter(|s| s["metric"] == "acquisitions")
        .map(|s| s["run"].as_u64().expect("a number"))
        .collect();
    assert!(!order.is_sorted());
}

#[test]
fn every_case_has_its_runs_and_the_plan_is_kept() {
    let cases = "long-holder,sleeping,bursts,nested,zipf,hogs,shared,condvar,uncontended,plain";
    let (out, _) = bench_locks(&[
        "--locks=mutex-dynamic,std,parking_lot,pthread",
        &format!("--case={cases}"),
        "--threads=3",
        "--long=100us",
        "--time=4ms",
        "--runs=2",
        "--json=-",
    ])
    .with(0);
    let record = json(&out);
    let plan = &record["locks"];
    let listed: Vec<&Value> = plan["cases"].as_array().expect("a list").iter().collect();
    assert!(listed.into_iter().eq(cases.split(',').collect::<Vec<_>>()), "{plan}");
    assert_eq!(
        (&plan["long_ns"], &plan["time_ns"], &plan["runs"], &plan["left_out"][0]),
        (&100_000.into(), &4_000_000.into(), &2.into(), &"mutex-dynamic".into())
    );
    assert!(record["environment"]["cpus"].is_u64(), "the machine");
    let runs = record["runs"].as_array().expect("a list");
    // One lock has no condition variable.
    assert_eq!(runs.len(), (10 * 4 - 1) * 2);
    for case in cases.split(',').filter(|case| *case != "plain") {
        let place = format!("std.{case}.threads-3.section-100ns.outside-200ns");
        assert_eq!(runs.iter().filter(|run| run["where"] == *place).count(), 2, "{place}");
    }
    let plain = "std.threads-3.section-100ns.outside-200ns";
    assert!(runs.iter().any(|run| run["where"] == plain), "the plain case has no name");
}

#[test]
fn table_for_people() {
    let args = ["--locks=mutex,ticket", "--threads=1", "--time=1ms", "--runs=1"];
    let (out, _) = bench_locks(&args).with(0);
    assert!(out.contains("1 threads, section 100 ns, outside 200 ns"), "{out}");
    assert!(out.contains("mutex") && out.contains("ticket"), "{out}");
}

#[test]
fn mistakes() {
    for (args, cause) in [
        (&["--locks=mutes"][..], "there is no lock `mutes`"),
        (&["--locks=ticket-small", "--threads=256"], "`ticket-small` serves at most 255 threads"),
        (&["--case=hog"], "hogs"),
        (&["--case=condvar", "--threads=1"], "2 threads or more"),
        (&["--case=long-holder", "--long=10s"], "too long"),
        (&["--case=hogs", "--world=sim"], "only threads have other cases"),
        (&["--threads=0"], "there must be at least one"),
        (&["--time=0ns"], "and some time"),
        (&["--section=100"], "a number with ns, us, ms or s"),
        (&["--outside=-1ns"], "a number with ns, us, ms or s"),
        (&["--section=10s"], "too long"),
        (&["--cpus=3-2"], "numbers of CPUs"),
        (&["--cpus=4095", "--threads=1", "--time=1ms"], "cannot run on CPUs [4095]"),
    ] {
        let Ended { code, out, err, .. } = bench_locks(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
}
