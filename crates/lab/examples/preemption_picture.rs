//! The picture of docs/preemption.md: what each vCPU of `examples/ticket-overcommit.toml` does while the
//! lock collapses, and whether the lock makes progress. Prints SVG.
//!
//! ```sh
//! cargo run --release -p overspin-lab --example preemption_picture > docs/pictures/preemption.svg
//! ```

use maud::{Markup, html};
use overspin_host::{Moment, Timed};
use overspin_report::svg::{SAMPLE, Svg, colour};
use overspin_runs::scenario_file;
use overspin_runs::way::Way;
use overspin_scenario::{MS, Picos};
use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;

/// The window that is drawn: the last of the vCPUs have come up, and the first slices end in it.
const FROM: Picos = Picos(60 * MS.0);
const LENGTH: Picos = Picos(200 * MS.0);

/// The lock of the workload; the others are of the guest's kernel.
const LOCK: u32 = 0;

const LEFT: f64 = 70.0;
const PLOT: f64 = 700.0;
const ROW: f64 = 34.0;
const BAR: f64 = 24.0;

/// What a row shows at a time, by its colour and its words.
type Look = (&'static str, &'static str);

const WORKS: Look = (colour::BLUE, "runs and works");
const SPINS: Look = (colour::ORANGE, "runs and spins");
const OFF: Look = ("#d9dee4", "no pCPU");
const HOLDS: Look = (colour::PURPLE, "no pCPU, holds the lock");
const TURN: Look = (colour::VERMILLION, "no pCPU, is next in line");
const LEGEND: [Look; 5] = [WORKS, SPINS, OFF, HOLDS, TURN];
const HELD: Look = (colour::BLUE, "held or handed over");
const HELD_OFF: Look = (colour::PURPLE, "held by a vCPU without a pCPU");
const KEPT: Look = (colour::VERMILLION, "free, and kept for a vCPU without a pCPU");

/// A guest with one ticket lock, followed through its moments. The host's own vCPUs come after the guest's.
struct Guest {
    runs: Vec<bool>,
    holder: Option<usize>,
    /// Waiters in the order in which they came, which is that of their tickets.
    queue: VecDeque<usize>,
}

impl Guest {
    fn follow(&mut self, moment: Moment) {
        let guest = |vcpu: u32| Some(vcpu as usize).filter(|vcpu| *vcpu < self.runs.len());
        match moment {
            Moment::Switch { prev, next, .. } => {
                let (prev, next) = (prev.and_then(guest), next.and_then(guest));
                prev.into_iter().for_each(|vcpu| self.runs[vcpu] = false);
                next.into_iter().for_each(|vcpu| self.runs[vcpu] = true);
            }
            Moment::LockWait { vcpu, lock: LOCK, .. } => self.queue.extend(guest(vcpu)),
            Moment::LockAcquired { vcpu, lock: LOCK, .. } if guest(vcpu).is_some() => {
                self.holder = guest(vcpu);
                self.queue.retain(|waiter| Some(*waiter) != self.holder);
            }
            Moment::LockFreed { vcpu, lock: LOCK, .. } if self.holder == guest(vcpu) => {
                self.holder = None;
            }
            _ => {}
        }
    }

    /// The vCPU for which the lock is kept, if that vCPU has no pCPU.
    fn stuck(&self) -> Option<usize> {
        let next = self.queue.front().filter(|next| !self.runs[**next]);
        next.copied().filter(|_| self.holder.is_none())
    }

    /// What each vCPU does, and then the lock.
    fn looks(&self) -> Vec<Look> {
        let stuck = self.stuck();
        let look = |vcpu: usize| match (self.runs[vcpu], self.queue.contains(&vcpu)) {
            (true, true) => SPINS,
            (true, false) => WORKS,
            (false, _) if self.holder == Some(vcpu) => HOLDS,
            (false, _) if stuck == Some(vcpu) => TURN,
            (false, _) => OFF,
        };
        let lock = match self.holder {
            Some(holder) if !self.runs[holder] => HELD_OFF,
            _ if stuck.is_some() => KEPT,
            _ => HELD,
        };
        (0..self.runs.len()).map(look).chain([lock]).collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ticket-overcommit.toml");
    let scenario = match scenario_file::load(&file, &[])? {
        scenario_file::Loaded::One(scenario) => scenario,
        _ => return Err("the example is not one scenario".into()),
    };
    let vcpus = scenario.domains[0].vcpus as usize;
    let mut moments: Vec<Timed> = Vec::new();
    Way::default().run(&scenario, scenario.seed, &mut moments, &|_| {})?;

    let mut guest = Guest { runs: vec![false; vcpus], holder: None, queue: VecDeque::new() };
    let mut rows: Vec<Vec<(f64, Look)>> = vec![Vec::new(); vcpus + 1];
    for Timed { at, moment } in moments.into_iter().take_while(|m| m.at < FROM + LENGTH) {
        guest.follow(moment);
        let x = PLOT * at.saturating_sub(FROM).ratio(LENGTH);
        for (row, look) in rows.iter_mut().zip(guest.looks()) {
            // Of several looks at one place only the last can be seen.
            while row.last().is_some_and(|(from, _)| *from >= x) {
                row.pop();
            }
            if row.last().is_none_or(|(_, last)| *last != look) {
                row.push((x, look));
            }
        }
    }
    print!("{}", picture(&rows).0);
    Ok(())
}

fn picture(rows: &[Vec<(f64, Look)>]) -> Markup {
    const TITLE: &str = "4 vCPUs on 2 pCPUs, one ticket lock";
    let width = LEFT + PLOT + 20.0;
    let mut svg = Svg::default();
    let y = svg.lines("title", TITLE, 0.0, width);
    let words = LEGEND.map(|(_, words)| words);
    let top = svg.legend(words, y + 12.0, width, |svg, i, at| {
        svg.rect(LEGEND[i].0, at, (SAMPLE, 14.0));
    });
    let bottom = top + 20.0 + ROW * rows.len() as f64;
    for (i, row) in rows.iter().enumerate() {
        let is_lock = i + 1 == rows.len();
        let y = top + 10.0 + ROW * i as f64 + if is_lock { 10.0 } else { 0.0 };
        let name = if is_lock { "lock".to_owned() } else { format!("v{i}") };
        svg.text("label", (LEFT - 10.0, y + 17.0), &name);
        let ends = row.iter().skip(1).map(|(from, _)| *from).chain([PLOT]);
        for ((from, (colour, words)), to) in row.iter().zip(ends) {
            let [x, wide] = [LEFT + from, to - from].map(|x| (x * 100.0).round() / 100.0);
            svg.add(&html! {
                rect x=(x) y=(y) width=(wide) height=(BAR) fill=(colour) { title { (words) } }
            });
        }
    }
    for tick in 0..=10_u8 {
        let at = FROM + LENGTH * u64::from(tick) / 10;
        svg.text(
            "tick",
            (LEFT + PLOT * f64::from(tick) / 10.0, bottom + 14.0),
            &(at / MS).to_string(),
        );
    }
    svg.text("", (LEFT, bottom + 32.0), "milliseconds since the start");
    svg.picture(TITLE, (width, bottom + 44.0))
}
