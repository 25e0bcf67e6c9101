#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -k and kloc handlers from the kernel's BTF alone, in kernels that QEMU boots.

No kernel here writes .BTF.inline, so `cairn btf encode` makes both blobs of the kernel's vmlinux,
and the guest gets them in another folder than /sys/kernel/btf. The oracle is the sidecar of the
same vmlinux, whose answers tests/kernels/trace.py and loc.py compare with gdb and tracefs: both
sources answer at the same time, about the same run of a workload. Blobs of another build, and with
another base, are refused.
"""
import collections
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for path in ('../truth', '../live', '.'):
    sys.path.insert(0, os.path.normpath(os.path.join(HERE, path)))
import common  # noqa: E402
import guests  # noqa: E402
import loc  # noqa: E402
import trace as traced  # noqa: E402

traced.MAX_FUNCTIONS, traced.MAX_SITES = 140, 260
# Programs of handlers: the verifier takes most of the time.
N_HANDLERS = 40
INIT = guests.SETUP + """
K="--sidecar /kernel.cairn --no-cache"
work 1
ls /sys/kernel/btf | head -3
echo "hash $(sha256sum </sys/kernel/btf/vmlinux)"
cairn sites --running --sidecar /kernel.cairn --no-cache vfs_write >/dev/null; echo "sidecar $?"
cairn trace -k --dry-run --json $K $(cat /functions) >/tmp/plan 2>/tmp/said; echo "plan-1 $?"
send plan-1 /tmp/plan
export CAIRN_SYSFS_BTF=/btf
cairn trace -k --dry-run --json --no-cache $(cat /functions) >/tmp/plan 2>/tmp/said; echo "plan-2 $?"
head -3 /tmp/said
send plan-2 /tmp/plan

# Both at once.
rm -f /tmp/said
cairn trace -k --json -o /tmp/events.1 $K $(cat /functions) 2>/tmp/said & one=$!
wait_for attached /tmp/said $one
cairn trace -k --json -o /tmp/events.2 --no-cache $(cat /functions) 2>/tmp/said.2 & two=$!
wait_for attached /tmp/said.2 $two
sh -c 'echo "from $$"'
work 3
echo "to"
kill -INT $one $two
wait $one; echo "traced $?"; wait $two; echo "traced $?"
send events-1 /tmp/events.1
send events-2 /tmp/events.2

# Handlers.
hold -1 -k /kernel.cairn -f /wanted /kernel.o sh -c '
	hold -1m -b /btf -f /wanted /kernel.o sh -c "
		echo \\$\\$ >/tmp/from; work 1" >/tmp/seen.2 2>/tmp/said.2; echo "handlers $?"' \\
	>/tmp/seen.1 2>/tmp/said
echo "handlers $?"
grep -h '^handlers' /tmp/seen.1
head -3 /tmp/said /tmp/said.2
echo "from-handlers $(cat /tmp/from)"
send seen-1 /tmp/seen.1
send seen-2 /tmp/seen.2

# A stripped vmlinux that has both sections.
if [ -e /stripped ]; then
	cairn trace -k --dry-run --json --debug-file /stripped --no-cache $(cat /functions) >/tmp/plan 2>/tmp/said
	echo "plan-3 $?"; head -3 /tmp/said
	send plan-3 /tmp/plan
fi

# What is not of this kernel.
refuse()
{
	CAIRN_SYSFS_BTF=$2 cairn trace -k --dry-run --no-cache $(cat /functions) >/dev/null 2>/tmp/said
	echo "refuse $1 $? $(grep -v '^ ' /tmp/said | head -1)"
}
refuse base /wrong-base
refuse no-base /no-base
refuse other /other
refuse kernel /kernel
"""
REFUSALS = {
    'base': 'split from|damaged|is not the base',
    'no-base': 'No such file',
    'other': "another build's",
    'kernel': "another build's|split from|damaged"
}
BTF_INFO = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0),
            15: (0, 12), 17: (4, 0), 19: (0, 12), 20: (4, 4), 21: (0, 4), 22: (0, 12)}
LOCSEC = 22


def move_sites(path, into):
    """The same blob, with all sites one byte later, as in another build."""
    with open(path, 'rb') as file:
        blob = bytearray(file.read())
    size, start, n = struct.unpack_from('<III', blob, 4)
    at, end = size + start, size + start + n
    while at < end:
        info, = struct.unpack_from('<I', blob, at + 4)
        kind, vlen = info >> 24 & 0x7f, info & 0xffffff
        fixed, each = BTF_INFO.get(kind, (0, 0))
        for i in range(vlen if kind == LOCSEC else 0):
            offset, = struct.unpack_from('<I', blob, at + 20 + 12 * i)
            struct.pack_into('<I', blob, at + 20 + 12 * i, offset + 1)
        at += 12 + fixed + each * vlen
    with open(into, 'wb') as file:
        file.write(blob)


def plan(text, name):
    """[(function, address, link-time address, arguments)]"""
    places = []
    for line in traced.sent(text, name).splitlines():
        place = json.loads(line)
        if 'running' in place:
            places.append((place['function'], place['running'], place.get('kind')))
    return sorted(places)


def hits(lines, from_tid):
    found = collections.defaultdict(list)
    for line in lines:
        event = json.loads(line)
        if 'args' in event and event['tid'] > from_tid:
            found[event['address'], event['function'], event['tid']].append(event['args'])
    return found


def records(text, name, from_tid):
    """Of handlers: {(address, function, thread): [words]}"""
    found = collections.defaultdict(list)
    for line in traced.sent(text, name).splitlines():
        words = line.split()
        if len(words) > 2 and words[0].isdigit() and int(words[2]) >> 32 > from_tid:
            found[int(words[2]) & 0xffffffff, words[0], int(words[2]) >> 32].append(words[3:])
    return found


def same(version, what, one, two, least_functions, least_hits):
    """Each value at each hit, but those that BTF does not have a location of."""
    n, wrong, uneven = 0, [], []
    for key in sorted(set(one) | set(two), key=str):
        if len(one.get(key, [])) != len(two.get(key, [])):
            uneven.append((key, len(one.get(key, [])), len(two.get(key, []))))
            continue
        for mine, other in zip(one[key], two[key]):
            n += len(other)
            if mine != other:
                wrong.append((key, mine, other))
    total = sum(map(len, two.values()))
    functions = {key[1] for key in two}
    common.claim(
        f'{version}: {what}: as many hits by both sources ({total} hits of {len(functions)} '
        f'functions, uneven: {len(uneven)} {uneven[:3]})',
        total >= least_hits and len(functions) >= least_functions and not uneven)
    common.claim(f'{version}: {what}: the same values ({n}, wrong: {len(wrong)} {wrong[:3]})', n
                 and not wrong)


def check_text(version, text):
    plans = [plan(text, f'plan-{i}') for i in (1, 2, 3)]
    common.claim(
        f'{version}: the same places ({len(plans[0])}, {len(plans[1])}; '
        f'{sorted(set(plans[0]) ^ set(plans[1]))[:4]})', plans[0] and plans[0] == plans[1])
    if re.search('^plan-3 ', text, re.M):
        common.claim(f'{version}: and from a stripped vmlinux ({len(plans[2])})',
                     plans[2] == plans[0])
    common.claim(f'{version}: a sidecar of this kernel is taken', re.search(
        '^sidecar 0$', text, re.M))
    start = re.search(r'^from (\d+)$', text, re.M)
    one, two = (hits(traced.sent(text, f'events-{i}').splitlines(), int(start.group(1)))
                for i in (1, 2))
    same(version, 'trace', one, two, 60, 500)
    start = re.search(r'^from-handlers (\d+)$', text, re.M)
    one, two = (records(text, f'seen-{i}', int(start.group(1))) for i in (1, 2))
    same(version, 'handlers', one, two, 20, 100)
    for name, words in REFUSALS.items():
        said = re.search(f'^refuse {name} (\\d+) (.*)$', text, re.M)
        common.claim(f'{version}: {name} is refused ({said and said.group(0)[:300]})',
                     said and said.group(1) != '0' and re.search(words, said.group(2)))


def folders(folder, vmlinux, others):
    """The kernel's BTF, and such that is not."""
    btf = os.path.join(folder, 'btf')
    for name in ('btf', 'wrong-base', 'no-base', 'other', 'kernel'):
        os.mkdir(os.path.join(folder, name))
    subprocess.run(
        [common.CAIRN, 'btf', 'encode', vmlinux, '-o',
         os.path.join(btf, 'vmlinux')],
        check=True,
        stdout=subprocess.DEVNULL)
    inline = os.path.join(btf, 'vmlinux.inline')
    small = os.path.join(folder, 'small.c')
    with open(small, 'w', encoding='utf-8') as file:
        file.write('struct a { int b; } a;\n')
    subprocess.run(['gcc', '-g', '-c', small, '-o', small + '.o'], check=True)
    subprocess.run([
        common.CAIRN, 'btf', 'encode', small + '.o', '-o',
        os.path.join(folder, 'wrong-base', 'vmlinux')
    ],
                   check=True,
                   stdout=subprocess.DEVNULL)
    for name in ('wrong-base', 'no-base'):
        shutil.copy(inline, os.path.join(folder, name))
    shutil.copy(os.path.join(btf, 'vmlinux'), os.path.join(folder, 'other'))
    move_sites(inline, os.path.join(folder, 'other', 'vmlinux.inline'))
    another = others[0] if others else None
    if another:
        subprocess.run([
            common.CAIRN, 'btf', 'encode', another, '-o',
            os.path.join(folder, 'kernel', 'vmlinux')
        ],
                       check=True,
                       stdout=subprocess.DEVNULL)
    else:
        for name in os.listdir(os.path.join(folder, 'other')):
            shutil.copy(os.path.join(folder, 'other', name), os.path.join(folder, 'kernel'))


def stripped(folder, vmlinux):
    """vmlinux without debug information, with both sections; too large for some guests."""
    made, options = os.path.join(folder, 'stripped'), []
    for name, file in (('.BTF', 'vmlinux'), ('.BTF.inline', 'vmlinux.inline')):
        options += ['--add-section', name + '=' + os.path.join(folder, 'btf', file)]
    # The kernel's own .BTF is of another encoder, whose ids these sites do not have.
    subprocess.run(['objcopy', '--strip-debug', '--rename-section', '.BTF=.BTF.old', *options,
                    vmlinux, made], check=True, capture_output=True)
    return made


def check(kernel, vmlinux):
    with tempfile.TemporaryDirectory() as folder:

        def at(name):
            return os.path.join(folder, name)

        others = [v for _, v in guests.pairs() if os.path.realpath(v) != os.path.realpath(vmlinux)]
        folders(folder, vmlinux, others)
        subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o',
                        at('kernel.cairn')],
                       check=True,
                       stdout=subprocess.DEVNULL)
        sites = traced.sites_of(at('kernel.cairn'))
        chosen = traced.choose(sites)
        names = sorted(chosen)
        with open(at('functions'), 'w', encoding='utf-8') as file:
            file.write(' '.join(names) + '\n')
        handlers = names[:N_HANDLERS]
        params = {n: [a['name'] for a in sites[n][0]['args']] for n in handlers}
        loc.compile_bpf(loc.kernel_object(handlers, params, loc.N_BY_NAME, True), at('kernel'))
        with open(at('wanted'), 'w', encoding='utf-8') as file:
            file.write(loc.wanted(handlers, params, loc.N_BY_NAME))
        files = {
            path.removeprefix(folder): path
            for name in ('btf', 'wrong-base', 'no-base', 'other', 'kernel')
            for path in glob.glob(at(name) + '/*')
        }
        files |= {'/' + n: at(n) for n in ('kernel.cairn', 'functions', 'wanted', 'kernel.o')}
        files['/stripped'] = stripped(folder, vmlinux)
        programs = {
            'hold': loc.HOLDER,
            'work': loc.compile_c(traced.WORK, at('work'), '-static')
        }
        text = guests.boot(kernel, INIT, files, programs)
    version = (re.findall(r'kernel (\d\S*)', text) or ['?'])[0]
    if os.environ.get('KEEP'):
        with open(os.environ['KEEP'] + version, 'w', encoding='utf-8') as file:
            file.write(text)
    check_text(version, text)


if __name__ == '__main__':
    guests.each('traces of kernels by their BTF alone', check, 'clang')
