/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/layout: placing members on ABIs, holes and padding, the text of pahole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/layout.h>

#include "alloc_fail.h"
#include "btf/types.h"
#include "decl/decl.h"
#include "type_graph.h"
#include "types/build.h"

#undef ARRAY_SIZE
#include "btf_fixture.h"

/* ---- placing ---- */

static struct cairn_place_record place(const char *abi, struct cairn_place_member *m, size_t n)
{
	struct cairn_place_record rec = {.members = m, .n_members = n};
	struct cairn_err err = {0};

	if (cairn_layout_place(cairn_abi_find(abi), &rec, &err) < 0)
		fail_msg("%s", err.msg);
	return rec;
}

#define M(s, a)                                                                                    \
	{                                                                                          \
		.size = s, .align = a, .named = true                                               \
	}
#define BITS(s, a, w)                                                                              \
	{                                                                                          \
		.size = s, .align = a, .named = true, .bit_field = true, .width = w                \
	}

static void size_is_rounded_up_to_the_alignment(void **state)
{
	struct cairn_place_member m[] = {M(1, 1), M(8, 8), M(4, 4), M(8, 8), M(1, 1)};
	struct cairn_place_record rec = place("x86-64", m, 5);

	assert_int_equal(rec.size, 40);
	assert_int_equal(rec.align, 8);
	assert_int_equal(m[1].bit_off, 64);
}

static void sysv_bit_field_shares_its_unit_with_what_is_not_one(void **state)
{
	struct cairn_place_member m[] = {M(1, 1), BITS(4, 4, 4), M(1, 1)};

	assert_int_equal(place("x86-64", m, 3).size, 4);
	assert_int_equal(m[1].bit_off, 8);
	assert_int_equal(m[2].bit_off, 16);
}

static void microsoft_reserves_the_whole_unit(void **state)
{
	struct cairn_place_member m[] = {M(1, 1), BITS(4, 4, 4), M(1, 1)};

	assert_int_equal(place("windows-x64", m, 3).size, 12);
	assert_int_equal(m[2].bit_off, 64);
}

static void unnamed_bit_field_counts_on_arm_only(void **state)
{
	struct cairn_place_member m[] = {M(1, 1),
					 {.size = 4, .align = 4, .bit_field = true, .width = 3}};

	assert_int_equal(place("x86-64", m, 2).align, 1);
	assert_int_equal(place("aarch64", m, 2).align, 4);
	assert_int_equal(place("arm", m, 2).size, 4);
}

static void a_bit_field_wider_than_its_type_is_refused(void **state)
{
	struct cairn_place_member m[] = {BITS(4, 4, 33)};
	struct cairn_place_record rec = {.members = m, .n_members = 1};
	struct cairn_err err = {0};

	assert_int_equal(cairn_layout_place(cairn_abi_find("x86-64"), &rec, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "member 0"));
}

static void a_struct_beyond_the_limit_is_refused(void **state)
{
	struct cairn_place_member m[] = {M(CAIRN_LAYOUT_SIZE_MAX, 1), M(CAIRN_LAYOUT_SIZE_MAX, 1)};
	struct cairn_place_record rec = {.members = m, .n_members = 2};

	assert_int_equal(cairn_layout_place(cairn_abi_find("x86-64"), &rec, NULL), -ERANGE);
	m[0].align = 3;
	assert_int_equal(cairn_layout_place(cairn_abi_find("x86-64"), &rec, NULL), -EINVAL);
}

static void every_abi_is_found_by_its_names(void **state)
{
	for (size_t i = 0; cairn_abi_at(i); i++) {
		const struct cairn_abi *abi = cairn_abi_at(i);

		assert_ptr_equal(cairn_abi_find(abi->name), abi);
		assert_ptr_equal(cairn_abi_find(abi->triple), abi);
		assert_true(abi->scalars[CAIRN_C_PTR].size == 4 ||
			    abi->scalars[CAIRN_C_PTR].size == 8);
	}
	assert_null(cairn_abi_find("pdp11"));
}

/* ---- text and facts, of declarations ---- */

static char *text_of(const char *source, const struct cairn_layout_opts *opts)
{
	const struct cairn_abi *abi = cairn_abi_find("x86-64");
	struct cairn_err err = {0};
	struct cairn_layout *layout;
	struct decl *decl;
	char *text;
	size_t size;

	if (decl_parse(source, strlen(source), "test.h", abi, &decl, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(cairn_layout_new(decl_types(decl), opts, &layout, &err), 0);
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(cairn_layout_print(layout, decl_find(decl, CAIRN_T_STRUCT, "s"), out), 0);
	fclose(out);
	cairn_layout_free(layout);
	decl_free(decl);
	return text;
}

static void assert_text(const char *source, const struct cairn_layout_opts *opts,
			const char *expected)
{
	char *text = text_of(source, opts);

	assert_string_equal(text, expected);
	free(text);
}

static void the_event_of_the_article_is_printed_as_there(void **state)
{
	assert_text("struct s { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };",
		    NULL,
		    "struct s {\n"
		    "\tunsigned int               e_pid;                /*     0     4 */\n"
		    "\tchar                       e_filename[256];      /*     4   256 */\n"
		    "\t/* --- cacheline 4 boundary (256 bytes) was 4 bytes ago --- */\n"
		    "\tchar                       e_comm[16];           /*   260    16 */\n"
		    "\n"
		    "\t/* size: 276, cachelines: 5, members: 3 */\n"
		    "\t/* last cacheline: 20 bytes */\n"
		    "};\n");
}

static void holes_are_shown_where_they_are(void **state)
{
	assert_text("struct s { char c; long l; int i; void *x; };", NULL,
		    "struct s {\n"
		    "\tchar                       c;                    /*     0     1 */\n"
		    "\n"
		    "\t/* XXX 7 bytes hole, try to pack */\n"
		    "\n"
		    "\tlong int                   l;                    /*     8     8 */\n"
		    "\tint                        i;                    /*    16     4 */\n"
		    "\n"
		    "\t/* XXX 4 bytes hole, try to pack */\n"
		    "\n"
		    "\tvoid *                     x;                    /*    24     8 */\n"
		    "\n"
		    "\t/* size: 32, cachelines: 1, members: 4 */\n"
		    "\t/* sum members: 21, holes: 2, sum holes: 11 */\n"
		    "\t/* last cacheline: 32 bytes */\n"
		    "};\n");
}

static void hexadecimal_and_expanded(void **state)
{
	struct cairn_layout_opts opts = {.size = sizeof(opts), .hex = true, .expand = true};

	assert_text("struct in { char a; }; struct s { int i; struct in in; };", &opts,
		    "struct s {\n"
		    "\tint                        i;                    /*     0   0x4 */\n"
		    "\tstruct in {\n"
		    "\t\tchar               a;                    /*   0x4   0x1 */\n"
		    "\t} in;                                            /*   0x4   0x1 */\n"
		    "\n"
		    "\t/* size: 8, cachelines: 1, members: 2 */\n"
		    "\t/* padding: 3 */\n"
		    "\t/* last cacheline: 8 bytes */\n"
		    "};\n");
}

static void a_cache_line_may_have_another_size(void **state)
{
	struct cairn_layout_opts opts = {.size = sizeof(opts), .cacheline = 128};
	char *text = text_of("struct s { char a[200]; int b; };", &opts);

	assert_non_null(strstr(text, "cacheline 1 boundary (128 bytes) was 72 bytes ago"));
	free(text);
}

static void unknown_options_are_refused(void **state)
{
	struct {
		struct cairn_layout_opts opts;
		long more;
	} longer = {.opts = {.size = sizeof(longer)}, .more = 1};
	struct cairn_layout *layout;

	assert_int_equal(cairn_layout_new(types, &longer.opts, &layout, NULL), -EINVAL);
	longer.more = 0;
	assert_int_equal(cairn_layout_new(types, &longer.opts, &layout, NULL), 0);
	cairn_layout_free(layout);
}

/* Damaged input only. */
static void a_struct_that_contains_itself_ends(void **state)
{
	uint32_t id = types_reserve(types);
	struct cairn_member m[] = {{.name = "a", .type = id}, {.type = id, .bit_off = 8}};
	struct cairn_type t = {.kind = CAIRN_T_STRUCT, .size = 8, .members = m, .n_members = 2};
	struct cairn_layout *layout;
	struct cairn_layout_facts facts;

	types_set(types, id, &t);
	assert_int_equal(cairn_layout_new(types, NULL, &layout, NULL), 0);
	assert_int_equal(cairn_layout_facts(layout, id, &facts, NULL), 1);
	cairn_layout_free(layout);
}

static void what_has_no_members_has_no_facts(void **state)
{
	struct cairn_layout_facts facts = {.size = 77};
	struct cairn_layout *layout;
	uint32_t i = t_int();

	assert_int_equal(cairn_layout_new(types, NULL, &layout, NULL), 0);
	assert_int_equal(cairn_layout_facts(layout, i, &facts, NULL), 0);
	assert_int_equal(facts.size, 77);
	cairn_layout_free(layout);
}

/* ---- BTF ---- */

static void print_every_type_of(const void *bytes, size_t size)
{
	struct cairn_layout_opts opts = {
		.size = sizeof(opts), .infer_aligned = true, .expand = true};
	struct cairn_layout *layout;
	struct cairn_types *graph;
	struct cairn_btf *btf;

	if (cairn_btf_open_mem(bytes, size, "flipped", NULL, &btf, NULL) < 0)
		return;
	FILE *out = fopen("/dev/null", "w");
	assert_int_equal(btf_types(btf, 8, &graph, NULL), 0);
	assert_int_equal(cairn_layout_new(graph, &opts, &layout, NULL), 0);
	for (uint32_t id = 0; id < cairn_types_n_types(graph); id++)
		cairn_layout_print(layout, id, out);
	fclose(out);
	cairn_layout_free(layout);
	types_free(graph);
	cairn_btf_close(btf);
}

/* struct { struct inner in[2]; struct pointed *p; }, and the id of each struct. */
static struct blob outer(uint32_t *inner, uint32_t *pointed, uint32_t *whole)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t i = add_int(b);
	struct cairn_btf_member x = {str(b, "x"), i, 0, 0};

	*inner = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "inner"), 4, &x, 1);
	*pointed = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "pointed"), 4, &x, 1);
	struct cairn_btf_member m[] = {
		{str(b, "in"), ADD(array, b, *inner, i, 2), 0, 0},
		{str(b, "p"), ADD(ref, b, CAIRN_BTF_PTR, 0, *pointed), 64, 0}};
	*whole = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "outer"), 16, m, 2);
	return finish(b, NULL);
}

static int read_types(const struct cairn_btf *btf, uint32_t id, struct cairn_types **ret)
{
	struct btf_types *reader = NULL;
	int rc;

	*ret = types_new();
	rc = *ret ? btf_types_new(btf, 8, *ret, &reader, NULL) : -ENOMEM;
	if (!rc)
		rc = btf_types_read(reader, id, NULL);
	btf_types_free(reader);
	return rc;
}

static void btf_is_read_as_far_as_it_is_asked_for(void **state)
{
	uint32_t inner, pointed, whole;
	struct blob blob = outer(&inner, &pointed, &whole);
	struct cairn_types *graph;
	bool failed = true;

	assert_int_equal(read_types(blob.btf, inner, &graph), 0);
	assert_int_equal(cairn_types_get(graph, whole)->kind, CAIRN_T_VOID);
	types_free(graph);
	assert_int_equal(read_types(blob.btf, whole, &graph), 0);
	assert_false(cairn_types_get(graph, inner)->unread);
	assert_int_equal(cairn_types_get(graph, inner)->n_members, 1);
	assert_int_equal(cairn_types_size(graph, cairn_types_get(graph, whole)->members[0].type),
			 8);
	assert_true(cairn_types_get(graph, pointed)->unread);
	assert_string_equal(cairn_types_get(graph, pointed)->name, "pointed");
	types_free(graph);
	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int rc = read_types(blob.btf, whole, &graph);

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		types_free(graph);
	}
	blob_free(&blob);
}

static void btf_keeps_its_ids_and_places(void **state)
{
	struct blob blob = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_types *graph;
	struct cairn_btf_type t;

	assert_int_equal(btf_types(blob.btf, 8, &graph, NULL), 0);
	assert_int_equal(cairn_types_n_types(graph), cairn_btf_end_id(blob.btf));
	uint32_t id = cairn_btf_find(blob.btf, "node", CAIRN_BTF_STRUCT, 0);
	assert_true(cairn_btf_type(blob.btf, id, &t));
	const struct cairn_type *node = cairn_types_get(graph, id);
	assert_int_equal(node->size, 40);
	assert_int_equal(node->n_members, 3);
	assert_string_equal(node->members[1].name, "low");
	assert_int_equal(node->members[1].bit_size, 3);
	assert_int_equal(cairn_types_size(graph, node->members[2].type), 28);
	types_free(graph);
	blob_free(&blob);
}

static void hostile_btf_is_printed_or_refused(void **state)
{
	struct blob blob = each_kind((struct cairn_btf_build_opts){0});
	/* Words are read in place where they are aligned. */
	uint8_t *copy = malloc(blob.size);

	for (size_t i = 0; i < 8 * blob.size; i++) {
		memcpy(copy, blob.bytes, blob.size);
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		print_every_type_of(copy, blob.size);
	}
	for (size_t n = 0; n < blob.size; n++)
		print_every_type_of(blob.bytes, n);
	free(copy);
	blob_free(&blob);
}

/* Facts and text of structs whose alignments have to be told from others'. */
static int look_at_all(const struct cairn_types *graph, uint32_t id, FILE *out)
{
	struct cairn_layout_opts o = {.size = sizeof(o), .infer_aligned = true, .expand = true};
	struct cairn_layout_facts facts;
	struct cairn_layout *layout;
	int rc = cairn_layout_new(graph, &o, &layout, NULL);

	if (rc)
		return rc;
	rc = cairn_layout_facts(layout, id, &facts, NULL);
	if (rc == 1)
		rc = cairn_layout_print(layout, id, out);
	cairn_layout_free(layout);
	return rc;
}

static void without_memory_nothing_is_told(void **state)
{
	const char *source = "struct in { char c; long l[2]; }; struct s { char a; struct in in; "
			     "union { int i; struct in n; };"
			     " int b : 3; };";
	FILE *out = fopen("/dev/null", "w");
	struct decl *decl;
	bool failed = true;
	unsigned int n;

	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(
		decl_parse(source, strlen(source), "test.h", cairn_abi_find("x86-64"), &decl, NULL),
		0);
	for (n = 0; failed; n++) {
		alloc_fail_at(n + 1);
		int rc = look_at_all(decl_types(decl), decl_find(decl, CAIRN_T_STRUCT, "s"), out);

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
	}
	assert_true(n > 5);
	fclose(out);
	decl_free(decl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(size_is_rounded_up_to_the_alignment),
		CLAIM(sysv_bit_field_shares_its_unit_with_what_is_not_one),
		CLAIM(microsoft_reserves_the_whole_unit),
		CLAIM(unnamed_bit_field_counts_on_arm_only),
		CLAIM(a_bit_field_wider_than_its_type_is_refused),
		CLAIM(a_struct_beyond_the_limit_is_refused),
		CLAIM(every_abi_is_found_by_its_names),
		CLAIM(the_event_of_the_article_is_printed_as_there),
		CLAIM(holes_are_shown_where_they_are),
		CLAIM(hexadecimal_and_expanded),
		CLAIM(a_cache_line_may_have_another_size),
		CLAIM(unknown_options_are_refused),
		CLAIM(a_struct_that_contains_itself_ends),
		CLAIM(what_has_no_members_has_no_facts),
		CLAIM(btf_keeps_its_ids_and_places),
		CLAIM(btf_is_read_as_far_as_it_is_asked_for),
		CLAIM(hostile_btf_is_printed_or_refused),
		CLAIM(without_memory_nothing_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
