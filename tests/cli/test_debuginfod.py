#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sidecars from an unmodified debuginfod on the loopback interface."""

import contextlib
import http.server
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from claims import CAIRN, WITHOUT_LEAKS, cairn, claim, compile_c, expect, folder, main, need, run
from sidecars import seal_served

PROGRAM = """\
static volatile long sink;
static inline __attribute__((always_inline)) long add(long left, int right) { sink = left; return left + right; }
__attribute__((noinline)) long walk(long n, int c) { for (; n > 1; n--) sink = add(n, c); return n; }
int main(int argc, char **argv) { return (int)walk(argc, argc); }
"""
SECONDS = 60


def program():
    return compile_c("served", PROGRAM, "gcc", ("-O2", "-g", "-Wl,--build-id"))


def build_id(path):
    return run("readelf", "-n", path, check=True).out.split("Build ID: ")[1].split()[0]


def served_id():
    """The real id, "cairn", and the version of the format, which the header tells."""
    path = os.path.join(folder(), "versioned.cairn")
    cairn("sidecar", program(), "-o", path, check=True)
    with open(path, "rb") as file:
        content = file.read()
    return build_id(program()) + b"cairn".hex() + f"{content[content.index(b'cairnpk') + 8]:02x}"


def stripped():
    path = os.path.join(folder(), "served-stripped")
    run("strip", program(), "-o", path, check=True)
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    """The file, or the HTTP status with which it was refused."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as reply:
            return reply.read()
    except urllib.error.HTTPError as e:
        return e.code


def wait_for(url):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            reply = get(url)
            if isinstance(reply, bytes):
                return reply
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("not served: " + url)


@contextlib.contextmanager
def serving(directory):
    """URL of a debuginfod that serves the files in @directory."""
    need("debuginfod")
    port = free_port()
    with open(os.path.join(folder(), f"debuginfod-{port}.log"), "wb") as log, \
         subprocess.Popen(["debuginfod", "-p", str(port), "-d", ":memory:", "-F", directory], stdout=log, stderr=log,
                          env={**os.environ, "HOME": folder(), "DEBUGINFOD_URLS": ""}) as server:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def environment(name, **more):
    """Without network unless asked, and with caches of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    env.pop("CAIRN_DEBUGINFOD", None)
    return {**env, "XDG_CACHE_HOME": os.path.join(folder(), name), "CAIRN_CACHE": "off", **more}


def served(name):
    """A directory with the sidecar, and with the real debug file."""
    path = os.path.join(folder(), name)
    os.makedirs(path, exist_ok=True)
    cairn("sidecar", program(), "--debuginfod", path, check=True)
    run("objcopy", "--only-keep-debug", program(), os.path.join(path, "real.debug"), check=True)
    return path


@claim
def the_file_has_an_id_derived_from_the_real_one_and_the_sidecar_in_a_section():
    path = served("file")
    file = os.path.join(path, build_id(program()) + ".cairn.debug")
    expect(build_id(file) == served_id(), build_id(file))
    expect(".debug_cairn" in run("readelf", "-SW", file, check=True).out)
    inside = os.path.join(folder(), "inside.cairn")
    run("objcopy", "-O", "binary", "--only-section=.debug_cairn", "--set-section-flags",
        ".debug_cairn=alloc", file, inside, check=True)
    cairn("sidecar", program(), "-o", inside + ".beside", check=True)
    with open(inside, "rb") as a, open(inside + ".beside", "rb") as b:
        expect(a.read() == b.read())
    # It can be named, too.
    expect(
        cairn("sites", stripped(), "add", "--sidecar", file).out == cairn(
            "sites", program(), "add").out)


@claim
def a_stripped_program_is_answered_for_and_the_real_debug_file_is_served_as_before():
    path = served("both")
    told = cairn("sites", program(), "add", "--json").out
    with serving(path) as url:
        env = environment("both-cache")
        wait_for(f"{url}/buildid/{served_id()}/debuginfo")
        with open(os.path.join(path, "real.debug"), "rb") as real:
            expect(wait_for(f"{url}/buildid/{build_id(program())}/debuginfo") == real.read())
        r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url, env=env)
        expect(r.status == 0 and r.out == told, r, told)
        at = r.objects()[0]["addr"]
        r = cairn("addr", stripped(), at, "--debuginfod", env={**env, "DEBUGINFOD_URLS": url})
        expect(r.status == 0 and "inlined into walk" in r.out, r)
        r = cairn("trace", "--dry-run", "-c", stripped(), "add(left)",
                  env={**env, "DEBUGINFOD_URLS": url, "CAIRN_DEBUGINFOD": "1"})
        expect(r.status == 0 and "1 site" in r.out, r)
    # From the client's own cache, with the server gone.
    r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url, env=env)
    expect(r.status == 0 and r.out == told, r)


@claim
def what_was_downloaded_is_kept_in_the_cache_and_asked_for_no_more():
    path, cache = served("keep"), os.path.join(folder(), "keep-cache")
    told = cairn("sites", program(), "add", "--json").out
    kept = os.path.join(cache, "cairn", build_id(program()) + ".cairn")
    env = environment("keep-cache")
    del env["CAIRN_CACHE"]
    with serving(path) as url:
        wait_for(f"{url}/buildid/{served_id()}/debuginfo")
        # Where the cache is only to be read nothing is put there.
        r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url,
                  env={**env, "CAIRN_CACHE": "read"})
        expect(r.status == 0 and r.out == told and not os.path.exists(kept), r)
        r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url, env=env)
        expect(r.status == 0 and r.out == told and os.path.exists(kept), r)
    plain = os.path.join(folder(), "keep-beside")
    cairn("sidecar", program(), "-o", plain, check=True)
    with open(kept, "rb") as a, open(plain, "rb") as b:
        expect(a.read() == b.read())
    # Neither server nor the client's own cache.
    shutil.rmtree(os.path.join(cache, "debuginfod_client"), ignore_errors=True)
    r = cairn("sites", stripped(), "add", "--json", env=env)
    expect(r.status == 0 and r.out == told and not r.err, r)


@claim
def the_network_is_left_alone_unless_asked_for_and_needed():
    need("strace")
    path, log = stripped(), os.path.join(folder(), "network.log")
    asked = {"DEBUGINFOD_URLS": "http://127.0.0.1:9"}
    for file, words, more, wanted in ((path, (), asked, False), (path, (), {
            "CAIRN_DEBUGINFOD": "1"
    }, False), (program(), ("--debuginfod",), asked, False), (path, ("--debuginfod",), asked,
                                                              True)):
        run("strace", "-f", "-o", log, "-e", "trace=socket,connect", CAIRN, "sites", file, "add",
            *words, env=environment("none", ASAN_OPTIONS=WITHOUT_LEAKS, **more))
        with open(log, encoding="utf-8") as told:
            told = told.read()
        expect(("sin_port=htons(9)" in told) == wanted, file, words, more, told)


@claim
def a_server_that_has_none_or_is_not_there_leaves_the_plain_answer():
    plain = cairn("sites", stripped(), "add")
    expect(plain.status == 3, plain)
    r = cairn("sites", stripped(), "add", "--debuginfod=http://127.0.0.1:9",
              env=environment("gone"))
    expect(r.status == 3 and plain.err in r.err, r, plain)
    empty = os.path.join(folder(), "empty")
    os.makedirs(empty)
    shutil.copy(stripped(), empty)
    with serving(empty) as url:
        wait_for(f"{url}/buildid/{build_id(program())}/executable")
        r = cairn("sites", stripped(), "add", "--debuginfod=" + url, env=environment("empty-cache"))
        asked = [
            line for line in r.err.splitlines() if line.startswith(f"cairn: queried {url} for the ")
        ]
        expect(r.status == 3 and r.err.endswith(plain.err), r, plain)
        expect([line.split(" for the ")[1] for line in asked] == [
            f"{what} of {build_id(program())}: not there" for what in ("sidecar", "debug file")
        ], r)


@claim
def an_ordinary_server_gives_the_debug_file_and_a_sidecar_is_made_of_it():
    path, cache = os.path.join(folder(), "ordinary"), os.path.join(folder(), "ordinary-cache")
    os.makedirs(path)
    run("objcopy", "--only-keep-debug", program(), os.path.join(path, "real.debug"), check=True)
    told = cairn("sites", program(), "add", "--json").out
    layout = cairn("trace", "--dry-run", "-v", "--no-sidecar", "-c", program(),
                   "walk(n)").out.replace(program(), stripped())
    env = environment("ordinary-cache")
    del env["CAIRN_CACHE"]
    with serving(path) as url:
        wait_for(f"{url}/buildid/{build_id(program())}/debuginfo")
        r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url,
                  env={**env, "CAIRN_CACHE": "off"})
        expect(r.status == 0 and r.out == told, r, told)
        lines = [line.split(" for the ")[1] for line in r.err.splitlines()]
        expect(lines[0] == f"sidecar of {build_id(program())}: not there" and len(lines) == 2, r)
        expect(
            lines[1].startswith(f"debug file of {build_id(program())}: ")
            and lines[1].endswith(" KiB"), r)
    # The server is gone: from the client's cache, and the sidecar is kept.
    r = cairn("sites", stripped(), "add", "--json", "--debuginfod=" + url, env=env)
    expect(r.status == 0 and r.out == told, r)
    expect(os.path.exists(os.path.join(cache, "cairn",
                                       build_id(program()) + ".cairn")), os.listdir(cache))
    shutil.rmtree(os.path.join(cache, "debuginfod_client"))
    r = cairn("sites", stripped(), "add", "--json", env=env)
    expect(r.status == 0 and r.out == told and not r.err, r)
    r = cairn("trace", "--dry-run", "-v", "-c", stripped(), "walk(n)", env=env)
    expect(r.status == 0 and r.out == layout, r, layout)


class Trickling(http.server.BaseHTTPRequestHandler):
    """A server that takes minutes for a file."""
    def do_GET(self):  # pylint: disable=invalid-name
        self.send_response(200)
        self.send_header("Content-Length", "10000000")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(SECONDS * 10):
                self.wfile.write(b"x" * 1000)
                self.wfile.flush()
                time.sleep(0.1)

    def log_message(self, *_):
        pass


def drain(terminal, seconds):
    """Read until nothing is connected to @terminal any more, or for @seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                os.read(terminal, 4096)
            except OSError:
                return


def interrupted_on_a_terminal(words, env):
    """Wait status of a program after Ctrl-C was pressed; SIGKILL if it did not end."""
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(words[0], words, env)
    drain(terminal, 1)
    os.write(terminal, b"\x03")
    drain(terminal, SECONDS / 2)
    if not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    os.close(terminal)
    return status


@claim
def ctrl_c_ends_a_download_at_once():
    need("debuginfod")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickling) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        # A shell's background job, as this test may be, ignores the signal and hands that down.
        with subprocess.Popen(
            [CAIRN, "sites", stripped(), "add", "--debuginfod=" + url], env=environment("ctrl-c"),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            time.sleep(1)
            expect(process.poll() is None, process.returncode)
            process.send_signal(signal.SIGINT)
            # The server would take as long for its next bytes.
            expect(process.wait(SECONDS / 2) == -signal.SIGINT, process.returncode)
        server.shutdown()


@claim
def ctrl_c_ends_a_download_although_a_pager_waits_for_the_answer():
    need("debuginfod")
    pager = os.path.join(folder(), "pager-waits")
    with open(pager, "w", encoding="utf-8") as script:
        script.write("#!/bin/sh\ntrap '' INT\nexec /bin/cat\n")
    os.chmod(pager, 0o755)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickling) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        words = [
            CAIRN, "sites",
            stripped(), "add", f"--debuginfod=http://127.0.0.1:{server.server_port}"
        ]
        status = interrupted_on_a_terminal(
            words, environment("ctrl-c-pager", CAIRN_PAGER=pager, TERM="xterm"))
        expect(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status)
        server.shutdown()


class Failing(http.server.BaseHTTPRequestHandler):
    """A server that closes the connection without a reply, or answers with an HTTP status."""
    status = None

    def do_GET(self):  # pylint: disable=invalid-name
        if self.status:
            self.send_error(self.status)
        else:
            self.close_connection = True

    def log_message(self, *_):
        pass


@claim
def a_failure_of_the_server_is_not_taken_for_a_file_that_is_not_there():
    need("debuginfod")
    plain = cairn("sites", stripped(), "add")
    for status, said in ((None, "Empty reply from server"), (503, "503"), (403, "403"), (404,
                                                                                         None)):
        handler = type("Handler", (Failing,), {"status": status})
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}"
            # The second time is no other: the client's cache is not to know that the file is not
            # there.
            for _ in range(2):
                r = cairn("sites", stripped(), "add", "--debuginfod=" + url,
                          env=environment(f"failing-{status}"))
                expect(r.status == 3 and plain.err in r.err, r)
                expect(("not there" in r.err) == (status == 404), status, r)
                if said:
                    told = [
                        line for line in r.err.splitlines() if line.startswith(f"cairn: {url}: ")
                    ]
                    expect(len(told) == 2 and all(said in line for line in told), said, r)
            server.shutdown()


@claim
def debuginfod_without_a_server_is_said():
    r = cairn("sites", stripped(), "add", "--debuginfod", env=environment("which"))
    expect("DEBUGINFOD_URLS is not set" in r.err and r.status, r)


def in_clients_cache(directory, content):
    """A file as the client keeps what a server had for the program's id."""
    where = os.path.join(directory, build_id(program()))
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, "debuginfo"), "wb") as file:
        file.write(content)


@claim
def the_clients_cache_is_looked_into_without_a_server():
    real = os.path.join(folder(), "cached.debug")
    run("objcopy", "--only-keep-debug", program(), real, check=True)
    with open(real, "rb") as file:
        content = file.read()
    told = cairn("sites", program(), "add", "--json").out
    env = environment("local")
    own = {**env, "DEBUGINFOD_CACHE_PATH": os.path.join(folder(), "local-own")}
    in_clients_cache(os.path.join(env["XDG_CACHE_HOME"], "debuginfod_client"), content)
    in_clients_cache(own["DEBUGINFOD_CACHE_PATH"], content)
    for words, more in ((("--debuginfod",), env), (("--debuginfod",), own),
                        ((), {**env, "CAIRN_DEBUGINFOD":
                              "1"}), (("--debuginfod=http://127.0.0.1:9",), env)):
        r = cairn("sites", stripped(), "add", "--json", *words, env=more)
        expect(r.status == 0 and r.out == told, words, r)
        expect(
            "found the debug file in the debuginfod client's cache: " in r.err
            and "asked" not in r.err, words, r)
    # Nobody asked for it.
    r = cairn("sites", stripped(), "add", "--json", env=env)
    expect(r.status == 3 and "found" not in r.err, r)
    # The sidecar of it is kept, and then the cache is not looked into.
    del env["CAIRN_CACHE"]
    for again in (False, True):
        r = cairn("sites", stripped(), "add", "--json", "--debuginfod", env=env)
        expect(r.status == 0 and r.out == told and ("found" in r.err) != again, again, r)


@claim
def what_the_clients_cache_has_is_not_believed():
    env = environment("local-bad")
    where = os.path.join(env["XDG_CACHE_HOME"], "debuginfod_client")
    other = compile_c("other-id", PROGRAM, "gcc",
                      ("-O2", "-g", "-Wl,--build-id=0x1234567890abcdef"))
    with open(other, "rb") as file:
        other = file.read()
    for content, why in ((b"", "it is not in the client's cache"),
                         (b"no ELF file", "not an ELF file"), (other, "build-id")):
        in_clients_cache(where, content)
        r = cairn("sites", stripped(), "add", "--debuginfod", env=env)
        expect(r.status == 3 and not r.out and why in r.err, content[:16], r)


@claim
def a_served_sidecar_of_another_build_is_refused():
    path = served("wrong")
    file = os.path.join(path, build_id(program()) + ".cairn.debug")
    with open(file, "rb") as f:
        content = f.read()
    real = bytes.fromhex(build_id(program()))
    other = bytes(b ^ 1 for b in real)
    expect(content.count(real) == 2)
    # Another program's sidecar under the right name, and under its own.
    for name, bytes_, why in (("lie", other.join(content.rsplit(real, 1)), "than its wrapper"),
                              ("other", content.replace(real, other), "expected")):
        with open(file, "wb") as f:
            f.write(seal_served(bytes_))
        r = cairn("sites", stripped(), "add", "--sidecar", file)
        expect(r.status == 3 and why in r.err, name, r)
        if name == "lie":
            with serving(path) as url:
                wait_for(f"{url}/buildid/{served_id()}/debuginfo")
                r = cairn("sites", stripped(), "add", "--debuginfod=" + url,
                          env=environment("wrong-cache"))
                # The server has the debug file itself, too, and that one answers.
                expect(why in r.err and "for the debug file of" in r.err, r)
                expect(
                    r.status == 0 and r.out == cairn("sites", "--no-sidecar", program(), "add").out,
                    r)


@claim
def a_served_sidecar_of_another_program_with_that_build_id_is_refused_and_not_kept():
    """Its ids all fit; its code does not."""
    other = compile_c("other-program",
                      PROGRAM.replace("a + b", "a - b").replace("n > 1", "n > 3"), "gcc",
                      ("-O2", "-g", "-Wl,--build-id=0x" + build_id(program())))
    path = os.path.join(folder(), "other-program-served")
    os.makedirs(path)
    cairn("sidecar", other, "--debuginfod", path, check=True)
    with serving(path) as url:
        wait_for(f"{url}/buildid/{served_id()}/debuginfo")
        env = environment("other-program-cache", CAIRN_CACHE="keep")
        for words in (("sites", stripped(), "walk"), ("trace", "--dry-run", "-c", stripped(),
                                                      "walk")):
            r = cairn(*words, "--debuginfod=" + url, env=env)
            expect(r.status and "is of another file than" in r.err and "site" not in r.out, r)
        kept = os.path.join(env["XDG_CACHE_HOME"], "cairn")
        expect(not os.path.isdir(kept) or not [f for f in os.listdir(kept) if f.endswith(".cairn")])


@claim
def a_program_without_a_build_id_cannot_be_served():
    path = compile_c("anonymous", PROGRAM, "gcc", ("-O2", "-g", "-Wl,--build-id=none"))
    r = cairn("sidecar", path, "--debuginfod", folder())
    expect(r.status == 2 and "no build-id" in r.err, r)


main()
