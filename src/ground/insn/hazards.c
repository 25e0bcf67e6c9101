/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hazardous places of a binary
 *
 * Two questions, answered with different care.
 *
 * May a probe go *here*? (cairn_hazard_at) Caution wins. The address must be an instruction
 * boundary: decoding runs from the start of the function symbol that covers it. And a 5-byte nop is
 * accepted only as a function's first instruction, or directly after its endbr64, where nothing can
 * be in the red zone yet. For later nops, the unused red zone could only be guessed.
 *
 * Which addresses of this file are hazardous? (cairn_hazards) Users would not read a list full of
 * harmless addresses, so a 5-byte nop is listed only if the harm is real: not at an entry, in a
 * function that uses the red zone. And padding is left out. Nops and int3 that follow a jump or
 * return are never executed, either between functions (outside of all symbols) or before a loop. In
 * a stripped file the code between the exported functions is decoded too; it has unknown functions,
 * so each of its 5-byte nops counts.
 *
 * Linear decoding can lose step where a compiler put data between instructions. x86 code falls back
 * into step within a few instructions, and compilers put jump tables into .rodata; hand-written
 * assembler is where it is seen.
 */
#include <cairn/hazards.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "elf/elf.h"
#include "elf/functions.h"
#include "insn/insn.h"
#include "insn/kernel_code.h"
#include "insn/uprobe.h"
#include "insn/zydis.h"

static const struct {
	const char *id, *text;
} hazards[] = {
	[CAIRN_HAZARD_NONE] = {"none", "no hazard known"},
	[CAIRN_HAZARD_LOCK_PREFIX] = {"lock-prefix",
				      "lock prefix: a probe may attach and never fires"},
	[CAIRN_HAZARD_SEGMENT_PREFIX] =
		{"segment-prefix", "es, cs, ss or ds prefix: a probe may attach and never fires"},
	[CAIRN_HAZARD_MASKS_TRAPS] =
		{"masks-traps", "writes %ss, which holds back the trap of the single step: the "
				"kernel does not probe it"},
	[CAIRN_HAZARD_NOT_PROBEABLE] = {"not-probeable",
					"the kernel does not probe this instruction: a probe may "
					"attach and never fires"},
	[CAIRN_HAZARD_TRAP] = {"trap", "already an int3: padding, or another program's breakpoint"},
	[CAIRN_HAZARD_NOP5_RED_ZONE] = {"nop5-red-zone",
					"5-byte nop inside a function: the probe becomes a call "
					"that overwrites the red zone"},
	[CAIRN_HAZARD_NOT_A_BOUNDARY] = {"not-a-boundary",
					 "not the start of an instruction of executable code"},
	[CAIRN_HAZARD_MISEMULATED] =
		{"misemulated",
		 "the kernel takes it for another instruction (a jump, call, return, nop or popf): "
		 "under a probe the program computes something else"},
	[CAIRN_HAZARD_SEES_STEP] = {"sees-step",
				    "its result shows the kernel's single step (pushf, syscall, "
				    "sgdt): under a probe the program "
				    "computes something else or ends"},
	[CAIRN_HAZARD_REPEATS] =
		{"repeats", "a string instruction with a rep prefix: a probe gives one event for "
			    "each repetition, not one for each call"},
	[CAIRN_HAZARD_NOT_CHECKED] = {"not-checked",
				      "not checked: what was read has no code (a debug file alone, "
				      "its unbound sidecar, or a kernel's BTF)"},
	[CAIRN_HAZARD_KPROBE_BLACKLIST] =
		{"kprobe-blacklist", "the kernel refuses probes in this function, which a probe's "
				     "own trap may run through (noinstr, __kprobes, entry code)"},
	[CAIRN_HAZARD_JUMP_LABEL] = {"jump-label",
				     "a jump label, which the kernel rewrites: it refuses a probe"},
	[CAIRN_HAZARD_STATIC_CALL] = {"static-call", "a static call, which the kernel rewrites: it "
						     "refuses a probe"},
	[CAIRN_HAZARD_NOTRACE] = {"notrace", "ftrace does not trace this function: the kernel "
					     "refuses probes of perf and tracefs in it"},
	[CAIRN_HAZARD_ALTERNATIVE] = {"alternative",
				      "the kernel replaced this code when it started: another "
				      "instruction may be here, or the middle of one"},
};

enum { N_HAZARDS = sizeof(hazards) / sizeof(hazards[0]) };

const char *cairn_hazard_text(enum cairn_hazard hazard)
{
	return (unsigned int)hazard < N_HAZARDS ? hazards[hazard].text : "unknown hazard";
}

const char *cairn_hazard_id(enum cairn_hazard hazard)
{
	return (unsigned int)hazard < N_HAZARDS ? hazards[hazard].id : "unknown";
}

static bool is_endbr64(const uint8_t *code, size_t n)
{
	return n >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0;
}

/* Nothing of the function ran before @off but, at most, its endbr64. */
static bool is_entry(const uint8_t *func, size_t n, size_t off)
{
	return off == 0 || (off == 4 && is_endbr64(func, n));
}

static bool is_boundary(const uint8_t *func, size_t n, size_t off)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	size_t at = 0;
	while (at < off)
		at += zydis_instruction(&d, func + at, n - at, &zi) ? zi.length : 1;
	return at == off;
}

/* The hazard at a place that is a boundary. */
static enum cairn_hazard hazard_of(const uint8_t *func, size_t n, size_t off)
{
	struct insn_uprobe u = insn_uprobe(func + off, n - off);
	if (u.hazard == CAIRN_HAZARD_NOP5_RED_ZONE && is_entry(func, n, off))
		return CAIRN_HAZARD_NONE;
	return u.hazard;
}

enum cairn_hazard insn_hazard_in(const uint8_t *func, size_t n, size_t off)
{
	if (off >= n || !is_boundary(func, n, off))
		return CAIRN_HAZARD_NOT_A_BOUNDARY;
	return hazard_of(func, n, off);
}

/* The function that holds @at, or NULL. What a local label stands before may be a table. */
static const struct elf_symbol *symbol_before(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	const struct functions *functions;
	if (binary_functions(bin, &functions, NULL) < 0 || !functions)
		return NULL;
	const struct elf_symbol *s = functions_at(functions, at);
	return s && !functions_is_local_label(s) ? s : NULL;
}

enum cairn_hazard cairn_hazard_at(const struct cairn_binary *bin, struct cairn_vaddr at,
				  bool is_function_entry)
{
	const struct elf *e = binary_main(bin);
	const uint8_t *code, *func;
	size_t left, n;
	if (!elf_code_at(e, at, &code, &left))
		return elf_lacks_code_at(e, at) ? CAIRN_HAZARD_NOT_CHECKED
						: CAIRN_HAZARD_NOT_A_BOUNDARY;
	if (elf_is_kernel(e))
		return kernel_code_hazard(bin, at);
	if (is_function_entry)
		return hazard_of(code, left, 0);
	const struct elf_symbol *s = symbol_before(bin, at);
	/* Without a symbol, or with one in another section, the place itself is believed. */
	if (!s || !elf_code_at(e, s->at, &func, &n) || n - (at.v - s->at.v) != left)
		return insn_uprobe(code, left).hazard;
	size_t off = at.v - s->at.v;
	if (!is_boundary(func, n, off))
		return CAIRN_HAZARD_NOT_A_BOUNDARY;
	/*
	 * A caller that passes a function's first instruction as a site inside may mean a loop to
	 * it.
	 */
	return off ? hazard_of(func, n, off) : insn_uprobe(func, n).hazard;
}

/* A piece of code to decode: a function, or the part of a section outside of all functions. */
struct piece {
	uint64_t lo, hi;
	bool is_function;
};

struct pieces {
	struct piece *p;
	size_t n, cap;
};

static int piece_order(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi > y->hi ? -1 : x->hi < y->hi;
}

static int add_functions(const struct hazard_functions *functions, struct pieces *pieces,
			 struct cairn_err *err)
{
	for (size_t i = 0; i < functions->v.n; i++) {
		const struct hazard_function *f = &functions->v.p[i];
		if (f->hi > f->lo && !VEC_ADD(pieces, ((struct piece){f->lo, f->hi, true})))
			return err_nomem(err, "the list of functions");
	}
	return 0;
}

/* The parts of [lo, hi) that the first @n pieces, which are sorted, do not cover. */
static int add_gaps(struct pieces *pieces, size_t n, uint64_t lo, uint64_t hi,
		    struct cairn_err *err)
{
	for (size_t i = 0; i <= n && lo < hi; i++) {
		uint64_t end = i < n && pieces->p[i].lo < hi ? pieces->p[i].lo : hi;
		struct piece gap = {lo, end, false};
		if (gap.hi > gap.lo && !VEC_ADD(pieces, gap))
			return err_nomem(err, "the list of executable sections");
		if (i < n && pieces->p[i].hi > lo)
			lo = pieces->p[i].hi;
	}
	return 0;
}

static int add_rest_of_sections(struct elf *e, struct pieces *pieces, struct cairn_err *err)
{
	size_t n = pieces->n;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (!(s->flags & SHF_EXECINSTR) || s->type == SHT_NOBITS)
			continue;
		int rc = add_gaps(pieces, n, s->addr.v, s->addr.v + s->size, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void sort_pieces(struct pieces *pieces)
{
	if (pieces->n)
		qsort(pieces->p, pieces->n, sizeof(*pieces->p), piece_order);
}

/* Functions; in a stripped file, whose .dynsym names only some, also the code between them. */
static int collect_pieces(const struct cairn_binary *bin, const struct hazard_functions *functions,
			  struct pieces *pieces, struct cairn_err *err)
{
	int rc = add_functions(functions, pieces, err);
	if (rc < 0)
		return rc;
	sort_pieces(pieces);
	if (functions->are_all)
		return 0;
	rc = add_rest_of_sections(binary_main(bin), pieces, err);
	sort_pieces(pieces);
	return rc;
}

/* Control may go on with the next instruction. */
static bool falls_through(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
	       zi->meta.category != ZYDIS_CATEGORY_RET && zi->mnemonic != ZYDIS_MNEMONIC_UD2 &&
	       zi->mnemonic != ZYDIS_MNEMONIC_HLT;
}

static bool is_padding(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_NOP ||
	       zi->meta.category == ZYDIS_CATEGORY_WIDENOP || zi->mnemonic == ZYDIS_MNEMONIC_INT3;
}

/* State of a walk over one piece. */
struct walk {
	const uint8_t *code;
	size_t n;
	bool is_function;
	bool reached;      /* by falling through from the instruction before */
	int uses_red_zone; /* -1: not looked at yet */
};

static bool harms_red_zone(struct walk *w, size_t at)
{
	if (w->is_function && is_entry(w->code, w->n, at))
		return false;
	if (w->uses_red_zone < 0)
		w->uses_red_zone = !w->is_function || insn_uses_red_zone(w->code, w->n);
	return w->uses_red_zone;
}

static enum cairn_hazard listed_hazard(struct walk *w, size_t at, const ZydisDecodedInstruction *zi)
{
	/* A chain of padding stays unreached. */
	if (!w->reached && is_padding(zi))
		return CAIRN_HAZARD_NONE;
	w->reached = falls_through(zi);
	struct insn_uprobe u = uprobe_judge(zi, w->code + at);
	if (u.hazard == CAIRN_HAZARD_NOP5_RED_ZONE && !harms_red_zone(w, at))
		return CAIRN_HAZARD_NONE;
	return u.hazard;
}

typedef hazard_visitor visit_fn;

/* Visits the instructions from @from on: an alias or an overlapping symbol has visited the rest. */
static int walk_piece(struct elf *e, const struct piece *piece, uint64_t from, visit_fn *visit,
		      void *ctx)
{
	struct walk w = {.is_function = piece->is_function, .reached = true, .uses_red_zone = -1};
	if (!elf_code_at(e, (struct cairn_vaddr){piece->lo}, &w.code, &w.n))
		return 0;
	if (w.n > piece->hi - piece->lo)
		w.n = piece->hi - piece->lo;
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	for (size_t at = 0; at < w.n;) {
		if (!zydis_instruction(&d, w.code + at, w.n - at, &zi)) {
			w.reached = true;
			at++;
			continue;
		}
		enum cairn_hazard hazard = listed_hazard(&w, at, &zi);
		int rc = 0;
		if (hazard && piece->lo + at >= from)
			rc = visit(ctx, (struct cairn_vaddr){piece->lo + at}, hazard);
		if (rc)
			return rc;
		at += zi.length;
	}
	return 0;
}

int hazards_among(const struct cairn_binary *bin, const struct hazard_functions *functions,
		  visit_fn *visit, void *ctx, struct cairn_err *err)
{
	struct pieces pieces = {0};
	int rc = elf_need_x86_64(binary_main(bin), "hazards are known", err);
	if (rc == 0 && elf_is_kernel(binary_main(bin)))
		return kernel_code_visit(bin, visit, ctx, err);
	if (rc == 0)
		rc = collect_pieces(bin, functions, &pieces, err);
	uint64_t done = 0;
	for (size_t i = 0; rc == 0 && i < pieces.n; i++) {
		const struct piece *piece = &pieces.p[i];
		if (piece->hi <= done)
			continue;
		rc = walk_piece(binary_main(bin), piece, done, visit, ctx);
		done = piece->hi;
	}
	VEC_FREE(&pieces);
	return rc;
}

/* ---- functions of a symbol table ---- */

/* If @range continues a symbol that lies around others, its function gets longer. */
static int add_range(const struct function_range *range, struct map *starts,
		     struct hazard_functions *ret)
{
	uint64_t key = (uint64_t)(uintptr_t)range->symbol, start;
	if (range->lo != range->symbol->at.v && map_get(starts, key, &start)) {
		ret->v.p[start].hi = range->hi;
		return 0;
	}
	int rc = map_put(starts, key, ret->v.n);
	if (rc < 0)
		return rc;
	return VEC_ADD(&ret->v, ((struct hazard_function){range->lo, range->hi})) ? 0 : -ENOMEM;
}

static int functions_of(const struct cairn_binary *bin, struct hazard_functions *ret,
			struct cairn_err *err)
{
	const struct functions *functions;
	struct map starts;
	int rc = binary_functions_need(bin, &functions, err);
	if (rc < 0)
		return rc;
	map_init(&starts);
	for (size_t i = 0; i < functions->ranges.n && rc >= 0; i++)
		if (!functions_is_local_label(functions->ranges.p[i].symbol))
			rc = add_range(&functions->ranges.p[i], &starts, ret);
	map_fini(&starts);
	return rc < 0 ? err_nomem(err, "the list of functions") : 0;
}

int cairn_hazards(const struct cairn_binary *bin, visit_fn *visit, void *ctx, struct cairn_err *err)
{
	struct hazard_functions functions = {.are_all = binary_has_symtab(bin)};
	int rc = functions_of(bin, &functions, err);
	if (rc == 0)
		rc = hazards_among(bin, &functions, visit, ctx, err);
	VEC_FREE(&functions.v);
	return rc;
}
