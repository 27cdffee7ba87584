//! Keys that a scheduler brings: its own parameters, and those of domains under it. The registry of
//! schedulers defines them, so a new scheduler needs no code here.

use super::keys::{Absent, Key, Kind, Section, Whose, key};
use super::reader::Reader;
use overspin_host::picos;
use overspin_located::LocatedError;
use overspin_scenario::{LONGEST, Picos, Setting, Settings};
use overspin_sched::{Nanos, ParamInfo, ParamKind, SchedError, SchedulerInfo, Schedulers};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The sections of one scheduler.
#[derive(Clone, Copy)]
struct Sections {
    own: &'static Section,
    domain: &'static Section,
}

/// Sections that have been made, by the scheduler's name and the place of its list of parameters. They are leaked, because
/// sections are static.
static MADE: Mutex<BTreeMap<(&'static str, usize), Sections>> = Mutex::new(BTreeMap::new());

fn sections_of(info: &SchedulerInfo) -> Sections {
    let leak = |heading: String, doc: String, infos: &[ParamInfo]| -> &'static Section {
        Box::leak(Box::new(Section {
            heading: heading.leak(),
            doc: doc.leak(),
            keys: infos.iter().map(key_of).collect::<Vec<_>>().leak(),
        }))
    };
    let with = |table| format!("{table} with scheduler = \"{}\"", info.name);
    let make = || Sections {
        own: leak(with("[host.scheduler_params]"), info.brief.into(), info.params),
        domain: leak(
            with("[domain.scheduler_params]"),
            format!("Parameters of a domain under `{}`, besides weight and cap.", info.name),
            info.domain_params,
        ),
    };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    *made.entry((info.name, info.params.as_ptr().addr())).or_insert_with(make)
}

/// Converts a scheduler's time to one that is legal in scenarios.
fn legal(time: Nanos) -> Picos {
    picos(time).min(LONGEST)
}

fn key_of(info: &ParamInfo) -> Key {
    let kind = match info.kind {
        ParamKind::Time { min, max } => Kind::Time { min: legal(min), max: legal(max) },
        // No scheduler has a parameter below zero.
        ParamKind::Number { min, max } => {
            Kind::Integer { min: min.max(0).unsigned_abs(), max: max.max(0).unsigned_abs() }
        }
        ParamKind::Flag => Kind::Boolean,
        ParamKind::Word(words) => Kind::Choice(words),
    };
    key(info.key, kind, Absent::Means(info.default.to_string().leak()), info.doc)
}

/// The sections that schedulers bring, without empty ones, each with the name of its scheduler.
pub(super) fn sections(
    schedulers: &Schedulers,
    whose: Whose,
) -> impl Iterator<Item = (&'static str, &'static Section)> {
    let of = move |info: &SchedulerInfo| {
        let sections = sections_of(info);
        let section = match whose {
            Whose::Scheduler => sections.own,
            Whose::Domain => sections.domain,
        };
        (info.name, section)
    };
    schedulers.iter().map(of).filter(|(_, s)| !s.keys.is_empty())
}

/// Reads the parameters of the host's scheduler.
pub(super) fn of_scheduler(host: &Reader<'_>, scheduler: &str) -> Result<Settings, LocatedError> {
    let settings = read(host, scheduler, |s| s.own)?;
    // The scheduler itself checks what the ranges of single keys cannot say.
    let made = host
        .names()
        .schedulers()
        .make(scheduler, &overspin_host::admin::scheduler_params(&settings));
    match made {
        Ok(_) => Ok(settings),
        Err(error) => Err(located(host, &error)),
    }
}

/// Reads the scheduler's parameters for a domain.
pub(super) fn of_domain(domain: &Reader<'_>, scheduler: &str) -> Result<Settings, LocatedError> {
    read(domain, scheduler, |s| s.domain)
}

fn read(
    reader: &Reader<'_>,
    scheduler: &str,
    which: fn(Sections) -> &'static Section,
) -> Result<Settings, LocatedError> {
    let mut settings = Settings::new();
    let Ok(info) = reader.names().schedulers().find(scheduler) else { return Ok(settings) };
    let section = which(sections_of(info));
    let Some(table) = reader.table_of("scheduler_params", section)? else { return Ok(settings) };
    for key in section.keys.iter().filter(|k| table.node(k.name).is_some()) {
        let name = key.name;
        let value = match key.kind {
            Kind::Time { .. } => table.get(name)?.map(Setting::Time),
            Kind::Integer { .. } => {
                let value = table.get::<u64>(name)?;
                value.map(|v| Setting::Number(i64::try_from(v).unwrap_or(i64::MAX)))
            }
            Kind::Boolean => table.get(name)?.map(Setting::Flag),
            _ => table.get(name)?.map(Setting::Word),
        };
        settings.extend(value.map(|v| (key.name.to_owned(), v)));
    }
    Ok(settings)
}

/// An error of the scheduler, at the key that it names.
fn located(host: &Reader<'_>, error: &SchedError) -> LocatedError {
    match error {
        SchedError::IllegalParam { key, value, legal } => host.error_in(
            "scheduler_params",
            key,
            format!("`{key}` = {value} is not legal"),
            format!("legal values: {legal}"),
        ),
        _ => host.error("scheduler", error.to_string(), "see `overspin list schedulers`"),
    }
}
