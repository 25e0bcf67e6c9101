/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a registry that its process goes on writing
 *
 * An entry is valid while its epoch is not 0, and no epoch is used twice. So data read between two
 * reads of the same epoch belongs to it. Within a copy of 168 bytes no order is known: its epoch
 * may be younger than the rest, or older. A second copy decides: if both are the same, byte by
 * byte, the rest of the second one, or an equal content, was read between the two epochs.
 *
 *	writer  epoch 0                epoch 7               epoch 0, 9
 *	reader  copy: 0, not an entry  copy: 7 ... check: 7  copy: 7 ... check: 9, changing
 *
 * The second copy comes after the strings, which belong to the entry by the same argument.
 *
 * Strings lie together in the registry's mapping. They are read as one block, from the first to the
 * last that an entry points to: a thousand objects cost one read, not three thousand.
 */
#include "code/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/cursor.h"
#include "base/err.h"

enum {
	/* Six times the size of an entry today: the limit for a copy of all. */
	MAX_STRIDE = 1024,
	/*
	 * Entries between two others that are not worth a read of their own: this number is copied
	 * in the same time.
	 */
	FAR = 16,
};

static const struct cursor_src src = {.file = "", .section = "registry"};

static bool parse_head(const uint8_t *bytes, size_t n, struct codectl_registry *ret)
{
	struct cursor c = cursor_of(&src, bytes, n, false, NULL);
	const uint8_t *magic = cur_bytes(&c, sizeof(ret->magic));
	*ret = (struct codectl_registry){.version = cur_u32(&c)};
	ret->header_size = cur_u32(&c);
	ret->self = cur_u64(&c);
	ret->size = cur_u64(&c);
	ret->entries = cur_u64(&c);
	ret->entry_stride = cur_u32(&c);
	ret->n_entries = cur_u32(&c);
	ret->changes = cur_u64(&c);
	if (c.failed)
		return false;
	memcpy(ret->magic, magic, sizeof(ret->magic));
	return true;
}

/* The registry's own header must be possible. */
static int check_head(const struct codectl_registry *h, uint64_t lo, uint64_t hi,
		      struct cairn_err *err)
{
	if (h->header_size < sizeof(*h))
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": a header of %s; expected at least %zu",
			       lo, cairn_counted(h->header_size, "byte").text, sizeof(*h));
	if (h->self != lo)
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": says that it is at 0x%" PRIx64, lo,
			       h->self);
	if (h->size > hi - lo)
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": 0x%" PRIx64
			       " bytes in a mapping of 0x%" PRIx64,
			       lo, h->size, hi - lo);
	if (h->n_entries > CODECTL_MAX_ENTRIES)
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": %u entries; at most %d can be", lo,
			       h->n_entries, CODECTL_MAX_ENTRIES);
	if (h->entry_stride < sizeof(struct codectl_entry) || h->entry_stride > MAX_STRIDE ||
	    h->entry_stride % 8)
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": entries %s apart; expected %zu to %d",
			       lo, cairn_counted(h->entry_stride, "byte").text,
			       sizeof(struct codectl_entry), MAX_STRIDE);
	uint64_t bytes = (uint64_t)h->n_entries * h->entry_stride;
	if (h->entries < lo || h->entries - lo > h->size || bytes > h->size - (h->entries - lo))
		return err_set(err, -EBADMSG,
			       "registry at 0x%" PRIx64 ": entries at 0x%" PRIx64
			       " that are not within it",
			       lo, h->entries);
	return 0;
}

static int copy_head(const struct code_memory *memory, uint64_t lo, uint64_t hi,
		     struct codectl_registry *ret, struct cairn_err *err)
{
	static const char magic[8] = CODECTL_REGISTRY_MAGIC;
	uint8_t bytes[sizeof(*ret)];
	size_t n = memory->read(memory->ctx, lo, bytes, sizeof(bytes));
	if (!parse_head(bytes, n, ret))
		return err_set(err, -EFAULT, "registry at 0x%" PRIx64 ": cannot be read", lo);
	if (memcmp(ret->magic, magic, sizeof(magic)) != 0)
		return err_set(err, -ENOENT,
			       "registry at 0x%" PRIx64 ": not complete, or none: no magic number",
			       lo);
	if (ret->version != CODECTL_REGISTRY_VERSION)
		return err_set(err, -EOPNOTSUPP,
			       "registry at 0x%" PRIx64 ": of version %u; %d is known", lo,
			       ret->version, CODECTL_REGISTRY_VERSION);
	return check_head(ret, lo, hi, err);
}

int registry_copy(struct registry *r, uint32_t max, struct cairn_err *err)
{
	r->n = 0;
	int rc = copy_head(&r->memory, r->lo, r->hi, &r->head, err);
	if (rc < 0) {
		r->head = (struct codectl_registry){0};
		return rc;
	}
	uint32_t n = r->head.n_entries < max ? r->head.n_entries : max;
	size_t size = (size_t)n * r->head.entry_stride;
	if (size > r->room) {
		uint8_t *grown = realloc(r->bytes, size);
		if (!grown)
			return err_nomem(err, "a copy of a registry");
		r->bytes = grown;
		r->room = size;
	}
	size_t got = n ? r->memory.read(r->memory.ctx, r->head.entries, r->bytes, size) : 0;
	if (got < size)
		return err_set(err, -EFAULT,
			       "registry at 0x%" PRIx64 ": %zu of %zu bytes of entries can be read",
			       r->lo, got, size);
	r->n = n;
	return 0;
}

/* ---- entries ---- */

static void parse_elf(struct cursor *c, struct code_elf_info *e)
{
	uint64_t *const words[] = {&e->elf_start, &e->elf_end,      &e->text_start,
				   &e->text_end,  &e->sframe_start, &e->sframe_end,
				   &e->pathname,  &e->build_id,     &e->debug_link_pathname};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		*words[i] = cur_u64(c);
	e->build_id_len = cur_u32(c);
	e->debug_link_crc = cur_u32(c);
	e->unwind_start = cur_u64(c);
	e->unwind_end = cur_u64(c);
	e->unwind_kind = cur_u32(c);
}

static void parse_jit(struct cursor *c, struct code_jit_info *j)
{
	j->text_start = cur_u64(c);
	j->text_end = cur_u64(c);
	j->unwind_head = cur_u64(c);
	j->extended = cur_u64(c);
	if (j->extended != CODE_JIT_EXTENDED)
		return;
	j->symbols_head = cur_u64(c);
	j->lines_head = cur_u64(c);
	j->unwind_start = cur_u64(c);
	j->unwind_end = cur_u64(c);
	j->unwind_kind = cur_u32(c);
	j->flags = cur_u32(c);
	j->name = cur_u64(c);
}

static const char *unwind_is_wrong(uint64_t start, uint64_t end, uint32_t kind)
{
	if (kind > CODE_UNWIND_EH_FRAME_HDR)
		return "its unwind information is of a kind that is not known";
	return kind && start >= end ? "its unwind information has no bytes" : NULL;
}

static const char *elf_is_wrong(const struct code_elf_info *e)
{
	if (e->text_start >= e->text_end)
		return "its code is empty, or ends before it begins";
	if (e->elf_start > e->text_start || e->elf_end < e->text_end)
		return "its code is not within the object";
	if (e->build_id && e->build_id_len > REGISTRY_MAX_BUILD_ID)
		return "its build-id is longer than any";
	if (e->sframe_start > e->sframe_end)
		return "its SFrame section ends before it begins";
	return unwind_is_wrong(e->unwind_start, e->unwind_end, e->unwind_kind);
}

static const char *jit_is_wrong(const struct code_jit_info *j)
{
	if (j->text_start >= j->text_end)
		return "its code is empty, or ends before it begins";
	if (j->text_end - j->text_start > UINT64_C(1) << 32)
		return "it is larger than 4 GiB, beyond which rows have no offsets";
	return unwind_is_wrong(j->unwind_start, j->unwind_end, j->unwind_kind);
}

/*
 * A long-running JIT leaves a thousand removed entries; a reader that does not want them skips them
 * quickly.
 */
static bool parse_entry(const uint8_t *bytes, size_t n, uint32_t number, bool takes_removed,
			struct registry_entry *ret)
{
	struct cursor c = cursor_of(&src, bytes, n, false, NULL);
	uint64_t epoch = cur_u64(&c);
	if (!epoch && !takes_removed)
		return false;
	uint64_t last = cur_u64(&c);
	*ret = (struct registry_entry){
		.number = number, .epoch = epoch ? epoch : last, .is_removed = !epoch};
	ret->since_ns = cur_u64(&c);
	ret->until_ns = cur_u64(&c);
	ret->option = cur_u32(&c);
	cur_skip(&c, sizeof(uint32_t));
	if (ret->option == CODE_REGISTER_ELF)
		parse_elf(&c, &ret->elf);
	else if (ret->option == CODE_REGISTER_JIT)
		parse_jit(&c, &ret->jit);
	if (c.failed || !ret->epoch)
		return false;
	if (ret->option == CODE_REGISTER_ELF)
		ret->why = elf_is_wrong(&ret->elf);
	else if (ret->option == CODE_REGISTER_JIT)
		ret->why = jit_is_wrong(&ret->jit);
	else
		ret->why = "it registers something of a kind that is not known";
	if (!ret->is_removed)
		ret->until_ns = 0;
	return true;
}

int registry_parse(struct registry *r, bool takes_removed, struct cairn_err *err)
{
	r->entries.n = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		struct registry_entry e;
		if (!parse_entry(r->bytes + (size_t)i * r->head.entry_stride, r->head.entry_stride,
				 i, takes_removed, &e))
			continue;
		if (!VEC_ADD(&r->entries, e))
			return err_nomem(err, "the entries of a registry");
	}
	return 0;
}

/* ---- strings ---- */

struct span {
	uint64_t lo, hi;
};

static uint64_t name_of(const struct registry_entry *e)
{
	return e->option == CODE_REGISTER_ELF ? e->elf.pathname : e->jit.name;
}

static bool is_inside(const struct registry *r, uint64_t at)
{
	return !at || (at >= r->lo && at - r->lo < r->head.size);
}

static void widen(struct span *s, uint64_t at)
{
	if (!at)
		return;
	s->lo = at < s->lo ? at : s->lo;
	s->hi = at > s->hi ? at : s->hi;
}

/* From the first to the last byte that an entry points to; one that points elsewhere is refused. */
static struct span strings_of(struct registry *r)
{
	struct span s = {UINT64_MAX, 0};
	for (size_t i = 0; i < r->entries.n; i++) {
		struct registry_entry *e = &r->entries.p[i];
		bool is_elf = e->option == CODE_REGISTER_ELF;
		if (e->why)
			continue;
		if (!is_inside(r, name_of(e)) ||
		    (is_elf && (!is_inside(r, e->elf.build_id) ||
				!is_inside(r, e->elf.debug_link_pathname)))) {
			e->why = "its name or build-id is not within the registry";
			continue;
		}
		widen(&s, name_of(e));
		if (is_elf) {
			widen(&s, e->elf.build_id);
			widen(&s, e->elf.debug_link_pathname);
		}
	}
	return s;
}

/* The bytes at @at of the block; NULL, and the entry is refused, when there are fewer than @n. */
static const char *bytes_at(const struct registry *r, const struct span *s,
			    struct registry_entry *e, uint64_t at, size_t n)
{
	if (!at)
		return NULL;
	if (at < s->lo || at - s->lo > r->n_strings || n > r->n_strings - (at - s->lo)) {
		e->why = "its name or build-id cannot be read";
		return NULL;
	}
	return r->strings + (at - s->lo);
}

static const char *string_at(const struct registry *r, const struct span *s,
			     struct registry_entry *e, uint64_t at)
{
	const char *text = bytes_at(r, s, e, at, 1);
	size_t left = text ? r->n_strings - (size_t)(text - r->strings) : 0;
	if (text && !memchr(text, 0, left < REGISTRY_MAX_STRING ? left : REGISTRY_MAX_STRING)) {
		e->why = "its name has no end";
		return NULL;
	}
	return text;
}

static void attach_strings(struct registry *r, const struct span *s)
{
	for (size_t i = 0; i < r->entries.n; i++) {
		struct registry_entry *e = &r->entries.p[i];
		if (e->why)
			continue;
		e->name = string_at(r, s, e, name_of(e));
		if (e->option != CODE_REGISTER_ELF)
			continue;
		e->debug_link = string_at(r, s, e, e->elf.debug_link_pathname);
		e->build_id =
			(const uint8_t *)bytes_at(r, s, e, e->elf.build_id, e->elf.build_id_len);
	}
}

int registry_strings(struct registry *r, struct cairn_err *err)
{
	struct span s = strings_of(r);
	r->n_strings = 0;
	if (s.lo > s.hi)
		return 0;
	uint64_t left = r->lo + r->head.size - s.lo, size = s.hi - s.lo + REGISTRY_MAX_STRING;
	size = size < left ? size : left;
	/* Beyond that none can be read, and each says so. */
	if (size <= REGISTRY_MAX_STRINGS) {
		char *grown = realloc(r->strings, size);
		if (!grown)
			return err_nomem(err, "the strings of a registry");
		r->strings = grown;
		r->n_strings = r->memory.read(r->memory.ctx, s.lo, grown, size);
	}
	attach_strings(r, &s);
	return 0;
}

/* ---- once more ---- */

static uint64_t epoch_in(const uint8_t *entry)
{
	struct cursor c = cursor_of(&src, entry, sizeof(uint64_t), false, NULL);
	return cur_u64(&c);
}

/*
 * Entries [@first, @last), which are near each other, in one read into @now. Returns how many are
 * others by now.
 */
static int check_run(struct registry *r, size_t first, size_t last, uint8_t *now)
{
	size_t stride = r->head.entry_stride, begin = r->entries.p[first].number * stride;
	size_t size = r->entries.p[last - 1].number * stride + stride - begin;
	size_t got = r->memory.read(r->memory.ctx, r->head.entries + begin, now, size);
	int n = 0;
	for (size_t i = first; i < last; i++) {
		struct registry_entry *e = &r->entries.p[i];
		size_t off = e->number * stride;
		if (off - begin + stride <= got &&
		    !memcmp(r->bytes + off, now + off - begin, sizeof(struct codectl_entry)))
			continue;
		e->is_changing = true;
		n++;
	}
	return n;
}

int registry_check(struct registry *r, struct cairn_err *err)
{
	uint8_t *now = malloc(r->n ? (size_t)r->n * r->head.entry_stride : 1);
	int n = 0;
	if (!now)
		return err_nomem(err, "a copy of a registry");
	for (size_t first = 0, last; first < r->entries.n; first = last) {
		last = first + 1;
		while (last < r->entries.n &&
		       r->entries.p[last].number - r->entries.p[last - 1].number < FAR)
			last++;
		n += check_run(r, first, last, now);
	}
	free(now);
	return n;
}

bool registry_is_epoch(const struct registry *r, uint32_t number, uint64_t epoch)
{
	uint8_t bytes[sizeof(uint64_t)];
	uint64_t at = r->head.entries + (uint64_t)number * r->head.entry_stride;
	return r->as_of_ns ||
	       (code_memory_all(&r->memory, at, bytes, sizeof(bytes)) && epoch_in(bytes) == epoch);
}

void registry_fini(struct registry *r)
{
	free(r->bytes);
	free(r->strings);
	VEC_FREE(&r->entries);
	*r = (struct registry){0};
}
