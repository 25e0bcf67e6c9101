/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function with types made by hand, for tests of planning without any binary
 *
 *	struct inner { short a : 3; unsigned b : 13; char name[8]; };
 *	struct outer { int x; struct inner in; char *s; enum color c; struct outer *next;
 *		       long arr[4]; };
 *	enum color { RED, GREEN = 5, MINUS = -1 };
 *	int work(int i, unsigned u, long l, struct outer *p, char *s, struct inner v, double d,
 *		 int &r)
 */
#ifndef UNIT_TRACE_FIXTURE_H
#define UNIT_TRACE_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "trace/fetch/fetch.h"
#include "types/build.h"

enum { P_I, P_U, P_L, P_P, P_S, P_V, P_D, P_R, N_PARAMS };

struct fixture {
	struct cairn_types *types;
	uint32_t t_int, t_uint, t_long, t_short, t_char, t_double, t_color, t_inner, t_outer,
		t_outer_ptr, t_str, t_name, t_arr, t_ref;
	struct cairn_param params[N_PARAMS];
	struct cairn_function function;
};

static uint32_t fixture_type(struct fixture *f, struct cairn_type type)
{
	uint32_t id = types_reserve(f->types);
	types_set(f->types, id, &type);
	return id;
}

static uint32_t fixture_int(struct fixture *f, const char *name, uint64_t size, bool is_signed)
{
	return fixture_type(f, (struct cairn_type){.kind = CAIRN_T_INT,
						   .name = name,
						   .size = size,
						   .encoding = is_signed ? CAIRN_ENC_SIGNED
									 : CAIRN_ENC_UNSIGNED});
}

static inline void fixture_records(struct fixture *f)
{
	static const struct cairn_enumerator colors[] = {{"RED", 0}, {"GREEN", 5}, {"MINUS", -1}};
	static struct cairn_member inner[3], outer[6];

	f->t_color = fixture_type(f, (struct cairn_type){.kind = CAIRN_T_ENUM,
							 .name = "color",
							 .size = 4,
							 .encoding = CAIRN_ENC_SIGNED,
							 .n_enumerators = 3,
							 .enumerators = colors});
	f->t_name = fixture_type(f, (struct cairn_type){.kind = CAIRN_T_ARRAY,
							.size = 8,
							.ref = f->t_char,
							.has_count = true,
							.count = 8});
	f->t_arr = fixture_type(f, (struct cairn_type){.kind = CAIRN_T_ARRAY,
						       .size = 32,
						       .ref = f->t_long,
						       .has_count = true,
						       .count = 4});
	inner[0] = (struct cairn_member){.name = "a", .type = f->t_short, .bit_size = 3};
	inner[1] =
		(struct cairn_member){.name = "b", .type = f->t_uint, .bit_off = 3, .bit_size = 13};
	inner[2] = (struct cairn_member){.name = "name", .type = f->t_name, .bit_off = 16};
	f->t_inner = fixture_type(f, (struct cairn_type){.kind = CAIRN_T_STRUCT,
							 .name = "inner",
							 .size = 12,
							 .n_members = 3,
							 .members = inner});
	f->t_outer = types_reserve(f->types);
	f->t_outer_ptr = fixture_type(
		f, (struct cairn_type){.kind = CAIRN_T_PTR, .size = 8, .ref = f->t_outer});
	outer[0] = (struct cairn_member){.name = "x", .type = f->t_int};
	outer[1] = (struct cairn_member){.name = "in", .type = f->t_inner, .bit_off = 32};
	outer[2] = (struct cairn_member){.name = "s", .type = f->t_str, .bit_off = 128};
	outer[3] = (struct cairn_member){.name = "c", .type = f->t_color, .bit_off = 192};
	outer[4] = (struct cairn_member){.name = "next", .type = f->t_outer_ptr, .bit_off = 256};
	outer[5] = (struct cairn_member){.name = "arr", .type = f->t_arr, .bit_off = 320};
	types_set(f->types, f->t_outer,
		  &(struct cairn_type){.kind = CAIRN_T_STRUCT,
				       .name = "outer",
				       .size = 72,
				       .n_members = 6,
				       .members = outer});
}

static inline void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.types = types_new()};
	f->t_int = fixture_int(f, "int", 4, true);
	f->t_uint = fixture_int(f, "unsigned int", 4, false);
	f->t_long = fixture_int(f, "long", 8, true);
	f->t_short = fixture_int(f, "short", 2, true);
	f->t_char = fixture_type(f, (struct cairn_type){.kind = CAIRN_T_INT,
							.name = "char",
							.size = 1,
							.encoding = CAIRN_ENC_SIGNED_CHAR});
	f->t_double = fixture_type(
		f, (struct cairn_type){.kind = CAIRN_T_FLOAT, .name = "double", .size = 8});
	f->t_str = fixture_type(
		f, (struct cairn_type){.kind = CAIRN_T_PTR, .size = 8, .ref = f->t_char});
	f->t_ref = fixture_type(
		f, (struct cairn_type){.kind = CAIRN_T_REF, .size = 8, .ref = f->t_int});
	fixture_records(f);
	/* clang-format off */
	const struct cairn_param params[N_PARAMS] = {
		{"i", f->t_int}, {"u", f->t_uint},  {"l", f->t_long},	{"p", f->t_outer_ptr},
		{"s", f->t_str}, {"v", f->t_inner}, {"d", f->t_double}, {"r", f->t_ref},
	};
	/* clang-format on */
	memcpy(f->params, params, sizeof(params));
	f->function =
		(struct cairn_function){.name = "work", .n_params = N_PARAMS, .params = f->params};
}

static inline void fixture_fini(struct fixture *f)
{
	types_free(f->types);
}

#endif
