//! `overspin list`.

use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use clap::{Args, ValueEnum};
use overspin_experiment as experiment;
use overspin_page::listing;
use overspin_report::{Block, Grid};
use overspin_runs::catalog;
use overspin_runs::scenario_file::machine::{self, MACHINES, Machine};
use serde_json::Value;
use std::path::PathBuf;

/// Things to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Listing {
    /// Lock algorithms
    Locks,
    /// Schedulers and their profiles
    Schedulers,
    /// Workloads
    Workloads,
    /// Published experiments
    Experiments,
    /// Machines and their costs
    Machines,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list; without it, everything
    what: Option<Listing>,
    /// Only the machine of this name, with the source of each cost (after `machines`)
    name: Option<String>,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const ALL: [Listing; 5] = [
    Listing::Locks,
    Listing::Schedulers,
    Listing::Workloads,
    Listing::Experiments,
    Listing::Machines,
];

pub(crate) fn list(args: &ListArgs, global: &Global) -> Result<Verdict, Failure> {
    let machines = machines(args)?;
    let outputs = Outputs::new(global, &[args.json.as_ref()])?;
    let json = outputs.open(args.json.as_ref())?;
    let wanted: Vec<Listing> = args.what.map_or_else(|| ALL.to_vec(), |w| vec![w]);
    let mut blocks = Vec::new();
    let mut record = serde_json::Map::new();
    for what in wanted {
        let one = |grid| vec![Block::Grid(grid)];
        let (name, tables, values) = match what {
            Listing::Locks => ("locks", one(locks_table()), listing::locks()),
            Listing::Schedulers => ("schedulers", one(schedulers_table()), listing::schedulers()),
            Listing::Workloads => ("workloads", one(workloads_table()), listing::workloads()),
            Listing::Experiments => {
                let (grid, values) = experiments()?;
                ("experiments", one(grid), values)
            }
            Listing::Machines => {
                ("machines", machines_tables(args, machines), listing::machines(machines))
            }
        };
        record.insert(name.into(), values);
        blocks.push(Block::Heading(name.into()));
        blocks.extend(tables);
        if args.what == Some(Listing::Schedulers) {
            blocks
                .push(Block::Heading("parameters (meanings: docs/scenario.md, or --json)".into()));
            blocks.push(Block::Grid(parameters_table()));
        }
    }
    if let Some(json) = json {
        show::json(json, "overspin-list/1", record.into())?;
    }
    outputs.report(&blocks)?;
    Ok(Verdict::Fine)
}

/// The machines to list.
fn machines(args: &ListArgs) -> Result<&'static [Machine], Failure> {
    let Some(name) = &args.name else { return Ok(MACHINES) };
    if args.what != Some(Listing::Machines) {
        return Err(Failure::usage(
            format!("`{name}` is one argument too many: only machines are listed by name"),
            "leave it out, or see `overspin list machines`",
        ));
    }
    let names: Vec<&str> = MACHINES.iter().map(|m| m.name).collect();
    match MACHINES.iter().position(|m| m.name == name) {
        Some(i) => Ok(&MACHINES[i..=i]),
        None => Err(Failure::usage(
            format!("there is no machine `{name}`"),
            format!("machines are: {}", names.join(", ")),
        )),
    }
}

fn machines_tables(args: &ListArgs, machines: &[Machine]) -> Vec<Block> {
    match (machines, &args.name) {
        ([one], Some(_)) => machine::tables(one),
        _ => machine::comparison(),
    }
}

fn mark(yes: bool) -> String {
    if yes { "yes" } else { "-" }.into()
}

/// The description, with the aliases.
fn brief(brief: &str, aliases: &[&str]) -> String {
    if aliases.is_empty() { brief.into() } else { format!("{brief} (also {})", aliases.join(", ")) }
}

fn locks_table() -> Grid {
    let header = [
        "name",
        "what it is",
        "fair",
        "local spin",
        "holder off CPU",
        "waiter off CPU",
        "abortable",
        "blocks",
        "CPUs",
        "bytes",
    ];
    let mut grid = Grid::new(8, &header);
    for (l, aliases) in catalog::names().locks() {
        let most = if l.max_cpus == u32::MAX { "any".into() } else { l.max_cpus.to_string() };
        grid.row([
            l.name.into(),
            brief(l.brief, aliases),
            mark(l.fair),
            mark(l.local_spin),
            l.lhp.name().into(),
            l.lwp.name().into(),
            mark(l.abortable),
            mark(l.blocks),
            most,
            l.size.to_string(),
        ]);
    }
    grid
}

fn schedulers_table() -> Grid {
    let mut grid = Grid::new(4, &["name", "what it is", "work-conserving", "caps"]);
    for s in catalog::names().schedulers().iter() {
        grid.row([s.name.into(), brief(s.brief, s.aliases), mark(s.work_conserving), mark(s.caps)]);
    }
    grid
}

/// The parameters that `[host.scheduler_params]` and `[domain.scheduler_params]` accept.
fn parameters_table() -> Grid {
    let mut grid = Grid::new(5, &["scheduler", "table", "parameter", "default", "legal values"]);
    for s in catalog::names().schedulers().iter() {
        for (table, infos) in [("host", s.params), ("domain", s.domain_params)] {
            for p in infos {
                grid.row([
                    s.name.into(),
                    table.into(),
                    p.key.into(),
                    p.default.to_string(),
                    p.kind.to_string(),
                ]);
            }
        }
    }
    grid
}

fn workloads_table() -> Grid {
    let mut grid = Grid::new(2, &["name", "what it does"]);
    for w in catalog::names().workloads().all() {
        grid.row([w.name.into(), w.brief.into()]);
    }
    grid
}

fn experiments() -> Result<(Grid, Value), Failure> {
    let mut grid = Grid::new(2, &["name", "title", "figures", "claims"]);
    let all = experiment::all()?;
    for e in &all {
        let head = &e.head;
        let (figures, claims) = (head.figures.len().to_string(), head.claims.len().to_string());
        grid.row([head.id.clone(), head.title.clone(), figures, claims]);
    }
    Ok((grid, listing::experiments(&all)))
}
