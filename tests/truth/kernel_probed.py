# SPDX-License-Identifier: BSD-2-Clause
"""Which functions the kernel of the guest probes, and which of them cairn says it refuses.

Every function of the block layer, and some hundred others: the kernel itself is asked, by a kprobe event
of tracefs at the function's first instruction.
"""
import os
import random
import re

import common

SAMPLE = 500
INIT = """
for f in $(cat /probed); do echo "p:q/$f $f" >>$T/kprobe_events; done 2>/dev/null
sed 's,^p:q/,,;s, .*,,' $T/kprobe_events >/tmp/accepted
: >$T/kprobe_events
send accepted /tmp/accepted
cut -d' ' -f1 $T/available_filter_functions >/tmp/traced
send traced /tmp/traced
left probed
"""


def choose(sites):
    """Functions with one body, of which the kernel still has the code."""
    bodies = {
        n: of[0]
        for n, of in ((n, [s for s in all_ if s['kind'] == 'out-of-line'])
                      for n, all_ in sites.items()) if len(of) == 1
        and of[0]['symbol'] == n and of[0]['section'] == '.text'
    }
    block = [n for n in bodies if re.match('_*(blk|bio|bdev|disk)_', n)]
    return {
        n: bodies[n]
        for n in sorted(
            {*block, *random.Random(5).sample(sorted(bodies), SAMPLE)})
    }


def files(folder, sites):
    path = os.path.join(folder, 'probed')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(' '.join(choose(sites)) + '\n')
    return {'/probed': path}


def check(version, text, sent, sites):
    accepted, traced = (set(sent(text, name).split())
                        for name in ('accepted', 'traced'))
    chosen = choose(sites)
    refused = {n for n in chosen if n not in accepted}
    said = {n for n, site in chosen.items() if site['hazard']}
    common.claim(
        f'{version}: the functions that the kernel refuses to probe are those of which a hazard is '
        f'told ({len(refused)} of {len(chosen)}; in one list only: {sorted(refused ^ said)[:8]})',
        refused == said and len(refused) > 20)
    untraced = {n for n in refused if chosen[n]['hazard'] == 'notrace'}
    common.claim(
        f'{version}: what is called notrace, ftrace does not list ({len(untraced)})',
        untraced and not untraced & traced)
