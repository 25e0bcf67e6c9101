#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -o NAME.pftrace, decoded by Google's protobuf and held against the JSON lines of the
same run: every slice, instant, name and value."""

import collections
import json
import os
import re
import subprocess
import sys

from claims import CAIRN, SECONDS, Skip, claim, claim_each, compile_c, expect, folder, main, run
from exports import PROGRAM, TELLING, VALUES
from tracing import trace

# Numbers and types as Perfetto publishes them.
FIELDS = {
    "Trace": [("packet", 1, "TracePacket", True)],
    "TracePacket": [("clock_snapshot", 6, "ClockSnapshot"),
                    ("timestamp", 8, "uint64"),
                    ("trusted_packet_sequence_id", 10, "uint32"),
                    ("track_event", 11, "TrackEvent"),
                    ("timestamp_clock_id", 58, "uint32"),
                    ("track_descriptor", 60, "TrackDescriptor")],
    "ClockSnapshot": [("clocks", 1, "Clock", True),
                      ("primary_trace_clock", 2, "int32")],
    "Clock": [("clock_id", 1, "uint32"), ("timestamp", 2, "uint64")],
    "TrackDescriptor": [("uuid", 1, "uint64"), ("parent_uuid", 5, "uint64"),
                        ("name", 2, "string"),
                        ("process", 3, "ProcessDescriptor"),
                        ("thread", 4, "ThreadDescriptor")],
    "ProcessDescriptor": [("pid", 1, "int32"), ("process_name", 6, "string")],
    "ThreadDescriptor": [("pid", 1, "int32"), ("tid", 2, "int32"),
                         ("thread_name", 5, "string")],
    "TrackEvent": [("debug_annotations", 4, "DebugAnnotation", True),
                   ("type", 9, "int32"), ("track_uuid", 11, "uint64"),
                   ("categories", 22, "string", True), ("name", 23, "string")],
    "DebugAnnotation": [("name", 10, "string"), ("bool_value", 2, "bool"),
                        ("uint_value", 3, "uint64"), ("int_value", 4, "int64"),
                        ("double_value", 5, "double"),
                        ("string_value", 6, "string"),
                        ("legacy_json_value", 9, "string"),
                        ("dict_entries", 11, "DebugAnnotation", True)],
}

GOOGLE = """
import json, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
KINDS = {"double": 1, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "uint32": 13}
fields = json.loads(sys.argv[1])
f = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto2")
for name, members in fields.items():
    m = f.message_type.add(name=name)
    for member, number, kind, *many in members:
        field = m.field.add(name=member, number=number, label=3 if many else 1, type=KINDS.get(kind, 11))
        if kind not in KINDS:
            field.type_name = ".t." + kind
pool = descriptor_pool.DescriptorPool()
pool.Add(f)
found = pool.FindMessageTypeByName("t.Trace")
get = getattr(message_factory, "GetMessageClass", None)
kind = get(found) if get else message_factory.MessageFactory(pool).GetPrototype(found)
def plain(message):
    ret = {}
    for field, value in message.ListFields():
        many = field.label == 3
        if field.message_type:
            ret[field.name] = [plain(v) for v in value] if many else plain(value)
        else:
            ret[field.name] = list(value) if many else value
    return ret
raw = sys.stdin.buffer.read()
trace = kind.FromString(raw)
assert trace.ByteSize() == len(raw) and trace.SerializeToString() is not None
print(json.dumps(plain(trace)["packet"]))
"""


def decode(path):
    python = next(
        (p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p)
         and run(p, "-c", "import google.protobuf").status == 0), None)
    if not python:
        raise Skip("python3-protobuf is not installed")
    with open(path, "rb") as file:
        done = subprocess.run(
            [python, "-c", GOOGLE, json.dumps(FIELDS)],
            stdin=file,
            capture_output=True,
            timeout=SECONDS,
            check=False)
    expect(done.returncode == 0, done.stderr.decode())
    return json.loads(done.stdout)


def value_of(annotation):
    if "legacy_json_value" in annotation:
        return json.loads(annotation["legacy_json_value"])
    return next((v for k, v in annotation.items() if k.endswith("_value")),
                None)


def annotations(event):
    """The site, and the values by name."""
    top = {a["name"]: a for a in event.get("debug_annotations", [])}
    dicts = {
        name:
        {e["name"]: value_of(e)
         for e in top[name].get("dict_entries", [])}
        for name in ("args", "results") if name in top
    }
    return value_of(top["site"]) if "site" in top else None, dicts


class Tracks:
    """The tracks as they are described, and the slices that are open in each."""

    def __init__(self):
        self.threads, self.processes, self.open = {}, {}, {}

    def describe(self, track):
        if "process" in track:
            self.processes[track["uuid"]] = track["process"]
        else:
            expect(
                self.processes[track["parent_uuid"]]["pid"] == track["thread"]
                ["pid"], track)
            self.threads[track["uuid"]] = track["thread"]


def events_of(packets):
    """(kind, time, thread's names, name, site, values) of each event, in the order of the file."""
    tracks, found = Tracks(), []
    for packet in packets:
        expect(packet["trusted_packet_sequence_id"] == 1, packet)
        if "track_descriptor" in packet:
            tracks.describe(packet["track_descriptor"])
        if "track_event" not in packet:
            continue
        event = packet["track_event"]
        expect(packet["timestamp_clock_id"] == 3, packet)
        thread = tracks.threads[event["track_uuid"]]
        kind = {1: "begin", 2: "end", 3: "instant"}[event["type"]]
        found.append((kind, packet["timestamp"], thread, event.get("name"),
                      *annotations(event)))
    return found, tracks


def traced(*words):
    """The JSON lines and the events of Perfetto's file, of one run."""
    lines, path = f"{folder()}/lines.json", f"{folder()}/run.pftrace"
    path_of = compile_c("perfetto", PROGRAM, flags=("-O2", "-g", "-pthread"))
    r = trace("--json",
              "-o",
              lines,
              "-o",
              path,
              "-c",
              path_of,
              *words,
              check=True)
    expect(r.out == "", r.out)
    *events, summary = map(json.loads, open(lines, encoding="utf-8"))
    expect(summary["lost"] == 0, summary)
    packets = decode(path)
    clocks = {
        c["clock_id"]: c["timestamp"]
        for c in packets[0]["clock_snapshot"]["clocks"]
    }
    expect(
        sorted(clocks) == [1, 3, 6]
        and 0 < events[0]["time_ns"] - clocks[3] < 60e9, clocks)
    return events, *events_of(packets)


def check_thread(thread, event):
    name = thread["thread_name"].replace("\\x0a", "\n")
    expect((thread["pid"], thread["tid"], name) == (event["pid"], event["tid"],
                                                    event["comm"]), thread,
           event)


@claim
def events_are_instants_with_all_their_values():
    events, found, tracks = traced(VALUES, "half", "top")
    expect(len(found) == len(events) > 100, len(found), len(events))
    for (kind, time, thread, name, site, values), e in zip(found, events):
        expect(
            kind == "instant"
            and (time, name, site) == (e["time_ns"], e["function"], e["site"]),
            name, e)
        expect(values.get("args", {}) == e["args"], values, e["args"])
        check_thread(thread, e)
    names = {p["process_name"] for p in tracks.processes.values()}
    expect(
        len(tracks.processes) == 1 and names <= {"perfetto-gcc", "other"},
        names)
    expect(len(tracks.threads) == 2, tracks.threads)


@claim
def a_duration_makes_a_slice():
    events, found, _ = traced("down(n, $ret, $duration)", "top(n, $duration)")
    expect(len(found) == 2 * len(events), len(found), len(events))
    for i, e in enumerate(events):
        (kind, begin, thread, name, site,
         values), end = found[2 * i], found[2 * i + 1]
        expect((kind, end[0]) == ("begin", "end") and name == e["function"]
               and site == e["site"], e)
        expect(
            begin == e["time_ns"] - e["args"]["$duration"]
            and end[1] == e["time_ns"], begin, e)
        expect(values["args"] == e["args"], values, e)
        check_thread(thread, e)
    check_nesting(found)


def check_nesting(found):
    """Within a thread, in the order of time, each end is that of the slice that began last."""
    depth = {}
    for kind, _, thread, *_ in sorted(found, key=lambda e: e[1]):
        tid = thread["tid"]
        depth[tid] = depth.get(tid, 0) + {
            "begin": 1,
            "end": -1,
            "instant": 0
        }[kind]
        expect(depth[tid] >= 0, tid)
    expect(not any(depth.values()), depth)


@claim
def calls_are_slices_also_those_that_longjmp_leaves():
    events, found, _ = traced("--graph", "down(n, $ret)", "top(n)", "half")
    rest = [f for f in found if f[0] != "end" or f[5]]
    shown = [
        e for e in events
        if e.get("call") != "return" or e["function"] == "down"
    ]
    expect(len(rest) == len(shown), len(rest), len(shown))
    for (kind, time, thread, name, site, values), e in zip(rest, shown):
        expect(
            kind == {
                "entry": "begin",
                "return": "end",
                None: "instant"
            }[e.get("call")], kind, e)
        expect(time == e["time_ns"], time, e)
        if kind == "end":
            expect(values == {"results": {
                "$ret": e["args"]["$ret"]
            }}, values, e)
        else:
            args = {k: v for k, v in e["args"].items() if k != "$ret"}
            expect((name, site, values.get("args", {})) == (e["function"],
                                                            e["site"], args),
                   values, e)
        check_thread(thread, e)
    check_nesting(found)
    expect(
        sum(f[0] == "end"
            for f in found) > sum(e.get("call") == "return" for e in events),
        "no longjmp()")


def slices_of(packets):
    """(name, begin, end, values) of the slices of each track, which nest."""
    found = []
    events, tracks = [], collections.defaultdict(list)
    for packet in packets:
        if "track_event" in packet:
            events.append(
                (packet["timestamp"], len(events), packet["track_event"]))
    for time, _, event in sorted(events, key=lambda e: e[:2]):
        open_ = tracks[event["track_uuid"]]
        if event["type"] == 1:
            open_.append((time, event))
        elif event["type"] == 2:
            begin, first = open_.pop()
            values = annotations(first)[1] | annotations(event)[1]
            found.append((first["name"], begin, time, values))
    return found


@claim
def after_losses_a_slice_has_its_own_end_and_result():
    path = f"{folder()}/lossy.pftrace"
    program = compile_c("telling", TELLING, flags=("-O2", "-g"))
    r = trace("--graph",
              "--ring",
              "4",
              "-o",
              path,
              "-c",
              f"{program} 20000",
              "leaf(a, $ret)",
              "mid(a, $ret)",
              check=True)
    expect(re.search(r", [1-9]\d* lost", r.err), r.err)
    packets = decode(path)
    told = {
        a["name"]: a["uint_value"]
        for a in packets[-1]["track_event"]["debug_annotations"]
    }
    lost = sum(map(int, re.findall(r"(\d+) lost", r.err)))
    expect(told["lost"] == lost and told["entries_lost"] > 0, told, r.err)
    slices = slices_of(packets)
    with_result = [s for s in slices if "results" in s[3]]
    expect(0 < len(with_result) < len(slices), len(with_result), len(slices))
    for name, begin, end, values in with_result:
        times = 10 if name == "mid" else 1
        expect(
            values["results"]["$ret"] == times * values["args"]["a"]
            and begin < end, name, values)


@claim_each("a.perfetto", "b.perfetto-trace")
def names_that_perfettos_tools_use_mean_the_format(name):
    path = f"{folder()}/{name}"
    program = compile_c("perfetto", PROGRAM, flags=("-O2", "-g", "-pthread"))
    r = trace("-o", path, "-c", program, "top()", check=True)
    expect(r.out == "" and len(events_of(decode(path))[0]) == 80, r)
    r = trace("-o", path, "-c", program, "--count", "top")
    expect(r.status == 2 and "for events" in r.err, r)
    r = trace("-o", f"{folder()}/no/such/{name}", "-c", program, "top")
    expect(r.status in (1, 2) and name in r.err, r)
    limited = f"trap '' XFSZ; ulimit -f 8; exec {CAIRN} trace -o {path} -c {program} half top"
    r = run("sh", "-c", limited)
    expect(r.status == 3 and f"cannot write {path}" in r.err, r)
    expect(events_of(decode(path))[0], "what was written is whole")


main()
