/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rule at one address, from .eh_frame in memory
 *
 * A loaded object has no section headers. Its program header PT_GNU_EH_FRAME leads to
 * .eh_frame_hdr, which the linker writes for exceptions, and which leads on:
 *
 *	1 B     version, 1
 *	1 B     encoding of the next but two: 1b, a 4-byte distance from the field itself
 *	1 B     encoding of the number of FDEs: 03, 4 bytes
 *	1 B     encoding of the table: 3b, 4-byte distances from .eh_frame_hdr
 *	4 B     where .eh_frame is
 *	4 B     number of FDEs
 *	8 B *   the table, sorted: first address of a function, its FDE
 *
 * These encodings are the only ones that GNU ld, gold, lld and mold write; others are refused. No
 * field gives the size of .eh_frame, so the end of its segment bounds it.
 *
 * Nothing here allocates, locks or formats: a signal handler may call it. Errors have no message
 * for the same reason.
 */
#include "cfi/eh_memory.h"

#include <errno.h>

#include "base/search.h"
#include "cfi/frame_entry.h"
#include "cfi/expr.h"

enum {
	VERSION = 1,
	FRAME_ENCODING = 0x1b, /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
	COUNT_ENCODING = 0x03, /* DW_EH_PE_udata4 */
	TABLE_ENCODING = 0x3b, /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
	RSP = 7,
};

static const struct cursor_src nowhere = {.file = "", .section = ".eh_frame_hdr"};

struct entry {
	uint64_t first, fde; /* addresses */
};

static struct entry read_entry(const struct eh_memory *eh, const uint8_t *p)
{
	struct cursor c = cursor_of(&nowhere, p, (size_t)(eh->hi - p), false, NULL);
	uint64_t base = (uint64_t)(uintptr_t)eh->hdr;
	struct entry e;
	e.first = base + (uint64_t)(int64_t)(int32_t)cur_u32(&c);
	e.fde = base + (uint64_t)(int64_t)(int32_t)cur_u32(&c);
	return e;
}

/* The last entry that begins at @at or before; false when none does. */
static bool find_entry(const struct eh_memory *eh, const uint8_t *table, size_t n, uint64_t at,
		       struct entry *ret)
{
	enum { ENTRY = 8 };
	if (n == 0 || read_entry(eh, table).first > at)
		return false;
	size_t lo = SEARCH_LAST(0, n, i, read_entry(eh, table + i * ENTRY).first <= at);
	*ret = read_entry(eh, table + lo * ENTRY);
	return true;
}

/*
 * The FDE for @at. Returns 1 and *@ret_frame, *@ret_fde; 0 when none begins before; negative as
 * eh_memory_rule().
 */
static int find_fde(const struct eh_memory *eh, uint64_t at, uint64_t *ret_frame, uint64_t *ret_fde)
{
	struct cursor c = cursor_of(&nowhere, eh->hdr, (size_t)(eh->hi - eh->hdr), false, NULL);
	uint8_t version = cur_u8(&c), frame = cur_u8(&c), count = cur_u8(&c), table = cur_u8(&c);
	if (version != VERSION || frame != FRAME_ENCODING || count != COUNT_ENCODING ||
	    table != TABLE_ENCODING)
		return -EOPNOTSUPP;
	uint64_t field = (uint64_t)(uintptr_t)c.pos;
	*ret_frame = field + (uint64_t)(int64_t)(int32_t)cur_u32(&c);
	uint64_t n = cur_u32(&c);
	struct entry e;
	if (c.failed || n > cur_left(&c) / sizeof(uint64_t))
		return -EBADMSG;
	if (!find_entry(eh, c.pos, n, at, &e))
		return 0;
	*ret_fde = e.fde;
	return 1;
}

/* The expression of a procedure linkage table is one rule at one address. */
static int take_row(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *row)
{
	const struct rule_search *s = ctx;
	struct expr_plt plt;
	int is_found = rule_search_row(ctx, lo, hi, row);
	if (is_found && row->cfa == CFI_CFA_EXPR &&
	    expr_is_plt(row->cfa_expr, row->cfa_expr_len, &plt) && plt.off >= 0 &&
	    plt.off <= UINT16_MAX)
		rule_cfa(s->ret, CAIRN_UNWIND_CFA_REG, 0, RSP,
			 (int32_t)plt.off + (((s->at & plt.mask) >= plt.from) << plt.shift), 0);
	return is_found;
}

int eh_memory_rule(const struct eh_memory *eh, uint64_t at, struct rule_words *ret)
{
	uint64_t frame, fde_at, lo = (uint64_t)(uintptr_t)eh->lo, hi = (uint64_t)(uintptr_t)eh->hi;
	rule_undescribed(ret);
	int rc = find_fde(eh, at, &frame, &fde_at);
	if (rc <= 0)
		return rc;
	if (frame < lo || frame >= hi || fde_at < frame || fde_at >= hi)
		return -EBADMSG;
	struct elf_section memory = {.name = ".eh_frame",
				     .addr = {frame},
				     .data = eh->lo + (frame - lo),
				     .size = hi - frame};
	memory.src = (struct cursor_src){.file = "", .section = memory.name, .base = memory.data};
	struct frame_section sec = {.elf = &memory, .is_eh = true, .machine = eh->machine};
	struct frame_entry entry;
	struct frame_fde fde;
	struct frame_cie cie;
	if (frame_entry_at(&sec, fde_at - frame, &entry, NULL) < 0 || entry.is_terminator ||
	    entry.is_cie || frame_cie_at(&sec, entry.cie_off, &cie, NULL) < 0 ||
	    frame_fde_of(&sec, &entry, &cie, &fde, NULL) < 0 || at < fde.lo || at >= fde.hi)
		return 0;
	struct rule_search s = {.at = at,
				.machine = eh->machine,
				.is_signal_frame = cie.is_signal_frame,
				.ret = ret};
	if (program_run(&sec, &fde, take_row, &s, NULL) < 0)
		rule_undescribed(ret);
	return 0;
}
