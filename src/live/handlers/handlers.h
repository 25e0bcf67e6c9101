/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module handlers: BPF programs of others, attached to functions wherever they were inlined
 *
 *	register.c  SEC("uloc/...") and SEC("kloc/...") of libbpf, and cairn_loc_attach()
 *	attach.c    one program: from its target to its link
 *	kernel.c    what describes the kernel that runs
 *	rows.c      the trace's sites as rows of the program's table
 *	table.c     the table: found in the program, rows put into it and taken back
 *	link.c      many descriptors as one struct bpf_link, and the hits that they missed
 */
#ifndef HANDLERS_HANDLERS_H
#define HANDLERS_HANDLERS_H

#include <cairn/loc.h>
#include <cairn/shared/loc_table.h>

#include "base/vec.h"
#include "trace/locate.h"

struct bpf_link;
struct bpf_program;

/* ---- rows.c ---- */

struct loc_rows {
	VEC(struct cairn_loc_entry) entries;
	VEC(uint32_t) starts; /* of rows, in entries */
	uint32_t *row_of;     /* by site of the trace; those that are refused have none */
};

/*
 * rows_make - a row for each site that is ready, with @cookie; equal ones are one
 *
 * Returns 0 or -ENOMEM. rows_fini() in both cases.
 */
int rows_make(const struct cairn_trace *t, uint64_t cookie, struct loc_rows *ret,
	      struct cairn_err *err);
/* The cookie of the probe at a site; @first is the place of the site's entries in the table. */
uint64_t rows_cookie(const struct loc_rows *rows, uint32_t site, uint32_t first);
void rows_fini(struct loc_rows *rows);

/* ---- table.c ---- */

struct loc_table {
	int fd; /* the program's; -1: it does not use one */
	uint32_t id, max_entries;
};

/* Returns 0; -EPROTO: the program was built with another version's header (err). */
int table_find(const struct bpf_program *prog, struct loc_table *ret, struct cairn_err *err);

/* How many arguments BPF_LOC_PROG() takes; 0 for other programs. */
uint32_t table_needs(const struct bpf_program *prog);

/*
 * table_put - room for entries, and them in it
 *
 * @ret_first  the first one's index
 * Returns 0; -ENOSPC (err: how many there are); -EBUSY: another process fills the table; -ENOMEM,
 * and the errors of bpf(2).
 */
int table_put(const struct loc_table *table, const struct cairn_loc_entry *entries, uint32_t n,
	      uint32_t *ret_first, struct cairn_err *err);
/* Whose they are from then on: when that link is gone, their room is free. */
void table_own(const struct loc_table *table, uint32_t first, uint32_t link_id);
/* There will be no link. */
void table_drop(const struct loc_table *table, uint32_t first);

/* ---- link.c ---- */

/*
 * link_bundle - a link that ends all descriptors when it is destroyed
 *
 * @l       its descriptors stay the caller's; the link has others of the same
 * @ret_id  the kernel's number of the first link
 * Returns 0; -ENOMEM, -EMFILE, or the errors of bpf(2), perf_event_open(2) and sendmsg(2).
 */
int link_bundle(const struct trace_links *l, struct bpf_link **ret, uint32_t *ret_id,
		struct cairn_err *err);

/* ---- kernel.c ---- */

struct kernels {
	const struct cairn_loc_opts *opts;
	const char *root; /* as of struct cairn_kernel_opts */
};

/*
 * kernels_find - as find_kernel of struct cairn_trace_opts; @ctx is a struct kernels
 *
 * The caller holds the lock as long as it uses the answer.
 * Returns 0; -EOPNOTSUPP: the kernel has no kprobes; the errors of cairn/kernel.h and of opening.
 */
int kernels_find(void *ctx, const char *module, struct cairn_trace_kernel *ret,
		 struct cairn_err *err);
void kernels_lock(void);
void kernels_unlock(void);
/* Closes what is kept. */
void kernels_forget(void);

/* ---- register.c ---- */

/*
 * handlers_check_kernel - whether it has what a program of ours needs
 *
 * The program asks for its cookie, which says which arguments are where. Without cookies it does not
 * load, and the verifier's words would not say why.
 * Returns 0; -EOPNOTSUPP, and @ret_why.
 */
int handlers_check_kernel(char *ret_why, size_t n);

/* ---- attach.c ---- */

int loc_attach(const struct bpf_program *prog, const char *target,
	       const struct cairn_loc_attach_opts *opts, const struct cairn_loc_opts *handlers,
	       struct bpf_link **ret, struct cairn_err *err);

#endif
