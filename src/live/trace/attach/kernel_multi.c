/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sites go by a kprobe_multi link
 *
 * A hit by such a link has the registers that ftrace saves. In some kernels these are all. Others
 * save those that carry arguments, rax, rbp, rsp and rip (save_mcount_regs in ftrace_64.S); the
 * rest has what the stack held there. So a site goes that way only if its fetch program
 * reads none of the others. Walking a stack needs the saved ones, too: traces with stacks have
 * kprobes.
 *
 * The link looks a site up by its address. Two sites at one address would get the same cookie, and
 * the order of a kprobe and of ftrace at one address is not promised. So an address with several
 * sites has kprobes. A link also holds the module that its functions are in, so that it cannot be
 * unloaded: modules have kprobes. Return probes need both ends to see one stack: calls that are
 * followed have kprobes.
 */
#include "trace/attach/kernel_multi.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "base/scope.h"
#include "trace/attach/links.h"

/*
 * The part of union bpf_attr that BPF_LINK_CREATE takes for kprobe_multi:
 *
 *	OFFSET SIZE  MEANING
 *	0      4     program
 *	4      4     target, unused
 *	8      4     attach type, 42
 *	12     4     flags, 0
 *	16     4     flags; 1: at return
 *	20     4     number of addresses
 *	24     8     pointer to names, or 0
 *	32     8     pointer to addresses
 *	40     8     pointer to cookies
 */
struct kprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, link_flags;
	uint32_t flags, n;
	uint64_t names, addresses, cookies;
};

static int make_link(int prog_fd, uint64_t addresses, uint64_t cookies, uint32_t n)
{
	struct kprobe_multi_attr attr = {.prog_fd = (uint32_t)prog_fd,
					 .attach_type = LINK_KPROBE_MULTI,
					 .n = n,
					 .addresses = addresses,
					 .cookies = cookies};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

int kernel_multi_link(int prog_fd, const struct link_places *places)
{
	return make_link(prog_fd, link_pointer(places->offsets), link_pointer(places->cookies),
			 places->n);
}

bool kernel_multi_is_known(void)
{
	int prog = link_load_nothing_for(LINK_KPROBE_MULTI);

	if (prog < 0)
		return false;
	/* Addresses that cannot be read: EFAULT by kernels that got that far, else another error. */
	int fd = make_link(prog, 1, 0, 1);
	if (fd >= 0)
		close(fd);
	close(prog);
	return fd == -EFAULT;
}

/*
 * The part of struct bpf_link_info that BPF_OBJ_GET_INFO_BY_FD fills for kprobe_multi:
 *
 *	OFFSET SIZE  MEANING
 *	0      16    type of the link, its number, its program, padding
 *	16     8     pointer to addresses, not asked for
 *	24     4     their number
 *	28     4     flags
 *	32     8     hits that were missed
 *
 * Kernels that tell the latter have 56 bytes at least.
 */
struct kprobe_multi_info {
	uint32_t link[4];
	uint64_t addresses;
	uint32_t n, flags;
	uint64_t missed, cookies;
	uint64_t rest[2];
};

#define INFO_WITH_MISSED 56

bool kernel_multi_missed(int link_fd, uint64_t *ret)
{
	struct kprobe_multi_info info = {0};
	size_t n = link_info(link_fd, &info, sizeof(info));

	*ret = info.missed;
	return n >= INFO_WITH_MISSED;
}

/* ---- which ---- */

/* In the file of registers: rbx, r10 to r15. */
#define NOT_SAVED (1u << 3 | 0x3fu << 10)

static bool reads_register(const struct fetch_op *op)
{
	if (op->code >= FETCH_ADD)
		return op->flags & FETCH_F_FILE;
	return op->code == FETCH_REG || op->code == FETCH_STORE_REG || op->code == FETCH_BYTES;
}

/* Two operations after it are text. */
static uint32_t length_of(const struct fetch_op *op)
{
	return op->code == FETCH_STREQ ? 3 : 1;
}

static bool has_its_registers(const struct cairn_trace *t, const struct trace_site *site)
{
	const struct trace_program *p = &t->programs.p[site->pub.program];
	const struct fetch_op *op;

	for (uint32_t i = 0; i < p->n; i += length_of(op)) {
		op = &t->ops.p[p->op + i];
		if (reads_register(op) && op->reg < FETCH_FILE_IP && NOT_SAVED >> op->reg & 1)
			return false;
	}
	return true;
}

static bool may_be_taken(const struct cairn_trace *t, const struct trace_site *site)
{
	const struct trace_probe *p = t->probes.p[site->pub.probe];

	return !site->pub.refused && p->file->kernel && !p->file->module && !site->follows &&
	       !site->located && links_follow_site(p, site) == LINKS_FOLLOW_NONE &&
	       site->pub.site->kind == CAIRN_SITE_OUT_OF_LINE && has_its_registers(t, site);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_the_only_one(const uint64_t *sorted, size_t n, uint64_t address)
{
	const uint64_t *at = bsearch(&address, sorted, n, sizeof(*sorted), compare_addresses);

	return at && (at == sorted || at[-1] != address) &&
	       (at + 1 == sorted + n || at[1] != address);
}

static uint32_t choose(struct cairn_trace *t, const uint64_t *sorted, size_t n_sorted)
{
	uint32_t n = 0;

	for (size_t i = 0; i < t->sites.n; i++) {
		struct trace_site *site = t->sites.p[i];
		site->by_multi = may_be_taken(t, site) &&
				 is_the_only_one(sorted, n_sorted, site->pub.running);
		n += site->by_multi;
	}
	return n;
}

uint32_t kernel_multi_choose(struct cairn_trace *t)
{
	SCOPE_FREE uint64_t *sorted = calloc(t->sites.n + 1, sizeof(*sorted));
	size_t n_sorted = 0;
	uint32_t n;

	if (t->opts.backend != CAIRN_BACKEND_AUTO || t->stacks || !sorted)
		return 0;
	for (size_t i = 0; i < t->sites.n; i++)
		if (!t->sites.p[i]->pub.refused)
			sorted[n_sorted++] = t->sites.p[i]->pub.running;
	qsort(sorted, n_sorted, sizeof(*sorted), compare_addresses);
	n = choose(t, sorted, n_sorted);
	for (size_t i = 0; n < KERNEL_MULTI_MIN && i < t->sites.n; i++)
		t->sites.p[i]->by_multi = false;
	return n < KERNEL_MULTI_MIN ? 0 : n;
}
