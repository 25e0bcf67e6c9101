/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *     .debug_abbrev           all that can occur, for all units
 *     .debug_info             a unit for each that has code, as it was; then one with the stand-ins
 *                             of types
 *     .debug_loclists, .debug_rnglists        lists, which count from the lowest address of their
 *                                             unit
 *     .debug_str              names and producers, each once
 */
#include "sidecar/reduced_out.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "dwarf/constants.h"
#include "sidecar/elf_out.h"
#include "sidecar/intern.h"

enum {
	DWARF_VERSION = 5,
	ADDRESS_BYTES = 8,
	LISTS_HEADER_BYTES = 12,
};

void out_u64(struct bytes *b, uint64_t value)
{
	put_bytes(b, &value, sizeof(value));
}

static void put_u16(struct bytes *b, uint16_t value)
{
	put_bytes(b, &value, sizeof(value));
}

/* ---- one unit ---- */

static void put_header(struct bytes *b)
{
	put_u32(b, 0); /* the length */
	put_u16(b, DWARF_VERSION);
	put_u8(b, DW_UT_compile);
	put_u8(b, ADDRESS_BYTES);
	put_u32(b, 0);
}

static void put_base_type(struct bytes *b, unsigned int bytes, unsigned int encoding)
{
	put_u8(b, OUT_BASE_TYPE);
	put_u8(b, (uint8_t)bytes);
	put_u8(b, (uint8_t)encoding);
}

void out_unit_begin(struct out_unit *u, const char *producer, uint16_t language, uint64_t low)
{
	u->low = low;
	put_header(&u->info);
	put_u8(&u->info, OUT_UNIT);
	out_reference(u, FIX_STRING, (uintptr_t)producer);
	put_u16(&u->info, language);
	out_u64(&u->info, low);
	for (unsigned int bytes = 1; bytes <= OUT_INT_BYTES_MAX; bytes++) {
		put_base_type(&u->info, bytes, DW_ATE_unsigned);
		put_base_type(&u->info, bytes, DW_ATE_signed);
	}
	/* The size is no integer's: references to it are not followed. */
	put_base_type(&u->info, 0, DW_ATE_float);
}

static void set_u32(struct bytes *b, size_t at, uint32_t value)
{
	if (!b->failed && at + sizeof(value) <= b->v.n)
		memcpy(b->v.p + at, &value, sizeof(value));
}

/* The stand-in of a removed parameter; it is written at its first use. */
static uint32_t site_removed(struct out_unit *u, dw_off die)
{
	for (size_t i = 0; i < u->removed.n; i++)
		if (u->removed.p[i].die == die)
			return u->removed.p[i].at;
	struct removed_at made = {die, (uint32_t)u->info.v.n};
	put_u8(&u->info, OUT_REMOVED);
	if (!VEC_ADD(&u->removed, made))
		u->info.failed = true;
	return made.at;
}

void out_unit_end(struct out_unit *u)
{
	for (size_t i = 0; i < u->refs.n; i++) {
		const struct removed_ref *r = &u->refs.p[i];
		set_u32(r->in_list ? &u->locations : &u->info, r->at, site_removed(u, r->die));
	}
	put_u8(&u->info, 0);
	set_u32(&u->info, 0, (uint32_t)u->info.v.n - 4);
}

void out_unit_fini(struct out_unit *u)
{
	VEC_FREE(&u->info.v);
	VEC_FREE(&u->locations.v);
	VEC_FREE(&u->ranges.v);
	VEC_FREE(&u->fixups);
	VEC_FREE(&u->formals);
	VEC_FREE(&u->refs);
	VEC_FREE(&u->removed);
}

void out_reference(struct out_unit *u, enum fixup_kind kind, uint64_t key)
{
	struct fixup f = {.at = (uint32_t)u->info.v.n, .kind = kind, .key = key};
	if (!VEC_ADD(&u->fixups, f))
		u->info.failed = true;
	put_u32(&u->info, 0);
}

/* ---- abbreviations ---- */

static void put_spec(struct bytes *b, unsigned int at, unsigned int form)
{
	put_uleb(b, at);
	put_uleb(b, form);
}

static void put_abbrev(struct bytes *b, unsigned int code, unsigned int tag, bool has_children)
{
	put_uleb(b, code);
	put_uleb(b, tag);
	put_u8(b, has_children);
}

static void put_end(struct bytes *b)
{
	put_spec(b, 0, 0);
}

static void put_first_abbrevs(struct bytes *b)
{
	put_abbrev(b, OUT_UNIT, DW_TAG_compile_unit, true);
	put_spec(b, DW_AT_producer, DW_FORM_strp);
	put_spec(b, DW_AT_language, DW_FORM_data2);
	put_spec(b, DW_AT_low_pc, DW_FORM_addr);
	put_end(b);
	put_abbrev(b, OUT_BASE_TYPE, DW_TAG_base_type, false);
	put_spec(b, DW_AT_byte_size, DW_FORM_data1);
	put_spec(b, DW_AT_encoding, DW_FORM_data1);
	put_end(b);
	put_abbrev(b, OUT_OBJECT, DW_TAG_structure_type, false);
	put_spec(b, DW_AT_byte_size, DW_FORM_udata);
	put_end(b);
	put_abbrev(b, OUT_OBJECT_BY_REF, DW_TAG_structure_type, false);
	put_spec(b, DW_AT_byte_size, DW_FORM_udata);
	put_spec(b, DW_AT_calling_convention, DW_FORM_data1);
	put_end(b);
	put_abbrev(b, OUT_REMOVED, DW_TAG_variable, false);
	put_end(b);
	put_abbrev(b, OUT_CALL, DW_TAG_call_site, true);
	put_spec(b, DW_AT_call_return_pc, DW_FORM_addr);
	put_end(b);
	for (unsigned int has = 0; has < OUT_PASSED_KINDS; has++) {
		put_abbrev(b, OUT_PASSED + has, DW_TAG_call_site_parameter, false);
		if (has & OUT_PASSED_REG)
			put_spec(b, DW_AT_location, DW_FORM_exprloc);
		if (has & OUT_PASSED_REMOVED)
			put_spec(b, DW_AT_call_parameter, DW_FORM_ref_addr);
		put_spec(b, DW_AT_call_value, DW_FORM_exprloc);
		put_end(b);
	}
}

static void put_formal_abbrev(struct bytes *b, unsigned int has, unsigned int at)
{
	unsigned int who = has & OUT_FORMAL_NAMED;
	put_abbrev(b, OUT_FORMAL + has + at * OUT_FORMAL_KINDS, DW_TAG_formal_parameter, false);
	if (who == OUT_FORMAL_COPY)
		put_spec(b, DW_AT_abstract_origin, DW_FORM_ref_addr);
	if (who == OUT_FORMAL_NAMED)
		put_spec(b, DW_AT_name, DW_FORM_strp);
	if (who >= OUT_FORMAL_OWN)
		put_spec(b, DW_AT_cairn_type, DW_FORM_udata);
	if (has & OUT_FORMAL_TYPE)
		put_spec(b, DW_AT_type, DW_FORM_ref_addr);
	switch (at) {
	case OUT_AT_EXPR:
		put_spec(b, DW_AT_location, DW_FORM_exprloc);
		break;
	case OUT_AT_LIST:
		put_spec(b, DW_AT_location, DW_FORM_sec_offset);
		break;
	case OUT_AT_NUMBER:
		put_spec(b, DW_AT_const_value, DW_FORM_sdata);
		break;
	case OUT_AT_BYTES:
		put_spec(b, DW_AT_const_value, DW_FORM_block);
		break;
	case OUT_AT_ODD:
		put_spec(b, DW_AT_const_value, DW_FORM_flag_present);
		break;
	}
	put_end(b);
}

static void put_range_specs(struct bytes *b)
{
	put_spec(b, DW_AT_low_pc, DW_FORM_addr);
	put_spec(b, DW_AT_high_pc, DW_FORM_udata);
}

static void put_copy_abbrev(struct bytes *b, unsigned int has)
{
	put_abbrev(b, OUT_COPY + has, DW_TAG_inlined_subroutine, true);
	if (has & OUT_COPY_ORIGIN)
		put_spec(b, DW_AT_abstract_origin, DW_FORM_ref_addr);
	if (has & OUT_COPY_NAME)
		put_spec(b, DW_AT_name, DW_FORM_strp);
	if (has & OUT_COPY_RANGES)
		put_spec(b, DW_AT_ranges, DW_FORM_sec_offset);
	else
		put_range_specs(b);
	if (has & OUT_COPY_REMOVED)
		put_spec(b, DW_AT_cairn_another_call, DW_FORM_block);
	put_end(b);
}

static void put_function_abbrev(struct bytes *b, unsigned int has, unsigned int code,
				unsigned int base)
{
	put_abbrev(b, OUT_FUNCTION + has + OUT_FUNCTION_KINDS * (code + OUT_CODE_KINDS * base),
		   DW_TAG_subprogram, true);
	if (has & OUT_FUNCTION_ORIGIN)
		put_spec(b, DW_AT_abstract_origin, DW_FORM_ref_addr);
	if (has & OUT_FUNCTION_NAME)
		put_spec(b, DW_AT_name, DW_FORM_strp);
	if (code == OUT_CODE_RANGE || code == OUT_CODE_RANGE_ENTRY)
		put_range_specs(b);
	if (code == OUT_CODE_RANGES || code == OUT_CODE_RANGES_ENTRY)
		put_spec(b, DW_AT_ranges, DW_FORM_sec_offset);
	if (code == OUT_CODE_RANGE_ENTRY || code == OUT_CODE_RANGES_ENTRY)
		put_spec(b, DW_AT_entry_pc, DW_FORM_addr);
	if (base != OUT_AT_NONE)
		put_spec(b, DW_AT_frame_base,
			 base == OUT_AT_EXPR ? DW_FORM_exprloc : DW_FORM_sec_offset);
	put_end(b);
}

static void put_abbrevs(struct bytes *b)
{
	put_first_abbrevs(b);
	for (unsigned int at = 0; at < OUT_AT_KINDS; at++)
		for (unsigned int has = 0; has < OUT_FORMAL_KINDS; has++)
			put_formal_abbrev(b, has, at);
	for (unsigned int has = 0; has < OUT_COPY_KINDS; has++)
		put_copy_abbrev(b, has);
	for (unsigned int base = 0; base < OUT_BASE_KINDS; base++)
		for (unsigned int code = 0; code < OUT_CODE_KINDS; code++)
			for (unsigned int has = 0; has < OUT_FUNCTION_KINDS; has++)
				put_function_abbrev(b, has, code, base);
	put_u8(b, 0);
}

/* ---- all units ---- */

struct sections {
	struct bytes info, abbrev, locations, ranges;
	struct strings strings;
	uint64_t *unit_at; /* in info */
	struct out_unit stand_ins;
	struct map stand_in_at; /* to the site in the last unit + 1 */
	struct map removed_at;
};

/* Site of the stand-in in its unit. */
static int site_stand_in(struct sections *s, uint64_t key, uint32_t *ret)
{
	struct bytes *b = &s->stand_ins.info;
	uint64_t at, bytes = key >> 2;
	if (map_get(&s->stand_in_at, key, &at)) {
		*ret = (uint32_t)at;
		return 0;
	}
	*ret = (uint32_t)b->v.n;
	if (key & 1 && bytes <= UINT8_MAX) {
		put_base_type(b, (unsigned int)bytes, DW_ATE_boolean);
	} else {
		put_u8(b, key & 2 ? OUT_OBJECT_BY_REF : OUT_OBJECT);
		put_uleb(b, bytes);
		if (key & 2)
			put_u8(b, DW_CC_pass_by_reference);
	}
	return map_put(&s->stand_in_at, key, *ret);
}

/* The value of the four bytes. Returns 0, -ENOMEM, -ERANGE. */
static int resolve(struct sections *s, const struct out_sites *p, const struct out_unit *u,
		   const struct fixup *f, uint64_t locations_at, uint64_t ranges_at, uint64_t *ret)
{
	uint32_t entry = (uint32_t)(f->key >> 32), off = 0;
	int rc = 0;
	*ret = 0;
	switch ((enum fixup_kind)f->kind) {
	case FIX_STRING:
		rc = strings_add(&s->strings, (const char *)(uintptr_t)f->key, &off);
		*ret = off;
		break;
	case FIX_FUNCTION:
		*ret = s->unit_at[p->unit_of[entry]] + p->die_at[entry];
		break;
	case FIX_FORMAL: {
		const struct out_unit *of = &p->units[p->unit_of[entry]];
		*ret = s->unit_at[p->unit_of[entry]] +
		       of->formals.p[p->formals_at[entry] + (uint32_t)f->key];
		break;
	}
	case FIX_TYPE:
		rc = site_stand_in(s, f->key, &off);
		*ret = s->unit_at[p->n_units] + off;
		break;
	case FIX_REMOVED:
		/*
		 * A removed parameter that no query needs stands for nothing in particular: the
		 * unit.
		 */
		if (!map_get(&s->removed_at, f->key, ret))
			*ret = s->unit_at[u - p->units] + OUT_HEADER_BYTES;
		break;
	case FIX_LOCATIONS:
		*ret = locations_at + f->key;
		break;
	case FIX_RANGES:
		*ret = ranges_at + f->key;
		break;
	}
	return rc < 0 ? rc : *ret > UINT32_MAX ? -ERANGE : 0;
}

static int add_unit(struct sections *s, const struct out_sites *p, struct out_unit *u)
{
	uint64_t locations_at = s->locations.v.n, ranges_at = s->ranges.v.n;
	int rc = u->info.failed || u->locations.failed || u->ranges.failed ? -ENOMEM : 0;
	for (size_t i = 0; rc >= 0 && i < u->fixups.n; i++) {
		uint64_t value;
		rc = resolve(s, p, u, &u->fixups.p[i], locations_at, ranges_at, &value);
		set_u32(&u->info, u->fixups.p[i].at, (uint32_t)value);
	}
	put_bytes(&s->info, u->info.v.p, u->info.v.n);
	put_bytes(&s->locations, u->locations.v.p, u->locations.v.n);
	put_bytes(&s->ranges, u->ranges.v.p, u->ranges.v.n);
	return rc;
}

/* Positions of formals are needed after their units were written, too. */
static void release(struct out_unit *u)
{
	VEC_FREE(&u->info.v);
	VEC_FREE(&u->locations.v);
	VEC_FREE(&u->ranges.v);
	VEC_FREE(&u->fixups);
}

/* The unit with stand-ins comes last, and grows while the others are written. */
static int add_units(struct sections *s, struct out_unit *units, const struct out_sites *p)
{
	int rc = 0;
	uint64_t at = 0;
	for (size_t i = 0; i < p->n_units; i++) {
		s->unit_at[i] = at;
		for (size_t k = 0; rc >= 0 && k < units[i].removed.n; k++)
			rc = map_put(&s->removed_at, units[i].removed.p[k].die,
				     at + units[i].removed.p[k].at);
		at += units[i].info.v.n;
	}
	s->unit_at[p->n_units] = at;
	out_unit_begin(&s->stand_ins, "", 0, 0);
	for (size_t i = 0; rc >= 0 && i < p->n_units; i++) {
		rc = add_unit(s, p, &units[i]);
		release(&units[i]);
	}
	out_unit_end(&s->stand_ins);
	return rc < 0 ? rc : add_unit(s, p, &s->stand_ins);
}

static void put_lists_header(struct bytes *b)
{
	put_u32(b, 0);
	put_u16(b, DWARF_VERSION);
	put_u8(b, ADDRESS_BYTES);
	put_u8(b, 0);
	put_u32(b, 0);
}

static int finish(struct sections *s, struct bytes *ret, struct cairn_err *err)
{
	uint8_t *file;
	size_t size;
	set_u32(&s->locations, 0, (uint32_t)s->locations.v.n - 4);
	set_u32(&s->ranges, 0, (uint32_t)s->ranges.v.n - 4);
	put_abbrevs(&s->abbrev);
	if (s->info.failed || s->abbrev.failed || s->locations.failed || s->ranges.failed ||
	    s->strings.text.failed)
		return -ENOMEM;
	const struct out_section sections[] = {
		{".debug_info", SHT_PROGBITS, s->info.v.p, s->info.v.n},
		{".debug_abbrev", SHT_PROGBITS, s->abbrev.v.p, s->abbrev.v.n},
		{".debug_loclists", SHT_PROGBITS, s->locations.v.p, s->locations.v.n},
		{".debug_rnglists", SHT_PROGBITS, s->ranges.v.p, s->ranges.v.n},
		{".debug_str", SHT_PROGBITS, s->strings.text.v.p, s->strings.text.v.n},
	};
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (sections[i].size > UINT32_MAX)
			return -ERANGE;
	int rc = elf_out_make(sections, sizeof(sections) / sizeof(sections[0]), &file, &size, err);
	if (rc >= 0)
		*ret = (struct bytes){.v = {file, size, size}};
	return rc;
}

int out_write(struct out_unit *units, const struct out_sites *sites, struct bytes *ret,
	      struct cairn_err *err)
{
	struct sections s = {0};
	int rc = strings_init(&s.strings);
	s.unit_at = calloc(sites->n_units + 1, sizeof(*s.unit_at));
	put_lists_header(&s.locations);
	put_lists_header(&s.ranges);
	if (rc >= 0)
		rc = s.unit_at ? add_units(&s, units, sites) : -ENOMEM;
	if (rc >= 0)
		rc = finish(&s, ret, err);
	VEC_FREE(&s.info.v);
	VEC_FREE(&s.abbrev.v);
	VEC_FREE(&s.locations.v);
	VEC_FREE(&s.ranges.v);
	strings_fini(&s.strings);
	free(s.unit_at);
	out_unit_fini(&s.stand_ins);
	map_fini(&s.stand_in_at);
	map_fini(&s.removed_at);
	if (rc == -ERANGE)
		return err_set(err, rc, "more than 4 GiB of descriptions of parameters");
	return rc == -ENOMEM ? err_nomem(err, "the descriptions of parameters") : rc;
}
