use super::messages::Trace;
use super::*;
use crate::scenario_file;
use overspin_scenario::{US, WaitCauses};
use prost::Message;

const SCENARIO: &str = r#"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

fn scenario() -> Scenario {
    scenario_file::parse("t", "t", SCENARIO, &[]).unwrap()
}

fn switch(prev: Option<u32>, prev_state: VcpuState, next: Option<u32>) -> TraceEvent {
    TraceEvent::Switch { pcpu: 0, prev, prev_state, next }
}

fn trace(events: &[(Picos, TraceEvent)], end: Picos) -> Vec<TracePacket> {
    let mut sink = PerfettoSink::new(&scenario(), Vec::new()).unwrap();
    for (at, event) in events {
        sink.record(*at, *event);
    }
    Trace::decode(sink.finish(end).unwrap().as_slice()).unwrap().packet
}

#[test]
fn every_slice_that_ends_has_begun_on_its_track() {
    use TraceEvent::{Kick, LockAcquired, LockReleased, LockWait, Wake};
    let packets = trace(
        &[
            (0, switch(None, VcpuState::Runnable, Some(0))),
            (US, LockAcquired { vcpu: 0, lock: 0, waited: None }),
            (2 * US, LockAcquired { vcpu: 0, lock: 1, waited: None }),
            // Not in the order of acquisition.
            (3 * US, LockReleased { vcpu: 0, lock: 0 }),
            (4 * US, LockReleased { vcpu: 0, lock: 1 }),
            (5 * US, Wake { vcpu: 1, pcpu: Some(0) }),
            (6 * US, switch(Some(0), VcpuState::Runnable, Some(1))),
            (7 * US, LockWait { vcpu: 1, lock: 0 }),
            (8 * US, LockAcquired { vcpu: 1, lock: 0, waited: Some(WaitCauses::default()) }),
            (9 * US, LockReleased { vcpu: 1, lock: 0 }),
            (9 * US, Kick { from: 1, to: 0 }),
            (9 * US, LockWait { vcpu: 1, lock: 0 }),
        ],
        10 * US,
    );
    let mut described = Vec::new();
    let mut depth: BTreeMap<u64, i32> = BTreeMap::new();
    for packet in &packets {
        if let Some(d) = &packet.track_descriptor {
            described.push(d.uuid());
        }
        let Some(event) = &packet.track_event else { continue };
        assert!(described.contains(&event.track_uuid()), "a track is described before it is used");
        match event.r#type() {
            TrackEventType::SliceBegin => *depth.entry(event.track_uuid()).or_default() += 1,
            TrackEventType::SliceEnd => *depth.entry(event.track_uuid()).or_default() -= 1,
            _ => {}
        }
        assert!((0..=1).contains(&depth.get(&event.track_uuid()).copied().unwrap_or(0)));
    }
    // Only the wait that the end of the run cut off is still open.
    assert_eq!(depth.values().sum::<i32>(), 1);
    assert_eq!(packets[0].sequence_flags(), SEQ_INCREMENTAL_STATE_CLEARED);
}

#[test]
fn changes_are_instants_of_the_administrator() {
    let text = format!("{SCENARIO}[[event]]\nat = \"1us\"\ndomain = \"guest\"\npause = true\n");
    let scenario = scenario_file::parse("t", "t", &text, &[]).unwrap();
    let mut sink = PerfettoSink::new(&scenario, Vec::new()).unwrap();
    sink.record(US, TraceEvent::Change { event: 0 });
    let packets = Trace::decode(sink.finish(2 * US).unwrap().as_slice()).unwrap().packet;
    let track = packets.iter().filter_map(|p| p.track_descriptor.as_ref());
    let track = track.filter(|d| d.name() == "administrator").map(|d| d.uuid()).next().unwrap();
    let packet = packets.iter().find(|p| p.track_event.is_some()).unwrap();
    let event = packet.track_event.as_ref().unwrap();
    assert_eq!((packet.timestamp(), event.r#type()), (1_000, TrackEventType::Instant));
    assert_eq!(event.track_uuid(), track);
    assert_eq!(packet.interned_data.as_ref().unwrap().event_names[0].name(), "guest: paused");
}

#[test]
fn running_vcpus_leave_at_the_end() {
    let packets = trace(&[(US, switch(None, VcpuState::Runnable, Some(1)))], 5 * US);
    let switches: Vec<(u64, i32, i32)> = packets
        .iter()
        .filter_map(|p| p.ftrace_events.as_ref())
        .flat_map(|b| &b.event)
        .filter_map(|e| {
            e.sched_switch.as_ref().map(|s| (e.timestamp(), s.prev_pid(), s.next_pid()))
        })
        .collect();
    assert_eq!(switches, [(1_000, 0, 1001), (5_000, 1001, 0)]);
}

#[test]
fn a_full_disk_is_reported_once_at_the_end() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= 1;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = PerfettoSink::new(&scenario(), Full(10)).unwrap();
    for i in 0..100 {
        sink.record(i * US, TraceEvent::LockWait { vcpu: 0, lock: 0 });
    }
    assert_eq!(sink.finish(US).map(|_| ()).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_wait_ends_with_what_it_was_spent_on() {
    let causes = WaitCauses { own_preemption: 2 * US, line_transfer: US, ..WaitCauses::default() };
    let packets = trace(
        &[
            (US, TraceEvent::LockWait { vcpu: 1, lock: 0 }),
            (4 * US, TraceEvent::LockAcquired { vcpu: 1, lock: 0, waited: Some(causes) }),
        ],
        5 * US,
    );
    let names: BTreeMap<u64, String> = packets
        .iter()
        .filter_map(|p| p.interned_data.as_ref())
        .flat_map(|i| &i.debug_annotation_names)
        .map(|n| (n.iid(), n.name().to_owned()))
        .collect();
    let told: Vec<(&str, u64)> = packets
        .iter()
        .filter_map(|p| p.track_event.as_ref())
        .flat_map(|e| &e.debug_annotations)
        .map(|a| (names[&a.name_iid()].as_str(), a.uint_value()))
        .collect();
    assert_eq!(told, [("own preemption ns", 2_000), ("line transfer ns", 1_000)]);
}
