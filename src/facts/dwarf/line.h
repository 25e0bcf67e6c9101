/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the header of a line program, for the readers of its file tables and of its rows. */
#ifndef DWARF_LINE_H
#define DWARF_LINE_H

#include "dwarf/impl.h"

struct dw_line_header {
	uint16_t version;
	uint8_t addr_size, offset_size;
	uint8_t min_inst, max_ops, line_range, opcode_base;
	int8_t line_base;
	bool default_is_stmt;
	const uint8_t *opcode_lengths; /* of opcode i at [i - 1] */
	struct cursor tables, program;
};

/* Returns 1, 0 when the unit has no line program, -EBADMSG, -EOPNOTSUPP. */
int dw_line_header_read(const struct dw_unit *u, struct dw_line_header *ret, struct cairn_err *err);

#endif
