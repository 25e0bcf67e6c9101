/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes for a program of another module, whose hits have a number
 *
 * The trace finds, plans and checks the sites as ever. Instead of values, a site has at most one
 * number, the value of an expression as in a condition. Where it is not available the site is
 * probed all the same, and says why. The other program has the tables of bpf/fetch.bpf.h:
 *
 *	cairn_trace_open(&opts, &t, err);
 *	trace_weigh(t);
 *	cairn_trace_add(t, "FUNC(n * size:bytes) if n", err);
 *	trace_check(t, err);
 *	trace_size_tables(t, sites, ops);	// then it is loaded
 *	trace_fill_tables(t, sites, ops);
 *	trace_set_links(t, &links, err);
 */
#ifndef TRACE_WEIGH_H
#define TRACE_WEIGH_H

#include "trace/attach/links.h"

struct bpf_map;

/* For all probes that are added from now on. */
void trace_weigh(struct cairn_trace *t);

/* The number's text, and "bytes", "nanoseconds" or "count"; NULL: hits have none. */
const char *trace_weight(const struct cairn_trace *t, const char **ret_unit);

/* Why a site has no number; CAIRN_AVAILABLE: it has one, or there is no such site. */
enum cairn_unavailable trace_weight_missing(const struct cairn_trace *t, uint32_t site);

/* The checks of cairn_trace_attach(), with its errors. Sites may be refused by them. */
int trace_check(struct cairn_trace *t, struct cairn_err *err);

/* Before the program is loaded. Returns 0 or a negative errno. */
int trace_size_tables(const struct cairn_trace *t, struct bpf_map *sites, struct bpf_map *ops);
/* After that. Returns 0; -ENOMEM, and the errors of mmap(2). */
int trace_fill_tables(const struct cairn_trace *t, struct bpf_map *sites, struct bpf_map *ops);

/* Writes a table that a BPF program only reads, all of it. Returns as the function above. */
int trace_fill_table(struct bpf_map *map, const void *from, size_t n_bytes);

/* links_attach(), and -ENOENT when no site is left. */
int trace_set_links(struct cairn_trace *t, struct trace_links *l, struct cairn_err *err);

#endif
