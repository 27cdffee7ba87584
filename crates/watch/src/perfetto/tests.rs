use super::messages::Trace;
use super::*;
use overspin_runs::scenario_file;
use overspin_scenario::{US, Why};
use overspin_testing::TWO_ON_ONE;
use prost::Message;

fn scenario() -> Scenario {
    scenario_file::parse("t", "t", TWO_ON_ONE, &[]).unwrap()
}

fn switch(prev: Option<u32>, prev_state: VcpuState, next: Option<u32>) -> Moment {
    Moment::Switch { pcpu: 0, prev, prev_state, why: None, next }
}

fn waits(vcpu: u32, lock: u32) -> Moment {
    Moment::LockWait { vcpu, lock, holder: None, releasing: false }
}

fn got(vcpu: u32, lock: u32, contended: bool) -> Moment {
    Moment::LockAcquired { vcpu, lock, contended }
}

fn released(vcpu: u32, lock: u32) -> Moment {
    Moment::LockReleased { vcpu, lock, contended: false }
}

fn trace(events: &[(Picos, Moment)], end: Picos) -> Vec<TracePacket> {
    let mut sink = PerfettoSink::new(&scenario(), 1, Vec::new()).unwrap();
    for (at, event) in events {
        sink.record(*at, event);
    }
    Trace::decode(sink.finish(end).unwrap().as_slice()).unwrap().packet
}

#[test]
fn every_slice_that_ends_has_begun_on_its_track() {
    use Moment::{Kick, Wake};
    let packets = trace(
        &[
            (Picos::ZERO, switch(None, VcpuState::Runnable, Some(0))),
            (US, got(0, 0, false)),
            (2 * US, got(0, 1, false)),
            // The order of release differs from that of acquisition.
            (3 * US, released(0, 0)),
            (4 * US, released(0, 1)),
            (5 * US, Wake { vcpu: 1, pcpu: Some(0), runnable: true }),
            (6 * US, switch(Some(0), VcpuState::Runnable, Some(1))),
            (7 * US, waits(1, 0)),
            (8 * US, got(1, 0, true)),
            (9 * US, released(1, 0)),
            (9 * US, Kick { from: 1, to: 0 }),
            (9 * US, waits(1, 0)),
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
    let text = format!("{TWO_ON_ONE}[[event]]\nat = \"1us\"\ndomain = \"guest\"\npause = true\n");
    let scenario = scenario_file::parse("t", "t", &text, &[]).unwrap();
    let mut sink = PerfettoSink::new(&scenario, 1, Vec::new()).unwrap();
    sink.record(US, &Moment::Change { event: 0 });
    let packets = Trace::decode(sink.finish(2 * US).unwrap().as_slice()).unwrap().packet;
    let track = packets.iter().filter_map(|p| p.track_descriptor.as_ref());
    let track = track.filter(|d| d.name() == "administrator").map(|d| d.uuid()).next().unwrap();
    let of_track =
        |p: &&TracePacket| p.track_event.as_ref().is_some_and(|e| e.track_uuid() == track);
    let packet = packets.iter().find(of_track).unwrap();
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
    let mut sink = PerfettoSink::new(&scenario(), 1, Full(30)).unwrap();
    for i in 0..100 {
        sink.record(i * US, &waits(0, 0));
    }
    assert_eq!(sink.finish(US).map(|_| ()).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_wait_ends_with_what_it_was_spent_on() {
    let (prev, prev_state) = (Some(1), VcpuState::Runnable);
    let preempted = Moment::Switch { pcpu: 0, prev, prev_state, why: Some(Why::Slice), next: None };
    let packets = trace(
        &[
            (Picos::ZERO, switch(None, VcpuState::Runnable, Some(1))),
            (Picos::ZERO, Moment::Runs { vcpu: 1, pcpu: 0 }),
            (US, waits(1, 0)),
            // Off its pCPU for two microseconds, while no vCPU has the lock.
            (2 * US, preempted),
            (4 * US, switch(None, VcpuState::Runnable, Some(1))),
            (4 * US, Moment::Runs { vcpu: 1, pcpu: 0 }),
            (4 * US, got(1, 0, true)),
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
        // The facts about the run have names of their own.
        .filter(|a| a.name.is_none())
        .map(|a| (names[&a.name_iid()].as_str(), a.uint_value()))
        .collect();
    assert_eq!(told, [("own preemption ns", 2_000), ("line transfer ns", 1_000)]);
}

#[test]
fn tasks_that_take_locks_in_user_mode_are_threads_with_their_waits() {
    let text = "limit = \"100ms\"\nwarmup = \"0\"\n[host]\ncores = 1\n[[domain]]\nname = \"program\"\nvcpus = 1\nlock = \"mutex\"\n\
                workload = { kind = \"lock-loop\", threads = 3, mode = \"user\", section = \"50us\", outside = \"50us\" }\n";
    let scenario = scenario_file::parse("t", "t", text, &[]).unwrap();
    let mut sink = PerfettoSink::new(&scenario, 1, Vec::new()).unwrap();
    let world = overspin_runs::catalog::catalog().simulator();
    let outcome = overspin_host::run(world, &scenario, 1, &mut sink, &()).unwrap();
    let bytes = sink.finish(outcome.elapsed).unwrap();
    let packets = Trace::decode(bytes.as_slice()).unwrap().packet;
    let threads: Vec<(i32, String)> = packets
        .iter()
        .filter_map(|p| p.process_tree.as_ref())
        .flat_map(|tree| &tree.threads)
        .map(|t| (t.tid(), t.name().to_owned()))
        .collect();
    let mut names: Vec<&str> = threads.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    // The host has noise.
    assert_eq!(
        names,
        ["noise/0/v0", "program/loop0", "program/loop1", "program/loop2", "program/v0"]
    );

    // By track: its name and its thread; by interned number: the name of a slice.
    let tracks: BTreeMap<u64, (String, u64)> = packets
        .iter()
        .filter_map(|p| p.track_descriptor.as_ref())
        .map(|d| (d.uuid(), (d.name().to_owned(), d.parent_uuid())))
        .collect();
    let mut slices: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut open: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let mut interned: BTreeMap<u64, String> = BTreeMap::new();
    for packet in &packets {
        for name in packet.interned_data.iter().flat_map(|i| &i.event_names) {
            interned.insert(name.iid(), name.name().to_owned());
        }
        let Some(event) = &packet.track_event else { continue };
        match event.r#type() {
            TrackEventType::SliceBegin => {
                let begun = (interned[&event.name_iid()].clone(), packet.timestamp());
                assert!(open.insert(event.track_uuid(), begun).is_none(), "slices do not overlap");
            }
            TrackEventType::SliceEnd => {
                let (name, since) = open.remove(&event.track_uuid()).unwrap();
                let (count, time) = slices.entry(name).or_default();
                *count += 1;
                *time += packet.timestamp() - since;
            }
            _ => {}
        }
        assert!(tracks.contains_key(&event.track_uuid()), "a track is described before it is used");
    }
    let lock = &outcome.domains[0].locks[0];
    let (waits, waited) = slices["wait section"];
    assert_eq!(waits, lock.contended);
    assert!(waited.abs_diff(lock.wait_total / NS) <= waits, "{waited} ns, {lock:?}");
    let (_, on) = slices["on program/v0"];
    assert!(
        on <= outcome.elapsed / NS && on > outcome.elapsed / NS * 9 / 10,
        "{on} ns on the vCPU"
    );
    assert!(slices.contains_key("asleep") && slices.contains_key("wants a vCPU"), "{slices:?}");
}
