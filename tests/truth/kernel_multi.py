# SPDX-License-Identifier: BSD-2-Clause
"""Entries of kernel functions by one link, where the kernel has kprobe_multi: what is done in the
guest, and what is claimed of it.

The oracle is tracefs, by a kprobe of its own at the same entries: each hit of each thread, in
order, and the argument registers of the calling convention. Whether the kernel has such links, its
symbols say.
"""
import collections
import json
import os
import re

import common

# In the order of the parameters, if all of them are integers or pointers.
REGISTERS = ('di', 'si', 'dx', 'cx', 'r8', 'r9')
# Bytes of a type, if it is one of these; a pointer has 8.
SIZES = {'int': 4, 'unsigned int': 4, 'bool': 1, 'umode_t': 2, 'unsigned short': 2}
SIZES |= {name: 8 for name in ('long', 'unsigned long', 'size_t', 'loff_t', 'ssize_t')}
MAX_BODIES = 120
KILLS = 100
INIT = """
# Entries by one link.
echo "fprobe $(grep -c ' register_fprobe_ips$' /proc/kallsyms)"
for f in $(cat /entries); do
	echo "p:m/$f $f a0=%di:x64 a1=%si:x64 a2=%dx:x64 a3=%cx:x64 a4=%r8:x64 a5=%r9:x64"
done >/tmp/entry-events
echo 20000 >$T/buffer_size_kb
: >$T/trace
cat /tmp/entry-events >$T/kprobe_events
echo 1 >$T/events/m/enable
rm -f /tmp/said
cairn trace -k --json -o /tmp/entries.json $K $(cat /entries) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
work 2
kill -INT $pid; wait $pid; echo "entries status $?"
echo 0 >$T/events/m/enable
grep -h ' work-' $T/trace >/tmp/trace
: >$T/kprobe_events
send entries /tmp/entries.json
send entries-trace /tmp/trace
left entries
rm -f /tmp/said
cairn trace -k --count --json -o /tmp/single.json --backend kprobe $K $(cat /few) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
kill -INT $pid; wait $pid
send single /tmp/single.json
n=0
while [ $n -lt KILLS ]; do
	cairn trace -k $K $(cat /few) >/dev/null 2>&1 & pid=$!
	usleep $((RANDOM * 40))
	kill -9 $pid; wait $pid 2>/dev/null
	n=$((n + 1))
done
sleep 2
echo "entries killed $n"
left killed_entries
""".replace('KILLS', str(KILLS))


def choose(sites, hot):
    """Functions that the workload calls, with one body and nothing else."""
    chosen = {}
    for name in sorted(set(hot) & set(sites)):
        of = sites[name]
        if len(of) == 1 and of[0]['kind'] == 'out-of-line' and of[0]['symbol'] == name and \
                not of[0]['hazard'] and of[0]['section'] == '.text':
            chosen[name] = of[0]
    return dict(list(chosen.items())[:MAX_BODIES])


def files(folder, sites, hot):
    chosen, found = sorted(choose(sites, hot)), {}
    for name, words in (('entries', chosen), ('few', chosen[:12])):
        found['/' + name] = os.path.join(folder, name)
        with open(found['/' + name], 'w', encoding='utf-8') as file:
            file.write(' '.join(words) + '\n')
    return found


def by_convention(site):
    """[(name, bytes)] of the parameters that are in the register of their place."""
    found = []
    for arg in site['args'][:len(REGISTERS)]:
        size = 8 if (arg['type'] or '').endswith('*') else SIZES.get(arg['type'])
        if not size:
            break
        found.append((arg['name'], size))
    return found


def compare(version, text, sent, chosen):
    events = [json.loads(line) for line in sent(text, 'entries').splitlines()]
    summary = events[-1] if events else {}
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for event in events:
        if 'args' in event:
            ours[event['function'], event['tid']].append(event['args'])
    for tid, name, args in re.findall(r'^\s*work-(\d+)\s.*?: (\w+): \(\S+\) ?(.*)$',
                                      sent(text, 'entries-trace'), re.M):
        theirs[name, int(tid)].append([int(v, 16) for v in re.findall('=(0x[0-9a-f]+)', args)])
    threads = {tid for _, tid in theirs}
    told = summary.get('missed', 0) + summary.get('lost', 0)
    n_missing, n_values, uneven, wrong = 0, 0, [], []
    for key in set(theirs) | {k for k in ours if k[1] in threads}:
        if len(ours[key]) != len(theirs[key]):
            n_missing += len(theirs[key]) - len(ours[key])
            uneven.append((key, len(ours[key]), len(theirs[key])))
            continue
        for mine, read in zip(ours[key], theirs[key]):
            for (name, size), other in zip(by_convention(chosen[key[0]]), read):
                value = common.number_of(mine.get(name))
                if value is None:
                    continue
                n_values += 1
                if (value ^ other) & ((1 << 8 * size) - 1):
                    wrong.append((key[0], name, hex(value), hex(other)))
    n = sum(len(v) for v in theirs.values())
    common.claim(
        f'{version}: at entries, as many hits as tracefs has in each thread ({n} hits of '
        f'{len({f for f, _ in theirs})} functions, missing {n_missing} of {told} that are told, '
        f'{uneven[:4]})',
        n > 200 and (not uneven or 0 <= n_missing <= told and
                     all(a < b for _, a, b in uneven)))
    common.claim(
        f'{version}: arguments at entries are what tracefs reads ({n_values} values, wrong: '
        f'{len(wrong)} {wrong[:4]})', n_values > 300 and not wrong)
    return summary


def check(version, text, sent, sites, hot):
    chosen = choose(sites, hot)
    summary = compare(version, text, sent, chosen)
    has_multi = re.search(r'^fprobe [1-9]', text, re.M) is not None
    attached, links = summary.get('attached', 0), summary.get('links', 0)
    common.claim(
        f'{version}: entries go by few links where the kernel has kprobe_multi ({has_multi}: '
        f'{attached} places, {links} links)',
        attached == len(chosen) > 30 and (links * 4 < attached if has_multi else
                                          links == attached))
    single = [json.loads(line) for line in sent(text, 'single').splitlines()][-1:]
    common.claim(f'{version}: --backend kprobe sets each by itself',
                 single and single[0].get('links') == single[0].get('attached') == 12)
    common.claim(f'{version}: {KILLS} traces of entries were killed',
                 f'entries killed {KILLS}\n' in text)
