# SPDX-License-Identifier: BSD-2-Clause
"""What a kernel refuses, and how it is told: hidden addresses, lockdown, too many places.

It is the last part of a guest, as lockdown lasts until the next boot.
"""
import json
import re

import common

INIT = """
# Refused.
mount -t securityfs none /sys/kernel/security
said() { echo "said $1 $2 $(grep -v 'left out' /tmp/said | head -1)"; }
cairn trace -k $K '*' >/dev/null 2>/tmp/said; said many $?
advice=$(sed -n 's/.* of one file are [0-9]* places: //p' /tmp/said)
echo "advice $(sed -n 's/.* of one file are \\([0-9]*\\) places: .*/\\1/p' /tmp/said) \
$(cairn trace -k $K --dry-run --json "$advice" 2>/dev/null | wc -l) $advice"
cairn trace -k $K "$advice" 'tcp_*' >/dev/null 2>/tmp/said; said several $?
left many
if [ -e /sys/module/loop ]; then
	rm -f /tmp/said
	cairn trace -k --stack --json -o /tmp/hidden.json --no-cache loop:loop_queue_rq 2>/tmp/said & pid=$!
	wait_for attached /tmp/said
	echo 2 >/proc/sys/kernel/kptr_restrict
	work 1 /dev/loop0
	sync
	sleep 1
	kill -INT $pid; wait $pid
	send hidden /tmp/hidden.json
fi
echo 2 >/proc/sys/kernel/kptr_restrict
cairn trace -k $K vfs_read >/dev/null 2>/tmp/said; said hidden $?
cairn sites --running $K vfs_read >/dev/null 2>/tmp/said; said hidden-sites $?
echo 0 >/proc/sys/kernel/kptr_restrict
echo integrity >/sys/kernel/security/lockdown
cairn trace -k $K -c /bin/true vfs_read >/dev/null 2>/tmp/said; said integrity $?
echo confidentiality >/sys/kernel/security/lockdown
cairn trace -k $K vfs_read >/dev/null 2>/tmp/said; said locked $?
cairn trace -c /bin/work main >/dev/null 2>/tmp/said; echo "said locked-program $? $(tail -1 /tmp/said)"
cairn profile -c /bin/true >/dev/null 2>/tmp/said; echo "said locked-profile $? $(tail -1 /tmp/said)"
left forbidden
"""
EXPECTED = {
    'many': ('2', 'a trace has at most 10000, as each inlined copy is a probe of its own'),
    'several': ('2', ', and the probes before it '),
    'hidden': ('3', 'sysctl kernel.kptr_restrict=1'),
    'hidden-sites': ('3', 'sysctl kernel.kptr_restrict=1'),
    'integrity': ('0', 'attached'),
    'locked': ('3', 'lockdown forbids kernel probes'),
    'locked-program': ('3', 'lockdown forbids BPF programs'),
    'locked-profile': ('3', 'lockdown forbids BPF programs'),
}


def files(_folder, _functions):
    """{path there: path here}."""
    return {}


def check(version, text, sent, has_module=False):
    said = {
        name: (status, why)
        for name, status, why in re.findall(r'^said (\S+) (\d+) (.*)$', text,
                                            re.M)
    }
    wrong = [
        (name, said.get(name)) for name, (status, why) in EXPECTED.items()
        if said.get(name, ('', ''))[0] != status or why not in said[name][1]
    ]
    common.claim(
        f'{version}: what the kernel forbids is told with its reason ({len(said)}, wrong: '
        f'{wrong})',
        len(said) == len(EXPECTED) and not wrong)
    advice = re.search(r'^advice (\d+) (\d+) (\S+:\*)$', text, re.M)
    n = re.search(r'^said many .* it has (\d+) places', text, re.M)
    common.claim(
        f'{version}: of too many places the number is told, and what would fit '
        f'({n and n.group(1)}; {advice and advice.groups()})',
        n and int(n.group(1)) > 100000 and advice
        and 1000 < int(advice.group(1)) == int(advice.group(2)) <= 10000)
    if not has_module:
        return
    stacks = [
        e['stack'] for e in map(json.loads,
                                sent(text, 'hidden').splitlines())
        if 'stack' in e
    ]
    common.claim(
        f'{version}: without names no stack is taken for one that ends too early '
        f'({len(stacks)})',
        len(stacks) >= 3 and 'cannot walk on' not in json.dumps(stacks)
        and 'does not show addresses' in json.dumps(stacks))
