//! The longest waits of a run, each with the chain of its causes.

use super::word;
use crate::table::{Columns, Table, fault};
use overspin_scenario::{Decision, Link, LongWait, Outcome, Scenario, VcpuId};
use pyo3::prelude::*;

/// The longest waits, the longest first.
pub(crate) fn waits(scenario: &Scenario, outcome: &Outcome) -> PyResult<Table> {
    let all = &outcome.worst_waits;
    let domain = |domain: u32| match scenario.domains.get(domain as usize) {
        Some(domain) => domain.name.as_str(),
        None => "noise",
    };
    let vcpu = |of: VcpuId| format!("{}/v{}", domain(of.domain), of.vcpu);
    let own = |wait: &LongWait, number: u32| vcpu(VcpuId { domain: wait.domain, vcpu: number });
    let lock = |wait: &LongWait| {
        let domain = outcome.domains.get(wait.domain as usize)?;
        Some(domain.locks.get(wait.lock as usize)?.name.as_str())
    };
    let links: Vec<(&LongWait, &Link)> =
        all.iter().flat_map(|wait| wait.chain.iter().map(move |link| (wait, link))).collect();
    let decision = |of: fn(&Decision) -> Option<u32>| {
        links.iter().map(move |(_, link)| link.decision.as_ref().and_then(of))
    };
    let chain = Columns::default()
        .times("since", links.iter().map(|(_, link)| link.since))
        .times("time", links.iter().map(|(_, link)| link.time))
        .maybe_texts("cause", links.iter().map(|(_, link)| link.cause.as_ref().and_then(word)))
        .maybe_texts("vcpu", links.iter().map(|(wait, link)| link.vcpu.map(|v| own(wait, v))))
        .counts("acquisitions", "", links.iter().map(|(_, link)| Some(link.acquisitions)))
        .times("unlisted", links.iter().map(|(_, link)| link.unlisted))
        .maybe_times("decided", links.iter().map(|(_, link)| link.decision.map(|d| d.at)))
        .indices("pcpu", decision(|d| Some(d.pcpu)))
        .maybe_texts("by", links.iter().map(|(_, link)| Some(vcpu(link.decision?.by?))))
        .maybe_texts("why", links.iter().map(|(_, link)| word(&link.decision?.why)));
    let lengths: Vec<usize> = all.iter().map(|wait| wait.chain.len()).collect();
    Columns::default()
        .texts("vcpu", all.iter().map(|wait| own(wait, wait.vcpu)))
        .maybe_texts("lock", all.iter().map(lock))
        .times("since", all.iter().map(|wait| wait.since))
        .times("time", all.iter().map(|wait| wait.time))
        .flags("finished", all.iter().map(|wait| Some(wait.finished)))
        .maybe_texts("holder", all.iter().map(|wait| wait.holder.map(|h| own(wait, h))))
        .causes(all.iter().map(|wait| &wait.causes))
        .nested("chain", &lengths, chain)
        .map_err(|e| fault(&e))?
        .table()
}
