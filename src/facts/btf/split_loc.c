/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splitting the location data off
 *
 * An encoder makes one blob with everything; the kernel wants to load the types always, and the
 * location data only on request. Reachability decides which blob a record goes to, as in upstream's
 * resolve_btfids:
 *
 *	main   all records but FUNC, FUNC_PROTO and the LOC kinds; a FUNC that has code of its own,
 *	       or to which no site refers; a FUNC_PROTO to which no site leads; and all records that
 *	       these refer to
 *	loc    the rest: LOC records, functions that exist only as inlined copies, their prototypes
 *
 * So a struct that only an inlined function uses stays in main, and the location data is small and
 * self-contained on top of it. Records keep their order in both. Records of unknown kinds stay in
 * main, if they can (btf/opaque.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "btf/opaque.h"

enum { FROM_LOC = 1, IN_MAIN = 2 }; /* marks */

struct splitter {
	const struct cairn_btf *btf;
	uint8_t *marks;     /* by own id, from 0 */
	VEC(uint32_t) left; /* marked, but their references are not */
	uint32_t *map;
	struct cairn_btf *main; /* the new one, opened */
};

static bool is_loc(uint32_t kind)
{
	return kind >= CAIRN_BTF_LOC_PARAM && kind <= CAIRN_BTF_LOCSEC;
}

static int mark(struct splitter *s, uint32_t id, uint8_t how)
{
	if (id < s->btf->start_id || (s->marks[id - s->btf->start_id] & how))
		return 0;
	s->marks[id - s->btf->start_id] |= how;
	return VEC_ADD(&s->left, id) ? 0 : -ENOMEM;
}

/* Mark all records that the marked ones reach. */
static int spread(struct splitter *s, uint8_t how)
{
	int rc = 0;
	while (rc == 0 && s->left.n) {
		uint32_t *record = (uint32_t *)btf_record(s->btf, s->left.p[--s->left.n]), *id;
		const struct btf_shape *shape =
			btf_shape(BTF_KIND_OF(record[BTF_RECORD_INFO]), s->btf->dialect);
		if (!shape)
			continue;
		struct btf_fields f = btf_ids_of(shape, record);
		while (rc == 0 && (id = btf_next(&f)))
			rc = mark(s, *id, how);
	}
	return rc;
}

static int colour(struct splitter *s, bool (*keep_func)(void *ctx, const char *name), void *ctx)
{
	const struct cairn_btf *btf = s->btf;
	struct cairn_btf_type t;
	int rc = 0;
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++)
		if (cairn_btf_type(btf, id, &t) && is_loc(t.kind))
			rc = mark(s, id, FROM_LOC);
	if (rc == 0)
		rc = spread(s, FROM_LOC);
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++) {
		cairn_btf_type(btf, id, &t);
		bool from_loc = s->marks[id - btf->start_id] & FROM_LOC;
		bool only_loc = is_loc(t.kind) || (from_loc && t.kind == CAIRN_BTF_FUNC_PROTO) ||
				(from_loc && t.kind == CAIRN_BTF_FUNC && !keep_func(ctx, t.name));
		if (!only_loc)
			rc = mark(s, id, IN_MAIN);
	}
	return rc == 0 ? spread(s, IN_MAIN) : rc;
}

/* The records that are (or are not) in main, on @base. Their new ids are in s->map afterwards. */
static int write_part(struct splitter *s, bool main, const struct cairn_btf *base, void **ret,
		      size_t *ret_size, struct cairn_err *err)
{
	const struct cairn_btf *btf = s->btf;
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = base,
					    .dialect = btf->dialect,
					    .big_endian = btf->big_endian,
					    .layout = main && btf->layout};
	struct btf_move m = {.btf = btf, .map = s->map};
	int rc = cairn_btf_builder_new(&opts, &m.b, err);
	if (rc < 0)
		return rc;
	if (main)
		btf_builder_adopt_form(m.b, btf);
	uint32_t next = btf_builder_next_id(m.b);
	if (main && btf_has_opaque(btf))
		rc = btf_builder_adopt_strings(m.b, btf);
	if (rc < 0)
		err_set(err, rc, "no room for the strings of %s", btf->name);
	for (uint32_t id = btf->start_id; id < btf->end_id; id++)
		if (!(s->marks[id - btf->start_id] & IN_MAIN) == !main)
			s->map[id] = next++;
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++)
		if (!(s->marks[id - btf->start_id] & IN_MAIN) == !main)
			rc = btf_move_record(&m, id, err);
	if (rc == 0 && (main || next > base->end_id))
		rc = cairn_btf_finish(m.b, ret, ret_size, err);
	cairn_btf_builder_free(m.b);
	return rc;
}

static int split(struct splitter *s, bool (*keep_func)(void *ctx, const char *name), void *ctx,
		 void **main, size_t *main_size, void **loc, size_t *loc_size,
		 struct cairn_err *err)
{
	const struct cairn_btf *btf = s->btf;
	s->marks = calloc(btf->end_id - btf->start_id + 1, 1);
	s->map = calloc(btf->end_id, sizeof(*s->map));
	if (!s->marks || !s->map || colour(s, keep_func, ctx) < 0)
		return err_nomem(err, "the marks of BTF records");
	for (uint32_t id = 0; id < btf->start_id; id++)
		s->map[id] = id;
	int rc = write_part(s, true, btf->base, main, main_size, err);
	struct cairn_btf_open_opts opts = {
		.size = sizeof(opts), .base = btf->base, .dialect = btf->dialect};
	if (rc == 0)
		rc = cairn_btf_open_mem(*main, *main_size, "main BTF", &opts, &s->main, err);
	return rc < 0 ? rc : write_part(s, false, s->main, loc, loc_size, err);
}

int cairn_btf_split_loc(const struct cairn_btf *btf, bool (*keep_func)(void *ctx, const char *name),
			void *ctx, void **ret_main, size_t *ret_main_size, void **ret_loc,
			size_t *ret_loc_size, struct cairn_err *err)
{
	struct splitter s = {.btf = btf};
	void *main = NULL, *loc = NULL;
	size_t main_size = 0, loc_size = 0;
	int rc = btf_check_movable(btf, err);
	if (rc == 0)
		rc = split(&s, keep_func, ctx, &main, &main_size, &loc, &loc_size, err);
	cairn_btf_close(s.main);
	free(s.marks);
	free(s.map);
	VEC_FREE(&s.left);
	rc = btf_verdict(btf, rc, &loc, err);
	if (rc < 0) {
		free(main);
		return rc;
	}
	*ret_main = main;
	*ret_main_size = main_size;
	*ret_loc = loc;
	*ret_loc_size = loc_size;
	return 0;
}
