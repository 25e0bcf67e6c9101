/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line programs: the header
 *
 *	SIZE     DWARF 2 to 4                       DWARF 5
 *	4 / 12   length                             the same
 *	2        version                            version
 *	                                            u8 size of address, u8 of segment selector
 *	O        header length                      the same: the program starts after it
 *	1        minimum instruction length         the same
 *	1        4: operations per instruction      the same
 *	1 1 1    default is_stmt, s8 line base, line range
 *	1        first special opcode, then the operand counts of those before it
 *	         directories: strings up to ""      u8 n, n pairs of ULEB (content, form);
 *	                                            ULEB count, entries
 *	         files: string, ULEB directory,     the same, for files
 *	         ULEB time, ULEB size, up to ""
 *
 * The tables are read by line_files.c.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/line.h"

static int read_fields(struct dw_line_header *h, struct cursor *c)
{
	h->version = cur_u16(c);
	if (!c->failed && (h->version < 2 || h->version > 5))
		return err_set(c->err, -EOPNOTSUPP,
			       "%s: %s+0x%" PRIx64 ": line program of version %u, expected 2 to 5",
			       c->src->file, c->src->section, cur_off(c) - 2, h->version);
	if (h->version == 5) {
		h->addr_size = cur_u8(c);
		cur_u8(c); /* segment selectors: none on the supported machines */
	}
	uint64_t header_length = cur_uint(c, h->offset_size);
	h->program = *c;
	cur_skip(&h->program, header_length);
	h->tables = *c;
	h->tables.end = h->program.pos;
	struct cursor *t = &h->tables;
	h->min_inst = cur_u8(t);
	h->max_ops = h->version >= 4 ? cur_u8(t) : 1;
	h->default_is_stmt = cur_u8(t);
	h->line_base = (int8_t)cur_u8(t);
	h->line_range = cur_u8(t);
	h->opcode_base = cur_u8(t);
	if (!t->failed && (!h->max_ops || !h->opcode_base))
		dw_expected(t, "operations per instruction and an opcode base, both at least 1");
	h->opcode_lengths = cur_bytes(t, h->opcode_base ? h->opcode_base - 1u : 0);
	return c->failed || t->failed || h->program.failed ? -EBADMSG : 1;
}

int dw_line_header_read(const struct dw_unit *u, struct dw_line_header *ret, struct cairn_err *err)
{
	if (!u->has_stmt_list)
		return 0;
	struct cursor c = dw_section_cursor(&u->line_file->sec[DW_SEC_LINE], u->stmt_list, err);
	*ret = (struct dw_line_header){.addr_size = u->addr_size, .offset_size = 4};
	uint64_t length = cur_u32(&c);
	if (length == UINT32_MAX) {
		ret->offset_size = 8;
		length = cur_u64(&c);
	}
	struct cursor body = cur_sub(&c, length);
	return body.failed ? -EBADMSG : read_fields(ret, &body);
}
