#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn sites --running, and the hazards of kprobes, in kernels that QEMU boots.

Kernels: those of scripts/kernels.sh that have a vmlinux with debug information, and the lab's. The
oracle is the kernel: its kallsyms for addresses; for hazards what it does when a kprobe is set on
each of a sample of sites, which it refuses exactly where there is a hazard.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'truth'))
import common  # noqa: E402
import guests  # noqa: E402

# Of the sites with a hazard and without, each so many-th.
EACH_HAZARD, EACH_OTHER = 40, 700
# Functions of which all sites are compared: each so many-th of those with an inlined copy.
EACH_FUNCTION = 400
INIT = """
/bin/busybox mount -t tracefs none /sys/kernel/tracing
echo "kernel $(/bin/busybox uname -r)"
/bin/busybox grep -E ' _text$' /proc/kallsyms
echo "begin running"
while read name; do
	cairn sites --running --sidecar /kernel.cairn --no-cache --json "$name" 2>/dev/null
done </functions
echo "end running"
/bin/busybox --install -s /bin
cairn sites --running --sidecar /kernel.cairn --no-cache vfs_write file_start_write \\
	--emit tracefs >/tmp/set.sh
sh /tmp/set.sh
echo "set status $?, wanted $(grep -c "'p:cairn/" /tmp/set.sh), there $(grep -c : /sys/kernel/tracing/kprobe_events)"
i=0
while [ $i -lt 100 ]; do echo $i >/tmp/file$((i % 5)); i=$((i + 1)); done
# Each line that is written here would be an event.
echo 0 >/sys/kernel/tracing/events/cairn/enable
echo "begin events"
grep -v '^#' /sys/kernel/tracing/trace
echo "end events"
sh /tmp/set.sh remove
echo "left $(grep -c : /sys/kernel/tracing/kprobe_events)"
text=$(/bin/busybox grep ' _text$' /proc/kallsyms)
slide=$((0x${text%% *} - 0xffffffff81000000))
i=0
while read at; do
	i=$((i + 1))
	/bin/busybox printf 'p:c/x%d 0x%x\\n' $i $((0x$at + slide)) \\
		>>/sys/kernel/tracing/kprobe_events 2>/dev/null
done </sites
echo "begin registered"
/bin/busybox cat /sys/kernel/tracing/kprobe_events
echo "end registered"
echo "begin symbols"
/bin/busybox grep -wFf /functions /proc/kallsyms
echo "end symbols"
echo 2 >/proc/sys/kernel/kptr_restrict
echo "begin hidden"
cairn sites --running --sidecar /kernel.cairn --no-cache tcp_ack 2>&1
echo "status $?"
echo "end hidden"
"""


def choose(sidecar):
    """({link-time address: hazard}, [names]) of the sample."""
    sites, names, seen = {}, collections.OrderedDict(), collections.Counter()
    listing = subprocess.run(
        [common.CAIRN, 'sites', sidecar, '--sites', '--json'],
        capture_output=True,
        text=True,
        check=True).stdout
    for line in listing.splitlines():
        site = json.loads(line)
        if site['section'] != '.text':
            continue
        kind = 'hazard' if site['hazard'] else 'other'
        seen[kind] += 1
        if seen[kind] % (EACH_HAZARD if site['hazard'] else EACH_OTHER) == 0:
            sites[int(site['addr'], 16)] = site['hazard']
        if site['kind'] == 'inlined' and site['function'] not in names:
            names[site['function']] = True
    return sites, list(names)[::EACH_FUNCTION]


def part(text, name):
    found = re.search(f'begin {name}\n(.*?)end {name}\n', text, re.S)
    return found.group(1) if found else ''


def offline(sidecar, name):
    r = subprocess.run([common.CAIRN, 'sites', sidecar, name, '--json'],
                       capture_output=True,
                       text=True,
                       check=False)
    return [
        s for s in map(json.loads, r.stdout.splitlines())
        if s.get('section') == '.text'
    ]


def check_addresses(version, text, sidecar, names, slide):
    shown = [
        json.loads(line) for line in part(text, 'running').splitlines()
        if line[:1] == '{'
    ]
    shown = [s for s in shown if 'running' in s]
    wanted = [(int(s['addr'], 16) + slide, s['args']) for name in names
              for s in offline(sidecar, name)]
    found = [(int(s['running'], 16), s['args']) for s in shown]
    common.claim(
        f'{version}: sites are where the kernel was loaded ({len(found)} of {len(names)} functions)',
        len(found) > 100 and found == wanted)
    symbols = collections.defaultdict(set)
    for at, name in re.findall(r'^([0-9a-f]{16}) [tTwW] (\S+)$',
                               part(text, 'symbols'), re.M):
        symbols[name].add(int(at, 16))
    bodies = [
        s for s in shown
        if s['kind'] == 'out-of-line' and s['symbol'] in symbols
    ]
    wrong = [
        s['symbol'] for s in bodies
        if int(s['running'], 16) not in symbols[s['symbol']]
    ]
    common.claim(
        f'{version}: bodies are at their symbols ({len(bodies)}, wrong: {wrong[:3]})',
        bodies and not wrong)


def check_script(version, text):
    """The file that an inlined copy in vfs_write() has is the one that vfs_write() was called with."""
    found = re.search(r'set status (\d+), wanted (\d+), there (\d+)', text)
    common.claim(
        f'{version}: a script sets a kprobe at each site ({found and found.group(0)})',
        found and found.group(1) == '0'
        and found.group(2) == found.group(3) != '0')
    common.claim(f'{version}: and removes them',
                 re.search(r'^left 0$', text, re.M))
    called, n, wrong = {}, 0, []
    for task, name, where, args in re.findall(
            r'^\s*(\S+-\d+) .*? (\w+)_\d+: \((\w+)\+\S+\) (.*)$',
            part(text, 'events'), re.M):
        file = re.search(r'\bfile=(0x[0-9a-f]+)', args)
        if name == 'vfs_write':
            called[task] = file.group(1)
        elif where == 'vfs_write':
            n += 1
            wrong += [args] if file.group(1) != called.get(task) else []
    common.claim(
        f'{version}: an inlined copy has the argument of its caller ({n} events, wrong: {wrong[:3]})',
        n >= 100 and not wrong)


def check_hazards(version, text, sites):
    taken = {
        int(i)
        for i in re.findall(r'^p:c/x(\d+) ', part(text, 'registered'), re.M)
    }
    counts, wrong = collections.Counter(), []
    for i, (at, hazard) in enumerate(sites.items(), 1):
        counts[hazard or 'none'] += 1
        if (i in taken) != (hazard is None):
            wrong.append((hex(at), hazard))
    common.claim(
        f'{version}: a kprobe is refused exactly where there is a hazard ({dict(counts)}, wrong: {wrong[:5]})',
        taken and not wrong)


def check(kernel, vmlinux):
    with tempfile.TemporaryDirectory() as folder:
        sidecar = os.path.join(folder, 'kernel.cairn')
        subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o', sidecar],
                       check=True,
                       stdout=subprocess.DEVNULL)
        sites, names = choose(sidecar)
        for name, lines in (('sites', (f'{at:x}' for at in sites)),
                            ('functions', names)):
            with open(os.path.join(folder, name), 'w',
                      encoding='utf-8') as file:
                file.write('\n'.join(lines) + '\n')
        text = guests.boot(
            kernel, INIT, {
                '/' + name: os.path.join(folder, name)
                for name in ('kernel.cairn', 'sites', 'functions')
            })
        version = (re.findall(r'kernel (\d\S*)', text) or ['?'])[0]
        start = re.findall(r'([0-9a-f]{16}) T _text', text)
        if not start:
            common.not_ok(f'{kernel}: no kallsyms\n{text[-2000:]}')
            return
        check_addresses(version, text, sidecar, names,
                        int(start[0], 16) - 0xffffffff81000000)
        check_hazards(version, text, sites)
        check_script(version, text)
        hidden = part(text, 'hidden')
        common.claim(
            f'{version}: hidden addresses are refused with the setting ({hidden!r})',
            'kptr_restrict=1' in hidden and 'status 3' in hidden)


if __name__ == '__main__':
    guests.each('sites in other kernels', check)
