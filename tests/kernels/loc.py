#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""BPF programs of cairn/loc.bpf.h in kernels that QEMU boots: at the kernel's functions, inlined and
not, and at those of a program.

The oracles are not ours: where an argument of the kernel is, gdb says of the same vmlinux; what it
is there, a kprobe event of tracefs reads, at the same address and hit. The program logs its own
calls. /sys/block counts requests, debugfs lists what is probed.
"""
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
for path in ('../truth', '../live', '.'):
    sys.path.insert(0, os.path.normpath(os.path.join(HERE, path)))
import common  # noqa: E402
import guests  # noqa: E402
import kernel_returns  # noqa: E402
import loc_calls  # noqa: E402
import trace as traced  # noqa: E402

BUILD = os.path.abspath(os.environ.get('BUILD', os.path.join(SOURCE, 'build')))
HOLDER = os.path.join(BUILD, 'tests', 'live', 'loc_programs')
# The verifier takes most of the time in an emulated processor.
N_INLINED, N_BODIES, N_USER, KILLS = 120, 40, 4, 50
# Attached by their SEC(); the others share one program for each number of arguments.
N_BY_NAME = 3
INIT = guests.SETUP + """
left() { echo "left $1 $(wc -l </sys/kernel/debug/kprobes/list) $(wc -l <$T/uprobe_events)"; }
work 1
left before

# Functions of a program.
hold /user.o /bin/calls /tmp/log >/tmp/seen 2>/tmp/said; echo "user-status $?"
head -3 /tmp/said
send user-log /tmp/log
send user-seen /tmp/seen
left user

# Functions of the kernel.
echo 20000 >$T/buffer_size_kb
text=$(grep ' _text$' /proc/kallsyms)
slide=$((0x${text%% *} - 0xffffffff81000000))
while read name at args; do
	printf 'p:o/%s 0x%x %s\\n' $name $((0x$at + slide)) "$args" >>$T/kprobe_events
done </events 2>/dev/null
echo "set $(wc -l <$T/kprobe_events) of $(wc -l </events)"
echo "slide $slide"
echo 1 >$T/events/o/enable
hold -1 -k /kernel.cairn -f /wanted /kernel.o work 1 >/tmp/seen 2>/tmp/said; echo "kernel-status $?"
head -3 /tmp/said
echo 0 >$T/events/o/enable
grep -h ' work-' $T/trace >/tmp/trace
: >$T/kprobe_events
send trace /tmp/trace
send seen /tmp/seen
left kernel
n=0
while [ $n -lt KILLS ]; do
	hold -1 -k /kernel.cairn /few.o sleep 1 >/dev/null 2>&1 & pid=$!
	usleep $((RANDOM * 40))
	kill -9 $pid; wait $pid 2>/dev/null
	n=$((n + 1))
done
sleep 2
left killed
hold -1 -k /kernel.cairn -t on_FIRST no_such_function 0 /few.o true >/tmp/said 2>&1
echo "none $?"; head -1 /tmp/said
hold -1 -k /bin/calls -t on_FIRST FIRST 0 /few.o true >/tmp/said 2>&1
echo "other $?"; head -1 /tmp/said
left refused

# The example, with a device.
insmod /loop.ko max_loop=1 || insmod /loop.ko
dd if=/dev/zero of=/tmp/disk bs=1M count=8 2>/dev/null
losetup /dev/loop0 /tmp/disk
sleep 1
echo "stat $(cat /sys/block/loop0/stat)"
requests -k /kernel.cairn /requests.o sh -c 'work 2 /dev/loop0
	dd if=/dev/loop0 of=/dev/null bs=64k count=40 iflag=direct
	dd if=/dev/zero of=/dev/loop0 bs=16k count=30 oflag=direct
	blkdiscard -o 65536 -l 65536 /dev/loop0; sync; sleep 1' >/tmp/said 2>&1
echo "requests $?"
cat /tmp/said
echo "stat $(cat /sys/block/loop0/stat)"
left example
"""

PROGRAM = """
SEC("kloc{target}")
int {program}(struct pt_regs *ctx)
{{
	struct loc_record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r)
		return 0;
	r->id = {id};
	r->n = bpf_loc_arg_cnt(ctx);
	/* The thread, and the lower half of the address behind the probe. */
	r->cookie = bpf_get_current_pid_tgid() << 32 | (__u32)((__u64 *)ctx)[16];
{reads}	bpf_ringbuf_submit(r, 0);
	return 0;
}}
"""
READ = '\tr->args[{i}].error = bpf_loc_arg(ctx, {i}, (union bytes *)r->args[{i}].bytes);\n'


def program(name, target, number, n_args):
    reads = ''.join(READ.format(i=k) for k in range(n_args))
    return PROGRAM.format(program=name, target=target, id=number, reads=reads)


def kernel_object(names, params, by_name, shared):
    """Programs of the first so many functions, and one for each number of arguments of the others:
    the verifier takes seconds for each in an emulated processor."""
    text = loc_calls.bpf_object([], '', '../live/loc_record.h').replace(
        '1 << 22', '1 << 25')
    for i, name in enumerate(names[:by_name]):
        text += program('on_' + name, '/' + name, i, len(params[name]))
    for n in sorted({len(params[name])
                     for name in names[by_name:]}) if shared else ():
        text += program(f'of_{n}', '', 'bpf_loc_cookie(ctx)', n)
    return text


def wanted(names, params, by_name):
    """Which program is for which function, which it knows by its cookie."""
    return ''.join(f'of_{len(params[name])} {name} {i}\n'
                   for i, name in enumerate(names) if i >= by_name)


def compile_bpf(source, into):
    with open(into + '.c', 'w', encoding='utf-8') as file:
        file.write(source)
    subprocess.run([
        'clang', '-O2', '-g', '-target', 'bpf', '-idirafter',
        f'/usr/include/{os.uname().machine}-linux-gnu', '-I',
        os.path.join(SOURCE, 'include'), '-I',
        os.path.join(SOURCE, 'tests', 'live'), '-I',
        os.path.join(SOURCE, 'examples'), '-c', into + '.c', '-o', into + '.o'
    ],
                   check=True)
    return into + '.o'


def compile_c(source, into, *options):
    subprocess.run(['gcc', '-O2', '-g', '-w', source, '-o', into, *options],
                   check=True)
    return into


def loop_module(kernel, vmlinux):
    """With its code: beside the kernel, or where its debug information is."""
    beside = os.path.join(os.path.dirname(kernel),
                          '../lib/modules/*/kernel/drivers/block/loop.ko')
    return (glob.glob(beside) + guests.module(vmlinux, 'loop'))[:1]


def choose(sites, vmlinux, folder):
    """(functions, {(address, function): arguments by gdb}, {function: names of parameters})."""
    inlined = traced.choose(sites)
    bodies = {n: sites[n] for n in kernel_returns.choose(sites)}
    for of in bodies.values():
        for site in of:
            site['kind'] = 'inlined'  # the kind that it asks gdb about
    found = traced.locations(vmlinux, {**inlined, **bodies}, folder)
    with_args = [
        n for n in sorted(inlined)
        if any(f == n and a for (_, f), a in found.items())
    ]
    names = with_args[:N_INLINED] + [
        n for n in sorted(bodies) if n not in inlined
    ][:N_BODIES]
    params = {n: [a['name'] for a in sites[n][0]['args']] for n in names}
    return names, {k: v
                   for k, v in found.items() if v and k[1] in names}, params


def seen_hits(text, names, slide):
    """{((address, function), thread): [values of arguments]}, a value is None or a number."""
    hits = collections.defaultdict(list)
    for line in traced.sent(text, 'seen').splitlines():
        words = line.split()
        tid, low = int(words[2]) >> 32, int(words[2]) & 0xffffffff
        values = [
            int.from_bytes(bytes.fromhex(w[1:])[:8], 'little')
            if w[0] == '=' else None for w in words[3:]
        ]
        hits[(low - 1 - slide) & 0xffffffff, names[int(words[0])],
             tid].append(values)
    return hits


def traced_hits(text, events):
    hits = collections.defaultdict(list)
    for tid, name, args in re.findall(
            r'^\s*work-(\d+)\s.*?: (e\d+): \(\S+\) ?(.*)$',
            traced.sent(text, 'trace'), re.M):
        at, function = events[name]
        hits[at & 0xffffffff, function, int(tid)].append(
            [int(v, 16) for v in re.findall(r'a\d+=(0x[0-9a-f]+)', args)])
    return hits


def compare(version, text, events, names, gdb, params):
    slide = int(re.search(r'^slide (-?\d+)$', text, re.M).group(1))
    ours, theirs = seen_hits(text, names, slide), traced_hits(text, events)
    n_hits, n_values, n_missing, wrong, uneven, hit = 0, 0, 0, [], [], set()
    threads = {key[2] for key in ours}
    for key, reads in theirs.items():
        at, function, tid = key
        # A probe at a function's first instruction is behind its ENDBR.
        mine = ours.get(key) or ours.get((at + 4, function, tid), [])
        if tid not in threads or len(mine) != len(reads):
            uneven.append((hex(at), function, len(mine), len(reads)))
            continue
        n_hits += len(reads)
        arguments = gdb[0xffffffff00000000 | at, function]
        for values, read in zip(mine, reads):
            for (name, (_, size)), other in zip(sorted(arguments.items()),
                                                read):
                if name not in params[function] or params[function].index(
                        name) >= len(values):
                    continue
                value, mask = values[params[function].index(
                    name)], (1 << 8 * size) - 1
                if value is None:
                    n_missing += 1
                    continue
                n_values += 1
                hit.add(function)
                if value & mask != other & mask:
                    wrong.append((hex(at), function, name, hex(value & mask),
                                  hex(other & mask)))
    common.claim(
        f'{version}: as many hits as tracefs has at each place, in each thread '
        f'({n_hits}, uneven: {len(uneven)} {uneven[:4]})', n_hits > 200
        and not uneven)
    common.claim(
        f'{version}: arguments are what tracefs reads where gdb says ({len(hit)} functions, '
        f'{n_values} values, wrong: {len(wrong)} {wrong[:4]}, unavailable: {n_missing})',
        len(hit) >= 50 and n_values > 200 and not wrong)


def check_user(version, text):
    right, unavailable, wrong, bad = loc_calls.compare(
        traced.sent(text, 'user-log').splitlines(),
        traced.sent(text, 'user-seen').splitlines())
    common.claim(
        f'{version}: arguments of a program\'s functions are those that it logs ({right} right, '
        f'{unavailable} unavailable, {wrong} wrong {bad[:3]})', right > 50
        and not wrong and re.search('^user-status 0$', text, re.M))


def check_requests(version, text):
    if 'ftrace does not trace this function' in text:
        # Its body is declared inline, and the kernel probes none of those: docs/reasons.md, notrace.
        common.claim(
            f'{version}: the example says why it cannot count requests',
            re.search(
                r'^requests [1-9].*\n(.*\n)?.*ftrace does not trace this function',
                text, re.M))
        return
    before, after = ([int(w) for w in line.split()]
                     for line in re.findall('^stat (.*)$', text, re.M))
    counted = {
        'reads': after[0] - before[0],
        'writes': after[4] - before[4],
        'discards': after[11] - before[11]
    }
    seen = collections.Counter()
    for kind, n in re.findall(r'^7:0 (\w+) (\d+)$', text, re.M):
        seen[kind] += int(n)
    common.claim(
        f'{version}: as many requests as the block layer counts ({dict(seen)}, {counted})',
        seen == counted and seen['reads'] > 20 and seen['writes'] > 20)


def check_left(version, text):
    left = {
        n: (int(a), int(b))
        for n, a, b in re.findall(r'^left (\w+) (\d+) (\d+)$', text, re.M)
    }
    for name in ('user', 'kernel', 'killed', 'refused', 'example'):
        common.claim(
            f'{version}: nothing is left after {name} ({left.get(name)})',
            left.get(name) == left.get('before') == (0, 0))
    common.claim(
        f'{version}: refusals are told',
        re.search('^none 3\n.*no_such_function', text, re.M)
        and re.search('^other 3\n.*calls', text, re.M))


def make(folder, kernel, vmlinux):
    """(files, programs, what the answers are compared with)"""

    def at(name):
        return os.path.join(folder, name)

    subprocess.run(
        [common.CAIRN, 'sidecar', vmlinux, '-o',
         at('kernel.cairn')],
        check=True,
        stdout=subprocess.DEVNULL)
    names, gdb, params = choose(traced.sites_of(at('kernel.cairn')), vmlinux,
                                folder)
    events = {}
    with open(at('events'), 'w', encoding='utf-8') as file:
        for i, (place, args) in enumerate(sorted(gdb.items())):
            events[f'e{i}'] = place
            read = ' '.join(f'a{k}={r}:x64'
                            for k, (_, (r,
                                        _)) in enumerate(sorted(args.items())))
            file.write(f'e{i} {place[0]:x} {read}\n')
    compile_bpf(kernel_object(names, params, N_BY_NAME, True), at('kernel'))
    compile_bpf(kernel_object(names, params, N_BY_NAME, False), at('few'))
    with open(at('wanted'), 'w', encoding='utf-8') as file:
        file.write(wanted(names, params, N_BY_NAME))
    functions = loc_calls.functions(N_USER, 5, (6, 1, 0, 4))
    with open(at('calls.c'), 'w', encoding='utf-8') as file:
        file.write(loc_calls.program(functions, 7, 12))
    compile_bpf(loc_calls.bpf_object(functions, '/bin/calls', 'loc_record.h'),
                at('user'))
    with open(os.path.join(SOURCE, 'examples/requests.bpf.c'),
              encoding='utf-8') as file:
        compile_bpf(file.read(), at('requests'))
    example = compile_c(os.path.join(SOURCE, 'examples/requests.c'),
                        at('requests.exe'), '-I',
                        os.path.join(SOURCE, 'include'), '-L',
                        os.path.join(BUILD, 'src'), '-lcairn', '-lbpf',
                        '-Wl,-rpath,' + os.path.join(BUILD, 'src'))
    files = {
        '/' + n: at(n)
        for n in ('kernel.cairn', 'events', 'wanted', 'kernel.o', 'few.o',
                  'user.o', 'requests.o')
    }
    files |= {'/loop.ko': path for path in loop_module(kernel, vmlinux)}
    programs = {
        'hold': HOLDER,
        'calls': compile_c(at('calls.c'), at('calls')),
        'work': compile_c(traced.WORK, at('work'), '-static'),
        'requests': example
    }
    return files, programs, (events, names, gdb, params)


def check(kernel, vmlinux):
    with tempfile.TemporaryDirectory() as folder:
        files, programs, compared = make(folder, kernel, vmlinux)
        text = guests.boot(
            kernel,
            INIT.replace('KILLS', str(KILLS)).replace('FIRST', compared[1][0]),
            files, programs)
    version = (re.findall(r'kernel (\d\S*)', text) or ['?'])[0]
    if os.environ.get('KEEP'):
        with open(os.environ['KEEP'] + version, 'w', encoding='utf-8') as file:
            file.write(text)
    common.claim(f'{version}: the programs were attached',
                 re.search('^kernel-status 0$', text, re.M))
    check_user(version, text)
    compare(version, text, *compared)
    check_requests(version, text)
    check_left(version, text)


if __name__ == '__main__':
    guests.each('BPF programs in other kernels', check, 'gdb', 'clang')
