/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * USDT probes: the places that a program's authors marked for tracers
 *
 * A macro such as DTRACE_PROBE2(postgresql, lock__wait__start, a, b) leaves one nop in the code,
 * and a note in the file: which provider and name, where the nop is, and where its arguments are
 * then. No debug information is needed. One probe may be on many instructions: one for each copy of
 * the code that has the macro.
 *
 *	struct cairn_usdt *usdt;
 *	if (cairn_usdt_open(bin, &usdt, &err) < 0)
 *		return fail(err.msg);
 *	const struct cairn_usdt_site *sites;
 *	for (size_t i = 0, n = cairn_usdt_sites(usdt, &sites); i < n; i++)
 *		printf("%s:%s\n", sites[i].provider, sites[i].name);
 *	cairn_usdt_close(usdt);
 *
 * The program may compute arguments only while somebody traces: it then tests a counter, the
 * probe's semaphore, which the kernel increments in each process that a tracer is attached to.
 * cairn_trace_add() (trace.h) traces a probe, and has the kernel do so.
 */
#ifndef CAIRN_USDT_H
#define CAIRN_USDT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/hazards.h>
#include <cairn/location.h>

CAIRN_BEGIN_DECLS

struct cairn_usdt;

/* An argument at one instruction. */
struct cairn_usdt_arg {
	const char *text; /* as the compiler wrote it: "-4@%eax" */
	uint8_t size;     /* bytes, 1, 2, 4 or 8; 0: the note does not tell it, or no such size */
	bool is_signed;
	bool is_float;
	/* One piece, for a value of @size bytes. Operands that no probe can read are unavailable. */
	struct cairn_location loc;
};

/* One instruction of a probe. */
struct cairn_usdt_site {
	const char *provider, *name;
	struct cairn_vaddr at;
	struct cairn_foff off; /* in the binary; valid when has_off */
	bool has_off;
	enum cairn_hazard hazard;
	/* The function whose code this is; NULL when no symbol covers it. */
	const char *symbol;
	uint64_t symbol_off;
	bool has_semaphore;
	struct cairn_vaddr semaphore;    /* valid when has_semaphore: 2 bytes */
	struct cairn_foff semaphore_off; /* valid when has_semaphore_off: what the kernel needs */
	bool has_semaphore_off;
	uint32_t n_args;
	const struct cairn_usdt_arg *args;
};

/*
 * cairn_usdt_open - read the notes of a binary's USDT probes
 *
 * @bin  must outlive the result
 * Returns 0, also if there are none. -EBADMSG: damaged notes; -ERANGE: more or longer ones than any
 * program has; -ENOMEM.
 * Cost: one pass over the notes and, if an argument is at a symbol, over the symbols. Threads: any,
 * one at a time per binary. Signals: no.
 */
int cairn_usdt_open(const struct cairn_binary *bin, struct cairn_usdt **ret, struct cairn_err *err);
/* Takes NULL. */
void cairn_usdt_close(struct cairn_usdt *usdt);

/*
 * cairn_usdt_sites - all of them, sorted by provider, name and address
 *
 * Notes that are equal in everything, as those of functions that the linker folded, are one site.
 * @ret  borrowed until close
 * Returns their number. Cost: none. Threads: any. Signals: safe.
 */
size_t cairn_usdt_sites(const struct cairn_usdt *usdt, const struct cairn_usdt_site **ret);

CAIRN_END_DECLS
#endif
