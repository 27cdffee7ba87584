//! The track on which a slice is drawn, and the tracks that exist already.

use super::messages::{
    CounterDescriptor, CounterUnit, ProcessDescriptor, ThreadDescriptor, TrackDescriptor,
};

/// The subject of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// The runstate.
    State,
    /// Waiting for this lock.
    Wait(u32),
    /// Holding this lock.
    Hold(u32),
}

/// Groups of tracks of one thread: a vCPU or a task. Each has `SLOTS` track ids.
#[derive(Clone, Copy, Debug)]
enum Group {
    State,
    Wait,
    Hold,
    Kick,
}

const GROUPS: u64 = 4;
/// Track ids reserved for the tracks of one group.
const SLOTS: u64 = 1 << 16;
/// Ids of processes and threads are below this.
const FIRST_TRACK: u64 = 1 << 40;
/// Thread tracks start here.
const FIRST_THREAD: u64 = 1 << 20;

#[derive(Debug, Default)]
struct Slots {
    /// The open slice on each track of the group.
    open: Vec<Option<Lane>>,
}

/// All tracks of all threads: vCPUs, then tasks.
#[derive(Debug)]
pub(super) struct Tracks {
    slots: Vec<[Slots; 3]>,
    kicks: Vec<bool>,
}

impl Tracks {
    pub(super) fn new(vcpus: usize) -> Self {
        Self {
            slots: (0..vcpus).map(|_| <[Slots; 3]>::default()).collect(),
            kicks: vec![false; vcpus],
        }
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        self.slots.len()
    }

    /// One more thread, and its number.
    pub(super) fn add_thread(&mut self) -> usize {
        self.slots.push(<[Slots; 3]>::default());
        self.slots.len() - 1
    }

    /// Takes a track for a slice. If the track is new, its descriptor must be written first.
    pub(super) fn begin(&mut self, vcpu: usize, lane: Lane) -> (u64, Option<TrackDescriptor>) {
        let group = group(lane);
        let open = &mut self.slots[vcpu][group as usize].open;
        let (slot, fresh) = match open.iter().position(Option::is_none) {
            Some(slot) => (slot, false),
            None => {
                open.push(None);
                (open.len() - 1, true)
            }
        };
        open[slot] = Some(lane);
        let uuid = uuid(vcpu, group, slot);
        (uuid, fresh.then(|| child(uuid, vcpu, group)))
    }

    /// Returns the track of an open slice.
    pub(super) fn end(&mut self, vcpu: usize, lane: Lane) -> Option<u64> {
        let group = group(lane);
        let open = &mut self.slots[vcpu][group as usize].open;
        let slot = open.iter().rposition(|o| *o == Some(lane))?;
        open[slot] = None;
        Some(uuid(vcpu, group, slot))
    }

    /// The track for instants of a vCPU.
    pub(super) fn instant(&mut self, vcpu: usize) -> (u64, Option<TrackDescriptor>) {
        let uuid = uuid(vcpu, Group::Kick, 0);
        let fresh = !std::mem::replace(&mut self.kicks[vcpu], true);
        (uuid, fresh.then(|| child(uuid, vcpu, Group::Kick)))
    }
}

fn group(lane: Lane) -> Group {
    match lane {
        Lane::State => Group::State,
        Lane::Wait(_) => Group::Wait,
        Lane::Hold(_) => Group::Hold,
    }
}

fn uuid(vcpu: usize, group: Group, slot: usize) -> u64 {
    FIRST_TRACK + (vcpu as u64 * GROUPS + group as u64) * SLOTS + slot as u64 % SLOTS
}

fn child(uuid: u64, vcpu: usize, group: Group) -> TrackDescriptor {
    let name = match group {
        Group::State => "runstate",
        Group::Wait => "lock wait",
        Group::Hold => "lock hold",
        Group::Kick => "kick",
    };
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.into()),
        parent_uuid: Some(FIRST_THREAD + vcpu as u64),
        ..TrackDescriptor::default()
    }
}

/// The track for instants of the host.
pub(super) const ADMINISTRATOR: u64 = FIRST_TRACK - 1;
/// The track that says which run this is.
pub(super) const RUN: u64 = FIRST_TRACK - 2;
/// The host's counter track; each domain has two more after it.
const FIRST_COUNTER: u64 = 1 << 39;

/// The descriptor of the run's track.
pub(super) fn run() -> TrackDescriptor {
    TrackDescriptor { uuid: Some(RUN), name: Some("run".into()), ..TrackDescriptor::default() }
}

/// A number that changes during the run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    /// vCPUs of all domains that want a pCPU and have none.
    Queued,
    /// vCPUs of this domain that want a pCPU and have none.
    QueuedOf(usize),
    /// vCPUs of this domain that wait for a lock on a pCPU.
    SpinningOf(usize),
}

impl Counter {
    /// The id of its track.
    pub(super) fn track(self) -> u64 {
        match self {
            Self::Queued => FIRST_COUNTER,
            Self::QueuedOf(domain) => FIRST_COUNTER + 1 + 2 * domain as u64,
            Self::SpinningOf(domain) => FIRST_COUNTER + 2 + 2 * domain as u64,
        }
    }

    /// The descriptor of its track.
    pub(super) fn descriptor(self) -> TrackDescriptor {
        let (name, domain) = match self {
            Self::Queued => ("runnable vCPUs, all domains", None),
            Self::QueuedOf(domain) => ("runnable vCPUs", Some(domain)),
            Self::SpinningOf(domain) => ("spinning vCPUs", Some(domain)),
        };
        TrackDescriptor {
            uuid: Some(self.track()),
            name: Some(name.into()),
            parent_uuid: domain.map(|d| 1 + d as u64),
            counter: Some(CounterDescriptor { unit: Some(CounterUnit::Count as i32) }),
            ..TrackDescriptor::default()
        }
    }
}

/// The descriptor of the administrator's track.
pub(super) fn administrator() -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(ADMINISTRATOR),
        name: Some("administrator".into()),
        ..TrackDescriptor::default()
    }
}

/// The descriptor of a domain's track.
pub(super) fn process(domain: usize, pid: i32, name: String) -> TrackDescriptor {
    let process = ProcessDescriptor { pid: Some(pid), process_name: Some(name) };
    TrackDescriptor {
        uuid: Some(1 + domain as u64),
        process: Some(process),
        ..TrackDescriptor::default()
    }
}

/// The descriptor of the track of a vCPU or a task.
pub(super) fn thread(number: usize, pid: i32, tid: i32, name: String) -> TrackDescriptor {
    let thread =
        ThreadDescriptor { pid: Some(pid), tid: Some(tid.into()), thread_name: Some(name) };
    TrackDescriptor {
        uuid: Some(FIRST_THREAD + number as u64),
        thread: Some(thread),
        ..TrackDescriptor::default()
    }
}
