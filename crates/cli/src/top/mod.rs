//! `overspin top`: a run as a live view.
//!
//! The run is on a thread of its own and hands over frames; it waits when nobody takes them. So the view
//! decides the pace, and a paused view costs nothing.

mod real;
mod view;

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::{show, world};
use clap::Args;
use overspin_report::{Block, text_on};
use overspin_runs::record;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::Loaded;
use overspin_scenario::{Outcome, Picos, Scenario, Stopped};
use overspin_watch::explain;
use overspin_watch::top::{Frame, Meter, Room, report};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct TopArgs {
    /// Scenario file (`-`: standard input), or the record of a run, which is run again
    scenario: PathBuf,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Replace a value of the scenario, for example domain.0.lock=xen-pv
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run it in this world instead of the simulator, and show what `overspin watch` sees meanwhile
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
    /// Print one frame of the whole run as plain text
    #[arg(long)]
    once: bool,
    /// Print N frames of equal simulated time as plain text; without a terminal, 5
    #[arg(long, value_name = "N", conflicts_with_all = ["once", "world"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,
}

/// Frames of a run that is not shown on a terminal.
const PLAIN_FRAMES: u32 = 5;
/// Rows of the tables where nothing limits them.
const ROOM: Room = Room { vcpus: 64, locks: 16 };

pub(crate) fn top(args: &TopArgs, global: &Global) -> Result<Verdict, Failure> {
    let again = record::load(&args.scenario, &args.set, &[])?;
    let name = args.scenario.display().to_string();
    if let Some(world) = &again.world
        && args.world.is_none()
    {
        return Err(Failure::usage(
            format!(
                "{name}: top simulates a run, but this one was measured in the world `{world}`"
            ),
            format!(
                "--world {world} measures it again; `overspin explain {name}` shows what its record holds"
            ),
        ));
    }
    let (seed, scenario) = match again.loaded {
        Loaded::One(scenario) => (args.seed.unwrap_or(scenario.seed), scenario),
        Loaded::Seeds(scenario, seeds) => {
            (args.seed.or(seeds.first().copied()).unwrap_or(scenario.seed), scenario)
        }
        Loaded::Sweep(_) => worst(args, global)?,
    };
    let runner = world::runner(args.world.as_deref(), None)?;
    let run = Run { scenario: &scenario, seed, runner, name: &name };
    let live = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !run.runner.world.is_deterministic() {
        // It warns of what the world ignores; no record is made.
        let _ = world::in_world(&run.runner, [&*scenario], global);
        return real::show(&run, live && !args.once && !global.quiet, args.once, global);
    }
    match (args.once, args.batch) {
        (true, _) => run.plain(1),
        (false, Some(frames)) => run.plain(frames),
        (false, None) if !live || global.quiet => run.plain(PLAIN_FRAMES),
        (false, None) => view::view(&run),
    }
}

/// The worst run of a sweep that has been made, which the command says.
fn worst(args: &TopArgs, global: &Global) -> Result<(u64, Box<Scenario>), Failure> {
    let name = args.scenario.display();
    let record = record::read_path(&args.scenario).ok();
    let Some(worst) = record.and_then(|record| explain::worst(&record).ok().flatten()) else {
        return Err(Failure::usage(
            format!("{name}: top shows one run, but this is a sweep"),
            "use --set for the run that you want to see instead of [[vary]] tables, or give a result of the \
             sweep, whose worst run is shown",
        ));
    };
    if !global.quiet {
        eprintln!("the worst run of {name}: {}", worst.name);
    }
    Ok((worst.seed, Box::new(worst.scenario)))
}

/// The run to show.
struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    runner: Runner,
    name: &'a str,
}

/// What the view and the run share.
#[derive(Clone)]
struct Shared {
    /// Length of the next interval, in simulated picoseconds.
    interval: Arc<AtomicU64>,
    /// Set when the view no longer wants frames.
    over: Arc<AtomicBool>,
}

impl Shared {
    fn new(interval: Picos) -> Self {
        Self {
            interval: Arc::new(AtomicU64::new(interval.0)),
            over: Arc::new(AtomicBool::new(false)),
        }
    }
}

impl Run<'_> {
    /// Runs, and sends each frame. The values that are shared stand alone: no other memory depends on them.
    fn make(&self, shared: &Shared, frames: &SyncSender<Frame>) -> Result<Outcome, Failure> {
        let interval = Arc::clone(&shared.interval);
        let length = move || Picos(interval.load(Ordering::Relaxed));
        let mut meter = Meter::new(self.scenario, length, |frame| {
            if frames.send(frame).is_err() {
                shared.over.store(true, Ordering::Relaxed);
            }
        });
        let cancel = |_| match shared.over.load(Ordering::Relaxed) {
            true => Some(Stopped::Interrupted),
            false => self.runner.until.over(),
        };
        let result =
            overspin_host::run(self.runner.world, self.scenario, self.seed, &mut meter, &cancel);
        let outcome = result.map_err(|e| Failure::refused(self.name, &e))?;
        meter.finish(outcome.elapsed);
        Ok(outcome)
    }

    /// Prints this many frames, one below the other.
    fn plain(&self, frames: u32) -> Result<Verdict, Failure> {
        // Rounded up, so that no rest becomes a frame of its own.
        let interval = Picos(self.scenario.limit.0.div_ceil(u64::from(frames).max(1)));
        let shared = Shared::new(interval);
        let (send, receive) = sync_channel(1);
        let (screen, mut shown) = (crate::screen::of_stdout(), Ok(()));
        let result = std::thread::scope(|scope| {
            let shared = shared.clone();
            let run = scope.spawn(move || self.make(&shared, &send));
            for frame in receive {
                let mut blocks = vec![Block::Heading(self.title(&frame))];
                blocks.extend(report(&frame, ROOM));
                shown = show::bytes((text_on(&blocks, &screen) + "\n").as_bytes());
                if shown.is_err() {
                    break;
                }
            }
            run.join()
        });
        shown?;
        let outcome = result.map_err(|_| fault())??;
        Ok(match outcome.ending {
            overspin_scenario::Ending::Stopped { by } => world::stopped(by),
            _ => Verdict::Fine,
        })
    }

    fn title(&self, frame: &Frame) -> String {
        format!(
            "{}, seed {}: {:.3} to {:.3} of {:.3} ms",
            self.scenario.name,
            self.seed,
            frame.from.millis(),
            frame.until.millis(),
            self.scenario.limit.millis()
        )
    }
}

/// The run panicked.
fn fault() -> Failure {
    Failure::environment("the run ended unexpectedly", "this is a fault in overspin")
}
