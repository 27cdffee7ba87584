//! A trace of ours, decoded with Perfetto's own message definitions (PyPI package `perfetto`), must add up to
//! the totals of the run. Without Python or the package, the test is skipped, with the reason on standard
//! error. `OVERSPIN_PYTHON` names a Python that has the package.

use overspin_host::{Moment, Observer, Timed, VcpuState};
use overspin_runs::scenario_file;
use overspin_scenario::{NS, Picos, Scenario, US, Why};
use overspin_sim::Simulator;
use overspin_testing::{TWO_ON_ONE, skip};
use overspin_watch::perfetto::PerfettoSink;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn python() -> Option<String> {
    let python = std::env::var("OVERSPIN_PYTHON").unwrap_or_else(|_| "python3".into());
    let check = Command::new(&python)
        .args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"])
        .output();
    match check {
        Ok(output) if output.status.success() => Some(python),
        _ => {
            skip(&format!(
                "`{python}` has no package `perfetto`; pip install perfetto protobuf, or set OVERSPIN_PYTHON"
            ));
            None
        }
    }
}

fn decode(python: &str, trace: &[u8]) -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), trace).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/perfetto_decode.py");
    let output = Command::new(python).arg(script).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn scenario(text: &str) -> Scenario {
    scenario_file::parse("trace.toml", "trace", text, &[]).unwrap()
}

#[test]
fn hand_made_events_add_up() {
    use Moment::{
        Kick, LockAcquired, LockFreed, LockReleased, LockWait, Returns, Runs, Sleeps, Switch, Wake,
    };
    let Some(python) = python() else { return };
    let switch = |prev, prev_state, why, next| Switch { pcpu: 0, prev, prev_state, why, next };
    let runs = |vcpu| Runs { vcpu, pcpu: 0 };
    let mut sink = PerfettoSink::new(&scenario(TWO_ON_ONE), 7, Vec::new()).unwrap();
    for (at, event) in [
        (Picos::ZERO, switch(None, VcpuState::Runnable, None, Some(0))),
        (Picos::ZERO, runs(0)),
        (US, LockAcquired { vcpu: 0, lock: 0, contended: false }),
        (2 * US, Wake { vcpu: 1, pcpu: Some(0), runnable: true }),
        (3 * US, switch(Some(0), VcpuState::Runnable, Some(Why::Wake), Some(1))),
        (3 * US, runs(1)),
        // Two microseconds of waiting for a holder that is off the pCPU, and one while it runs.
        (4 * US, LockWait { vcpu: 1, lock: 0, holder: Some(0), releasing: false }),
        (6 * US, Sleeps { vcpu: 1 }),
        (6 * US, switch(Some(1), VcpuState::Blocked, None, Some(0))),
        (6 * US, runs(0)),
        (7 * US, LockReleased { vcpu: 0, lock: 0, contended: true }),
        (7 * US, LockFreed { vcpu: 0, lock: 0, contended: true }),
        (7 * US, Kick { from: 0, to: 1 }),
        // Two microseconds until the waiter is back.
        (7 * US, Wake { vcpu: 1, pcpu: Some(0), runnable: true }),
        (8 * US, switch(Some(0), VcpuState::Runnable, Some(Why::Wake), Some(1))),
        (8 * US, runs(1)),
        (9 * US, Returns { vcpu: 1 }),
        (9 * US, LockAcquired { vcpu: 1, lock: 0, contended: true }),
        (10 * US, LockReleased { vcpu: 1, lock: 0, contended: false }),
        (11 * US, LockWait { vcpu: 1, lock: 0, holder: None, releasing: false }),
    ] {
        sink.observe(&[Timed { at, moment: event }]);
    }
    let totals = decode(&python, &sink.finish(12 * US).unwrap());
    assert_eq!(totals["running_ns"]["guest/v0"], 5_000);
    assert_eq!(totals["running_ns"]["guest/v1"], 7_000);
    assert_eq!(
        totals["slices"]["guest/v1|wait section"],
        serde_json::json!({"count": 1, "ns": 5_000})
    );
    assert_eq!(
        totals["slices"]["guest/v0|hold section"],
        serde_json::json!({"count": 1, "ns": 6_000})
    );
    assert_eq!(
        totals["arguments"],
        serde_json::json!({
            "wait section: holder preempted (LHP) ns": 2_000,
            "wait section: holder running ns": 1_000,
            "wait section: kick and wake-up ns": 2_000,
        })
    );
    assert_eq!(totals["slices"]["guest/v1|blocked"]["ns"], 1_000);
    assert_eq!(totals["slices"]["guest/v0|runnable"]["ns"], 3_000 + 4_000);
    assert_eq!(
        (&totals["unended"], &totals["instants"], &totals["wakings"]),
        (&1.into(), &1.into(), &2.into())
    );
    // The kick wakes the waiter, which runs later; the other wake-up came from no kick.
    assert_eq!(
        totals["flows"],
        serde_json::json!({ "1": ["guest/v0|kick guest/v1", "guest/v1|runnable", "guest/v1|running"] })
    );
    // The waiter spins from 4 to 6 us, when it blocks, from 8 to 9 us, and from 11 us to the end.
    assert_eq!(
        totals["counters"]["guest|spinning vCPUs"],
        serde_json::json!([
            [0, 0],
            [4_000, 1],
            [6_000, 0],
            [8_000, 1],
            [9_000, 0],
            [11_000, 1],
            [12_000, 0]
        ])
    );
    // Of two vCPUs on a pCPU one is runnable from the wake-up on, while neither sleeps.
    let queued = serde_json::json!([[0, 0], [2_000, 1], [6_000, 0], [7_000, 1], [12_000, 0]]);
    assert_eq!(totals["counters"]["guest|runnable vCPUs"], queued);
    assert_eq!(totals["counters"]["runnable vCPUs, all domains"], queued);
    assert_eq!(totals["attributes"]["overspin.seed"], "7");
    let scenario: Scenario =
        serde_json::from_str(totals["attributes"]["overspin.scenario_json"].as_str().unwrap())
            .unwrap();
    assert_eq!((scenario.name.as_str(), scenario.domains[0].vcpus), ("trace", 2));
}

/// Waits for `lock` of domain `domain` in the decoded trace: number and nanoseconds.
fn waits(totals: &Value, domain: &str, lock: &str) -> (u64, u64) {
    let slices = totals["slices"].as_object().unwrap();
    let of_lock = slices.iter().filter(|(name, _)| {
        name.starts_with(&format!("{domain}/")) && name.ends_with(&format!("|wait {lock}"))
    });
    of_lock.fold((0, 0), |(n, ns), (_, s)| {
        (n + s["count"].as_u64().unwrap(), ns + s["ns"].as_u64().unwrap())
    })
}

#[test]
fn a_simulated_run_adds_up_to_its_outcome() {
    let Some(python) = python() else { return };
    for lock in ["ticket", "xen-pv"] {
        let text = TWO_ON_ONE.replace("20ms", "50ms").replace("\"ticket\"", &format!("{lock:?}"));
        // A trace shows everything, so that everything must count.
        let scenario = Scenario { warmup: Some(Picos::ZERO), ..scenario(&text) };
        let mut sink = PerfettoSink::new(&scenario, 1, Vec::new()).unwrap();
        let simulator = Simulator::new();
        let outcome = overspin_host::run(&simulator, &scenario, 1, &mut sink, &()).unwrap();
        let totals = decode(&python, &sink.finish(outcome.elapsed).unwrap());
        let domain = &outcome.domains[0];
        for (i, vcpu) in domain.vcpus.iter().enumerate() {
            let traced = totals["running_ns"][format!("guest/v{i}")].as_u64().unwrap_or(0);
            // Both ends of each stretch are cut to a nanosecond.
            assert!(
                traced.abs_diff(vcpu.running / NS) <= vcpu.dispatches + 1,
                "{lock} v{i}: {traced} {vcpu:?}"
            );
        }
        for l in &domain.locks {
            let (count, ns) = waits(&totals, "guest", &l.name);
            assert_eq!(count, l.contended, "{lock} {}", l.name);
            assert!(ns.abs_diff(l.wait_total / NS) <= count, "{lock} {}: {ns} {l:?}", l.name);
        }
    }
}
