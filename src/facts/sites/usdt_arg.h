/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments of a USDT probe, from the text in its note. */
#ifndef SITES_USDT_ARG_H
#define SITES_USDT_ARG_H

#include <cairn/usdt.h>

#include "base/arena.h"
#include "base/vec.h"

struct elf_symbol;

/* The symbols of a binary and its debug file by name, made when an operand first names one. */
struct usdt_symbols {
	const struct cairn_binary *bin;
	VEC(const struct elf_symbol *) v;
	bool is_made;
};

void usdt_symbols_fini(struct usdt_symbols *s);

/* SystemTap's macros pass at most 12. */
enum { USDT_ARGS_MAX = 12 };

/*
 * usdt_args_parse - "-4@%eax 8@16(%rsp)" to arguments
 *
 * @symbols  those of the binary, which operands name
 * @arena    owns the result
 * Returns their number; -ENOMEM. Operands that are not understood are arguments that are
 * unavailable; arguments after the 12th are left out.
 */
int usdt_args_parse(struct usdt_symbols *symbols, const char *text, struct arena *arena,
		    const struct cairn_usdt_arg **ret, struct cairn_err *err);

#endif
