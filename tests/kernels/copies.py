#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""$duration of inlined copies in kernels that QEMU boots.

Kernels: those of guests.pairs(). The oracle: where a copy ends is found again from objdump and
libdw (tests/truth/kernel_paths.py), and tracefs has events at those instructions and at the
copy's site, with the time. Each duration must begin and end at the events of one call: between the
events of other instructions that the thread passed just before and after, so that no time has to be
tolerated. And there are as many as calls.
"""
import base64
import collections
import concurrent.futures
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'truth'), HERE]
import common  # noqa: E402
import guests  # noqa: E402
import kernel_paths  # noqa: E402
import trace  # noqa: E402

MAX_SITES, MAX_OF_ONE = 130, 2
MEGABYTES = 2600
KILLS = 5
ROUND_NS = 1000
STACK_BYTES = 16 << 10
INIT = guests.SETUP + """
K="--debug-file /vmlinux --no-cache"
work 1
left before
echo 20000 >$T/buffer_size_kb
echo mono >$T/trace_clock
text=$(grep ' _text$' /proc/kallsyms)
slide=$((0x${text%% *} - 0xffffffff81000000))
echo "slide $slide"
while read name at args; do
	printf 'p:o/%s 0x%x %s\\n' $name $((0x$at + slide)) "$args" >>$T/kprobe_events || echo "unset $name"
done </events 2>/dev/null
echo 1 >$T/events/o/enable
rm -f /tmp/said
cairn trace -k --json -o /tmp/copies.json $K $(cat /functions) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
work 3
kill -INT $pid; wait $pid; echo "status $?"
tail -5 /tmp/said
echo 0 >$T/events/o/enable
grep -h ' work-' $T/trace >/tmp/trace
grep '^entries\\|overrun' $T/per_cpu/cpu*/stats | grep -v ' 0$' | head -4
: >$T/kprobe_events
left copies
send copies /tmp/copies.json
send trace /tmp/trace
rm -f /tmp/said
cairn trace -k --stack --json -o /tmp/stacks.json $K 'vfs_read($ret, $duration)' $(cat /first) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
work 1
kill -INT $pid; wait $pid
tail -3 /tmp/said
left stacks
send stacks /tmp/stacks.json
n=0
while [ $n -lt KILLS ]; do
	rm -f /tmp/said
	cairn trace -k $K $(cat /functions) >/dev/null 2>/tmp/said & pid=$!
	wait_for attached /tmp/said & waiter=$!
	usleep $((n * 400000)); [ $n -gt 2 ] && wait $waiter
	kill -9 $pid; wait $pid 2>/dev/null; kill $waiter 2>/dev/null
	n=$((n + 1))
done
sleep 2
left killed
"""


def sent(text, name):
    try:
        return gzip.decompress(base64.b64decode(trace.part(text, name))).decode('utf-8', 'replace')
    except (ValueError, OSError, EOFError):
        return ''


def candidates(kernel, sites):
    """[(function, site)]: a few copies of each function, and of many functions."""
    wanted = []
    for name, of in sorted(trace.choose(sites).items()):
        wanted += [(name, s) for s in of
                   if s['kind'] == 'inlined' and not s['count_caveats'] and s['shared'] == 1
                   and s['symbol'] in trace.HOT and s['symbol'] in kernel.sizes][:MAX_OF_ONE]
    step = max(1, len(wanted) // MAX_SITES)
    return wanted[::step][:MAX_SITES]


def choose(vmlinux, folder, sites):
    """{site: (function, exits)} of copies that the workload passes."""
    dies = [s['die'] for of in sites.values() for s in of if 'die' in s]
    kernel = kernel_paths.Kernel(vmlinux, folder, dies)
    wanted = candidates(kernel, sites)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(
            lambda w: kernel_paths.exits(kernel, w[1]['symbol'], int(w[1]['addr'], 16),
                                         w[1]['die'], w[0]), wanted))
    return {int(s['addr'], 16): (name, ends) for (name, s), ends in zip(wanted, found) if ends}


def write_events(path, chosen):
    with open(path, 'w', encoding='ascii') as file:
        for i, (site, (_, ends)) in enumerate(sorted(chosen.items())):
            file.write(f'c{i}_in {site:x} sp=%sp\n')
            file.writelines(f'c{i}_out{k} {at:x} sp=%sp\n' for k, at in enumerate(sorted(ends)))


def threads_of(text, chosen, unset):
    """{tid: [(time, site or None, address, sp, is entry)]} in order."""
    names = {}
    for i, (site, (_, ends)) in enumerate(sorted(chosen.items())):
        if any(u.startswith(f'c{i}_') for u in unset):
            continue
        names[f'c{i}_in'] = site, site, True
        names.update({f'c{i}_out{k}': (site, at, False) for k, at in enumerate(sorted(ends))})
    threads = collections.defaultdict(list)
    for tid, seconds, micros, name, sp in re.findall(
            r'^\s*work-(\d+)\s.*?\s(\d+)\.(\d{6}): (c\d+_\w+): \(\S+\) sp=(0x[0-9a-f]+)$', text, re.M):
        if name in names:
            site, at, is_entry = names[name]
            threads[int(tid)].append((int(seconds) * 10**9 + int(micros) * 1000, site, at, int(sp, 16), is_entry))
    for events in threads.values():
        events.sort(key=lambda e: e[0])
    return threads


def around(events, i):
    """The times of the events at other instructions before and after an event."""
    at, lo, hi = events[i][2], 0, 1 << 62
    for k in range(i, -1, -1):
        if events[k][2] != at:
            lo = events[k][0]
            break
    for k in range(i, len(events)):
        if events[k][2] != at:
            hi = events[k][0]
            break
    return lo - ROUND_NS, hi + ROUND_NS


def calls_of(events):
    """{site: [(bounds of the begin, bounds of the end)]}, and calls that did not end."""
    calls, opened, left = collections.defaultdict(list), {}, collections.Counter()
    for i, (_, site, _, sp, is_entry) in enumerate(events):
        # The function around it may have pushed something meanwhile; an interrupt has a stack of its own.
        sp //= STACK_BYTES
        if is_entry:
            left[site] += (site, sp) in opened
            opened[site, sp] = i
        elif (site, sp) in opened:
            calls[site].append((around(events, opened.pop((site, sp))), around(events, i)))
    for site, _ in opened:
        left[site] += 1
    return calls, left


def check_durations(version, text, chosen):
    slide = int(re.search(r'^slide (-?\d+)$', text, re.M).group(1))
    unset = re.findall(r'^unset (\S+)$', text, re.M)
    threads = threads_of(sent(text, 'trace'), chosen, unset)
    events = [json.loads(line) for line in sent(text, 'copies').splitlines()]
    summary = events[-1] if events else {}
    ours, without = collections.defaultdict(list), collections.Counter()
    sites, ended = set(), set()
    for e in events:
        if 'args' not in e:
            continue
        site, duration = int(e['address'], 16), e['args'].get('$duration')
        sites.add(site)
        # Copies of several functions begin at the same instruction.
        if site in chosen and e['function'] != chosen[site][0]:
            continue
        if isinstance(duration, int):
            ended.add(site)
            ours[e['tid'], site].append((e['time_ns'] - duration, e['time_ns']))
        elif isinstance(duration, dict):
            without[re.sub(r' at 0x\w+.*', '', str(duration.get('unavailable')))] += 1
    wrong, uneven, n, missing, functions = [], [], 0, 0, set()
    for tid, its in threads.items():
        calls, _ = calls_of(its)
        for site, expected in calls.items():
            mine = sorted(ours.get((tid, site), []))
            if site not in ended:
                continue
            if len(mine) != len(expected):
                missing += abs(len(expected) - len(mine))
                uneven.append((chosen[site][0], hex(site), tid, len(mine), len(expected)))
                continue
            functions.add(chosen[site][0])
            for (start, end), ((a, b), (c, d)) in zip(mine, sorted(expected)):
                n += 1
                if not (a <= start <= b and c <= end <= d):
                    wrong.append((chosen[site][0], hex(site), start - a, b - start, end - c, d - end))
    told = sum(summary.get(k, 0) for k in ('lost', 'missed', 'returns_missed', 'unfinished', 'unwound'))
    print(f'# {version}: slide {slide}, {len(unset)} places that tracefs refuses, {len(sites)} sites were '
          f'passed, {len(ended)} with a duration; without: {dict(without)}; told {told}')
    common.claim(f'{version}: durations are those of tracefs ({n} calls of {len(functions)} functions, '
                 f'wrong: {len(wrong)} {wrong[:4]})', n > 300 and len(functions) >= 30 and not wrong)
    common.claim(f'{version}: as many as tracefs has ({missing} missing of {told} that are told, '
                 f'{uneven[:4]})', missing <= told)


def check_stacks(version, text):
    """Calls that are followed have the stack of their entry."""
    events = [json.loads(line) for line in sent(text, 'stacks').splitlines()]
    seen, callers = collections.Counter(), collections.Counter()
    for e in events:
        if 'args' not in e:
            continue
        frames = e['stack']['frames']
        seen[e['function'], e['kind']] += 1
        if e['function'] == 'vfs_read' and len(frames) > 1:
            functions = frames[1]['functions']
            callers[functions[-1]['function'] if functions else None] += 1
    print(f'# {version}: {dict(seen)} {dict(callers)}')
    common.claim(f'{version}: calls that are followed have stacks ({dict(callers)})',
                 sum(callers.values()) >= 10 and set(callers) <= {'ksys_read', 'kernel_read', '__kernel_read', '__x64_sys_read'})


def check(kernel, vmlinux):
    with tempfile.TemporaryDirectory() as folder:
        debug, work = os.path.join(folder, 'vmlinux'), os.path.join(folder, 'work')
        sidecar = os.path.join(folder, 'kernel.cairn')
        subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o', sidecar], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['objcopy', '--compress-debug-sections=zlib', '-w', '-R', '.rela*', '-R',
                        '.orc_unwind*', vmlinux, debug], check=True)
        subprocess.run(['gcc', '-O2', '-static', '-o', work, trace.WORK], check=True)
        chosen = choose(vmlinux, folder, trace.sites_of(sidecar))
        names = sorted({name for name, _ in chosen.values()})
        write_events(os.path.join(folder, 'events'), chosen)
        for name, words in (('functions', names), ('first', names[:10])):
            with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
                file.write(' '.join(f'{f}($duration)' for f in words) + '\n')
        print(f'# {len(names)} functions, {len(chosen)} copies')
        text = guests.boot(kernel, INIT.replace('KILLS', str(KILLS)),
                           {'/vmlinux': debug, '/bin/work': work,
                            **{'/' + n: os.path.join(folder, n) for n in ('events', 'functions', 'first')}},
                           megabytes=MEGABYTES)
    version = (re.findall(r'kernel (\d\S*)', text) or ['?'])[0]
    if os.environ.get('KEEP'):
        with open(os.environ['KEEP'] + version, 'w', encoding='utf-8') as file:
            file.write(text)
    check_durations(version, text, chosen)
    check_stacks(version, text)
    left = {name: (int(a), int(b)) for name, a, b in re.findall(r'^left (\w+) (\d+) (\d+)$', text, re.M)}
    for name in ('copies', 'stacks', 'killed'):
        common.claim(f'{version}: nothing is left after {name} ({left.get(name)})',
                     left.get(name) == left.get('before') == (0, 0))


if __name__ == '__main__':
    if common.dw_program('inlined') is None:
        common.skip('durations of copies in other kernels', 'the headers of libdw are missing')
        common.finish()
    guests.each('durations of copies in other kernels', check, 'objdump')
