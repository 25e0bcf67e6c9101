/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of DWARF: every type DIE of a file is read, named, looked into and used to print its own
 * section.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"
#include <cairn/decode.h>

#include "dwarf/types.h"
#include "dwarf/walk.h"
#include "dwarf_builder.h"

/*
 * What is printed must be JSON: a small checker, without recursion, of what the printer uses of it.
 */
struct json {
	const char *p, *end;
	char open[256]; /* '{' and '[' */
	size_t depth;
};

static void insist(bool holds)
{
	if (!holds)
		abort();
}

static void read_json_string(struct json *j)
{
	insist(*j->p++ == '"');
	for (; j->p < j->end && *j->p != '"'; j->p++) {
		insist((unsigned char)*j->p >= 0x20);
		if (*j->p == '\\')
			insist(++j->p < j->end && strchr("\"\\/bfnrtu", *j->p));
	}
	insist(j->p++ < j->end);
}

/* A value, or the opening of one; true when a value is complete. */
static bool read_json_value(struct json *j)
{
	static const char *const words[] = {"null", "true", "false"};
	insist(j->p < j->end);
	if (*j->p == '{' || *j->p == '[') {
		insist(j->depth < sizeof(j->open));
		j->open[j->depth++] = *j->p++;
		return false;
	}
	if (*j->p == '"') {
		read_json_string(j);
		return true;
	}
	for (size_t i = 0; i < 3; i++) {
		if (!strncmp(j->p, words[i], strlen(words[i]))) {
			j->p += strlen(words[i]);
			return true;
		}
	}
	size_t n = strspn(j->p, "-+.eE0123456789");
	insist(n > 0 && (j->p[0] != '+' && j->p[0] != '.'));
	j->p += n;
	return true;
}

static void check_json(const char *text, size_t n)
{
	struct json j = {.p = text, .end = text + n};
	for (bool first = !read_json_value(&j); j.depth;) {
		bool object = j.open[j.depth - 1] == '{';
		if (*j.p == (object ? '}' : ']')) {
			j.p++;
			j.depth--;
			first = false;
			continue;
		}
		if (!first)
			insist(*j.p++ == ',');
		if (object) {
			read_json_string(&j);
			insist(*j.p++ == ':');
		}
		first = !read_json_value(&j);
	}
	insist(j.p == j.end);
}

static void print(const struct cairn_types *graph, uint32_t id, const struct dw_unit *u,
		  enum cairn_value_style style)
{
	char *text = NULL;
	size_t len = 0, n = (size_t)(u->end - u->dies);
	struct cairn_value_opts opts = {.size = sizeof(opts), .style = style, .max_elems = 20};
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return;
	insist(cairn_value_print(graph, id, u->dies, n < 64 ? n : 64, &opts, out) == 0);
	fclose(out);
	if (style == CAIRN_VALUE_JSON)
		check_json(text, len);
	free(text);
}

static void look_at(struct dw_types *r, const struct dw_die *die)
{
	struct cairn_err err = {0};
	struct cairn_types *graph = dw_types_graph(r);
	struct cairn_member m;
	char name[256];
	uint32_t id = 0;
	int rc = dwarf_type(r, die->off, &id, &err);
	insist(rc == 0 || (rc == err.code && err.msg[0]));
	dwarf_type_complete(r, id, NULL);
	cairn_types_declare(graph, id, "x", name, sizeof(name));
	cairn_types_member(graph, id, "m", &m);
	print(graph, id, die->unit, CAIRN_VALUE_TEXT);
	print(graph, id, die->unit, CAIRN_VALUE_JSON);
	const struct cairn_type *t = cairn_types_get(graph, id);
	if (t->name)
		dwarf_type_definition(r, t->kind, t->name, &id, NULL);
}

static uint8_t any_role(uint16_t tag)
{
	return 1;
}

/*
 * Any DIE may be taken for a type, for any DIE may be referred to. A large input is not read to its
 * end.
 */
static void look_at_all(const struct dwarf *dw, struct dw_types *r)
{
	enum { DIES_MAX = 200 };
	static const struct dw_query query = {.role = any_role};
	struct dw_walker w;
	int left = DIES_MAX;
	dw_walker_init(&w, &query);
	for (size_t i = 0; left && i < dwarf_n_units(dw); i++) {
		if (dw_walker_enter(&w, dwarf_unit(dw, i), NULL) < 0)
			continue;
		for (; left && dw_walker_next(&w) > 0; left--) {
			struct dw_die die = dw_walker_die(&w);
			look_at(r, &die);
		}
	}
	dw_walker_fini(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct dw_types *r;
	if (binary_open_mem(bytes, size, "input", &bin, NULL) < 0)
		return 0;
	if (dwarf_open(bin, 1, &dw, NULL) == 0) {
		struct cairn_types *graph = types_new();
		if (graph && dw_types_new(dw, graph, &r, NULL) == 0) {
			look_at_all(dw, r);
			dw_types_free(r);
		}
		types_free(graph);
		dwarf_close(dw);
	}
	cairn_binary_close(bin);
	return 0;
}

/* ---- seeds ---- */

static int here(struct db *d)
{
	int label = db_label(d);
	db_here(d, label);
	return label;
}

static void put_struct(struct db *d, int i, int e)
{
	int s = here(d);
	DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 24));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "m"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, 4));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "b"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_bit_size, DW_FORM_data1, 3),
	       DB_U(DW_AT_data_bit_offset, DW_FORM_data1, 67));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "o"), DB_REF(DW_AT_type, e),
	       DB_U(DW_AT_bit_size, DW_FORM_data1, 5), DB_U(DW_AT_bit_offset, DW_FORM_data1, 20),
	       DB_EXPR(DW_AT_data_member_location, DW_OP_plus_uconst, 12));
	db_null(d);
	int p = here(d);
	DB_DIE(d, DW_TAG_pointer_type, DB_LEAF, DB_REF(DW_AT_type, s));
	DB_DIE(d, DW_TAG_subroutine_type, DB_CHILDREN, DB_REF(DW_AT_type, p),
	       DB_FLAG(DW_AT_prototyped));
	DB_DIE(d, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_type, p));
	DB_DIE(d, DW_TAG_unspecified_parameters, DB_LEAF, {0});
	db_null(d);
}

static void put_types(struct db *d, uint8_t language)
{
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_producer, "clang"),
	       DB_U(DW_AT_language, DW_FORM_data1, language));
	int i = here(d);
	DB_DIE(d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "char"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 1),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_signed_char));
	DB_DIE(d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "long double"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 16),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_float));
	DB_DIE(d, DW_TAG_namespace, DB_CHILDREN, DB_STR(DW_AT_name, "ns"));
	int e = here(d);
	DB_DIE(d, DW_TAG_enumeration_type, DB_CHILDREN, DB_STR(DW_AT_name, "e"),
	       DB_REF(DW_AT_type, i), DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	DB_DIE(d, DW_TAG_enumerator, DB_LEAF, DB_STR(DW_AT_name, "A"),
	       DB_U(DW_AT_const_value, DW_FORM_data1, 1));
	DB_DIE(d, DW_TAG_enumerator, DB_LEAF, DB_STR(DW_AT_name, "B"),
	       DB_U(DW_AT_const_value, DW_FORM_sdata, -2));
	db_null(d);
	int declared = here(d);
	DB_DIE(d, DW_TAG_class_type, DB_LEAF, DB_STR(DW_AT_name, "c"), DB_FLAG(DW_AT_declaration));
	db_null(d);
	DB_DIE(d, DW_TAG_class_type, DB_CHILDREN, DB_REF(DW_AT_specification, declared),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 8));
	DB_DIE(d, DW_TAG_inheritance, DB_LEAF, DB_REF(DW_AT_type, declared));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_REF(DW_AT_type, e));
	db_null(d);
	DB_DIE(d, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, i));
	DB_DIE(d, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_upper_bound, DW_FORM_data1, 3));
	DB_DIE(d, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_count, DW_FORM_data1, 5));
	db_null(d);
	put_struct(d, i, e);
	db_null(d);
}

static void put_format(struct db_format format, uint8_t language,
		       void (*put)(const void *bytes, size_t size))
{
	size_t size;
	struct db *d = db_new(format);
	db_unit(d, DW_UT_compile);
	put_types(d, language);
	db_unit_end(d);
	const uint8_t *bytes = db_finish(d, &size);
	put(bytes, size);
	db_free(d);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_format((struct db_format){.version = 5}, DW_LANG_C_plus_plus_14, put);
	put_format((struct db_format){.version = 4}, DW_LANG_C99, put);
}
