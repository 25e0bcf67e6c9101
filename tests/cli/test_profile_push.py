#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile push, to a receiver on the loopback interface: what arrives, and what does not get
lost."""

import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

from claims import (ANY_ORDER, CAIRN, SOURCE, WITHOUT_LEAKS, Skip, cairn, claim, claim_each,
                    claim_plainly, compile_c, expect, folder, main, need, run, write)
from profiles import FOLDED
from receiver import (PUSH, SECONDS, WRITE, Receiver, answer, answer_html, answer_noise,
                      answer_without_end, close_without_answer, profile)

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
MINUTE = "60"
os.environ["no_proxy"] = "127.0.0.1"
_spools = 0


def new_spool():
    global _spools
    _spools += 1
    return os.path.join(folder(), f"spool-{_spools}")


def need_curl():
    r = cairn("profile", "push", "http://127.0.0.1:9", "--spool", new_spool())
    if "needs libcurl" in r.err:
        raise Skip("libcurl.so.4 is not installed")


def push(url, *words, spool=None, **kwargs):
    return cairn("profile", "push", url, "--spool", spool or new_spool(), "--timeout", MINUTE,
                 *words, **kwargs)


def pprof(name="p"):
    """A profile in pprof's format that says when it was taken, as those of pprof's own tools do."""
    path = os.path.join(folder(), name + ".pb.gz")
    if not os.path.exists(path):
        cairn("profile", "show", write(name + ".folded", FOLDED), "-o", path, check=True)
    return path


def batches(spool):
    """The states of the batches in a spool, the oldest first."""
    return [
        name.rsplit(".", 1)[1] for name in sorted(os.listdir(spool)) if re.match(r"\d{20}-", name)
    ]


def dropped_in(spool):
    """The number of batches that were dropped, by the spool's own account."""
    try:
        found = re.match(r"dropped (\d+) ", pathlib.Path(spool, "counts").read_text())
    except FileNotFoundError:
        return 0
    return int(found.group(1)) if found else 0


def dead_url():
    """An address of this host where nobody listens: the port is bound, so that nobody else gets it.
    """
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    dead_url.kept = getattr(dead_url, "kept", []) + [s]
    return f"http://127.0.0.1:{s.getsockname()[1]}"


def summary(r):
    return r.objects()[-1]


def expected_stacks():
    return {
        "main;work;put": (61,), "main;work": (10,), "main;work;read;sys_read": (5,),
        "main;other;main;other": (4,), "jitted;deep;x;y;z": (20,)
    }


# ---- what arrives ----

@claim_each("pyroscope", "parca")
def a_profile_arrives_with_its_labels_and_id(server):
    need_curl()
    with Receiver() as receiver:
        r = push(receiver.url, pprof(), "--as", server, "--label", "service_name=shop", "--label",
                 "zone=a=b \"\\ü")
    expect(r.status == 0 and len(receiver.taken) == 1, r)
    request = receiver.taken[0]
    expect(request.path == (PUSH if server == "pyroscope" else WRITE), request.path)
    expect(request.labels == {"__name__": "samples", "service_name": "shop", "zone": "a=b \"\\ü"},
           request.labels)
    expect(
        re.fullmatch(UUID, request.key) and request.id in (None, request.key), request.key,
        request.id)
    found = request.profile()
    expect(found["stacks"] == expected_stacks() and found["types"] == [("samples", "count")], found)


DECODE = """
import sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
f = descriptor_pb2.FileDescriptorProto(name="push.proto", package="t", syntax="proto3")
KINDS = {"string": 9, "bytes": 12}
def message(name, *members):
    m = f.message_type.add(name=name)
    for number, (member, kind, many) in enumerate(members, 1):
        field = m.field.add(name=member, number=number, label=3 if many else 1, type=KINDS.get(kind, 11))
        if kind not in KINDS:
            field.type_name = ".t." + kind
message("LabelPair", ("name", "string", 0), ("value", "string", 0))
message("RawSample", ("raw_profile", "bytes", 0), ("id", "string", 0))
message("RawProfileSeries", ("labels", "LabelPair", 1), ("samples", "RawSample", 1))
message("PushRequest", ("series", "RawProfileSeries", 1))
pool = descriptor_pool.DescriptorPool()
pool.Add(f)
kind = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("t.PushRequest"))
request = kind.FromString(sys.stdin.buffer.read())
series, = request.series
sample, = series.samples
print({l.name: l.value for l in series.labels}, sample.id, len(sample.raw_profile), request.ByteSize())
"""


@claim
def googles_protobuf_reads_the_request():
    need_curl()
    python = next((p for p in (sys.executable, "/usr/bin/python3")
                   if os.path.exists(p) and run(p, "-c", "import google.protobuf").status == 0),
                  None)
    if not python:
        raise Skip("python3-protobuf is not installed")
    with Receiver() as receiver:
        r = push(receiver.url, pprof(), "--label", "empty=")
    expect(r.status == 0, r)
    request, = receiver.taken
    done = subprocess.run([python, "-c", DECODE], input=request.body, capture_output=True,
                          timeout=SECONDS, check=False)
    expect(
        done.stdout.decode().strip() ==
        f"{request.labels} {request.id} {len(request.raw)} {len(request.body)}", done.stdout,
        done.stderr)
    expect(request.labels["empty"] == "", request.labels)


@claim
def pprof_reads_the_profile_that_arrives():
    need_curl()
    need("go")
    with Receiver() as receiver:
        r = push(receiver.url, pprof())
    expect(r.status == 0, r)
    arrived = write("arrived.pb.gz", receiver.taken[0].raw)
    env = dict(os.environ, HOME=folder(), GOFLAGS="-mod=mod", GOTOOLCHAIN="local")
    r = run("go", "tool", "pprof", "-top", "-nodecount=3", arrived, env=env)
    expect(r.status == 0 and re.search(r"^\s+61 .* put$", r.out.replace(" (inline)", ""), re.M), r)


@claim
def names_of_types_are_what_a_server_can_query():
    need_curl()
    with Receiver() as receiver:
        raw = gzip.decompress(pathlib.Path(pprof()).read_bytes())
        # The only type is "samples": another name of its length.
        odd = write("odd.pb.gz", gzip.compress(raw.replace(b"samples", b"off-cpu")))
        r = push(receiver.url, odd)
    expect(r.status == 0, r)
    request, = receiver.taken
    expect(
        request.labels["__name__"] == "off_cpu"
        and request.profile()["types"] == [("off_cpu", "count")], request.labels,
        request.profile()["types"])


@claim
def a_profile_without_a_time_is_pushed_as_of_now_and_that_is_said():
    need_curl()
    before = int(run("date", "+%s", check=True).out)
    with Receiver() as receiver:
        r = push(receiver.url, write("timeless.folded", FOLDED))
    expect(r.status == 0 and "does not say when it was taken" in r.err, r)
    expect(receiver.taken[0].profile()["time_ns"] >= before * 10**9,
           receiver.taken[0].profile()["time_ns"])


@claim
def the_path_says_what_the_server_is():
    need_curl()
    with Receiver() as receiver:
        for end in (WRITE, PUSH, "/", ""):
            r = push(receiver.url + end, pprof())
            expect(r.status == 0, r)
    expect([request.path for request in receiver.taken] == [WRITE, PUSH, PUSH, PUSH],
           receiver.taken)


@claim
def lines_of_the_head_come_from_options_and_from_a_file():
    need_curl()
    head = write("head", "Authorization: Bearer secret-word\nX-Scope-OrgID: tenant\n")
    spool = new_spool()
    with Receiver([503]) as receiver:
        r = push(receiver.url, pprof(), "--header", "@" + head, "--header", "X-More: 1",
                 spool=spool)
        expect(r.status == 3 and "secret-word" not in r.out + r.err, r)
    headers = receiver.seen[0].headers
    expect((headers["Authorization"], headers["X-Scope-OrgID"],
            headers["X-More"]) == ("Bearer secret-word", "tenant", "1"), headers)
    for name in os.listdir(spool):
        expect(b"secret-word" not in pathlib.Path(spool, name).read_bytes(), name)


@claim
def tls_is_checked():
    need_curl()
    need("openssl")
    key, cert = os.path.join(folder(), "key.pem"), os.path.join(folder(), "cert.pem")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
        "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
        check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    spool = new_spool()
    with Receiver(tls=context) as receiver:
        r = push(receiver.url, pprof(), spool=spool)
        expect(r.status == 3 and not receiver.seen and batches(spool) == ["new"], r)
        r = push(receiver.url, "--ca", cert, spool=spool)
        expect(r.status == 0 and len(receiver.taken) == 1, r)


SPIN = "int main(void) { volatile unsigned long n = 0; while (n < 300000000ul) n++; return 0; }"


@claim
def a_run_is_pushed_with_the_hosts_name_and_agrees_with_its_file():
    need_curl()
    if os.geteuid() != 0:
        raise Skip("needs root")
    out, spool = os.path.join(folder(), "run.pb.gz"), new_spool()
    with Receiver() as receiver:
        r = cairn("profile", "-c", compile_c("spin", SPIN), "-F", "499", "--json", "-o", out,
                  "--push", receiver.url, "--spool", spool, "--label", "service_name=spin")
    if "CAP_BPF" in r.err or "needs Linux" in r.err:
        raise Skip("not permitted here")
    expect(r.status == 0 and "1 sent" in r.err and len(receiver.taken) == 1, r)
    request, = receiver.taken
    expect(
        request.labels == {
            "__name__": "process_cpu", "service_name": "spin", "node": socket.gethostname()
        }, request.labels)
    found = request.profile()
    expect(found["types"] == [("samples", "count"), ("cpu", "nanoseconds")], found["types"])
    written = profile(pathlib.Path(out).read_bytes())
    expect(found == written and sum(v[0] for v in found["stacks"].values()) > 0, found, written)


@claim
def a_push_that_cannot_work_is_refused_before_it_samples():
    mark = os.path.join(folder(), "mark")
    for words in (["--push", "ftp://x"], ["--label", "a=b"], ["--spool", folder()]):
        r = cairn("profile", "-c", f"touch {mark}", *words)
        expect(r.status == 2 and not os.path.exists(mark), r)


# ---- what is not taken ----

@claim
def without_a_server_a_batch_waits_and_the_next_push_sends_it():
    need_curl()
    spool, url = new_spool(), dead_url()
    r = push(url, pprof(), "--json", spool=spool)
    expect(r.status == 3 and batches(spool) == ["new"], r)
    expect(summary(r)["waiting"] == 1 and summary(r)["waiting_perhaps_arrived"] == 0, r)
    with Receiver() as receiver:
        # Batches are for the server that they were made for.
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and not receiver.seen and summary(r)["waiting_for_others"] == 1, r)
        path = next(pathlib.Path(spool).glob("*.new"))
        path.write_bytes(path.read_bytes().replace(url.encode(), receiver.url.encode()))
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and summary(r)["sent"] == 1 and summary(r)["perhaps_twice"] == 0, r)
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and summary(r)["sent"] == 0 and len(receiver.seen) == 1, r)
    expect(not batches(spool), os.listdir(spool))


@claim_each(401, 403, 404, 408, 429)
def a_refusal_that_is_not_about_the_batch_lets_it_wait(status):
    need_curl()
    spool = new_spool()
    with Receiver([status]) as receiver:
        r = push(receiver.url, pprof(), pprof("q"), "--json", spool=spool)
        expect(r.status == 3 and batches(spool) == ["new", "new"] and len(receiver.seen) == 1, r)
        expect(r.objects()[0]["http"] == status and "\x1b" not in r.out + r.err, r)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["sent"] == 2 and summary(r)["perhaps_twice"] == 0, r)


@claim_each(400, 413, 422)
def a_batch_that_is_refused_is_set_aside_and_said(status):
    need_curl()
    spool = new_spool()
    with Receiver([status]) as receiver:
        r = push(receiver.url, pprof(), pprof("q"), "--json", spool=spool)
        expect(r.status == 1 and batches(spool) == ["refused"], r)
        expect(summary(r)["refused"] == 1 and summary(r)["sent"] == 1, r)
        r = push(receiver.url, spool=spool)
        expect(r.status == 0 and len(receiver.seen) == 2, r)


def answer_of_proxy(status):
    return lambda handler, _: answer(handler, status, b"<html>no</html>", "text/html; charset=utf-8"
                                     )


@claim_each(400, 413, 422)
def what_a_proxy_refuses_waits_and_keeps_nothing_else_from_being_sent(status):
    need_curl()
    spool = new_spool()
    with Receiver([answer_of_proxy(status)]) as receiver:
        r = push(receiver.url, pprof(), pprof("q"), "--json", spool=spool)
        expect(r.status == 3 and batches(spool) == ["new"] and "of a proxy" in r.err, r)
        expect(summary(r)["sent"] == 1 and summary(r)["refused"] == 0, r)
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and summary(r)["sent"] == 1 and summary(r)["perhaps_twice"] == 0, r)


@claim
def batches_that_always_fail_do_not_keep_the_others_waiting():
    """The server cannot cope with four of ten, the oldest: the others get their turn."""
    need_curl()
    spool, url = new_spool(), dead_url()
    push(url, *[pprof(f"r{i}") for i in range(10)], spool=spool)
    oldest = sorted(name for name in os.listdir(spool) if name.endswith(".new"))[:4]
    poison = [re.search(UUID, name).group(0) for name in oldest]

    def judge(handler, request):
        receiver.plan.append(judge)
        if request.key in poison:
            answer(handler, 500, b"{}", "application/json")
        else:
            receiver.take(handler, request)

    with Receiver([judge]) as receiver:
        for path in pathlib.Path(spool).glob("*.new"):
            times = path.stat().st_mtime_ns
            path.write_bytes(path.read_bytes().replace(url.encode(), receiver.url.encode()))
            os.utime(path, ns=(times, times))
        r = push(receiver.url, "--json", spool=spool)
        # It does not try all that wait at a server that may be ill.
        expect(r.status == 3 and len(receiver.seen) == 3 and not receiver.taken, r)
        r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 3 and len(receiver.taken) == 6, r, receiver.taken)
    expect({request.key
            for request in receiver.seen
            if request.key in poison} == set(poison), poison)
    expect(batches(spool) == ["sent"] * 4, os.listdir(spool))


UNSURE = {
    "500": 500, "502": 502, "no answer": close_without_answer, "html": answer_html, "noise":
    answer_noise, "endless": answer_without_end
}


@claim_each(*UNSURE)
def what_may_have_arrived_is_sent_again_with_its_id_and_counted(kind):
    need_curl()
    spool = new_spool()
    with Receiver([UNSURE[kind]]) as receiver:
        r = push(receiver.url, pprof(), "--json", spool=spool)
        expect(r.status == 3 and batches(spool) == ["sent"], r)
        expect(summary(r)["waiting_perhaps_arrived"] == 1 and summary(r)["sent"] == 0, r)
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["perhaps_twice"] == 1 and summary(r)["sent"] == 1, r)
    expect(
        len({request.key
             for request in receiver.seen}) == 1 and len({r.body
                                                          for r in receiver.seen}) == 1,
        receiver.seen)


@claim
def a_slow_server_is_given_up_after_the_timeout():
    need_curl()
    spool, done = new_spool(), threading.Event()
    with Receiver([lambda handler, request: done.wait(SECONDS)]) as receiver:
        r = cairn("profile", "push", receiver.url, pprof(), "--spool", spool, "--timeout", "3s",
                  "--json")
        done.set()
        expect(r.status == 3 and batches(spool) == ["sent"], r)
        expect(push(receiver.url, spool=spool).status == 0, receiver.seen)
    expect(len({request.key for request in receiver.seen}) == 1, receiver.seen)


@claim
def a_host_that_drops_packets_has_seen_nothing():
    need_curl()
    spool = new_spool()
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        # Once its queue is full, the kernel answers no more.
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        r = cairn("profile", "push", f"http://127.0.0.1:{deaf.getsockname()[1]}", pprof(),
                  "--spool", spool, "--timeout", "500ms", "--json")
        for filler in fillers:
            filler.close()
    expect(
        r.status == 3 and batches(spool) == ["new"] and summary(r)["waiting_perhaps_arrived"] == 0,
        r)


# ---- the spool ----

def large(i):
    """Random names do not compress: three of these exceed a MiB."""
    return write(f"large{i}.folded",
                 "".join(f"main;{os.urandom(24).hex()} 1\n" for _ in range(9000)))


@claim
def beyond_its_size_the_oldest_are_dropped_and_counted():
    need_curl()
    spool, url = new_spool(), dead_url()
    r = push(url, *map(large, range(5)), "--spool-size", "1", "--json", spool=spool)
    expect(r.status == 3, r)
    kept = sum(
        os.path.getsize(os.path.join(spool, name))
        for name in os.listdir(spool)
        if name.endswith(".new"))
    found = summary(r)
    expect(
        kept <= 1 << 20 and 0 < found["waiting"] < 5
        and found["waiting"] + found["dropped_ever"] == 5, kept, r)
    expect(found["dropped_ever_bytes"] > 0, r)
    r = push(url, spool=spool)
    expect(f"{found['dropped_ever']} dropped since the spool was made" in r.out, r)


@claim
def what_is_being_sent_is_not_dropped_and_adding_does_not_wait():
    need_curl()
    spool, done = new_spool(), threading.Event()

    def wait_and_take(handler, request):
        done.wait(SECONDS)
        receiver.take(handler, request)

    with Receiver([wait_and_take]) as receiver:
        first = start_push(receiver.url, spool, large(0), "--json")
        expect(receiver.arrived.wait(SECONDS), "nothing arrived")
        second = start_push(dead_url(), spool, large(1), large(2), large(3), "--spool-size", "1")
        end = time.monotonic() + SECONDS
        while not dropped_in(spool) and time.monotonic() < end:
            time.sleep(0.02)
        done.set()
        out = first.communicate(timeout=SECONDS)[0]
        second.communicate(timeout=SECONDS)
    expect(first.returncode == 0 and json.loads(out.splitlines()[-1])["sent"] == 1, out)
    expect(second.returncode == 3 and len(receiver.taken) == 1, second.returncode)
    expect(0 < len(batches(spool)) < 3 and dropped_in(spool), os.listdir(spool))


@claim
def a_drop_that_was_cut_off_counts_once():
    need_curl()
    spool, url = new_spool(), dead_url()
    push(url, pprof(), pprof("q"), spool=spool)
    oldest = sorted(os.listdir(spool))[0]
    # As a kill between counting and removing leaves it.
    pathlib.Path(spool, "counts").write_text(f"dropped 1 bytes 100 last {oldest}\n")
    r = push(url, "--json", spool=spool)
    expect(summary(r)["dropped_ever"] == 1 and summary(r)["waiting"] == 1, r)
    expect(not os.path.exists(os.path.join(spool, oldest)), os.listdir(spool))


@claim
def a_full_disk_does_not_keep_it_from_being_sent():
    need_curl()
    if os.geteuid() != 0 or not shutil.which("mount") or not shutil.which("unshare"):
        raise Skip("needs root, to mount a small file system")
    spool = new_spool()
    os.mkdir(spool)
    script = (f"mount -t tmpfs -o size=64k,mode=700 none {spool} && mkdir -m 700 {spool}/s && "
              f"head -c 64k /dev/zero >{spool}/fill; exec \"$@\"")
    words = ["unshare", "-m", "sh", "-c", script, "sh", CAIRN, "profile", "push"]
    if run(*words[:5], "true").status:
        raise Skip("no permission to mount")
    with Receiver() as receiver:
        r = run(*words, receiver.url, pprof(), "--spool", spool + "/s", "--json")
        expect(r.status == 0 and len(receiver.taken) == 1 and "o space left" in r.err, r)
        expect(summary(r)["sent"] == 1, r)
    r = run(*words, dead_url(), pprof(), "--spool", spool + "/s", "--json")
    expect(r.status == 3 and summary(r)["lost"] == 1 and "neither taken nor kept" in r.err, r)


@claim
def a_full_disk_at_the_spools_cap_keeps_the_new_one_and_counts_what_it_drops():
    need_curl()
    if os.geteuid() != 0 or not shutil.which("mount") or not shutil.which("unshare"):
        raise Skip("needs root, to mount a small file system")
    spool = new_spool()
    os.mkdir(spool)
    # Two of three batches have room in a spool of a MiB; then others take the rest of the disk.
    script = (
        f"mount -t tmpfs -o size=8m,mode=700 none {spool} && mkdir -m 700 {spool}/s && "
        f"\"$0\" profile push \"$1\" --spool {spool}/s --spool-size 1 \"$2\" \"$3\" >/dev/null 2>&1; "
        f"dd if=/dev/zero of={spool}/fill bs=4k 2>/dev/null; "
        f"\"$0\" profile push \"$1\" --spool {spool}/s --spool-size 1 --json \"$4\"; ls {spool}/s")
    words = [
        "unshare", "-m", "sh", "-c", script, CAIRN,
        dead_url(),
        large(10),
        large(11),
        large(12)
    ]
    if run(*words[:2], "true").status:
        raise Skip("no permission to mount")
    r = run(*words)
    lines = r.out.splitlines()
    found = next(json.loads(line) for line in lines if line.startswith('{"summary"'))
    expect(found["lost"] == 0 and found["dropped_ever"] >= 1, r)
    expect(found["waiting"] + found["dropped_ever"] == 3, r)
    kept = [line for line in lines if line.endswith(".new")]
    expect(len(kept) == found["waiting"] > 0, r)


@claim
def a_damaged_batch_is_set_aside_and_the_others_are_sent():
    need_curl()
    spool, url = new_spool(), dead_url()
    push(url, pprof(), spool=spool)
    path = next(pathlib.Path(spool).glob("*.new"))
    whole = path.read_bytes()
    with Receiver() as receiver:
        for i, bad in enumerate(
            (b"", whole[:20], b"cairn-push 9" + whole[12:], whole.replace(b"id ", b"id x", 1))):
            pathlib.Path(spool, f"0000000000000000000{i}-{'0' * 36}.new").write_bytes(bad)
        path.write_bytes(whole.replace(url.encode(), receiver.url.encode()))
        r = push(receiver.url, spool=spool)
        expect(r.status == 1 and len(receiver.taken) == 1, r)
        expect(batches(spool) == ["refused"] * 4, os.listdir(spool))


@claim
def a_spool_that_others_may_write_to_is_refused():
    need_curl()
    spool = new_spool()
    os.mkdir(spool)
    os.chmod(spool, 0o777)
    with Receiver() as receiver:
        r = push(receiver.url, pprof(), spool=spool)
        expect(r.status == 3 and "other users may write there" in r.err and not receiver.seen, r)


@claim
def a_spool_that_others_could_put_elsewhere_is_refused():
    need_curl()
    if os.geteuid() != 0:
        raise Skip("needs root, to be two users")
    top = os.path.join(folder(), "owners")
    os.mkdir(top)
    os.chmod(top, 0o1777)
    os.mkdir(os.path.join(top, "mine"), 0o700)
    os.mkdir(os.path.join(top, "theirs"), 0o755)
    os.chown(os.path.join(top, "theirs"), 65534, 65534)
    os.symlink("mine", os.path.join(top, "my-link"))
    os.symlink("mine", os.path.join(top, "their-link"))
    os.chown(os.path.join(top, "their-link"), 65534, 65534, follow_symlinks=False)
    os.symlink("theirs", os.path.join(top, "my-link-there"))
    os.mkdir(os.path.join(top, "open"), 0o700)
    os.chmod(os.path.join(top, "open"), 0o777)
    with Receiver() as receiver:
        for where in ("mine/a/b", "my-link/c"):
            r = push(receiver.url, pprof(), spool=os.path.join(top, where))
            expect(r.status == 0, where, r)
        seen = len(receiver.seen)
        for where in ("theirs/spool", "their-link/spool", "their-link", "my-link-there/spool",
                      "open/spool"):
            r = push(receiver.url, pprof(), spool=os.path.join(top, where))
            expect(r.status == 3 and ("another user" in r.err or "other users" in r.err), where, r)
            expect(len(receiver.seen) == seen, where, r)
    expect(
        sorted(os.listdir(os.path.join(top, "mine"))) == ["a", "c"]
        and not os.listdir(os.path.join(top, "theirs")), top)


@claim
def what_waits_is_counted_without_reading_it():
    """A spool of many large batches costs a few kilobytes of each."""
    need_curl()
    need("strace")
    spool, url, trace = new_spool(), dead_url(), os.path.join(folder(), "count.trace")
    path = large(20)
    push(url, path, path, path, spool=spool)
    env = dict(os.environ, ASAN_OPTIONS=WITHOUT_LEAKS)
    r = run("strace", "-f", "-e", "trace=read,pread64", "-o", trace, CAIRN, "profile", "push",
            dead_url(), "--spool", spool, "--json", env=env)
    if not os.path.exists(trace) or "PTRACE" in r.err:
        raise Skip("strace does not work here")
    found = summary(r)
    expect(r.status == 0 and found["waiting_for_others"] == 3, r)
    # The three are loaded to see whom they are for, and then only counted.
    total = sum(path.stat().st_size for path in pathlib.Path(spool).glob("*.new"))
    returned = sum(
        int(n) for n in re.findall(r"cairn-push.*= (\d+)$",
                                   pathlib.Path(trace).read_text(), re.M))
    expect(0 < returned < 0.2 * total, returned, total)


@claim
def two_at_once_send_each_batch_once():
    need_curl()
    spool, url = new_spool(), dead_url()
    push(url, *[pprof(f"r{i}") for i in range(8)], spool=spool)
    with Receiver() as receiver:
        for path in pathlib.Path(spool).glob("*.new"):
            path.write_bytes(path.read_bytes().replace(url.encode(), receiver.url.encode()))
        words = [CAIRN, "profile", "push", receiver.url, "--spool", spool]
        both = [
            subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        for one in both:
            _, err = one.communicate(timeout=2 * SECONDS)
            expect(one.returncode == 0, err)
    keys = [request.key for request in receiver.seen]
    expect(len(keys) == 8 and len(set(keys)) == 8, keys)


# ---- killed ----

def kill_now(process):
    process.send_signal(signal.SIGKILL)
    process.wait(SECONDS)


def start_push(url, spool, *words):
    return subprocess.Popen([CAIRN, "profile", "push", url, "--spool", spool, *words],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)


@claim
def a_kill_while_it_waits_for_the_answer_keeps_the_batch_and_its_id():
    need_curl()
    spool, done = new_spool(), threading.Event()
    with Receiver([lambda handler, request: done.wait(SECONDS)]) as receiver:
        process = start_push(receiver.url, spool, pprof())
        expect(receiver.arrived.wait(SECONDS), "nothing arrived")
        kill_now(process)
        done.set()
        expect(batches(spool) == ["sent"], os.listdir(spool))
        r = push(receiver.url, "--json", spool=spool)
    expect(r.status == 0 and summary(r)["perhaps_twice"] == 1, r)
    expect(
        len({request.key
             for request in receiver.seen}) == 1 and len(receiver.seen) == 2, receiver.seen)


# Kills the program at a step, which is the moment before or after a call that others can see.
KILLER = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
static void step(void)
{
	static int n;
	const char *at = getenv("KILL_AT");
	if (at && ++n == atoi(at)) raise(SIGKILL);
}
#define WRAP(type, name, parameters, arguments) \\
type name parameters \\
{ \\
	type (*real) parameters = (type (*) parameters)dlsym(RTLD_NEXT, #name); \\
	step(); \\
	type r = real arguments; \\
	step(); \\
	return r; \\
}
WRAP(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAP(int, unlinkat, (int a, const char *b, int c), (a, b, c))
WRAP(int, linkat, (int a, const char *b, int c, const char *d, int e), (a, b, c, d, e))
WRAP(int, fsync, (int a), (a))
WRAP(int, fdatasync, (int a), (a))
WRAP(int, utimensat, (int a, const char *b, const struct timespec c[2], int d), (a, b, c, d))
WRAP(ssize_t, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
WRAP(ssize_t, pwrite64, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
WRAP(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))
WRAP(ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d))
WRAP(ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d))
WRAP(int, fflush, (FILE *a), (a))
"""
STEPS_MAX = 400


def killer():
    need_curl()
    return compile_c(
        "killer", KILLER.replace("#include <unistd.h>", "#include <stdio.h>\n#include <unistd.h>",
                                 1), flags=("-O1", "-shared", "-fPIC", "-ldl"))


def killed_at(step, *words):
    """(whether it was killed, the lines that it had written) of cairn with a kill at that step."""
    env = dict(os.environ, LD_PRELOAD=killer(), KILL_AT=str(step), ASAN_OPTIONS=ANY_ORDER)
    done = subprocess.run([CAIRN, "profile", "push", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
                          timeout=2 * SECONDS, check=False)
    return done.returncode == -signal.SIGKILL, [
        json.loads(line) for line in done.stdout.splitlines(keepends=True) if line.endswith("\n")
    ]


def spool_of(receiver, n):
    """A spool in which so many batches wait for that server."""
    spool, url = new_spool(), dead_url()
    push(url, *[pprof(f"k{i}") for i in range(n)], spool=spool)
    for path in pathlib.Path(spool).glob("*.new"):
        path.write_bytes(path.read_bytes().replace(url.encode(), receiver.url.encode()))
    return spool


@claim_plainly
def what_it_said_was_sent_is_never_sent_again_whenever_it_is_killed():
    """Killed at each step of sending two batches: both arrive, and those told as sent just once."""
    n_steps = n_twice = 0
    for step in range(1, STEPS_MAX):
        with Receiver() as receiver:
            spool = spool_of(receiver, 2)
            killed, lines = killed_at(step, receiver.url, "--spool", spool, "--json")
            told = [line["id"] for line in lines if line.get("result") == "sent"]
            r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and not batches(spool), step, r)
        keys = [request.key for request in receiver.seen]
        twice = {key for key in keys if keys.count(key) > 1}
        expect(len(set(keys)) == 2 and not twice & set(told), step, keys, told)
        # One that may have arrived twice is counted, and no other is sent twice.
        expect(len(twice) <= summary(r)["perhaps_twice"] <= 1 and len(keys) <= 3, step, r, keys)
        n_steps, n_twice = step, n_twice + len(twice)
        if not killed:
            break
    # It was killed between the server's answer and its note, too.
    expect(not killed and n_steps > 20 and n_twice > 0, n_steps, n_twice)


@claim_plainly
def killed_at_any_moment_nothing_is_lost_and_nothing_differs():
    """Killed at each step of adding a batch and sending it: it is in the spool as a whole, or was
    taken, or is not there."""
    n_absent = n_waiting = n_steps = 0
    for step in range(1, STEPS_MAX):
        spool = new_spool()
        os.mkdir(spool, 0o700)
        with Receiver() as receiver:
            killed, _ = killed_at(step, receiver.url, pprof(), "--spool", spool, "--json")
            n_arrived, waiting = len(receiver.seen), batches(spool)
            r = push(receiver.url, "--json", spool=spool)
        expect(r.status == 0 and summary(r)["sent"] == len(waiting) and not batches(spool), step, r)
        expect(summary(r)["refused"] == 0 and summary(r)["dropped_ever"] == 0, step, r)
        # What had arrived and is not known to have waits with that state.
        expect(waiting in ([], ["new"], ["sent"]) and not (n_arrived and waiting == ["new"]), step,
               waiting)
        expect(len({request.key for request in receiver.seen}) <= 1, step, receiver.seen)
        expect(len({request.body for request in receiver.seen}) <= 1, step, receiver.seen)
        for request in receiver.seen:
            expect(request.profile()["stacks"] == expected_stacks(), step, request.key)
        n_absent += not receiver.seen
        n_waiting += len(waiting)
        n_steps = step
        if not killed:
            break
        leftovers = [name for name in os.listdir(spool) if name not in ("counts", "sending")]
        expect(not leftovers or all(name.endswith(".tmp") for name in leftovers), step, leftovers)
    expect(not killed and n_steps > 20 and n_absent > 0 < n_waiting, n_steps, n_absent, n_waiting)


@claim_plainly
def a_drop_that_is_killed_at_any_moment_counts_each_batch_once():
    """The oldest of two is there or was counted, whenever the third one's push is killed, which
    takes its room."""
    full, url, n_steps, seen = new_spool(), dead_url(), 0, set()
    push(url, large(30), large(31), "--spool-size", "1", spool=full)
    expect(len(batches(full)) == 2, os.listdir(full))
    third = large(32)
    for step in range(1, STEPS_MAX):
        spool = new_spool()
        shutil.copytree(full, spool)
        killed, _ = killed_at(step, url, third, "--spool", spool, "--spool-size", "1", "--json")
        # The next one to look there ends what was begun.
        r = push(url, "--json", spool=spool)
        found = (summary(r)["waiting"], summary(r)["dropped_ever"])
        expect(found in ((2, 0), (1, 1), (2, 1)), step, found, os.listdir(spool))
        seen.add(found)
        n_steps = step
        if not killed:
            break
    expect(not killed and n_steps > 10 and seen == {(2, 0), (1, 1), (2, 1)}, n_steps, seen)


# ---- what is refused at once ----

@claim_each("ftp://host", "file:///etc/passwd", "host:4040", "http://", "http://user:pass@host/",
            "http://h ost", "http://host/?a", "http://host/\n", "http:///x", "http://host/#a",
            "http://" + "a" * 3000)
def an_address_that_makes_no_sense_is_a_usage_error(url):
    spool = new_spool()
    r = push(url, pprof(), spool=spool)
    expect(r.status == 2 and not os.path.exists(spool), r)


@claim
def labels_and_headers_are_checked():
    need_curl()
    with Receiver() as receiver:
        for words in (["--label", "a-b=1"], ["--label", "=1"], ["--label", "x"], [
                "--label", "a=1", "--label", "a=2"
        ], ["--label", b"a=\xff"], ["--header",
                                    "no colon"], ["--header",
                                                  "A: b\nC: d"], ["--header",
                                                                  "@/no/such"], ["--as", "other"]):
            words = [os.fsdecode(word) for word in words]
            r = push(receiver.url, pprof(), *words)
            expect(r.status == 2 and not receiver.seen, words, r)


@claim
def labels_are_checked_before_anything_is_sampled():
    need_curl()
    ran = os.path.join(folder(), "it-ran")
    r = cairn("profile", "-c", f"touch {ran}", "--push", "http://127.0.0.1:9", "--label", "a-b=1",
              "--spool", new_spool())
    expect(r.status == 2 and "a-b" in r.err and not os.path.exists(ran), r)


@claim
def a_spool_takes_over_no_file_that_is_not_its_own():
    need_curl()
    spool = new_spool()
    os.mkdir(spool, 0o700)
    others = ["config.new", "notes.sent", "x.refused", ".x.tmp", ".vimrc.tmp", "12345-6.new"]
    for name in others:
        pathlib.Path(spool, name).write_text("mine")
    with Receiver() as receiver:
        expect(push(receiver.url, pprof(), spool=spool).status == 0, receiver.seen)
    push(dead_url(), pprof(), spool=spool)
    expect(all(pathlib.Path(spool, name).read_text() == "mine" for name in others),
           os.listdir(spool))
    mine = [path for path in pathlib.Path(spool).iterdir() if path.name not in others]
    expect(mine and all(path.stat().st_mode & 0o77 == 0 for path in mine if path.is_file()), mine)


@claim
def an_empty_profile_is_not_pushed_and_a_missing_one_costs_the_others_nothing():
    need_curl()
    # Types and strings, and no sample.
    empty = write("empty.pb.gz",
                  gzip.compress(b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x05count"))
    with Receiver() as receiver:
        r = push(receiver.url, empty)
        expect(r.status == 1 and "no samples" in r.err and not receiver.seen, r)
        r = push(receiver.url, "/no/such", write("broken.pb.gz", b"\x1f\x8b broken"), pprof())
        expect(r.status == 2 and len(receiver.taken) == 1, r)


HEADER = """
#include <curl/curl.h>
#include <stdio.h>
int main(void)
{
#define P(n) printf("%s %lld\\n", #n, (long long)(n));
	NUMBERS
}
"""
NAMES = {
    "CURL_OK": "CURLE_OK", "CURL_ERROR_TIMEOUT": "CURLE_OPERATION_TIMEDOUT", "CURL_INFO_BEGIN_TIME":
    "CURLINFO_PRETRANSFER_TIME", "CURL_INFO_RETRY_AFTER": "CURLINFO_RETRY_AFTER", "CURL_ERROR_URL":
    "CURLE_URL_MALFORMAT", "CURL_ERROR_PROXY": "CURLE_COULDNT_RESOLVE_PROXY", "CURL_ERROR_HOST":
    "CURLE_COULDNT_RESOLVE_HOST", "CURL_ERROR_CONNECT": "CURLE_COULDNT_CONNECT", "CURL_ERROR_TLS":
    "CURLE_SSL_CONNECT_ERROR", "CURL_ERROR_CERTIFICATE": "CURLE_PEER_FAILED_VERIFICATION",
    "CURL_ERROR_CA_FILE": "CURLE_SSL_CACERT_BADFILE", "CURL_GLOBAL_EVERYTHING": "CURL_GLOBAL_ALL",
    "CURL_POST": "CURLOPT_POST", "CURL_NO_SIGNAL": "CURLOPT_NOSIGNAL", "CURL_TIMEOUT_MS":
    "CURLOPT_TIMEOUT_MS", "CURL_CONNECT_TIMEOUT_MS": "CURLOPT_CONNECTTIMEOUT_MS", "CURL_PROTOCOLS":
    "CURLOPT_PROTOCOLS", "CURL_WRITE_DATA": "CURLOPT_WRITEDATA", "CURL_URL": "CURLOPT_URL",
    "CURL_ERROR_BUFFER": "CURLOPT_ERRORBUFFER", "CURL_POST_FIELDS": "CURLOPT_POSTFIELDS",
    "CURL_USER_AGENT": "CURLOPT_USERAGENT", "CURL_HEADERS": "CURLOPT_HTTPHEADER", "CURL_CA_FILE":
    "CURLOPT_CAINFO", "CURL_WRITE_FUNCTION": "CURLOPT_WRITEFUNCTION", "CURL_POST_SIZE":
    "CURLOPT_POSTFIELDSIZE_LARGE", "CURL_INFO_TYPE": "CURLINFO_CONTENT_TYPE", "CURL_INFO_STATUS":
    "CURLINFO_RESPONSE_CODE", "CURL_HTTP_AND_HTTPS": "CURLPROTO_HTTP | CURLPROTO_HTTPS",
    "CURL_ERROR_SIZE": "CURL_ERROR_SIZE"
}


@claim
def the_numbers_are_those_of_curls_header():
    text = pathlib.Path(SOURCE, "cli/code/push_http.c").read_text()
    ours = {
        name: int(value, 0)
        for name, value in re.findall(r"^\t(CURL_\w+) = (\w+),$", text, re.M)
    }
    expect(set(ours) == set(NAMES), set(ours) ^ set(NAMES))
    if run("gcc", "-E", "-include", "curl/curl.h", "-x", "c", "/dev/null").status:
        raise Skip("curl/curl.h is not installed")
    numbers = "".join(
        f'printf("%s %lld\\n", "{name}", (long long)({real}));\n' for name, real in NAMES.items())
    program = compile_c("numbers", HEADER.replace("NUMBERS", numbers),
                        flags=("-Wno-deprecated-declarations",))
    found = dict(line.rsplit(" ", 1) for line in run(program, check=True).lines())
    expect({name: int(value) for name, value in found.items()} == ours, found, ours)


@claim
def other_verbs_do_not_load_it():
    need("strace")
    r = run("strace", "-f", "-e", "trace=openat", "-o", os.path.join(folder(), "trace"), CAIRN,
            "profile", "show", pprof(), env=dict(os.environ, ASAN_OPTIONS=WITHOUT_LEAKS))
    if r.status:
        raise Skip("strace does not work here")
    expect("libcurl" not in pathlib.Path(folder(), "trace").read_text(), r)


main()
