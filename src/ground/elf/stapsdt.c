/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notes of USDT probes
 *
 * A macro of <sys/sdt.h> leaves a nop in the code and a note about it, of type 3 and name
 * "stapsdt". Its description, with the bytes of a probe of Python:
 *
 *	OFFSET  SIZE  MEANING
 *	0       8     address of the nop
 *	8       8     link-time address of .stapsdt.base
 *	16      8     address of the semaphore, 0 without
 *	24      n     provider, NUL         "python"
 *	        n     name, NUL             "gc__done"
 *	        n     arguments, NUL        "-8@%rax"
 *
 * A tool such as prelink, which moves a file's addresses and does not know the notes, moves
 * .stapsdt.base. The distance between its address and the one in the note is that of the others.
 */
#include "elf/stapsdt.h"

#include <elf.h>
#include <errno.h>

enum {
	STAPSDT_TYPE = 3,
	/* libjvm has 532; a note has at least 52 bytes. */
	STAPSDT_MAX = 1 << 20,
	/* SystemTap's macros pass 12 arguments; each may have a mangled symbol. */
	STAPSDT_TEXT_MAX = 1 << 14,
};

struct notes {
	struct cursor c;
	uint64_t align;
	struct cairn_vaddr base; /* of the section, where it is now */
	bool has_base;
	struct cairn_err *err;
};

static void skip_to_next(struct notes *n, uint64_t len)
{
	uint64_t pad = (n->align - len % n->align) % n->align;
	if (pad <= cur_left(&n->c)) /* the last note of a section may go without */
		cur_skip(&n->c, pad);
}

static const char *text_of(struct cursor *c, bool *is_long)
{
	const char *text = cur_str(c);
	*is_long |= strlen(text) > STAPSDT_TEXT_MAX;
	return text;
}

static int read_probe(struct notes *n, struct cursor d, struct stapsdt *ret)
{
	bool is_long = false;
	uint64_t at = cur_u64(&d);
	uint64_t base = cur_u64(&d);
	uint64_t semaphore = cur_u64(&d);
	uint64_t moved = n->has_base && base ? n->base.v - base : 0;
	*ret = (struct stapsdt){.at = {at + moved}};
	if (semaphore)
		ret->semaphore.v = semaphore + moved;
	ret->provider = text_of(&d, &is_long);
	ret->name = text_of(&d, &is_long);
	ret->args = text_of(&d, &is_long);
	if (d.failed)
		return -EBADMSG;
	if (is_long)
		return err_set(n->err, -ERANGE,
			       "%s: a USDT probe with a text of more than %d characters",
			       d.src->file, STAPSDT_TEXT_MAX);
	return 0;
}

/* Returns 1 and *@ret, 0 for a note of another kind, or an error. */
static int next_note(struct notes *n, struct stapsdt *ret)
{
	uint32_t name_len = cur_u32(&n->c);
	uint32_t desc_len = cur_u32(&n->c);
	uint32_t type = cur_u32(&n->c);
	const uint8_t *name = cur_bytes(&n->c, name_len);
	skip_to_next(n, sizeof(Elf64_Nhdr) + (uint64_t)name_len);
	struct cursor d = cur_sub(&n->c, desc_len);
	if (n->c.failed)
		return -EBADMSG;
	skip_to_next(n, desc_len);
	if (type != STAPSDT_TYPE || name_len != sizeof("stapsdt") ||
	    memcmp(name, "stapsdt", sizeof("stapsdt")))
		return 0;
	int rc = read_probe(n, d, ret);
	return rc < 0 ? rc : 1;
}

static int visit_notes(struct notes *n, int (*visit)(void *ctx, const struct stapsdt *probe),
		       void *ctx)
{
	uint32_t n_probes = 0;
	int rc = 0;
	while (cur_left(&n->c) >= sizeof(Elf64_Nhdr) && !rc) {
		struct stapsdt probe;
		rc = next_note(n, &probe);
		if (rc <= 0)
			continue;
		if (++n_probes > STAPSDT_MAX)
			return err_set(n->err, -ERANGE, "%s: more than %d USDT probes",
				       n->c.src->file, STAPSDT_MAX);
		rc = visit(ctx, &probe);
	}
	if (!rc && cur_left(&n->c))
		cur_fail(&n->c, "a note");
	return n->c.failed && !rc ? -EBADMSG : rc;
}

int elf_visit_stapsdt(struct elf *e, int (*visit)(void *ctx, const struct stapsdt *probe),
		      void *ctx, struct cairn_err *err)
{
	const struct elf_section *s, *base;
	int rc = elf_section(e, ".note.stapsdt", &s, err);
	if (rc >= 0)
		rc = elf_section(e, ".stapsdt.base", &base, err);
	if (rc < 0 || !s || !s->data)
		return rc;
	struct notes n = {.c = cursor_of(&s->src, s->data, s->size, false, err),
			  .align = 4,
			  .has_base = base,
			  .err = err};
	if (base)
		n.base = base->addr;
	return visit_notes(&n, visit, ctx);
}
