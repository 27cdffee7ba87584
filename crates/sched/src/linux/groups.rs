//! Scheduling domains, the groups that a domain balances between, and how much it moves.
//!
//! There are up to three nested domains: the threads of a core, the pCPUs of a socket (which share a cache), the
//! machine. One that is no larger than the one inside it is left out. The groups of a domain are the domains inside
//! it, or single pCPUs.
//!
//! A group has *spare* capacity, is *full*, or is *overloaded* (more vCPUs than pCPUs, and nearly all time used). A
//! group that has spare capacity takes vCPUs by number; one that is full or overloaded takes load, and only so much
//! that neither group crosses the average of the domain.

use super::average::ONE;
use super::params::Release;
use crate::ids::PcpuId;
use crate::topology::Topology;
use core::ops::Range;

/// A scheduling domain of a pCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub pcpus: Range<u32>,
    /// The number of pCPUs of each of its groups.
    pub group: u32,
    /// A busy group pulls from a group whose load is more than this, in percent of its own.
    pub percent: i64,
    /// Attempts that may fail before cache-hot vCPUs move, too.
    pub patience: u32,
    /// Threads of one core, between which no vCPU is cache-hot.
    pub is_core: bool,
    /// The pCPUs share a cache.
    pub shares_cache: bool,
}

impl Level {
    /// The domains of `p`, from the smallest on.
    pub fn of(t: &Topology, p: PcpuId) -> impl Iterator<Item = Self> + use<> {
        let core = t.siblings(p);
        let socket = t.socket_mates(p);
        let machine = 0..t.pcpus();
        let inside = [1, core.len(), socket.len()].map(|n| n as u32);
        [core, socket, machine].into_iter().enumerate().filter_map(move |(i, pcpus)| {
            (pcpus.len() as u32 > inside[i]).then_some(Self {
                pcpus,
                group: inside[i],
                percent: if i == 0 { 110 } else { 117 },
                patience: i as u32,
                is_core: i == 0,
                shares_cache: i < 2,
            })
        })
    }

    /// The group of `p`.
    pub fn group_of(&self, p: PcpuId) -> Range<u32> {
        let first = self.pcpus.start + (p.0 - self.pcpus.start) / self.group * self.group;
        first..first + self.group
    }
}

/// What a pCPU adds to its group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// vCPUs, including the running one.
    pub count: i64,
    /// The sum of weight × average over its vCPUs.
    pub load: i64,
    /// The sum of the averages: how many vCPUs want to run, times [`ONE`].
    pub wanted: i64,
    /// It idles.
    pub idle: bool,
    /// It is left out: none of its vCPUs may come here.
    pub pinned: bool,
}

impl Share {
    /// The part of its time that it is used: all of it if one vCPU or more wants it all the time.
    pub fn used(&self) -> i64 {
        self.wanted.min(ONE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Spare,
    Full,
    Overloaded,
}

/// The sums over a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub pcpus: i64,
    pub idle: i64,
    pub count: i64,
    pub load: i64,
    wanted: i64,
    used: i64,
}

impl Group {
    /// Adds a pCPU.
    pub fn add(&mut self, share: &Share) {
        self.pcpus += 1;
        if !share.pinned {
            self.idle += i64::from(share.idle);
            self.count += share.count;
            self.load += share.load;
            self.wanted += share.wanted;
            self.used += share.used();
        }
    }

    /// Adds another group.
    pub fn join(&mut self, other: &Self) {
        self.pcpus += other.pcpus;
        self.load += other.load;
    }

    /// The load of each pCPU.
    pub fn average(&self) -> i64 {
        self.load / self.pcpus.max(1)
    }

    pub fn kind(&self, percent: i64) -> Kind {
        let capacity = self.pcpus * ONE;
        let is_used = self.used * percent > capacity * 100;
        let waits = self.wanted * 100 > capacity * percent;
        if self.count > self.pcpus && (is_used || waits) {
            Kind::Overloaded
        } else if self.count < self.pcpus || !waits && self.used * percent < capacity * 100 {
            Kind::Spare
        } else {
            Kind::Full
        }
    }

    /// Whether this group is busier than the busiest found so far.
    pub fn is_busier_than(&self, busiest: &Self, percent: i64) -> bool {
        let kind = self.kind(percent);
        if kind != busiest.kind(percent) {
            return kind > busiest.kind(percent);
        }
        match kind {
            Kind::Overloaded => self.average() > busiest.average(),
            // The kernel does not compute the load of full groups.
            Kind::Full => false,
            Kind::Spare => (-self.idle, self.count) > (-busiest.idle, busiest.count),
        }
    }
}

/// How much is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Load(i64),
    Used(i64),
    Vcpus(i64),
}

impl Amount {
    /// Whether nothing is left to move.
    pub fn is_done(self) -> bool {
        let (Self::Load(n) | Self::Used(n) | Self::Vcpus(n)) = self;
        n <= 0
    }
}

/// How much the group `local` of a pCPU takes from the group `busiest`. `all` is the domain; `idle`: the pCPU is about
/// to idle.
pub(super) fn imbalance(
    level: &Level,
    release: Release,
    idle: bool,
    [local, busiest, all]: [&Group; 3],
) -> Amount {
    const NOTHING: Amount = Amount::Vcpus(0);
    let (mine, theirs) = (local.kind(level.percent), busiest.kind(level.percent));
    let (own, their, mean) = (local.average(), busiest.average(), all.average());
    let has_more = own >= their || own >= mean;
    let is_near = mine == Kind::Overloaded && 100 * their <= level.percent * own;
    if mine > theirs || mine > Kind::Spare && has_more || is_near {
        return NOTHING;
    }
    // Vcpus are spread evenly over groups; since 6.6 only idle pCPUs care for that.
    let more = busiest.count - local.count;
    let more = if idle || release < Release::V6_6 { more.max(0) } else { 0 };
    let spreads = level.group > 1;
    if theirs < Kind::Overloaded && !(spreads && mine == Kind::Spare && more > 1) {
        let is_even = busiest.pcpus > 1 && local.idle <= busiest.idle + 1;
        if !idle || is_even || busiest.count == 1 {
            return NOTHING;
        }
    }
    if mine > Kind::Spare {
        return Amount::Load(((their - mean) * busiest.pcpus).min((mean - own) * local.pcpus));
    }
    if theirs == Kind::Overloaded && !level.shares_cache {
        let room = (local.pcpus * ONE - local.used).max(0);
        return if idle && room == 0 { Amount::Vcpus(1) } else { Amount::Used(room) };
    }
    let more = if level.group == 1 || spreads { more } else { (local.idle - busiest.idle).max(0) };
    // Two vCPUs more on another socket are no reason to leave it, if this one would stay nearly empty.
    let is_small = more <= 2 && local.count < i64::from((level.pcpus.len() as u32 / 8).max(1));
    if !level.shares_cache && is_small {
        return NOTHING;
    }
    Amount::Vcpus(more / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn pair() -> Level {
        Level::of(&Topology::flat(2), PcpuId(0)).next().unwrap()
    }

    fn hogs(n: i64) -> Group {
        let mut group = Group::default();
        group.add(&Share {
            count: n,
            load: 1024 * n,
            wanted: ONE * n,
            idle: n == 0,
            pinned: false,
        });
        group
    }

    fn moved(idle: bool, local: i64, busiest: i64) -> Amount {
        let (local, busiest) = (hogs(local), hogs(busiest));
        let mut all = local;
        all.join(&busiest);
        imbalance(&pair(), Release::V6_18, idle, [&local, &busiest, &all])
    }

    #[test]
    fn domains_are_nested_and_have_the_inner_ones_as_groups() {
        let t = Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 2 };
        let all: Vec<Level> = Level::of(&t, PcpuId(5)).collect();
        let spans: Vec<_> = all.iter().map(|l| (l.pcpus.clone(), l.group)).collect();
        assert_eq!(spans, [(4..6, 1), (4..8, 2), (0..8, 4)]);
        assert_eq!(all[1].group_of(PcpuId(7)), 6..8);
        let percents: Vec<_> = all.iter().map(|l| (l.percent, l.patience)).collect();
        assert_eq!(percents, [(110, 0), (117, 1), (117, 2)]);
    }

    /// Load is moved until one of the two groups is at the average: one hog beside two takes half a hog (1024 / 2),
    /// two beside three the same, and a pCPU that goes idle takes one of two vCPUs.
    #[test]
    fn half_of_the_difference_moves() {
        assert_eq!(moved(false, 1, 2), Amount::Load(512));
        assert_eq!(moved(false, 2, 3), Amount::Load(512));
        assert_eq!(moved(false, 1, 3), Amount::Load(1024));
        assert_eq!(moved(true, 0, 2), Amount::Vcpus(1));
        assert!(moved(false, 2, 2).is_done() && moved(false, 2, 1).is_done());
        assert!(moved(true, 0, 1).is_done(), "the only vCPU runs");
    }

    /// Seven hogs are 16.7 % more than six: no more than 17 %, so they stay. Six are 20 % more than five.
    #[test]
    fn a_small_difference_between_busy_pcpus_stays() {
        assert!(moved(false, 6, 7).is_done());
        assert_eq!(moved(false, 5, 6), Amount::Load(512));
    }

    /// A vCPU that sleeps most of the time leaves its pCPU with spare capacity, which since 6.6 only idle pCPUs fill.
    #[test]
    fn a_sleeper_that_happens_to_run_does_not_fill_its_pcpu() {
        let mut sleeper = Group::default();
        sleeper.add(&Share { count: 1, load: 102, wanted: ONE / 10, idle: false, pinned: false });
        assert_eq!(sleeper.kind(117), Kind::Spare);
        assert_eq!(hogs(1).kind(117), Kind::Full);
        assert_eq!(hogs(2).kind(117), Kind::Overloaded);
        let busiest = hogs(3);
        let mut all = sleeper;
        all.join(&busiest);
        let groups = [&sleeper, &busiest, &all];
        assert_eq!(imbalance(&pair(), Release::V5, false, groups), Amount::Vcpus(1));
        assert!(imbalance(&pair(), Release::V6_6, false, groups).is_done());
    }
}
