"""Reads a trace with the message definitions of PyPI's package perfetto and prints what is in it, as JSON.

Checks what the definitions do not: every track and name is introduced before its use, slices begin before they end, and
every flow that ends somewhere began. (The trace_processor itself is not in the package; it would be downloaded.)
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
unknown = [field for packet in trace.packet for field in packet.ListFields() if field[0].name not in (
    "timestamp", "trusted_packet_sequence_id", "sequence_flags", "interned_data", "track_event", "track_descriptor")]
assert not unknown, unknown

tracks, names, notes = {}, {}, {}
depth, last = collections.Counter(), {}
begun, ended = set(), set()
seen = collections.Counter()
slices, counters = collections.Counter(), set()
for number, packet in enumerate(trace.packet):
    assert packet.trusted_packet_sequence_id, "a packet of a sequence"
    assert packet.sequence_flags == (1 if number == 0 else 2), "numbers of names begin with the first packet"
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_names:
        notes[entry.iid] = entry.name
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid and track.uuid not in tracks
        assert not track.parent_uuid or track.parent_uuid in tracks
        tracks[track.uuid] = track
        kind = "counter" if track.HasField("counter") else "thread" if track.HasField("thread") else (
            "process" if track.HasField("process") else "other")
        seen[kind + " tracks"] += 1
    if packet.HasField("track_event"):
        event = packet.track_event
        track = tracks[event.track_uuid]
        name = names[event.name_iid] if event.name_iid else event.name
        for note in event.debug_annotations:
            assert note.name_iid in notes
        assert event.type == event.TYPE_COUNTER or packet.timestamp >= last.get(event.track_uuid, 0)
        if track.HasField("thread"):
            last[event.track_uuid] = packet.timestamp
        if event.type == event.TYPE_SLICE_BEGIN:
            depth[event.track_uuid] += 1
            slices[name] += 1
        elif event.type == event.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
            assert depth[event.track_uuid] >= 0, "an end without begin"
        elif event.type == event.TYPE_COUNTER:
            assert track.HasField("counter") and event.HasField("counter_value")
            counters.add(event.track_uuid)
        else:
            assert event.type == event.TYPE_INSTANT
        seen[pb.TrackEvent.Type.Name(event.type)] += 1
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
assert ended <= begun, "an arrow without begin"
assert sorted(counters) == sorted(uuid for uuid, track in tracks.items() if track.HasField("counter"))
json.dump({"seen": seen, "slices": slices, "flows": len(ended)}, sys.stdout, sort_keys=True)
