/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion: dialects, byte order, layout section, and the downgrade for old readers. */
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

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static struct blob convert(const struct cairn_btf *btf, struct cairn_btf_convert_opts opts,
			   struct cairn_btf_losses *losses)
{
	struct cairn_err err = {0};
	struct blob b = {0};
	opts.size = sizeof(opts);
	if (cairn_btf_convert(btf, &opts, losses, &b.bytes, &b.size, &err) < 0)
		fail_msg("%s", err.msg);
	b.btf = must_open_mem(b.bytes, b.size, opts.base);
	return b;
}

static void assert_same_bytes(const struct blob *x, const struct blob *y)
{
	assert_int_equal(x->size, y->size);
	assert_memory_equal(x->bytes, y->bytes, x->size);
}

static void assert_nothing_lost(const struct cairn_btf_losses *losses)
{
	static const struct cairn_btf_losses none;
	assert_memory_equal(losses, &none, sizeof(none));
}

static void same_form_gives_the_same_bytes(void **state)
{
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		for (int form = 0; form < 4; form++) {
			struct cairn_btf_losses losses;
			struct blob b = each_kind((struct cairn_btf_build_opts){
				.dialect = dialect, .layout = form & 1, .big_endian = form & 2});
			struct blob same =
				convert(b.btf,
					(struct cairn_btf_convert_opts){.dialect = dialect,
									.layout = form & 1,
									.big_endian = form & 2},
					&losses);
			assert_same_bytes(&b, &same);
			assert_nothing_lost(&losses);
			blob_free(&same);
			blob_free(&b);
		}
	}
}

static void byte_order_and_layout_there_and_back_give_the_same_bytes(void **state)
{
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		struct cairn_btf_losses losses;
		struct blob b = each_kind((struct cairn_btf_build_opts){.dialect = dialect});
		struct blob there =
			convert(b.btf,
				(struct cairn_btf_convert_opts){
					.dialect = dialect, .big_endian = true, .layout = true},
				&losses);
		assert_nothing_lost(&losses);
		assert_true(cairn_btf_is_big_endian(there.btf) && cairn_btf_has_layout(there.btf));
		struct blob back = convert(
			there.btf, (struct cairn_btf_convert_opts){.dialect = dialect}, NULL);
		assert_same_bytes(&b, &back);
		blob_free(&back);
		blob_free(&there);
		blob_free(&b);
	}
}

static void kernel_btf_in_its_own_form_is_itself(void **state)
{
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	if (cairn_btf_open(KERNEL_BTF, NULL, &btf, &err) < 0) {
		print_message("%s\n", err.msg);
		skip();
	}
	struct blob same = convert(
		btf, (struct cairn_btf_convert_opts){.layout = cairn_btf_has_layout(btf)}, NULL);
	assert_int_equal(same.size, btf->map_size);
	assert_memory_equal(same.bytes, btf->map, same.size);
	blob_free(&same);
	cairn_btf_close(btf);
}

/* ---- dialects ---- */

/* One line per site, whatever the dialect: name, offset, and the value of each parameter. */
static void print_sites(const struct cairn_btf *btf, char *text, size_t room)
{
	struct cairn_btf_type t, func, proto, param;
	size_t n = 0;
	for (uint32_t id = cairn_btf_start_id(btf); cairn_btf_type(btf, id, &t); id++) {
		for (uint32_t i = 0; t.kind == CAIRN_BTF_LOCSEC && i < t.vlen; i++) {
			struct cairn_btf_loc loc = cairn_btf_loc(btf, &t, i);
			bool v1 = cairn_btf_dialect(btf) == CAIRN_BTF_LOC_V1;
			if (!v1)
				func = must_have(btf, loc.func);
			n += snprintf(text + n, room - n, "%s proto %u at %u:",
				      v1 ? cairn_btf_string(btf, loc.name_off) : func.name,
				      v1 ? loc.func_proto : func.ref, loc.offset);
			bool any = cairn_btf_type(btf, loc.loc_proto, &proto);
			for (uint32_t slot = 0; any && slot < proto.vlen; slot++) {
				struct cairn_btf_loc_param p = {0};
				if (cairn_btf_type(btf, proto.words[slot], &param))
					p = cairn_btf_loc_param(btf, &param);
				uint32_t second = p.reg[1], size = p.size;
				if (p.continues) {
					param = must_have(btf, proto.words[++slot]);
					second = cairn_btf_loc_param(btf, &param).reg[0];
					size += cairn_btf_loc_param(btf, &param).size;
				}
				n += snprintf(
					text + n, room - n,
					" flags 0x%x size %u regs %u %u offset %lld value %lld,",
					p.flags, size, p.reg[0], second, (long long)p.offset,
					(long long)p.value);
			}
			n += snprintf(text + n, room - n, "\n");
		}
	}
}

/* Sites of what both dialects can say: @inexpressible adds what v1 cannot. */
static struct blob sites(bool inexpressible)
{
	enum {
		S = CAIRN_BTF_LOC_SIGNED,
		C = CAIRN_BTF_LOC_CONST,
		A = CAIRN_BTF_LOC_ADDR,
		R = CAIRN_BTF_LOC_REG,
		D = CAIRN_BTF_LOC_DEREF,
		O = CAIRN_BTF_LOC_OFFSET
	};
	static const struct cairn_btf_loc_param params[] = {
		{.flags = C | S, .size = 4, .value = -7},
		{.flags = R, .size = 16, .n_regs = 2, .reg = {5, 4}},
		{.flags = R | D | O, .size = 8, .n_regs = 1, .reg = {7}, .offset = 24},
		{.flags = C, .size = 8}, /* NULL */
		{.flags = R | O, .size = 8, .n_regs = 1, .reg = {7}, .offset = 24},
		{.flags = C | A, .size = 8, .value = 0x4000},
	};
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint32_t i = add_int(b), ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, i), slots[ARRAY_SIZE(params)];
	struct cairn_btf_param formals[ARRAY_SIZE(params)];
	for (size_t n = 0; n < ARRAY_SIZE(params); n++)
		formals[n] = (struct cairn_btf_param){str(b, "p"), ptr};
	uint32_t proto = ADD(func_proto, b, i, formals, ARRAY_SIZE(params));
	uint32_t f = ADD(func, b, str(b, "f"), CAIRN_BTF_STATIC, proto);
	uint32_t g = ADD(func, b, str(b, "g"), CAIRN_BTF_STATIC, proto);
	for (size_t n = 0; n < ARRAY_SIZE(params); n++)
		slots[n] = ADD(loc_param, b, &params[n]);
	uint32_t all = ADD(loc_proto, b, slots, inexpressible ? 6 : 4);
	uint32_t none = ADD(loc_proto, b, slots, 0);
	struct cairn_btf_loc locs[] = {{.func = f, .loc_proto = all, .offset = 5},
				       {.func = f, .loc_proto = none, .offset = 70},
				       {.func = g, .loc_proto = all, .offset = 90}};
	ADD(locsec, b, str(b, ".text"), locs, 3);
	if (inexpressible)
		ADD(locsec, b, str(b, ".init.text"), locs, 2);
	return finish(b, NULL);
}

static void both_dialects_say_the_same(void **state)
{
	char n_text[4096] = "", v1_text[4096] = "", back_text[4096] = "";
	struct cairn_btf_losses losses;
	struct blob n = sites(false);
	struct blob v1 = convert(
		n.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_V1}, &losses);
	assert_nothing_lost(&losses);
	struct blob back = convert(
		v1.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_N}, &losses);
	assert_nothing_lost(&losses);
	assert_int_equal(cairn_btf_dialect(v1.btf), CAIRN_BTF_LOC_V1);
	assert_int_equal(cairn_btf_check(v1.btf, NULL, NULL), 0);
	assert_int_equal(cairn_btf_check(back.btf, NULL, NULL), 0);
	print_sites(n.btf, n_text, sizeof(n_text));
	print_sites(v1.btf, v1_text, sizeof(v1_text));
	print_sites(back.btf, back_text, sizeof(back_text));
	assert_non_null(
		strstr(n_text, "g proto 3 at 90: flags 0x3 size 4 regs 0 0 offset 0 value -7,"));
	assert_string_equal(n_text, v1_text);
	assert_string_equal(n_text, back_text);
	blob_free(&back);
	blob_free(&v1);
	blob_free(&n);
}

static void what_v1_cannot_say_is_no_location_and_counted(void **state)
{
	char text[4096] = "";
	struct cairn_btf_losses losses;
	struct blob n = sites(true);
	struct blob v1 = convert(
		n.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_V1}, &losses);
	assert_int_equal(losses.loc_params, 1);
	assert_int_equal(losses.locsecs, 1);
	assert_int_equal(losses.locs, 2);
	print_sites(v1.btf, text, sizeof(text));
	assert_non_null(strstr(text, "flags 0x0 size 0 regs 0 0 offset 0 value 0, flags 0x2 size 8 "
				     "regs 0 0 offset 0 value 16384,"));
	/* v1 does not say whether 0x4000 is an address; the parameter is a pointer. */
	struct blob back = convert(
		v1.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_N}, &losses);
	assert_int_equal(losses.loc_params, 1);
	text[0] = '\0';
	print_sites(back.btf, text, sizeof(text));
	assert_null(strstr(text, "16384"));
	blob_free(&back);
	blob_free(&v1);
	blob_free(&n);
}

/*
 * A reader of v1 takes a constant of 8 bytes for an address where the parameter is a pointer, and
 * nowhere else.
 */
static void v1_says_no_address_by_another_type(void **state)
{
	enum { ADDRESS = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR };
	static const struct {
		uint32_t flags;
		int64_t value;
		bool pointer, kept;
	} cases[] = {
		{ADDRESS, 0x1230, true, true},
		{ADDRESS, 0x1230, false, false},
		{CAIRN_BTF_LOC_CONST, 0x1230, true, false},
		{CAIRN_BTF_LOC_CONST, 0x1230, false, true},
		{CAIRN_BTF_LOC_CONST, 0, true, true},
	};
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint32_t number = ADD(int, b, str(b, "unsigned long"), 8, 0, 64),
		 ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, 0);
	struct cairn_btf_loc locs[ARRAY_SIZE(cases)];
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_loc_param p = {
			.flags = cases[i].flags, .size = 8, .value = cases[i].value};
		struct cairn_btf_param formal = {str(b, "p"), cases[i].pointer ? ptr : number};
		uint32_t param = ADD(loc_param, b, &p), proto = ADD(func_proto, b, 0, &formal, 1);
		locs[i] = (struct cairn_btf_loc){
			.func = ADD(func, b, str(b, "f"), CAIRN_BTF_STATIC, proto),
			.loc_proto = ADD(loc_proto, b, &param, 1),
			.offset = i};
	}
	ADD(locsec, b, str(b, ".text"), locs, ARRAY_SIZE(cases));
	struct cairn_btf_losses losses;
	struct blob n = finish(b, NULL);
	struct blob v1 = convert(
		n.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_V1}, &losses);
	assert_int_equal(losses.loc_params, 2);
	struct cairn_btf_type sec =
		must_have(v1.btf, cairn_btf_find(v1.btf, "inline", CAIRN_BTF_LOCSEC, 0));
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_type proto =
			must_have(v1.btf, cairn_btf_loc(v1.btf, &sec, i).loc_proto);
		assert_int_equal(proto.words[0] != 0, cases[i].kept);
	}
	blob_free(&v1);
	blob_free(&n);
}

static void more_than_65535_sites_are_several_sections_in_v1_and_one_in_n(void **state)
{
	enum { N = 150000 };
	struct cairn_btf_loc *locs = calloc(N, sizeof(*locs));
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	ADD(func_proto, b, 0, NULL, 0);
	ADD(func, b, str(b, "f"), CAIRN_BTF_STATIC, 1);
	for (uint32_t i = 0; i < N; i++)
		locs[i] = (struct cairn_btf_loc){.func = 2, .offset = 3 * i};
	ADD(locsec, b, str(b, ".text"), locs, N);
	free(locs);
	struct blob n = finish(b, NULL);
	struct blob v1 =
		convert(n.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_V1}, NULL);
	struct blob back =
		convert(v1.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_N}, NULL);
	uint32_t first = cairn_btf_find(v1.btf, "inline", CAIRN_BTF_LOCSEC, 0);
	uint32_t second = cairn_btf_find(v1.btf, "inline", CAIRN_BTF_LOCSEC, first);
	uint32_t third = cairn_btf_find(v1.btf, "inline", CAIRN_BTF_LOCSEC, second);
	assert_int_equal(must_have(v1.btf, first).vlen, 65535);
	assert_int_equal(must_have(v1.btf, third).vlen, N - 2 * 65535);
	struct cairn_btf_type t =
		must_have(back.btf, cairn_btf_find(back.btf, ".text", CAIRN_BTF_LOCSEC, 0));
	assert_int_equal(t.vlen, N);
	assert_int_equal(cairn_btf_loc(back.btf, &t, N - 1).offset, 3 * (N - 1));
	blob_free(&back);
	blob_free(&v1);
	blob_free(&n);
}

static void v1_site_without_a_func_gets_one(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_V1});
	ADD(func_proto, b, 0, NULL, 0);
	struct cairn_btf_loc loc = {.name_off = str(b, "gone"), .func_proto = 1, .offset = 8};
	struct cairn_btf_loc_param unused = {.flags = CAIRN_BTF_LOC_REG, .size = 8, .n_regs = 1};
	ADD(loc_param, b, &unused);
	ADD(locsec, b, str(b, "inline"), &loc, 1);
	struct blob v1 = finish(b, NULL);
	struct blob n =
		convert(v1.btf, (struct cairn_btf_convert_opts){.dialect = CAIRN_BTF_LOC_N}, NULL);
	struct cairn_btf_type t =
		must_have(n.btf, cairn_btf_find(n.btf, "gone", CAIRN_BTF_FUNC, 0));
	assert_int_equal(t.ref, 1);
	assert_int_equal(t.vlen, CAIRN_BTF_STATIC);
	blob_free(&n);
	blob_free(&v1);
}

/* ---- downgrade ---- */

/* A blob with all that old readers refuse. */
static struct blob modern(void)
{
	enum { N = 70000 };
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N, .layout = true});
	add_each_kind(b, true);
	uint32_t i = 1;
	uint32_t attribute;
	struct cairn_btf_type tag = {
		.kind = CAIRN_BTF_TYPE_TAG, .kflag = true, .ref = i, .name_off = str(b, "noderef")};
	assert_int_equal(cairn_btf_add_record(b, &tag, NULL, 0, &attribute), 0);
	tag.ref = attribute;
	assert_int_equal(cairn_btf_add_record(b, &tag, NULL, 0, &attribute), 0);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "after_tags"), attribute);
	ADD(decl_tag, b, str(b, "packed"), 4, -1, true);
	struct cairn_btf_secinfo *vars = calloc(N, sizeof(*vars));
	uint32_t var = ADD(var, b, str(b, "v"), CAIRN_BTF_GLOBAL, i);
	for (uint32_t n = 0; n < N; n++)
		vars[n] = (struct cairn_btf_secinfo){var, 4 * n, 4};
	ADD(datasec, b, str(b, ".bss"), 4 * N, vars, N);
	free(vars);
	struct cairn_btf_enumerator mixed[] = {{str(b, "FITS"), 7},
					       {str(b, "DOES_NOT"), 1ll << 40}};
	ADD(enum, b, str(b, "mixed"), 8, false, mixed, 2);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "last"), i);
	return finish(b, NULL);
}

static void downgrade_drops_what_old_readers_refuse_and_says_so(void **state)
{
	struct cairn_btf_losses losses;
	struct cairn_btf_type t;
	struct blob b = modern();
	struct blob old =
		convert(b.btf, (struct cairn_btf_convert_opts){.downgrade = true}, &losses);
	assert_int_equal(losses.loc_params, 2);
	assert_int_equal(losses.loc_protos, 1);
	assert_int_equal(losses.locsecs, 1);
	assert_int_equal(losses.locs, 2);
	assert_int_equal(losses.enum64s, 2);
	assert_int_equal(losses.wide_vlens, 1);
	assert_int_equal(losses.tags, 3);
	assert_false(cairn_btf_has_layout(old.btf));
	for (uint32_t id = 1; cairn_btf_type(old.btf, id, &t); id++) {
		assert_true(t.kind <= CAIRN_BTF_TYPE_TAG && t.vlen <= 65535);
		assert_false(t.kflag &&
			     (t.kind == CAIRN_BTF_TYPE_TAG || t.kind == CAIRN_BTF_DECL_TAG));
	}
	t = must_have(old.btf, cairn_btf_find(old.btf, "after_tags", 0, 0));
	assert_string_equal(must_have(old.btf, t.ref).name, "int");
	t = must_have(old.btf, cairn_btf_find(old.btf, "mixed", 0, 0));
	assert_int_equal(t.vlen, 1);
	assert_int_equal(cairn_btf_enumerator(&t, 0).value, 7);
	assert_int_equal(cairn_btf_check(old.btf, NULL, NULL), 0);
	blob_free(&old);
	blob_free(&b);
}

/* ---- for the kernel ---- */

/* A blob with what the kernel refuses of other languages. */
static struct blob of_other_languages(void)
{
	static char longest[2000];
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t i = ADD(int, b, str(b, "unsigned int"), 4, 0, 32);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "a.b_c_"), i);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "a::b<c>"), i);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "a::b(c)"), i);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "0th"), i);
	memset(longest, 'x', sizeof(longest) - 1);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, longest), i);
	longest[1500] = 'y';
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, longest), i);
	struct cairn_btf_member members[] = {
		{.name_off = str(b, "last"), .type = i, .bit_off = 64},
		{.name_off = str(b, "~first"), .type = i, .bit_off = 0},
		{.name_off = str(b, "middle"), .type = i, .bit_off = 32}};
	uint32_t s = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 12, members, 3);
	ADD(decl_tag, b, str(b, "of last"), s, 0, false);
	ADD(decl_tag, b, str(b, "of the whole"), s, -1, false);
	struct cairn_btf_param params[] = {
		{.type = i}, {.name_off = str(b, "~r0"), .type = i}, {0}};
	uint32_t proto = ADD(func_proto, b, 0, params, 3);
	ADD(func, b, str(b, "f::g"), CAIRN_BTF_STATIC, proto);
	uint32_t unnamed = ADD(func_proto, b, i, params, 1);
	ADD(ref, b, CAIRN_BTF_PTR, 0, unnamed);
	uint32_t fwd = ADD(fwd, b, str(b, "declared"), false);
	uint32_t by_name = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "declared_t"), fwd);
	struct cairn_btf_param by_value = {.name_off = str(b, "p"), .type = by_name};
	proto = ADD(func_proto, b, 0, &by_value, 1);
	uint32_t refused = ADD(func, b, str(b, "by_value"), CAIRN_BTF_STATIC, proto);
	ADD(decl_tag, b, str(b, "gone"), refused, -1, false);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "end"), i);
	return finish(b, NULL);
}

static const char *name_at(const struct blob *b, uint32_t id)
{
	return must_have(b->btf, id).name;
}

/* Declared elsewhere, without a size yet, at an odd site, a tag that comes too late. */
static void what_a_kernel_refuses_is_left_out_or_hidden(void **state)
{
	struct cairn_btf_losses losses;
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t i = add_int(b), f = ADD(float, b, str(b, "double"), 8),
		 proto = ADD(func_proto, b, i, NULL, 0);
	struct cairn_btf_member m[] = {{str(b, "a"), i, 0, 0}, {str(b, "d"), f, 32, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "packed"), 12, m, 2);
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "rcu"), i),
		 late = ADD(ref, b, CAIRN_BTF_CONST, 0, tag);
	uint32_t func = ADD(func, b, str(b, "elsewhere"), CAIRN_BTF_EXTERN, proto);
	uint32_t var = ADD(var, b, str(b, "here"), CAIRN_BTF_GLOBAL, i),
		 same = ADD(var, b, str(b, "alias"), CAIRN_BTF_GLOBAL, i);
	struct cairn_btf_secinfo open = {func, 0, 0}, vars[] = {{var, 0, 4}, {same, 0, 4}};
	ADD(datasec, b, str(b, ".ksyms"), 0, &open, 1);
	ADD(datasec, b, str(b, ".note.ABI-tag"), 4, vars, 2);
	struct blob in = finish(b, NULL);
	assert_true(cairn_btf_check_for_kernel(in.btf, 0, NULL, NULL) > 0);
	struct blob k = convert(in.btf, (struct cairn_btf_convert_opts){.kernel = true}, &losses);
	assert_int_equal(cairn_btf_check_for_kernel(k.btf, 0, NULL, NULL), 0);
	assert_int_equal(losses.functions, 1);
	assert_int_equal(losses.sections, 1);
	assert_int_equal(losses.variables, 1);
	assert_int_equal(losses.floats, 1);
	assert_int_equal(losses.tags, 1);
	struct cairn_btf_type s =
		must_have(k.btf, cairn_btf_find(k.btf, "packed", CAIRN_BTF_STRUCT, 0));
	s = must_have(k.btf, cairn_btf_member(&s, 1).type);
	assert_int_equal(s.kind, CAIRN_BTF_STRUCT);
	assert_int_equal(s.ref, 8);
	assert_int_equal(must_have(k.btf, late - 1).kind, CAIRN_BTF_CONST);
	assert_int_equal(must_have(k.btf, late - 1).ref, i);
	assert_int_not_equal(cairn_btf_find(k.btf, ".note.ABI_tag", CAIRN_BTF_DATASEC, 0), 0);
	blob_free(&k);
	blob_free(&in);
}

/* Nothing is handed out as what a kernel takes that it does not. */
static void what_stays_refused_is_no_result(void **state)
{
	struct cairn_btf_convert_opts opts = {.size = sizeof(opts), .kernel = true};
	struct cairn_err err = {0};
	void *bytes = NULL;
	size_t size;
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "t"), 77);
	struct blob in = finish(b, NULL);
	assert_int_equal(cairn_btf_convert(in.btf, &opts, NULL, &bytes, &size, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "record 1: TYPEDEF"));
	assert_null(bytes);
	blob_free(&in);
}

static void kernel_names_are_identifiers_and_stay_different(void **state)
{
	struct cairn_btf_losses losses;
	struct blob b = of_other_languages();
	struct blob k = convert(b.btf, (struct cairn_btf_convert_opts){.kernel = true}, &losses);
	assert_int_equal(cairn_btf_check_for_kernel(k.btf, 0, NULL, NULL), 0);
	assert_string_equal(name_at(&k, 1), "unsigned int");
	assert_string_equal(name_at(&k, 2), "a.b_c_");
	/* That name is taken by one that stays as it is. */
	assert_memory_equal(name_at(&k, 3), "a.b_c_.", 7);
	assert_memory_equal(name_at(&k, 4), "a.b_c_.", 7);
	assert_string_not_equal(name_at(&k, 3), name_at(&k, 4));
	assert_string_equal(name_at(&k, 5), "_0th");
	assert_int_equal(strlen(name_at(&k, 6)), 511);
	assert_string_not_equal(name_at(&k, 6), name_at(&k, 7));
	/* a::b<c>, a::b(c), 0th, two long ones, ~first, ~r0, f::g */
	assert_int_equal(losses.names, 8);
	blob_free(&k);
	blob_free(&b);
}

static void kernel_members_are_in_order_and_keep_their_tags(void **state)
{
	struct cairn_btf_losses losses;
	struct blob b = of_other_languages();
	struct blob k = convert(b.btf, (struct cairn_btf_convert_opts){.kernel = true}, &losses);
	uint32_t id = cairn_btf_find(k.btf, "s", CAIRN_BTF_STRUCT, 0);
	struct cairn_btf_type s = must_have(k.btf, id);
	static const char *const names[] = {"_first", "middle", "last"};
	for (uint32_t i = 0; i < 3; i++) {
		struct cairn_btf_member m = cairn_btf_member(&s, i);
		assert_string_equal(cairn_btf_string(k.btf, m.name_off), names[i]);
		assert_int_equal(m.bit_off, 32 * i);
	}
	assert_int_equal(must_have(k.btf, id + 1).words[0], 2);
	assert_int_equal(must_have(k.btf, id + 2).words[0], UINT32_MAX);
	assert_int_equal(losses.member_orders, 1);
	blob_free(&k);
	blob_free(&b);
}

static void kernel_functions_have_named_parameters_of_known_size(void **state)
{
	struct cairn_btf_losses losses;
	struct blob b = of_other_languages();
	struct blob k = convert(b.btf, (struct cairn_btf_convert_opts){.kernel = true}, &losses);
	uint32_t id = cairn_btf_find(k.btf, "f.g", CAIRN_BTF_FUNC, 0);
	struct cairn_btf_type proto = must_have(k.btf, must_have(k.btf, id).ref);
	assert_string_equal(cairn_btf_string(k.btf, cairn_btf_param(&proto, 0).name_off), "arg0");
	assert_string_equal(cairn_btf_string(k.btf, cairn_btf_param(&proto, 1).name_off), "_r0");
	assert_int_equal(cairn_btf_param(&proto, 2).name_off, 0);
	/* A prototype that no function has may be without. */
	proto = must_have(k.btf, id + 1);
	assert_int_equal(cairn_btf_param(&proto, 0).name_off, 0);
	assert_int_equal(cairn_btf_find(k.btf, "by_value", CAIRN_BTF_FUNC, 0), 0);
	assert_int_equal(losses.params, 1);
	assert_int_equal(losses.functions, 1);
	assert_int_equal(losses.tags, 1);
	assert_string_equal(name_at(&k, cairn_btf_end_id(k.btf) - 1), "end");
	blob_free(&k);
	blob_free(&b);
}

static void kernel_form_of_the_kernel_form_is_itself(void **state)
{
	struct cairn_btf_losses losses;
	struct blob b = of_other_languages();
	struct blob k = convert(b.btf, (struct cairn_btf_convert_opts){.kernel = true}, NULL);
	struct blob again =
		convert(k.btf, (struct cairn_btf_convert_opts){.kernel = true}, &losses);
	assert_nothing_lost(&losses);
	assert_same_bytes(&k, &again);
	blob_free(&again);
	blob_free(&k);
	blob_free(&b);
}

/* ---- several blobs ---- */

static void split_blob_follows_its_converted_base(void **state)
{
	struct blob base = modern();
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t node = cairn_btf_find(base.btf, "after_tags", 0, 0);
	uint32_t last = cairn_btf_find(base.btf, "last", 0, 0);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "own"), node);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "last"), last);
	struct blob split = finish(b, base.btf);
	struct cairn_btf_convert_opts opts = {.size = sizeof(opts), .downgrade = true};
	struct blob old_base = convert(base.btf, opts, NULL);
	opts.base = old_base.btf;
	struct blob old = convert(split.btf, opts, NULL);
	struct cairn_btf_type t = must_have(old.btf, cairn_btf_find(old.btf, "own", 0, 0));
	assert_string_equal(must_have(old.btf, t.ref).name, "after_tags");
	t = must_have(old.btf, cairn_btf_end_id(old.btf) - 1);
	assert_string_equal(t.name, "last");
	assert_string_equal(must_have(old.btf, t.ref).name, "last");
	assert_int_not_equal(t.ref, last);
	assert_int_equal(cairn_btf_check(old.btf, NULL, NULL), 0);

	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	struct blob other = each_kind((struct cairn_btf_build_opts){0});
	opts.base = other.btf;
	assert_int_equal(cairn_btf_convert(split.btf, &opts, NULL, &bytes, &size, &err), -EINVAL);
	opts.base = NULL;
	assert_int_equal(cairn_btf_convert(split.btf, &opts, NULL, &bytes, &size, &err), -EINVAL);
	blob_free(&other);
	blob_free(&old);
	blob_free(&old_base);
	blob_free(&split);
	blob_free(&base);
}

/* A blob with a record of a made-up kind in the middle, whose size its layout tells. */
static struct blob with_unknown_kind(void)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.layout = true});
	uint32_t words[] = {1, 2};
	learn_made_up_kinds(b);
	add_int(b);
	ADD(ref, b, CAIRN_BTF_PTR, 0, add_made_up(b, KIND_OF_8_BYTES, 0, words));
	return finish(b, NULL);
}

static void unknown_kind_is_carried_until_something_moves(void **state)
{
	struct cairn_btf_losses losses;
	struct blob b = with_unknown_kind();
	struct blob same = convert(b.btf, (struct cairn_btf_convert_opts){.layout = true}, &losses);
	assert_same_bytes(&b, &same);
	assert_nothing_lost(&losses);
	struct blob without = convert(b.btf, (struct cairn_btf_convert_opts){0}, &losses);
	assert_int_equal(losses.unknown_kinds, 1);
	assert_int_equal(cairn_btf_end_id(without.btf), 3);
	assert_int_equal(must_have(without.btf, 2).ref, 0);
	blob_free(&without);
	blob_free(&same);
	blob_free(&b);
}

static void no_memory_is_said(void **state)
{
	static const struct cairn_btf_convert_opts of[] = {
		{.size = sizeof(of[0]), .dialect = CAIRN_BTF_LOC_V1},
		{.size = sizeof(of[0]), .kernel = true}};
	struct blob b[] = {sites(true), of_other_languages()};
	for (unsigned int i = 1, which = 0; which < ARRAY_SIZE(b); i++) {
		void *bytes = NULL;
		size_t size;
		alloc_fail_at(i);
		int rc = cairn_btf_convert(b[which].btf, &of[which], NULL, &bytes, &size, NULL);
		bool failed = alloc_fail_end();
		/* The check of what the kernel takes can do without the sorted names. */
		assert_true(failed ? rc == -ENOMEM || (of[which].kernel && rc == 0) : rc == 0);
		free(bytes);
		if (failed)
			continue;
		blob_free(&b[which++]);
		i = 0;
	}
}

/* ---- other readers ---- */

static void debians_bpftool_reads_the_downgrade(void **state)
{
	if (system("command -v bpftool >/dev/null 2>&1") != 0) {
		print_message("no bpftool\n");
		skip();
	}
	struct blob b = modern();
	struct blob old = convert(b.btf, (struct cairn_btf_convert_opts){.downgrade = true}, NULL);
	char path[] = "/tmp/cairn_btf_XXXXXX", command[256];
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, old.bytes, old.size) == (ssize_t)old.size);
	close(fd);
	snprintf(command, sizeof(command), "bpftool btf dump file %s | grep -q \"TYPEDEF 'last'\"",
		 path);
	int rc = system(command);
	unlink(path);
	assert_int_equal(rc, 0);
	blob_free(&old);
	blob_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_form_gives_the_same_bytes),
		cmocka_unit_test(byte_order_and_layout_there_and_back_give_the_same_bytes),
		cmocka_unit_test(kernel_btf_in_its_own_form_is_itself),
		cmocka_unit_test(both_dialects_say_the_same),
		cmocka_unit_test(what_v1_cannot_say_is_no_location_and_counted),
		cmocka_unit_test(v1_says_no_address_by_another_type),
		cmocka_unit_test(more_than_65535_sites_are_several_sections_in_v1_and_one_in_n),
		cmocka_unit_test(v1_site_without_a_func_gets_one),
		cmocka_unit_test(downgrade_drops_what_old_readers_refuse_and_says_so),
		cmocka_unit_test(kernel_names_are_identifiers_and_stay_different),
		cmocka_unit_test(what_a_kernel_refuses_is_left_out_or_hidden),
		cmocka_unit_test(what_stays_refused_is_no_result),
		cmocka_unit_test(kernel_members_are_in_order_and_keep_their_tags),
		cmocka_unit_test(kernel_functions_have_named_parameters_of_known_size),
		cmocka_unit_test(kernel_form_of_the_kernel_form_is_itself),
		cmocka_unit_test(split_blob_follows_its_converted_base),
		cmocka_unit_test(unknown_kind_is_carried_until_something_moves),
		cmocka_unit_test(no_memory_is_said),
		cmocka_unit_test(debians_bpftool_reads_the_downgrade),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
