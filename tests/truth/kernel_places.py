# SPDX-License-Identifier: BSD-2-Clause
"""Lines, offsets, symbols and variables of files in the kernel: in the guest, and what is claimed.

The oracles: the events of the function itself at the same instruction, what sysfs shows of a
module's variable, and tracefs.
"""
import collections
import json
import re
import subprocess

import common

# What the workload comes past.
CALLERS = ('link_path_walk', '__fput', 'do_dentry_open', 'vfs_read', 'vfs_write')
MAX_COPIES = 6
INIT = """
# Places.
places() { name=$1; shift; rm -f /tmp/said
	cairn trace -k --json -o /tmp/$name.json $K "$@" 2>/tmp/said & pid=$!
	wait_for attached /tmp/said
	[ -z "$watched" ] || echo "p:q/x $watched" >>$T/kprobe_events
	[ -z "$watched" ] || echo 1 >$T/events/q/enable
	work 1 $BLOCK
	sync
	sleep 1
	kill -INT $pid; wait $pid
	head -3 /tmp/said
	send $name /tmp/$name.json
}
places offsets $(cat /offsets)
# A clone, whose symbol has a suffix, is no function of the debug information.
clones='(link_path_walk|__fput|path_lookupat|step_into|lookup_fast|do_dentry_open|vfs_statx|path_openat)'
watched=$(grep -oE " [tT] $clones\\.(part|constprop|isra)[.a-z0-9]*" /proc/kallsyms |
	head -1 | cut -c4-)
: >$T/trace
echo "clone $watched"
if [ -n "$watched" ]; then
	places symbol "$watched(\$arg1)"
	echo 0 >$T/events/q/enable
	grep -c . $T/trace
	grep -h ': x: ' $T/trace >/tmp/watched
	: >$T/kprobe_events
	send watched /tmp/watched
fi
watched=
cairn trace -k --dry-run $K vfs_write+1 >/tmp/said 2>&1; echo "dry $?"
cairn trace -k $K vfs_write+3 >/tmp/said 2>&1; echo "inside $?"; head -2 /tmp/said
cairn trace -k $K vfs_write+100000 >/tmp/said 2>&1; echo "beyond $?"; head -2 /tmp/said
cairn trace -k $K no_such_symbol >/tmp/said 2>&1; echo "none $?"; head -2 /tmp/said
if [ -e /sys/module/loop ]; then
	echo "parameter $(cat /sys/module/loop/parameters/max_part)"
	K=--no-cache
	places lines 'loop:loop_queue_rq(bd, max_part)' "loop:loop_queue_rq:$(cat /line)(bd)"
	K="--sidecar /kernel.cairn --no-cache"
fi
left places
"""


def choose(functions):
    """[(function, "SYMBOL+OFF")] of inlined copies that the workload comes past."""
    chosen = [(name, f"{sites[0]['symbol']}+{sites[0]['symbol_off']}")
              for name, sites in sorted(functions.items())
              if len(sites) == 1 and sites[0]['kind'] == 'inlined' and sites[0]['shared'] == 1
              and sites[0]['symbol'] in CALLERS and not sites[0]['count_caveats']]
    return chosen[:MAX_COPIES]


def line_of(module):
    """The second line of loop_queue_rq() at which a statement begins."""
    text = subprocess.run([common.CAIRN, 'sites', module, '--lines', 'loop_queue_rq'],
                          capture_output=True, text=True, check=True).stdout
    return re.findall(r'^\S+:(\d+)$', text, re.M)[1]


def files(folder, functions, module):
    """{path there: path here}."""
    words = {'offsets': ' '.join(word for pair in choose(functions) for word in pair),
             'line': line_of(module[0]) if module else ''}
    for name, text in words.items():
        with open(f'{folder}/{name}', 'w', encoding='ascii') as file:
            file.write(text + '\n')
    return {'/' + name: f'{folder}/{name}' for name in words}


def by_thread(events, kind):
    found = collections.defaultdict(list)
    for event in events:
        if 'args' in event and event['kind'] == kind:
            found[event['tid']].append(event['args'])
    return found


def check(version, text, sent, has_module):
    offsets, symbol, lines = ([json.loads(line) for line in sent(text, name).splitlines()]
                              for name in ('offsets', 'symbol', 'lines'))
    # Others run while the two probes are set, one after the other.
    of_work = {e['tid'] for e in offsets if e.get('comm') == 'work'}
    counts = collections.Counter((e['address'], e['kind']) for e in offsets
                                 if 'kind' in e and e['tid'] in of_work)
    uneven = [a for a, kind in counts if counts[a, 'inlined'] != counts[a, 'place']]
    n = sum(counts.values())
    common.claim(f'{version}: an offset is hit as often as the copy that begins there ({n} hits at '
                 f'{len(counts) // 2} addresses, uneven: {uneven})', n > 40 and not uneven)
    clone = re.search(r'^clone (\S+)$', text, re.M)
    ours = [e for e in symbol if 'args' in e]
    program = {e['tid'] for e in ours if e['comm'] == 'work'}
    theirs = [t for t in re.findall(r'-(\d+) .*: x: ', sent(text, 'watched')) if int(t) in program]
    mine = [e for e in ours if e['tid'] in program]
    if clone:
        common.claim(f'{version}: {clone.group(1)} is a symbol alone, and is hit as tracefs has it '
                     f'({len(mine)}, {len(theirs)})', len(mine) == len(theirs) > 5)
    said = {name: (status, why) for name, status, why in
            re.findall(r'^(inside|beyond|none) (\d+)\n(.*)$', text, re.M)}
    common.claim(f'{version}: places that are none are refused ({said})',
                 {s for s, _ in said.values()} <= {'1'} and len(said) == 3
                 and 'no instruction begins there' in said['inside'][1]
                 and 'is not in the code of' in said['beyond'][1]
                 and 'no_such_symbol' in said['none'][1])
    if not has_module:
        return
    entries, places = by_thread(lines, 'out-of-line'), by_thread(lines, 'place')
    shown = re.search(r'^parameter (\d+)$', text, re.M).group(1)
    n = sum(map(len, entries.values()))
    common.claim(f'{version}: a line has the variables of its function ({n} hits)',
                 n > 2 and {t: [a['bd'] for a in of] for t, of in entries.items()} ==
                 {t: [a['bd'] for a in of] for t, of in places.items()})
    values = {a['max_part'] for of in entries.values() for a in of}
    common.claim(f'{version}: a variable of a module is where it was loaded ({values}, {shown})',
                 values == {int(shown)})
