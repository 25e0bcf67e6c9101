/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as JSON, one line each, with the keys of "bpftool -j btf dump"; docs/json.md is the
 * contract.
 */
#include <string.h>

#include "btf.h"
#include "json.h"

/* null for an unnamed record. */
static void put_name(struct json *j, const struct cairn_btf *btf, const char *key, uint32_t off)
{
	json_text(j, key, off ? cairn_btf_string(btf, off) : NULL);
}

static const char *linkage_word(uint32_t linkage)
{
	switch (linkage) {
	case CAIRN_BTF_STATIC:
		return "static";
	case CAIRN_BTF_GLOBAL:
		return "global";
	case CAIRN_BTF_EXTERN:
		return "extern";
	default:
		return NULL;
	}
}

static void put_int(struct json *j, const struct cairn_btf_type *t)
{
	static const char *const words[] = {"(none)", "SIGNED", "CHAR", NULL, "BOOL"};
	uint32_t encoding = CAIRN_BTF_INT_ENCODING(t->words[0]);

	json_uint(j, "size", t->ref);
	json_uint(j, "bits_offset", CAIRN_BTF_INT_OFFSET(t->words[0]));
	json_uint(j, "nr_bits", CAIRN_BTF_INT_BITS(t->words[0]));
	json_text(j, "encoding",
		  encoding < sizeof(words) / sizeof(words[0]) ? words[encoding] : NULL);
}

static void put_array(struct json *j, const struct cairn_btf_type *t)
{
	json_uint(j, "type_id", t->words[0]);
	json_uint(j, "index_type_id", t->words[1]);
	json_uint(j, "nr_elems", t->words[2]);
}

static void put_members(struct json *j, const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	json_uint(j, "size", t->ref);
	json_uint(j, "vlen", t->vlen);
	json_open(j, "members", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(t, i);

		json_open(j, NULL, '{');
		put_name(j, btf, "name", m.name_off);
		json_uint(j, "type_id", m.type);
		json_uint(j, "bits_offset", m.bit_off);
		if (m.bit_size)
			json_uint(j, "bitfield_size", m.bit_size);
		json_close(j);
	}
	json_close(j);
}

static void put_enumerators(struct json *j, const struct cairn_btf *btf,
			    const struct cairn_btf_type *t)
{
	json_text(j, "encoding", t->kflag ? "SIGNED" : "UNSIGNED");
	json_uint(j, "size", t->ref);
	json_uint(j, "vlen", t->vlen);
	json_open(j, "values", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_enumerator e = cairn_btf_enumerator(t, i);

		json_open(j, NULL, '{');
		put_name(j, btf, "name", e.name_off);
		if (t->kflag)
			json_int(j, "val", e.value);
		else
			json_uint(j, "val", (uint64_t)e.value);
		json_close(j);
	}
	json_close(j);
}

static void put_params(struct json *j, const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	json_uint(j, "ret_type_id", t->ref);
	json_uint(j, "vlen", t->vlen);
	json_open(j, "params", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(t, i);

		json_open(j, NULL, '{');
		put_name(j, btf, "name", p.name_off);
		json_uint(j, "type_id", p.type);
		json_close(j);
	}
	json_close(j);
}

static void put_vars(struct json *j, const struct cairn_btf_type *t)
{
	json_uint(j, "size", t->ref);
	json_uint(j, "vlen", t->vlen);
	json_open(j, "vars", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_secinfo s = cairn_btf_secinfo(t, i);

		json_open(j, NULL, '{');
		json_uint(j, "type_id", s.type);
		json_uint(j, "offset", s.offset);
		json_uint(j, "size", s.size);
		json_close(j);
	}
	json_close(j);
}

/* ---- LOC kinds ---- */

static void put_flags(struct json *j, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *word;
	} words[] = {{CAIRN_BTF_LOC_SIGNED, "signed"}, {CAIRN_BTF_LOC_CONST, "const"},
		     {CAIRN_BTF_LOC_ADDR, "addr"},     {CAIRN_BTF_LOC_REG, "reg"},
		     {CAIRN_BTF_LOC_DEREF, "deref"},   {CAIRN_BTF_LOC_OFFSET, "offset"}};

	json_open(j, "flags", '[');
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (flags & words[i].flag)
			json_text(j, NULL, words[i].word);
	json_close(j);
}

/* "loc": as people write it; null when there is none. */
static void put_location(struct json *j, const struct cairn_btf *btf,
			 const struct cairn_btf_loc_param *p)
{
	char text[160];
	bool known = p->flags & (CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_REG);

	cairn_btf_loc_text(p, cairn_btf_machine(btf), text, sizeof(text));
	json_text(j, "loc", known ? text : NULL);
}

static void put_loc_param(struct json *j, const struct cairn_btf *btf,
			  const struct cairn_btf_type *t)
{
	struct cairn_btf_loc_param p = cairn_btf_loc_param(btf, t);

	json_uint(j, "size", p.size);
	put_flags(j, p.flags);
	json_open(j, "regs", '[');
	for (uint32_t i = 0; i < p.n_regs; i++) {
		if (p.reg[i] == CAIRN_BTF_LOC_FBREG)
			json_text(j, NULL, "fbreg");
		else
			json_uint(j, NULL, p.reg[i]);
	}
	json_close(j);
	if (p.flags & CAIRN_BTF_LOC_OFFSET)
		json_int(j, "offset", p.offset);
	if (p.flags & CAIRN_BTF_LOC_CONST && p.flags & CAIRN_BTF_LOC_SIGNED)
		json_int(j, "value", p.value);
	else if (p.flags & CAIRN_BTF_LOC_CONST)
		json_uint(j, "value", (uint64_t)p.value);
	if (p.continues)
		json_bool(j, "continues", true);
	put_location(j, btf, &p);
}

static void put_slots(struct json *j, const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	json_uint(j, "vlen", t->vlen);
	json_open(j, "params", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_loc_param p = {0};
		struct cairn_btf_type slot;

		if (cairn_btf_type(btf, t->words[i], &slot) && slot.kind == CAIRN_BTF_LOC_PARAM)
			p = cairn_btf_loc_param(btf, &slot);
		json_open(j, NULL, '{');
		json_uint(j, "type_id", t->words[i]);
		put_location(j, btf, &p);
		json_close(j);
	}
	json_close(j);
}

static void put_locs(struct json *j, const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	json_uint(j, "vlen", t->vlen);
	json_open(j, "locs", '[');
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_loc loc = cairn_btf_loc(btf, t, i);
		struct cairn_btf_type func;
		bool has_func = cairn_btf_type(btf, loc.func, &func);

		json_open(j, NULL, '{');
		put_name(j, btf, "name", has_func ? func.name_off : loc.name_off);
		if (loc.func)
			json_uint(j, "func_type_id", loc.func);
		else
			json_uint(j, "func_proto_type_id", loc.func_proto);
		json_uint(j, "loc_proto_type_id", loc.loc_proto);
		json_uint(j, "offset", loc.offset);
		json_close(j);
	}
	json_close(j);
}

/* ---- all kinds ---- */

static void put_unknown(struct json *j, const struct cairn_btf_type *t)
{
	json_uint(j, "kind_number", t->kind);
	json_bool(j, "kind_flag", t->kflag);
	json_uint(j, "vlen", t->vlen);
	json_uint(j, "size_or_type", t->ref);
	json_open(j, "words", '[');
	for (uint32_t i = 0; i < t->n_words; i++)
		json_uint(j, NULL, t->words[i]);
	json_close(j);
}

static void put_fields(struct json *j, const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_INT:
		put_int(j, t);
		return;
	case CAIRN_BTF_PTR:
	case CAIRN_BTF_TYPEDEF:
	case CAIRN_BTF_VOLATILE:
	case CAIRN_BTF_CONST:
	case CAIRN_BTF_RESTRICT:
	case CAIRN_BTF_TYPE_TAG:
		json_uint(j, "type_id", t->ref);
		return;
	case CAIRN_BTF_ARRAY:
		put_array(j, t);
		return;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		put_members(j, btf, t);
		return;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		put_enumerators(j, btf, t);
		return;
	case CAIRN_BTF_FWD:
		json_text(j, "fwd_kind", t->kflag ? "union" : "struct");
		return;
	case CAIRN_BTF_FUNC:
		json_uint(j, "type_id", t->ref);
		json_text(j, "linkage", linkage_word(t->vlen));
		return;
	case CAIRN_BTF_FUNC_PROTO:
		put_params(j, btf, t);
		return;
	case CAIRN_BTF_VAR:
		json_uint(j, "type_id", t->ref);
		json_text(j, "linkage", linkage_word(t->words[0]));
		return;
	case CAIRN_BTF_DATASEC:
		put_vars(j, t);
		return;
	case CAIRN_BTF_FLOAT:
		json_uint(j, "size", t->ref);
		return;
	case CAIRN_BTF_DECL_TAG:
		json_uint(j, "type_id", t->ref);
		json_int(j, "component_idx", (int32_t)t->words[0]);
		return;
	case CAIRN_BTF_LOC_PARAM:
		put_loc_param(j, btf, t);
		return;
	case CAIRN_BTF_LOC_PROTO:
		put_slots(j, btf, t);
		return;
	case CAIRN_BTF_LOCSEC:
		put_locs(j, btf, t);
		return;
	default:
		put_unknown(j, t);
	}
}

static void put_record(const struct cairn_btf *btf, uint32_t id)
{
	struct json j = {.out = stdout};
	struct cairn_btf_type t;

	if (!cairn_btf_type(btf, id, &t))
		return;
	json_open(&j, NULL, '{');
	json_uint(&j, "id", id);
	json_text(&j, "kind", cairn_btf_kind_name(t.kind));
	put_name(&j, btf, "name", t.name_off);
	put_fields(&j, btf, &t);
	json_close(&j);
}

void btf_json(const struct cairn_btf *btf, const uint32_t *ids, size_t n_ids)
{
	uint32_t end = cairn_btf_end_id(btf);

	for (size_t i = 0; ids && i < n_ids; i++)
		put_record(btf, ids[i]);
	for (uint32_t id = cairn_btf_start_id(btf); !ids && id < end && !ferror(stdout); id++)
		put_record(btf, id);
}
