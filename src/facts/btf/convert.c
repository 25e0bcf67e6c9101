/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converting: the same content in another form
 *
 * Unchanged parts are copied: strings keep their offsets, records their order. So a conversion to
 * the form of the input gives the input's bytes, and one that drops nothing changes no id.
 *
 * First each id gets its new one (plan): 0 for a dropped record, that of its target for a type tag
 * that is left out. Then records are copied with their ids replaced. LOC records that change their
 * dialect come last, because their number changes (convert_loc.c).
 *
 * The base of a split blob is its own base, or that base converted with the same options before.
 * The ids of that conversion are found by converting the base again, so that the caller need not
 * keep maps.
 *
 * A record of an unknown kind may hold ids and offsets that cannot be found. It is copied as long
 * as no id and no string moves, and dropped otherwise; references to it then become void.
 *
 * The downgrade (libbpf 1.1, kernels of 2022) leaves out the features that those refuse:
 *
 *	kinds above 19                dropped
 *	ENUM64                        an ENUM of the same size, without the values that need more
 *	                              than 32 bits
 *	tags with kflag (attributes)  dropped
 *	more than 65,535 elements     DATASEC: several of the same name; others: the first 65,535
 *	layout section                dropped
 *
 * For the kernel (BPF_BTF_LOAD) LOC kinds, unknown kinds and the layout section are dropped, and
 * features of other languages that it refuses are rewritten (convert_kernel.c).
 */
#include "btf/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define OLD_VLEN_MAX 0xffff

/* ---- which records stay ---- */

static bool is_loc(uint32_t kind)
{
	return kind >= CAIRN_BTF_LOC_PARAM && kind <= CAIRN_BTF_LOCSEC;
}

static bool is_attribute(const struct btf_convert *c, const struct cairn_btf_type *t)
{
	if (t->kind == CAIRN_BTF_TYPE_TAG && c->kernel)
		return c->refused_tags[t->id];
	return t->kflag && (t->kind == CAIRN_BTF_DECL_TAG || t->kind == CAIRN_BTF_TYPE_TAG);
}

/* How many records a record becomes. */
static uint32_t n_records(const struct btf_convert *c, const struct cairn_btf_type *t,
			  bool keep_unknown)
{
	if (t->kind >= CAIRN_BTF_N_KINDS)
		return keep_unknown;
	if (is_loc(t->kind))
		return c->dialect == c->btf->dialect;
	if (c->kernel)
		return !btf_kernel_refuses(c->btf, t) &&
		       !(t->kind == CAIRN_BTF_TYPE_TAG && is_attribute(c, t));
	if (!c->downgrade)
		return 1;
	if (t->kind == CAIRN_BTF_DATASEC)
		return t->vlen ? (t->vlen + OLD_VLEN_MAX - 1) / OLD_VLEN_MAX : 1;
	return !is_attribute(c, t);
}

/*
 * A type tag that was left out is replaced by its target, perhaps another one; at most as many
 * steps as there are records.
 */
static uint32_t after_tags(const struct btf_convert *c, uint32_t id)
{
	struct cairn_btf_type t;
	for (uint32_t left = c->btf->end_id; left && cairn_btf_type(c->btf, id, &t); left--) {
		if (id < c->btf->start_id || t.kind != CAIRN_BTF_TYPE_TAG || !is_attribute(c, &t))
			return c->map[id];
		id = t.ref;
	}
	return 0;
}

static void plan(struct btf_convert *c, bool keep_unknown)
{
	struct cairn_btf_type t;
	uint32_t next = c->base ? c->base->end_id : c->btf->start_id;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id; id++) {
		cairn_btf_type(c->btf, id, &t);
		uint32_t n = n_records(c, &t, keep_unknown);
		c->map[id] = n ? next : 0;
		next += n;
	}
	for (uint32_t id = c->btf->start_id; (c->downgrade || c->kernel) && id < c->btf->end_id;
	     id++) {
		cairn_btf_type(c->btf, id, &t);
		if (t.kind == CAIRN_BTF_TYPE_TAG && is_attribute(c, &t))
			c->map[id] = after_tags(c, id);
	}
}

/*
 * True if no id and no string moves, and readers of the result know the sizes of its records.
 */
static bool can_keep_unknown(const struct btf_convert *c)
{
	struct cairn_btf_type t;
	struct btf_kind_layout l;
	if (c->downgrade || c->kernel ||
	    (c->base && btf_end_string(c->base) != c->btf->start_string))
		return false;
	for (uint32_t id = 1; id < c->btf->end_id; id++)
		if (c->map[id] != id)
			return false;
	for (uint32_t id = c->btf->start_id; id < c->btf->end_id && !c->layout; id++) {
		cairn_btf_type(c->btf, id, &t);
		if (t.kind >= CAIRN_BTF_N_KINDS &&
		    (!c->base || !btf_layout_of(c->base, t.kind, &l)))
			return false;
	}
	return true;
}

/* ---- copying ---- */

/* An id that is not there stays as it is: a conversion neither repairs damage nor hides it. */
static uint32_t new_id(const struct btf_convert *c, uint32_t id)
{
	return id < c->btf->end_id ? c->map[id] : id;
}

static int convert_name(struct btf_convert *c, uint32_t kind, uint32_t off, uint32_t *ret)
{
	if (c->kernel)
		return btf_kernel_name(c, kind, off, ret);
	*ret = btf_convert_name(c, off);
	return 0;
}

/* Copies @vlen elements from the @first on. Kinds with elements that are cut have no fixed part. */
static int copy_record(struct btf_convert *c, const struct cairn_btf_type *t, uint32_t first,
		       uint32_t vlen)
{
	const struct btf_shape *shape = btf_shape(t->kind, c->btf->dialect);
	uint32_t n_words = shape ? (uint32_t)btf_n_words(shape, t->kind, vlen) : t->n_words, id;
	int rc;
	uint32_t *space = btf_add_space(c->b, t->name_off, BTF_INFO(t->kind, t->kflag, vlen),
					t->ref, n_words, &id, &rc);
	if (!space)
		return rc;
	if (n_words)
		memcpy(space, t->words + (shape ? (size_t)shape->n_elem * first : 0),
		       n_words * sizeof(*space));
	if (!shape)
		return 0;
	uint32_t *record = space - BTF_RECORD_WORDS, *p;
	for (struct btf_fields f = btf_ids_of(shape, record); (p = btf_next(&f));)
		*p = new_id(c, *p);
	for (struct btf_fields f = btf_names_of(shape, record); rc == 0 && (p = btf_next(&f));)
		rc = convert_name(c, t->kind, *p, p);
	return rc;
}

/* The values that an ENUM can say. */
static int copy_enum64(struct btf_convert *c, const struct cairn_btf_type *t)
{
	uint32_t n = 0, id, name;
	int rc = convert_name(c, t->kind, t->name_off, &name);
	for (uint32_t i = 0; i < t->vlen; i++) {
		int64_t v = cairn_btf_enumerator(t, i).value;
		n += t->kflag ? v == (int32_t)v : (uint64_t)v <= UINT32_MAX;
	}
	n = n < OLD_VLEN_MAX ? n : OLD_VLEN_MAX;
	if (rc < 0)
		return rc;
	uint32_t *w = btf_add_space(c->b, name, BTF_INFO(CAIRN_BTF_ENUM, t->kflag, n), t->ref,
				    2 * n, &id, &rc);
	for (uint32_t i = 0; w && n && rc == 0 && i < t->vlen; i++) {
		struct cairn_btf_enumerator e = cairn_btf_enumerator(t, i);
		if (t->kflag ? e.value != (int32_t)e.value : (uint64_t)e.value > UINT32_MAX)
			continue;
		rc = convert_name(c, t->kind, e.name_off, w++);
		*w++ = (uint32_t)e.value;
		n--;
	}
	c->losses.enum64s++;
	return rc;
}

/*
 * For a section only the variables that the kernel takes, and 65,535 elements at most, as kernels
 * before 7.2 count.
 */
static int copy_for_kernel(struct btf_convert *c, const struct cairn_btf_type *t)
{
	if (t->kind != CAIRN_BTF_DATASEC && btf_n_elems(t->kind, t->vlen) <= OLD_VLEN_MAX)
		return copy_record(c, t, 0, t->vlen);
	if (t->kind != CAIRN_BTF_DATASEC) {
		c->losses.wide_vlens++;
		return copy_record(c, t, 0, OLD_VLEN_MAX);
	}
	uint32_t *words = malloc((3 * (size_t)t->vlen + 1) * sizeof(*words));
	struct cairn_btf_type some = *t;
	if (!words)
		return -ENOMEM;
	some.words = words;
	some.vlen = btf_kernel_variables(c, t, words);
	c->losses.variables += t->vlen - some.vlen;
	c->losses.wide_vlens += some.vlen > OLD_VLEN_MAX;
	int rc = copy_record(c, &some, 0, some.vlen < OLD_VLEN_MAX ? some.vlen : OLD_VLEN_MAX);
	free(words);
	return rc;
}

static int copy_old(struct btf_convert *c, const struct cairn_btf_type *t)
{
	int rc = 0;
	if (t->kind == CAIRN_BTF_ENUM64)
		return copy_enum64(c, t);
	if (btf_n_elems(t->kind, t->vlen) <= OLD_VLEN_MAX)
		return copy_record(c, t, 0, t->vlen);
	c->losses.wide_vlens++;
	if (t->kind != CAIRN_BTF_DATASEC)
		return copy_record(c, t, 0, OLD_VLEN_MAX);
	for (uint32_t i = 0; rc == 0 && i < t->vlen; i += OLD_VLEN_MAX)
		rc = copy_record(c, t, i, t->vlen - i < OLD_VLEN_MAX ? t->vlen - i : OLD_VLEN_MAX);
	return rc;
}

static void count_loss(struct btf_convert *c, const struct cairn_btf_type *t)
{
	if (t->kind >= CAIRN_BTF_N_KINDS)
		c->losses.unknown_kinds++;
	else if (t->kind == CAIRN_BTF_FUNC_PROTO)
		return; /* its functions are counted */
	else if (t->kind == CAIRN_BTF_FUNC)
		c->losses.functions++;
	else if (t->kind == CAIRN_BTF_VAR)
		c->losses.variables++;
	else if (t->kind == CAIRN_BTF_DATASEC)
		c->losses.sections++;
	else if (!is_loc(t->kind))
		c->losses.tags++;
	else if (c->dialect != CAIRN_BTF_NO_LOC)
		return; /* convert_loc.c counts */
	else if (t->kind == CAIRN_BTF_LOC_PARAM)
		c->losses.loc_params++;
	else if (t->kind == CAIRN_BTF_LOC_PROTO)
		c->losses.loc_protos++;
	else
		c->losses.locsecs++, c->losses.locs += t->vlen;
}

static int copy_records(struct btf_convert *c, bool keep_unknown)
{
	struct cairn_btf_type t;
	int rc = 0;
	for (uint32_t id = c->btf->start_id; rc == 0 && id < c->btf->end_id; id++) {
		cairn_btf_type(c->btf, id, &t);
		if (!n_records(c, &t, keep_unknown))
			count_loss(c, &t);
		else
			rc = c->downgrade ? copy_old(c, &t)
			     : c->kernel  ? copy_for_kernel(c, &t)
					  : copy_record(c, &t, 0, t.vlen);
	}
	return rc;
}

/* ---- one blob, and those below it ---- */

static int convert(struct btf_convert *c, struct cairn_err *err);

static void convert_fini(struct btf_convert *c)
{
	cairn_btf_builder_free(c->b);
	btf_kernel_names_free(c->kernel_names);
	free(c->refused_tags);
	free(c->map);
}

/* The map begins with that of the bases. As deep as the caller stacked blobs. */
static int map_base(struct btf_convert *c, struct cairn_err *err)
{
	const struct cairn_btf *from = c->btf->base;
	if (!c->base != !from)
		return err_set(err, -EINVAL,
			       from ? "%s is split, but the result has no base"
				    : "%s is not split, but the result has a base",
			       c->btf->name);
	for (uint32_t id = 0; id < c->btf->start_id; id++)
		c->map[id] = id;
	if (c->base == from)
		return 0;
	struct btf_convert below = {.btf = from,
				    .base = c->base->base,
				    .dialect = c->dialect,
				    .layout = c->layout,
				    .downgrade = c->downgrade,
				    .for_kernel = c->for_kernel};
	int rc = convert(&below, err);
	if (rc == 0 && btf_builder_next_id(below.b) != c->base->end_id)
		rc = err_set(err, -EINVAL, "%s is not the result of converting %s", c->base->name,
			     from->name);
	if (rc == 0)
		memcpy(c->map, below.map, c->btf->start_id * sizeof(*c->map));
	convert_fini(&below);
	return rc;
}

/* True if header and layout of the input can stay, because the new ones would be the same. */
static bool keeps_form(const struct btf_convert *c)
{
	bool same = c->dialect == c->btf->dialect ||
		    (c->btf->dialect == CAIRN_BTF_NO_LOC && c->dialect == c->btf->layout_dialect);
	return same && !c->downgrade && !c->kernel && c->layout == (c->btf->layout != NULL);
}

static int copy_all(struct btf_convert *c)
{
	plan(c, true);
	bool keep_unknown = can_keep_unknown(c);
	if (keep_unknown)
		btf_builder_learn_kinds(c->b, c->btf);
	else
		plan(c, false);
	if (keeps_form(c))
		btf_builder_adopt_form(c->b, c->btf);
	int rc = c->kernel ? btf_kernel_names_new(c) : btf_builder_adopt_strings(c->b, c->btf);
	if (rc == 0)
		rc = copy_records(c, keep_unknown);
	if (rc == 0 && c->kernel)
		rc = btf_kernel_records(c);
	if (rc == 0 && c->btf->dialect != CAIRN_BTF_NO_LOC && c->dialect != c->btf->dialect &&
	    c->dialect != CAIRN_BTF_NO_LOC)
		rc = btf_convert_loc(c);
	return rc;
}

/* The result in c->b and c->map, also when it failed: convert_fini(). */
static int convert(struct btf_convert *c, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = c->base,
					    .dialect = c->dialect,
					    .big_endian = c->big_endian,
					    .layout = c->layout};
	/* A record that is taken as it is stays as it is, if its base does. */
	if (c->for_kernel &&
	    (c->base != c->btf->base || cairn_btf_check_for_kernel(c->btf, 0, NULL, NULL)))
		c->kernel = true;
	c->map = calloc(c->btf->end_id, sizeof(*c->map));
	c->refused_tags = c->kernel ? btf_kernel_refused_tags(c->btf) : NULL;
	if (!c->map || (c->kernel && !c->refused_tags))
		return err_nomem(err, "a map of BTF ids");
	int rc = map_base(c, err);
	if (rc == 0)
		rc = cairn_btf_builder_new(&opts, &c->b, err);
	if (rc < 0)
		return rc;
	rc = copy_all(c);
	return rc < 0 ? err_set(err, rc, "%s: no room for the result of converting it",
				c->btf->name)
		      : 0;
}

struct first_rule {
	char text[160];
	uint32_t id;
};

static void note_rule(void *ctx, uint32_t id, uint64_t off, const char *text)
{
	struct first_rule *first = ctx;
	if (first->text[0])
		return;
	first->id = id;
	snprintf(first->text, sizeof(first->text), "%s", text);
}

/* Damaged input stays damaged: it is not returned as BTF that a kernel takes. */
static int check_result(const struct btf_convert *c, void **bytes, size_t size,
			struct cairn_err *err)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = c->base};
	struct first_rule first = {.text = ""};
	struct cairn_btf *btf;
	int rc = cairn_btf_open_mem(*bytes, size, c->btf->name, &opts, &btf, err);
	if (rc == 0) {
		rc = cairn_btf_check_for_kernel(btf, 0, note_rule, &first);
		cairn_btf_close(btf);
		if (rc > 0)
			rc = err_set(err, -EOPNOTSUPP,
				     "%s: a kernel would refuse the result: record %u: %s",
				     c->btf->name, first.id, first.text);
	}
	if (rc < 0) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}

int cairn_btf_convert(const struct cairn_btf *btf, const struct cairn_btf_convert_opts *opts,
		      struct cairn_btf_losses *losses, void **ret, size_t *ret_size,
		      struct cairn_err *err)
{
	if (opts->size < sizeof(*opts))
		return err_set(err, -EINVAL, "the options for converting BTF have no size");
	struct btf_convert c = {.btf = btf,
				.base = opts->base,
				.dialect = opts->downgrade || opts->kernel ? CAIRN_BTF_NO_LOC
									   : opts->dialect,
				.layout = opts->layout && !opts->downgrade && !opts->kernel,
				.downgrade = opts->downgrade,
				.for_kernel = opts->kernel,
				.big_endian = opts->big_endian};
	int rc = convert(&c, err);
	if (rc == 0)
		rc = cairn_btf_finish(c.b, ret, ret_size, err);
	if (rc == 0 && c.for_kernel)
		rc = check_result(&c, ret, *ret_size, err);
	if (rc == 0 && losses)
		*losses = c.losses;
	convert_fini(&c);
	rc = btf_verdict(btf, rc, ret, err);
	return btf_verdict(opts->base, rc, ret, err);
}
