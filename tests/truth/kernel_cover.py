# SPDX-License-Identifier: BSD-2-Clause
"""cairn run --cover-inlined in the guest: a program at a function that has no body there.

The oracle for requests of the block layer is what it counts itself, /sys/block/loop0/stat. The
object of the requests is ours, attached by cairn and by a tool of libbpf's; the other one is that of
Debian's biotop, unchanged. Last comes biotop itself, with the table that it shows.
"""
import json
import os
import re
import struct
import subprocess
import tempfile

import common

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.path.dirname(common.CAIRN),
                       'agent/libcairn-cover.so')
PROGRAM = r"""
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
struct gendisk { int major; } __attribute__((preserve_access_index));
struct request_queue { struct gendisk *disk; } __attribute__((preserve_access_index));
struct request { struct request_queue *q; unsigned int cmd_flags; } __attribute__((preserve_access_index));
struct request_key { int major; unsigned int operation; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct request_key);
	__type(value, unsigned long);
} requests SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 64);
	__uint(key_size, 4);
	__uint(value_size, 8 * 32);
} frames SEC(".maps");
char LICENSE[] SEC("license") = "GPL";

SEC("kprobe/blk_account_io_start")
int BPF_KPROBE(on_start, struct request *req)
{
	struct request_key key = {.major = BPF_CORE_READ(req, q, disk, major),
			  .operation = BPF_CORE_READ(req, cmd_flags) & 255};
	unsigned long one = 1, *n = bpf_map_lookup_elem(&requests, &key);

	bpf_get_stackid(ctx, &frames, 0);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&requests, &key, &one, BPF_ANY);
	return 0;
}
"""
INIT = """
# A program that knows nothing of inlined copies.
mkdir -p /sys/fs/bpf
mount -t bpf none /sys/fs/bpf 2>/dev/null
if [ -e /sys/module/loop ] && [ -e /requests.bpf.o ]; then
	dd if=/dev/zero of=/tmp/cover bs=1M count=4 2>/dev/null
	losetup /dev/loop1 /tmp/cover
	passing() {
		sync
		sleep 1
		cat /sys/block/loop1/stat >/tmp/before
		dd if=/dev/zero of=/dev/loop1 bs=4k count=300 conv=fsync 2>/dev/null
		dd if=/dev/loop1 of=/dev/null bs=64k 2>/dev/null
		echo 3 >/proc/sys/vm/drop_caches
		dd if=/dev/loop1 of=/dev/null bs=64k 2>/dev/null
		sync
		sleep 2
		echo "$1 stat $(cat /tmp/before) / $(cat /sys/block/loop1/stat)"
	}
	covers() { name=$1; shift; rm -f /tmp/said
		cairn run --cover-inlined $K "$@" >/tmp/$name.json 2>/tmp/said & pid=$!
		wait_for '^attached' /tmp/said
		passing $name
		cairn decode --json --map $map >/tmp/$name.map
		kill -INT $pid; wait $pid; echo "$name status $?"
		echo "begin $name"; cat /tmp/said /tmp/$name.json; echo "end $name"
		echo "begin $name-map"; cat /tmp/$name.map; echo "end $name-map"
	}
	map=requests
	cairn run --cover-inlined $K --duration 100ms /requests.bpf.o >/tmp/said 2>&1
	echo "strict $?"; head -2 /tmp/said
	covers requests --best-effort --json /requests.bpf.o
	covers command --best-effort -- attach_all /requests.bpf.o
	if [ -e /biotop.bpf.o ]; then
		map=whobyreq
		covers biotop --best-effort --json --attach blk_account_io_start=blk_account_io_start /biotop.bpf.o
	fi
	if [ -e /bin/biotop ]; then
		cairn run --cover-inlined $K --best-effort -- biotop -C 40 1 >/tmp/table 2>/tmp/said & pid=$!
		n=0
		while [ $n -lt 60 ] && ! grep -q blk_ /sys/kernel/debug/kprobes/list; do
			sleep 1
			n=$((n + 1))
		done
		sleep 5
		passing table
		wait $pid; echo "table status $?"
		echo "begin table"; cat /tmp/said /tmp/table; echo "end table"
	fi
	losetup -d /dev/loop1
	left covered
	# By turns cairn and the tool.
	n=0
	while [ $n -lt 50 ]; do
		cairn run --cover-inlined $K --best-effort -- attach_all /requests.bpf.o >/dev/null 2>&1 & pid=$!
		usleep $((RANDOM * 30))
		[ $((n % 2)) = 0 ] && kill -9 $pid
		killall -q -9 attach_all
		kill $pid 2>/dev/null
		wait $pid 2>/dev/null
		n=$((n + 1))
	done
	sleep 2
	left killed_covers
fi
"""


def biotop(folder):
    """Debian's (package libbpf-tools), unpacked there once; None: it is not to be had."""
    program = os.path.join(folder, 'usr/sbin/biotop')
    for command in (('apt-get', '-qq', '-o', 'APT::Sandbox::User=root', 'download', 'libbpf-tools'),
                    ('sh', '-c', 'dpkg-deb -x libbpf-tools_*.deb .')):
        if not os.path.exists(program):
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return program if os.path.exists(program) else None


def embedded(data):
    """The first object for BPF that a program contains."""
    at = data.find(b'\x7fELF\x02\x01\x01', 1)
    while at >= 0:
        if struct.unpack_from('<H', data, at + 18)[0] == 247:
            sections, = struct.unpack_from('<Q', data, at + 40)
            n, = struct.unpack_from('<H', data, at + 60)
            return data[at:at + sections + 64 * n]
        at = data.find(b'\x7fELF\x02\x01\x01', at + 1)
    return None


def compile_object(text, path):
    with open(path + '.c', 'w', encoding='utf-8') as file:
        file.write(text)
    subprocess.run([
        'clang', '-O2', '-g', '-target', 'bpf', '-D__TARGET_ARCH_x86',
        '-idirafter', f'/usr/include/{os.uname().machine}-linux-gnu', '-c',
        path + '.c', '-o', path + '.o'
    ],
                   check=True)
    return path + '.o'


def files(folder):
    if common.have('clang'):
        return {}
    ours = compile_object(PROGRAM, os.path.join(folder, 'requests.bpf'))
    found = {'/requests.bpf.o': ours, '/bin/agent/libcairn-cover.so': LIBRARY}
    theirs = biotop(folder)
    if theirs:
        found['/biotop.bpf.o'] = os.path.join(folder, 'biotop.bpf.o')
        with open(theirs, 'rb') as program, open(found['/biotop.bpf.o'], 'wb') as file:
            file.write(embedded(program.read()))
    return found


def programs(folder):
    """Tools that attach their programs themselves."""
    tool = os.path.join(folder, 'attach_all')
    subprocess.run([
        'gcc', '-O2', '-o', tool,
        os.path.join(HERE, '../samples/attach_all.c'), '-lbpf'
    ],
                   check=True)
    theirs = biotop(folder)
    return {'attach_all': tool} | ({'biotop': theirs} if theirs else {})


def part(text, name):
    found = re.search(f'^begin {name}\n(.*?)^end {name}$', text, re.M | re.S)
    return found.group(1) if found else ''


def completed(text, name):
    """Reads, writes and discards that the block layer counted meanwhile."""
    counts = re.search(f'^{name} stat (.*) / (.*)$', text, re.M)
    if not counts:
        return None
    before, after = ([int(w) for w in half.split()]
                     for half in counts.groups())
    return sum(after[i] - before[i] for i in (0, 4, 11))


def rows_of(text, name):
    rows = [
        json.loads(line) for line in part(text, name).splitlines()
        if line.startswith('{')
    ]
    return {row['program']: row for row in rows if 'program' in row}


def counted(text, name):
    """Reads, writes and discards of loop devices in the program's map."""
    entries = [
        json.loads(line) for line in part(text, name + '-map').splitlines()
    ]
    return sum(
        e['value'] for e in entries
        if e['key']['major'] == 7 and e['key']['operation'] in (0, 1, 3))


def check_command(version, text):
    seen, stat = counted(text, 'command'), completed(text, 'command')
    common.claim(
        f'{version}: so does the same one that a tool attaches itself ({seen}, {stat})',
        stat and seen == stat and re.search('^command status 0$', text, re.M))


def check_requests(version, text):
    row = rows_of(text, 'requests').get('on_start', {})
    seen, stat = counted(text, 'requests'), completed(text, 'requests')
    inlined = not row.get('attached')
    common.claim(
        f'{version}: a program at blk_account_io_start sees each request that the block layer '
        f'counts ({"at copies" if inlined else "at its body"}: {seen}, {stat}; {row})',
        stat and seen == stat and
        (row.get('covered', 0) >= 4 if inlined else row.get('covered') == 0)
        and row.get('lost') == 0)
    if inlined:
        common.claim(
            f'{version}: without best effort, a copy whose argument is not known ends it',
            re.search('^strict 1$', text, re.M)
            and 'may be hit without a call' in text)


def check_biotop(version, text):
    row = rows_of(text, 'biotop').get('blk_account_io_start', {})
    entries = part(text, 'biotop-map').splitlines()
    common.claim(
        f'{version}: the program of Debian\'s biotop, unchanged, notes requests '
        f'({len(entries)}; {row})',
        len(entries) > 3 and row.get('lost') == 0
        and (row.get('attached') or row.get('covered', 0) >= 4))


def check_table(version, text):
    """What biotop shows of the device: a row for each process, with its I/O."""
    refused = re.search(r"failed to create kprobe '(\w+)\+0x0'", part(text, 'table'))
    if refused:
        common.skip(f'{version}: Debian\'s biotop, whole',
                    f'the kernel takes no probe in {refused.group(1)}, which it needs, too')
        return
    rows = re.findall(r'^\d+ .* [RW] 7 +1 +loop1 +(\d+) +\d+ +[\d.]+$', part(text, 'table'), re.M)
    seen, stat = sum(map(int, rows)), completed(text, 'table')
    common.claim(f'{version}: Debian\'s biotop shows each request that the block layer counts '
                 f'({seen} in {len(rows)} rows, {stat})', stat and seen == stat)


def check(version, text):
    if 'failed to create kprobe' in part(text, 'requests'):
        # Its own kprobes are of functions that ftrace traces.
        common.skip(f'{version}: programs at blk_account_io_start',
                    'the kernel refuses probes there')
        return
    if not part(text, 'requests'):
        common.skip(f'{version}: programs at blk_account_io_start',
                    'there is no module of loop devices, or no clang')
        return
    check_requests(version, text)
    check_command(version, text)
    if part(text, 'biotop'):
        check_biotop(version, text)
    if part(text, 'table'):
        check_table(version, text)
    common.claim(
        f'{version}: nothing is left of covered programs after 50 kills',
        re.search('^left killed_covers 0 0$', text, re.M))
