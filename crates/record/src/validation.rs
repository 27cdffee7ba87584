//! What a validation says: figures of simulated runs beside those of measured ones.

pub use overspin_scenario::Disturbance;
use overspin_stats::Spread;
use serde::{Deserialize, Serialize};

/// What comes out of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The goals.
    pub goals: Goals,
    /// The machine, what the simulator was told of it, and other remarks, in sentences.
    pub notes: Vec<String>,
    /// Worlds that this machine cannot run, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<[String; 2]>,
    /// What else ran on the machine.
    pub load: Load,
    /// Every figure, simulated and measured.
    pub compared: Vec<Compared>,
    /// The order of the locks.
    pub orders: Vec<Order>,
}

/// What else ran on the machine while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Measured runs.
    pub runs: usize,
    /// Measured runs for which the kernel tells what others had of the CPUs.
    pub told: usize,
    /// What others had of the CPUs in these, on average.
    pub mean: Disturbance,
    /// Runs that were repeated because others disturbed them.
    pub repeated: usize,
    /// Runs that are disturbed all the same.
    pub disturbed: usize,
    /// Runs that did more than their CPUs can do, and do not count.
    #[serde(default)]
    pub impossible: usize,
}

impl Comparison {
    /// Whether everything agrees: `None` if nothing misses, but some figures are unclear or none was compared.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let any = |agreement| self.compared.iter().any(|c| c.agreement == agreement);
        if any(Agreement::Miss) || self.orders.iter().any(|o| !o.wrong.is_empty()) {
            Some(false)
        } else if any(Agreement::Unclear) || self.compared.is_empty() {
            None
        } else {
            Some(true)
        }
    }
}

/// How far simulated figures may be from measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goals {
    /// Percent of the measured throughput.
    pub throughput: f64,
    /// Octaves (powers of two) of a throughput that varies from run to run.
    #[serde(default = "octave")]
    pub varying: f64,
    /// Percentage points of a run state's share.
    pub state: f64,
    /// Percent of the measured latency.
    pub latency: f64,
}

impl Goals {
    /// The goals of the full set.
    pub const FULL: Self = Self { throughput: 5.0, varying: 1.0, state: 5.0, latency: 25.0 };
    /// Bounds for short runs on a machine that others use: only what is wrong altogether is beyond them.
    pub const WIDE: Self = Self { throughput: 50.0, varying: 3.0, state: 30.0, latency: 900.0 };

    /// The goal of this kind of figures, in its unit of differences.
    #[must_use]
    pub fn of(&self, kind: FigureKind) -> f64 {
        match kind {
            FigureKind::Throughput => self.throughput,
            FigureKind::Varying => self.varying,
            FigureKind::State => self.state,
            FigureKind::Latency => self.latency,
        }
    }
}

fn octave() -> f64 {
    Goals::FULL.varying
}

/// Whether a simulated figure is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The difference of the means is within the goal.
    Within,
    /// It is not, but the interval of the difference reaches into the goal: more runs could decide.
    Unclear,
    /// The whole interval of the difference is beyond the goal.
    Miss,
}

/// A figure, simulated and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The case.
    pub case: String,
    /// The world that it was measured in.
    pub world: String,
    /// The simulated scheduler.
    pub scheduler: String,
    /// The domain, if the case has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// How it is compared.
    pub kind: FigureKind,
    /// Over simulated runs, one for each seed.
    pub simulated: Spread,
    /// Over measured runs.
    pub measured: Spread,
    /// Simulated less measured, in the unit of its kind.
    pub difference: f64,
    /// Half of the width of its 95 % interval; `None` with a single run on a side.
    pub margin: Option<f64>,
    /// The goal for it.
    pub goal: f64,
    /// The verdict.
    pub agreement: Agreement,
    /// Others used the CPUs during measured runs, and repeating these did not help.
    pub disturbed: bool,
}

impl Compared {
    /// The figure in words.
    #[must_use]
    pub fn figure(&self) -> String {
        match &self.domain {
            Some(domain) => format!("{domain} {}", self.metric),
            None => self.metric.clone(),
        }
    }

    /// The verdict in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let words = match self.agreement {
            Agreement::Within => "within",
            Agreement::Unclear => "unclear",
            Agreement::Miss => "MISS",
        };
        format!("{words}{}", if self.disturbed { ", disturbed" } else { "" })
    }
}

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Work in a second, or a part of all work: the difference is in percent of the measured value.
    Throughput,
    /// Such a figure that does not repeat, as that of a lock that collapses: measured, the half of its 95 % interval is
    /// more than [`REPEATS`](Self::REPEATS) percent of its mean. The difference is that of the mean logarithms to base 2,
    /// in octaves: 1 is twice as much, -1 half.
    Varying,
    /// Part of the vCPUs' time in a run state: the difference is in percentage points.
    State,
    /// A wake-up latency: the difference is in percent of the measured value.
    Latency,
}

impl FigureKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Varying, Self::State, Self::Latency];
    /// What repeats to this many percent is compared in percent.
    pub const REPEATS: f64 = 5.0;

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Varying => "throughput that varies",
            Self::State => "run states",
            Self::Latency => "wake-up latency",
        }
    }

    /// The unit of a difference.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput | Self::Latency => "%",
            Self::Varying => "octaves",
            Self::State => "points",
        }
    }
}

/// The order of locks by throughput at one ratio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The world that was measured.
    pub world: String,
    /// The simulated scheduler.
    pub scheduler: String,
    /// vCPUs for each pCPU.
    pub ratio: u32,
    /// Pairs of locks whose measured intervals do not overlap.
    pub decided: usize,
    /// Pairs that the simulator has the wrong way round: measured, the first of each is faster.
    pub wrong: Vec<[String; 2]>,
}
