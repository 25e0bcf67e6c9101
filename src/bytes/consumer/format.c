/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats of Python's module struct
 *
 *	"<IQ16s"   little endian, no alignment: 4 bytes, 8 bytes, 16 characters
 *	"@IQ"      as C: the Q at 8; but nothing is padded at the end, unless it ends in 0Q
 *
 *     first    @ sizes and alignments of C, = sizes as below without alignment, < little endian, >
 *              and ! big endian; default: @
 *     x        a byte of padding
 *     c        a character
 *     ?        _Bool
 *     b B h H i I l L q Q   1 1 2 2 4 4 4 4 8 8 bytes, signed first
 *     e f d    floats of 2 4 8 bytes
 *     n N      size_t, only with @
 *     P        pointer, only with @
 *     16s 16p  one string of this number of bytes, the count of others repeats them
 *
 * Members have no names.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"
#include "layout/place.h"

/* A count repeats an item; "1000000000I" would be that many members. */
enum { REPEAT_MAX = 1 << 16 };

static const struct letter {
	char letter;
	enum cairn_scalar scalar;
	uint8_t standard; /* bytes; 0: only with @ */
	enum cairn_type_kind kind;
	enum cairn_type_encoding encoding;
	const char *name;
} letters[] = {
	{'c', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR, "char"},
	{'b', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR, "int8"},
	{'B', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR, "uint8"},
	{'?', CAIRN_C_BOOL, 1, CAIRN_T_INT, CAIRN_ENC_BOOL, "bool"},
	{'h', CAIRN_C_SHORT, 2, CAIRN_T_INT, CAIRN_ENC_SIGNED, "short"},
	{'H', CAIRN_C_SHORT, 2, CAIRN_T_INT, CAIRN_ENC_UNSIGNED, "unsigned short"},
	{'i', CAIRN_C_INT, 4, CAIRN_T_INT, CAIRN_ENC_SIGNED, "int"},
	{'I', CAIRN_C_INT, 4, CAIRN_T_INT, CAIRN_ENC_UNSIGNED, "unsigned int"},
	{'l', CAIRN_C_LONG, 4, CAIRN_T_INT, CAIRN_ENC_SIGNED, "long"},
	{'L', CAIRN_C_LONG, 4, CAIRN_T_INT, CAIRN_ENC_UNSIGNED, "unsigned long"},
	{'q', CAIRN_C_LLONG, 8, CAIRN_T_INT, CAIRN_ENC_SIGNED, "long long"},
	{'Q', CAIRN_C_LLONG, 8, CAIRN_T_INT, CAIRN_ENC_UNSIGNED, "unsigned long long"},
	{'n', CAIRN_C_PTR, 0, CAIRN_T_INT, CAIRN_ENC_SIGNED, "ssize_t"},
	{'N', CAIRN_C_PTR, 0, CAIRN_T_INT, CAIRN_ENC_UNSIGNED, "size_t"},
	{'e', CAIRN_C_FLOAT16, 2, CAIRN_T_FLOAT, 0, "half"},
	{'f', CAIRN_C_FLOAT, 4, CAIRN_T_FLOAT, 0, "float"},
	{'d', CAIRN_C_DOUBLE, 8, CAIRN_T_FLOAT, 0, "double"},
	{'P', CAIRN_C_PTR, 0, CAIRN_T_PTR, 0, NULL},
	{'s', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR, "char"},
	{'p', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR, "char"},
	{'x', CAIRN_C_CHAR, 1, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR, "padding"},
};

struct format {
	struct reader *r;
	const struct token *at;
	bool native, swapped;
	uint64_t end;
	uint32_t align;
	VEC(struct cairn_member) members;
	uint32_t ids[sizeof(letters) / sizeof(letters[0])];
};

static const struct letter *letter_of(char c)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == c)
			return &letters[i];
	return NULL;
}

static struct cairn_scalar_layout layout_of(const struct format *f, const struct letter *l)
{
	if (f->native)
		return f->r->abi->scalars[l->scalar];
	return (struct cairn_scalar_layout){l->standard, 1};
}

static int scalar_id(struct format *f, const struct letter *l, uint32_t *ret)
{
	struct cairn_scalar_layout layout = layout_of(f, l);
	struct cairn_type t = {.kind = l->kind,
			       .encoding = l->encoding,
			       .name = l->name,
			       .size = layout.size,
			       .abi_align = layout.align,
			       .byte_swapped = f->swapped && layout.size > 1};
	uint32_t *id = &f->ids[l - letters];
	int rc = *id ? 0 : add_node(f->r, &t, id);

	*ret = *id;
	return rc;
}

static int add(struct format *f, uint32_t id, uint64_t size, bool padding)
{
	struct cairn_member m = {
		.name = padding ? "_pad" : NULL, .type = id, .bit_off = 8 * f->end};

	if (f->end + size > CAIRN_LAYOUT_SIZE_MAX || f->members.n == FOREIGN_MEMBERS_MAX)
		return complain_at(f->r, f->at, -ERANGE, "a format of too many members");
	f->end += size;
	return VEC_ADD(&f->members, m) ? 0 : err_nomem(f->r->err, "members of formats");
}

static int add_array(struct format *f, const struct letter *l, uint64_t count)
{
	struct cairn_type t = {.kind = CAIRN_T_ARRAY,
			       .has_count = true,
			       .count = count,
			       .size = count,
			       .abi_align = 1};
	uint32_t id;
	int rc = scalar_id(f, l, &t.ref);

	rc = rc ? rc : add_node(f->r, &t, &id);
	return rc ? rc : add(f, id, count, l->letter == 'x');
}

static int add_items(struct format *f, const struct letter *l, uint64_t count)
{
	struct cairn_scalar_layout layout = layout_of(f, l);
	uint32_t id;
	int rc;

	if (!layout.size)
		return complain_at(f->r, f->at, -EBADMSG, "'%c' in a format of that byte order",
				   l->letter);
	f->end = round_up(f->end, layout.align);
	f->align = layout.align > f->align ? layout.align : f->align;
	if (strchr("spx", l->letter))
		return count ? add_array(f, l, count) : 0;
	if (count > REPEAT_MAX)
		return complain_at(f->r, f->at, -ERANGE, "more than %d items of one kind",
				   REPEAT_MAX);
	rc = scalar_id(f, l, &id);
	for (uint64_t i = 0; i < count && !rc; i++)
		rc = add(f, id, layout.size, false);
	return rc;
}

static int parse_items(struct format *f, const char *p, const char *end)
{
	int rc = 0;

	while (p < end && !rc) {
		uint64_t count = 0;
		bool counted = isdigit((unsigned char)*p);

		if (isspace((unsigned char)*p)) {
			p++;
			continue;
		}
		for (; p < end && isdigit((unsigned char)*p); p++)
			count = count < UINT32_MAX ? 10 * count + (uint64_t)(*p - '0') : count;
		const struct letter *l = p < end ? letter_of(*p++) : NULL;
		if (!l)
			return complain_at(f->r, f->at, -EBADMSG, "no format of the module struct");
		rc = add_items(f, l, counted ? count : 1);
	}
	return rc;
}

int lay_out_format(struct reader *r, struct declared *d, struct cairn_type *t)
{
	const char *p = d->format, *end = p + d->format_n;
	char order = p < end && strchr("@=<>!", *p) ? *p++ : '@';
	struct format f = {.r = r, .at = &d->at, .native = order == '@', .align = 1};
	bool big = order == '>' || order == '!' || (order != '<' && r->abi->big_endian);
	struct cairn_member *copy;
	int rc;

	f.swapped = big != r->abi->big_endian;
	rc = parse_items(&f, p, end);
	copy = rc ? NULL : arena_array(r->arena, f.members.n + 1, sizeof(*copy));
	if (copy) {
		if (f.members.n)
			memcpy(copy, f.members.p, f.members.n * sizeof(*copy));
		t->members = copy;
		t->n_members = (uint32_t)f.members.n;
		t->size = f.end;
		/* No format nests in another. */
		t->abi_align = 1;
	}
	VEC_FREE(&f.members);
	return rc ? rc : copy ? 0 : err_nomem(r->err, "members of formats");
}
