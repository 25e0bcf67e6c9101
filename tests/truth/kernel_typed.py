# SPDX-License-Identifier: BSD-2-Clause
"""cairn run --cover-inlined of fentry programs in the guest, which read structs by their types.

A program of the guest knows how often it calls fsync(2), fdatasync(2) and socket(2), of which file and
with which arguments. The functions that these reach are inlined there.
"""
import collections
import json
import os
import re
import subprocess

import common
import kernel_cover

PROGRAM = r"""
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
struct inode { unsigned long i_ino; } __attribute__((preserve_access_index));
struct file { struct inode *f_inode; } __attribute__((preserve_access_index));
struct socket;
struct typed_key { unsigned long a; long b, c; unsigned long function; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct typed_key);
	__type(value, unsigned long);
} typed_calls SEC(".maps");
char LICENSE[] SEC("license") = "GPL";

static __attribute__((noinline)) int count(struct typed_key *key)
{
	unsigned long one = 1, *n = bpf_map_lookup_elem(&typed_calls, key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&typed_calls, key, &one, BPF_ANY);
	return 0;
}
SEC("fentry/vfs_fsync_range")
int BPF_PROG(on_sync, struct file *file, long long start, long long end, int datasync)
{
	struct typed_key key = {file->f_inode->i_ino, end, datasync, 1};

	return count(&key);
}
SEC("fentry/sock_create")
int BPF_PROG(on_socket, int family, int type, int protocol)
{
	struct typed_key key = {family, type, protocol, 2};

	return count(&key);
}
"""
CALLS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	int fd = open("/tmp/synced", O_RDWR | O_CREAT, 0600), pair[2];
	struct stat st;

	fstat(fd, &st);
	for (int i = 0; i < 12; i++)
		i < 5 ? fsync(fd) : fdatasync(fd);
	for (int i = 0; i < 9; i++)
		close(socket(AF_UNIX, SOCK_SEQPACKET, 0));
	for (int i = 0; i < 4; i++) {
		socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
		close(pair[0]);
		close(pair[1]);
	}
	printf("typed inode %lu\n", (unsigned long)st.st_ino);
	return 0;
}
"""
SOCKETS, SYNCS, DATA_SYNCS = 9 + 2 * 4, 5, 7
INIT = """
if [ -e /typed.bpf.o ]; then
	rm -f /tmp/said
	cairn run --cover-inlined $K --json --best-effort /typed.bpf.o >/tmp/typed.json 2>/tmp/said & pid=$!
	wait_for '^attached' /tmp/said
	typed_calls
	cairn decode --json --map typed_calls >/tmp/typed.map
	kill -INT $pid; wait $pid; echo "typed status $?"
	echo "begin typed"; cat /tmp/said /tmp/typed.json; echo "end typed"
	echo "begin typed-map"; cat /tmp/typed.map; echo "end typed-map"
	left typed
fi
"""


def files(folder):
    if common.have('clang'):
        return {}
    return {
        '/typed.bpf.o':
        kernel_cover.compile_object(PROGRAM, os.path.join(folder, 'typed.bpf'))
    }


def programs(folder):
    source, calls = os.path.join(folder, 'typed_calls.c'), os.path.join(
        folder, 'typed_calls')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(CALLS)
    subprocess.run(['gcc', '-O1', '-static', '-o', calls, source], check=True)
    return {'typed_calls': calls}


def check(version, text):
    if not kernel_cover.part(text, 'typed'):
        return
    rows = kernel_cover.rows_of(text, 'typed')
    seen = collections.Counter()
    for line in kernel_cover.part(text, 'typed-map').splitlines():
        entry = json.loads(line)
        key = entry['key']
        seen[key['function'], key['a'], key['b'], key['c']] += entry['value']
    inode, = map(int, re.findall(r'^typed inode (\d+)$', text, re.M))
    whole = (1 << 63) - 1
    found = (seen[1, inode, whole, 0], seen[1, inode, whole, 1], seen[2, 1, 5,
                                                                      0])
    copies = {n: row['covered'] for n, row in rows.items()}
    why = ' '.join(row['why'] or '' for row in rows.values())
    if 'bpf_rdonly_cast' in why:
        common.claim(
            f'{version}: without bpf_rdonly_cast() a program that reads a struct is told ({why})',
            rows['on_sync']['left_out'] and not rows['on_sync']['covered'])
        return
    common.claim(
        f'{version}: fentry programs see inlined calls, with their arguments and what these point to '
        f'({found}, copies: {copies}; {why})',
        found == (SYNCS, DATA_SYNCS, SOCKETS) and copies['on_sync'] >= 1
        and copies['on_socket'] >= 1)
