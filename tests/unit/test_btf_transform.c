/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting, splitting the location data off, distilling a base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"
#include "workspace.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static struct cairn_btf *kernel(void)
{
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	if (cairn_btf_open(KERNEL_BTF, NULL, &btf, &err) < 0) {
		print_message("%s\n", err.msg);
		return NULL;
	}
	return btf;
}

static struct blob opened(void *bytes, size_t size, const struct cairn_btf *base)
{
	return (struct blob){bytes, size, must_open_mem(bytes, size, base)};
}

/* ---- sort ---- */

static struct blob sort(const struct cairn_btf *btf, uint32_t *map)
{
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	if (cairn_btf_sort(btf, map, &bytes, &size, &err) < 0)
		fail_msg("%s", err.msg);
	return opened(bytes, size, cairn_btf_base(btf));
}

static void assert_sorted(const struct cairn_btf *btf)
{
	struct cairn_btf_type t, last = {.name = ""};
	for (uint32_t id = cairn_btf_start_id(btf); cairn_btf_type(btf, id, &t); id++) {
		int order = strcmp(last.name, t.name);
		assert_true(order < 0 || (order == 0 && last.kind <= t.kind));
		last = t;
	}
}

static void sorted_kernel_has_the_same_types_in_the_order_of_names(void **state)
{
	struct cairn_btf *btf = kernel();
	struct cairn_btf_type x, y;
	if (!btf)
		skip();
	uint32_t *map = calloc(cairn_btf_end_id(btf), sizeof(*map));
	struct blob sorted = sort(btf, map), again = sort(sorted.btf, NULL);
	assert_sorted(sorted.btf);
	assert_int_equal(again.size, sorted.size);
	assert_memory_equal(again.bytes, sorted.bytes, again.size);
	assert_int_equal(sorted.size, btf->map_size);
	assert_int_equal(cairn_btf_check(sorted.btf, NULL, NULL), 0);
	for (uint32_t id = 1; cairn_btf_type(btf, id, &x); id++) {
		y = must_have(sorted.btf, map[id - 1]);
		assert_int_equal(x.kind, y.kind);
		assert_string_equal(x.name, y.name);
		if (x.kind == CAIRN_BTF_STRUCT && x.vlen) {
			uint32_t member = cairn_btf_member(&x, 0).type;
			assert_int_equal(cairn_btf_member(&y, 0).type, map[member - 1]);
		}
	}
	blob_free(&again);
	blob_free(&sorted);
	free(map);
	cairn_btf_close(btf);
}

static void sites_are_sorted_by_the_new_ids(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint32_t proto = ADD(func_proto, b, 0, NULL, 0);
	uint32_t z = ADD(func, b, str(b, "z"), CAIRN_BTF_STATIC, proto);
	uint32_t a = ADD(func, b, str(b, "a"), CAIRN_BTF_STATIC, proto);
	struct cairn_btf_loc locs[] = {
		{.func = z, .offset = 1}, {.func = a, .offset = 9}, {.func = a, .offset = 2}};
	ADD(locsec, b, str(b, ".text"), locs, 3);
	struct blob in = finish(b, NULL), out = sort(in.btf, NULL);
	assert_sorted(out.btf);
	struct cairn_btf_type t = must_have(out.btf, cairn_btf_find(out.btf, ".text", 0, 0));
	assert_string_equal(must_have(out.btf, cairn_btf_loc(out.btf, &t, 0).func).name, "a");
	assert_int_equal(cairn_btf_loc(out.btf, &t, 0).offset, 2);
	assert_int_equal(cairn_btf_loc(out.btf, &t, 1).offset, 9);
	assert_string_equal(must_have(out.btf, cairn_btf_loc(out.btf, &t, 2).func).name, "z");
	blob_free(&out);
	blob_free(&in);
}

/* ---- split ---- */

static bool keep_visit(void *ctx, const char *name)
{
	return !strcmp(name, "visit");
}

struct parts {
	struct blob main, loc;
};

static struct parts split(const struct cairn_btf *btf, bool (*keep)(void *ctx, const char *name))
{
	struct cairn_err err = {0};
	void *main, *loc;
	size_t main_size, loc_size;
	struct parts p = {0};
	if (cairn_btf_split_loc(btf, keep, NULL, &main, &main_size, &loc, &loc_size, &err) < 0)
		fail_msg("%s", err.msg);
	p.main = opened(main, main_size, cairn_btf_base(btf));
	if (loc)
		p.loc = opened(loc, loc_size, p.main.btf);
	return p;
}

static void parts_free(struct parts *p)
{
	blob_free(&p->loc);
	blob_free(&p->main);
}

/* Kept out of line: visit. Only inlined: gone, which takes a struct that nobody else uses. */
static struct blob with_inlined(enum cairn_btf_dialect dialect)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = dialect, .layout = true});
	uint32_t visit = add_each_kind(b, true);
	struct cairn_btf_member m = {str(b, "x"), 1, 0, 0};
	uint32_t s = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "only_inlined"), 4, &m, 1);
	struct cairn_btf_param p = {str(b, "arg"), ADD(ref, b, CAIRN_BTF_PTR, 0, s)};
	uint32_t proto = ADD(func_proto, b, 0, &p, 1);
	uint32_t gone = ADD(func, b, str(b, "gone"), CAIRN_BTF_STATIC, proto);
	uint32_t unused = ADD(func, b, str(b, "unused"), CAIRN_BTF_STATIC, proto);
	struct cairn_btf_loc locs[] = {
		{.func = gone, .offset = 7, .name_off = str(b, "gone"), .func_proto = proto},
		{.func = visit, .offset = 6, .name_off = str(b, "visit"), .func_proto = proto}};
	ADD(locsec, b, str(b, ".init.text"), locs, 2);
	assert_true(unused > gone);
	return finish(b, NULL);
}

static void only_what_is_inlined_leaves_the_main_blob(void **state)
{
	struct cairn_btf_type t;
	struct blob in = with_inlined(CAIRN_BTF_LOC_N);
	struct parts p = split(in.btf, keep_visit);
	for (uint32_t id = 1; cairn_btf_type(p.main.btf, id, &t); id++)
		assert_true(t.kind < CAIRN_BTF_LOC_PARAM);
	assert_int_not_equal(cairn_btf_find(p.main.btf, "visit", CAIRN_BTF_FUNC, 0), 0);
	assert_int_not_equal(cairn_btf_find(p.main.btf, "only_inlined", 0, 0), 0);
	assert_int_not_equal(cairn_btf_find(p.main.btf, "unused", CAIRN_BTF_FUNC, 0), 0);
	assert_int_equal(cairn_btf_find(p.main.btf, "gone", 0, 0), 0);
	assert_true(cairn_btf_has_layout(p.main.btf));
	assert_false(cairn_btf_has_layout(p.loc.btf));
	assert_int_equal(cairn_btf_dialect(p.loc.btf), CAIRN_BTF_LOC_N);
	t = must_have(p.loc.btf, cairn_btf_find(p.loc.btf, ".init.text", CAIRN_BTF_LOCSEC, 0));
	/* Sorted by id: visit is in the main blob and so comes first. */
	assert_string_equal(must_have(p.loc.btf, cairn_btf_loc(p.loc.btf, &t, 0).func).name,
			    "visit");
	assert_string_equal(must_have(p.loc.btf, cairn_btf_loc(p.loc.btf, &t, 1).func).name,
			    "gone");
	assert_int_equal(cairn_btf_check(p.main.btf, NULL, NULL), 0);
	assert_int_equal(cairn_btf_check(p.loc.btf, NULL, NULL), 0);
	parts_free(&p);
	blob_free(&in);
}

static void without_location_data_there_is_nothing_to_split_off(void **state)
{
	struct blob in = each_kind((struct cairn_btf_build_opts){0});
	struct parts p = split(in.btf, keep_visit);
	assert_null(p.loc.bytes);
	assert_int_equal(cairn_btf_end_id(p.main.btf), cairn_btf_end_id(in.btf));
	parts_free(&p);
	blob_free(&in);
}

static void v1_splits_too_on_a_module_of_a_kernel(void **state)
{
	struct blob base = each_kind((struct cairn_btf_build_opts){.layout = true});
	struct blob in = each_kind((struct cairn_btf_build_opts){
		.base = base.btf, .dialect = CAIRN_BTF_LOC_V1, .big_endian = true});
	struct parts p = split(in.btf, keep_visit);
	assert_ptr_equal(cairn_btf_base(p.main.btf), base.btf);
	assert_int_equal(cairn_btf_dialect(p.loc.btf), CAIRN_BTF_LOC_V1);
	assert_true(cairn_btf_is_big_endian(p.loc.btf));
	assert_int_equal(cairn_btf_check(p.loc.btf, NULL, NULL), 0);
	parts_free(&p);
	blob_free(&in);
	blob_free(&base);
}

/* ---- distil ---- */

static void distilled_base_has_only_what_is_searched_for(void **state)
{
	struct cairn_err err = {0};
	struct cairn_btf_type t;
	void *bytes[2];
	size_t size[2];
	struct blob base = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t node_t = cairn_btf_find(base.btf, "node_t", CAIRN_BTF_TYPEDEF, 0);
	struct cairn_btf_member members[] = {
		{str(b, "n"), node_t, 0, 0},
		{str(b, "e"), cairn_btf_find(base.btf, "small", 0, 0), 320, 0},
		{str(b, "b"), cairn_btf_find(base.btf, "big", 0, 0), 352, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "own"), 52, members, 3);
	struct blob in = finish(b, base.btf);
	assert_int_equal(
		cairn_btf_distil_base(in.btf, &bytes[0], &size[0], &bytes[1], &size[1], &err), 0);
	struct blob small = opened(bytes[0], size[0], NULL),
		    own = opened(bytes[1], size[1], small.btf);
	/* node without members, small without values; node_t moves to the split blob. */
	assert_int_equal(cairn_btf_end_id(small.btf), 4);
	/* libbpf's relocation wants an ENUM of that size for an ENUM64, too. */
	t = must_have(small.btf, cairn_btf_find(small.btf, "big", CAIRN_BTF_ENUM, 0));
	assert_int_equal(t.ref, 8);
	assert_int_equal(t.vlen, 0);
	t = must_have(small.btf, cairn_btf_find(small.btf, "small", CAIRN_BTF_ENUM, 0));
	assert_int_equal(t.kflag, 0);
	t = must_have(small.btf, cairn_btf_find(small.btf, "node", CAIRN_BTF_STRUCT, 0));
	assert_int_equal(t.vlen, 0);
	assert_int_equal(t.ref, 40);
	assert_int_equal(cairn_btf_end_id(own.btf) - cairn_btf_start_id(own.btf), 2);
	t = must_have(own.btf, cairn_btf_start_id(own.btf));
	assert_string_equal(t.name, "own");
	assert_string_equal(must_have(own.btf, cairn_btf_member(&t, 0).type).name, "node_t");
	assert_int_equal(cairn_btf_check(own.btf, NULL, NULL), 0);
	assert_int_equal(
		cairn_btf_distil_base(base.btf, &bytes[0], &size[0], &bytes[1], &size[1], &err),
		-EINVAL);
	blob_free(&own);
	blob_free(&small);
	blob_free(&in);
	blob_free(&base);
}

/* ---- failures ---- */

static void broken_references_are_named(void **state)
{
	struct cairn_err err = {0};
	void *bytes, *more;
	size_t size, more_size;
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	ADD(ref, b, CAIRN_BTF_PTR, 0, 50);
	struct blob in = finish(b, NULL);
	assert_int_equal(cairn_btf_sort(in.btf, NULL, &bytes, &size, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "record 1 at offset 0x18 refers to id 50"));
	assert_int_equal(cairn_btf_split_loc(in.btf, keep_visit, NULL, &bytes, &size, &more,
					     &more_size, &err),
			 -EBADMSG);
	blob_free(&in);
}

/* ---- an input that becomes shorter while it is mapped ---- */

enum maker { DEDUP, MERGE, SORT, SPLIT, DISTIL, CONVERT, CONVERT_BASE, DUMP, FINISH, N_MAKERS };

static const struct cairn_btf_convert_opts same_form = {.size = sizeof(same_form),
							.dialect = CAIRN_BTF_LOC_N};

static int finish_on(const struct cairn_btf *base, void **ret, size_t *ret_size,
		     struct cairn_err *err)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = base});
	int rc = cairn_btf_finish(b, ret, ret_size, err);
	cairn_btf_builder_free(b);
	return rc;
}

static int dump_to_nowhere(const struct cairn_btf *btf, struct cairn_err *err)
{
	FILE *out = fopen("/dev/null", "w");
	int rc = cairn_btf_dump(btf, CAIRN_BTF_RAW, NULL, 0, 0, out, err);
	fclose(out);
	return rc;
}

/* @split is split from @base. */
static int make(enum maker what, const struct cairn_btf *split, const struct cairn_btf *base,
		void **ret, size_t *ret_size, struct cairn_err *err)
{
	const struct cairn_btf *in[] = {split, split};
	struct cairn_btf_convert_opts on_base = same_form;
	on_base.base = base;
	switch (what) {
	case DEDUP:
		return cairn_btf_dedup(split, NULL, &ret[0], &ret_size[0], err);
	case MERGE:
		return cairn_btf_merge(in, 2, &ret[0], &ret_size[0], err);
	case SORT:
		return cairn_btf_sort(split, NULL, &ret[0], &ret_size[0], err);
	case SPLIT:
		return cairn_btf_split_loc(split, keep_visit, NULL, &ret[0], &ret_size[0], &ret[1],
					   &ret_size[1], err);
	case DISTIL:
		return cairn_btf_distil_base(split, &ret[0], &ret_size[0], &ret[1], &ret_size[1],
					     err);
	case CONVERT:
		return cairn_btf_convert(base, &same_form, NULL, &ret[0], &ret_size[0], err);
	case CONVERT_BASE:
		return cairn_btf_convert(split, &on_base, NULL, &ret[0], &ret_size[0], err);
	case DUMP:
		return dump_to_nowhere(split, err);
	default:
		return finish_on(base, &ret[0], &ret_size[0], err);
	}
}

static void assert_makes(enum maker what, const struct cairn_btf *split,
			 const struct cairn_btf *base, const char *shortened)
{
	void *bytes[2] = {NULL, NULL};
	size_t size[2];
	struct cairn_err err = {0};
	int rc = make(what, split, base, bytes, size, &err);
	if (rc < 0 && !shortened)
		fail_msg("%d: %s", (int)what, err.msg);
	assert_int_equal(rc, shortened ? -EBADMSG : 0);
	if (shortened)
		assert_non_null(strstr(err.msg, shortened));
	/* The leak checker says whether a failure left something to free. */
	if (rc == 0) {
		free(bytes[0]);
		free(bytes[1]);
	}
}

static struct cairn_btf *from_file(const char *path, const struct blob *blob,
				   const struct cairn_btf *base)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	FILE *f = fopen(path, "w");
	assert_true(fwrite(blob->bytes, 1, blob->size, f) == blob->size && !fclose(f));
	if (cairn_btf_open(path, &opts, &btf, &err) < 0)
		fail_msg("%s", err.msg);
	return btf;
}

/* A check neither finds sound nor counts what is broken in what is not there. */
static void assert_check_knows(const struct cairn_btf *btf, bool is_cut)
{
	int plain = cairn_btf_check(btf, NULL, NULL);
	int kernel = cairn_btf_check_for_kernel(btf, 0, NULL, NULL);

	if (is_cut) {
		assert_int_equal(plain, -EBADMSG);
		assert_int_equal(kernel, -EBADMSG);
		assert_non_null(cairn_btf_shortened(btf));
	} else {
		assert_true(plain >= 0 && kernel >= 0);
	}
}

/* The last byte is a NUL, and reads as one after the cut: only the size of the file tells. */
static void nothing_is_made_of_an_input_that_became_shorter(void **state)
{
	struct workspace space;
	workspace_open(&space);
	struct blob base_blob = each_kind((struct cairn_btf_build_opts){0});
	struct blob split_blob = each_kind((struct cairn_btf_build_opts){.base = base_blob.btf});
	for (int cut = 0; cut < 2; cut++) {
		const char *names[] = {"base.btf", "split.btf"}, *path = NULL;
		struct cairn_btf *base, *split;
		base = from_file(workspace_path(&space, names[0]), &base_blob, NULL);
		split = from_file(workspace_path(&space, names[1]), &split_blob, base);
		for (int what = 0; what < N_MAKERS; what++)
			assert_makes(what, split, base, NULL);
		assert_check_knows(split, false);
		path = workspace_path(&space, names[cut]);
		size_t size = cut ? split_blob.size : base_blob.size;
		assert_int_equal(truncate(path, (off_t)size - 1), 0);
		for (int what = 0; what < N_MAKERS; what++) {
			bool only_base = what == CONVERT || what == FINISH;
			assert_makes(what, split, base, cut && only_base ? NULL : names[cut]);
		}
		assert_check_knows(split, true);
		assert_check_knows(base, !cut);
		cairn_btf_close(split);
		cairn_btf_close(base);
	}
	blob_free(&split_blob);
	blob_free(&base_blob);
	workspace_close(&space);
}

static void no_memory_is_said(void **state)
{
	struct blob in = with_inlined(CAIRN_BTF_LOC_N);
	struct blob base = each_kind((struct cairn_btf_build_opts){0});
	struct blob on_base = each_kind((struct cairn_btf_build_opts){.base = base.btf});
	const struct cairn_btf *both[] = {on_base.btf, on_base.btf};
	for (int what = 0; what < 4; what++) {
		for (unsigned int n = 1;; n++) {
			void *bytes[2] = {NULL, NULL};
			size_t size[2];
			int rc;
			alloc_fail_at(n);
			if (what == 0)
				rc = cairn_btf_sort(in.btf, NULL, &bytes[0], &size[0], NULL);
			else if (what == 1)
				rc = cairn_btf_split_loc(in.btf, keep_visit, NULL, &bytes[0],
							 &size[0], &bytes[1], &size[1], NULL);
			else if (what == 3)
				rc = cairn_btf_merge(both, 2, &bytes[0], &size[0], NULL);
			else
				rc = cairn_btf_distil_base(on_base.btf, &bytes[0], &size[0],
							   &bytes[1], &size[1], NULL);
			bool failed = alloc_fail_end();
			assert_int_equal(rc, failed ? -ENOMEM : 0);
			free(bytes[0]);
			free(bytes[1]);
			if (!failed)
				break;
		}
	}
	blob_free(&on_base);
	blob_free(&base);
	blob_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_kernel_has_the_same_types_in_the_order_of_names),
		cmocka_unit_test(sites_are_sorted_by_the_new_ids),
		cmocka_unit_test(only_what_is_inlined_leaves_the_main_blob),
		cmocka_unit_test(without_location_data_there_is_nothing_to_split_off),
		cmocka_unit_test(v1_splits_too_on_a_module_of_a_kernel),
		cmocka_unit_test(distilled_base_has_only_what_is_searched_for),
		cmocka_unit_test(broken_references_are_named),
		cmocka_unit_test(nothing_is_made_of_an_input_that_became_shorter),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
