//! Which CPUs share a core or a socket, as the kernel tells.

use std::fs;

/// How far a line goes from one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// To the sibling thread.
    SameCore,
    /// To another core of the socket.
    CrossCore,
    /// To another socket.
    CrossSocket,
}

impl Distance {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SameCore, Self::CrossCore, Self::CrossSocket];

    /// The key of its cost in `[host.costs]`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::SameCore => "same_core",
            Self::CrossCore => "cross_core",
            Self::CrossSocket => "cross_socket",
        }
    }

    /// Why a machine may have none.
    pub(super) fn absent(self) -> &'static str {
        match self {
            Self::SameCore => "no two CPUs of this process share a core",
            Self::CrossCore => "no two cores of this process share a socket",
            Self::CrossSocket => "all CPUs of this process are in one socket",
        }
    }
}

fn number(cpu: usize, file: &str) -> Option<i64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Core and socket of a CPU. Without the kernel's word, each CPU is a core of one socket.
fn place(cpu: usize) -> (i64, i64) {
    let core = number(cpu, "core_id").unwrap_or(cpu as i64);
    (core, number(cpu, "physical_package_id").unwrap_or(0))
}

fn distance(a: usize, b: usize) -> Distance {
    let ((core_a, socket_a), (core_b, socket_b)) = (place(a), place(b));
    match (socket_a == socket_b, core_a == core_b) {
        (true, true) => Distance::SameCore,
        (true, false) => Distance::CrossCore,
        (false, _) => Distance::CrossSocket,
    }
}

/// All pairs of these CPUs.
pub(super) fn pairs(cpus: &[usize]) -> Vec<(usize, usize, Distance)> {
    let of = |(i, a): (usize, &usize)| {
        cpus[i + 1..].iter().map(|b| (*a, *b, distance(*a, *b))).collect::<Vec<_>>()
    };
    cpus.iter().enumerate().flat_map(of).collect()
}

/// Two CPUs that share a core.
pub(super) fn siblings(cpus: &[usize]) -> Option<(usize, usize)> {
    first(cpus, |d| d == Distance::SameCore)
}

/// Two CPUs that share none.
pub(super) fn strangers(cpus: &[usize]) -> Option<(usize, usize)> {
    first(cpus, |d| d != Distance::SameCore)
}

fn first(cpus: &[usize], at: impl Fn(Distance) -> bool) -> Option<(usize, usize)> {
    pairs(cpus).into_iter().find(|(_, _, d)| at(*d)).map(|(a, b, _)| (a, b))
}
