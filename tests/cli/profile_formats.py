# SPDX-License-Identifier: BSD-2-Clause
"""Formats of profiles, read by what they are: traces in CTF 1.8 and the Firefox Profiler's tables.
"""

import collections
import os
import re
import struct

from claims import expect

CONTEXT = "<iiQ"
# Members of each event, by its id: of fixed size, s for a string, b for bytes after their 64-bit
# number, a for addresses after their 32-bit one.
EVENTS = {0: ("start", ""), 1: ("bin_info", "QQsBBB"), 2: ("build_id", "Qb"), 3: ("end", ""),
          4: ("frame", "QIBBsssIsQ"), 5: ("sample", "QqBissa")}
FRAME = ("stack", "depth", "inlined", "code", "function", "linkage", "file", "line", "module",
         "offset")
SAMPLE = ("stack", "value", "has_time", "cpu", "thread", "end", "callchain")


def member(kind, data, at):
    if kind == "s":
        end = data.index(b"\0", at)
        return data[at:end], end + 1
    if kind in "ab":
        count, = struct.unpack_from("<I" if kind == "a" else "<Q", data, at)
        at += 4 if kind == "a" else 8
        size = count * (8 if kind == "a" else 1)
        values = struct.unpack_from(f"<{count}Q", data, at) if kind == "a" else data[at:at + size]
        return values, at + size
    return struct.unpack_from("<" + kind, data, at)[0], at + struct.calcsize("<" + kind)


def ctf_events(path):
    """(name, timestamp, vpid, vtid, ip, members) of all events, in order."""
    with open(os.path.join(path, "metadata"), encoding="utf-8") as file:
        expect(file.read().startswith("/* CTF 1.8 */"))
    with open(os.path.join(path, "stream"), "rb") as file:
        data = file.read()
    magic, stream, begin, end, content, size = struct.unpack_from("<IIQQQQ", data)
    expect((magic, stream, begin) == (0xc1fc1fc1, 0, 0) and content == size == len(data) * 8, magic,
           stream, content, size, len(data))
    at, found = 40, []
    while at < len(data):
        number, time = struct.unpack_from("<IQ", data, at)
        context = struct.unpack_from(CONTEXT, data, at + 12)
        at += 12 + struct.calcsize(CONTEXT)
        name, kinds = EVENTS[number]
        members = []
        for kind in kinds:
            value, at = member(kind, data, at)
            members.append(value)
        found.append((name, time, *context, members))
    times = [event[1] for event in found]
    expect(at == len(data) and times == sorted(times) and end == max([0, *times]), at, len(data),
           end)
    expect(not any(member == b"" for event in found for member in event[5]),
           "an empty string, which babeltrace2 shows as another one")
    return found


def samples_of(found):
    return [
        dict(zip(SAMPLE, members), time=time, vpid=vpid, vtid=vtid, ip=ip)
        for name, time, vpid, vtid, ip, members in found
        if name == "sample"
    ]


def frames_of(found):
    return [
        dict(zip(FRAME, members), vpid=vpid, ip=ip)
        for name, _, vpid, _, ip, members in found
        if name == "frame"
    ]


def ctf_folded(found):
    """The folded stacks, rebuilt from the events."""
    stacks = collections.defaultdict(list)
    for frame in frames_of(found):
        expect(frame["depth"] == len(stacks[frame["stack"]]), frame)
        mark = "_[i]" if frame["inlined"] else ("", "_[k]", "_[j]")[frame["code"]]
        stacks[frame["stack"]].append(frame["function"].decode().replace(";", ":") + mark)
    sums = collections.Counter()
    for sample in samples_of(found):
        sums[";".join(reversed(stacks[sample["stack"]])) or "[no stack]"] += sample["value"]
    return {stack: value for stack, value in sums.items() if value}


def ns(number):
    """Milliseconds, as they are written, in nanoseconds."""
    sign, whole, _, part = re.fullmatch(r"(-?)(\d+)(\.(\d{6}))?", str(number)).groups()
    return (-1 if sign else 1) * (int(whole) * 1000000 + int(part or 0))


def firefox_folded(p):
    """The folded stacks, rebuilt from the tables."""
    shared, marks = p["shared"], {"User": "", "Other": "", "Kernel": "_[k]", "JIT": "_[j]"}
    frames, names = shared["frameTable"], []
    for i in range(frames["length"]):
        name = shared["stringArray"][shared["funcTable"]["name"][frames["func"][i]]]
        name = "".join(":" if c == ";" else c for c in name)
        mark = marks[p["meta"]["categories"][frames["category"][i]]["name"]]
        names.append(name + ("_[i]" if frames["inlineDepth"][i] else mark))
    stacks = []
    for frame, offset in zip(shared["stackTable"]["frame"], shared["stackTable"]["prefixOffset"]):
        stacks.append((stacks[len(stacks) - offset] + ";" if offset else "") + names[frame])
    sums = collections.Counter()
    for thread in p["threads"]:
        samples = thread["samples"]
        for stack, weight in zip(samples["stack"], samples["weight"]):
            sums[stacks[stack]] += ns(weight) if samples["weightType"] == "tracing-ms" else int(
                weight)
    return dict(sums)
