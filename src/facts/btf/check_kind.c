/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of each kind: the values allowed for its flag, vlen, name, sizes and references. */
#include <ctype.h>
#include <string.h>

#include <cairn/text.h>

#include "btf/check.h"

/* Up to Linux 7.1 vlen had 16 bits. */
#define OLD_VLEN_MAX 0xffff

/* ---- names ---- */

bool btf_is_kernel_name(const char *name)
{
	if (!*name || strlen(name) > BTF_KERNEL_NAME_MAX || isdigit((unsigned char)*name))
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.')
			return false;
	return true;
}

static bool is_printable(const char *name)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return true;
}

/* TEXT need be no identifier for the kernel: 'unsigned int'. */
enum name_rule { NAME_NONE, NAME_MAYBE, NAME_MAYBE_TEXT, NAME_MUST, NAME_MUST_TEXT };

static void check_name(struct btf_check *c, const struct cairn_btf_type *t, const char *whose,
		       uint32_t off, enum name_rule rule)
{
	const char *kind = btf_kind_name(t->kind), *name = cairn_btf_string(c->btf, off);
	if (!name)
		btf_broken(c, t->id, "%s: %s name is at %u, after the strings", kind, whose, off);
	else if (rule == NAME_NONE && off)
		btf_broken(c, t->id, "%s: %s name is '%.60s', but it has none", kind, whose, name);
	else if (rule >= NAME_MUST && !*name)
		btf_broken(c, t->id, "%s: %s name is missing", kind, whose);
	else if (!is_printable(name))
		btf_broken(c, t->id, "%s: %s name at %u has control characters", kind, whose, off);
	else if (c->kernel && off && rule != NAME_MAYBE_TEXT && rule != NAME_MUST_TEXT &&
		 !btf_is_kernel_name(name))
		btf_broken(c, t->id, "%s: %s name '%.60s' is no C identifier", kind, whose, name);
}

/* ---- kind by kind ---- */

static void check_int(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint32_t word = t->words[0], encoding = CAIRN_BTF_INT_ENCODING(word);
	uint32_t bits = CAIRN_BTF_INT_OFFSET(word) + CAIRN_BTF_INT_BITS(word);
	if (word & 0xf0000000 || word & 0x0000ff00)
		btf_broken(c, t->id, "INT: word 0x%x has bits that mean nothing", word);
	if (encoding & (encoding - 1))
		btf_broken(c, t->id, "INT: it has more than one of signed, char and bool (0x%x)",
			   encoding);
	if (bits > 128 || (bits + 7) / 8 > t->ref)
		btf_broken(c, t->id, "INT: %s %s not fit in %s", cairn_counted(bits, "bit").text,
			   bits == 1 ? "does" : "do", cairn_counted(t->ref, "byte").text);
}

static void check_array(struct btf_check *c, const struct cairn_btf_type *t)
{
	btf_check_ref(c, t, "element", t->words[0], KINDS_VALUE);
	btf_check_ref(c, t, "index type", t->words[1], KINDS_VALUE);
	if (t->ref)
		btf_broken(c, t->id, "ARRAY: its third word is %u, not 0", t->ref);
}

static void check_members(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint32_t last = 0;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(t, i);
		check_name(c, t, "a member's", m.name_off, NAME_MAYBE);
		btf_check_ref(c, t, "a member's type", m.type, KINDS_VALUE);
		if (t->kind == CAIRN_BTF_UNION && m.bit_off)
			btf_broken(c, t->id, "UNION: member %u has offset %u", i, m.bit_off);
		if (((uint64_t)m.bit_off + m.bit_size + 7) / 8 > t->ref)
			btf_broken(c, t->id, "%s: member %u at bit %u is outside its %s",
				   btf_kind_name(t->kind), i, m.bit_off,
				   cairn_counted(t->ref, "byte").text);
		if (c->kernel && m.bit_off < last)
			btf_broken(c, t->id, "%s: member %u comes before its predecessor",
				   btf_kind_name(t->kind), i);
		last = m.bit_off;
	}
}

static void check_enum(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (!t->ref || t->ref > 8 || (t->ref & (t->ref - 1)))
		btf_broken(c, t->id, "%s: %s; it has 1, 2, 4 or 8", btf_kind_name(t->kind),
			   cairn_counted(t->ref, "byte").text);
	for (uint32_t i = 0; i < t->vlen; i++)
		check_name(c, t, "a value's", cairn_btf_enumerator(t, i).name_off, NAME_MUST);
}

static void check_func_proto(struct btf_check *c, const struct cairn_btf_type *t)
{
	btf_check_ref(c, t, "return type", t->ref, KINDS_TYPE & ~KIND(FWD) & ~KIND(FUNC_PROTO));
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(t, i);
		check_name(c, t, "a parameter's", p.name_off, NAME_MAYBE);
		bool dots = !p.type && i + 1 == t->vlen;
		if (dots && p.name_off)
			btf_broken(c, t->id, "FUNC_PROTO: '...' has a name");
		else if (!dots)
			btf_check_ref(c, t, "a parameter's type", p.type, KINDS_VALUE | KIND(FWD));
	}
}

/* The kernel identifies arguments by name; '...' has none. */
static void check_argument_names(struct btf_check *c, const struct cairn_btf_type *t)
{
	struct cairn_btf_type proto;
	/* A record of a kind that is not known is taken for anything. */
	if (!cairn_btf_type(c->btf, t->ref, &proto) || proto.kind != CAIRN_BTF_FUNC_PROTO)
		return;
	for (uint32_t i = 0; i < proto.vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(&proto, i);
		if (p.type && !p.name_off)
			btf_broken(c, t->id, "FUNC: parameter %u has no name", i);
	}
}

static void check_func(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (t->vlen > CAIRN_BTF_EXTERN || (c->kernel && t->vlen > CAIRN_BTF_GLOBAL))
		btf_broken(c, t->id, "FUNC: linkage %u", t->vlen);
	if (btf_check_ref(c, t, "prototype", t->ref, KIND(FUNC_PROTO)) && c->kernel)
		check_argument_names(c, t);
}

static void check_var(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (t->words[0] > CAIRN_BTF_EXTERN || (c->kernel && t->words[0] > CAIRN_BTF_GLOBAL))
		btf_broken(c, t->id, "VAR: linkage %u", t->words[0]);
	btf_check_ref(c, t, "type", t->ref, KINDS_VALUE | (c->kernel ? 0 : KIND(FWD)));
}

static bool all_at_start(const struct cairn_btf_type *t)
{
	for (uint32_t i = 0; i < t->vlen; i++)
		if (cairn_btf_secinfo(t, i).offset)
			return false;
	return true;
}

static void check_datasec(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint64_t end = 0;
	/* Clang leaves the sizes to the linker or loader. */
	bool unlinked = !t->ref && t->vlen && all_at_start(t);
	if (unlinked && c->kernel)
		btf_broken(c, t->id, "DATASEC: it has no size before the object is linked");
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_secinfo v = cairn_btf_secinfo(t, i);
		btf_check_ref(c, t, "a variable", v.type, KIND(VAR) | (c->kernel ? 0 : KIND(FUNC)));
		if (unlinked)
			continue;
		if ((uint64_t)v.offset + v.size > t->ref)
			btf_broken(c, t->id, "DATASEC: variable %u at %u ends after its %s", i,
				   v.offset, cairn_counted(t->ref, "byte").text);
		if (c->kernel && (v.offset < end || !v.size))
			btf_broken(c, t->id,
				   "DATASEC: variable %u is empty or overlaps the one before", i);
		end = (uint64_t)v.offset + v.size;
	}
}

static void check_float(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint32_t n = t->ref;
	if (n != 2 && n != 4 && n != 8 && n != 12 && n != 16)
		btf_broken(c, t->id, "FLOAT: %s; it has 2, 4, 8, 12 or 16",
			   cairn_counted(n, "byte").text);
}

/* The number of components that a declaration tag may number in its target. */
static uint32_t n_components(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;
	if (cairn_btf_type(btf, id, &t) && t.kind == CAIRN_BTF_FUNC &&
	    !cairn_btf_type(btf, t.ref, &t))
		return 0;
	return (KIND(STRUCT) | KIND(UNION) | KIND(FUNC_PROTO)) >> t.kind & 1 ? t.vlen : 0;
}

static void check_decl_tag(struct btf_check *c, const struct cairn_btf_type *t)
{
	int32_t component = (int32_t)t->words[0];
	uint64_t targets = KIND(STRUCT) | KIND(UNION) | KIND(FUNC) | KIND(VAR) | KIND(TYPEDEF);
	if (!btf_check_ref(c, t, "target", t->ref, targets))
		return;
	if (component < -1 ||
	    (component >= 0 && (uint32_t)component >= n_components(c->btf, t->ref)))
		btf_broken(c, t->id, "DECL_TAG: component %d of a target that has %u", component,
			   n_components(c->btf, t->ref));
}

/* The kernel follows no more qualifiers than this (and takes more for a loop). */
#define KERNEL_CHAIN_MAX 100

/* Up to Linux 7.1 type tags come directly after the pointer, before all qualifiers. */
static void check_tag_order(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint64_t modifiers =
		KIND(TYPEDEF) | KIND(VOLATILE) | KIND(CONST) | KIND(RESTRICT) | KIND(TYPE_TAG);
	bool in_tags = t->kind == CAIRN_BTF_TYPE_TAG,
	     ordered = btf_kernel_before(c, BTF_LINUX_TAG_ORDER);
	struct cairn_btf_type at = *t;
	for (int left = KERNEL_CHAIN_MAX; at.kind < CAIRN_BTF_N_KINDS && modifiers >> at.kind & 1;
	     left--) {
		if (!left || (at.kind == CAIRN_BTF_TYPE_TAG && !in_tags && ordered)) {
			btf_broken(c, t->id,
				   left ? "%s: a type tag after qualifiers; kernels take it from "
					  "Linux 7.2 on"
					: "%s: more than 100 qualifiers, or a loop",
				   btf_kind_name(t->kind));
			return;
		}
		in_tags &= at.kind == CAIRN_BTF_TYPE_TAG;
		if (!cairn_btf_type(c->btf, at.ref, &at))
			return;
	}
}

static void check_ref(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (btf_check_ref(c, t, "type", t->ref, KINDS_TYPE) && c->kernel &&
	    t->kind != CAIRN_BTF_PTR)
		check_tag_order(c, t);
}

static void check_fwd(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (t->ref)
		btf_broken(c, t->id, "FWD: its third word is %u, not 0", t->ref);
}

/* ---- the table ---- */

static const struct kind_rules {
	enum name_rule name;
	bool may_flag; /* kflag may be 1 */
	bool counts;   /* vlen means something */
	void (*check)(struct btf_check *c, const struct cairn_btf_type *t);
} rules[CAIRN_BTF_N_KINDS] = {
	[CAIRN_BTF_INT] = {NAME_MAYBE_TEXT, .check = check_int},
	[CAIRN_BTF_PTR] = {NAME_NONE, .check = check_ref},
	[CAIRN_BTF_ARRAY] = {NAME_NONE, .check = check_array},
	[CAIRN_BTF_STRUCT] = {NAME_MAYBE, true, true, check_members},
	[CAIRN_BTF_UNION] = {NAME_MAYBE, true, true, check_members},
	[CAIRN_BTF_ENUM] = {NAME_MAYBE, true, true, check_enum},
	[CAIRN_BTF_FWD] = {NAME_MUST, true, .check = check_fwd},
	[CAIRN_BTF_TYPEDEF] = {NAME_MUST, .check = check_ref},
	[CAIRN_BTF_VOLATILE] = {NAME_NONE, .check = check_ref},
	[CAIRN_BTF_CONST] = {NAME_NONE, .check = check_ref},
	[CAIRN_BTF_RESTRICT] = {NAME_NONE, .check = check_ref},
	[CAIRN_BTF_FUNC] = {NAME_MUST, .counts = true, .check = check_func},
	[CAIRN_BTF_FUNC_PROTO] = {NAME_NONE, .counts = true, .check = check_func_proto},
	[CAIRN_BTF_VAR] = {NAME_MUST, .check = check_var},
	[CAIRN_BTF_DATASEC] = {NAME_MUST_TEXT, .counts = true, .check = check_datasec},
	[CAIRN_BTF_FLOAT] = {NAME_MAYBE_TEXT, .check = check_float},
	[CAIRN_BTF_DECL_TAG] = {NAME_MUST_TEXT, true, .check = check_decl_tag},
	[CAIRN_BTF_TYPE_TAG] = {NAME_MUST_TEXT, true, .check = check_ref},
	[CAIRN_BTF_ENUM64] = {NAME_MAYBE, true, true, check_enum},
	[CAIRN_BTF_LOC_PARAM] = {NAME_NONE, true, true, btf_check_loc_record},
	[CAIRN_BTF_LOC_PROTO] = {NAME_NONE, .counts = true, .check = btf_check_loc_record},
	[CAIRN_BTF_LOCSEC] = {NAME_MUST_TEXT, .counts = true, .check = btf_check_loc_record},
};

/* The features of a record that kernels accept only since some version. */
static void check_by_version(struct btf_check *c, const struct cairn_btf_type *t)
{
	const char *kind = btf_kind_name(t->kind);
	bool is_tag = t->kind == CAIRN_BTF_DECL_TAG || t->kind == CAIRN_BTF_TYPE_TAG;
	if (t->vlen > OLD_VLEN_MAX && btf_kernel_before(c, BTF_LINUX_WIDE_VLEN))
		btf_broken(c, t->id,
			   "%s: %u elements; kernels take more than 65535 from Linux 7.2 on", kind,
			   t->vlen);
	if (is_tag && t->kflag && btf_kernel_before(c, BTF_LINUX_ATTRIBUTES))
		btf_broken(c, t->id, "%s: an attribute; kernels take it from Linux 6.15 on", kind);
	if (t->kind == CAIRN_BTF_DATASEC && !btf_is_kernel_name(t->name) &&
	    btf_kernel_before(c, BTF_LINUX_SECTION_NAMES))
		btf_broken(c, t->id, "%s: the name '%.60s'; kernels take it from Linux 6.9 on",
			   kind, t->name);
}

void btf_check_record(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (t->kind >= CAIRN_BTF_N_KINDS) {
		if (c->kernel)
			btf_broken(c, t->id, "kind %u is not known", t->kind);
		return;
	}
	const struct kind_rules *rule = &rules[t->kind];
	check_name(c, t, "its", t->name_off, rule->name);
	if (t->kflag && !rule->may_flag)
		btf_broken(c, t->id, "%s: the flag in its info means nothing",
			   btf_kind_name(t->kind));
	if (t->vlen && !rule->counts)
		btf_broken(c, t->id, "%s: vlen %u means nothing", btf_kind_name(t->kind), t->vlen);
	if (c->kernel)
		check_by_version(c, t);
	rule->check(c, t);
}
