/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules. Each examines one struct and reports its findings. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <cairn/layout/reorganize.h>

#include "layout_lint.h"

const char *layout_lint_name(const struct cairn_types *types, const struct cairn_member *m)
{
	const char *base = m->is_base_class ? cairn_types_get(types, m->type)->name : NULL;

	return m->name ? m->name : base ? base : "(anonymous)";
}

static const char *name_of(const struct lint_subject *s, uint32_t i)
{
	return layout_lint_name(s->run->types, &s->t->members[i]);
}

/* Its offset is not known, or it is a base class that an object places part of elsewhere. */
static bool is_unplaced(struct lint_subject *s, uint32_t i)
{
	const struct cairn_member *m = &s->t->members[i];
	struct cairn_layout_facts f = {0};

	if (m->is_base_class && !m->dynamic)
		s->no_memory |= cairn_layout_facts(s->run->layout, m->type, &f, NULL) < 0;
	return m->dynamic || f.n_unplaced || f.n_unplaced_bases;
}

__attribute__((format(printf, 3, 4))) static void say(char *to, size_t size, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(to, size, format, args);
	va_end(args);
}

#define WHAT(f, ...) say((f)->what, sizeof((f)->what), __VA_ARGS__)
#define MEND(f, ...) say((f)->mend, sizeof((f)->mend), __VA_ARGS__)

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- members that no rule can look at ---- */

static void look_for_unplaced(struct lint_subject *s, const struct lint_rule *rule)
{
	for (uint32_t i = 0; i < s->t->n_members; i++) {
		struct lint_finding f = {
			.rule = rule->id, .member = name_of(s, i), .unplaced = true};

		if (!s->t->members[i].dynamic)
			continue;
		WHAT(&f, "%" PRIu64 " byte%s, offset not known", s->members[i].size,
		     plural(s->members[i].size));
		f.why = "an object says where it is (a virtual base class, a record after an array "
			"of Ada), or the debug information contradicts itself about it: no reader "
			"has one offset for it, and no other rule looks at it";
		MEND(&f, "leave it out of what two programs share");
		s->report(s, &f, s->ctx);
	}
}

/* ---- bytes of no member ---- */

static const char LEAK[] =
	"setting the members leaves these bytes as they were: where the verifier does not reject "
	"the record (invalid read from stack), the reader sees old bytes of the stack or of the "
	"ring; in a key, equal keys differ";

static void report_hole(const struct lint_subject *s, const struct lint_rule *rule,
			const char *before, uint64_t off, uint64_t n)
{
	struct lint_finding f = {.rule = rule->id, .member = before, .offset = off, .why = LEAK};

	WHAT(&f, "%" PRIu64 " byte%s that no member has", n, plural(n));
	MEND(&f,
	     "name them (unsigned char _pad%" PRIu64 "[%" PRIu64
	     "]) and set them, or memset() the record first, or reorder: --reorganize",
	     off, n);
	s->report(s, &f, s->ctx);
}

static uint64_t end_of(const struct lint_subject *s, uint32_t i)
{
	const struct cairn_member *m = &s->t->members[i];

	return m->bit_size ? (m->bit_off + m->bit_size + 7) / 8
			   : m->bit_off / 8 + s->members[i].size;
}

static void look_for_holes(struct lint_subject *s, const struct lint_rule *rule)
{
	if (s->facts->first_hole)
		report_hole(s, rule, NULL, 0, s->facts->first_hole);
	for (uint32_t i = 0; i < s->t->n_members; i++) {
		uint64_t hole = s->members[i].hole, off = end_of(s, i);

		/*
		 * After the unit of a bit-field; a base class may end early. Members without bits
		 * may be declared in any order (Rust).
		 */
		if (hole && (s->t->members[i].bit_size || s->t->members[i].is_base_class) &&
		    i + 1 < s->t->n_members)
			off = s->t->members[i + 1].bit_off / 8 - hole;
		if (hole)
			report_hole(s, rule, name_of(s, i), off, hole);
	}
}

static void look_for_bits(struct lint_subject *s, const struct lint_rule *rule)
{
	for (uint32_t i = 0; i < s->t->n_members; i++) {
		const struct cairn_member *m = &s->t->members[i];
		bool last = i + 1 == s->t->n_members;
		uint32_t n = last ? s->facts->bit_padding : s->members[i].bit_hole;
		struct lint_finding f = {.rule = rule->id, .member = name_of(s, i), .why = LEAK};

		if (!m->bit_size || !n)
			continue;
		f.offset = (m->bit_off + m->bit_size) / 8;
		WHAT(&f, "%u bit%s that no bit-field has, from bit %" PRIu64 " on", n, plural(n),
		     (m->bit_off + m->bit_size) % 8);
		MEND(&f, "give them a name, or set the whole record to 0 first: fields without a "
			 "name cannot be set");
		s->report(s, &f, s->ctx);
	}
}

/* The last member is a flexible array: then the tail is where its elements begin. */
static bool ends_flexible(const struct lint_subject *s)
{
	return s->t->n_members && !s->members[s->t->n_members - 1].size;
}

static void look_for_tail(struct lint_subject *s, const struct lint_rule *rule)
{
	const struct cairn_layout_facts *facts = s->facts;
	struct lint_finding f = {.rule = rule->id, .offset = facts->size - facts->padding};

	/* A variant is as large as its enum, which ends where the largest of its variants does. */
	if (!facts->padding || s->t->is_variant)
		return;
	f.member = s->t->n_members ? name_of(s, s->t->n_members - 1) : NULL;
	if (ends_flexible(s)) {
		WHAT(&f,
		     "the flexible array begins at %" PRIu64 ", before sizeof, which is %" PRIu64,
		     f.offset, facts->size);
		f.why = "readers that add sizeof and the length of the array expect bytes that are "
			"not there, or skip the first "
			"elements";
		MEND(&f, "compute with offsetof, or put members before the array until sizeof is "
			 "its offset");
	} else {
		WHAT(&f,
		     "%" PRIu64 " byte%s of padding at the end, %" PRIu64 " without and %" PRIu64
		     " with it",
		     facts->padding, plural(facts->padding), f.offset, facts->size);
		f.why = "readers that add up the members (records of Java, Python's struct, Go's "
			"encoding/binary, packed structs) "
			"expect a shorter record, and these bytes leak like a hole";
		MEND(&f, "add a last member unsigned char _pad[%" PRIu64 "] and set it",
		     facts->padding);
	}
	s->report(s, &f, s->ctx);
}

/* ---- two ABIs ---- */

/* A struct, an array of them: the difference is inside of it. */
static bool is_of_structs(const struct lint_subject *s, uint32_t id)
{
	const struct cairn_type *t =
		cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, id));

	for (int i = 0; i < 64 && t->kind == CAIRN_T_ARRAY; i++)
		t = cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, t->ref));
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_UNION;
}

static void look_for_abi(struct lint_subject *s, const struct lint_rule *rule)
{
	const struct cairn_type *other;

	/* The layout elsewhere of a struct without all offsets would be a guess. */
	if (!s->small || s->t->is_variant || s->facts->n_unplaced || s->facts->n_unplaced_bases)
		return;
	other = cairn_types_get(s->small, cairn_types_resolve(s->small, s->id));
	for (uint32_t i = 0; i < s->t->n_members && i < other->n_members; i++) {
		const struct cairn_member *a = &s->t->members[i], *b = &other->members[i];
		uint64_t size = cairn_types_size(s->run->types, a->type),
			 small = cairn_types_size(s->small, b->type);
		struct lint_finding f = {
			.rule = rule->id, .member = name_of(s, i), .offset = a->bit_off / 8};

		if (a->bit_off == b->bit_off && size == small)
			continue;
		WHAT(&f,
		     "%" PRIu64 " byte%s at %" PRIu64 " on %s, %" PRIu64 " at %" PRIu64 " on %s",
		     size, plural(size), a->bit_off / 8, s->abi->name, small, b->bit_off / 8,
		     s->small_abi->name);
		f.why = "a BPF program is always 64-bit; a 32-bit reader that compiles the same "
			"declaration reads other bytes "
			"from here on";
		if (size != small && is_of_structs(s, a->type))
			MEND(&f, "mend its type, which has another size there");
		else if (size != small)
			MEND(&f, "use a type of one size everywhere: __u64 for long, size_t and "
				 "pointers");
		else
			MEND(&f, "put members aligned to 8 at a multiple of 8 by itself, or write "
				 "__attribute__((aligned(8)))");
		s->report(s, &f, s->ctx);
		/* The later members are elsewhere only because this one is. */
		return;
	}
	if (other->size == s->t->size)
		return;
	struct lint_finding f = {.rule = rule->id, .offset = s->t->size};
	WHAT(&f,
	     "%" PRIu64 " bytes on %s, %" PRIu64
	     " on %s, though its members are at the same offsets",
	     s->t->size, s->abi->name, other->size, s->small_abi->name);
	f.why = "the padding at the end differs: a 32-bit reader finds records of another length, "
		"and arrays of them elsewhere";
	MEND(&f, "fill the end up with a member, so that it has %" PRIu64 " bytes everywhere",
	     s->t->size);
	s->report(s, &f, s->ctx);
}

/* ---- atomics ---- */

static bool is_atomic(const struct lint_subject *s, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(s->run->types, id);

	for (int i = 0; i < 64 && t->kind >= CAIRN_T_TYPEDEF && t->kind <= CAIRN_T_ATOMIC; i++) {
		if (t->kind == CAIRN_T_ATOMIC)
			return true;
		t = cairn_types_get(s->run->types, t->ref);
	}
	return false;
}

/* The element of an array, after all dimensions. */
static uint32_t element_of(const struct lint_subject *s, uint32_t id)
{
	for (int i = 0; i < 64; i++) {
		const struct cairn_type *t =
			cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, id));

		if (t->kind != CAIRN_T_ARRAY)
			break;
		id = t->ref;
	}
	return id;
}

/*
 * True if misaligned because of the outer struct; a fault of the struct itself is reported for that
 * struct.
 */
static bool is_misaligned(const struct lint_subject *s, uint64_t offset, uint64_t size)
{
	if (s->listed && offset % size)
		return false;
	return ((s->base + offset) | s->strides) & (size - 1);
}

static void look_for_atomics(struct lint_subject *s, const struct lint_rule *rule)
{
	for (uint32_t i = 0; i < s->t->n_members; i++) {
		const struct cairn_member *m = &s->t->members[i];
		uint32_t id = element_of(s, m->type);
		const struct cairn_type *t =
			cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, id));
		bool atomic = is_atomic(s, id), word = t->size == 4 || t->size == 8;
		struct lint_finding f = {
			.rule = rule->id, .member = name_of(s, i), .offset = m->bit_off / 8};

		if (m->bit_size || m->dynamic || (!atomic && !word) ||
		    (t->kind != CAIRN_T_INT && t->kind != CAIRN_T_PTR && !atomic))
			continue;
		if (!t->size || t->size & (t->size - 1) || t->size > 16 ||
		    !is_misaligned(s, m->bit_off / 8, t->size))
			continue;
		WHAT(&f, "%" PRIu64 " bytes%s at an offset that is no multiple of %" PRIu64,
		     t->size, atomic ? ", _Atomic," : "", t->size);
		f.why = "the verifier rejects atomic operations on it (misaligned access), and on "
			"other processors they fault, tear "
			"or lock the bus";
		MEND(&f, "take packed away, or put it where its offset is a multiple of %" PRIu64,
		     t->size);
		s->report(s, &f, s->ctx);
	}
}

/* ---- cache lines ---- */

static void look_for_straddling(struct lint_subject *s, const struct lint_rule *rule)
{
	/* Elements are in many positions; a struct of at most one line is reported by itself. */
	if (s->strides || (s->outer != s->id && s->facts->size <= s->cacheline))
		return;
	for (uint32_t i = 0; i < s->t->n_members; i++) {
		uint64_t from = s->base + s->t->members[i].bit_off / 8, to = s->base + end_of(s, i);
		struct lint_finding f = {
			.rule = rule->id, .member = name_of(s, i), .offset = from - s->base};

		if (to <= from || to - from > s->cacheline ||
		    from / s->cacheline == (to - 1) / s->cacheline || is_unplaced(s, i))
			continue;
		/* An array of bytes is read from its start; a number has to be whole. */
		if (cairn_types_get(s->run->types,
				    cairn_types_resolve(s->run->types, s->t->members[i].type))
			    ->kind == CAIRN_T_ARRAY)
			continue;
		WHAT(&f, "%" PRIu64 " bytes from cache line %" PRIu64 " into the next", to - from,
		     from / s->cacheline);
		f.why = "each access loads two cache lines, though it would fit into one";
		MEND(&f,
		     "move it so that it begins at %" PRIu64 ", or before: --reorganize --weights",
		     (from / s->cacheline + 1) * s->cacheline);
		s->report(s, &f, s->ctx);
	}
}

static void look_for_lines(struct lint_subject *s, const struct lint_rule *rule)
{
	struct cairn_reorganize_opts o = {.size = sizeof(o), .size_only = true};
	struct lint_finding f = {.rule = rule->id};
	struct cairn_reorganized r;

	int rc = cairn_layout_reorganize(s->run->layout, s->id, &o, &r, NULL);
	s->no_memory |= rc == -ENOMEM;
	if (rc < 0)
		return;
	uint64_t now = (r.old_size + s->cacheline - 1) / s->cacheline,
		 then = (r.new_size + s->cacheline - 1) / s->cacheline;
	WHAT(&f, "%" PRIu64 " cache lines, %" PRIu64 " in another order (%" PRIu64 " bytes)", now,
	     then, r.new_size);
	cairn_reorganized_free(&r);
	if (then >= now)
		return;
	f.why = "holes push members into a cache line more than there has to be";
	MEND(&f, "--reorganize shows the order");
	s->report(s, &f, s->ctx);
}

const struct lint_rule layout_lint_rules[] = {
	{"offset-not-known", "members that have no fixed offset", look_for_unplaced},
	{"padding-leak", "bytes between members that no code sets", look_for_holes},
	{"bit-padding-leak", "bits between bit-fields that no code sets", look_for_bits},
	{"tail-padding", "bytes after the last member", look_for_tail},
	{"abi-differs", "members that a 32-bit reader finds elsewhere", look_for_abi},
	{"misaligned-atomic", "words that cannot be accessed atomically", look_for_atomics,
	 .placed = true},
	{"line-straddle", "members across two cache lines that would fit into one",
	 look_for_straddling, .placed = true},
	{"extra-line", "structs that have a cache line more than they need", look_for_lines,
	 .whole = true},
	{0},
};
