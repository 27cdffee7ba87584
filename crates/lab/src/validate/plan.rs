//! What is run: cases, in worlds, under schedulers, again and again in a shuffled order.

use super::cases::{Case, Family, cases};
use super::{Settings, ValidateError};
use crate::kernels_scheduler;
use overspin_runs::catalog::{AnyWorld, catalog};
use overspin_runs::scenario_file::{Loaded, load_text};
use overspin_scenario::Scenario;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::path::Path;

/// A case in a world, under a scheduler.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The case.
    pub case: Case,
    /// The world in which it is measured.
    pub world: AnyWorld,
    /// The scheduler: the simulator's, and that of the world if it has several.
    pub scheduler: String,
    /// The scenario of both sides.
    pub scenario: Scenario,
}

/// Everything that is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All subjects.
    pub subjects: Vec<Subject>,
    /// Measured runs of each.
    pub repeats: u32,
    /// Simulated runs of each.
    pub seeds: u32,
}

/// What a measured run takes beyond the time that it measures, in seconds: to make and end it.
const AROUND: f64 = 0.06;

impl Plan {
    /// The plan for these worlds.
    ///
    /// # Errors
    /// If no case has a name that was asked for, or a case is no valid scenario on this machine.
    pub fn new(settings: &Settings, worlds: &[Measurable]) -> Result<Self, ValidateError> {
        let mut chosen = cases(settings.pcpus);
        if let Some(wrong) =
            settings.cases.iter().find(|part| !chosen.iter().any(|c| c.name.contains(&***part)))
        {
            let names = chosen.iter().map(|c| c.name.clone()).collect();
            return Err(ValidateError::NoCase { asked: wrong.clone(), names });
        }
        let asked = &settings.cases;
        chosen.retain(|case| match asked.is_empty() {
            true => !settings.quick || case.quick,
            false => asked.iter().any(|part| case.name.contains(&**part)),
        });
        let mut subjects = Vec::new();
        for Measurable { world, schedulers, sets } in worlds {
            for case in &chosen {
                let of_family = case.family.schedulers();
                let names: Vec<&str> = match schedulers {
                    Schedulers::Kernel(name) => vec![name.as_str()],
                    Schedulers::Own if settings.quick => of_family[..1].to_vec(),
                    Schedulers::Own => of_family.to_vec(),
                };
                for scheduler in names {
                    if !settings.schedulers.is_empty()
                        && !settings.schedulers.iter().any(|s| s == scheduler)
                    {
                        continue;
                    }
                    let scenario = scenario(case, settings.pcpus, scheduler, sets)?;
                    if !honours(*world, case, &scenario) {
                        continue;
                    }
                    subjects.push(Subject {
                        case: case.clone(),
                        world: *world,
                        scheduler: scheduler.into(),
                        scenario,
                    });
                }
            }
        }
        Ok(Self { subjects, repeats: settings.repeats, seeds: settings.seeds })
    }

    /// The measured runs, as pairs of a subject and a repetition, in an order shuffled by `seed`: a slow
    /// minute of this machine then affects all cases alike.
    #[must_use]
    pub fn order(&self, seed: u64) -> Vec<(usize, u32)> {
        let mut all: Vec<(usize, u32)> =
            (0..self.repeats).flat_map(|r| (0..self.subjects.len()).map(move |s| (s, r))).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for i in (1..all.len()).rev() {
            // Multiply and shift: the bias is below 2^-32 x the number of runs.
            let j = (u64::from(random.next_u32()) * (i as u64 + 1)) >> 32;
            all.swap(i, j as usize);
        }
        all
    }

    /// The real time of the measured runs, in seconds.
    #[must_use]
    pub fn measured_s(&self) -> f64 {
        let once: f64 = self.subjects.iter().map(|s| s.scenario.limit.seconds() + AROUND).sum();
        once * f64::from(self.repeats)
    }

    /// What will be done, and how long it will take.
    #[must_use]
    pub fn words(&self) -> String {
        let runs = self.subjects.len() * self.repeats as usize;
        let simulated = self.subjects.len() * self.seeds as usize;
        let seconds = self.measured_s();
        let time = match seconds {
            s if s < 100.0 => format!("{s:.0} s"),
            s => format!("{:.1} min", s / 60.0),
        };
        format!(
            "{simulated} simulated runs, then {runs} measured runs, which take {time}; up to a third more if other \
             programs disturb them"
        )
    }
}

/// A world that can be measured here.
#[derive(Clone, Debug)]
pub struct Measurable {
    /// The world.
    pub world: AnyWorld,
    /// Who schedules in it.
    pub schedulers: Schedulers,
    /// What the simulator is told of its costs, as `--set` arguments.
    pub sets: Vec<String>,
}

/// The schedulers of a world: the project's own, or the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedulers {
    /// The project's own schedulers.
    Own,
    /// This kernel, which the simulator has under this name.
    Kernel(String),
}

impl Schedulers {
    /// The schedulers of this world.
    #[must_use]
    pub fn of(world: AnyWorld) -> Self {
        match world.name() {
            "threads" | "processes" | "linux" => Self::Kernel(kernels_scheduler::here()),
            _ => Self::Own,
        }
    }
}

/// The worlds of this name, or those that differ in what the simulator is judged by: processes have the scheduler and the
/// locks of threads, and guests with Linux run few of the cases.
///
/// # Errors
/// If there is no such world.
pub fn worlds(name: Option<&str>) -> Result<Vec<AnyWorld>, ValidateError> {
    let all: Vec<AnyWorld> =
        catalog().worlds().into_iter().filter(|world| !world.is_deterministic()).collect();
    let Some(name) = name else {
        let differs = |world: &AnyWorld| !["processes", "linux"].contains(&world.name());
        return Ok(all.into_iter().filter(differs).collect());
    };
    let found: Vec<AnyWorld> = all.iter().copied().filter(|world| world.name() == name).collect();
    match found.is_empty() {
        true => Err(ValidateError::NoWorld {
            asked: name.into(),
            names: all.iter().map(|world| world.name().into()).collect(),
        }),
        false => Ok(found),
    }
}

/// Whether a world can do what a case is about.
fn honours(world: AnyWorld, case: &Case, scenario: &Scenario) -> bool {
    let Ok(ignored) = world.supports(scenario) else { return false };
    case.family != Family::Caps || !ignored.iter().any(|key| key.key == "domain.cap")
}

/// The scenario of a case.
pub(super) fn scenario(
    case: &Case,
    pcpus: u32,
    scheduler: &str,
    sets: &[String],
) -> Result<Scenario, ValidateError> {
    let text = case.toml(pcpus, scheduler);
    let loaded = load_text(Path::new(&format!("{}.toml", case.name)), &text, sets, &[])
        .map_err(|error| ValidateError::Case { name: case.name.clone(), error })?;
    match loaded {
        Loaded::One(scenario) | Loaded::Seeds(scenario, _) => Ok(*scenario),
        Loaded::Sweep(_) => unreachable!("no case has [[vary]] tables"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_comes_once_in_an_order_of_its_seed() {
        let settings = Settings { quick: true, ..Settings::new(2) };
        let world = *worlds(Some("hv")).unwrap().first().unwrap();
        let measurable = Measurable { world, schedulers: Schedulers::Own, sets: Vec::new() };
        let plan = Plan::new(&settings, &[measurable]).unwrap();
        let mut order = plan.order(7);
        assert_eq!(order, plan.order(7));
        assert_ne!(order, plan.order(8));
        order.sort_unstable();
        order.dedup();
        assert_eq!(order.len(), plan.subjects.len() * plan.repeats as usize);
    }

    #[test]
    fn a_wrong_name_says_what_there_is() {
        let settings = Settings { cases: vec!["vax".into()], ..Settings::new(2) };
        let error = Plan::new(&settings, &[]).unwrap_err();
        assert!(error.to_string().contains("vax"), "{error}");
        assert!(worlds(Some("vax")).unwrap_err().to_string().contains("vax"));
    }
}
