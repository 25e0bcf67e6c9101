/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading SFrame: the bytes are described in sframe_format.h
 *
 * Everything is checked when a section is opened, so that later queries cannot fail. Functions lie
 * within the section's bytes, and rows ascend within their function. Their words are possible for
 * their kind, and no more bytes are used than there are. A function with an invalid row has no
 * rows; the others keep theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>
#include <cairn/unwind.h>

#include "base/cursor.h"
#include "base/err.h"
#include "cfi/rule.h"
#include "cfi/sframe_format.h"
#include "elf/elf.h"

struct cairn_sframe {
	const uint8_t *bytes, *functions, *rows;
	size_t size, rows_size;
	uint64_t section;
	struct cursor_src src;
	struct cairn_sframe_info info;
	struct sframe_abi abi;
	int8_t fixed_fp, fixed_ra;
	const char **refused; /* by function, why its rows are not believed; NULL: all are */
};

/* A function's record, whatever its version. */
struct record {
	uint64_t at;
	uint32_t size, rows_off, n_rows;
	uint8_t info, kind, block_size;
};

static struct cursor cursor_at(const struct cairn_sframe *s, const uint8_t *at,
			       struct cairn_err *err)
{
	return cursor_of(&s->src, at, (size_t)(s->bytes + s->size - at), false, err);
}

static int bad(const struct cursor *c, const char *what)
{
	return err_set(c->err, -EBADMSG, "%s: %s+0x%llx: %s", c->src->file, c->src->section,
		       (unsigned long long)cur_off(c), what);
}

/* ---- functions ---- */

static struct record read_record(const struct cairn_sframe *s, uint32_t number)
{
	unsigned int version = s->info.version, size = sframe_function_size(version);
	struct cursor c = cursor_at(s, s->functions + (size_t)number * size, NULL);
	uint64_t field = s->section + cur_off(&c);
	uint64_t base = version == 3 || s->info.flags & SFRAME_PCREL ? field : s->section;
	struct record r = {0};
	r.at = base + (version == 3 ? cur_u64(&c) : (uint64_t)(int64_t)(int32_t)cur_u32(&c));
	r.size = cur_u32(&c);
	r.rows_off = cur_u32(&c);
	if (version == 3) {
		c = cursor_at(s, s->rows + (r.rows_off < s->rows_size ? r.rows_off : s->rows_size),
			      NULL);
		r.n_rows = cur_u16(&c);
		r.info = cur_u8(&c);
		r.kind = cur_u8(&c) & 0x1f;
		r.block_size = cur_u8(&c);
		r.rows_off += SFRAME_ATTRIBUTE_SIZE;
		return r;
	}
	r.n_rows = cur_u32(&c);
	r.info = cur_u8(&c);
	/* Version 1 does not say how long a block is: there was one size. */
	r.block_size = version == 1 ? 16 : cur_u8(&c);
	return r;
}

static bool is_signal(const struct cairn_sframe *s, const struct record *r)
{
	return s->info.version == 3 && r->info & SFRAME_INFO_SIGNAL;
}

void cairn_sframe_function(const struct cairn_sframe *s, uint32_t number,
			   struct cairn_sframe_function *ret)
{
	struct record r = read_record(s, number);
	*ret = (struct cairn_sframe_function){
		.at = {r.at},
		.size = r.size,
		.n_rows = r.n_rows,
		.block_size = r.info & SFRAME_INFO_BLOCKS ? r.block_size : 0,
		.is_signal = is_signal(s, &r),
		.is_flexible = r.kind == SFRAME_KIND_FLEXIBLE,
		.refused = s->refused ? s->refused[number] : NULL};
}

/* ---- rows ---- */

struct row {
	uint32_t off;
	uint8_t info;
	unsigned int n_words;
	uint32_t words[16];  /* as they are */
	int32_t s_words[16]; /* as signed numbers */
};

static bool read_row(struct cursor *c, const struct record *r, struct row *ret)
{
	unsigned int off_size = 1u << (r->info & 0xf);
	ret->off = (uint32_t)cur_uint(c, off_size);
	ret->info = cur_u8(c);
	ret->n_words = ret->info >> 1 & 0xf;
	unsigned int log2 = ret->info >> 5 & 3, size = 1u << log2, shift = 32 - 8 * size;
	if (log2 == 3)
		return false;
	for (unsigned int i = 0; i < ret->n_words; i++) {
		ret->words[i] = (uint32_t)cur_uint(c, size);
		ret->s_words[i] = (int32_t)(ret->words[i] << shift) >> shift;
	}
	return !c->failed;
}

/* A control and its offset as a rule's word; only for the return address and the frame pointer. */
static bool add_place(const struct cairn_sframe *s, struct rule_words *w, unsigned int reg,
		      uint32_t control, int32_t off, uint8_t base)
{
	unsigned int from = control >> SFRAME_CONTROL_SHIFT;
	bool is_reg = control & SFRAME_CONTROL_REG, is_deref = control & SFRAME_CONTROL_DEREF;
	if (from >= CFI_N_REGS || control & 4)
		return false;
	if (!is_reg)
		rule_add(w, reg, is_deref ? CAIRN_UNWIND_AT_CFA : CAIRN_UNWIND_IS_CFA, off);
	else if (is_deref && from == base)
		rule_add(w, reg, CAIRN_UNWIND_AT_BASE, off);
	else if (is_deref && from == s->abi.fp)
		rule_add(w, reg, CAIRN_UNWIND_AT_FP, off);
	else if (!is_deref && off == 0)
		rule_add(w, reg, CAIRN_UNWIND_IN_REG, (int32_t)from);
	else
		rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
	return true;
}

/*
 * CFA; on an architecture without a fixed return address that and the frame pointer, both or only
 * the first.
 */
static bool default_rule(const struct cairn_sframe *s, const struct row *row, uint8_t flags,
			 struct rule_words *w)
{
	unsigned int next = 1;
	bool is_sp = row->info & SFRAME_ROW_SP;
	if (row->n_words > (s->fixed_ra ? 2u : 3u))
		return false;
	rule_cfa(w, CAIRN_UNWIND_CFA_REG, flags, is_sp ? s->abi.sp : s->abi.fp, row->s_words[0], 0);
	if (!s->fixed_ra && next < row->n_words)
		rule_add(w, s->abi.ra, CAIRN_UNWIND_AT_CFA, row->s_words[next++]);
	else if (s->fixed_ra && s->fixed_ra != s->abi.fixed_ra)
		rule_add(w, s->abi.ra, CAIRN_UNWIND_AT_CFA, s->fixed_ra);
	if (next < row->n_words && s->fixed_fp && row->s_words[next] != s->fixed_fp)
		return false;
	if (s->fixed_fp)
		rule_add(w, s->abi.fp, CAIRN_UNWIND_AT_CFA, s->fixed_fp);
	else if (next < row->n_words)
		rule_add(w, s->abi.fp, CAIRN_UNWIND_AT_CFA, row->s_words[next]);
	return true;
}

static bool flexible_rule(const struct cairn_sframe *s, const struct row *row, uint8_t flags,
			  struct rule_words *w)
{
	unsigned int next = 2, n = row->n_words;
	uint32_t control = row->words[0];
	uint8_t base = (uint8_t)(control >> SFRAME_CONTROL_SHIFT);
	if (n < 2 || n > SFRAME_MAX_WORDS || !(control & SFRAME_CONTROL_REG) || control & 4 ||
	    control >> SFRAME_CONTROL_SHIFT >= CFI_N_REGS)
		return false;
	rule_cfa(w, control & SFRAME_CONTROL_DEREF ? CAIRN_UNWIND_CFA_DEREF : CAIRN_UNWIND_CFA_REG,
		 flags, base, row->s_words[1], 0);
	control = next < n ? row->words[next++] : 0;
	if (control &&
	    (next == n || !add_place(s, w, s->abi.ra, control, row->s_words[next++], base)))
		return false;
	if (!control && s->fixed_ra && s->fixed_ra != s->abi.fixed_ra)
		rule_add(w, s->abi.ra, CAIRN_UNWIND_AT_CFA, s->fixed_ra);
	if (next == n && s->fixed_fp)
		rule_add(w, s->abi.fp, CAIRN_UNWIND_AT_CFA, s->fixed_fp);
	return next == n || (n - next == 2 && add_place(s, w, s->abi.fp, row->words[next],
							row->s_words[next + 1], base));
}

static bool rule_of_row(const struct cairn_sframe *s, const struct record *r, const struct row *row,
			struct rule_words *w)
{
	uint8_t flags = row->info & SFRAME_ROW_SIGNED ? CAIRN_UNWIND_RA_SIGNED : 0;
	if (is_signal(s, r))
		flags |= CAIRN_UNWIND_SIGNAL;
	if (row->n_words == 0) {
		rule_cfa(w, CAIRN_UNWIND_CFA_REG, flags | CAIRN_UNWIND_OUTERMOST, s->abi.sp, 0, 0);
		return true;
	}
	return r->kind == SFRAME_KIND_FLEXIBLE ? flexible_rule(s, row, flags, w)
					       : default_rule(s, row, flags, w);
}

int cairn_sframe_rows(const struct cairn_sframe *s, uint32_t number,
		      int (*row)(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule),
		      void *ctx)
{
	struct record r = read_record(s, number);
	struct cursor c = cursor_at(s, s->rows + r.rows_off, NULL);
	int rc = 0;
	if (s->refused && s->refused[number])
		return 0;
	for (uint32_t i = 0; rc == 0 && i < r.n_rows; i++) {
		struct row one;
		struct rule_words w;
		if (!read_row(&c, &r, &one) || !rule_of_row(s, &r, &one, &w))
			break;
		rc = row(ctx, one.off, (const struct cairn_unwind_rule *)w.words);
	}
	return rc;
}

/* ---- the check ---- */

/* The first objection to a function's rows; NULL: nothing. */
static const char *objection(const struct cairn_sframe *s, const struct record *r)
{
	struct cursor c = cursor_at(s, s->rows + r->rows_off, NULL);
	uint32_t limit = r->info & SFRAME_INFO_BLOCKS ? r->block_size : r->size, last = 0;
	c.end = s->rows + s->rows_size;
	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct row row;
		struct rule_words w;
		if (!read_row(&c, r, &row))
			return c.failed ? "its rows lead out of the section"
					: "a row with words of an unknown size";
		if (i ? row.off <= last : row.off != 0)
			return "a row that does not follow the one before, or a first one not "
			       "at the start";
		if (row.off >= limit && limit)
			return "a row after the end of its function";
		if (!rule_of_row(s, r, &row, &w))
			return "a row with words that make no rule";
		last = row.off;
	}
	return NULL;
}

static int check_rows(struct cairn_sframe *s, const struct record *r, uint32_t number,
		      struct cairn_err *err)
{
	const char *why = objection(s, r);
	if (!why)
		return 0;
	if (!s->refused)
		s->refused = calloc(s->info.n_functions, sizeof(*s->refused));
	if (!s->refused)
		return err_nomem(err, "an SFrame section");
	s->refused[number] = why;
	s->info.n_refused++;
	return 0;
}

static int check_function(struct cairn_sframe *s, uint32_t number, uint64_t *n_rows, uint64_t *last,
			  struct cairn_err *err)
{
	struct record r = read_record(s, number);
	struct cursor c = cursor_at(
		s, s->functions + (size_t)number * sframe_function_size(s->info.version), err);
	if (r.rows_off > s->rows_size)
		return bad(&c, "a function whose rows are outside of the section");
	if ((r.info & 0xf) > 2)
		return bad(&c, "a function with offsets of an unknown size");
	if (r.kind > SFRAME_KIND_FLEXIBLE)
		return bad(&c, "a function of an unknown kind");
	if (r.info & SFRAME_INFO_BLOCKS && !r.block_size)
		return bad(&c, "a function of blocks without a size");
	if (s->info.flags & SFRAME_SORTED && number && r.at < *last)
		return bad(&c, "a function before its predecessor, in a table that is sorted");
	*last = r.at;
	*n_rows += r.n_rows;
	return check_rows(s, &r, number, err);
}

static int check_functions(struct cairn_sframe *s, struct cairn_err *err)
{
	uint64_t n_rows = 0, last = 0;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < s->info.n_functions; i++)
		rc = check_function(s, i, &n_rows, &last, err);
	if (rc == 0 && n_rows != s->info.n_rows)
		rc = err_set(err, -EBADMSG, "%s: %s+0xc: %s; the functions have %llu", s->src.file,
			     s->src.section, cairn_counted(s->info.n_rows, "row").text,
			     (unsigned long long)n_rows);
	return rc;
}

static int take_arch(struct cairn_sframe *s, uint8_t arch, struct cairn_err *err)
{
	const char *name = s->src.file;
	if (arch == SFRAME_S390X)
		return err_set(err, -EOPNOTSUPP,
			       "%s: SFrame of s390x; x86-64 and AArch64 are supported", name);
	if (arch == SFRAME_AARCH64_BE)
		return err_set(err, -EOPNOTSUPP, "%s: SFrame of big-endian AArch64", name);
	if (arch != SFRAME_AMD64 && arch != SFRAME_AARCH64)
		return err_set(err, -EOPNOTSUPP, "%s: SFrame of architecture %u", name, arch);
	s->info.machine = arch == SFRAME_AARCH64 ? EM_AARCH64 : EM_X86_64;
	s->abi = sframe_abi_of(s->info.machine);
	return 0;
}

static int read_header(struct cairn_sframe *s, struct cairn_err *err)
{
	struct cursor c = cursor_of(&s->src, s->bytes, s->size, false, err);
	uint16_t magic = cur_u16(&c);
	s->info.version = cur_u8(&c);
	s->info.flags = cur_u8(&c);
	uint8_t arch = cur_u8(&c);
	s->fixed_fp = (int8_t)cur_u8(&c);
	s->fixed_ra = (int8_t)cur_u8(&c);
	uint8_t more = cur_u8(&c);
	s->info.n_functions = cur_u32(&c);
	s->info.n_rows = cur_u32(&c);
	uint32_t rows_size = cur_u32(&c), functions_off = cur_u32(&c), rows_off = cur_u32(&c);
	cur_skip(&c, more);
	if (c.failed)
		return -EBADMSG;
	if (magic != SFRAME_MAGIC)
		return err_set(err, -EBADMSG, "%s: %s: begins with %04x; expected dee2",
			       s->src.file, s->src.section, magic);
	if (s->info.version < 1 || s->info.version > SFRAME_MAX_VERSION)
		return err_set(err, -EOPNOTSUPP, "%s: SFrame version %u; 1 to %d are known",
			       s->src.file, s->info.version, SFRAME_MAX_VERSION);
	if (s->info.flags & ~sframe_flags(s->info.version))
		return err_set(err, -EOPNOTSUPP,
			       "%s: %s: flags 0x%x of SFrame version %u, of which 0x%x are known",
			       s->src.file, s->src.section, s->info.flags, s->info.version,
			       sframe_flags(s->info.version));
	uint64_t functions = (uint64_t)s->info.n_functions * sframe_function_size(s->info.version);
	size_t left = cur_left(&c);
	if (functions_off > left || functions > left - functions_off)
		return bad(&c, "the functions lead out of the section");
	if (rows_off > left || rows_size > left - rows_off)
		return bad(&c, "the rows lead out of the section");
	s->functions = c.pos + functions_off;
	s->rows = c.pos + rows_off;
	s->rows_size = rows_size;
	return take_arch(s, arch, err);
}

int cairn_sframe_open(const void *bytes, size_t size, struct cairn_vaddr section, const char *name,
		      struct cairn_sframe **ret, struct cairn_err *err)
{
	struct cairn_sframe *s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, "an SFrame section");
	s->bytes = bytes;
	s->size = size;
	s->section = section.v;
	s->src = (struct cursor_src){.file = name, .section = ".sframe", .base = bytes};
	int rc = read_header(s, err);
	if (rc == 0)
		rc = check_functions(s, err);
	if (rc < 0)
		cairn_sframe_close(s);
	else
		*ret = s;
	return rc;
}

int cairn_sframe_open_binary(const struct cairn_binary *bin, struct cairn_sframe **ret,
			     struct cairn_err *err)
{
	const struct elf_section *section;
	int rc = elf_section(binary_main(bin), ".sframe", &section, err);
	if (rc < 0)
		return rc;
	if (!section || !section->data)
		return err_set(err, -ENOENT, "%s has no section .sframe", cairn_binary_path(bin));
	return cairn_sframe_open(section->data, section->size, section->addr,
				 cairn_binary_path(bin), ret, err);
}

void cairn_sframe_close(struct cairn_sframe *s)
{
	if (s)
		free(s->refused);
	free(s);
}

void cairn_sframe_info(const struct cairn_sframe *s, struct cairn_sframe_info *ret)
{
	*ret = s->info;
}
