#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What cairn profile -a takes of memory on a machine that runs a JVM, clang with libLLVM, node and
two hundred processes; and how long a run of a million samples takes from its end to its file.

    memory.py [SECONDS]      10 of sampling at 99 Hz for the memory

    memory    resident memory of its own, the most and the last, and that of its maps in the
              kernel, while it samples; what it has mapped of these counts once
    end       from SIGINT to the exit, for each kind of output, after a million samples; the others
              are stopped meanwhile
The aims are 150 MB while it samples, 1 s for a pprof and 2 s for a page.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CAIRN = os.path.abspath(
    os.environ.get("CAIRN", os.path.join(os.environ.get("CAIRN_BUILD", "build"), "cairn")))
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
N_PROCESSES = 200
SAMPLES = int(os.environ.get("SAMPLES", "1000000"))
RATE = 20000
JAVA = """
public class Busy {
    static long fold(int n) { return n < 2 ? 1 : fold(n - 1) + fold(n - 2); }
    public static void main(String[] words) {
        java.util.HashMap<String, Long> seen = new java.util.HashMap<>();
        for (int i = 0; ; i++) seen.put("n" + i % 1000, fold(i % 25));
    }
}
"""
NODE = "const t=[];for(let i=0;;i++){t[i%1000]=JSON.parse(JSON.stringify({a:i,b:[i]}))}"
IDLE = "import time\nwhile True: sorted(range(1000)), time.sleep(0.1)"
C_SOURCE = "#include <stdio.h>\n" + "\n".join(
    f"int f{i}(int a) {{ for (int k = 0; k < a; k++) printf(\"%d\", k * {i}); return a + {i}; }}"
    for i in range(2000))


def start(stack, words, **options):
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, **options)
    stack.callback(process.wait)
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
    return process


def crowd(stack, folder):
    """The machine's processes; the names of what cannot be had."""
    missing, busy = [], []
    for tool, name, text, words in (
            ("java", "Busy.java", JAVA, ["java", "Busy.java"]),
            ("node", "busy.js", NODE, ["node", "busy.js"]),
            ("clang", "busy.c", C_SOURCE,
             ["sh", "-c", "while :; do clang -O2 -g -c busy.c -o busy.o; done"])):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        if shutil.which(tool):
            busy.append(start(stack, words, cwd=folder))
        else:
            missing.append(tool)
    for _ in range(N_PROCESSES):
        busy.append(start(stack, [sys.executable, "-c", IDLE]))
    time.sleep(10)
    return missing, busy


def all_map_bytes():
    """Memory of the machine's maps of BPF, as the kernel accounts it: not all have a descriptor."""
    text = subprocess.run([shutil.which("bpftool") or "/usr/sbin/bpftool", "map", "show", "-j"],
                          capture_output=True, check=True, text=True).stdout
    return sum(int(entry["bytes_memlock"]) for entry in json.loads(text))


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def mapped_maps(pid):
    """Resident bytes of maps in a process's own memory."""
    total, is_map = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("Rss:") and is_map:
                total += int(line.split()[1]) * 1024
            elif "-" in line.split(" ", 1)[0]:
                is_map = line.rstrip().endswith("anon_inode:bpf-map")
    return total


def profile(words):
    return subprocess.Popen([CAIRN, "profile", "-a", "--json", *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def summary_of(text):
    return json.loads(next(line for line in text.splitlines() if line.startswith('{"summary"')))


def memory(folder):
    out = os.path.join(folder, "m.pb.gz")
    before = all_map_bytes()
    tool = profile(["-F", "99", "--duration", str(SECONDS + 5), "-o", out])
    time.sleep(SECONDS)
    twice, maps = mapped_maps(tool.pid), all_map_bytes() - before
    most, last = status(tool.pid, "VmHWM") - twice, status(tool.pid, "VmRSS") - twice
    text, _ = tool.communicate()
    summary = summary_of(text)
    mb = 1e6
    print(f"  memory while it samples: {last / mb:.0f} MB of its own ({most / mb:.0f} at the most), "
          f"{maps / mb:.0f} MB of maps, {(most + maps) / mb:.0f} MB in all at the most; "
          f"{summary['files']} files, {summary['rows']} rows, {summary['samples']} samples")


def end(folder, kind, busy):
    out = os.path.join(folder, "e." + kind)
    tool = profile(["-F", str(RATE), "-o", out])
    time.sleep(SAMPLES / RATE / os.cpu_count() + 1)
    before = time.monotonic()
    tool.send_signal(signal.SIGINT)
    for process in busy:
        os.killpg(process.pid, signal.SIGSTOP)
    text, _ = tool.communicate()
    took = time.monotonic() - before
    for process in busy:
        os.killpg(process.pid, signal.SIGCONT)
    summary = summary_of(text)
    print(f"  {kind}: {took:.2f} s from SIGINT to the exit, {summary['samples']} samples, "
          f"{os.path.getsize(out) / 1e6:.1f} MB", flush=True)
    return took


def main():
    folder = tempfile.mkdtemp()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, True)
        missing, busy = crowd(stack, folder)
        if missing:
            print(f"  without {', '.join(missing)}: not installed")
        memory(folder)
        for kind in ("pb.gz", "html"):
            for _ in range(2):  # The first has no sidecars yet.
                end(folder, kind, busy)


if __name__ == "__main__":
    main()
