/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as "bpftool btf dump" prints them, byte for byte for the kinds it knows
 *
 * Scripts read that text, and a dump can be compared with bpftool's by diff. LOC kinds:
 * docs/formats/btf-loc.md. A kind that is not known is shown with all its words.
 */
#include "btf/dump.h"

#include <errno.h>
#include <inttypes.h>

#include "base/quote.h"

struct raw {
	const struct cairn_btf *btf;
	FILE *out;
	int machine;
	bool pretty;
};

/* A name must not make up lines or talk to the terminal. */
static void put_name(const struct raw *r, const char *name)
{
	putc_unlocked('\'', r->out);
	cairn_quote_put(name, CAIRN_QUOTE_TEXT, r->out);
	putc_unlocked('\'', r->out);
}

static void put_string(const struct raw *r, uint32_t off)
{
	const char *name = off ? cairn_btf_string(r->btf, off) : "(anon)";

	put_name(r, name ? name : "(invalid)");
}

static void put_members(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, " size=%" PRIu32 " vlen=%" PRIu32, t->ref, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(t, i);

		fputs("\n\t", r->out);
		put_string(r, m.name_off);
		fprintf(r->out, " type_id=%" PRIu32 " bits_offset=%" PRIu32, m.type, m.bit_off);
		if (m.bit_size)
			fprintf(r->out, " bitfield_size=%" PRIu32, m.bit_size);
	}
}

static void put_enumerators(const struct raw *r, const struct cairn_btf_type *t)
{
	const char *suffix = t->kind == CAIRN_BTF_ENUM ? "" : t->kflag ? "LL" : "ULL";

	fprintf(r->out, " encoding=%s size=%" PRIu32 " vlen=%" PRIu32,
		t->kflag ? "SIGNED" : "UNSIGNED", t->ref, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_enumerator e = cairn_btf_enumerator(t, i);

		fputs("\n\t", r->out);
		put_string(r, e.name_off);
		if (t->kflag)
			fprintf(r->out, " val=%" PRId64 "%s", e.value, suffix);
		else
			fprintf(r->out, " val=%" PRIu64 "%s", (uint64_t)e.value, suffix);
	}
}

static void put_params(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, " ret_type_id=%" PRIu32 " vlen=%" PRIu32, t->ref, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(t, i);

		fputs("\n\t", r->out);
		put_string(r, p.name_off);
		fprintf(r->out, " type_id=%" PRIu32, p.type);
	}
}

static void put_vars(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, " size=%" PRIu32 " vlen=%" PRIu32, t->ref, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_secinfo s = cairn_btf_secinfo(t, i);
		struct cairn_btf_type var;

		fprintf(r->out, "\n\ttype_id=%" PRIu32 " offset=%" PRIu32 " size=%" PRIu32, s.type,
			s.offset, s.size);
		if (!cairn_btf_type(r->btf, s.type, &var))
			continue;
		fprintf(r->out, " (%s ", btf_kind_name(var.kind));
		put_string(r, var.name_off);
		putc_unlocked(')', r->out);
	}
}

/* ---- LOC kinds ---- */

static bool is_v1(const struct raw *r, const struct cairn_btf_type *t)
{
	return btf_owner(r->btf, t->id)->dialect == CAIRN_BTF_LOC_V1;
}

static void put_location(const struct raw *r, const struct cairn_btf_loc_param *p)
{
	char text[DUMP_LOC_MAX];

	if (r->pretty)
		cairn_btf_loc_text(p, r->machine, text, sizeof(text));
	else
		dump_loc(p, text, sizeof(text));
	fprintf(r->out, "'%s'", text);
}

/* The words as they are: a register number and flags are shown even when they make no sense. */
static void put_v1_loc_param(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, " size=%" PRId32, (int32_t)t->ref);
	struct cairn_btf_loc_param p = cairn_btf_loc_param(r->btf, t);

	if (r->pretty) {
		fputs(" value=", r->out);
		put_location(r, &p);
	} else if (!t->kflag) {
		fprintf(r->out, " reg=%" PRIu32 " flags=0x%" PRIx32 " offset=%" PRId32,
			t->words[0] & 0xffff, t->words[0] >> 16, (int32_t)t->words[1]);
	} else if (p.flags & CAIRN_BTF_LOC_SIGNED) {
		fprintf(r->out, " value=%" PRId64, p.value);
	} else {
		fprintf(r->out, " value=%" PRIu64, (uint64_t)p.value);
	}
}

static void put_loc_param(const struct raw *r, const struct cairn_btf_type *t)
{
	if (is_v1(r, t)) {
		put_v1_loc_param(r, t);
		return;
	}
	struct cairn_btf_loc_param p = cairn_btf_loc_param(r->btf, t);

	fprintf(r->out, " size=%" PRIu32 " flags=0x%" PRIx32 " vlen=%" PRIu32 " values=", t->ref,
		t->words[0], t->vlen);
	put_location(r, &p);
}

/* The content of a slot of a LOC_PROTO: 0, and an id that is no LOC_PARAM, is no location. */
static struct cairn_btf_loc_param slot(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;

	if (!cairn_btf_type(btf, id, &t) || t.kind != CAIRN_BTF_LOC_PARAM)
		return (struct cairn_btf_loc_param){0};
	return cairn_btf_loc_param(btf, &t);
}

static void put_loc_proto(const struct raw *r, const struct cairn_btf_type *t)
{
	bool v1 = is_v1(r, t);

	fprintf(r->out, " vlen=%" PRIu32, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_loc_param p = slot(r->btf, t->words[i]);

		fprintf(r->out, v1 ? "\n\t type_id=%" PRIu32 : "\n\ttype_id=%" PRIu32, t->words[i]);
		if (v1 && !r->pretty)
			continue;
		fputs(" value=", r->out);
		put_location(r, &p);
	}
}

static void put_v1_loc(const struct raw *r, const struct cairn_btf_loc *loc)
{
	fputs("\n\t ", r->out);
	put_string(r, loc->name_off);
	fprintf(r->out,
		" func_proto_type_id=%" PRIu32 " loc_proto_type_id=%" PRIu32 " offset=%" PRIu32,
		loc->func_proto, loc->loc_proto, loc->offset);
}

static void put_n_loc(const struct raw *r, const struct cairn_btf_loc *loc)
{
	struct cairn_btf_type func;

	fputs("\n\tname=", r->out);
	if (cairn_btf_type(r->btf, loc->func, &func))
		put_string(r, func.name_off);
	else
		fputs("'(invalid)'", r->out);
	fprintf(r->out, " func_type_id=%" PRIu32 " loc_proto_type_id=%" PRIu32 " offset=%" PRIu32,
		loc->func, loc->loc_proto, loc->offset);
}

static void put_locsec(const struct raw *r, const struct cairn_btf_type *t)
{
	bool v1 = is_v1(r, t);

	fprintf(r->out, " vlen=%" PRIu32, t->vlen);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_loc loc = cairn_btf_loc(r->btf, t, i);

		if (v1)
			put_v1_loc(r, &loc);
		else
			put_n_loc(r, &loc);
	}
}

/* ---- all kinds ---- */

static const char *encoding_word(uint32_t encoding)
{
	switch (encoding) {
	case 0:
		return "(none)";
	case CAIRN_BTF_INT_SIGNED:
		return "SIGNED";
	case CAIRN_BTF_INT_CHAR:
		return "CHAR";
	case CAIRN_BTF_INT_BOOL:
		return "BOOL";
	default:
		return "UNKN";
	}
}

/* For functions and variables. */
static const char *linkage_word(uint32_t linkage)
{
	static const char *const words[] = {"static", "global", "extern"};

	return linkage < sizeof(words) / sizeof(words[0]) ? words[linkage] : "(unknown)";
}

static void put_unknown(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, " kind=%" PRIu32 " kind_flag=%d vlen=%" PRIu32 " size_or_type=%" PRIu32,
		t->kind, t->kflag, t->vlen, t->ref);
	for (uint32_t i = 0; i < t->n_words; i++)
		fprintf(r->out, "%s0x%08" PRIx32, i % 8 ? " " : "\n\t", t->words[i]);
}

static void put_fields(const struct raw *r, const struct cairn_btf_type *t)
{
	FILE *out = r->out;

	switch (t->kind) {
	case CAIRN_BTF_INT:
		fprintf(out, " size=%" PRIu32 " bits_offset=%u nr_bits=%u encoding=%s", t->ref,
			CAIRN_BTF_INT_OFFSET(t->words[0]), CAIRN_BTF_INT_BITS(t->words[0]),
			encoding_word(CAIRN_BTF_INT_ENCODING(t->words[0])));
		return;
	case CAIRN_BTF_PTR:
	case CAIRN_BTF_TYPEDEF:
	case CAIRN_BTF_VOLATILE:
	case CAIRN_BTF_CONST:
	case CAIRN_BTF_RESTRICT:
	case CAIRN_BTF_TYPE_TAG:
		fprintf(out, " type_id=%" PRIu32, t->ref);
		return;
	case CAIRN_BTF_ARRAY:
		fprintf(out, " type_id=%" PRIu32 " index_type_id=%" PRIu32 " nr_elems=%" PRIu32,
			t->words[0], t->words[1], t->words[2]);
		return;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		put_members(r, t);
		return;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		put_enumerators(r, t);
		return;
	case CAIRN_BTF_FWD:
		fprintf(out, " fwd_kind=%s", t->kflag ? "union" : "struct");
		return;
	case CAIRN_BTF_FUNC:
		fprintf(out, " type_id=%" PRIu32 " linkage=%s", t->ref, linkage_word(t->vlen));
		return;
	case CAIRN_BTF_FUNC_PROTO:
		put_params(r, t);
		return;
	case CAIRN_BTF_VAR:
		fprintf(out, " type_id=%" PRIu32 ", linkage=%s", t->ref, linkage_word(t->words[0]));
		return;
	case CAIRN_BTF_DATASEC:
		put_vars(r, t);
		return;
	case CAIRN_BTF_FLOAT:
		fprintf(out, " size=%" PRIu32, t->ref);
		return;
	case CAIRN_BTF_DECL_TAG:
		fprintf(out, " type_id=%" PRIu32 " component_idx=%" PRId32, t->ref,
			(int32_t)t->words[0]);
		return;
	case CAIRN_BTF_LOC_PARAM:
		put_loc_param(r, t);
		return;
	case CAIRN_BTF_LOC_PROTO:
		put_loc_proto(r, t);
		return;
	case CAIRN_BTF_LOCSEC:
		put_locsec(r, t);
		return;
	default:
		put_unknown(r, t);
	}
}

static void put_record(const struct raw *r, const struct cairn_btf_type *t)
{
	fprintf(r->out, "[%" PRIu32 "] %s ", t->id, btf_kind_name(t->kind));
	put_string(r, t->name_off);
	put_fields(r, t);
	putc_unlocked('\n', r->out);
}

int dump_raw(const struct dump *d, bool pretty, struct cairn_err *err)
{
	struct raw r = {.btf = d->btf, .out = d->out, .machine = d->machine, .pretty = pretty};
	size_t n = d->ids ? d->n_ids : d->btf->end_id - d->btf->start_id;
	struct cairn_btf_type t;

	for (size_t i = 0; i < n && !ferror(d->out); i++) {
		uint32_t id = d->ids ? d->ids[i] : d->btf->start_id + (uint32_t)i;

		if (!cairn_btf_type(d->btf, id, &t))
			return err_set(err, -ENOENT, "%s: no record %" PRIu32, d->btf->name, id);
		put_record(&r, &t);
	}
	return 0;
}
