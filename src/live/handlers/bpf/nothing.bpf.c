/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A program that does nothing: libbpf makes a struct bpf_link of it (link.c). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int nothing(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
