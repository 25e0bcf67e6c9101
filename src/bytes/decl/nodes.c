/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes of the graph: the basic types by their names in GCC's debug information, derived ones,
 * sizes and alignments.
 */
#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "decl/parse.h"

int node_add(struct parser *p, const struct cairn_type *t, uint32_t *ret)
{
	*ret = types_reserve(p->types);
	if (!*ret)
		return err_nomem(p->err, "types of declarations");
	types_set(p->types, *ret, t);
	return 0;
}

int node_tagged(struct parser *p, enum cairn_type_kind kind, const struct token *name,
		uint32_t *ret)
{
	enum symbol_kind wanted = kind == CAIRN_T_ENUM    ? SYMBOL_ENUM
				  : kind == CAIRN_T_UNION ? SYMBOL_UNION
							  : SYMBOL_STRUCT;
	const struct symbol *known =
		name->n ? symbol_find(p->decl, wanted, name->p, name->n) : NULL;
	struct cairn_type t = {.kind = kind, .declaration = true};

	if (known && known->kind != wanted)
		return fail_at(p, name, -EBADMSG, "%s is another kind of type", known->name);
	if (known) {
		*ret = known->type;
		return 0;
	}
	if (name->n && !(t.name = dup_name(p, name)))
		return err_nomem(p->err, "names of types");
	int rc = node_add(p, &t, ret);
	if (rc || !name->n)
		return rc;
	return symbol_add(p, &(struct symbol){.kind = wanted, .name = t.name, .type = *ret});
}

static const struct basic_type {
	const char *name;
	enum cairn_scalar scalar;
	enum cairn_type_kind kind;
	enum cairn_type_encoding encoding;
} basics[N_BASICS] = {
	[B_BOOL] = {"_Bool", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	[B_CHAR] = {"char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	[B_SCHAR] = {"signed char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	[B_UCHAR] = {"unsigned char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	[B_SHORT] = {"short int", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	[B_USHORT] = {"short unsigned int", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	[B_INT] = {"int", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	[B_UINT] = {"unsigned int", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	[B_LONG] = {"long int", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	[B_ULONG] = {"long unsigned int", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	[B_LLONG] = {"long long int", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	[B_ULLONG] = {"long long unsigned int", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	[B_INT128] = {"__int128", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	[B_UINT128] = {"__int128 unsigned", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	[B_FLOAT16] = {"_Float16", CAIRN_C_FLOAT16, CAIRN_T_FLOAT, 0},
	[B_BFLOAT16] = {"__bf16", CAIRN_C_FLOAT16, CAIRN_T_FLOAT, 0},
	[B_FLOAT] = {"float", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	[B_DOUBLE] = {"double", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	[B_LDOUBLE] = {"long double", CAIRN_C_LDOUBLE, CAIRN_T_FLOAT, 0},
	[B_FLOAT64X] = {"_Float64x", CAIRN_C_FLOAT64X, CAIRN_T_FLOAT, 0},
	[B_FLOAT128] = {"_Float128", CAIRN_C_FLOAT128, CAIRN_T_FLOAT, 0},
	[B_GNU_FLOAT128] = {"__float128", CAIRN_C_GNU_FLOAT128, CAIRN_T_FLOAT, 0},
	/* As from debug information: not decoded. */
	[B_IBM128] = {"__ibm128", CAIRN_C_IBM128, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
	[B_DECIMAL32] = {"_Decimal32", CAIRN_C_DECIMAL32, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
	[B_DECIMAL64] = {"_Decimal64", CAIRN_C_DECIMAL64, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
	[B_DECIMAL128] = {"_Decimal128", CAIRN_C_DECIMAL128, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
};

/* A struct of a few registers and pointers, an array of one of those, or a pointer. */
static int add_va_list(struct parser *p, uint32_t *ret)
{
	struct cairn_scalar_layout ptr = p->abi->scalars[CAIRN_C_PTR];
	struct cairn_type t = {.kind = CAIRN_T_UNSPECIFIED,
			       .name = "__va_list_tag",
			       .size = p->abi->va_list_size,
			       .abi_align = ptr.align};

	if (!t.size)
		return node_derive(p, CAIRN_T_PTR, 0, ret);
	int rc = node_add(p, &t, ret);
	if (rc || !p->abi->va_list_array)
		return rc;
	t = (struct cairn_type){
		.kind = CAIRN_T_ARRAY, .ref = *ret, .has_count = true, .count = 1, .size = t.size};
	return node_add(p, &t, ret);
}

const char *missing_basic(const struct parser *p, enum basic basic)
{
	return basic != B_VA_LIST && !p->abi->scalars[basics[basic].scalar].size
		       ? basics[basic].name
		       : NULL;
}

static int add_basic(struct parser *p, enum basic basic, uint32_t *ret)
{
	const struct basic_type *b = &basics[basic];
	struct cairn_scalar_layout l = p->abi->scalars[b->scalar];
	struct cairn_type t = {.kind = b->kind,
			       .encoding = b->encoding,
			       .name = b->name,
			       .size = l.size,
			       .abi_align = l.align};

	if (!l.size)
		return fail_here(p, "the ABI %s has no %s", p->abi->name, b->name);
	if (basic == B_CHAR && p->abi->char_unsigned)
		t.encoding = CAIRN_ENC_UNSIGNED_CHAR;
	return node_add(p, &t, ret);
}

int node_basic(struct parser *p, enum basic basic, uint32_t *ret)
{
	int rc = 0;

	if (!p->basics[basic])
		rc = basic == B_VA_LIST ? add_va_list(p, &p->basics[basic])
					: add_basic(p, basic, &p->basics[basic]);
	*ret = p->basics[basic];
	return rc;
}

/* Two of them. The complex type of integers is GNU C, and not decoded. */
int node_complex(struct parser *p, enum basic basic, uint32_t *ret)
{
	const struct basic_type *b = &basics[basic];
	bool is_integer = b->kind == CAIRN_T_INT;
	uint32_t part;
	int rc = p->complexes[basic] ? 0 : node_basic(p, basic, &part);

	if (!rc && !p->complexes[basic]) {
		struct cairn_type t = *cairn_types_get(p->types, part);

		t.name = arena_printf(p->arena, "complex %s", b->name);
		t.size *= 2;
		t.encoding = is_integer ? CAIRN_ENC_OPAQUE : CAIRN_ENC_COMPLEX;
		rc = t.name ? node_add(p, &t, &p->complexes[basic])
			    : err_nomem(p->err, "names of types");
	}
	*ret = p->complexes[basic];
	return rc;
}

static uint64_t key_of_width(uint64_t width, bool is_unsigned)
{
	return 2 * width + is_unsigned;
}

static uint64_t key_of_bit_int(uint32_t id)
{
	return UINT64_C(1) << 40 | id;
}

static uint32_t power_of_2_from(uint64_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

/*
 * Aligned to its width rounded up to a power of 2, at most to the ABI's limit; the size is the
 * multiple of that alignment that it needs.
 */
static int add_bit_int(struct parser *p, uint64_t width, bool is_unsigned, uint32_t *ret)
{
	uint64_t bytes = (width + 7) / 8;
	uint32_t align = power_of_2_from(bytes);
	struct cairn_type t = {.kind = CAIRN_T_INT};

	t.abi_align = align < p->abi->bit_int_align ? align : p->abi->bit_int_align;
	t.size = (bytes + t.abi_align - 1) & ~(uint64_t)(t.abi_align - 1);
	t.encoding = is_unsigned ? CAIRN_ENC_UNSIGNED : CAIRN_ENC_SIGNED;
	/* No ABI defines the bits above its width. */
	if (width != 8 * t.size)
		t.encoding = CAIRN_ENC_OPAQUE;
	t.name = arena_printf(p->arena, "%s_BitInt(%" PRIu64 ")", is_unsigned ? "unsigned " : "",
			      width);
	if (!t.name)
		return err_nomem(p->err, "names of types");
	int rc = node_add(p, &t, ret);
	if (!rc && (map_put(&p->bit_ints, key_of_width(width, is_unsigned), *ret) < 0 ||
		    map_put(&p->bit_ints, key_of_bit_int(*ret), width) < 0))
		rc = err_nomem(p->err, "_BitInt");
	return rc;
}

int node_bit_int(struct parser *p, int64_t width, bool is_unsigned, const struct token *at,
		 uint32_t *ret)
{
	int64_t least = is_unsigned ? 1 : 2;
	uint64_t known;

	if (!p->abi->bit_int_max)
		return fail_at(p, at, -EBADMSG, "the ABI %s has no _BitInt", p->abi->name);
	if (width < least || width > p->abi->bit_int_max)
		return fail_at(
			p, at, -EBADMSG, "a _BitInt of %lld bits; on %s it may have %lld to %u",
			(long long)width, p->abi->name, (long long)least, p->abi->bit_int_max);
	if (!map_get(&p->bit_ints, key_of_width((uint64_t)width, is_unsigned), &known))
		return add_bit_int(p, (uint64_t)width, is_unsigned, ret);
	*ret = (uint32_t)known;
	return 0;
}

bool is_bit_int(const struct parser *p, uint32_t id)
{
	uint64_t width;

	return map_get(&p->bit_ints, key_of_bit_int(cairn_types_resolve(p->types, id)), &width);
}

uint64_t value_bits(const struct parser *p, uint32_t id)
{
	uint64_t width;

	id = cairn_types_resolve(p->types, id);
	const struct cairn_type *t = cairn_types_get(p->types, id);
	if (map_get(&p->bit_ints, key_of_bit_int(id), &width))
		return width;
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM) || t->encoding == CAIRN_ENC_OPAQUE)
		return 0;
	return t->encoding == CAIRN_ENC_BOOL ? 8 : 8 * t->size;
}

/* An _Atomic of a size that the ABI has instructions for is made to fit them. */
static void make_atomic(const struct parser *p, uint32_t ref, struct cairn_type *t)
{
	uint64_t size, whole;

	t->abi_align = align_of(p, ref);
	if (!size_of(p, ref, &size) || !size || size > p->abi->atomic_max)
		return;
	whole = power_of_2_from(size);
	t->size = whole;
	t->abi_align = whole > t->abi_align ? (uint32_t)whole : t->abi_align;
}

int node_derive(struct parser *p, enum cairn_type_kind kind, uint32_t ref, uint32_t *ret)
{
	struct cairn_scalar_layout ptr = p->abi->scalars[CAIRN_C_PTR];
	struct cairn_type t = {.kind = kind, .ref = ref};

	if (kind == CAIRN_T_PTR) {
		t.size = ptr.size;
		t.abi_align = ptr.align;
	} else if (kind == CAIRN_T_ATOMIC) {
		make_atomic(p, ref, &t);
	}
	return node_add(p, &t, ret);
}

int node_vector(struct parser *p, uint32_t element, uint64_t bytes, uint32_t *ret)
{
	const struct cairn_type *of = resolve(p, element);
	uint64_t size, align = 1;

	if (is_bit_int(p, element) ||
	    !((of->kind == CAIRN_T_INT && of->encoding != CAIRN_ENC_OPAQUE) ||
	      of->kind == CAIRN_T_ENUM ||
	      (of->kind == CAIRN_T_FLOAT && of->encoding != CAIRN_ENC_COMPLEX)))
		return fail_here(p, "a vector has numbers as its elements");
	if (!size_of(p, element, &size) || !size || !bytes || bytes % size || bytes > UINT32_MAX)
		return fail_here(p, "a vector of %s does not hold whole elements",
				 cairn_counted(bytes, "byte").text);
	while (align < bytes)
		align *= 2;
	struct cairn_type t = {.kind = CAIRN_T_ARRAY,
			       .ref = element,
			       .vector = true,
			       .has_count = true,
			       .count = bytes / size,
			       /* A vector of three is as large as one of four. */
			       .size = align,
			       .abi_align = align < p->abi->vector_align_max
						    ? (uint32_t)align
						    : p->abi->vector_align_max};
	return node_add(p, &t, ret);
}

bool size_of(const struct parser *p, uint32_t id, uint64_t *ret)
{
	for (unsigned int i = 0; i < 2 * CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(p->types, id);

		switch (t->kind) {
		case CAIRN_T_ATOMIC:
			if (t->size) {
				*ret = t->size;
				return true;
			}
			break;
		case CAIRN_T_TYPEDEF:
		case CAIRN_T_CONST:
		case CAIRN_T_VOLATILE:
		case CAIRN_T_RESTRICT:
			break;
		case CAIRN_T_VOID:
		case CAIRN_T_FUNC:
			return false;
		default:
			*ret = t->size;
			return !t->declaration;
		}
		id = t->ref;
	}
	return false;
}

uint32_t align_of(const struct parser *p, uint32_t id)
{
	for (unsigned int i = 0; i < 2 * CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(p->types, id);

		if (t->kind == CAIRN_T_TYPEDEF && t->align)
			return t->align;
		if (t->abi_align)
			return t->abi_align;
		if (t->kind != CAIRN_T_TYPEDEF && t->kind != CAIRN_T_CONST &&
		    t->kind != CAIRN_T_VOLATILE && t->kind != CAIRN_T_RESTRICT &&
		    t->kind != CAIRN_T_ARRAY)
			return 1;
		id = t->ref;
	}
	return 1;
}

uint32_t member_align_of(const struct parser *p, uint32_t id)
{
	for (unsigned int i = 0; p->abi->ms && i < 2 * CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(p->types, id);

		if (t->kind != CAIRN_T_TYPEDEF && t->kind != CAIRN_T_CONST &&
		    t->kind != CAIRN_T_VOLATILE && t->kind != CAIRN_T_RESTRICT)
			break;
		id = t->ref;
	}
	return align_of(p, id);
}

/* A struct has in align the alignment that an attribute of its own or of a member demands. */
uint32_t required_align_of(const struct parser *p, uint32_t id)
{
	for (unsigned int i = 0; i < 2 * CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(p->types, id);

		if (t->align)
			return t->align;
		if (t->kind != CAIRN_T_TYPEDEF && t->kind != CAIRN_T_CONST &&
		    t->kind != CAIRN_T_VOLATILE && t->kind != CAIRN_T_ARRAY)
			return 0;
		id = t->ref;
	}
	return 0;
}

/*
 * Only a typedef, qualifier or array can make the chain longer, so the chain is checked when one is
 * added.
 */
int check_chain(struct parser *p, uint32_t id, const struct token *at)
{
	for (unsigned int i = 0; i < CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(p->types, id);

		if (t->kind != CAIRN_T_TYPEDEF && t->kind != CAIRN_T_CONST &&
		    t->kind != CAIRN_T_VOLATILE && t->kind != CAIRN_T_RESTRICT &&
		    t->kind != CAIRN_T_ATOMIC && t->kind != CAIRN_T_ARRAY)
			return 0;
		id = t->ref;
	}
	return fail_at(p, at, -ERANGE, "a chain of more than %d typedefs, qualifiers and arrays",
		       CHAIN_MAX);
}
