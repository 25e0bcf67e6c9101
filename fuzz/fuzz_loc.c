/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a variable is, and what it is there: expressions, lists and frame bases over any code
 *
 *	0   12  struct head
 *	12  n   an expression, then the frame base's, then an FDE's program, then code
 *
 * The expression is folded into steps and run by cairn on the registers and memory of a core file.
 * It is also run here as DWARF says it, on a stack: where both have a value, it is the same one.
 * Then the program that has it as the location of a parameter is asked as tracers ask it.
 */
#include "fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cairn/sites.h>
#include <cairn/stack.h>

#include "base/cursor.h"
#include "core_builder.h"
#include "dwarf/constants.h"
#include "dwarf_builder.h"
#include "elf/elf.h"
#include "frame_builder.h"
#include "loc/loc.h"
#include "loc_machine.h"

/* Each input is a program to analyse. */
const unsigned int fuzz_places_max = 16;

enum { START = 0x1000, CODE_MAX = 256, MEMORY_AT = 0x10000, MEMORY = 0x2000, EXPR_MAX = 250 };

enum {
	IS_CLANG = 1,
	IS_GO = 2,
	IS_LIST = 4,
	IS_COPY = 8,
	IS_NOW = 16,
	HAS_CALLER = 32,
	IS_PASSED_ON = 64,
	IS_CPP = 128
};

struct head {
	uint8_t flags, n_expr, n_base, n_rows;
	uint8_t at, lo, hi, type, other_type;
	uint8_t copy_lo, copy_hi, view;
};

struct input {
	struct head h;
	const uint8_t *expr, *base, *rows, *code;
	size_t n_code;
};

/* ---- the program ---- */

/* Labels of its types: those of loc_machine.h first. */
enum { PTR = MACHINE_N_TYPES, PAIR, FLOAT, STRING, ONE, EMPTY, BIG, N_TYPES };

static void put_member(struct db *db, int type, uint64_t at)
{
	DB_DIE(db, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "m"), DB_REF(DW_AT_type, type),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, at));
}

static void put_struct(struct db *db, int label, const char *name, uint64_t size, int first,
		       int second)
{
	db_here(db, label);
	DB_DIE(db, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, name),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, size));
	if (first)
		put_member(db, first, 0);
	if (second)
		put_member(db, second, 8);
	db_null(db);
}

/* Of a size that depends on nothing, so that expressions can name types by their offsets. */
static void put_types(struct db *db, int labels[N_TYPES])
{
	for (int i = 0; i < MACHINE_N_TYPES; i++) {
		db_here(db, labels[i]);
		DB_DIE(db, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "base"),
		       DB_U(DW_AT_byte_size, DW_FORM_data1, 1 << i / 2),
		       DB_U(DW_AT_encoding, DW_FORM_data1,
			    i % 2 ? DW_ATE_signed : DW_ATE_unsigned));
	}
	db_here(db, labels[PTR]);
	DB_DIE(db, DW_TAG_pointer_type, DB_LEAF, DB_U(DW_AT_byte_size, DW_FORM_data1, 8),
	       DB_REF(DW_AT_type, labels[0]));
	db_here(db, labels[FLOAT]);
	DB_DIE(db, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "double"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 8), DB_U(DW_AT_encoding, DW_FORM_data1, 4));
	put_struct(db, labels[PAIR], "pair", 16, labels[PTR], labels[FLOAT]);
	put_struct(db, labels[STRING], "string", 16, labels[PTR], labels[7]);
	put_struct(db, labels[EMPTY], "empty", 1, 0, 0);
	put_struct(db, labels[BIG], "big", 48, labels[PAIR], labels[7]);
	db_here(db, labels[ONE]);
	DB_DIE(db, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, labels[FLOAT]));
	DB_DIE(db, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_count, DW_FORM_data1, 1));
	db_null(db);
}

/* An entry with the expression, and one after it that has another. */
static uint64_t put_list(struct db *db, const struct input *in)
{
	static const uint8_t after[] = {1, DW_OP_reg0 + 3};
	uint64_t mark = db_length(db, DB_LOCLISTS);
	db_uint(db, DB_LOCLISTS, 5, 2);
	db_uint(db, DB_LOCLISTS, 8, 2);
	db_uint(db, DB_LOCLISTS, 0, 4);
	uint64_t list = db_at(db, DB_LOCLISTS);
	db_u8(db, DB_LOCLISTS, DW_LLE_offset_pair);
	db_uleb(db, DB_LOCLISTS, in->h.lo);
	db_uleb(db, DB_LOCLISTS, in->h.hi);
	db_uleb(db, DB_LOCLISTS, in->h.n_expr);
	db_bytes(db, DB_LOCLISTS, in->expr, in->h.n_expr);
	db_u8(db, DB_LOCLISTS, DW_LLE_offset_pair);
	db_uleb(db, DB_LOCLISTS, in->h.hi);
	db_uleb(db, DB_LOCLISTS, in->n_code);
	db_bytes(db, DB_LOCLISTS, after, sizeof(after));
	db_u8(db, DB_LOCLISTS, DW_LLE_end_of_list);
	db_length_end(db, DB_LOCLISTS, mark);
	return list;
}

static struct db_attr place(struct db *db, const struct input *in, bool as_list)
{
	if (as_list)
		return DB_SECOFF(DW_AT_location, put_list(db, in));
	return (struct db_attr){.at = DW_AT_location,
				.form = DW_FORM_exprloc,
				.bytes = in->expr,
				.n = in->h.n_expr};
}

static void put_params(struct db *db, const struct input *in, const int labels[N_TYPES])
{
	bool as_list = in->h.flags & IS_LIST;
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "first"),
	       DB_REF(DW_AT_type, labels[in->h.type % N_TYPES]), place(db, in, as_list));
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "other"),
	       DB_REF(DW_AT_type, labels[in->h.other_type % N_TYPES]),
	       DB_EXPR(DW_AT_location, DW_OP_fbreg, 8));
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "last"),
	       DB_REF(DW_AT_type, labels[5]), DB_EXPR(DW_AT_location, DW_OP_fbreg, 0x68));
}

static void put_copy(struct db *db, const struct input *in, int callee, const int params[2])
{
	uint64_t lo = in->h.copy_lo, hi = in->h.copy_hi > lo ? in->h.copy_hi : lo + 1;
	DB_DIE(db, DW_TAG_inlined_subroutine, DB_CHILDREN, DB_REF(DW_AT_abstract_origin, callee),
	       DB_ADDR(DW_AT_low_pc, START + lo), DB_U(DW_AT_high_pc, DW_FORM_data4, hi - lo),
	       DB_ADDR(DW_AT_entry_pc, START + lo), DB_U(DW_AT_call_line, DW_FORM_data1, 7),
	       DB_U(DW_AT_GNU_entry_view, DW_FORM_data1, in->h.view));
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_abstract_origin, params[0]),
	       place(db, in, in->h.flags & IS_LIST));
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_abstract_origin, params[1]),
	       place(db, in, false));
	db_null(db);
}

/* A function that is inlined in another, and what it takes. */
static int put_inlined(struct db *db, const struct input *in, const int labels[N_TYPES],
		       int params[2])
{
	int callee = db_label(db);
	db_here(db, callee);
	DB_DIE(db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "inlined"),
	       DB_U(DW_AT_inline, DW_FORM_data1, 1));
	for (int i = 0; i < 2; i++) {
		params[i] = db_label(db);
		db_here(db, params[i]);
		DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, i ? "y" : "x"),
		       DB_REF(DW_AT_type, labels[(in->h.type + i) % N_TYPES]));
	}
	db_null(db);
	return callee;
}

static void put_rows(struct db *db, const struct input *in)
{
	static const uint8_t end[4] = {0};
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, DB_EH_FRAME_AT, cie, START, (uint32_t)in->n_code, in->rows, in->h.n_rows);
	frames_put(&f, end, sizeof(end));
	db_bytes(db, DB_EH_FRAME, f.bytes, f.n);
	frames_free(&f);
}

static struct db *build(const struct input *in, int *ret_function,
			uint64_t type_offs[MACHINE_N_TYPES])
{
	struct db *db = db_new((struct db_format){.version = 5});
	int labels[N_TYPES], params[2];
	uint8_t flags = in->h.flags;
	db_code(db, in->code, in->n_code);
	for (int i = 0; i < N_TYPES; i++)
		labels[i] = db_label(db);
	*ret_function = db_label(db);
	db_unit(db, DW_UT_compile);
	DB_DIE(db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "unit.c"),
	       DB_STRP(DW_AT_producer, flags & IS_GO      ? "Go cmd/compile go1.21; regabi"
				       : flags & IS_CLANG ? "clang version 14.0.6"
							  : "GNU C17 12.2.0 -O2 -g"),
	       DB_U(DW_AT_language, DW_FORM_data2,
		    flags & IS_GO    ? 0x16
		    : flags & IS_CPP ? 0x21
				     : 0x1d),
	       DB_ADDR(DW_AT_low_pc, START), DB_U(DW_AT_high_pc, DW_FORM_data4, in->n_code));
	put_types(db, labels);
	int callee = put_inlined(db, in, labels, params);
	db_here(db, *ret_function);
	DB_DIE(db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "function"),
	       DB_FLAG(DW_AT_external), DB_ADDR(DW_AT_low_pc, START),
	       DB_U(DW_AT_high_pc, DW_FORM_data4, in->n_code),
	       (struct db_attr){.at = DW_AT_frame_base,
				.form = DW_FORM_exprloc,
				.bytes = in->base,
				.n = in->h.n_base});
	put_params(db, in, labels);
	if (flags & IS_COPY)
		put_copy(db, in, callee, params);
	db_null(db);
	db_null(db);
	db_unit_end(db);
	put_rows(db, in);
	for (int i = 0; i < MACHINE_N_TYPES; i++)
		type_offs[i] = db_offset(db, labels[i]);
	return db;
}

/* ---- the machine ---- */

/* A core file of one thread; what it has is told by cairn, and read here as it was written. */
static struct {
	struct cairn_stacks *stacks;
	struct machine m;
	uint8_t memory[MEMORY];
} core;

static void open_core(void)
{
	/* DWARF's order in that of the kernel: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15. */
	static const uint8_t user_of[16] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
	uint64_t user[27] = {[16] = 0x400000};
	struct core_builder b = {0};
	struct cairn_err err = {0};
	char path[64];
	int fd = memfd_create("core", MFD_CLOEXEC);
	for (size_t i = 0; i < MEMORY; i++)
		core.memory[i] = (uint8_t)(i * 7 + i / 256 * 3);
	for (size_t i = 0; i < 16; i++)
		core.m.r[i] = i % 2 ? (uint64_t)0x80000000 << i : MEMORY_AT + 128 + 64 * i;
	core.m.r[1] = UINT64_MAX;
	core.m.r[3] = 0x1234567fff80;
	core.m.r[5] = 0xffffffff80000000;
	core.m.r[7] = MEMORY_AT + 128;
	for (size_t i = 0; i < 16; i++)
		user[user_of[i]] = core.m.r[i];
	cb_thread(&b, 1, 0, user);
	cb_memory(&b, (struct cb_segment){MEMORY_AT, MEMORY, PF_R | PF_W, core.memory, MEMORY});
	cb_finish(&b);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, b.bytes, b.n) != (ssize_t)b.n ||
	    cairn_stacks_open_core(path, NULL, &core.stacks, &err) < 0)
		abort();
	close(fd);
	cb_free(&b);
	const struct cairn_stack_frame *f = cairn_stacks_thread(core.stacks, 0)->frames[0];
	core.m.memory = core.memory;
	core.m.memory_at = MEMORY_AT;
	core.m.n_memory = MEMORY;
	core.m.bias = f->at.v - f->vaddr.v;
	core.m.r[16] = f->pc.v;
}

static void clean_up(void)
{
	cairn_stacks_close(core.stacks);
}

/* What the location holds is what the expression says. */
static void compare(const struct input *in, const struct cairn_location *loc)
{
	uint64_t got = 0, want, at;
	if (loc->why != CAIRN_AVAILABLE || loc->n_pieces != 1 ||
	    loc->pieces[0].kind == CAIRN_PIECE_BYTES)
		return;
	enum machine_result result = machine_run(&core.m, in->expr, in->h.n_expr, &want);
	if (result == MACHINE_UNDEFINED)
		return;
	assert((result == MACHINE_VALUE) == (loc->pieces[0].kind == CAIRN_PIECE_VALUE));
	at = want;
	if (result == MACHINE_ADDRESS && !machine_load(&core.m, at, 8, &want))
		return;
	if (cairn_stacks_value(core.stacks, cairn_stacks_thread(core.stacks, 0), 0, NULL, loc, &got,
			       sizeof(got)) == CAIRN_AVAILABLE)
		assert(got == want);
}

/* ---- the target ---- */

static void fold(const struct input *in, struct cairn_binary *bin, uint64_t function)
{
	struct loc_context ctx = {.code = binary_main(bin),
				  .entry = {START},
				  .at = {START + in->h.at},
				  .next = {START + in->h.at},
				  .is_now = in->h.flags & IS_NOW,
				  .has_caller = in->h.flags & HAS_CALLER,
				  .padding = {START + in->h.at},
				  .view = in->h.view,
				  .inlined = in->h.flags & IS_COPY};
	struct cairn_location loc;
	struct dwarf *dw;
	struct cfi *cfi;
	struct arena arena;
	char text[256];
	if (dwarf_open(bin, 1, &dw, NULL) < 0)
		return;
	arena_init(&arena);
	if (cfi_open(bin, &cfi, NULL) == 0) {
		ctx.dw = dw;
		ctx.cfi = cfi;
		if (dw_die_at(dw, function, &ctx.function, NULL) == 1) {
			ctx.flow = flow_new(ctx.code, &ctx.function, ctx.entry);
			core.m.cfa_is_known = loc_row(&ctx) && ctx.row.cfa == CFI_CFA_REG_OFFSET &&
					      ctx.row.cfa_reg < 16;
			core.m.cfa = core.m.cfa_is_known
					     ? core.m.r[ctx.row.cfa_reg] + (uint64_t)ctx.row.cfa_off
					     : 0;
			core.m.is_entry = ctx.at.v == ctx.entry.v;
			if (loc_from_expr(&ctx, ctx.function.unit, in->expr, in->h.n_expr, &arena,
					  &loc) == 0) {
				cairn_location_text(&loc, NULL, NULL, text, sizeof(text));
				compare(in, &loc);
			}
			flow_free(ctx.flow);
		}
		cfi_close(cfi);
	}
	arena_fini(&arena);
	dwarf_close(dw);
}

static int visit(void *ctx, const struct cairn_function *f)
{
	char text[256];
	for (uint32_t i = 0; i < f->n_sites; i++)
		for (uint32_t k = 0; k < f->sites[i].n_args; k++)
			cairn_location_text(&f->sites[i].args[k].loc, cairn_sites_symbol, ctx, text,
					    sizeof(text));
	return 0;
}

static void ask(const struct input *in, struct cairn_binary *bin)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts),
					.assume_unmodified = in->h.flags & IS_PASSED_ON};
	const struct cairn_scope *active;
	struct cairn_sites *sites;
	if (cairn_sites_open(bin, &opts, &sites, NULL) < 0)
		return;
	cairn_sites_visit(sites, visit, sites, NULL);
	for (uint64_t at = 0; at < in->n_code; at += in->n_code / 16 + 1) {
		int n = cairn_sites_at(sites, (struct cairn_vaddr){START + at}, at & 1, &active,
				       NULL);
		for (int i = 0; i < n; i++)
			for (uint32_t k = 0; k < active[i].n_args; k++) {
				uint8_t bytes[16];
				cairn_stacks_value(core.stacks, cairn_stacks_thread(core.stacks, 0),
						   0, sites, &active[i].args[k].loc, bytes,
						   sizeof(bytes));
			}
	}
	cairn_sites_close(sites);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in;
	struct cairn_binary *bin;
	int function;
	size_t n;
	if (!core.stacks) {
		open_core();
		atexit(clean_up);
	}
	if (size < sizeof(in.h))
		return 0;
	memcpy(&in.h, bytes, sizeof(in.h));
	size_t used = sizeof(in.h) + in.h.n_expr + in.h.n_base + in.h.n_rows;
	if (used >= size || size - used > CODE_MAX || in.h.n_expr > EXPR_MAX)
		return 0;
	in.expr = bytes + sizeof(in.h);
	in.base = in.expr + in.h.n_expr;
	in.rows = in.base + in.h.n_base;
	in.code = in.rows + in.h.n_rows;
	in.n_code = size - used;
	in.h.at = (uint8_t)(in.h.at % in.n_code);
	struct db *db = build(&in, &function, core.m.types);
	uint8_t *file = db_finish(db, &n);
	if (binary_open_mem(file, n, "input", &bin, NULL) == 0) {
		fold(&in, bin, db_offset(db, function));
		ask(&in, bin);
		cairn_binary_close(bin);
	}
	db_free(db);
	return 0;
}

/* ---- seeds ---- */

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

struct seed {
	struct head h;
	const uint8_t *expr;
	size_t n_expr;
};

/*
 * push rbp; mov rbp,rsp; mov [rbp-8],rdi; a loop with a call; mov rax,[rbp-8]; mov rdi,[rbp+16];
 * pop rbp; ret
 */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x7d, 0xf8, 0x31, 0xdb, 0xe8,
			       0,    0,    0,    0,    0xff, 0xc3, 0x83, 0xfb, 8,    0x75, 0xf4,
			       0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x7d, 0x10, 0x5d, 0xc3};
/* After one byte rsp + 16, rbp saved; after three more rbp + 16; before the ret rsp + 8. */
static const uint8_t rows[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x5b, 0x0c, 7, 8};
static const uint8_t bases[][4] = {
	{DW_OP_call_frame_cfa}, {DW_OP_reg0 + 6}, {DW_OP_breg0 + 7, 8}, {DW_OP_reg0 + 7}};

static void put_one(struct seed s, size_t base, void (*put)(const void *bytes, size_t size))
{
	uint8_t all[512], *to = all + sizeof(s.h);
	size_t n_base = base == 2 ? 2 : 1;
	s.h.n_expr = (uint8_t)s.n_expr;
	s.h.n_base = (uint8_t)n_base;
	s.h.n_rows = sizeof(rows);
	memcpy(all, &s.h, sizeof(s.h));
	memcpy(to, s.expr, s.n_expr);
	memcpy(to + s.n_expr, bases[base], n_base);
	memcpy(to + s.n_expr + n_base, rows, sizeof(rows));
	memcpy(to + s.n_expr + n_base + sizeof(rows), code, sizeof(code));
	put(all, sizeof(s.h) + s.n_expr + n_base + sizeof(rows) + sizeof(code));
}

/*
 * Unit-relative offsets of the types of 1, 2, 4, 8 bytes, without and with sign: what build() gives
 * them.
 */
static void type_offsets(uint8_t to[MACHINE_N_TYPES])
{
	const struct input in = {
		.code = code, .n_code = sizeof(code), .expr = code, .base = code, .rows = rows};
	uint64_t offs[MACHINE_N_TYPES];
	int function;
	db_free(build(&in, &function, offs));
	for (int i = 0; i < MACHINE_N_TYPES; i++) {
		assert(offs[i] < 0x80);
		to[i] = (uint8_t)offs[i];
	}
}

static void put_untyped(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	const struct seed seeds[] = {
		{{0}, BYTES(DW_OP_fbreg, 0x78)},
		{{.at = 10, .flags = IS_NOW}, BYTES(DW_OP_fbreg, 0x68)},
		{{.at = 24, .flags = IS_NOW | IS_LIST, .lo = 24, .hi = 30}, BYTES(DW_OP_fbreg, 0x68)},
		{{.at = 10, .flags = IS_NOW | IS_LIST, .hi = 10}, BYTES(DW_OP_reg0 + 5)},
		{{.at = 8, .flags = IS_COPY, .copy_lo = 8, .copy_hi = 22}, BYTES(DW_OP_fbreg, 8, DW_OP_deref, DW_OP_stack_value)},
		{{.at = 8, .flags = IS_COPY | IS_CLANG, .copy_lo = 8, .copy_hi = 22},
		 BYTES(DW_OP_fbreg, 0x78, DW_OP_plus_uconst, 26, DW_OP_stack_value)},
		{{.flags = IS_GO, .type = STRING, .other_type = PAIR}, BYTES(DW_OP_reg0, DW_OP_piece, 8, DW_OP_reg0 + 3, DW_OP_piece, 8)},
		{{.flags = IS_GO, .type = FLOAT, .other_type = ONE}, BYTES(DW_OP_reg0 + 17)},
		{{.flags = IS_GO, .type = ONE, .other_type = BIG}, BYTES(DW_OP_reg0 + 17)},
		{{.flags = IS_CPP, .type = EMPTY, .other_type = BIG}, BYTES(DW_OP_fbreg, 0)},
		{{.type = FLOAT}, BYTES(DW_OP_regx, 17)},
		{{.type = PAIR, .other_type = STRING}, BYTES(DW_OP_reg0 + 5, DW_OP_piece, 8, DW_OP_reg0 + 17, DW_OP_piece, 8)},
		{{.type = PAIR}, BYTES(DW_OP_piece, 8, DW_OP_reg0 + 17, DW_OP_bit_piece, 64, 0)},
		{{.at = 12, .flags = HAS_CALLER}, BYTES(DW_OP_entry_value, 1, DW_OP_reg0 + 5, DW_OP_stack_value)},
		{{.at = 12}, BYTES(DW_OP_GNU_entry_value, 1, DW_OP_reg0 + 12, DW_OP_stack_value)},
		{{.flags = HAS_CALLER}, BYTES(DW_OP_GNU_parameter_ref, 0x30, 0, 0, 0, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_GNU_parameter_ref, 0x30, 0, 0, 0, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_implicit_value, 4, 1, 2, 3, 4)},
		{{0}, BYTES(DW_OP_implicit_value, 8, 1, 2, 3, 4, 5, 6, 7, 8, DW_OP_piece, 4)},
		{{0}, BYTES(DW_OP_implicit_pointer, 0, 0, 0, 0, 0)},
		{{0}, BYTES(DW_OP_const4u, 0, 0, 0, 0, DW_OP_form_tls_address)},
		{{0}, BYTES(DW_OP_addr, 0, 0x20, 0, 0, 0, 0, 0, 0)},
		{{0}, BYTES(DW_OP_addrx, 0)},
		{{0}, BYTES(DW_OP_constx, 1, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_bregx, 4, 16, DW_OP_deref_size, 4, DW_OP_bregx, 3, 0, DW_OP_plus, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_const1s, 0x85, DW_OP_const2u, 1, 2, DW_OP_const2s, 0xff, 0xff, DW_OP_rot, DW_OP_minus, DW_OP_mul, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 0x88, DW_OP_breg0 + 3, 0, DW_OP_xor, DW_OP_const4s, 0, 0, 0, 0x80, DW_OP_and, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_breg0 + 4, 8, DW_OP_deref, DW_OP_dup, DW_OP_over, DW_OP_pick, 2, DW_OP_swap, DW_OP_drop, DW_OP_or, DW_OP_plus, DW_OP_not,
			    DW_OP_neg, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_breg0 + 1, 0, DW_OP_constu, 8, DW_OP_shl, DW_OP_consts, 0x7e, DW_OP_lt, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_breg0 + 3, 0, DW_OP_const1u, 32, DW_OP_shl, DW_OP_const1u, 32, DW_OP_shra, DW_OP_lit0 + 5, DW_OP_shr, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_breg0 + 3, 0, DW_OP_breg0 + 5, 0, DW_OP_ge, DW_OP_breg0 + 4, 0, DW_OP_deref, DW_OP_ne, DW_OP_breg0 + 2, 0, DW_OP_deref,
			    DW_OP_breg0 + 6, 0, DW_OP_deref, DW_OP_gt, DW_OP_eq, DW_OP_nop, DW_OP_le, DW_OP_stack_value)},
		{{0}, BYTES(DW_OP_call_frame_cfa, DW_OP_plus_uconst, 8)},
		{{.flags = IS_PASSED_ON}, BYTES(DW_OP_breg0 + 7, 8, DW_OP_deref, DW_OP_breg0 + 5, 0, DW_OP_mul)},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put_one(seeds[i], i % 4, put);
	for (size_t base = 0; base < 4; base++)
		put_one(seeds[2], base, put);
}

static void put_typed(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t ops[] = {DW_OP_shr, DW_OP_shra, DW_OP_plus,
				      DW_OP_lt,  DW_OP_ge,   DW_OP_mul};
	uint8_t t[MACHINE_N_TYPES];
	type_offsets(t);
	for (size_t i = 0; i < MACHINE_N_TYPES; i++) {
		put_one((struct seed){{0},
				      BYTES(DW_OP_regval_type, 3, t[i], DW_OP_const_type, t[i],
					    (uint8_t)(1 << i / 2), 3, 0, 0, 0, 0, 0, 0, 0)},
			0, put);
		for (size_t k = 0; k < sizeof(ops); k++)
			put_one((struct seed){{0},
					      BYTES(DW_OP_regval_type, 5, t[i], DW_OP_breg0 + 3, 0,
						    DW_OP_convert, t[i], ops[k],
						    DW_OP_stack_value)},
				0, put);
		put_one((struct seed){{0},
				      BYTES(DW_OP_regval_type, 1, t[i], DW_OP_plus_uconst, 9,
					    DW_OP_lit0 + 3, DW_OP_convert, t[i], ops[i % 2],
					    DW_OP_convert, t[7], DW_OP_stack_value)},
			0, put);
		put_one((struct seed){{0},
				      BYTES(DW_OP_breg0 + 4, 8, DW_OP_deref_type,
					    (uint8_t)(1 << i / 2), t[i], DW_OP_neg, DW_OP_convert,
					    t[i ^ 1], DW_OP_reinterpret, t[i], DW_OP_stack_value)},
			0, put);
	}
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_untyped(put);
	put_typed(put);
}
