//! Traces in Perfetto's protobuf format, for ui.perfetto.dev and its SQL.
//!
//! A pCPU appears as a CPU and a vCPU as a thread (tid 1000 + number) of its domain's process, with
//! synthetic `sched_switch` and `sched_waking` events, so that Perfetto's own scheduling views and
//! tables work on virtual CPUs. Each vCPU also has tracks for
//!
//! - its runstate, as Xen names them: running, runnable, blocked, offline;
//! - waiting for locks and holding them, as slices `wait NAME` and `hold NAME`; the arguments of a wait are
//!   its causes, in ns (`docs/attribution.md`);
//! - kicks, as instants on the vCPU that sent them. A flow (an arrow) leads from a kick that wakes a vCPU to
//!   the woken vCPU's `runnable`, and on to its next `running`.
//!
//! Tasks that take locks in user mode are threads of the process, too, each with the vCPU that it is on, its waits and its
//! holds; CPUs show vCPUs only. Locks have the names that reports use; the lock of vCPU 0's run queue is `runqueue/0`. Each domain has two
//! counters, its spinning vCPUs and its runnable vCPUs (those that want a pCPU and have none), and the host
//! has one for all runnable vCPUs. Actions of the administrator are instants on their own track. The instant
//! on the track `run` has the scenario and the seed as arguments; they are also attributes of the trace.
//!
//! Timestamps are simulated nanoseconds. Slices on one track must nest, but locks need not be released in the
//! order in which they were taken. So each lock that a vCPU holds at one time has its own track. These tracks
//! have the same name, so that Perfetto draws them as one. A wait or hold that had not ended when the run did
//! has no end in the trace either.

mod counters;
mod messages;
mod metadata;
mod record;
mod tasks;
mod tracks;

use counters::Counters;
use messages::{
    DebugAnnotation, DebugAnnotationName, EventName, FtraceEvent, FtraceEventBundle, InternedData,
    Process, ProcessTree, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, Thread,
    TracePacket, TrackEvent, TrackEventType,
};
use overspin_host::{Attribution, Moment, VcpuState};
use overspin_scenario::{Cause, NS, Picos, Scenario, WaitCauses};
use std::collections::BTreeMap;
use std::io::{self, Write};
use tasks::Tasks;
use tracks::{Counter, Lane, Tracks};

/// Process ids of domains start here.
const FIRST_PID: i32 = 100;
/// Thread ids of vCPUs start here.
const FIRST_TID: i32 = 1000;
/// The one sequence of all packets.
const SEQUENCE: u32 = 1;
/// Most scheduling events of one pCPU in a packet.
const BUNDLE: usize = 256;
/// Priority in scheduling events; Linux' default for an ordinary thread.
const PRIORITY: i32 = 120;

/// The data of a vCPU that the trace needs.
#[derive(Debug)]
struct Vcpu {
    /// Thread name.
    comm: String,
    domain: usize,
    pcpu: u32,
    state: VcpuState,
    /// The flow from the kick that woke it, until it runs.
    flow: Option<u64>,
}

/// A kick, which wakes its target at once or not at all.
#[derive(Clone, Copy, Debug)]
struct Kick {
    at: Picos,
    to: u32,
    flow: u64,
}

/// Writes a trace during the run. Hand it to the run, then call [`PerfettoSink::finish`].
#[derive(Debug)]
pub struct PerfettoSink<W: Write> {
    out: W,
    /// The first failure; after it nothing is written.
    failed: Option<io::Error>,
    buffer: Vec<u8>,
    vcpus: Vec<Vcpu>,
    domains: Vec<String>,
    lock_names: Vec<Vec<String>>,
    /// Events of the scenario, in words.
    changes: Vec<String>,
    /// vCPU on each pCPU.
    current: Vec<Option<u32>>,
    /// Attributes waits to causes.
    attribution: Attribution,
    tasks: Tasks,
    bundles: Vec<Vec<FtraceEvent>>,
    tracks: Tracks,
    counters: Counters,
    /// The last kick, and the number of kicks, which number the flows.
    kick: Option<Kick>,
    kicks: u64,
    /// Interned slice names.
    names: BTreeMap<String, u64>,
    /// Names that no packet has defined yet.
    fresh_names: Vec<EventName>,
    cleared: bool,
}

impl<W: Write> PerfettoSink<W> {
    /// A sink for a run of `scenario` with `seed` that writes to `out`.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(scenario: &Scenario, seed: u64, out: W) -> io::Result<Self> {
        let mut vcpus = Vec::new();
        let all = overspin_workload::with_noise(scenario);
        for (domain, d) in all.domains.iter().enumerate() {
            vcpus.extend((0..d.vcpus).map(|v| Vcpu {
                comm: format!("{}/v{v}", d.name),
                domain,
                pcpu: 0,
                state: VcpuState::Offline,
                flow: None,
            }));
        }
        let pcpus = scenario.host.pcpus() as usize;
        let mut sink = Self {
            out,
            failed: None,
            buffer: Vec::new(),
            domains: all.domains.iter().map(|d| d.name.clone()).collect(),
            lock_names: all
                .domains
                .iter()
                .map(|d| overspin_runs::catalog::names().all_locks_of(d))
                .collect(),
            changes: scenario.events.iter().map(|e| e.change.describe(scenario)).collect(),
            current: vec![None; pcpus],
            attribution: Attribution::new(scenario),
            tasks: Tasks::new(&all),
            bundles: vec![Vec::new(); pcpus],
            tracks: Tracks::new(vcpus.len()),
            counters: Counters::new(vcpus.iter().map(|v| v.domain), all.domains.len()),
            kick: None,
            kicks: 0,
            vcpus,
            names: BTreeMap::new(),
            fresh_names: Vec::new(),
            cleared: false,
        };
        sink.header(metadata::facts(scenario, seed));
        match sink.failed.take() {
            Some(error) => Err(error),
            None => Ok(sink),
        }
    }

    /// Ends the trace at `end` and returns the writer.
    ///
    /// vCPUs that are on a pCPU leave it at `end`, so that running times are complete.
    ///
    /// # Errors
    /// Returns the first error of writing.
    pub fn finish(mut self, end: Picos) -> io::Result<W> {
        for pcpu in 0..self.current.len() {
            if let Some(vcpu) = self.current[pcpu] {
                let event = Moment::Switch {
                    pcpu: pcpu as u32,
                    prev: Some(vcpu),
                    prev_state: VcpuState::Runnable,
                    why: None,
                    next: None,
                };
                // The counters follow below, once for all.
                self.write_moment(end, &event);
            }
        }
        for vcpu in 0..self.vcpus.len() {
            self.end_slice(end, vcpu, Lane::State);
            self.counters.state(vcpu, VcpuState::Offline);
        }
        for thread in self.vcpus.len()..self.tracks.threads() {
            self.end_slice(end, thread, Lane::State);
        }
        self.count(end);
        for pcpu in 0..self.bundles.len() {
            self.flush_bundle(pcpu);
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    /// Names of processes and threads, the tracks below them, and what this run is.
    fn header(&mut self, facts: Vec<(&'static str, String)>) {
        let processes = (0..self.domains.len())
            .map(|d| Process {
                pid: Some(pid(d)),
                ppid: Some(0),
                cmdline: vec![self.domains[d].clone()],
            })
            .collect();
        let threads = self
            .vcpus
            .iter()
            .enumerate()
            .map(|(v, vcpu)| Thread {
                tid: Some(tid(v)),
                name: Some(vcpu.comm.clone()),
                tgid: Some(pid(vcpu.domain)),
            })
            .collect();
        let tree = ProcessTree { processes, threads };
        self.write(TracePacket {
            timestamp: Some(0),
            process_tree: Some(tree),
            ..TracePacket::default()
        });
        for (d, name) in self.domains.clone().into_iter().enumerate() {
            self.describe(tracks::process(d, pid(d), name));
        }
        if !self.changes.is_empty() {
            self.describe(tracks::administrator());
        }
        for v in 0..self.vcpus.len() {
            let Vcpu { comm, domain, .. } = &self.vcpus[v];
            let (comm, parent) = (comm.clone(), pid(*domain));
            self.describe(tracks::thread(v, parent, tid(v), comm));
        }
        for counter in self.counters.all() {
            self.describe(counter.descriptor());
            self.write_counter(Picos::ZERO, counter, 0);
        }
        let attributes = Some(metadata::attributes(&facts));
        self.write(TracePacket { trace_attributes: attributes, ..TracePacket::default() });
        self.describe(tracks::run());
        let name_iid = Some(self.intern("run"));
        let event = TrackEvent {
            r#type: Some(TrackEventType::Instant as i32),
            name_iid,
            track_uuid: Some(tracks::RUN),
            debug_annotations: metadata::arguments(facts),
            ..TrackEvent::default()
        };
        self.write_event(Picos::ZERO, event);
    }

    fn describe(&mut self, descriptor: messages::TrackDescriptor) {
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    /// Appends a packet: field 1 of the `Trace` message, length-delimited.
    fn write(&mut self, mut packet: TracePacket) {
        if self.failed.is_some() {
            return;
        }
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        let mut flags = 0;
        if !self.cleared {
            self.cleared = true;
            flags |= SEQ_INCREMENTAL_STATE_CLEARED;
            // The names of a wait's arguments, numbered from 1 on.
            let name = |c: Cause| Some(format!("{} ns", c.words()));
            let debug_annotation_names = (1..)
                .zip(Cause::ALL)
                .map(|(i, cause)| DebugAnnotationName { iid: Some(i), name: name(cause) })
                .collect();
            let interned = InternedData { debug_annotation_names, ..InternedData::default() };
            packet.interned_data = Some(interned);
        }
        if packet.track_event.is_some() {
            flags |= SEQ_NEEDS_INCREMENTAL_STATE;
            if !self.fresh_names.is_empty() {
                let event_names = std::mem::take(&mut self.fresh_names);
                let interned = packet.interned_data.get_or_insert_default();
                interned.event_names = event_names;
            }
        }
        packet.sequence_flags = (flags != 0).then_some(flags);
        self.buffer.clear();
        prost::encoding::message::encode(1, &packet, &mut self.buffer);
        if let Err(error) = self.out.write_all(&self.buffer) {
            self.failed = Some(error);
        }
    }

    fn track_event(&mut self, at: Picos, kind: TrackEventType, track: u64, name: Option<&str>) {
        let name_iid = name.map(|name| self.intern(name));
        let event = TrackEvent {
            r#type: Some(kind as i32),
            name_iid,
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.write_event(at, event);
    }

    fn write_counter(&mut self, at: Picos, counter: Counter, value: i64) {
        let event = TrackEvent {
            r#type: Some(TrackEventType::Counter as i32),
            track_uuid: Some(counter.track()),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.write_event(at, event);
    }

    /// Writes the counters that have changed.
    fn count(&mut self, at: Picos) {
        for (counter, value) in self.counters.take() {
            self.write_counter(at, counter, value);
        }
    }

    fn write_event(&mut self, at: Picos, event: TrackEvent) {
        self.write(TracePacket {
            timestamp: Some(at / NS),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn intern(&mut self, name: &str) -> u64 {
        if let Some(iid) = self.names.get(name) {
            return *iid;
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), iid);
        self.fresh_names.push(EventName { iid: Some(iid), name: Some(name.to_owned()) });
        iid
    }

    /// Begins a slice of a thread: a vCPU or a task.
    fn begin_slice(&mut self, at: Picos, thread: usize, lane: Lane, name: &str) {
        self.begin_slice_in(at, thread, lane, name, Vec::new(), Vec::new());
    }

    /// Begins a slice that some flows pass and others end at.
    fn begin_slice_in(
        &mut self,
        at: Picos,
        vcpu: usize,
        lane: Lane,
        name: &str,
        flow_ids: Vec<u64>,
        terminating_flow_ids: Vec<u64>,
    ) {
        let (track, fresh) = self.tracks.begin(vcpu, lane);
        if let Some(descriptor) = fresh {
            self.describe(descriptor);
        }
        let name_iid = Some(self.intern(name));
        let event = TrackEvent {
            r#type: Some(TrackEventType::SliceBegin as i32),
            name_iid,
            track_uuid: Some(track),
            flow_ids,
            terminating_flow_ids,
            ..TrackEvent::default()
        };
        self.write_event(at, event);
    }

    fn end_slice(&mut self, at: Picos, vcpu: usize, lane: Lane) {
        if let Some(track) = self.tracks.end(vcpu, lane) {
            self.track_event(at, TrackEventType::SliceEnd, track, None);
        }
    }

    /// Ends a wait, with its causes.
    fn end_wait(&mut self, at: Picos, vcpu: usize, lock: u32, causes: &WaitCauses) {
        let Some(track) = self.tracks.end(vcpu, Lane::Wait(lock)) else { return };
        let debug_annotations = (1..)
            .zip(Cause::ALL)
            .filter(|(_, cause)| causes.of(*cause) > Picos::ZERO)
            .map(|(i, cause)| DebugAnnotation {
                name_iid: Some(i),
                uint_value: Some(causes.of(cause) / NS),
                ..DebugAnnotation::default()
            })
            .collect();
        let event = TrackEvent {
            r#type: Some(TrackEventType::SliceEnd as i32),
            track_uuid: Some(track),
            debug_annotations,
            ..TrackEvent::default()
        };
        self.write_event(at, event);
    }

    fn set_state(&mut self, at: Picos, vcpu: usize, state: VcpuState) {
        self.vcpus[vcpu].state = state;
        self.counters.state(vcpu, state);
        self.end_slice(at, vcpu, Lane::State);
        // The flow from a kick passes `runnable` and ends where the woken vCPU runs.
        let (passing, ending) = match (state, self.vcpus[vcpu].flow) {
            (VcpuState::Runnable, Some(flow)) => (vec![flow], vec![]),
            (VcpuState::Running, Some(flow)) => (vec![], vec![flow]),
            _ => (vec![], vec![]),
        };
        if state != VcpuState::Runnable {
            self.vcpus[vcpu].flow = None;
        }
        self.begin_slice_in(at, vcpu, Lane::State, state_name(state), passing, ending);
    }

    fn lock_name(&self, domain: usize, lock: u32) -> String {
        let names = &self.lock_names[domain];
        names.get(lock as usize).cloned().unwrap_or_else(|| format!("lock {lock}"))
    }

    fn wait_begins(&mut self, at: Picos, thread: usize, domain: usize, lock: u32) {
        let name = format!("wait {}", self.lock_name(domain, lock));
        self.begin_slice(at, thread, Lane::Wait(lock), &name);
    }

    /// A thread has a lock; if it waited for it, with the causes.
    fn hold_begins(
        &mut self,
        at: Picos,
        thread: usize,
        domain: usize,
        lock: u32,
        waited: Option<&WaitCauses>,
    ) {
        if let Some(causes) = waited {
            self.end_wait(at, thread, lock, causes);
        }
        let name = format!("hold {}", self.lock_name(domain, lock));
        self.begin_slice(at, thread, Lane::Hold(lock), &name);
    }

    fn ftrace(&mut self, pcpu: usize, event: FtraceEvent) {
        self.bundles[pcpu].push(event);
        if self.bundles[pcpu].len() >= BUNDLE {
            self.flush_bundle(pcpu);
        }
    }

    fn flush_bundle(&mut self, pcpu: usize) {
        let event = std::mem::take(&mut self.bundles[pcpu]);
        if !event.is_empty() {
            let bundle = FtraceEventBundle { cpu: Some(pcpu as u32), event };
            self.write(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
        }
    }

    /// Thread id and name of a vCPU, or of the idle thread.
    fn identity(&self, vcpu: Option<u32>) -> (i32, String) {
        vcpu.map_or_else(
            || (0, "swapper".to_owned()),
            |v| (tid(v as usize), self.vcpus[v as usize].comm.clone()),
        )
    }

    fn known(&self, vcpu: u32) -> bool {
        (vcpu as usize) < self.vcpus.len()
    }
}

fn pid(domain: usize) -> i32 {
    FIRST_PID + domain as i32
}

fn tid(vcpu: usize) -> i32 {
    FIRST_TID + vcpu as i32
}

fn state_name(state: VcpuState) -> &'static str {
    match state {
        VcpuState::Running => "running",
        VcpuState::Runnable => "runnable",
        VcpuState::Blocked => "blocked",
        VcpuState::Offline => "offline",
    }
}

#[cfg(test)]
mod tests;
