/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

enum {
	MAX_EH_FRAME = 64 << 20, /* libxul, the largest there is, has 10 MB */
	MAX_NAME = 4096,         /* C++ names of templates are long */
	MAX_COPIES = CAIRN_FRAMES_MAX,
	MAX_CAUGHT = 4096, /* functions on the stacks of a process, and their files */
};

/* ---- call frame information in memory ---- */

static uint8_t *copy(const struct code_memory *memory, uint64_t lo, size_t n, size_t *ret_n)
{
	uint8_t *bytes = malloc(n ? n : 1);
	*ret_n = bytes ? memory->read(memory->ctx, lo, bytes, n) : 0;
	return bytes;
}

/* .eh_frame_hdr of the kind that linkers write: where .eh_frame begins, and its last FDE. */
static bool read_hdr(const uint8_t *hdr, size_t n, uint64_t addr, uint64_t *ret_first,
		     uint64_t *ret_last)
{
	static const struct cursor_src src = {.file = "", .section = ".eh_frame_hdr"};
	struct cursor c = cursor_of(&src, hdr, n, false, NULL);
	uint32_t kinds = cur_u32(&c);
	*ret_first = addr + 4 + (uint64_t)(int64_t)(int32_t)cur_u32(&c);
	uint64_t count = cur_u32(&c);
	if (c.failed || kinds != 0x3b031b01 || count > cur_left(&c) / 8)
		return false;
	*ret_last = *ret_first;
	for (uint64_t i = 0; i < count; i++) {
		cur_skip(&c, 4);
		uint64_t fde = addr + (uint64_t)(int64_t)(int32_t)cur_u32(&c);
		*ret_last = fde > *ret_last ? fde : *ret_last;
	}
	return !c.failed;
}

/* From its header to the bytes of .eh_frame, which end with the last FDE. */
static bool follow_hdr(const struct code_memory *memory, uint64_t *lo, uint64_t *hi)
{
	uint64_t first, last;
	uint32_t length;
	size_t n;
	if (*hi - *lo > MAX_EH_FRAME)
		return false;
	uint8_t *hdr = copy(memory, *lo, *hi - *lo, &n);
	bool ok = hdr && read_hdr(hdr, n, *lo, &first, &last) &&
		  code_memory_all(memory, last, &length, sizeof(length));
	free(hdr);
	if (!ok)
		return false;
	*lo = first;
	return !__builtin_add_overflow(last, (uint64_t)length + sizeof(length), hi);
}

static int open_eh(struct region *r, const struct code_memory *memory, uint64_t lo, uint64_t hi,
		   uint16_t machine, struct eh_block **ret, struct cairn_err *err)
{
	size_t n;
	uint8_t *bytes = copy(memory, lo, hi - lo, &n);
	if (!bytes)
		return err_nomem(err, "unwind information in memory");
	if (n < hi - lo)
		r->eh_why = "its unwind information is not all in memory";
	const struct eh_block_kind kind = {.addr = lo, .machine = machine};
	int rc = eh_block_open(bytes, n, &kind, ret, err);
	if (rc < 0 && rc != -ENOMEM)
		r->eh_why = "its unwind information is larger than any that is real";
	return rc == -ENOMEM ? rc : 0;
}

/* .eh_frame, or the section that .eh_frame_hdr leads to. 0, -ENOMEM. */
static int read_eh(struct region *r, const struct code_memory *memory, uint16_t machine,
		   uint64_t *budget, struct eh_block **ret, struct cairn_err *err)
{
	uint64_t lo = r->info.unwind_start, hi = r->info.unwind_end;
	r->eh_why = NULL;
	if (r->info.unwind_kind == CODE_UNWIND_NONE)
		return 0;
	if (r->info.unwind_kind == CODE_UNWIND_EH_FRAME_HDR && !follow_hdr(memory, &lo, &hi))
		r->eh_why = "its .eh_frame_hdr is not in memory, or leads nowhere";
	else if (lo >= hi || hi - lo > MAX_EH_FRAME)
		r->eh_why = "its unwind information is larger than any that is real";
	else if (hi - lo > *budget)
		r->eh_why =
			"the unwind information of the process exceeds the limit for one process";
	if (r->eh_why)
		return 0;
	*budget -= hi - lo;
	return open_eh(r, memory, lo, hi, machine, ret, err);
}

/* ---- tables ---- */

static void report_what_is_wrong(struct region *r)
{
	const char *const whys[] = {r->tables.rows_why, r->tables.symbols_why, r->tables.lines_why,
				    r->eh_why};
	r->range.why = NULL;
	for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]) && !r->range.why; i++)
		r->range.why = whys[i];
	r->range.n_rows = r->tables.rows.n + (r->eh ? eh_block_n_fdes(r->eh) : 0);
	r->range.n_names = r->tables.symbols.n;
}

static void replace(struct region *r, struct jit_tables *tables, struct eh_block *eh)
{
	jit_tables_fini(&r->tables);
	eh_block_close(r->eh);
	r->tables = *tables;
	r->eh = eh;
	r->is_loaded = true;
}

static bool has_more(const struct code_jit_info *info)
{
	return info->unwind_head || info->symbols_head || info->lines_head || info->unwind_kind;
}

int region_load(struct region *r, const struct code_memory *memory, uint16_t machine,
		uint64_t *budget, struct cairn_err *err)
{
	struct jit_tables tables = {0};
	struct eh_block *eh = NULL;
	/* The tables of a removed region may be anything by now; many objects have none. */
	if (!r->registry || r->is_fresh || r->range.is_removed || !has_more(&r->info))
		return 0;
	r->is_fresh = true;
	int rc = jit_tables_read(memory, &r->info, budget, &tables, err);
	if (rc == 0)
		rc = read_eh(r, memory, machine, budget, &eh, err);
	r->is_gone = rc == 0 && !registry_is_epoch(r->registry, r->number, r->range.generation);
	if (rc < 0 || r->is_gone) {
		jit_tables_fini(&tables);
		eh_block_close(eh);
		if (r->is_gone)
			r->range.why = "its code was freed, or made anew, while it was read";
		return rc;
	}
	replace(r, &tables, eh);
	report_what_is_wrong(r);
	return 0;
}

void region_take_strings(struct region *to, struct region *from)
{
	VEC_FREE(&to->caught);
	arena_fini(&to->strings);
	to->caught.p = from->caught.p;
	to->caught.n = from->caught.n;
	to->caught.cap = from->caught.cap;
	to->strings = from->strings;
	from->caught.p = NULL;
	from->caught.n = from->caught.cap = 0;
	arena_init(&from->strings);
}

void region_take_over(struct region *to, struct region *from)
{
	replace(to, &from->tables, from->eh);
	to->eh_why = from->eh_why;
	region_take_strings(to, from);
	from->tables = (struct jit_tables){0};
	from->eh = NULL;
	report_what_is_wrong(to);
}

void region_fini(struct region *r)
{
	jit_tables_fini(&r->tables);
	eh_block_close(r->eh);
	VEC_FREE(&r->caught);
	arena_fini(&r->strings);
}

static bool has_rule(const struct rule_words *w)
{
	return w->words[0] != 0;
}

static bool says_frame_pointer(const struct region *r)
{
	return r->registry && r->info.flags & CODE_JIT_FRAME_POINTER &&
	       !(r->info.flags & CODE_JIT_ASSUMED);
}

static bool is_described(const struct region *r)
{
	return r->symfile || r->info.unwind_head || r->info.unwind_kind;
}

static const char *why_undescribed(const struct region *r)
{
	if (r->symfile && !symfile_n_fdes(r->symfile))
		return "its symbol file has no call frame information that can be read";
	return "its owner describes other code of the region, and not this";
}

enum cairn_code_unwind region_rule(const struct region *r, uint64_t at, uint16_t machine,
				   struct rule_words *ret, const char **ret_why)
{
	const struct jit_row *row = r->registry ? jit_row_at(&r->tables, at - r->range.lo.v) : NULL;
	*ret_why = NULL;
	rule_undescribed(ret);
	if (row) {
		jit_row_rule(row, machine, ret);
		*ret_why =
			has_rule(ret) ? NULL : "its owner declares that it cannot be unwound there";
		return has_rule(ret) ? CAIRN_CODE_UNWIND_ROWS : CAIRN_CODE_UNWIND_NONE;
	}
	if (r->symfile)
		symfile_rule(r->symfile, at, ret);
	else if (r->eh)
		eh_block_rule(r->eh, at, ret);
	if (has_rule(ret))
		return CAIRN_CODE_UNWIND_EH_FRAME;
	if (!says_frame_pointer(r) && is_described(r)) {
		*ret_why = r->range.why ? r->range.why : why_undescribed(r);
		return CAIRN_CODE_UNWIND_NONE;
	}
	jit_frame_pointer_rule(machine, ret);
	return says_frame_pointer(r) ? CAIRN_CODE_UNWIND_FP : CAIRN_CODE_UNWIND_ASSUMED;
}

bool region_describes(const struct region *r, uint64_t at, uint16_t machine)
{
	struct rule_words rule;
	if (jit_row_at(&r->tables, at - r->range.lo.v))
		return true;
	if (r->eh)
		eh_block_rule(r->eh, at, &rule);
	return r->eh && has_rule(&rule);
}

enum cairn_code_unwind region_unwind(const struct region *r)
{
	if (r->tables.rows.n)
		return CAIRN_CODE_UNWIND_ROWS;
	if (r->eh || (r->symfile && symfile_n_fdes(r->symfile)))
		return CAIRN_CODE_UNWIND_EH_FRAME;
	return says_frame_pointer(r) ? CAIRN_CODE_UNWIND_FP : CAIRN_CODE_UNWIND_ASSUMED;
}

/* ---- names ---- */

/* NULL when it is not there, or has no end. */
static const char *read_string(const struct code_memory *memory, uint64_t at, struct arena *arena,
			       bool *is_out_of_memory)
{
	char text[MAX_NAME];
	size_t n = at ? memory->read(memory->ctx, at, text, 128) : 0;
	if (n == 128 && !memchr(text, 0, n))
		n = memory->read(memory->ctx, at, text, sizeof(text));
	if (!memchr(text, 0, n))
		return NULL;
	char *copied = arena_strdup(arena, text);
	*is_out_of_memory |= !copied;
	return copied;
}

static int symfile_names(const struct region *r, uint64_t at, struct cairn_frame *ret,
			 uint64_t *ret_lo)
{
	const char *name = symfile_find(r->symfile, at, ret_lo);
	if (!name)
		return 0;
	*ret = (struct cairn_frame){.function = name, .name = name};
	ret->line = symfile_line(r->symfile, at, &ret->file);
	return 1;
}

/* The source of a region's strings. */
struct reader {
	const struct region *r;
	const struct code_memory *memory;
	struct arena *arena;
	bool is_out_of_memory;
	bool has_read_live; /* not all were caught */
};

static const struct region_string *caught_at(const struct region *r, uint64_t at)
{
	for (size_t i = 0; i < r->caught.n; i++)
		if (r->caught.p[i].at == at)
			return &r->caught.p[i];
	return NULL;
}

static const char *string_at(struct reader *s, uint64_t at)
{
	const struct region_string *caught = caught_at(s->r, at);
	if (!at || caught)
		return at ? caught->text : NULL;
	s->has_read_live = true;
	return read_string(s->memory, at, s->arena, &s->is_out_of_memory);
}

/* A copy's call is where the frame around it is. */
static size_t frames_of(struct reader *s, uint64_t off, const struct jit_symbol **symbols, size_t n,
			struct cairn_frame *ret)
{
	const struct jit_line *line = jit_line_at(&s->r->tables, off);
	uint64_t file = line && line->line ? line->file : 0;
	uint32_t number = line ? line->line : 0;
	for (size_t i = 0; i < n; i++) {
		const struct jit_symbol *symbol = symbols[n - 1 - i];
		const char *name = string_at(s, symbol->name);
		ret[i] = (struct cairn_frame){
			.function = name, .name = name, .line = number, .file = string_at(s, file)};
		number = symbol->call_line;
		file = symbol->call_file;
	}
	return n;
}

int region_names(const struct region *r, const struct code_memory *memory, uint64_t at,
		 struct arena *arena, struct cairn_frame *ret, size_t max, uint64_t *ret_lo)
{
	const struct jit_symbol *symbols[MAX_COPIES];
	struct reader s = {.r = r, .memory = memory, .arena = arena};
	if (r->symfile)
		return symfile_names(r, at, ret, ret_lo);
	size_t n = jit_symbols_at(&r->tables, at - r->range.lo.v, symbols,
				  max < MAX_COPIES ? max : MAX_COPIES);
	if (!n)
		return 0;
	*ret_lo = r->range.lo.v + symbols[0]->off;
	frames_of(&s, at - r->range.lo.v, symbols, n, ret);
	if (s.is_out_of_memory)
		return -ENOMEM;
	/* The data belongs to the region if it is still there. */
	if (s.has_read_live && !registry_is_epoch(r->registry, r->number, r->range.generation))
		return 0;
	return (int)n;
}

static int snapshot_string(struct region *r, const struct code_memory *memory, uint64_t at)
{
	bool is_out_of_memory = false;
	if (!at || r->caught.n == MAX_CAUGHT || caught_at(r, at))
		return 0;
	const char *text = read_string(memory, at, &r->strings, &is_out_of_memory);
	return is_out_of_memory || !VEC_ADD(&r->caught, ((struct region_string){at, text}))
		       ? -ENOMEM
		       : 0;
}

int region_catch_names(struct region *r, const struct code_memory *memory, uint64_t at)
{
	const struct jit_symbol *symbols[MAX_COPIES];
	size_t n = jit_symbols_at(&r->tables, at - r->range.lo.v, symbols, MAX_COPIES);
	const struct jit_line *line = n ? jit_line_at(&r->tables, at - r->range.lo.v) : NULL;
	int rc = line ? snapshot_string(r, memory, line->file) : 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = snapshot_string(r, memory, symbols[i]->name);
		if (rc == 0)
			rc = snapshot_string(r, memory, symbols[i]->call_file);
	}
	return rc;
}
