//! What every lock, vCPU, pCPU and task of a run did.

use crate::table::{Columns, Table};
use overspin_scenario::WindowOutcome;
use overspin_scenario::{DomainOutcome, LockOutcome, Outcome, Picos, TaskOutcome, VcpuOutcome};
use pyo3::prelude::*;

/// The parts of all domains, each with its domain and its number there.
fn parts<'a, T>(
    outcome: &'a Outcome,
    of: impl Fn(&'a DomainOutcome) -> &'a [T],
) -> Vec<(&'a str, u32, &'a T)> {
    let domain = |d: &'a DomainOutcome| (0..).zip(of(d)).map(move |(i, part)| (&*d.name, i, part));
    outcome.domains.iter().flat_map(domain).collect()
}

/// Locks, by domain.
pub(crate) fn locks(outcome: &Outcome) -> PyResult<Table> {
    let all = parts(outcome, |d| &d.locks);
    let count = |of: fn(&LockOutcome) -> u64| all.iter().map(move |(_, _, l)| Some(of(l)));
    let time = |of: fn(&LockOutcome) -> Picos| all.iter().map(move |(_, _, l)| of(l));
    Columns::default()
        .texts("domain", all.iter().map(|(domain, ..)| domain))
        .texts("name", all.iter().map(|(_, _, l)| &l.name))
        .counts("acquisitions", "", count(|l| l.acquisitions))
        .counts("contended", "", count(|l| l.contended))
        .times("wait_total", time(|l| l.wait_total))
        .times("wait_max", time(|l| l.wait_max))
        .times("wait_p50", time(|l| l.wait_p50))
        .times("wait_p99", time(|l| l.wait_p99))
        .times("wait_p999", time(|l| l.wait_p999))
        .times("hold_total", time(|l| l.hold_total))
        .times("hold_max", time(|l| l.hold_max))
        .counts("slow_paths", "", count(|l| l.slow_paths))
        .counts("kicks", "", count(|l| l.kicks))
        .counts("holder_preempted", "", count(|l| l.holder_preempted))
        .causes(all.iter().map(|(_, _, l)| &l.wait_causes))
        .table()
}

/// vCPUs, by domain.
pub(crate) fn vcpus(outcome: &Outcome) -> PyResult<Table> {
    let all = parts(outcome, |d| &d.vcpus);
    let count = |of: fn(&VcpuOutcome) -> u64| all.iter().map(move |(_, _, v)| Some(of(v)));
    let time = |of: fn(&VcpuOutcome) -> Picos| all.iter().map(move |(_, _, v)| of(v));
    let windows =
        |of: fn(&WindowOutcome) -> u64| all.iter().map(move |(_, _, v)| v.windows.as_ref().map(of));
    Columns::default()
        .texts("domain", all.iter().map(|(domain, ..)| domain))
        .indices("vcpu", all.iter().map(|(_, i, _)| Some(*i)))
        .times("running", time(|v| v.running))
        .times("runnable", time(|v| v.runnable))
        .times("blocked", time(|v| v.blocked))
        .times("offline", time(|v| v.offline))
        .times("spinning", time(|v| v.spinning))
        .times("waiting", time(|v| v.waiting))
        .times("polling", time(|v| v.polling))
        .times("exiting", time(|v| v.exiting))
        .times("interrupted", time(|v| v.interrupted))
        .counts("dispatches", "", count(|v| v.dispatches))
        .counts("migrations", "", count(|v| v.migrations))
        .counts("ticks", "", count(|v| v.ticks))
        .counts("spin_exits", "", count(|v| v.spin_exits))
        .counts("directed_yields", "", count(|v| v.directed_yields))
        .causes(all.iter().map(|(_, _, v)| &v.wait_causes))
        .counts("windows_offered", "", windows(|w| w.offered))
        .counts("windows_used", "", windows(|w| w.used))
        .counts("windows_expired", "", windows(|w| w.expired))
        .counts("windows_left", "", windows(|w| w.left))
        .counts("windows_refused", "", windows(|w| w.refused))
        .maybe_times("windows_time", all.iter().map(|(_, _, v)| v.windows.map(|w| w.time)))
        .table()
}

/// pCPUs.
pub(crate) fn pcpus(outcome: &Outcome) -> PyResult<Table> {
    let all = &outcome.pcpus;
    Columns::default()
        .indices("pcpu", (0..).zip(all).map(|(i, _)| Some(i)))
        .times("busy", all.iter().map(|p| p.busy))
        .times("switching", all.iter().map(|p| p.switching))
        .times("idle", all.iter().map(|p| p.idle))
        .counts("switches", "", all.iter().map(|p| Some(p.switches)))
        .table()
}

/// Tasks, by domain.
pub(crate) fn tasks(outcome: &Outcome) -> PyResult<Table> {
    let all = parts(outcome, |d| &d.tasks);
    let count = |of: fn(&TaskOutcome) -> u64| all.iter().map(move |(_, _, t)| Some(of(t)));
    let time = |of: fn(&TaskOutcome) -> Picos| all.iter().map(move |(_, _, t)| of(t));
    let latency = |of: fn(&overspin_scenario::LatencyOutcome) -> Picos| {
        all.iter().map(move |(_, _, t)| t.latency.as_ref().map(of))
    };
    Columns::default()
        .texts("domain", all.iter().map(|(domain, ..)| domain))
        .texts("name", all.iter().map(|(_, _, t)| &t.name))
        .counts("items", "", count(|t| t.items))
        .times("cpu", time(|t| t.cpu))
        .times("user_ticks", time(|t| t.user_ticks))
        .times("system_ticks", time(|t| t.system_ticks))
        .counts("sleeps", "", count(|t| t.sleeps))
        .counts("preemptions", "", count(|t| t.preemptions))
        .maybe_times("ended", all.iter().map(|(_, _, t)| t.ended))
        .counts("answers", "", all.iter().map(|(_, _, t)| t.latency.map(|l| l.answers)))
        .maybe_times("latency_p50", latency(|l| l.p50))
        .maybe_times("latency_p99", latency(|l| l.p99))
        .maybe_times("latency_p999", latency(|l| l.p999))
        .maybe_times("latency_max", latency(|l| l.max))
        .table()
}
