#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -k in kernels that QEMU boots.

Kernels: those of guests.pairs(). Some hundred inlined functions are traced under a workload
(tests/samples/kernel_work.c). The oracles are not ours: where an argument is, gdb says of the same
vmlinux; what it is there, a kprobe event of tracefs reads, at the same address and hit; how often
functions of the network are called, /proc/net/snmp counts; what is set, debugfs lists.
"""
import base64
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'truth'))
import common  # noqa: E402
import guests  # noqa: E402
import kernel_cover  # noqa: E402
import kernel_multi  # noqa: E402
import kernel_places  # noqa: E402
import kernel_probed  # noqa: E402
import kernel_refused  # noqa: E402
import kernel_returns  # noqa: E402
import kernel_stacks  # noqa: E402
import kernel_typed  # noqa: E402

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'samples', 'kernel_work.c')
# In these the workload ends up; what is inlined there is called. None is of the timer's interrupt
# or of the scheduler: an emulated processor that single-steps there does nothing else.
HOT = """
ksys_read vfs_read vfs_write new_sync_write ksys_write do_sys_openat2 do_filp_open path_openat
link_path_walk step_into walk_component lookup_fast __fput fput filp_close pipe_read pipe_write
do_pipe2 create_pipe_files copy_process kernel_clone do_exit begin_new_exec load_elf_binary do_wait
wait_consider_task release_task do_dentry_open vfs_fstat vfs_statx vfs_rename do_renameat2
do_unlinkat vfs_unlink do_mkdirat vfs_mkdir do_rmdir vfs_rmdir shmem_file_read_iter
generic_perform_write shmem_get_folio_gfp mmap_region do_mmap __vm_munmap mprotect_fixup
do_anonymous_page exit_mmap free_pgtables dup_mmap do_epoll_wait do_epoll_ctl ep_send_events
do_sys_poll eventfd_read timerfd_read do_timerfd_settime hrtimer_nanosleep
tcp_sendmsg_locked tcp_recvmsg_locked tcp_ack tcp_rcv_established tcp_v4_rcv tcp_connect tcp_close
__tcp_transmit_skb tcp_write_xmit tcp_data_queue tcp_rcv_state_process tcp_v4_connect
tcp_conn_request ip_rcv ip_rcv_core __ip_queue_xmit ip_finish_output2 ip_output __dev_queue_xmit
__netif_receive_skb_core udp_sendmsg udp_recvmsg unix_stream_sendmsg unix_stream_read_generic
__sys_socket __sys_sendto __sys_recvfrom inet_csk_accept inet_bind __sys_accept4 do_accept
submit_bio_noacct blk_mq_submit_bio blkdev_read_iter blkdev_write_iter sock_alloc_file
alloc_empty_file dput d_alloc __d_lookup do_fault finish_fault wp_page_copy do_wp_page
sk_stream_alloc_skb tcp_stream_alloc_skb __alloc_skb skb_release_data kfree_skb_reason
sock_def_readable __sys_connect __sys_bind __sys_listen inet_listen tcp_v4_connect tcp_fin
path_lookupat filename_lookup path_parentat may_open do_truncate do_ftruncate vfs_fsync_range
ksys_lseek __x64_sys_close ksys_pwrite64 ksys_pread64 do_fcntl set_task_comm setup_new_exec
bprm_execve exec_binprm wake_up_new_task sched_fork do_madvise zap_page_range_single
""".split()
BUSY = 'hrtimer|timer_|tick|sched|fair|_rt|_dl|rcu|irq|clock|time|printk|kprobe|perf|trace|bpf'
MAX_FUNCTIONS, MAX_SITES, MAX_OF_ONE = 480, 780, 5
REGISTERS = {
    f'${"r" if not r[0] == "r" else ""}{r}': '%' + r
    for r in 'ax bx cx dx si di bp r8 r9 r10 r11 r12 r13 r14 r15'.split()
}
# A function that is called once for each that is counted: (file, table, column).
COUNTERS = (('ip_rcv_core', 'Ip', 'InReceives'), ('tcp_v4_rcv', 'Tcp', 'InSegs'),
            ('udp_rcv', 'Udp', 'InDatagrams'), ('tcp_v4_connect', 'Tcp', 'ActiveOpens'))
KILLS = 100
# A line of a site: its function, the declaration, and its kind.
HEAD = re.compile(r'{"function":"(\w+)",("file":[^,]*,"line":[^,]*),"kind":"([^"]*)","addr":')
INIT = guests.SETUP + """
K="--sidecar /kernel.cairn --no-cache"
work 1
left before
cairn trace -k --dry-run --json $K $(cat /functions) >/tmp/plan.json 2>/tmp/said
echo "plan $?"; head -3 /tmp/said
send plan /tmp/plan.json

# What the kernel counts.
cat /proc/net/snmp >/tmp/snmp
rm -f /tmp/said
cairn trace -k --count --json $K $(cat /counted) >/tmp/counts.json 2>/tmp/said & pid=$!
wait_for attached /tmp/said
cat /proc/net/snmp >/tmp/before
work 3
cat /proc/net/snmp >/tmp/after
kill -INT $pid; wait $pid
echo "begin counts"; cat /tmp/counts.json; echo "end counts"
echo "begin before"; cat /tmp/before; echo "end before"
echo "begin after"; cat /tmp/after; echo "end after"
left counts

# No descriptors are left in the middle: what was set is taken back.
many=$(cat /proc/sys/fs/nr_open)
echo 128 >/proc/sys/fs/nr_open
(ulimit -n 128; cairn trace -k $K $(cat /functions) >/dev/null 2>/tmp/said; echo "refused $?")
grep descriptor /tmp/said
echo $many >/proc/sys/fs/nr_open
left refused
n=0
while [ $n -lt KILLS ]; do
	cairn trace -k $K vfs_write vfs_read file_start_write >/dev/null 2>&1 & pid=$!
	usleep $((RANDOM * 40))
	kill -9 $pid; wait $pid 2>/dev/null
	n=$((n + 1))
done
sleep 2
left killed

# A module, which is also loaded again while it is traced.
if [ -e /loop.ko ]; then
	dir=/lib/modules/$(uname -r)
	mkdir -p $dir
	mv /loop.ko $dir
	echo loop.ko: >$dir/modules.dep
	insmod $dir/loop.ko
	dd if=/dev/zero of=/tmp/disk bs=1M count=4 2>/dev/null
	losetup /dev/loop0 /tmp/disk
	K=--no-cache
	cairn sites --running=loop $K --json --sites >/tmp/sites.json
	send module-sites /tmp/sites.json
	rm -f /tmp/said
	cairn trace -k --json -o /tmp/module.json $K 'loop:lo*' 2>/tmp/said & pid=$!
	wait_for attached /tmp/said
	cat /sys/block/loop0/stat >/tmp/before
	work 2 /dev/loop0
	sync
	sleep 1
	echo "started $(cat /tmp/before) / $(cat /sys/block/loop0/stat)"
	kill -INT $pid; wait $pid
	grep -E 'left out|refused' /tmp/said
	send module /tmp/module.json
	rm -f /tmp/said
	cairn trace -k $K loop:loop_queue_rq >/dev/null 2>/tmp/said & pid=$!
	wait_for attached /tmp/said
	losetup -d /dev/loop0
	rmmod loop && insmod $dir/loop.ko && losetup /dev/loop0 /tmp/disk
	kill -INT $pid; wait $pid
	grep unloaded /tmp/said
	left module
	BLOCK=/dev/loop0
	K="--sidecar /kernel.cairn --no-cache"
fi

# The same places by tracefs.
echo 20000 >$T/buffer_size_kb
text=$(grep ' _text$' /proc/kallsyms)
slide=$((0x${text%% *} - 0xffffffff81000000))
while read name at args; do
	printf 'p:o/%s 0x%x %s\\n' $name $((0x$at + slide)) "$args" >>$T/kprobe_events
done </events 2>/dev/null
echo "set $(wc -l <$T/kprobe_events) of $(wc -l </events)"
echo 1 >$T/events/o/enable
rm -f /tmp/said
cairn trace -k --json -o /tmp/events.json $K $(cat /functions) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
echo "attached $(wc -l </sys/kernel/debug/kprobes/list)"
work 3 $BLOCK
kill -INT $pid; wait $pid; echo "status $?"
grep -E 'lost|attached|count them' /tmp/said | tail -5
echo 0 >$T/events/o/enable
grep -h ' work-' $T/trace >/tmp/trace
grep '^entries\\|overrun' $T/per_cpu/cpu*/stats | grep -v ' 0$' | head -4
: >$T/kprobe_events
left events
send events /tmp/events.json
send trace /tmp/trace

"""


def lines_of(sidecar):
    """({name: lines of sites}, {name: declarations}). Most sites are copies of functions with too
    many to be chosen, of which MAX_OF_ONE + 1 are enough to tell."""
    lines, declared = collections.defaultdict(list), collections.defaultdict(set)
    n_copies = collections.Counter()
    with subprocess.Popen([common.CAIRN, 'sites', sidecar, '--sites', '--json'],
                          stdout=subprocess.PIPE,
                          text=True) as listing:
        for line in listing.stdout:
            words = HEAD.match(line)
            if not words:
                continue
            name, declaration, kind = words.groups()
            declared[name].add(declaration)
            n_copies[name] += kind != 'out-of-line'
            if kind == 'out-of-line' or n_copies[name] <= MAX_OF_ONE + 1:
                lines[name].append(line)
    return lines, declared


def sites_of(sidecar):
    """{name: sites} of all functions that are the only ones of their name."""
    lines, declared = lines_of(sidecar)
    return {
        name: [json.loads(line) for line in of]
        for name, of in lines.items() if len(declared[name]) == 1
    }


def is_wanted(sites):
    """Inlined where the workload comes by, and free of what would refuse it."""
    inlined = [s for s in sites if s['kind'] == 'inlined']
    return (any(s['symbol'] in HOT for s in inlined) and len(sites) <= MAX_OF_ONE
            and not any(re.search(BUSY, s['symbol']) for s in inlined)
            and not any(s['hazard'] or 'no-entry' in s['count_caveats'] for s in sites))


def choose(sites):
    chosen, n = {}, 0
    for name, of in sorted(sites.items()):
        if is_wanted(of) and len(chosen) < MAX_FUNCTIONS and n + len(of) <= MAX_SITES:
            chosen[name] = of
            n += len(of)
    return chosen


GDB = r"""
import gdb
for line in open('{places}'):
    at, name = line.split()
    block = gdb.block_for_pc(int(at, 16))
    while block and not block.function:
        block = block.superblock
    if block and block.function.name == name:
        print('@', at, name)
        print(gdb.execute('info scope *0x' + at, to_string=True))
"""


def locations(vmlinux, chosen, folder):
    """{(address, function): {argument: (register, bytes)}}, of those that gdb finds in one."""
    places, script = os.path.join(folder, 'places'), os.path.join(folder, 'ask.py')
    with open(places, 'w', encoding='utf-8') as file:
        for name, sites in chosen.items():
            file.writelines(f"{int(s['addr'], 16):x} {name}\n" for s in sites
                            if s['kind'] == 'inlined' and 'merged' not in s['count_caveats']
                            and s['shared'] == 1)
    with open(script, 'w', encoding='utf-8') as file:
        file.write(GDB.replace('{places}', places))
    text = subprocess.run(
        ['gdb', '-batch', '-nx', '-iex', 'set debuginfod enabled off', vmlinux, '-x', script],
        capture_output=True,
        text=True,
        check=False).stdout
    found = {}
    for part in text.split('@ ')[1:]:
        where, _, body = part.partition('\n')
        at, name = where.split()
        found[int(at, 16), name] = registers(body, int(at, 16))
    return found


def registers(text, at):
    args = {}
    for name, where, n in re.findall(r'^Symbol (\w+) is (.*?), length (\d+)\.$', text, re.M | re.S):
        ranges = re.findall(r'Range 0x([0-9a-f]+)-0x([0-9a-f]+): (.*)$', where, re.M)
        if 'multi-location' in where:
            where = next((w for lo, hi, w in ranges if int(lo, 16) <= at < int(hi, 16)), '')
        register = re.fullmatch(r'a variable in (\$\w+)', where.strip())
        if register and register.group(1) in REGISTERS and int(n) in (1, 2, 4, 8):
            args[name] = REGISTERS[register.group(1)], int(n)
    return args


def part(text, name):
    found = re.search(f'^begin {name}\n(.*?)^end {name}$', text, re.M | re.S)
    return found.group(1) if found else ''


def sent(text, name):
    try:
        return gzip.decompress(base64.b64decode(part(text, name))).decode('utf-8', 'replace')
    except (ValueError, OSError, EOFError):
        return ''


def compare(version, text, events, names, gdb):
    """Each hit of each place, in each thread, in order, but those that are told to be missed."""
    summary = events[-1] if events else {}
    missed = summary.get('missed', 0) + summary.get('lost', 0)
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    hit = set()
    for event in events:
        if 'args' in event:
            place = int(event['address'], 16), event['function']
            ours[place, event['tid']].append(event['args'])
            hit.add(event['function'])
    for tid, name, args in re.findall(r'^\s*work-(\d+)\s.*?: (e\d+): \(\S+\) ?(.*)$',
                                      sent(text, 'trace'), re.M):
        read = [int(v, 16) for v in re.findall(r'a\d+=(0x[0-9a-f]+)', args)]
        theirs[names[name], int(tid)].append(read)
    # It names a thread as it was last called, so all that these did count.
    threads = {tid for _, tid in theirs}
    n_values, n_missing, wrong, uneven = 0, 0, [], []
    for key in sorted(set(ours) | set(theirs)):
        if key[0] not in names.values() or key[1] not in threads:
            continue
        if len(ours[key]) != len(theirs[key]):
            n_missing += len(theirs[key]) - len(ours[key])
            if len(ours[key]) < len(theirs[key]) and n_missing <= missed:
                continue
            uneven.append((hex(key[0][0]), key, len(ours[key]), len(theirs[key])))
            continue
        for mine, read in zip(ours[key], theirs[key]):
            for (name, (_, size)), other in zip(sorted(gdb[key[0]].items()), read):
                value, mask = common.number_of(mine.get(name)), (1 << 8 * size) - 1
                if value is None:
                    continue
                n_values += 1
                if value & mask != other & mask:
                    wrong.append((hex(key[0][0]), name, hex(value & mask), hex(other & mask)))
    n = sum(len(v) for v in theirs.values())
    common.claim(f'{version}: inlined functions are called ({len(hit)} of them)', len(hit) >= 200)
    common.claim(
        f'{version}: as many hits as tracefs has at each place, in each thread '
        f'({n} hits, {n_missing} missed or lost of {missed} that are told, uneven: {uneven[:4]})',
        n > 200 and not uneven)
    common.claim(
        f'{version}: arguments are what tracefs reads where gdb says '
        f'({n_values} values, wrong: {len(wrong)} {wrong[:4]})', n_values > 500 and not wrong)


def snmp(text):
    values, lines = {}, text.splitlines()
    for head, row in zip(lines[::2], lines[1::2]):
        table = head.split(':')[0]
        for name, value in zip(head.split()[1:], row.split()[1:]):
            values[table, name] = int(value)
    return values


def check_counters(version, text):
    rows, wrong, n = {}, [], 0
    for line in part(text, 'counts').splitlines():
        for row in json.loads(line).get('rows', []):
            rows[row['function']] = row['count']
    before, after = snmp(part(text, 'before')), snmp(part(text, 'after'))
    for function, table, column in COUNTERS:
        if function in rows:
            counted = after[table, column] - before[table, column]
            n += 1
            if counted != rows[function]:
                wrong.append((function, rows[function], column, counted))
    common.claim(f'{version}: as many calls as the kernel counts ({rows}, wrong: {wrong})', n >= 3
                 and not wrong)


def check_module(version, text):
    """Requests that the block layer counted are calls of the driver's function."""
    sites = [json.loads(line) for line in sent(text, 'module-sites').splitlines()]
    running = {int(s['running'], 16) for s in sites if 'running' in s}
    events = [json.loads(line) for line in sent(text, 'module').splitlines()]
    counts = re.search(r'^started (.*) / (.*)$', text, re.M)
    before, after = ([int(w) for w in part.split()] for part in counts.groups())
    # Reads, writes, discards that were completed; a flush is a write of nothing.
    requests = sum(after[i] - before[i] for i in (0, 4, 11))
    calls = sum(e.get('function') == 'loop_queue_rq' for e in events)
    inlined = {e['function'] for e in events if e.get('kind') == 'inlined'}
    common.claim(
        f'{version}: a module\'s places are there ({len(running)}), and are called '
        f'({len(inlined)} inlined functions)',
        len(running) > 100 and len(inlined) >= 3)
    common.claim(f'{version}: as many requests as the block layer counts ({calls}, {requests})',
                 calls == requests > 5)
    common.claim(f'{version}: a module that was loaded again is told',
                 '1 site in modules that were unloaded meanwhile' in text)


def check_left(version, text, has_module):
    common.claim(f'{version}: without descriptors nothing is attached',
                 re.search('^refused 3$', text, re.M) and 'the limit is 128' in text)
    left = {
        name: (int(a), int(b))
        for name, a, b in re.findall(r'^left (\w+) (\d+) (\d+)$', text, re.M)
    }
    for name in ('events', 'counts', 'refused', 'killed', 'many', 'entries', 'killed_entries', 'stacks', 'places', 'returns', 'forbidden') + ('module', 'covered') * has_module:
        common.claim(f'{version}: nothing is left after {name} ({left.get(name)})',
                     left.get(name) == left.get('before') == (0, 0))


def release(version):
    return tuple(int(word) for word in re.findall(r'\d+', version)[:2])


def check_places(version, text, chosen):
    plan = [json.loads(line) for line in sent(text, 'plan').splitlines()]
    ready = [s for s in plan if not s['refused']]
    init = sum(s['section'] in ('.init.text', '.exit.text') for of in chosen.values() for s in of)
    # Parts, and calls merged with others, are no calls of their own.
    n_sites = sum(s['kind'] != 'part' and 'merged' not in s['count_caveats']
                  for of in chosen.values() for s in of)
    events = [json.loads(line) for line in sent(text, 'events').splitlines()]
    summary = events[-1] if events else {}
    addresses = len({s['running'] for s in ready})
    attached = re.findall(r'^attached (\d+)$', text, re.M)
    common.claim(
        f'{version}: all places are attached ({n_sites} listed, {init} freed, '
        f'{len(ready)} ready, {summary.get("attached")} attached)',
        len(plan) + init == n_sites and len(ready) == len(plan) == summary.get('attached'))
    common.claim(f'{version}: and the kernel lists them ({attached} of {addresses} addresses)',
                 attached and int(attached[0]) >= addresses)
    # A probe by a breakpoint does not wait for the buffer while another processor writes there.
    common.claim(
        f'{version}: hardly an event is lost, and the kernel tells what it missed, from 6.7 on '
        f'({summary.get("lost")} of {len(events)}, {summary.get("missed")}, '
        f'{summary.get("missed_unknown")})',
        summary.get('lost', len(events)) * 100 < len(events)
        and summary.get('missed_unknown') == (release(version) < (6, 7)))
    return events


def check(kernel, vmlinux):
    with tempfile.TemporaryDirectory() as folder:
        sidecar, work = os.path.join(folder, 'kernel.cairn'), os.path.join(folder, 'work')
        subprocess.run([common.CAIRN, 'sidecar', vmlinux, '-o', sidecar],
                       check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(['gcc', '-O2', '-static', '-o', work, WORK], check=True)
        sites, module = sites_of(sidecar), guests.module(vmlinux, 'loop')
        chosen = choose(sites)
        gdb = locations(vmlinux, chosen, folder)
        names = {}
        with open(os.path.join(folder, 'events'), 'w', encoding='utf-8') as file:
            for i, (place, args) in enumerate(sorted((p, g) for p, g in gdb.items() if g)):
                names[f'e{i}'], at = place, place[0]
                read = ' '.join(f'a{k}={r}:x64'
                                for k, (_, (r, _)) in enumerate(sorted(args.items())))
                file.write(f'e{i} {at:x} {read}\n')
        counted = [f for f, _, _ in COUNTERS if f in sites]
        for name, words in (('functions', chosen), ('counted', counted)):
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(' '.join(words) + '\n')
        text = guests.boot(
            kernel,
            INIT.replace('KILLS', str(KILLS)) + kernel_multi.INIT + kernel_stacks.INIT + kernel_places.INIT +
            kernel_returns.INIT + kernel_cover.INIT + kernel_typed.INIT +
            kernel_probed.INIT + kernel_refused.INIT, {
                **kernel_cover.files(folder),
                **kernel_typed.files(folder),
                **kernel_multi.files(folder, sites, HOT),
                **kernel_probed.files(folder, sites),
                **kernel_returns.files(folder, sites),
                **kernel_stacks.files(folder, chosen),
                **kernel_places.files(folder, chosen, module), **{
                    '/' + n: os.path.join(folder, n)
                    for n in ('kernel.cairn', 'functions', 'counted', 'events')
                }, '/bin/work': work,
                **{'/loop.ko': path
                   for path in module}
            }, kernel_cover.programs(folder) | kernel_typed.programs(folder))
        version = (re.findall(r'kernel (\d\S*)', text) or ['?'])[0]
        if os.environ.get('KEEP'):
            with open(os.environ['KEEP'] + version, 'w', encoding='utf-8') as file:
                file.write(text)
        events = check_places(version, text, chosen)
        compare(version, text, events, names, gdb)
        check_counters(version, text)
        if module:
            check_module(version, text)
        check_left(version, text, bool(module))
        kernel_stacks.check(version, text, sent, chosen, vmlinux)
        kernel_places.check(version, text, sent, bool(module))
        kernel_returns.check(version, text, sent)
        kernel_multi.check(version, text, sent, sites, HOT)
        kernel_cover.check(version, text)
        kernel_typed.check(version, text)
        kernel_probed.check(version, text, sent, sites)
        kernel_refused.check(version, text, sent, bool(module))


if __name__ == '__main__':
    guests.each('traces of other kernels', check, 'gdb')
