/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Compiled with clang -target bpf -g -O2; run it with any loader. No header but this example's own
 * is needed.
 */
#include "event.h"

#define SEC(name) __attribute__((section(name), used))

/*
 * As libbpf's macros have it: a map's properties are types of the members of an anonymous struct.
 */
struct {
	int (*type)[27]; /* BPF_MAP_TYPE_RINGBUF */
	int (*max_entries)[1 << 16];
} events SEC(".maps");

static void *(*const ringbuf_reserve)(void *map, unsigned long long size,
				      unsigned long long flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, unsigned long long flags) = (void *)132;
static unsigned long long (*const get_current_pid_tgid)(void) = (void *)14;
static unsigned long long (*const ktime_get_ns)(void) = (void *)5;

SEC("tracepoint/syscalls/sys_enter_openat")
int on_open(void *ctx)
{
	struct access *a = ringbuf_reserve(&events, sizeof(*a), 0);

	if (!a)
		return 0;
	/* Holes, too: what is not written is old memory of the kernel. */
	__builtin_memset(a, 0, sizeof(*a));
	a->event.e_pid = get_current_pid_tgid() >> 32;
	a->kind = KIND_OPEN;
	a->when_ns = ktime_get_ns();
	ringbuf_submit(a, 0);
	return 0;
}

/*
 * The compiler keeps types that something global has; what only a function uses is not in the BTF.
 */
const struct access *unused_access;
struct padded_event padded_event SEC(".data");

char _license[] SEC("license") = "Dual BSD/GPL";
