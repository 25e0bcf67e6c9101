#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile --continuous: windows that add up, are written and pushed, and cost no more memory.
"""

import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from claims import (CAIRN, IS_SANITIZED, Running, Skip, cairn, claim, claim_each, compile_c,
                    expect, folder, main, need_root, run)
from receiver import SECONDS, Receiver

# Each sample has another stack: five levels of calls, chosen by a number that changes.
MANY = """\
static volatile unsigned long sink;
#define LEVEL(n, next) \\
__attribute__((noinline)) static void n##a(unsigned x) { next(x); __asm__ volatile(""); } \\
__attribute__((noinline)) static void n##b(unsigned x) { next(x); __asm__ volatile(""); __asm__ volatile("nop"); } \\
__attribute__((noinline)) static void n(unsigned x) { if (x & 1) n##a(x >> 1); else n##b(x >> 1); __asm__ volatile(""); }
__attribute__((noinline)) static void burn(unsigned x) { for (int i = 0; i < 20000; i++) sink += i; __asm__ volatile(""); }
LEVEL(l1, burn) LEVEL(l2, l1) LEVEL(l3, l2) LEVEL(l4, l3) LEVEL(l5, l4) LEVEL(l6, l5) LEVEL(l7, l6) LEVEL(l8, l7)
LEVEL(l9, l8) LEVEL(l10, l9) LEVEL(l11, l10) LEVEL(l12, l11)
int main(void) { for (unsigned x = 1;; x = x * 1103515245 + 12345) l12(x >> 8); }
"""

SHORT = """\
static volatile unsigned long sink;
__attribute__((noinline)) void burn(void) { for (unsigned long i = 0; i < 30000000; i++) sink += i; }
int main(void) { burn(); return 0; }
"""


# tests/truth/profile_windows.py has more of them.
WINDOWS = int(os.environ.get("CAIRN_WINDOWS", "30"))
STEP = min(max(10, WINDOWS // 3), 25)


def target():
    return compile_c("many", MANY,
                     flags=("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"))


class Profiler(Running):
    """cairn profile --continuous of a process, and the windows that it has told of."""

    def __init__(self, pid, *words, env=None):
        need_root()
        self.err = open(os.path.join(folder(), "err"), "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen([
            CAIRN, "profile", "-p",
            str(pid), "--continuous", "--json", "-F", "999", *map(str, words)
        ], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.err, text=True, env=dict(
            os.environ, **(env or {})))
        self.windows = []

    def __exit__(self, *_):
        super().__exit__()
        self.err.close()

    def text(self):
        return pathlib.Path(self.err.name).read_text(errors="replace")

    def wait_for(self, n):
        """Until it has told of N windows in all."""
        while len(self.windows) < n:
            line = self.process.stdout.readline()
            if not line:
                status = self.process.wait(SECONDS)
                if status == 3 and ("BTF" in self.text() or "kernel" in self.text()):
                    raise Skip(" ".join(self.text().split()))
                raise AssertionError(f"it ended with {status}: {self.text()}")
            if "window" in (found := json.loads(line)):
                self.windows.append(found)

    def end(self, by=signal.SIGTERM):
        """Ends it; its status. All windows are known then."""
        self.process.send_signal(by)
        rest = self.process.communicate(timeout=2 * SECONDS)[0]
        self.windows += [found for found in map(json.loads, rest.splitlines()) if "window" in found]
        return self.process.returncode


def samples_of(path):
    """Number of samples in a file, and the names in it."""
    found = cairn("profile", "show", path, "--value", "samples", "--json", check=True).objects()
    return found[-1]["sum"], {one["function"] for one in found[:-1]}


def new_folder(name):
    path = os.path.join(folder(), name)
    os.mkdir(path)
    return path


def files_in(where):
    return sorted(os.path.join(where, name) for name in os.listdir(where))


@claim_each(signal.SIGTERM, signal.SIGINT)
def windows_add_up_and_each_is_a_file(by):
    where = new_folder(f"sum-{by}")
    with Running(target()) as program, Profiler(program.pid, "--window", "400ms", "-o",
                                                where + "/w.pb.gz") as p:
        p.wait_for(4)
        status = p.end(by)
    expect(status == 0 and len(p.windows) >= 5, status, p.windows)
    files = files_in(where)
    pattern = r"w\.\d{8}T\d{6}\.\d{3}Z\.pb\.gz"
    expect(all(re.fullmatch(pattern, os.path.basename(path)) for path in files), files)
    with_samples = [w for w in p.windows if w["samples"]]
    expect(len(files) == len(with_samples) and len(with_samples) >= 4, files, p.windows)
    for path, window in zip(files, with_samples):
        n, names = samples_of(path)
        expect(n == window["samples"], path, n, window)
        expect("main" in names and any(name.startswith("burn") for name in names), path, names)
    for a, b in zip(p.windows, p.windows[1:]):
        expect(a["time_ns"] + a["duration_ns"] == b["time_ns"], a, b)
    expect(sum(w["lost"] for w in p.windows) == 0, p.windows)


@claim
def only_the_last_files_stay():
    where = new_folder("keep")
    with Running(
            target()) as program, Profiler(program.pid, "--window", "200ms", "--keep", "3", "-o",
                                           where + "/w.folded", "-o", where + "/w.json") as p:
        p.wait_for(6)
        status = p.end()
    names = [os.path.basename(path) for path in files_in(where)]
    expect(status == 0 and len(names) == 6, names)
    expect(sum(name.endswith(".json") for name in names) == 3, names)


def rss_kib(pid):
    return int(
        re.search(r"VmRSS:\s+(\d+)",
                  pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))


def least_rss_kib(pid):
    """Between two windows: what one takes goes back at its end."""
    found = []
    for _ in range(20):
        found.append(rss_kib(pid))
        time.sleep(0.01)
    return min(found)


@claim
def its_memory_does_not_grow():
    """Every window has hundreds of stacks that none before it had."""
    if IS_SANITIZED:
        raise Skip("a sanitizer keeps freed memory")
    where = new_folder("flat")
    with Running(target()) as program, Profiler(program.pid, "--window", "100ms", "-F", "4000",
                                                "--keep", "2", "-o", where + "/w.pb.gz") as p:
        # What is made once, as sidecars are, may come late: the count begins when STEP windows added
        # next to nothing.
        first, n = None, STEP
        for n in range(STEP, 150, STEP):
            p.wait_for(n)
            before, first = first, least_rss_kib(p.process.pid)
            if before and first < before + 20 * STEP:
                break
        p.wait_for(n + WINDOWS)
        last = least_rss_kib(p.process.pid)
        expect(p.end() == 0, p.text())
    expect(sum(w["stacks"] for w in p.windows) > 50 * WINDOWS, p.windows[-1])
    expect(last < first + 40 * WINDOWS, first, last)


@claim
def each_window_is_pushed_once_also_when_the_server_was_away():
    with Running(target()) as program, Receiver([503, 503]) as receiver:
        with Profiler(program.pid, "--window", "500ms", "--push",
                      receiver.url, "--label", "service_name=many", "--spool",
                      os.path.join(folder(), "spool-push"), env={"no_proxy": "127.0.0.1"}) as p:
            p.wait_for(4)
            # Both failures are over before the end, which sends once more.
            for _ in range(SECONDS * 10):
                if len(receiver.seen) > 2 or p.process.poll() is not None:
                    break
                time.sleep(0.1)
            status = p.end()
            text = p.text()
    if "needs libcurl" in text:
        raise Skip("libcurl.so.4 is not installed")
    expect(status == 0, status, text)
    with_samples = [w for w in p.windows if w["samples"]]
    pushed = sorted((r.profile() for r in receiver.taken), key=lambda found: found["time_ns"])
    expect([found["time_ns"] for found in pushed] == [w["time_ns"] for w in with_samples], pushed,
           p.windows)
    expect([sum(v[0]
                for v in found["stacks"].values())
            for found in pushed] == [w["samples"] for w in with_samples], p.windows)
    expect(len({r.key for r in receiver.taken}) == len(receiver.taken), receiver.taken)
    expect(receiver.taken[0].labels["node"] == socket.gethostname(), receiver.taken[0].labels)
    expect(not list(pathlib.Path(folder(), "spool-push").glob("0*.*")),
           os.listdir(os.path.join(folder(), "spool-push")))


@claim_each("path", "abstract")
def a_service_manager_is_told(kind):
    name = os.path.join(folder(), "notify") if kind == "path" else f"\0cairn-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear, Running(target()) as program:
        ear.bind(name)
        ear.settimeout(SECONDS)
        with Profiler(program.pid, "--window", "300ms", "-o", os.path.join(folder(), "n.folded"),
                      env={"NOTIFY_SOCKET": name.replace("\0", "@")}) as p:
            p.wait_for(1)
            expect(ear.recv(100) == b"READY=1", "not ready")
            expect(p.end() == 0, p.text())
            expect(ear.recv(100) == b"STOPPING=1", "not stopping")


@claim
def a_window_that_cannot_be_written_does_not_end_it():
    where = new_folder("gone")
    with Running(target()) as program, Profiler(program.pid, "--window", "300ms", "-o",
                                                where + "/w.folded") as p:
        p.wait_for(1)
        os.rename(where, where + "-away")
        p.wait_for(len(p.windows) + 3)
        os.mkdir(where)
        p.wait_for(len(p.windows) + 2)
        status = p.end()
        text = p.text()
    expect(status == 2 and where in text, status, text)
    expect(files_in(where), text)


@claim
def it_ends_with_the_process():
    with Running("sleep", "1000") as program:
        where = new_folder("ends")
        with Profiler(program.pid, "--window", "500ms", "-o", where + "/w.folded") as p:
            p.wait_for(1)
            program.process.kill()
            program.process.wait()
            n = len(p.windows)
            with contextlib.suppress(AssertionError):
                p.wait_for(n + 120)
            expect(p.process.wait(SECONDS) == 0 and len(p.windows) < n + 120, p.windows, p.text())


@claim
def sidecars_come_from_a_debuginfod_while_it_runs():
    """A stripped program has no names; once its sidecar was downloaded, the windows have them."""
    where, served, cache = new_folder("fetched"), new_folder("served"), new_folder("cache")
    stripped = os.path.join(folder(), "stripped")
    run("strip", target(), "-o", stripped, check=True)
    cairn("sidecar", target(), "--debuginfod", served, check=True)
    sidecar = next(path for path in files_in(served))
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            asked.append(self.path)
            content = pathlib.Path(
                sidecar).read_bytes() if self.path == f"/buildid/{served_id}/debuginfo" else None
            self.send_response(200 if content else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

    served_id = re.search(r"Build ID: ([0-9a-f]+)",
                          run("readelf", "-n", sidecar, check=True).out).group(1)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {
        "CAIRN_CACHE": "", "XDG_CACHE_HOME": cache, "DEBUGINFOD_CACHE_PATH": cache + "/client",
        "no_proxy": "127.0.0.1"
    }
    with Running(stripped) as program, Profiler(
            program.pid, "--window", "500ms", "-o", where + "/w.pb.gz",
            f"--debuginfod=http://127.0.0.1:{server.server_address[1]}", env=env) as p:
        n = 0
        while not any(
                name.startswith("burn")
                for path in files_in(where)[-1:]
                for name in samples_of(path)[1]):
            n += 1
            expect(n < 100, asked, files_in(cache))
            p.wait_for(n)
        expect(p.end() == 0, p.text())
    server.shutdown()
    server.server_close()
    expect(f"/buildid/{served_id}/debuginfo" in asked, asked)


# While a file is there, no memory is there for single objects: a profile is one, and what grows
# with samples is not.
NO_MEMORY = """\
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
void *__libc_calloc(size_t n, size_t size);
static pthread_t first;
__attribute__((constructor)) static void begin(void) { first = pthread_self(); }
void *calloc(size_t n, size_t size)
{
	const char *path = getenv("NO_MEMORY");
	if (path && n == 1 && pthread_equal(pthread_self(), first) && !access(path, F_OK)) { errno = ENOMEM; return NULL; }
	return __libc_calloc(n, size);
}
"""


def no_memory(name):
    if IS_SANITIZED:
        raise Skip("a sanitizer has its own calloc")
    library = compile_c("no-memory", NO_MEMORY, flags=("-O1", "-shared", "-fPIC"))
    return {"LD_PRELOAD": library, "NO_MEMORY": os.path.join(folder(), name)}


@claim
def what_was_sampled_in_a_window_that_cannot_be_made_is_in_the_next_one():
    where, env = new_folder("no-memory"), no_memory("no-memory-now")
    with Running(target()) as program, Profiler(program.pid, "--window", "400ms", "-o",
                                                where + "/w.pb.gz", env=env) as p:
        p.wait_for(2)
        pathlib.Path(env["NO_MEMORY"]).touch()
        for _ in range(SECONDS * 50):
            if "in the next one" in p.text() or p.process.poll() is not None:
                break
            time.sleep(0.02)
        os.unlink(env["NO_MEMORY"])
        p.wait_for(len(p.windows) + 2)
        status = p.end()
        text = p.text()
    expect(status == 3 and "out of memory" in text and "in the next one" in text, status, text)
    for a, b in zip(p.windows, p.windows[1:]):
        expect(a["time_ns"] + a["duration_ns"] == b["time_ns"], a, b)
    # Twice as long, and with the samples of both.
    longest = max(p.windows, key=lambda w: w["duration_ns"])
    expect(longest["duration_ns"] >= 700_000_000, p.windows)
    found = sum(samples_of(path)[0] for path in files_in(where))
    expect(found == sum(w["samples"] for w in p.windows), found, p.windows)


@claim
def samples_of_a_last_window_that_cannot_be_made_are_counted():
    where, env = new_folder("no-memory-last"), no_memory("no-memory-last-now")
    with Running(target()) as program, Profiler(program.pid, "--window", "400ms", "-o",
                                                where + "/w.pb.gz", env=env) as p:
        p.wait_for(2)
        pathlib.Path(env["NO_MEMORY"]).touch()
        status = p.end()
        text = p.text()
    expect(
        status == 3
        and re.search(r"the last window could not be made: [\d,]+ samples? of it are lost", text),
        status, text)


@claim
def a_sidecar_is_made_of_a_program_that_has_ended_before_its_window():
    """Its path through its process leads nowhere then."""
    where, cache = new_folder("ended"), new_folder("ended-cache")
    program = compile_c("ended", SHORT, flags=("-O2", "-g", "-Wl,--build-id=0x191919"))
    env = {"CAIRN_CACHE": "", "XDG_CACHE_HOME": cache}
    # Each lives for a tenth of a window.
    with Running("sh", "-c", f"while :; do {program}; sleep 0.3; done") as shell:
        with Profiler(shell.pid, "--window", "1s", "-o", where + "/w.pb.gz", env=env) as p:
            wanted = pathlib.Path(cache, "cairn", "191919.cairn")
            for _ in range(60):
                p.wait_for(len(p.windows) + 1)
                if wanted.exists():
                    break
            expect(wanted.exists(), list(pathlib.Path(cache).rglob("*")), p.text())
            expect(p.end() == 0, p.text())


@claim
def a_program_that_was_deleted_gives_back_its_place_on_the_disk():
    where = new_folder("deleted")
    path = os.path.join(folder(), "soon-deleted")
    shutil.copy(target(), path)
    with Running("sleep", "1000") as other, Running(path) as program:
        with Profiler(program.pid, "-p", other.pid, "--window", "300ms", "-o",
                      where + "/w.pb.gz") as p:
            maps = pathlib.Path(f"/proc/{p.process.pid}/maps")
            p.wait_for(2)
            os.unlink(path)
            expect("soon-deleted" in maps.read_text(), maps.read_text())
            program.process.kill()
            program.process.wait()
            for _ in range(100):
                p.wait_for(len(p.windows) + 1)
                if "soon-deleted" not in maps.read_text():
                    break
            expect("soon-deleted" not in maps.read_text(), maps.read_text(), p.windows)
            links = [
                os.readlink(f"/proc/{p.process.pid}/fd/{fd}")
                for fd in os.listdir(f"/proc/{p.process.pid}/fd")
            ]
            expect(not any("soon-deleted" in link for link in links), links)
            expect(p.end() == 0, p.text())


@claim
def a_sender_that_cannot_send_is_the_exit_status():
    with Running(target()) as program, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        with Profiler(program.pid, "--window", "400ms", "--push",
                      f"http://127.0.0.1:{dead.getsockname()[1]}", "--spool",
                      os.path.join(folder(), "spool-dead"), env={"no_proxy": "127.0.0.1"}) as p:
            p.wait_for(2)
            status = p.end()
            text = p.text()
    if "needs libcurl" in text:
        raise Skip("libcurl.so.4 is not installed")
    expect(status == 3 and list(pathlib.Path(folder(), "spool-dead").glob("*.new")), status, text)


@claim
def what_makes_no_sense_is_refused():
    mark = os.path.join(folder(), "mark")
    name = os.path.join(folder(), "x.folded")
    for words in (["--window", "1", "-o", name], ["--keep", "1", "-o", name], ["--continuous"], [
            "--continuous", "--off-cpu", "-o", name
    ], ["--continuous", "--window", "1ms", "-o",
            name], ["--continuous", "--window", "25h", "-o",
                    name], ["--continuous", "--keep", "99999999", "-o",
                            name], ["--continuous", "-o", "x.txt"]):
        r = cairn("profile", "-c", f"touch {mark}", *words)
        expect(r.status == 2 and not os.path.exists(mark), r)


main()
