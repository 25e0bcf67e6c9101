/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters in the middle of functions, from the debug information and from a sidecar: the same?
 *
 *	args_from_sidecar FILE [STRIDE [DEBUG_FILE]]
 *
 * A sidecar of FILE is made in memory. Then every STRIDE-th instruction of its code is asked about
 * twice: as where a program stands (the innermost frame), and after a call as where a call returns
 * to. Where a location asks for what was passed, all direct calls of the function are asked about
 * as well. Functions, names, types and locations have to be equal, step by step. Prints what was
 * compared; exits with 1 after the first differences.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>
#include <cairn/sidecar.h>
#include <cairn/sites.h>

#include "base/map.h"
#include "base/vec.h"
#include "elf/elf.h"
#include "insn/insn.h"

enum {
	DIFFERENCES_MAX = 20,
	TYPE_NAME_MAX = 512,
	CALL_BYTES = 5,
	CALL_OPCODE = 0xe8,
};

struct asked {
	struct cairn_loc_step debug, sidecar;
};

struct function {
	uint64_t pc; /* where it was asked */
	VEC(struct asked) asked;
};

struct comparing {
	struct cairn_binary *bin;
	struct elf *code;
	struct cairn_sidecar_image image;
	struct cairn_sidecar *made;
	struct cairn_sites *debug, *sidecar;
	uint64_t stride;
	uint64_t n_pcs, n_functions, n_args, n_available, n_passed, n_passed_available, n_different;
	struct map function_at;
	VEC(struct function) functions;
};

static void die(const char *what)
{
	fprintf(stderr, "args_from_sidecar: %s\n", what);
	exit(2);
}

static void differ(struct comparing *c, uint64_t pc, bool is_exact, const char *function,
		   const char *arg, const char *what)
{
	printf("0x%" PRIx64 "%s %s(%s): %s\n", pc, is_exact ? " exact" : "",
	       function ? function : "?", arg ? arg : "", what);
	if (++c->n_different == DIFFERENCES_MAX)
		exit(1);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : !a == !b;
}

/* ---- locations ---- */

static bool same_step(const struct cairn_loc_step *a, const struct cairn_loc_step *b)
{
	/* Which DIE stands for a removed parameter is each one's own affair. */
	bool same_imm = a->imm == b->imm || a->op == CAIRN_LOC_ENTRY_PARAM;
	return a->op == b->op && a->operand == b->operand && a->size == b->size &&
	       a->reg == b->reg && same_imm;
}

static bool same_piece(const struct cairn_piece *a, const struct cairn_piece *b)
{
	if (a->kind != b->kind || a->off != b->off || a->size != b->size ||
	    a->n_steps != b->n_steps)
		return false;
	for (uint32_t i = 0; i < a->n_steps; i++)
		if (!same_step(&a->steps[i], &b->steps[i]))
			return false;
	return a->kind != CAIRN_PIECE_BYTES || !memcmp(a->bytes, b->bytes, a->size);
}

static bool same_location(const struct cairn_location *a, const struct cairn_location *b)
{
	if (a->why != b->why || a->n_pieces != b->n_pieces)
		return false;
	for (uint32_t i = 0; i < a->n_pieces; i++)
		if (!same_piece(&a->pieces[i], &b->pieces[i]))
			return false;
	return true;
}

/* ---- what callers are asked ---- */

static struct function *function_of(struct comparing *c, uint64_t start, uint64_t pc)
{
	uint64_t i;
	if (map_get(&c->function_at, start, &i))
		return &c->functions.p[i];
	struct function f = {.pc = pc};
	if (map_put(&c->function_at, start, c->functions.n) < 0 || !VEC_ADD(&c->functions, f))
		die("no memory");
	return &c->functions.p[c->functions.n - 1];
}

static void note_step(struct comparing *c, uint64_t pc, const struct cairn_loc_step *debug,
		      const struct cairn_loc_step *sidecar)
{
	struct cairn_vaddr start;
	const char *name;
	if ((debug->op != CAIRN_LOC_ENTRY_REG && debug->op != CAIRN_LOC_ENTRY_PARAM) ||
	    !cairn_binary_symbol_of(c->bin, (struct cairn_vaddr){pc}, &name, &start))
		return;
	struct function *f = function_of(c, start.v, pc);
	for (size_t i = 0; i < f->asked.n; i++)
		if (f->asked.p[i].debug.op == debug->op && f->asked.p[i].debug.reg == debug->reg &&
		    f->asked.p[i].debug.imm == debug->imm)
			return;
	if (!VEC_ADD(&f->asked, ((struct asked){*debug, *sidecar})))
		die("no memory");
}

static void note_asked(struct comparing *c, uint64_t pc, const struct cairn_location *debug,
		       const struct cairn_location *sidecar)
{
	for (uint32_t i = 0; i < debug->n_pieces; i++)
		for (uint32_t k = 0; k < debug->pieces[i].n_steps; k++)
			note_step(c, pc, &debug->pieces[i].steps[k], &sidecar->pieces[i].steps[k]);
}

/* ---- functions ---- */

static void compare_type(struct comparing *c, uint64_t pc, bool is_exact,
			 const struct cairn_scope *a, const struct cairn_arg *x,
			 const struct cairn_arg *y)
{
	char names[2][TYPE_NAME_MAX];
	if (cairn_sites_complete_type(c->debug, x->type, NULL) < 0 ||
	    cairn_sites_complete_type(c->sidecar, y->type, NULL) < 0)
		return;
	cairn_types_name(cairn_sites_types(c->debug), x->type, names[0], sizeof(names[0]));
	cairn_types_name(cairn_sites_types(c->sidecar), y->type, names[1], sizeof(names[1]));
	if (strcmp(names[0], names[1]) ||
	    cairn_types_size(cairn_sites_types(c->debug), x->type) !=
		    cairn_types_size(cairn_sites_types(c->sidecar), y->type))
		differ(c, pc, is_exact, a->name, x->name, "another type");
}

static void compare_arg(struct comparing *c, uint64_t pc, bool is_exact,
			const struct cairn_scope *a, const struct cairn_arg *x,
			const struct cairn_arg *y)
{
	char text[128];
	c->n_args++;
	c->n_available += x->loc.why == CAIRN_AVAILABLE;
	if (!same_text(x->name, y->name))
		differ(c, pc, is_exact, a->name, x->name, "another name");
	compare_type(c, pc, is_exact, a, x, y);
	if (!same_location(&x->loc, &y->loc)) {
		snprintf(text, sizeof(text),
			 "another location: %s, %u pieces; sidecar: %s, %u pieces",
			 cairn_unavailable_id(x->loc.why), x->loc.n_pieces,
			 cairn_unavailable_id(y->loc.why), y->loc.n_pieces);
		differ(c, pc, is_exact, a->name, x->name, text);
		return;
	}
	note_asked(c, pc - !is_exact, &x->loc, &y->loc);
}

static void compare_at(struct comparing *c, uint64_t pc, bool is_exact)
{
	const struct cairn_scope *debug, *sidecar;
	struct cairn_err err[2] = {0};
	int n = cairn_sites_at(c->debug, (struct cairn_vaddr){pc}, is_exact, &debug, &err[0]);
	int m = cairn_sites_at(c->sidecar, (struct cairn_vaddr){pc}, is_exact, &sidecar, &err[1]);
	c->n_pcs++;
	if (n != m) {
		differ(c, pc, is_exact, n < 0 ? err[0].msg : NULL, m < 0 ? err[1].msg : NULL,
		       "another number of functions");
		return;
	}
	for (int i = 0; i < n; i++) {
		c->n_functions++;
		if (!same_text(debug[i].name, sidecar[i].name) ||
		    debug[i].is_inlined != sidecar[i].is_inlined ||
		    debug[i].n_args != sidecar[i].n_args) {
			differ(c, pc, is_exact, debug[i].name, sidecar[i].name, "another function");
			continue;
		}
		for (uint32_t k = 0; k < debug[i].n_args; k++)
			compare_arg(c, pc, is_exact, &debug[i], &debug[i].args[k],
				    &sidecar[i].args[k]);
	}
}

/* ---- calls ---- */

static void compare_passed(struct comparing *c, uint64_t ret_pc, uint64_t target)
{
	uint64_t number;
	if (!map_get(&c->function_at, target, &number))
		return;
	const struct function *f = &c->functions.p[number];
	for (size_t i = 0; i < f->asked.n; i++) {
		struct cairn_location debug = {0}, sidecar = {0};
		struct cairn_vaddr callee = {f->pc}, caller = {ret_pc};
		int n = cairn_sites_call_value(c->debug, callee, caller, &f->asked.p[i].debug,
					       &debug, NULL);
		int m = cairn_sites_call_value(c->sidecar, callee, caller, &f->asked.p[i].sidecar,
					       &sidecar, NULL);
		c->n_passed++;
		c->n_passed_available += debug.why == CAIRN_AVAILABLE;
		if (n != m || !same_location(&debug, &sidecar))
			differ(c, ret_pc, false, "passed", NULL, "another location");
	}
}

/* ---- the code ---- */

static void each_instruction(struct comparing *c, bool calls)
{
	for (size_t i = 0; i < elf_n_sections(c->code); i++) {
		const struct elf_section *s = elf_section_at(c->code, i);
		const uint8_t *bytes;
		size_t n;
		uint64_t count = 0;
		if (!elf_code_at(c->code, s->addr, &bytes, &n) || n > s->size)
			continue;
		for (size_t at = 0; at < n; count++) {
			struct insn insn;
			uint64_t pc = s->addr.v + at;
			bool known = insn_decode(bytes + at, n - at, pc, &insn);
			size_t len = known && insn.len ? insn.len : 1;
			bool is_call = known &&
				       (insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT);
			if (!calls && count % c->stride == 0)
				compare_at(c, pc, true);
			if (!calls && is_call && count % c->stride == 0)
				compare_at(c, pc + len, false);
			if (calls && is_call && len == CALL_BYTES && bytes[at] == CALL_OPCODE)
				compare_passed(c, pc + len, insn.target);
			at += len;
		}
	}
}

static void open_both(struct comparing *c, const char *file, const char *debug_file)
{
	struct cairn_binary_opts bin_opts = {.size = sizeof(bin_opts), .debug_file = debug_file};
	struct cairn_sidecar_make_opts make = {.size = sizeof(make), .sites = true, .args = true};
	struct cairn_sites_opts opts = {.size = sizeof(opts)};
	struct cairn_err err = {0};
	if (cairn_binary_open(file, &bin_opts, &c->bin, &err) < 0 ||
	    cairn_sidecar_make(c->bin, &make, &c->image, &err) < 0)
		die(err.msg);
	c->code = binary_main(c->bin);
	struct cairn_sidecar_opts sidecar_opts = {.size = sizeof(sidecar_opts), .binary = c->bin};
	if (cairn_sidecar_open_mem(c->image.bytes, c->image.size, "the sidecar", &sidecar_opts,
				   &c->made, &err) < 0 ||
	    cairn_sidecar_check(c->made, &err) < 0 ||
	    cairn_sidecar_sites(c->made, c->bin, &c->sidecar, &err) < 0 ||
	    cairn_sites_open(c->bin, &opts, &c->debug, &err) < 0)
		die(err.msg);
}

static void close_both(struct comparing *c)
{
	for (size_t i = 0; i < c->functions.n; i++)
		VEC_FREE(&c->functions.p[i].asked);
	cairn_sites_close(c->debug);
	cairn_sites_close(c->sidecar);
	cairn_sidecar_close(c->made);
	cairn_sidecar_image_free(&c->image);
	cairn_binary_close(c->bin);
	map_fini(&c->function_at);
	VEC_FREE(&c->functions);
}

int main(int argc, char **argv)
{
	static struct comparing c;
	if (argc < 2 || argc > 4)
		die("usage: args_from_sidecar FILE [STRIDE [DEBUG_FILE]]");
	c.stride = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	c.stride = c.stride ? c.stride : 1;
	open_both(&c, argv[1], argc > 3 ? argv[3] : NULL);
	each_instruction(&c, false);
	/*
	 * What is handed out by the last answer is asked of callers as well, with steps that were
	 * kept.
	 */
	each_instruction(&c, true);
	printf("%" PRIu64 " addresses, %" PRIu64 " functions, %" PRIu64 " parameters (%" PRIu64
	       " available), %" PRIu64 " asked of callers (%" PRIu64 " available): %" PRIu64
	       " differences\n",
	       c.n_pcs, c.n_functions, c.n_args, c.n_available, c.n_passed, c.n_passed_available,
	       c.n_different);
	close_both(&c);
	return c.n_different || !c.n_args;
}
