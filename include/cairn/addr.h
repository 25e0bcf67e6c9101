/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three kinds of address
 *
 * One instruction has three numbers. DWARF has the address that the linker gave it, a uprobe needs
 * its offset in the file, a sampled register holds the address at which it was loaded. They are
 * integers of the same width, and mixing them up gives answers that look right. So each is a struct
 * of its own, and the compiler refuses the mix:
 *
 *	struct cairn_vaddr at = site->at;
 *	struct cairn_foff off;
 *	if (cairn_binary_foff(bin, at, &off))	// the only way from one to the other
 *		attach(off.v);
 *
 * Ranges are half open everywhere: [lo, hi).
 */
#ifndef CAIRN_ADDR_H
#define CAIRN_ADDR_H

#include <stdint.h>

/* Offset from the first byte of a file. */
struct cairn_foff {
	uint64_t v;
};

/*
 * Link-time address: the address in symbol tables and DWARF. In a relocatable file (.o, .ko) there
 * is no link-time address yet; the elf module then lays the allocated sections out one after the
 * other, see cairn_binary_section_of().
 */
struct cairn_vaddr {
	uint64_t v;
};

/* Address in a running process. */
struct cairn_addr {
	uint64_t v;
};

#endif
