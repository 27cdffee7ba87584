//! What there is, as data: one object for each part, with the keys that `overspin list --json` writes.

use overspin_experiment::Experiment;
use overspin_runs::catalog::{LockInfo, ParamInfo, SchedulerInfo, names};
use overspin_scenario_file::machine::{Basis, Machine};
use serde_json::{Value, json};

/// Every lock.
#[must_use]
pub fn locks() -> Value {
    let one = |(l, aliases): (&LockInfo, &[&str])| {
        json!({
            "name": l.name, "aliases": aliases, "brief": l.brief, "source": l.source, "fair": l.fair,
            "local_spin": l.local_spin, "lhp": l.lhp.name(), "lwp": l.lwp.name(),
            "lhp_safe": l.lhp.is_bounded(), "lwp_safe": l.lwp.lets_pass(),
            "abortable": l.abortable, "blocks": l.blocks, "max_cpus": l.max_cpus, "size_bytes": l.size,
        })
    };
    names().locks().map(one).collect()
}

/// Every scheduler, with its parameters.
#[must_use]
pub fn schedulers() -> Value {
    let params = |infos: &[ParamInfo]| -> Value {
        let one = |p: &ParamInfo| json!({ "key": p.key, "legal": p.kind.to_string(), "default": p.default.to_string(), "doc": p.doc });
        infos.iter().map(one).collect()
    };
    let one = |s: &SchedulerInfo| {
        json!({
            "name": s.name, "aliases": s.aliases, "brief": s.brief, "source": s.source,
            "work_conserving": s.work_conserving, "caps": s.caps,
            "params": params(s.params), "domain_params": params(s.domain_params),
        })
    };
    names().schedulers().iter().map(one).collect()
}

/// Every workload.
#[must_use]
pub fn workloads() -> Value {
    names()
        .workloads()
        .all()
        .iter()
        .map(|w| json!({ "name": w.name, "brief": w.brief, "source": w.source }))
        .collect()
}

/// The given machines, with the source of each of their costs.
#[must_use]
pub fn machines(machines: &[Machine]) -> Value {
    let value = |v: &overspin_scenario_file::machine::Value| match v.basis {
        Basis::Source(source) => json!({
            "key": v.key, "value": v.amount, "unit": v.unit.name(), "source": source,
        }),
        Basis::Assumed { low, high, from } => json!({
            "key": v.key, "value": v.amount, "unit": v.unit.name(), "assumed_from": from,
            "low": low, "high": high,
        }),
        Basis::Chosen(why) => json!({
            "key": v.key, "value": v.amount, "unit": v.unit.name(), "chosen": why,
        }),
    };
    let one = |m: &Machine| {
        json!({
            "name": m.name, "brief": m.brief, "year": m.year, "mhz": m.mhz,
            "smt_permille": m.smt_permille(), "costs_ps": m.costs(),
            "values": m.values.iter().map(value).collect::<Value>(),
        })
    };
    machines.iter().map(one).collect()
}

/// The given experiments.
#[must_use]
pub fn experiments(all: &[Experiment]) -> Value {
    let one = |e: &Experiment| {
        let head = &e.head;
        json!({
            "name": head.id, "title": head.title, "source": head.source,
            "figures": head.figures.len(), "claims": head.claims.len(),
        })
    };
    all.iter().map(one).collect()
}
