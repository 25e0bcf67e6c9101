/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes
 *
 * Those that change layouts are in a table of names and functions; any other is skipped. A name may
 * stand between underscores: packed, __packed__.
 */
#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "decl/parse.h"

typedef int (*attribute_fn)(struct parser *p, struct attributes *to);

static int set_packed(struct parser *p, struct attributes *to)
{
	to->packed = true;
	return 0;
}

static int set_ms_struct(struct parser *p, struct attributes *to)
{
	to->ms_struct = true;
	return 0;
}

static int set_gcc_struct(struct parser *p, struct attributes *to)
{
	to->gcc_struct = true;
	return 0;
}

static int raise_aligned(struct parser *p, struct attributes *to, int64_t n)
{
	if (n <= 0 || n & (n - 1) || n > 1 << 28)
		return fail_here(p, "an alignment must be a power of 2 up to 2^28, not %lld",
				 (long long)n);
	to->aligned = (uint32_t)n > to->aligned ? (uint32_t)n : to->aligned;
	return 0;
}

/* aligned(N), or aligned alone for the most that the ABI has use for */
static int set_aligned(struct parser *p, struct attributes *to)
{
	int64_t n;
	int rc;

	if (!is_punct(p, '('))
		return raise_aligned(p, to, p->abi->bare_aligned);
	rc = next(p);
	if (!rc && is_punct(p, ')')) {
		rc = raise_aligned(p, to, p->abi->bare_aligned);
		return rc ? rc : next(p);
	}
	rc = rc ? rc : parse_constant(p, &n, NULL);
	rc = rc ? rc : raise_aligned(p, to, n);
	return rc ? rc : expect(p, ')');
}

static int parenthesised(struct parser *p, int64_t *ret)
{
	int rc = expect(p, '(');

	rc = rc ? rc : parse_constant(p, ret, NULL);
	return rc ? rc : expect(p, ')');
}

static int set_vector_size(struct parser *p, struct attributes *to)
{
	int64_t n;
	int rc = parenthesised(p, &n);

	if (!rc && (n <= 0 || n > UINT32_MAX))
		return fail_here(p, "a vector cannot have %lld bytes", (long long)n);
	to->vector_size = rc ? 0 : (uint64_t)n;
	return rc;
}

static int set_vector_elems(struct parser *p, struct attributes *to)
{
	int64_t n;
	int rc = parenthesised(p, &n);

	if (!rc && (n <= 0 || n > 1 << 20))
		return fail_here(p, "a vector cannot have %lld elements", (long long)n);
	to->vector_elems = rc ? 0 : (uint32_t)n;
	return rc;
}

static bool is_named(const struct token *t, const char *name)
{
	const char *at = t->p;
	size_t n = t->n;

	if (n > 4 && !memcmp(at, "__", 2) && !memcmp(at + n - 2, "__", 2)) {
		at += 2;
		n -= 4;
	}
	return t->kind == TOKEN_NAME && n == strlen(name) && !memcmp(at, name, n);
}

/* The effect of mode(NAME) on a type: a type of the same kind with that size, or a named type. */
struct mode {
	const char *name;
	uint8_t bytes;   /* of an integer; 0: none */
	enum basic real; /* of a floating type; 0: none */
	bool is_complex;
};

/* clang-format off */
static const struct mode modes[] = {
	{"QI", 1},	    {"byte", 1},
	{"HI", 2},	    {"SI", 4},
	{"DI", 8},	    {"TI", 16},
	{"HF", 0, B_FLOAT16},		{"SF", 0, B_FLOAT},
	{"DF", 0, B_DOUBLE},		{"XF", 0, B_LDOUBLE},
	{"TF", 0, B_FLOAT128},		{"KF", 0, B_FLOAT128},
	{"SD", 0, B_DECIMAL32},		{"DD", 0, B_DECIMAL64},
	{"TD", 0, B_DECIMAL128},	{"HC", 0, B_FLOAT16, true},
	{"SC", 0, B_FLOAT, true},	{"DC", 0, B_DOUBLE, true},
	{"XC", 0, B_LDOUBLE, true},	{"TC", 0, B_FLOAT128, true},
	{"KC", 0, B_FLOAT128, true},
};
/* clang-format on */
/* As large as a pointer. */
static const struct mode words[] = {{"word", 4}, {"word", 8}};

static int set_mode(struct parser *p, struct attributes *to)
{
	int rc = expect(p, '(');

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (is_named(&p->tok, modes[i].name))
			to->mode = &modes[i];
	if (is_named(&p->tok, "word") || is_named(&p->tok, "pointer") ||
	    is_named(&p->tok, "unwind_word"))
		to->mode = &words[p->abi->scalars[CAIRN_C_PTR].size == 8];
	if (!to->mode)
		return fail_here(p, "a mode that is not known here");
	rc = next(p);
	return rc ? rc : expect(p, ')');
}

static int refuse_order(struct parser *p, struct attributes *to)
{
	return fail_here(p, "another byte order in structs is not known here");
}

static int refuse_shape(struct parser *p, struct attributes *to)
{
	return fail_here(p, "the size of a matrix or a scalable vector is not known here");
}

static const struct {
	const char *name;
	attribute_fn fn;
} attributes[] = {
	{"packed", set_packed},
	{"aligned", set_aligned},
	{"align", set_aligned}, /* __declspec(align(N)) */
	{"vector_size", set_vector_size},
	{"ext_vector_type", set_vector_elems},
	{"neon_vector_type", set_vector_elems},
	{"neon_polyvector_type", set_vector_elems},
	{"matrix_type", refuse_shape},
	{"arm_sve_vector_bits", refuse_shape},
	{"riscv_rvv_vector_bits", refuse_shape},
	{"mode", set_mode},
	{"ms_struct", set_ms_struct},
	{"gcc_struct", set_gcc_struct},
	{"scalar_storage_order", refuse_order},
};

static int parse_one(struct parser *p, struct attributes *to)
{
	struct token name = p->tok;
	int rc = next(p);

	/* [[gnu::packed]] */
	if (!rc && is_punct(p, P_DOUBLE_COLON)) {
		rc = next(p);
		name = p->tok;
		rc = rc ? rc : next(p);
	}
	for (size_t i = 0; !rc && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (is_named(&name, attributes[i].name))
			return attributes[i].fn(p, to);
	if (!rc && is_punct(p, '('))
		rc = skip_balanced(p);
	return rc;
}

static int parse_list(struct parser *p, int close, struct attributes *to)
{
	int rc = 0;

	while (!rc && !is_punct(p, close)) {
		if (is_punct(p, ','))
			rc = next(p);
		else if (p->tok.kind == TOKEN_NAME)
			rc = parse_one(p, to);
		else
			rc = fail_here(p, "expected an attribute or '%c'", close);
	}
	return rc ? rc : next(p);
}

static int parse_alignas(struct parser *p, struct attributes *to)
{
	uint32_t type;
	int64_t n = 0;
	int rc = next(p);

	rc = rc ? rc : expect(p, '(');
	if (rc)
		return rc;
	if (begins_type(p, &p->tok)) {
		rc = parse_type_name(p, &type);
		n = rc ? 0 : align_of(p, type);
	} else {
		rc = parse_constant(p, &n, NULL);
	}
	/* _Alignas(0) has no effect. */
	if (!rc && n)
		rc = raise_aligned(p, to, n);
	return rc ? rc : expect(p, ')');
}

static bool is_gnu(const struct parser *p)
{
	return is_word(p, "__attribute__") || is_word(p, "__attribute");
}

static bool is_alignas(const struct parser *p)
{
	return is_word(p, "_Alignas") || is_word(p, "alignas");
}

static bool is_declspec(const struct parser *p)
{
	return is_word(p, "__declspec");
}

/* "[[" is never the beginning of an array where an attribute may stand. */
static bool is_bracketed(const struct parser *p)
{
	return is_punct(p, '[') && p->tok.p + 1 < p->lx.end && p->tok.p[1] == '[';
}

bool is_attribute(const struct parser *p)
{
	return is_gnu(p) || is_alignas(p) || is_declspec(p) || is_bracketed(p);
}

int parse_attributes(struct parser *p, struct attributes *to)
{
	int rc = 0;

	while (!rc && is_attribute(p)) {
		bool gnu = is_gnu(p), bracketed = is_bracketed(p), declspec = is_declspec(p);
		uint32_t before = to->aligned;

		if (is_alignas(p)) {
			rc = parse_alignas(p, to);
			continue;
		}
		rc = next(p);
		rc = rc ? rc : expect(p, bracketed ? '[' : '(');
		if (gnu)
			rc = rc ? rc : expect(p, '(');
		rc = rc ? rc : parse_list(p, bracketed ? ']' : ')', to);
		if (gnu || bracketed)
			rc = rc ? rc : expect(p, bracketed ? ']' : ')');
		if (declspec && to->aligned > before)
			to->declspec_aligned = to->aligned;
	}
	return rc;
}

/* The integer of @bytes bytes, signed or not as @of is. */
static int integer_of_bytes(struct parser *p, uint32_t bytes, const struct cairn_type *of,
			    uint32_t *id)
{
	static const enum basic ints[] = {B_SCHAR, B_SHORT, B_INT, B_LONG, B_LLONG, B_INT128};
	bool is_unsigned =
		of->encoding == CAIRN_ENC_UNSIGNED || of->encoding == CAIRN_ENC_UNSIGNED_CHAR;

	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		enum basic basic = (enum basic)(ints[i] + is_unsigned);
		uint32_t candidate;
		uint64_t size;
		int rc = missing_basic(p, basic) ? 0 : node_basic(p, basic, &candidate);

		if (rc)
			return rc;
		if (!missing_basic(p, basic) && size_of(p, candidate, &size) && size == bytes) {
			*id = candidate;
			return 0;
		}
	}
	return fail_here(p, "the ABI %s has no such type of %s", p->abi->name,
			 cairn_counted(bytes, "byte").text);
}

/* An ABI's wide type is a quad there, or is not. */
static enum basic real_of(const struct parser *p, const struct mode *mode)
{
	bool has_quad = p->abi->scalars[CAIRN_C_FLOAT128].size;

	return mode->real == B_FLOAT128 && !has_quad && p->abi->scalars[CAIRN_C_LDOUBLE].size == 16
		       ? B_LDOUBLE
		       : mode->real;
}

static int apply_mode(struct parser *p, const struct mode *mode, uint32_t *id)
{
	const struct cairn_type *of = resolve(p, *id);
	bool is_real = of->kind == CAIRN_T_FLOAT,
	     is_complex = is_real && of->encoding == CAIRN_ENC_COMPLEX;

	if (!mode->real && value_bits(p, *id))
		return integer_of_bytes(p, mode->bytes, of, id);
	if (!mode->real || !is_real || is_complex != mode->is_complex)
		return fail_here(p, "a mode that this type cannot have");
	return is_complex ? node_complex(p, real_of(p, mode), id)
			  : node_basic(p, real_of(p, mode), id);
}

int apply_type_attributes(struct parser *p, struct attributes *attrs, uint32_t *id)
{
	uint64_t size;
	int rc = 0;

	if (attrs->mode)
		rc = apply_mode(p, attrs->mode, id);
	if (!rc && attrs->vector_elems && size_of(p, *id, &size))
		attrs->vector_size = attrs->vector_elems * size;
	if (!rc && attrs->vector_size)
		rc = node_vector(p, *id, attrs->vector_size, id);
	attrs->mode = NULL;
	attrs->vector_elems = 0;
	attrs->vector_size = 0;
	return rc;
}
