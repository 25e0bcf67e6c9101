/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's side of examples/requests: how many block requests are started. docs/libbpf.md
 *
 * Linux 6.1 has no body of this function, only inlined copies, so no plain kprobe can be set.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <cairn/loc.bpf.h>

#include "requests.h"

/* Of the kernel's structures only these members are read; libbpf has their offsets. */
struct gendisk {
	int major, first_minor;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk;
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct request_key);
	__type(value, __u64);
} requests SEC(".maps");

/* Requests of drivers themselves are no device's reads or writes; that copy has no argument. */
SEC("kloc.best_effort/blk_account_io_start")
int BPF_LOC_PROG(on_start, struct request *rq)
{
	struct request_key key = {.major = BPF_CORE_READ(rq, q, disk, major),
				  .minor = BPF_CORE_READ(rq, q, disk, first_minor),
				  .operation = BPF_CORE_READ(rq, cmd_flags) & 0xff};
	__u64 one = 1, *n = bpf_map_lookup_elem(&requests, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&requests, &key, &one, BPF_NOEXIST);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
