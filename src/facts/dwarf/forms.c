/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forms: how an attribute's value is written, and what it means
 *
 *	fixed size       addr data1 ... data16 flag ref1 ... ref8 strx1 ... 4 addrx1 ... 4 ref_sig8
 *	offset size      strp line_strp sec_offset strp_sup GNU_strp_alt GNU_ref_alt; ref_addr
 *	no bytes         flag_present implicit_const
 *	LEB128           udata sdata ref_udata strx addrx loclistx rnglistx GNU_*_index
 *	counted          block block1 block2 block4 exprloc; string up to its NUL
 *	form in the DIE  indirect
 *
 * ref_addr has the size of an address in DWARF 2, of an offset since.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"

#define FIXED(n) ((struct dw_form_size){(n), DW_THEN_END})
#define THEN(t)  ((struct dw_form_size){0, DW_THEN_##t})

struct dw_form_size dw_form_size(uint16_t form, uint8_t addr_size, uint8_t offset_size,
				 uint8_t ref_addr_size)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return FIXED(0);
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return FIXED(1);
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return FIXED(2);
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return FIXED(3);
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return FIXED(4);
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sup8:
	case DW_FORM_ref_sig8:
		return FIXED(8);
	case DW_FORM_data16:
		return FIXED(16);
	case DW_FORM_addr:
		return FIXED(addr_size);
	case DW_FORM_ref_addr:
		return FIXED(ref_addr_size);
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		return FIXED(offset_size);
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return THEN(LEB);
	case DW_FORM_string:
		return THEN(STR);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return THEN(BLOCK);
	case DW_FORM_block1:
		return THEN(BLOCK1);
	case DW_FORM_block2:
		return THEN(BLOCK2);
	case DW_FORM_block4:
		return THEN(BLOCK4);
	case DW_FORM_indirect:
		return THEN(INDIRECT);
	}
	return THEN(UNKNOWN);
}

void dw_expected(struct cursor *c, const char *what)
{
	if (c->failed)
		return;
	c->failed = true;
	err_set(c->err, -EBADMSG, "%s: %s+0x%" PRIx64 ": expected %s", c->src->file,
		c->src->section, cur_off(c), what);
	c->pos = c->end;
}

void dw_unknown(struct cursor *c, const char *what, uint64_t value)
{
	if (c->failed)
		return;
	c->failed = true;
	err_set(c->err, -EOPNOTSUPP, "%s: %s+0x%" PRIx64 ": %s 0x%" PRIx64 " is not known",
		c->src->file, c->src->section, cur_off(c), what, value);
	c->pos = c->end;
}

int dw_failure(const struct cursor *c)
{
	return c->err && c->err->code == -EOPNOTSUPP ? -EOPNOTSUPP : -EBADMSG;
}

const char *dw_section_str(const struct dw_file *file, enum dw_sec sec, uint64_t off,
			   struct cairn_err *err)
{
	const struct dw_section *s = &file->sec[sec];
	if (off < s->n && s->ends_in_nul)
		return (const char *)s->p + off;
	struct cursor c = dw_section_cursor(s, off, err);
	const char *str = cur_str(&c);
	return c.failed ? NULL : str;
}

/* Value @index of a table of @size-byte numbers at @base of a section. */
static int table_entry(const struct dw_unit *u, enum dw_sec sec, uint64_t base, uint64_t index,
		       unsigned int size, uint64_t *ret, struct cairn_err *err)
{
	const struct dw_section *s = &u->file->sec[sec];
	uint64_t off;
	if (__builtin_mul_overflow(index, size, &off) || __builtin_add_overflow(off, base, &off) ||
	    off > s->n)
		return err_set(err, -EBADMSG,
			       "%s: %s: entry %" PRIu64 " of the table at 0x%" PRIx64
			       " lies outside the section (0x%" PRIx64 " bytes)",
			       u->file->path, s->src.section, index, base, s->n);
	struct cursor c = dw_section_cursor(s, off, err);
	*ret = cur_uint(&c, size);
	return c.failed ? -EBADMSG : 1;
}

static int no_base(const struct dw_unit *u, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG,
		       "%s: %s+0x%" PRIx64 ": the unit uses indexed forms but has no %s",
		       u->file->path, u->sec->src.section, u->off, what);
}

int dw_unit_addrx(const struct dw_unit *u, uint64_t index, uint64_t *ret, struct cairn_err *err)
{
	if (!u->has_addr_base)
		return no_base(u, "DW_AT_addr_base", err);
	return table_entry(u, DW_SEC_ADDR, u->addr_base, index, u->addr_size, ret, err);
}

static int string_at(const struct dw_file *file, enum dw_sec sec, uint64_t off,
		     struct dw_value *ret, struct cairn_err *err)
{
	ret->cls = DW_CLASS_STRING;
	ret->str = dw_section_str(file, sec, off, err);
	return ret->str ? 1 : -EBADMSG;
}

static int string_x(const struct dw_unit *u, uint64_t index, struct dw_value *ret,
		    struct cairn_err *err)
{
	if (!u->has_str_offsets_base)
		return no_base(u, "DW_AT_str_offsets_base", err);
	uint64_t off = 0;
	int rc = table_entry(u, DW_SEC_STR_OFFSETS, u->str_offsets_base, index, u->offset_size,
			     &off, err);
	return rc < 0 ? rc : string_at(u->file, DW_SEC_STR, off, ret, err);
}

static int address_x(const struct dw_unit *u, uint64_t index, struct dw_value *ret,
		     struct cairn_err *err)
{
	ret->cls = DW_CLASS_ADDRESS;
	return dw_unit_addrx(u, index, &ret->addr.v, err);
}

static int no_alt(const struct dw_unit *u, struct cairn_err *err)
{
	return err_set(err, -ENOENT,
		       "%s: %s+0x%" PRIx64
		       ": the unit refers to an alternate debug file (made by dwz), "
		       "which was not found",
		       u->file->path, u->sec->src.section, u->off);
}

/* A reference inside the unit; it must stay inside, so that offsets of two sections cannot meet. */
static int ref_in_unit(const struct dw_unit *u, uint64_t off, struct dw_value *ret,
		       struct cairn_err *err)
{
	uint64_t header = (uint64_t)(u->dies - u->sec->p) - u->off;
	uint64_t length = (uint64_t)(u->end - u->sec->p) - u->off;
	if (off < header || off >= length)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": a reference to +0x%" PRIx64
			       " in this unit, which has 0x%" PRIx64 " bytes",
			       u->file->path, u->sec->src.section, u->off, off, length);
	ret->cls = DW_CLASS_REF;
	ret->ref = (u->off + off) | u->tag;
	return 1;
}

static int ref_to_info(const struct dw_unit *u, const struct dw_file *file, uint64_t off,
		       struct dw_value *ret, struct cairn_err *err)
{
	if (!file)
		return no_alt(u, err);
	if (off >= file->sec[DW_SEC_INFO].n)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": a reference to .debug_info+0x%" PRIx64
			       " of %s, which has 0x%" PRIx64 " bytes",
			       u->file->path, u->sec->src.section, u->off, off, file->path,
			       file->sec[DW_SEC_INFO].n);
	ret->cls = DW_CLASS_REF;
	ret->ref = off | file->tag;
	return 1;
}

static int block(struct cursor *c, enum dw_class cls, uint64_t n, struct dw_value *ret)
{
	ret->cls = cls;
	ret->block.p = cur_bytes(c, n);
	ret->block.n = c->failed ? 0 : n;
	return 1;
}

static int udata(enum dw_class cls, uint64_t v, struct dw_value *ret)
{
	ret->cls = cls;
	ret->u = v;
	return 1;
}

static int string_form(const struct dw_unit *u, struct cursor *c, uint16_t form, uint64_t v,
		       struct dw_value *ret)
{
	if (c->failed)
		return -EBADMSG;
	switch (form) {
	case DW_FORM_strp:
		return string_at(u->file, DW_SEC_STR, v, ret, c->err);
	case DW_FORM_line_strp:
		return string_at(u->file, DW_SEC_LINE_STR, v, ret, c->err);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return u->file->alt ? string_at(u->file->alt, DW_SEC_STR, v, ret, c->err)
				    : no_alt(u, c->err);
	}
	return string_x(u, v, ret, c->err);
}

static int read_value(const struct dw_unit *u, struct cursor *c, const struct dw_spec *spec,
		      uint16_t form, struct dw_value *ret)
{
	uint8_t offset_size = u->offset_size;
	uint64_t v;
	switch (form) {
	case DW_FORM_addr:
		ret->cls = DW_CLASS_ADDRESS;
		ret->addr.v = cur_uint(c, u->addr_size);
		return 1;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		v = cur_uleb(c);
		return c->failed ? -EBADMSG : address_x(u, v, ret, c->err);
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		v = cur_uint(c, (unsigned int)(form - DW_FORM_addrx1 + 1));
		return c->failed ? -EBADMSG : address_x(u, v, ret, c->err);
	case DW_FORM_data1:
		return udata(DW_CLASS_UDATA, cur_u8(c), ret);
	case DW_FORM_data2:
		return udata(DW_CLASS_UDATA, cur_u16(c), ret);
	case DW_FORM_data4:
		return udata(DW_CLASS_UDATA, cur_u32(c), ret);
	case DW_FORM_data8:
		return udata(DW_CLASS_UDATA, cur_u64(c), ret);
	case DW_FORM_udata:
		return udata(DW_CLASS_UDATA, cur_uleb(c), ret);
	case DW_FORM_sdata:
		ret->cls = DW_CLASS_SDATA;
		ret->s = cur_sleb(c);
		return 1;
	case DW_FORM_implicit_const:
		ret->cls = DW_CLASS_SDATA;
		ret->s = spec->implicit;
		return 1;
	case DW_FORM_data16:
		return block(c, DW_CLASS_BLOCK, 16, ret);
	case DW_FORM_block:
		v = cur_uleb(c);
		return block(c, DW_CLASS_BLOCK, v, ret);
	case DW_FORM_block1:
		v = cur_u8(c);
		return block(c, DW_CLASS_BLOCK, v, ret);
	case DW_FORM_block2:
		v = cur_u16(c);
		return block(c, DW_CLASS_BLOCK, v, ret);
	case DW_FORM_block4:
		v = cur_u32(c);
		return block(c, DW_CLASS_BLOCK, v, ret);
	case DW_FORM_exprloc:
		v = cur_uleb(c);
		return block(c, DW_CLASS_EXPRLOC, v, ret);
	case DW_FORM_flag:
		return udata(DW_CLASS_FLAG, cur_u8(c), ret);
	case DW_FORM_flag_present:
		return udata(DW_CLASS_FLAG, 1, ret);
	case DW_FORM_string:
		ret->cls = DW_CLASS_STRING;
		ret->str = cur_str(c);
		return 1;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		v = cur_uint(c, offset_size);
		return string_form(u, c, form, v, ret);
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		v = cur_uleb(c);
		return string_form(u, c, form, v, ret);
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		v = cur_uint(c, (unsigned int)(form - DW_FORM_strx1 + 1));
		return string_form(u, c, form, v, ret);
	case DW_FORM_ref1:
		v = cur_u8(c);
		return c->failed ? -EBADMSG : ref_in_unit(u, v, ret, c->err);
	case DW_FORM_ref2:
		v = cur_u16(c);
		return c->failed ? -EBADMSG : ref_in_unit(u, v, ret, c->err);
	case DW_FORM_ref4:
		v = cur_u32(c);
		return c->failed ? -EBADMSG : ref_in_unit(u, v, ret, c->err);
	case DW_FORM_ref8:
		v = cur_u64(c);
		return c->failed ? -EBADMSG : ref_in_unit(u, v, ret, c->err);
	case DW_FORM_ref_udata:
		v = cur_uleb(c);
		return c->failed ? -EBADMSG : ref_in_unit(u, v, ret, c->err);
	case DW_FORM_ref_addr:
		v = cur_uint(c, u->abbrevs->ref_addr_size);
		return c->failed ? -EBADMSG : ref_to_info(u, u->file, v, ret, c->err);
	case DW_FORM_GNU_ref_alt:
		v = cur_uint(c, offset_size);
		return c->failed ? -EBADMSG : ref_to_info(u, u->file->alt, v, ret, c->err);
	case DW_FORM_ref_sup4:
		v = cur_u32(c);
		return c->failed ? -EBADMSG : ref_to_info(u, u->file->alt, v, ret, c->err);
	case DW_FORM_ref_sup8:
		v = cur_u64(c);
		return c->failed ? -EBADMSG : ref_to_info(u, u->file->alt, v, ret, c->err);
	case DW_FORM_ref_sig8:
		return udata(DW_CLASS_SIGNATURE, cur_u64(c), ret);
	case DW_FORM_sec_offset:
		return udata(DW_CLASS_SECOFF, cur_uint(c, offset_size), ret);
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
		return udata(DW_CLASS_SECOFF, cur_uleb(c), ret);
	}
	dw_unknown(c, "attribute form", form);
	return -EOPNOTSUPP;
}

/* The cursor steps over the value. Returns 1, -EBADMSG, -EOPNOTSUPP, -ENOENT (alternate file). */
int dw_form_read(const struct dw_unit *u, struct cursor *c, const struct dw_spec *spec,
		 struct dw_value *ret)
{
	uint64_t form = spec->form;
	*ret = (struct dw_value){0};
	if (form == DW_FORM_indirect) {
		form = cur_uleb(c);
		/* It could point to itself for ever, and an implicit value has nowhere to be. */
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX)
			dw_expected(c, "a form after DW_FORM_indirect that can stand there");
	}
	ret->form = (uint16_t)form;
	int rc = c->failed ? -EBADMSG : read_value(u, c, spec, (uint16_t)form, ret);
	return c->failed ? dw_failure(c) : rc;
}
