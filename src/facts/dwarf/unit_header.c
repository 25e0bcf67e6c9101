/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit headers
 *
 *	OFFSET    SIZE    .debug_info, DWARF 2 to 4        .debug_info, DWARF 5
 *	0         4       length of the rest               the same
 *	          (0xffffffff: 64-bit DWARF, 8 bytes of length follow; offsets "O" have 8 bytes,
 *	          else 4)
 *	4         2       version                          version
 *	6         O / 1   abbreviations                    unit type
 *	6+O / 7   1       size of an address               size of an address
 *	      / 8   O                                      abbreviations
 *	then              .debug_types: u64 signature,     type units: u64 signature, O type
 *	                  O offset of the type             skeletons and their units: u64 id
 *
 * They are walked one after the other; that touches one page per unit.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"

static int bad_unit(const struct dw_unit *u, int code, const char *found, uint64_t value,
		    const char *expected, struct cairn_err *err)
{
	return err_set(err, code, "%s: %s+0x%" PRIx64 ": unit header: %s %" PRIu64 ", expected %s",
		       u->file->path, u->sec->src.section, u->off, found, value, expected);
}

/* Length at the cursor; a cursor over the rest of the unit. */
static struct cursor read_length(struct cursor *c, struct dw_unit *u)
{
	uint64_t length = cur_u32(c);
	u->offset_size = 4;
	if (length == UINT32_MAX) {
		length = cur_u64(c);
		u->offset_size = 8;
	} else if (length >= 0xfffffff0) {
		dw_expected(c, "a unit length below 0xfffffff0");
	}
	return cur_sub(c, length);
}

static bool is_type_unit(const struct dw_unit *u)
{
	return u->unit_type == DW_UT_type || u->unit_type == DW_UT_split_type;
}

static int read_v5(struct dw_unit *u, struct cursor *c)
{
	u->unit_type = cur_u8(c);
	u->addr_size = cur_u8(c);
	u->abbrev_off = cur_uint(c, u->offset_size);
	switch (u->unit_type) {
	case DW_UT_compile:
	case DW_UT_partial:
		break;
	case DW_UT_type:
	case DW_UT_split_type:
		u->signature = cur_u64(c);
		u->type_off = cur_uint(c, u->offset_size);
		break;
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		u->dwo_id = cur_u64(c);
		u->has_dwo_id = true;
		break;
	default:
		if (!c->failed)
			return bad_unit(u, -EOPNOTSUPP, "unit type", u->unit_type, "1 to 6",
					c->err);
	}
	return 0;
}

static void read_v4(struct dw_unit *u, struct cursor *c)
{
	u->abbrev_off = cur_uint(c, u->offset_size);
	u->addr_size = cur_u8(c);
	u->unit_type = DW_UT_compile;
	if (!(u->tag & DW_OFF_TYPES))
		return;
	u->unit_type = DW_UT_type;
	u->signature = cur_u64(c);
	u->type_off = cur_uint(c, u->offset_size);
}

static int read_header(struct dw_unit *u, struct cursor *c)
{
	u->version = cur_u16(c);
	if (!c->failed && (u->version < 2 || u->version > 5))
		return bad_unit(u, -EOPNOTSUPP, "DWARF version", u->version, "2 to 5", c->err);
	if (u->version == 5) {
		int rc = read_v5(u, c);
		if (rc < 0)
			return rc;
	} else {
		read_v4(u, c);
	}
	if (!c->failed && u->addr_size != 4 && u->addr_size != 8)
		return bad_unit(u, -EOPNOTSUPP, "address size", u->addr_size, "4 or 8", c->err);
	if (!c->failed && u->abbrev_off > u->file->sec[DW_SEC_ABBREV].n)
		return bad_unit(u, -EBADMSG, "offset of abbreviations", u->abbrev_off,
				"one inside .debug_abbrev", c->err);
	u->is_type_unit = is_type_unit(u);
	return c->failed ? -EBADMSG : 0;
}

int dw_headers_read(struct dwarf *dw, const struct dw_file *file, enum dw_sec id,
		    struct dw_unit_list *ret, struct cairn_err *err)
{
	const struct dw_section *sec = &file->sec[id];
	if (sec->n >= DW_OFF_DWO)
		return err_set(err, -ERANGE, "%s: %s: of more than 0x%" PRIx64 " bytes", file->path,
			       sec->src.section, DW_OFF_DWO);
	struct cursor c = dw_section_cursor(sec, 0, err);
	while (cur_more(&c)) {
		struct dw_unit u = {.dw = dw,
				    .file = file,
				    .line_file = file,
				    .sec = sec,
				    .tag = file->tag | (id == DW_SEC_TYPES ? DW_OFF_TYPES : 0),
				    .off = cur_off(&c),
				    .index = (uint32_t)ret->n,
				    .name = "",
				    .comp_dir = "",
				    .producer = ""};
		struct cursor body = read_length(&c, &u);
		/* Zeroed bytes between units: padding of a linker. */
		if (!c.failed && body.pos == body.end)
			continue;
		int rc = c.failed ? -EBADMSG : read_header(&u, &body);
		if (rc < 0)
			return err_while(err, rc, "reading the unit at %s+0x%" PRIx64,
					 sec->src.section, u.off);
		u.dies = body.pos;
		u.end = body.end;
		if (ret->n == DW_UNITS_MAX)
			return err_set(err, -ERANGE, "%s: %s: more than %d units", file->path,
				       sec->src.section, DW_UNITS_MAX);
		if (!VEC_ADD(ret, u))
			return err_nomem(err, "units");
	}
	return 0;
}
