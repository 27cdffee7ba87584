//! `overspin bench locks`: what it writes, and its mistakes. How fast the locks are is no test.

use assert_cmd::Command;
use serde_json::Value;

fn bench_locks(args: &[&str]) -> (String, String, i32) {
    let output = Command::cargo_bin("overspin")
        .expect("the program is built")
        .args(["bench", "locks"])
        .args(args)
        .output()
        .expect("the program runs");
    (
        String::from_utf8(output.stdout).expect("UTF-8"),
        String::from_utf8(output.stderr).expect("UTF-8"),
        output.status.code().expect("no signal"),
    )
}

#[test]
fn every_combination_with_all_its_runs() {
    let (out, err, code) = bench_locks(&[
        "--locks=mutex,mutexee,byte,std,parking_lot,usync,spin,pthread,pthread-adaptive,pthread-spin",
        "--threads=1,2",
        "--section=100ns",
        "--outside=0ns,1.5us",
        "--time=2ms",
        "--runs=2",
        "--json=-",
    ]);
    assert_eq!(code, 0, "{err}");
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(record["schema"], "overspin-bench-locks/1");
    let points = record["points"].as_array().expect("a list");
    assert_eq!(points.len(), 10 * 2 * 2);
    assert_eq!(points[8]["lock"], "lock-byte", "an alias stands for its name");
    let mut places = Vec::new();
    for point in points {
        let samples = point["samples"].as_array().expect("a list");
        assert_eq!(samples.len(), 2);
        for sample in samples {
            places.push(sample["place"].as_u64().expect("a number"));
            let shares = sample["acquisitions"].as_array().expect("a list");
            assert_eq!(shares.len() as u64, point["threads"].as_u64().expect("a number"));
            assert!(sample["time_ns"].as_u64() >= Some(2_000_000));
        }
        let range = &point["throughput_range"];
        assert!(range[0].as_f64() <= point["throughput"].as_f64());
        assert!(point["throughput"].as_f64() <= range[1].as_f64());
        let wait = &point["wait"];
        assert!(wait["p50"].as_u64() <= wait["p99_9"].as_u64());
        assert!(wait["p99_9"].as_u64() <= wait["max"].as_u64());
    }
    // Each run has its place, and they are not in the order of the points.
    assert!(!places.is_sorted());
    places.sort_unstable();
    assert!(places.into_iter().eq(0..10 * 2 * 2 * 2));
}

#[test]
fn table_for_people() {
    let (out, _, code) =
        bench_locks(&["--locks=mutex,ticket", "--threads=1", "--time=1ms", "--runs=1"]);
    assert_eq!(code, 0);
    assert!(out.contains("1 threads, section 100 ns, outside 200 ns"), "{out}");
    assert!(out.contains("mutex") && out.contains("ticket"), "{out}");
}

#[test]
fn mistakes() {
    for (args, cause) in [
        (&["--locks=mutes"][..], "there is no lock `mutes`"),
        (&["--locks=ticket-small", "--threads=256"], "`ticket-small` serves at most 255 threads"),
        (&["--threads=0"], "there must be at least one"),
        (&["--time=0ns"], "and some time"),
        (&["--section=100"], "a number with ns, us, ms or s"),
        (&["--outside=-1ns"], "a number with ns, us, ms or s"),
        (&["--section=10s"], "too long"),
        (&["--cpus=3-2"], "numbers of CPUs"),
        (&["--cpus=4095", "--threads=1", "--time=1ms"], "cannot run on CPUs [4095]"),
    ] {
        let (out, err, code) = bench_locks(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
}
