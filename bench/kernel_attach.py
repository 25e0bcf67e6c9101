#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Setting and removing 1,000 probes in a kernel: cairn trace -k beside perf and bpftrace.

A guest is booted once, so that all tools run in the same kernel. Each tool gets the same entries of
functions, sets its probes, runs `true`, and removes them: the time of the whole command is taken.
Of Cairn also by kprobes alone, and of as many inlined copies, which no other tool can set by name.
The emulated processors are slow: only the ratios mean something.
    total     from the start of the command to its end
    set       of that, setting the probes; of perf the probe events that are made before
    removed   of that, removing them
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'truth'))
import common  # noqa: E402
import guests  # noqa: E402

N = int(os.environ.get('N', '1000'))
WORDS = re.compile(r'{"function":"(\w+)",.*?"kind":"([^"]*)",.*?"section":"([^"]*)"')
INIT = """
/bin/busybox --install -s /bin
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
echo "kernel $(uname -r)"
T=/sys/kernel/tracing
K="--sidecar /kernel.cairn --no-cache"
export BPFTRACE_MAX_PROBES=4096 BPFTRACE_NO_CPP_DEMANGLE=1
ulimit -n 20000
now() { cut -d' ' -f1 /proc/uptime; }
left() { echo "left $(wc -l </sys/kernel/debug/kprobes/list) $(wc -l <$T/enabled_functions)"; }
ours()
{
	name=$1; from=$(now); shift
	cairn trace -k --count --json $K "$@" -c /bin/true >/tmp/out 2>/tmp/said
	echo "tool $name $? $from $(now) 0"; tail -1 /tmp/said
	echo "begin $name"; cat /tmp/out; echo "end $name"
	left
}
ours multi $(cat /entries)
ours kprobes --backend kprobe $(cat /entries)
ours copies $(cat /copies)
from=$(now)
for f in $(cat /entries); do echo "p:q/$f $f"; done >/tmp/events
cat /tmp/events >$T/kprobe_events
made=$(now)
echo "made $(wc -l <$T/kprobe_events)"
perf record -q -e 'q:*' -a -o /tmp/perf.data -- /bin/true >/tmp/said 2>&1
code=$?
: >$T/kprobe_events
echo "tool perf $code $from $(now) $made"; tail -1 /tmp/said
left
if [ -e /bin/bpftrace ]; then
	list=$(sed 's/ */ /g;s/ $//;s/^/kprobe:/;s/ /,kprobe:/g' /entries)
	from=$(now)
	bpftrace -e "$list { @ = count(); }" -c /bin/true >/tmp/said 2>&1
	echo "tool bpftrace $? $from $(now) 0"; tail -1 /tmp/said
	left
fi
"""


def choose(sidecar):
    """(functions with one body and no copy, functions with copies that make N places)"""
    bodies, of_copies, bad = {}, {}, set()
    # Hundreds of thousands of lines: only their first words are read.
    with subprocess.Popen([common.CAIRN, 'sites', sidecar, '--sites', '--json'],
                          stdout=subprocess.PIPE, text=True) as listing:
        for line in listing.stdout:
            words = WORDS.match(line)
            if not words:
                continue
            name, kind, section = words.groups()
            if '"hazard":null' not in line or '"count_caveats":[]' not in line or \
                    section != '.text':
                bad.add(name)
            found = bodies if kind == 'out-of-line' else of_copies
            found[name] = found.get(name, 0) + 1
    entries = [n for n in sorted(bodies)
               if bodies[n] == 1 and n not in bad and n not in of_copies]
    copies, n = [], 0
    for name in sorted(of_copies):
        if name not in bodies and name not in bad and n + of_copies[name] <= N:
            copies.append(name)
            n += of_copies[name]
    return entries[::max(1, len(entries) // N)][:N], copies


def show(name, start, end, made, summary):
    total = float(end) - float(start)
    if summary:
        rest = f"{summary['attach_ns'] / 1e9:8.2f} {summary['detach_ns'] / 1e9:8.2f} " \
               f"{summary['attached']:7} {summary['links']:6}"
    else:
        rest = f'{float(made) - float(start):8.2f}' if float(made) else ''
    print(f'{name:10} {total:8.2f} {rest}')


def report(text):
    print(f"{(re.findall(r'kernel (.*)', text) or ['?'])[0]}, {N} places, seconds\n"
          f"{'':10} {'total':>8} {'set':>8} {'removed':>8} {'places':>7} {'links':>6}")
    for name, code, start, end, made in re.findall(
            r'^tool (\w+) (\d+) (\S+) (\S+) (\S+)$', text, re.M):
        if code != '0':
            said = re.search(f'^tool {name} .*\n(.*)', text, re.M).group(1)
            print(f'{name:10} exit {code}: {said[:300]}')
            continue
        body = re.search(f'^begin {name}\n(.*?)^end {name}$', text, re.M | re.S)
        lines = body.group(1).splitlines() if body else []
        show(name, start, end, made, json.loads(lines[-1]) if lines else None)
    left = re.findall(r'^left (\d+) (\d+)$', text, re.M)
    print('left in kprobes/list and enabled_functions:', sorted(set(left)))


def main():
    if not guests.pairs() or common.have('qemu-system-x86_64', 'cpio', 'perf'):
        print('skip: no kernel with a vmlinux, no QEMU, or no perf: scripts/kernels.sh fetches '
              'the kernels')
        sys.exit(77)
    for kernel, vmlinux in guests.pairs():
        with tempfile.TemporaryDirectory() as folder:
            sidecar = os.path.join(folder, 'kernel.cairn')
            subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o', sidecar], check=True,
                           stdout=subprocess.DEVNULL)
            entries, copies = choose(sidecar)
            files = {'/kernel.cairn': sidecar}
            for name, words in (('entries', entries), ('copies', copies)):
                files['/' + name] = os.path.join(folder, name)
                with open(files['/' + name], 'w', encoding='utf-8') as file:
                    file.write(' '.join(words) + '\n')
            tools = {n: shutil.which(n) for n in ('perf', 'bpftrace', 'true') if shutil.which(n)}
            report(guests.boot(kernel, INIT, files, tools))


if __name__ == '__main__':
    main()
