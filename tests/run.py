#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run the tests of one or more suites and count what they claim.

    tests/run.py [--build DIR] [--only NAME] [--seconds N] [-v] SUITE...

A suite (unit, cli, live, truth, kernels, bench, fuzz) is
  - every test that a meson.build registers with `suite: 'SUITE'`, and
  - every executable file in tests/SUITE/ (bench: in bench/) that is not registered.
They run with CAIRN (the program), CAIRN_BUILD and CAIRN_SOURCE (directories) in the environment.

How a test tells its claims, one line each, is recognised from its output:
  cmocka            [       OK ] NAME       [  FAILED  ] NAME        [  SKIPPED ] NAME
  scripts           ok NAME                 not ok NAME              skip NAME: REASON
  neither           exit code 0: passed; 77: skipped, the reason is the last line it printed; else failed
A test that ends badly without having named a failed claim (a crash, a sanitizer's report, a time
limit) has failed once. What failed shows its output; what was skipped shows its reason.
A report of AddressSanitizer about any process that a test starts fails the test, whatever the test
itself makes of that process.

Scripts of cli and live run beside others, and wait for processes that others delay. One that failed
runs once more when nothing else does. A claim that holds then is not known to be right, nor to be
wrong: it is skipped, with the output of its failure and this reason. More than UNSTEADY_MAX in a run
have failed.

The last line is `N passed, N failed, N skipped`; the exit code is 1 when anything failed, and when
nothing passed. With CAIRN_COUNTS=FILE the three numbers are also appended to FILE.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP = 77
# Against hangs only: a busy machine needs four times what a quiet one does.
DEFAULT_SECONDS = 480
# These measure, or watch the whole machine: they run one at a time, after the others. Of suite live
# they are those that meson.build calls not parallel.
ALONE = {"truth", "kernels", "bench", "fuzz"}
# Scripts of these that fail beside others run once more.
AGAIN = {"cli", "live"}

# These scripts wait for half of their time: for a process to stop, a probe to be gone, a clock; and
# so do these tests of processes and threads. All others compute, and nothing in them depends on
# when they run: they run beside the first, and give way to them.
WAITING = re.compile("test_(agent|cache|debuginfod|demo|doctor|documents|memory|profile|run|serve|"
                     "sites_running|stack|trace|unwind|usdt|vars)|"
                     "backtrace|codectl|core|jit|protocol|runtime|timed_read|unwind|walk")
GIVES_WAY = 5
# The longest begin first: a long one that begins last leaves a processor without work. In this
# order; all others come after them.
LONGEST = """
    test_trace_returns calls_slice test_documents test_bind test_clang test_trace_aggregate
    test_stack test_profile_code test_profile_run test_stack_jit test_profile_continuous
    test_languages test_profile_all test_trace_stack live_uprobe_steps test_btf_load
    test_stack_args test_profile_push test_trace test_trace_return_stacks test_profile_otlp
    seeds_sites unwind test_sidecar_types test_lines test_damage core test_truncated test_own_files
    test_btf test_profile_html test_emit test_split dwarf_compiled protocol
""".split()

# Claims of which sanitizers cannot say more are made once, by the plain build. They are about texts
# and pages: what runs of the program these make, other scripts make with more inputs. Or they are
# about the answers of the running kernel, with which a table of instructions and BTF are compared.
PLAINLY = {
    "test_conformance", "test_demo", "test_documents", "test_house", "test_btf_load",
    "live_uprobe_effects", "live_uprobe_rules", "live_uprobe_steps", "live_uprobe_vectors"
}
# Claims that may fail beside other tests and hold alone. More than two in 7,000 are no accident.
UNSTEADY_MAX = 2
# What tests write is in memory where there is room for it: a disk is what half of them wait for.
ROOM = 4 << 30

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|RUN)\s+\]\s(.*)$")
CMOCKA_END = re.compile(r"^\[=+\].*test\(s\) run\.$")
CMOCKA_START = re.compile(r"^\[=+\].*Running \d+ test\(s\)\.$")
CLAIM = re.compile(r"^(ok|not ok|skip) (.+)$")


class Test:
    def __init__(self, suite, name, cmd, seconds=DEFAULT_SECONDS, env=None, is_alone=None):
        self.suite, self.name, self.cmd = suite, name, cmd
        self.seconds, self.env = seconds, env or {}
        self.is_alone = suite in ALONE if is_alone is None else is_alone
        self.waits = suite == "live" or bool(WAITING.match(name))


class Outcome:
    def __init__(self, test):
        self.test = test
        self.passed, self.failed, self.skipped = [], [], []  # skipped: (name, reason)
        self.output, self.took_s, self.cpu_s, self.why = "", 0.0, 0.0, ""


def registered(build):
    """What meson knows: (tests by suite, paths of the scripts among them)."""
    tests, scripts = [], set()
    for kind in ("tests", "benchmarks"):
        path = os.path.join(build, "meson-info", f"intro-{kind}.json")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
        for entry in entries:
            # "project:suite"; a benchmark without one belongs to bench.
            suites = [s.split(":")[-1] for s in entry["suite"]]
            if kind == "benchmarks":
                suites = ["bench"]
            scripts.update(os.path.realpath(part) for part in entry["cmd"] if os.path.exists(part))
            for suite in suites:
                is_alone = suite in ALONE or (suite == "live" and not entry["is_parallel"])
                tests.append(Test(suite, entry["name"], entry["cmd"], entry["timeout"] or 36000,
                                  entry["env"], is_alone))
    return tests, scripts


def executables(suite, known):
    folder = os.path.join(TOP, "bench" if suite == "bench" else os.path.join("tests", suite))
    if not os.path.isdir(folder):
        return []
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    return [
        Test(suite,
             os.path.splitext(os.path.basename(p))[0], [p],
             3600 if suite in ALONE or suite == "live" else DEFAULT_SECONDS)
        for p in paths
        if os.path.isfile(p) and os.access(p, os.X_OK) and os.path.realpath(p) not in known
    ]


class Process(subprocess.Popen):
    """With the seconds of a processor that it and all that it waited for took."""
    cpu_s = 0.0

    def _try_wait(self, wait_flags):
        try:
            pid, status, used = os.wait4(self.pid, wait_flags)
        except ChildProcessError:
            return self.pid, 0
        if pid == self.pid:
            self.cpu_s = used.ru_utime + used.ru_stime
        return pid, status


def execute(test, env, factor):
    """Output, exit code (None: the time limit passed), seconds, and those of a processor."""
    start = time.monotonic()
    # In a session of its own, so that the time limit ends what the test started too.
    command = test.cmd if test.waits else ["nice", "-n", str(GIVES_WAY), *test.cmd]
    process = Process(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, env={**env, **test.env}, cwd=TOP,
                      start_new_session=True)
    try:
        output, _ = process.communicate(timeout=test.seconds * factor * (1 if test.waits else 4))
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    return output.decode("utf-8", "replace"), code, time.monotonic() - start, process.cpu_s


def read_claims(outcome):
    """Fills passed, failed and skipped from the lines; false when there is no claim at all."""
    in_cmocka, said, seen = False, [], False
    for line in outcome.output.splitlines():
        if CMOCKA_START.match(line):
            in_cmocka = seen = True
        elif CMOCKA_END.match(line):
            # What follows lists the same tests again.
            in_cmocka = False
        match = CMOCKA.match(line) if in_cmocka else None
        if match:
            word, name = match.groups()
            if word == "OK":
                outcome.passed.append(name)
            elif word == "FAILED":
                outcome.failed.append(name)
            elif word == "SKIPPED":
                outcome.skipped.append((name, " ".join(said) or "no reason given"))
            said = []
            continue
        match = None if in_cmocka else CLAIM.match(line)
        if match:
            seen = True
            word, name = match.groups()
            if word == "ok":
                outcome.passed.append(name)
            elif word == "not ok":
                outcome.failed.append(name)
            else:
                name, _, reason = name.partition(": ")
                outcome.skipped.append((name, reason or "no reason given"))
        elif line.strip():
            said.append(line.strip())
    return seen


def judge(outcome, code):
    test = outcome.test
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    has_claims = read_claims(outcome)
    if code == SKIP and not outcome.passed and not outcome.failed and not outcome.skipped:
        outcome.skipped.append((test.name, lines[-1] if lines else "no reason given"))
        return
    if code == 0 and not has_claims:
        outcome.passed.append(test.name)
    if code is None:
        outcome.why = "did not end within its time limit"
    elif code < 0:
        outcome.why = f"ended by signal {signal.Signals(-code).name}"
    elif code not in (0, SKIP):
        outcome.why = f"exit code {code}"
    if outcome.why and not outcome.failed:
        outcome.failed.append(f"{test.name} ({outcome.why})")


def see_reports(outcome, folder):
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        with open(entry.path, encoding="utf-8", errors="replace") as file:
            outcome.output += file.read()
        outcome.failed.append(f"{outcome.test.name} (a sanitizer reported process {entry.name})")


def run(test, env, factor):
    outcome = Outcome(test)
    with tempfile.TemporaryDirectory(prefix="cairn-reports-") as folder:
        # Processes of other users write there, too.
        os.chmod(folder, 0o1777)
        if "ASAN_OPTIONS" in env:
            env = {**env, "ASAN_OPTIONS": f"{env['ASAN_OPTIONS']}:log_path={folder}/of"}
        try:
            outcome.output, code, outcome.took_s, outcome.cpu_s = execute(test, env, factor)
        except OSError as error:
            outcome.failed.append(f"{test.name} (cannot be started: {error})")
            return outcome
        judge(outcome, code)
        see_reports(outcome, folder)
    return outcome


def show(outcome, verbose):
    test = outcome.test
    counts = f"{len(outcome.passed)} passed"
    if outcome.failed:
        counts += f", {len(outcome.failed)} FAILED"
    if outcome.skipped:
        counts += f", {len(outcome.skipped)} skipped"
    print(f"{test.suite + '/' + test.name:32} {counts}  ({outcome.took_s:.1f} s, "
          f"{outcome.cpu_s:.1f} of a processor)")
    for name, reason in outcome.skipped:
        print(f"    skipped {name}: {reason}")
    if outcome.failed or verbose:
        for line in outcome.output.splitlines():
            print("    | " + line)
        for name in outcome.failed:
            print(f"    FAILED {name}")
    sys.stdout.flush()


def by_length(test):
    return LONGEST.index(test.name) if test.name in LONGEST else len(LONGEST)


def pools_of(tests, jobs, is_sanitized):
    """[(tests, how many of them at once)]"""
    together = sorted((t for t in tests if not t.is_alone), key=by_length)
    if jobs:
        return [(together, jobs)]
    # Under sanitizers what has to keep up with a program would come too late.
    n_waiting = os.cpu_count() * (1 if is_sanitized else 2)
    return [([t for t in together if t.waits], n_waiting),
            ([t for t in together if not t.waits], os.cpu_count())]


def run_all(tests, env, pools, factor, verbose):
    outcomes, begun = [], []
    for some, n in pools:
        pool = concurrent.futures.ThreadPoolExecutor(n)
        begun += [pool.submit(run, test, env, factor) for test in some]
    for done in concurrent.futures.as_completed(begun):
        outcomes.append(done.result())
        show(outcomes[-1], verbose)
    for test in tests:
        if test.is_alone:
            outcome = run(test, env, factor)
            # A benchmark's output is its result.
            show(outcome, verbose or test.suite == "bench")
            outcomes.append(outcome)
    return outcomes


def run_again(outcomes, env, factor):
    """Runs what failed beside others alone, and skips the claims that hold then."""
    beside = [o for o in outcomes if o.failed and o.test.suite in AGAIN and not o.test.is_alone]
    if len(outcomes) == 1 or sum(len(o.failed) for o in beside) > UNSTEADY_MAX:
        return
    for outcome in beside:
        print(f"{outcome.test.suite}/{outcome.test.name} once more, alone:")
        alone = run(outcome.test, env, factor)
        show(alone, False)
        steady = [name for name in outcome.failed if name not in alone.passed]
        for name in set(outcome.failed) - set(steady):
            reason = "UNSTEADY: it failed beside other tests (its output is above), and held alone"
            print(f"    skipped {name}: {reason}")
            outcome.skipped.append((name, reason))
        outcome.failed = steady + [name for name in alone.failed if name not in steady]


def has_room():
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            available = re.search(r"MemAvailable: *(\d+) kB", file.read())
    except OSError:
        return False
    return bool(available) and int(available.group(1)) << 10 >= 2 * ROOM


@contextlib.contextmanager
def folder_of_files():
    """Where tests make their files; others' programs may enter, as they may /tmp."""
    if "TMPDIR" in os.environ or os.geteuid() != 0 or not has_room():
        yield None
        return
    path = tempfile.mkdtemp(prefix="cairn-")
    # Not /dev/shm: what runs there is taken for code that a program made.
    is_mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=1777", "cairn-tests", path],
        stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        yield path if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", path], check=False)
        os.rmdir(path)


def environment(build, seconds, folder):
    env = dict(os.environ)
    # The first in the path may be a script that looks for this interpreter, for half a second.
    found = shutil.which("python3")
    if found and not os.path.samefile(found, sys.executable):
        env["PATH"] = os.path.dirname(os.path.realpath(sys.executable)) + os.pathsep + env["PATH"]
    if folder:
        env["TMPDIR"] = folder
    env.update(CAIRN=os.path.join(build,
                                  "cairn"), CAIRN_BUILD=build, CAIRN_SOURCE=TOP, LC_ALL="C.UTF-8",
               PYTHONDONTWRITEBYTECODE="1", CAIRN_CACHE="off", CAIRN_FUZZ_SECONDS=str(seconds))
    for name in ("DEBUGINFOD_URLS", "NO_COLOR"):
        env.pop(name, None)
    return env


def main():
    parser = argparse.ArgumentParser(description="Run the tests of suites and count their claims.")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", help="run the tests of this name only")
    parser.add_argument("--seconds", type=int, default=30, help="for each fuzz target")
    parser.add_argument("--jobs", type=int, help="at once")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()

    build = os.path.abspath(args.build)
    known, scripts = registered(build)
    tests = []
    for suite in args.suites:
        tests += [t for t in known if t.suite == suite] + executables(suite, scripts)
    is_sanitized = "san" in os.path.basename(build)
    if args.only:
        tests = [t for t in tests if t.name == args.only]
    elif is_sanitized:
        tests = [t for t in tests if t.name not in PLAINLY]
    if not tests:
        print(
            f"run.py: no test in {' '.join(args.suites)}"
            + (f" is named {args.only}" if args.only else ""), file=sys.stderr)

    # Sanitizers slow everything down; a time limit is there to end what hangs.
    factor = 4 if is_sanitized else 1
    with folder_of_files() as folder:
        env = environment(build, args.seconds, folder)
        outcomes = run_all(tests, env, pools_of(tests, args.jobs, is_sanitized), factor,
                           args.verbose)
        run_again(outcomes, env, factor)

    passed, failed, skipped = (sum(len(getattr(o, what)) for o in outcomes)
                               for what in ("passed", "failed", "skipped"))
    if os.environ.get("CAIRN_COUNTS"):
        with open(os.environ["CAIRN_COUNTS"], "a", encoding="utf-8") as file:
            file.write(f"{passed} {failed} {skipped}\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
