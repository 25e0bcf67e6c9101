#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile push --otlp: what arrives at a collector of OpenTelemetry, and what becomes of its
answers."""

import email.utils
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import otlp
from claims import (SOURCE, Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need,
                    run, write)
from profiles import FOLDED, field
from profiles import pprof as make_pprof
from receiver import (EXPORT, SECONDS, TYPES, Receiver, answer, answer_html, answer_noise,
                      answer_without_end, close_without_answer)

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
PROTO = TYPES[EXPORT]
MINUTE = "60"
os.environ["no_proxy"] = "127.0.0.1"
_spools = 0


def new_spool():
    global _spools
    _spools += 1
    return os.path.join(folder(), f"spool-{_spools}")


def push(url, *words, spool=None, **kwargs):
    r = cairn("profile", "push", url, "--otlp", "--spool", spool or new_spool(), "--timeout",
              MINUTE, *words, **kwargs)
    if "needs libcurl" in r.err:
        raise Skip("libcurl.so.4 is not installed")
    return r


def pprof(name="p"):
    """A profile in pprof's format, of folded stacks."""
    path = os.path.join(folder(), name + ".pb.gz")
    if not os.path.exists(path):
        cairn("profile", "show", write(name + ".folded", FOLDED), "-o", path, check=True)
    return path


def batches(spool):
    return [
        name.rsplit(".", 1)[1] for name in sorted(os.listdir(spool)) if re.match(r"\d{20}-", name)
    ]


def summary(r):
    return r.objects()[-1]


def arrived(*words, **kwargs):
    """What one push sends."""
    with Receiver() as receiver:
        r = push(receiver.url, *words, **kwargs)
    expect(r.status == 0 and len(receiver.taken) == 1, r)
    return receiver.taken[0]


# ---- what arrives, beside the JSON of the same profile ----

def objects(path):
    """The samples in a profile's JSON, and its summary."""
    *samples, last = (json.loads(line)
                      for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines())
    return samples, last


NAMES = {"process.pid": "pid", "thread.id": "tid", "thread.name": "thread"}


def plain_name(name):
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def frame_of(frame):
    """A frame of the JSON as OTLP can have it: the files of the kernel and of JIT code have the
    names that pprof knows."""
    frame = dict(frame)
    if "module" in frame and frame.get("code") == "jit":
        frame["module"] = "[jit]"
    elif "module" in frame and frame.get(
            "code") == "kernel" and not frame["module"].startswith("["):
        frame["module"] = "[kernel.kallsyms]"
    return frame


def labels_of(attributes):
    return {NAMES.get(key, key): value for key, value in attributes.items()}


def compare(request, samples, last):
    """All samples, frames, lines, values and labels of a request with those of the JSON."""
    types = list(last["units"])
    expect([request.type(p["sample_type"]) for p in request.profiles] == [
        (plain_name(t), plain_name(last["units"][t])) for t in types[-1:] + types[:-1]
    ], last)
    for profile, kind in zip(request.profiles, types[-1:] + types[:-1]):
        found = [(stack, labels_of(attributes), value)
                 for stack, attributes, value, _ in request.samples(profile)]
        wanted = [([frame_of(f)
                    for f in s["stack"]], s["labels"], s["values"][kind])
                  for s in samples]
        expect(len(found) == len(wanted), len(found), len(wanted))
        for one, other in zip(found, wanted):
            expect(one == other, one, other)
        # One without a time is pushed as of now.
        expect(profile["time_unix_nano"] == last["time_ns"] or not last["time_ns"], profile, last)
        expect(profile["duration_nano"] == last["duration_ns"], profile, last)
        expect(profile["period"] == last["period"], profile, last)


def pushed_with_json(path, *words):
    out = os.path.join(folder(), "same.json")
    cairn("profile", "show", path, "-o", out, check=True)
    request = otlp.Request(arrived(path, *words).raw)
    return request, *objects(out)


def with_time(message):
    return field(9, 1600000000000000000) + field(10, 5000000000) + field(12, 10000000) + message


def profiles_of_others():
    threads = [(7, 8, b"one"), (7, 9, b"two"), (10, 10, b"one")]
    names = [b"main", b"work", b"put\xc3\xbc", b"\xe4\xb8\x80"]
    stacks = [([i % 4, (i // 4) % 4, 0], i + 1) for i in range(16)]
    return {"folded stacks": pathlib.Path(pprof()).read_bytes(),
            "threads": with_time(make_pprof(names, stacks, threads=threads)),
            "negative": with_time(make_pprof(names, [([0], -5), ([1, 0], 1 << 62)], unit=b"bytes"))}


@claim_each("folded stacks", "threads", "negative")
def a_profile_arrives_as_its_json_says(kind):
    path = write(kind.replace(" ", "-") + ".pb", profiles_of_others()[kind])
    request, samples, last = pushed_with_json(path)
    expect(samples, last)
    compare(request, samples, last)


@claim
def a_label_of_another_tool_that_comes_again_keeps_all_its_values():
    strings = [b"", b"events", b"count", b"k", b"v", b"bytes", b"w"]
    labels = (field(3, field(1, 3) + field(2, 4)) + field(3, field(1, 3) + field(2, 6))
              + field(3, field(1, 6) + field(3, 4096) + field(4, 5)))
    message = (
        field(1,
              field(1, 1) + field(2, 2)) + field(2,
                                                 field(1, b"\x01") + field(2, b"\x07") + labels)
        + field(4,
                field(1, 1) + field(3, 0x40)) + b"".join(field(6, text) for text in strings))
    request, samples, last = pushed_with_json(write("labels.pb", with_time(message)))
    compare(request, samples, last)
    expect(samples[0]["labels"] == {"k": "v", "k#2": "w", "w": 4096}, samples)
    units = {
        request.strings[a["key_strindex"]]: request.strings[a["unit_strindex"]]
        for a in request.tables["attribute_table"][1:]
    }
    expect(units == {"k": "", "k#2": "", "w": "bytes"}, units)


@claim
def a_request_has_its_resource_scope_ids_and_head():
    request = arrived(pprof(), "--label", "service_name=shop", "--label",
                      "deployment.environment.name=a=b \"ü", "--label", "host.name=h1")
    expect(request.path == EXPORT and request.headers["User-Agent"] == "cairn", request.path)
    expect(
        request.labels == {
            "service.name": "shop", "deployment.environment.name": "a=b \"ü", "host.name": "h1"
        }, request.labels)
    expect(re.fullmatch(UUID, request.key) and request.id == request.key, request.key, request.id)
    decoded = otlp.Request(request.raw)
    version = cairn("--version").out.split()[1].rstrip(",")
    expect(
        (decoded.scope["scope"]["name"], decoded.scope["scope"]["version"]) == ("cairn", version),
        decoded.scope["scope"])
    expect(decoded.schemas == {"https://opentelemetry.io/schemas/1.44.0"}, decoded.schemas)
    text = pathlib.Path(SOURCE, "docs", "formats", "otlp.md").read_text(encoding="utf-8")
    expect(otlp.VERSION in text and EXPORT in text and "1.44.0" in text, "docs/formats/otlp.md")
    expect(
        otlp.VERSION in pathlib.Path(
            SOURCE, "src/live/export/otlp.proto").read_text(encoding="utf-8"), "otlp.proto")


@claim
def without_labels_the_service_is_cairn():
    expect(arrived(pprof()).labels == {"service.name": "cairn"}, "labels")


@claim
def ids_of_profiles_differ_and_stay_when_it_is_sent_again():
    raw = pathlib.Path(write("two.pb", with_time(make_pprof([b"main"], [([0], 1)])))).read_bytes()
    with Receiver([503, 200]) as receiver:
        spool = new_spool()
        push(receiver.url, write("two.pb", raw), spool=spool)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["perhaps_twice"] == 1, r)
    first, second = receiver.seen
    expect(first.body == second.body and first.key == second.key, first.key, second.key)


# ---- other implementations ----

def python_with_protobuf():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and run(python, "-c", "import google.protobuf").status == 0:
            return python
    raise Skip("python3-protobuf is not installed")


GOOGLE = """
import sys
sys.path.insert(0, sys.argv[1])
import otlp
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
KINDS = {"double": 1, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}
f = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="t", syntax="proto3")
for name in otlp.FIELDS:
    m = f.message_type.add(name=name)
    if name == otlp.ONE_OF:
        m.oneof_decl.add(name="value")
    for number, (member, kind, many) in otlp.fields_of(name).items():
        field = m.field.add(name=member, number=number, label=3 if many else 1, type=KINDS.get(kind, 11))
        if kind not in KINDS:
            field.type_name = ".t." + kind
        if name == otlp.ONE_OF:
            field.oneof_index = 0
pool = descriptor_pool.DescriptorPool()
pool.Add(f)
kind = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("t.ExportProfilesServiceRequest"))
raw = sys.stdin.buffer.read()
request = kind.FromString(raw)
def plain(message, name):
    if name == otlp.ONE_OF:
        which = message.WhichOneof("value")
        return {which: getattr(message, which)}
    found = {}
    for member, kind, many in otlp.fields_of(name).values():
        value = getattr(message, member)
        if kind in KINDS:
            found[member] = list(value) if many else value
        elif many:
            found[member] = [plain(one, kind) for one in value]
        else:
            found[member] = plain(value, kind) if message.HasField(member) else None
    return found
assert request.SerializeToString(deterministic=True)
print(plain(request, "ExportProfilesServiceRequest") == otlp.decode("ExportProfilesServiceRequest", raw),
      len(request.dictionary.stack_table), request.ByteSize() == len(raw))
"""


@claim_each("folded stacks", "threads", "negative")
def googles_protobuf_decodes_the_same(kind):
    python = python_with_protobuf()
    request = arrived(write("google.pb", profiles_of_others()[kind]))
    done = subprocess.run(
        [python, "-c", GOOGLE, os.path.join(SOURCE, "tests", "cli")], input=request.raw,
        capture_output=True, timeout=SECONDS, check=False)
    n = len(otlp.Request(request.raw).tables["stack_table"])
    expect(done.stdout.decode().split() == ["True", str(n), "True"] and n > 2, done.stdout,
           done.stderr)

PPROF = """
package main

import (
	"encoding/json"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	p, err := profile.Parse(os.Stdin)
	if err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	for _, s := range p.Sample {
		var names []string
		var lines []int64
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
				lines = append(lines, line.Line)
			}
		}
		out.Encode(map[string]interface{}{"names": names, "lines": lines, "values": s.Value, "labels": s.Label, "numbers": s.NumLabel})
	}
}
"""
GO_PATH = "/usr/share/gocode"


@claim_each("folded stacks", "threads", "negative")
def pprofs_own_package_reads_the_same_from_the_same_profile(kind):
    need("go")
    if not os.path.isdir(os.path.join(GO_PATH, "src/github.com/google/pprof/profile")):
        raise Skip("golang-github-google-pprof-dev is not installed")
    top = os.path.join(folder(), "go")
    os.makedirs(os.path.join(top, "src", "reads"), exist_ok=True)
    pathlib.Path(top, "src", "reads", "main.go").write_text(PPROF, encoding="utf-8")
    env = dict(os.environ, HOME=folder(), GOPATH=f"{top}:{GO_PATH}", GO111MODULE="off",
               GOTOOLCHAIN="local", GOFLAGS="")
    program = os.path.join(top, "reads")
    if not os.path.exists(program):
        r = run("go", "build", "-o", program, "reads", env=env)
        expect(r.status == 0, r)
    path = write(f"go-{kind.split()[0]}.pb", profiles_of_others()[kind])
    gz = os.path.join(folder(), "go.pb.gz")
    cairn("profile", "show", path, "-o", gz, check=True)
    done = subprocess.run([program], input=pathlib.Path(gz).read_bytes(), capture_output=True,
                          timeout=SECONDS, check=True)
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    request = otlp.Request(arrived(path).raw)
    ours = request.samples(request.profiles[0])
    expect(len(theirs) == len(ours) > 0, len(theirs), len(ours))
    for (stack, attributes, value, _), other in zip(ours, theirs):
        expect([f["function"] for f in stack] == (other["names"] or []), stack, other)
        expect([f.get("line", 0) for f in stack] == (other["lines"] or []), stack, other)
        expect(other["values"] == [value], value, other)
        labels = {**(other["labels"] or {}), **(other["numbers"] or {})}
        expect({key: [found]
                for key, found in labels_of(attributes).items()} == labels, attributes, other)


# ---- a run ----

SPIN = """
static inline __attribute__((always_inline)) void inner(volatile unsigned long *n) { while (*n < 300000000ul) (*n)++; }
__attribute__((noinline)) unsigned long outer(void)
{
	volatile unsigned long n = 0;
	inner(&n);
	return n;
}
int main(void) { return outer() == 1; }
"""


def need_root(r):
    if "CAP_BPF" in r.err or "needs Linux" in r.err:
        raise Skip("not permitted here")


@claim
def a_run_agrees_with_its_json_and_has_build_ids_times_and_its_process():
    if os.geteuid() != 0:
        raise Skip("needs root")
    out, trace, spool = (os.path.join(folder(), name)
                         for name in ("run.json", "run.ctf", "spool-run"))
    program = compile_c(
        "spin", SPIN,
        flags=("-O2", "-g", "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567"))
    with Receiver() as receiver:
        r = cairn("profile", "-c", program, "-F", "499", "--json", "-o", out, "-o", trace, "--push",
                  receiver.url, "--otlp", "--spool", spool, "--label", "service_name=spin",
                  "--no-cache")
    need_root(r)
    expect(r.status == 0 and "1 sent" in r.err and len(receiver.taken) == 1, r)
    request = otlp.Request(receiver.taken[0].raw)
    samples, last = objects(out)
    compare(request, samples, last)
    pids = {sample["labels"]["pid"] for sample in samples}
    wanted = {"service.name": "spin", "host.name": socket.gethostname()}
    expect(
        request.resource == (dict(wanted, **{"process.pid": next(iter(pids))})
                             if len(pids) == 1 else wanted), request.resource)
    expect(request.build_ids()[program] == "0123456789abcdef0123456789abcdef01234567",
           request.build_ids())
    # The run has a trace, so that its samples have times.
    for profile in request.profiles:
        times = [at for *_, found in request.samples(profile) for at in found]
        # What a busy machine keeps no time of has its value all the same.
        expect(
            0 < len(times) <= sum(value for *_, value, _ in request.samples(request.profiles[1])),
            len(times))
        # A sample may have been taken a moment before the run began, by the time that it took.
        expect(all(abs(at - last["time_ns"]) < last["duration_ns"] + 10**9 for at in times),
               times[:3], last)
    found = {
        frame["function"]: frame
        for sample in samples for frame in sample["stack"] if frame.get("inlined")
    }
    expect("inner" in found and found["inner"]["line"] == 2, found)


@claim
def windows_of_a_run_without_an_end_are_pushed():
    if os.geteuid() != 0:
        raise Skip("needs root")
    program = compile_c("spin", SPIN, flags=("-O2", "-g"))
    with Receiver() as receiver:
        r = cairn("profile", "-c", program, "-F", "199", "--continuous", "--window", "200ms",
                  "--json", "--push", receiver.url, "--otlp", "--spool",
                  os.path.join(folder(), "spool-windows"))
    need_root(r)
    expect(r.status == 0, r)
    windows = [w for w in r.objects() if "window" in w]
    requests = [otlp.Request(request.raw) for request in receiver.taken]
    sent = sum(
        value for request in requests for *_, value, _ in request.samples(request.profiles[1]))
    expect(len(requests) > 0 and sent == sum(w["samples"] for w in windows), sent, windows)
    expect(
        len({request.key
             for request in receiver.seen}) == len(receiver.seen) == len(requests),
        len(receiver.seen))


# ---- the address ----

@claim
def the_path_is_put_after_a_base_as_exporters_do():
    with Receiver() as receiver:
        for end in ("", "/", "/otlp", "/otlp/", EXPORT, "/otlp" + EXPORT):
            r = push(receiver.url + end, pprof())
            expect(r.status == 0, r)
    expect([request.path for request in receiver.taken
            ] == [EXPORT] * 2 + ["/otlp" + EXPORT] * 2 + [EXPORT, "/otlp" + EXPORT],
           [request.path for request in receiver.taken])


@claim
def otlp_has_to_be_asked_for_and_is_one_kind_of_server():
    spool = new_spool()
    for words in (["http://127.0.0.1:9" + EXPORT], [
            "http://127.0.0.1:9", "--otlp", "--as", "parca"
    ], ["http://127.0.0.1:9/api/profiles/writeraw", "--otlp"]):
        r = cairn("profile", "push", *words, pprof(), "--spool", spool)
        expect(r.status == 2 and "otlp" in r.err.lower() and not os.path.exists(spool), r)
    r = cairn("profile", "-c", "true", "--otlp")
    expect(r.status == 2 and "--push" in r.err, r)


@claim
def labels_are_checked_as_otlp_takes_them():
    with Receiver() as receiver:
        for words in (["service_name=a",
                       "service.name=b"], ["node=a",
                                           "host.name=b"], ["=x"], ["a\nb=x"], [b"a=\xff"]):
            labels = [word for text in words for word in ("--label", os.fsdecode(text))]
            r = push(receiver.url, pprof(), *labels)
            expect(r.status == 2 and not receiver.seen, words, r)


# ---- answers ----

def response(rejected=0, text=b""):
    part = (field(1, rejected) if rejected else b"") + (field(2, text) if text else b"")
    return field(1, part) if part else b""


def status_message(text=b"no such thing"):
    return field(1, 3) + field(2, text)


def answer_with(status, body=b"", kind=PROTO, **headers):
    return lambda handler, _: answer(handler, status, body, kind, **headers)


def take_with(receiver, body):
    def take(handler, request):
        receiver.taken.append(request)
        answer(handler, 200, body, PROTO)
    return take


@claim
def what_a_collector_rejects_in_part_is_counted_said_and_not_sent_again():
    spool = new_spool()
    with Receiver() as receiver:
        receiver.plan = [take_with(receiver, response(3, b"too \x1b[31m old\nreally"))]
        r = push(receiver.url, pprof(), pprof("q"), "--json", spool=spool)
        expect(r.status == 1 and not batches(spool) and len(receiver.seen) == 2, r)
        expect((summary(r)["sent"], summary(r)["rejected"], summary(r)["refused"]) == (2, 3, 0), r)
        first = r.objects()[0]
        expect(
            first["result"] == "sent" and first["rejected"] == 3
            and "old really" in first["reason"], r)
        expect("rejected 3 of the profiles" in r.err and "\x1b" not in r.out + r.err, r)
        r = push(receiver.url, spool=spool)
        expect(r.status == 0 and len(receiver.seen) == 2, r)
        receiver.plan = [take_with(receiver, response(1))]
        r = push(receiver.url, pprof(), spool=spool)
        expect(
            r.status == 1 and "1 profiles in them rejected" in r.out
            and "does not say why" in r.err, r)


@claim
def a_warning_is_shown_and_is_no_failure():
    with Receiver() as receiver:
        receiver.plan = [take_with(receiver, response(0, b"please send less"))]
        r = push(receiver.url, pprof())
    expect(r.status == 0 and "sent: please send less" in r.out, r)


@claim
def numbers_of_rejected_profiles_do_not_wrap():
    with Receiver() as receiver:
        receiver.plan = [take_with(receiver, response((1 << 63) - 1, b"x"))] * 3
        r = push(receiver.url, pprof(), pprof("q"), pprof("q2"), "--json")
    expect(r.status == 1 and summary(r)["rejected"] == (1 << 64) - 1 and summary(r)["sent"] == 3, r)


@claim_each(400, 401, 403, 404, 408, 413, 415, 422, 500, 501)
def what_the_collector_itself_refuses_is_never_sent_again(status):
    spool = new_spool()
    with Receiver([answer_with(status, status_message())]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(r.status == 1 and batches(spool) == ["refused"] and summary(r)["refused"] == 1, r)
        expect(r.objects()[0]["http"] == status and "no such thing" in r.objects()[0]["reason"], r)
        r = push(receiver.url, spool=spool)
    expect(r.status == 0 and len(receiver.seen) == 1, r)


@claim_each(401, 403, 404, 500)
def a_refusal_that_is_not_about_the_batch_costs_no_second_one(status):
    spool = new_spool()
    with Receiver([answer_with(status, status_message())]) as receiver:
        r = push(receiver.url, pprof(), pprof("q"), "--json", spool=spool)
        expect(r.status == 3 and batches(spool) == ["refused", "new"] and len(receiver.seen) == 1,
               r)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["sent"] == 1 and summary(r)["perhaps_twice"] == 0, r)


@claim_each(400, 401, 404, 413, 500)
def what_a_gateway_answers_lets_the_batch_wait(status):
    spool = new_spool()
    with Receiver([answer_with(status, b"<html>no</html>", "text/html")]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(r.status == 3 and batches(spool) == ["sent" if status == 500 else "new"], r)
        r = push(receiver.url, "--json", spool=spool)
    expect(
        r.status == 0 and summary(r)["sent"] == 1
        and summary(r)["perhaps_twice"] == (status == 500), r)


@claim_each(429, 502, 503, 504)
def what_may_be_sent_again_is(status):
    spool = new_spool()
    with Receiver([answer_with(status, status_message(b"busy"))]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(
            r.status == 3 and batches(spool) == ["new" if status == 429 else "sent"]
            and "busy" in r.err, r)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["perhaps_twice"] == (status != 429), r)
    expect(
        len({request.key
             for request in receiver.seen}) == 1 and len(receiver.seen) == 2, receiver.seen)


def far_date():
    return email.utils.formatdate(time.time() + 1800, usegmt=True)


@claim_each("seconds", "date")
def a_server_that_asks_for_it_is_left_alone(kind):
    spool = new_spool()
    after = 1800 if kind == "seconds" else far_date()
    with Receiver([answer_with(503, status_message(), Retry_After=after)]) as receiver:
        r = push(receiver.url, pprof(), pprof("q"), spool=spool)
        expect(r.status == 3 and len(receiver.seen) == 1, r)
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 3 and len(receiver.seen) == 1 and summary(r)["waiting"] == 2, r)
        left = re.search(r"left alone for another (\d+) s", r.err)
        expect(left and 0 < int(left.group(1)) <= 1801, r)
        # Another server is not concerned.
        with Receiver() as other:
            expect(push(other.url, pprof(), spool=spool).status == 0 and len(other.taken) == 1, r)
        until, url = pathlib.Path(spool, "pauses").read_text().split()
        expect(url == receiver.url + EXPORT and int(until) > time.time(), url)
        # As if the time had passed.
        pathlib.Path(spool, "pauses").write_text(f"{int(time.time()) - 1} {url}\n")
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and summary(r)["sent"] == 2 and len(receiver.taken) == 2, r)


@claim
def a_pause_is_a_day_at_most_and_a_damaged_one_is_none():
    spool = new_spool()
    with Receiver([answer_with(429, b"", Retry_After=10**9)]) as receiver:
        expect(push(receiver.url, pprof(), spool=spool).status == 3, receiver.seen)
        path = pathlib.Path(spool, "pauses")
        until, url = path.read_text().split()
        expect(0 < int(until) - time.time() <= 86401, until)
        for text in (f"99999999999999999999999 {url}\n", f"-5 {url}\n", f"x {url}\n",
                     f"{until}{url}\n", "\0" * 100, "", "9" * 70000,
                     f"{int(until) + 10**6} {url}\n"):
            path.write_text(text)
            push(receiver.url, pprof(), spool=spool)
            expect(len(receiver.taken) > 0 and not batches(spool), text[:50])


UNSURE = {
    "no answer": close_without_answer, "html": answer_html, "noise": answer_noise, "damaged":
    answer_with(200, b"\x0a\x7f\x08"), "less than none": answer_with(
        200, field(1, field(1, (1 << 64) - 1))), "of no type": answer_with(
            200, b"", ""), "json": answer_with(200, b"{}", "application/json")
}


@claim_each(*UNSURE)
def what_may_have_arrived_is_sent_again_with_its_id_and_counted(kind):
    spool = new_spool()
    with Receiver([UNSURE[kind]]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(
            r.status == 3 and batches(spool) == ["sent"]
            and summary(r)["waiting_perhaps_arrived"] == 1, r)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["perhaps_twice"] == 1 and summary(r)["sent"] == 1, r)
    expect(
        len({request.key
             for request in receiver.seen}) == 1 and len({r.body
                                                          for r in receiver.seen}) == 1,
        receiver.seen)


@claim
def an_answer_without_an_end_is_cut_and_the_batch_not_sent_again():
    spool = new_spool()

    def endless(handler, request):
        answer_without_end(handler, request, PROTO)

    with Receiver([endless]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(r.status == 1 and batches(spool) == ["refused"] and "endless" in r.err, r)
        expect(
            push(receiver.url, spool=spool).status == 0 and len(receiver.seen) == 1, receiver.seen)


@claim
def a_slow_collector_is_given_up_and_a_dead_one_has_seen_nothing():
    spool, done = new_spool(), threading.Event()
    with Receiver([lambda handler, request: done.wait(SECONDS)]) as receiver:
        r = cairn("profile", "push", receiver.url, pprof(), "--otlp", "--spool", spool, "--timeout",
                  "3s", "--json")
        done.set()
        expect(r.status == 3 and batches(spool) == ["sent"], r)
        expect(push(receiver.url, spool=spool).status == 0, receiver.seen)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        r = push(f"http://127.0.0.1:{nobody.getsockname()[1]}", pprof(), "--json", spool=spool)
        expect(
            r.status == 3 and batches(spool) == ["new"]
            and summary(r)["waiting_perhaps_arrived"] == 0, r)


@claim
def a_profile_beyond_the_limit_of_a_request_comes_in_several():
    spool = new_spool()
    # Each of three functions has a name of 30 MiB.
    names = [bytes([c]) * (30 << 20) for c in b"xyz"]
    stacks = [([i], i + 1) for i in range(3)]
    large = write("parts.pb", with_time(make_pprof(names, stacks)))
    with Receiver() as receiver:
        r = push(receiver.url, large, "--json", spool=spool)
    expect(r.status == 0 and len(receiver.taken) > 1, r.err[:500])
    expect(summary(r)["lost"] == 0 and summary(r)["sent"] == len(receiver.taken), summary(r))
    values = []
    for one in receiver.taken:
        request = otlp.Request(one.raw)
        for profile in request.profiles[:1]:
            values += [(stack[0]["function"][0], value)
                       for stack, _, value, _ in request.samples(profile)]
    expect(sorted(values) == [("x", 1), ("y", 2), ("z", 3)], values)
    expect(len({one.id for one in receiver.taken}) == len(receiver.taken), "ids")


@claim
def a_sample_beyond_the_limit_of_a_request_is_counted_as_lost():
    spool = new_spool()
    # The name of one function takes the 64 MiB; compressed it is small.
    large = write("large.pb", with_time(make_pprof([b"x" * (64 << 20)], [([0], 1)])))
    with Receiver() as receiver:
        r = push(receiver.url, large, pprof(), "--json", spool=spool)
    expect(r.status == 3 and "64 MiB" in r.err and len(receiver.taken) == 1, r.err[:500])
    expect(
        summary(r)["lost"] == 1 and summary(r)["sent"] == 1 and summary(r)["dropped_ever"] == 1,
        summary(r))


main()
