//! Writes each event of a run.

use super::messages::{FtraceEvent, SchedSwitch, SchedWaking, TrackEvent, TrackEventType};
use super::tracks::{self, Lane};
use super::{Kick, PRIORITY, PerfettoSink};
use overspin_host::{Moment, Observer, Timed, VcpuState};
use overspin_scenario::{NS, Picos};
use std::io::Write;

impl<W: Write> Observer for PerfettoSink<W> {
    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            self.record(*at, moment);
        }
    }
}

impl<W: Write> PerfettoSink<W> {
    pub(super) fn record(&mut self, at: Picos, moment: &Moment) {
        if self.failed.is_none() {
            self.write_moment(at, moment);
            self.count(at);
        }
    }

    pub(super) fn write_moment(&mut self, at: Picos, moment: &Moment) {
        let waited = self.attribution.record(at, moment);
        match *moment {
            Moment::Switch { pcpu, prev, prev_state, next, .. } => {
                debug_assert!((pcpu as usize) < self.current.len(), "no such pCPU");
                let ((prev_pid, prev_comm), (next_pid, next_comm)) =
                    (self.identity(prev), self.identity(next));
                let switch = SchedSwitch {
                    prev_comm: Some(prev_comm),
                    prev_pid: Some(prev_pid),
                    prev_prio: Some(PRIORITY),
                    prev_state: Some(if prev.is_some() { task_state(prev_state) } else { 0 }),
                    next_comm: Some(next_comm),
                    next_pid: Some(next_pid),
                    next_prio: Some(PRIORITY),
                };
                let event = FtraceEvent {
                    timestamp: Some(at / NS),
                    pid: Some(prev_pid.unsigned_abs()),
                    sched_switch: Some(switch),
                    sched_waking: None,
                };
                self.ftrace(pcpu as usize, event);
                self.current[pcpu as usize] = next;
                if let Some(prev) = prev {
                    self.set_state(at, prev as usize, prev_state);
                }
                if let Some(next) = next {
                    self.vcpus[next as usize].pcpu = pcpu;
                    self.set_state(at, next as usize, VcpuState::Running);
                }
            }
            Moment::Wake { vcpu, pcpu, runnable: true } => {
                let waker = pcpu.and_then(|p| self.current.get(p as usize).copied().flatten());
                let (target_pid, comm) = self.identity(Some(vcpu));
                let waking = SchedWaking {
                    comm: Some(comm),
                    pid: Some(target_pid),
                    prio: Some(PRIORITY),
                    success: Some(1),
                    target_cpu: Some(self.vcpus[vcpu as usize].pcpu.cast_signed()),
                };
                let event = FtraceEvent {
                    timestamp: Some(at / NS),
                    pid: Some(self.identity(waker).0.unsigned_abs()),
                    sched_switch: None,
                    sched_waking: Some(waking),
                };
                self.ftrace(pcpu.unwrap_or(0) as usize, event);
                // Waking a vCPU that has not left its pCPU yet does not change its state.
                if self.vcpus[vcpu as usize].state != VcpuState::Running {
                    let kick = self.kick.take().filter(|kick| (kick.at, kick.to) == (at, vcpu));
                    self.vcpus[vcpu as usize].flow = kick.map(|kick| kick.flow);
                    self.set_state(at, vcpu as usize, VcpuState::Runnable);
                }
            }
            Moment::LockWait { vcpu, lock, .. } => {
                let vcpu = vcpu as usize;
                self.counters.waits(vcpu);
                self.wait_begins(at, vcpu, self.vcpus[vcpu].domain, lock);
            }
            Moment::LockAcquired { vcpu, lock, .. } => {
                let vcpu = vcpu as usize;
                if waited.is_some() {
                    self.counters.got(vcpu);
                }
                self.hold_begins(at, vcpu, self.vcpus[vcpu].domain, lock, waited.as_ref());
            }
            Moment::LockReleased { vcpu, lock, .. } => {
                self.end_slice(at, vcpu as usize, Lane::Hold(lock));
            }
            Moment::Kick { from, to } => {
                if self.known(from) && self.known(to) {
                    let name = format!("kick {}", self.vcpus[to as usize].comm);
                    let (track, fresh) = self.tracks.instant(from as usize);
                    if let Some(descriptor) = fresh {
                        self.describe(descriptor);
                    }
                    self.kicks += 1;
                    self.kick = Some(Kick { at, to, flow: self.kicks });
                    let name_iid = Some(self.intern(&name));
                    let event = TrackEvent {
                        r#type: Some(TrackEventType::Instant as i32),
                        name_iid,
                        track_uuid: Some(track),
                        flow_ids: vec![self.kicks],
                        ..TrackEvent::default()
                    };
                    self.write_event(at, event);
                }
            }
            Moment::Change { event } => {
                if let Some(what) = self.changes.get(event as usize).cloned() {
                    let kind = TrackEventType::Instant;
                    self.track_event(at, kind, tracks::ADMINISTRATOR, Some(&what));
                }
            }
            Moment::Task { vcpu, task } => self.switches(at, vcpu, task),
            Moment::TaskLock { domain, task, lock, what } => {
                self.task_locks(at, (domain.into(), task), lock, what, waited.as_ref());
            }
            Moment::TaskSleep { domain, task, what } => {
                self.task_sleeps(at, (domain.into(), task), what);
            }
            // The end of a release is so close to its beginning that drawing it would hide more than it shows.
            Moment::Counts | Moment::LockFreed { .. } => {}
            // Other actions of the host and the guest are not drawn.
            Moment::Wake { .. }
            | Moment::Runs { .. }
            | Moment::Sleeps { .. }
            | Moment::Throttle { .. }
            | Moment::Returns { .. }
            | Moment::PollBegins { .. }
            | Moment::PollEnds { .. }
            | Moment::Yield { .. }
            | Moment::PauseLoopExit { .. }
            | Moment::DirectedYield { .. }
            | Moment::WindowOpens { .. }
            | Moment::WindowCloses { .. }
            | Moment::Interrupt { .. }
            | Moment::InterruptEnds { .. } => {}
        }
    }
}

/// `prev_state` of a `sched_switch` as Linux writes it: R, S (sleeps), T (stopped).
fn task_state(state: VcpuState) -> i64 {
    match state {
        VcpuState::Running | VcpuState::Runnable => 0,
        VcpuState::Blocked => 1,
        VcpuState::Offline => 4,
    }
}
