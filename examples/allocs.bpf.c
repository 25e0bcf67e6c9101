/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's side of examples/allocs: how often each size is asked for. docs/libbpf.md */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <cairn/loc.bpf.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10000);
	__type(key, __u64);
	__type(value, __u64);
} sizes SEC(".maps");

/* Its target is given when it is attached; SEC("uloc/PATH:FUNC") would be attached by itself. */
SEC("uloc")
int BPF_LOC_PROG(on_alloc, unsigned long size)
{
	__u64 key = size, one = 1, *n = bpf_map_lookup_elem(&sizes, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&sizes, &key, &one, BPF_NOEXIST);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
