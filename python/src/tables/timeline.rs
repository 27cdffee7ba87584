//! What happened in a run, moment by moment: slices and marks of a timeline.

use super::word;
use crate::table::{Columns, Table};
use overspin_host::WindowEnd;
use overspin_scenario::Why;
use overspin_watch::timeline::{Doing, Event, Mark, Slice, Timeline};
use pyo3::prelude::*;

fn doing(doing: Doing) -> &'static str {
    match doing {
        Doing::On(_) => "running",
        Doing::Off(_) => "runnable",
        Doing::Asleep => "blocked",
        Doing::Waits(_) => "waits",
        Doing::StillWaits(_) => "still-waits",
        Doing::Holds(_) => "holds",
    }
}

fn pcpu(doing: Doing) -> Option<u32> {
    if let Doing::On(pcpu) = doing { Some(pcpu) } else { None }
}

fn lock(doing: Doing) -> Option<usize> {
    match doing {
        Doing::Waits(lock) | Doing::StillWaits(lock) | Doing::Holds(lock) => Some(lock as usize),
        Doing::On(_) | Doing::Off(_) | Doing::Asleep => None,
    }
}

fn why(doing: Doing) -> Option<Why> {
    if let Doing::Off(why) = doing { why } else { None }
}

/// Runstates, waits and holds of each vCPU and task in turn, each in order of their beginnings.
pub(crate) fn slices(timeline: &Timeline) -> PyResult<Table> {
    let all = || {
        let of = |lane| -> &[Slice] { lane };
        timeline.lanes().flat_map(move |v| {
            let slices = of(&v.states).iter().chain(of(&v.locks));
            slices.map(|slice| (v.name.as_str(), slice))
        })
    };
    let name = |lock: usize| timeline.locks.get(lock).map(String::as_str);
    Columns::default()
        .texts("vcpu", all().map(|(vcpu, _)| vcpu))
        .texts("doing", all().map(|(_, s)| doing(s.doing)))
        .times("start", all().map(|(_, s)| s.start))
        .times("end", all().map(|(_, s)| s.end))
        .indices("pcpu", all().map(|(_, s)| pcpu(s.doing)))
        .maybe_texts("lock", all().map(|(_, s)| lock(s.doing).and_then(name)))
        .maybe_texts("why", all().map(|(_, s)| why(s.doing).as_ref().and_then(word)))
        .table()
}

/// Kicks, notices, pause-loop exits and changes, in order of time.
pub(crate) fn marks(timeline: &Timeline) -> PyResult<Table> {
    let vcpu = |number: u32| timeline.vcpus.get(number as usize).map(|lane| lane.name.as_str());
    let event = |mark: &Mark| match mark.event {
        Event::Kick(_) => "kick",
        Event::Notice => "notice",
        Event::WindowEnds(WindowEnd::Used) => "window-used",
        Event::WindowEnds(WindowEnd::Expired) => "window-expired",
        Event::WindowEnds(WindowEnd::Left) => "window-left",
        Event::Exit => "pause-loop-exit",
        Event::DirectedYield(_) => "directed-yield",
        Event::Change(_) => "change",
    };
    let of = |mark: &Mark| match mark.event {
        Event::Change(_) => None,
        _ => vcpu(mark.vcpu),
    };
    let to = |mark: &Mark| match mark.event {
        Event::Kick(to) | Event::DirectedYield(to) => vcpu(to),
        _ => None,
    };
    let change = |mark: &Mark| match mark.event {
        Event::Change(number) => timeline.changes.get(number as usize),
        _ => None,
    };
    let all = &timeline.marks;
    Columns::default()
        .times("at", all.iter().map(|mark| mark.at))
        .texts("event", all.iter().map(event))
        .maybe_texts("vcpu", all.iter().map(of))
        .maybe_texts("to", all.iter().map(to))
        .maybe_texts("change", all.iter().map(change))
        .table()
}
