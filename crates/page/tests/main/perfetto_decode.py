"""Decodes a trace with Perfetto's own message definitions and prints its totals as JSON."""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

names = {}  # interned slice names
argument_names = {}  # interned names of arguments
arguments = collections.Counter()  # their sums
threads = {}  # track uuid -> thread name
parents = {}  # track uuid -> parent uuid
open_slices = collections.defaultdict(list)  # track uuid -> [(name, begin)]
slices = collections.defaultdict(lambda: {"count": 0, "ns": 0})
unended = 0
instants = 0
on_cpu = {}  # cpu -> (thread name, since)
running = collections.Counter()
wakings = 0
track_names = {}  # track uuid -> name
counters = {}  # name of the counter -> [(timestamp, value)]
flows = collections.defaultdict(list)  # flow -> the slices that it passes
attributes = {}
last = collections.defaultdict(int)  # cpu -> last timestamp


def owner(uuid):
    while uuid not in threads:
        uuid = parents[uuid]
    return threads[uuid]


def unknown(message):
    """Whether fields would vanish silently because Perfetto does not know them."""
    return message.ByteSize() != type(message).FromString(message.SerializeToString()).ByteSize()


for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    assert not unknown(packet)
    for name in packet.interned_data.event_names:
        names[name.iid] = name.name
    for name in packet.interned_data.debug_annotation_names:
        argument_names[name.iid] = name.name
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        if track.HasField("thread"):
            threads[track.uuid] = track.thread.thread_name
            assert 1000 <= track.thread.tid
        parents[track.uuid] = track.parent_uuid
        if track.HasField("process"):
            track_names[track.uuid] = track.process.process_name
        elif track.HasField("name"):
            track_names[track.uuid] = track.name
        if track.HasField("counter"):
            assert track.counter.unit == pb.CounterDescriptor.UNIT_COUNT
    for attribute in packet.trace_attributes.attribute:
        attributes[attribute.key] = attribute.string_value
    if packet.HasField("track_event"):
        event = packet.track_event
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp))
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            name, begin = open_slices[event.track_uuid].pop()
            entry = slices[owner(event.track_uuid) + "|" + name]
            entry["count"] += 1
            entry["ns"] += packet.timestamp - begin
            for argument in event.debug_annotations:
                arguments[f"{name}: {argument_names[argument.name_iid]}"] += argument.uint_value
        elif event.type == pb.TrackEvent.TYPE_INSTANT and track_names[event.track_uuid] == "run":
            for argument in event.debug_annotations:
                assert attributes["overspin." + argument.name] == argument.string_value
        elif event.type == pb.TrackEvent.TYPE_INSTANT:
            instants += 1
            owner(event.track_uuid)
        elif event.type == pb.TrackEvent.TYPE_COUNTER:
            above = track_names.get(parents[event.track_uuid])
            name = track_names[event.track_uuid]
            counter = counters.setdefault(f"{above}|{name}" if above else name, [])
            counter.append([packet.timestamp, event.counter_value])
        for flow in list(event.flow_ids) + list(event.terminating_flow_ids):
            flows[flow].append(f"{owner(event.track_uuid)}|{names[event.name_iid]}")
    if packet.HasField("ftrace_events"):
        cpu = packet.ftrace_events.cpu
        for event in packet.ftrace_events.event:
            assert event.timestamp >= last[cpu], "a CPU's events are in order"
            last[cpu] = event.timestamp
            if event.HasField("sched_switch"):
                switch = event.sched_switch
                before, since = on_cpu.get(cpu, ("swapper", 0))
                assert before == switch.prev_comm, (before, switch.prev_comm)
                if before != "swapper":
                    running[before] += event.timestamp - since
                on_cpu[cpu] = (switch.next_comm, event.timestamp)
            if event.HasField("sched_waking"):
                wakings += 1

unended = sum(len(stack) for stack in open_slices.values())
json.dump(
    {
        "running_ns": running,
        "slices": slices,
        "arguments": arguments,
        "unended": unended,
        "instants": instants,
        "wakings": wakings,
        "counters": counters,
        "flows": flows,
        "attributes": attributes,
    },
    sys.stdout,
)
