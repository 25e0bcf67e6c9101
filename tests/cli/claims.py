# SPDX-License-Identifier: BSD-2-Clause
"""Claims about the program, for the scripts beside this file.

    from claims import claim, cairn, expect, main

    @claim
    def a_missing_file_is_a_usage_error():
        r = cairn("sites", "/no/such/file")
        expect(r.status == 2, r)

    main()

A claim's name is its function's; it fails by an exception, and is skipped by Skip(reason).
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

CAIRN = os.environ.get("CAIRN", os.path.join(os.path.dirname(__file__), "../../build/cairn"))
SOURCE = os.environ.get("CAIRN_SOURCE",
                        os.path.abspath(os.path.join(os.path.dirname(__file__), "../..")))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(SOURCE, "build"))
# What is claimed of the debug information must not be answered by an earlier test's sidecar.
os.environ["CAIRN_CACHE"] = "off"
os.environ["CAIRN_PAGER"] = ""
# What hangs has to end; sanitizers are slow.
SECONDS = 120
# Below strace or gdb no process can look for leaks; and another library may have to be the first.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
ANY_ORDER = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
# What is repeated over random inputs is repeated less often there.
IS_SANITIZED = "san" in os.path.basename(os.path.abspath(BUILD))

# Clang does not tell whether a function has already changed its parameter (docs/limits.md), so its
# values are shown on request only. What is claimed about them is claimed with this request; that
# they are not shown without it, too.
TAKE_VALUES = {"gcc": (), "clang": ("--assume-unmodified",)}
MAY_HAVE_CHANGED = "the function may already have changed it"

_claims = []
_built = {} # path: (what it was built of, the file)
_folder = None
_libc = ctypes.CDLL(None)


class Skip(Exception):
    """Nothing can be said here; the reason tells why."""


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Running:
    """A program that is ended, whatever happens: after a with block, or with this process."""

    def __init__(self, *words, **kwargs):
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, preexec_fn=_die_with_parent, **kwargs)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def path_of(name):
    return os.path.join(folder(), name)


def write(name, content):
    """A file of that text, or of these bytes, in the test's folder; its path."""
    data = content if isinstance(content, bytes) else content.encode()
    with open(path_of(name), "wb") as file:
        file.write(data)
    return path_of(name)


def is_failure(found):
    return isinstance(found, dict) and set(found) == {"error", "status"}


class Result:
    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    def lines(self):
        return self.out.splitlines()

    def objects(self):
        """Standard output as JSON, one value per line, without the failures."""
        return [found for found in map(json.loads, self.lines()) if not is_failure(found)]

    def errors(self):
        """The failures that are on standard output."""
        return [found for found in map(json.loads, self.lines()) if is_failure(found)]

    def __str__(self):
        return (f"$ {' '.join(self.command)}\nexit status {self.status}\n"
                f"--- stdout\n{self.out[-6000:]}--- stderr\n{self.err[-3000:]}")


def run(*command, seconds=SECONDS, check=False, **kwargs):
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=seconds, check=False, **kwargs)
    result = Result(command, done.returncode, done.stdout, done.stderr)
    if check:
        expect(result.status == 0, result)
    return result


def cairn(*words, **kwargs):
    return run(CAIRN, *words, **kwargs)


def expect(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(str(item) for item in shown))


def need(tool):
    """The path of a tool that the claim is about, or skip."""
    path = shutil.which(tool)
    if not path:
        raise Skip(f"{tool} is not installed")
    return path


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def folder():
    """A directory of this script's own, gone when it ends."""
    global _folder
    if not _folder:
        _folder = tempfile.TemporaryDirectory(prefix="cairn-cli-")
    return _folder.name


def _stamp(path):
    st = os.stat(path)
    return st.st_ino, st.st_size, st.st_mtime_ns


def compile_c(name, text, compiler="gcc", flags=("-O2", "-g")):
    """ Builds the program NAME from C text and returns its path. A compiler that is missing skips.
    What was built before and is still there is not built again: a process may be reading it, one
    that makes its sidecar in the background, too.
    """
    need(compiler)
    out = os.path.join(folder(), name + "-" + compiler)
    wanted = (text, tuple(flags))
    built = _built.get(out)
    if built and os.path.exists(out) and built == (wanted, _stamp(out)):
        return out
    source = os.path.join(folder(), name + ".c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    run(compiler, *flags, "-o", out, source, check=True)
    _built[out] = (wanted, _stamp(out))
    return out


def claim(function):
    _claims.append((function.__name__, function, ()))
    return function


def plainly(*values):
    """ These values, and none under sanitizers: for claims about what other tools or kills make of
    what was written, of which other claims ask the same code there."""
    return () if IS_SANITIZED else values


def claim_plainly(function):
    """A claim that is not made under sanitizers, as plainly() has it."""
    return function if IS_SANITIZED else claim(function)


def claim_each(*values):
    """The claim is made once per value, which is passed to it and part of its name."""
    def register(function):
        for value in values:
            _claims.append((f"{function.__name__}[{value}]", function, (value,)))
        return function
    return register


def claim_each_of_many(*values):
    """claim_each() of the same code with inputs of many compilers and options: all of them plainly,
    every fourth under sanitizers, which look for errors of the code and not of answers."""
    return claim_each(*values[::4] if IS_SANITIZED else values)


def _note_time(name, began):
    """ With CAIRN_TIMES=FILE each claim's seconds, and those of a processor of what it ran."""
    path = os.environ.get("CAIRN_TIMES")
    if path:
        took = [now - then for now, then in zip(_clocks(), began)]
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{took[0]:.2f} {took[1]:.2f} {os.path.basename(sys.argv[0])} {name}\n")


def _clocks():
    own, others = (resource.getrusage(who)
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.monotonic(), sum(u.ru_utime + u.ru_stime for u in (own, others))


def main():
    failed = 0
    for name, function, args in _claims:
        began = _clocks()
        try:
            function(*args)
        except Skip as reason:
            print(f"skip {name}: {reason}")
        except Exception:  # pylint: disable=broad-except
            failed = 1
            traceback.print_exc(file=sys.stdout)
            print(f"not ok {name}")
        else:
            print(f"ok {name}")
        sys.stdout.flush()
        _note_time(name, began)
    if _folder:
        _folder.cleanup()
    sys.exit(failed)
