/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moving probes
 *
 * A user probe costs as much as the kernel needs for the probed instruction: 0.7 microseconds for
 * an instruction that the kernel emulates (nop, push, a branch), 10 for one that it single-steps
 * out of line. Few sites begin with a cheap one, but nearly all have one a few instructions on:
 *
 *	A:	mov  %rdi, %rbx		site; single-stepped
 *	A+3:	xor  %eax, %eax
 *	A+5:	test %rsi, %rsi
 *	M:	je   ...		emulated
 *
 * The probe may be on M instead of A if the results are the same. Let W be the instructions from A
 * up to but without M, and P the fetch program. Claim: under the conditions below every execution
 * of A is followed by exactly one of M in the same thread, every execution of M follows one of A,
 * and P gives the same result at both.
 *
 *  1. Each instruction of W falls through to the next: no branch, call, return or trap, and it
 *	cannot fault. The last is decided by a short list of integer instructions on registers; of
 *	memory only the stack at or above rsp is let through, by load, store and push, because that
 *	part of the stack is there. Divisions are not on the list. So from A control reaches M, and
 *	reaches it once. (A signal handler may run in between, and may never come back; so it may
 *	between A's trap and A.)
 *  2. Nothing else leads into (A, M]:
 *     - direct jumps of the function itself: it is decoded from its entry to its end. A function
 *       that does not decode, or whose part is not the one with its entry, is left alone;
 *     - direct jumps and calls from anywhere else with a 32-bit displacement: every byte of
 *       executable sections that could begin one is taken for one, whether it is an instruction or
 *       not; with an 8-bit displacement: so is every byte within its reach outside of the function;
 *     - indirect jumps: the function has none, nor has any code that it can reach by direct jumps
 *       (so its split-off cold parts are reached), but for the stubs of the procedure linkage
 *       table. Those of others do not lead into the middle of a function;
 *     - the unwinder: neither the function nor that other code has landing pads;
 *     - calls of other entry points: no symbol lies in (A, M].
 *     - returns lead to the instruction after a call, and W has no call.
 *  3. W writes no register that P reads; and no memory at all when P reads memory. So P sees the
 *	same. Values that P computes from the address of the probe are compiled again for M.
 *  4. M has no hazard of its own.
 *
 * A site with a hazard (a string instruction that repeats, pushf) is moved for another reason, and
 * by the same proof. If there is no M ahead, because W would contain the hazardous instruction, an
 * M before A will do. W is then the instructions from M up to but without A, and every execution of
 * M is followed by exactly one of A.
 *
 * Not covered, and not met in practice: code that patches itself, ptrace, a restartable sequence
 * (rseq) whose abort handler lies in the middle of a block.
 *
 * The search for jumps is one pass over the bytes for all windows of a file; a bitmap of the pages
 * that hold windows answers nearly every query with no.
 */
#include "trace/place/move.h"

#include <errno.h>
#include <string.h>

#include <elf.h>

#include "base/search.h"
#include "cfi/cfi.h"
#include "elf/elf.h"
#include "insn/insn.h"

/* Longest way, in instructions: beyond, something is nearly always in the way. */
#define WINDOW_INSNS_MAX   24
/* Functions and split-off parts reached by direct jumps from one function. */
#define REACHED_MAX        32
/* Largest function decoded; larger ones are left alone. */
#define FUNCTION_BYTES_MAX (1u << 20)
/* Reach of a jump with an 8-bit displacement, with its own 2 bytes. */
#define SHORT_REACH        130
/* Granularity of the map of windows, and its size in bits; addresses are folded into it. */
#define PAGE_SHIFT         8
#define MAP_BITS           (1u << 16)

/* (from, to]: no jump may lead there. One end is the site, the other one where the probe goes. */
struct window {
	uint64_t from, to, goal;
	bool is_goal_emulated;
	struct trace_site *site;
	bool entered;
};

/* The facts about the code covered by one FDE. */
struct part {
	uint64_t lo, hi;
	bool unknown;                     /* does not decode, may land, or has an indirect jump */
	uint32_t first_target, n_targets; /* of its direct jumps, and of calls of itself */
	/* 0 not checked, 1 all that it reaches is known, -1 not */
	int closed;
};

struct mover {
	const struct cairn_binary *bin;
	struct elf *elf;
	struct cfi *cfi;
	struct map part_ids; /* lo to index + 1 */
	VEC(struct part) parts;
	VEC(uint64_t) targets;
	VEC(struct window) windows;
};

int mover_new(const struct cairn_binary *bin, struct mover **ret, struct cairn_err *err)
{
	struct mover *m = calloc(1, sizeof(*m));
	int e;

	if (!m)
		return err_nomem(err, "moving probes");
	m->bin = bin;
	m->elf = binary_main(bin);
	map_init(&m->part_ids);
	e = cfi_open(bin, &m->cfi, err);
	if (e < 0) {
		mover_free(m);
		return e;
	}
	*ret = m;
	return 0;
}

bool mover_fde_at(const struct mover *m, struct cairn_vaddr at, struct cairn_vaddr *ret_lo,
		  struct cairn_vaddr *ret_hi)
{
	return cfi_fde_at(m->cfi, at, ret_lo, ret_hi);
}

void mover_free(struct mover *m)
{
	if (!m)
		return;
	cfi_close(m->cfi);
	map_fini(&m->part_ids);
	VEC_FREE(&m->parts);
	VEC_FREE(&m->targets);
	VEC_FREE(&m->windows);
	free(m);
}

/* ---- instructions that cannot fault and fall through ---- */

struct prefixes {
	const uint8_t *opcode; /* after prefixes and REX */
	bool other;            /* a prefix that changes more than operand size */
};

static struct prefixes skip_prefixes(const uint8_t *p, size_t n)
{
	struct prefixes r = {0};
	size_t i = 0;

	while (i < n && p[i] == 0x66)
		i++;
	if (i < n &&
	    (p[i] == 0xf0 || p[i] == 0xf2 || p[i] == 0xf3 || p[i] == 0x2e || p[i] == 0x36 ||
	     p[i] == 0x3e || p[i] == 0x26 || p[i] == 0x64 || p[i] == 0x65 || p[i] == 0x67))
		r.other = true;
	if (i < n && (p[i] & 0xf0) == 0x40)
		i++;
	r.opcode = p + i;
	return r;
}

/* Integer instructions that never trap when their operands are registers. */
static bool is_plain(const uint8_t *op, size_t n)
{
	uint8_t b = op[0];

	if (b == 0x0f && n > 1) {
		b = op[1];
		return (b & 0xf0) == 0x40 /* cmov */ || (b & 0xf0) == 0x90 /* set */ || b == 0xb6 ||
		       b == 0xb7 || b == 0xbe || b == 0xbf /* movzx, movsx */ ||
		       b == 0xaf /* imul */ || b == 0xa3 /* bt */ || b == 0x1f /* nop */ ||
		       (b & 0xf8) == 0xc8 /* bswap */;
	}
	/* add or adc sbb and sub xor cmp: register forms and those on al, eax. */
	if (b < 0x40 && (b & 7) < 6)
		return true;
	if ((b == 0xf6 || b == 0xf7) && n > 1)
		return (op[1] >> 3 & 7) < 6; /* test not neg mul imul, not div idiv */
	if ((b == 0xfe || b == 0xff) && n > 1)
		return (op[1] >> 3 & 7) < 2; /* inc dec, not call jmp push */
	return (b & 0xf8) == 0x50 /* push */ || b == 0x68 || b == 0x6a /* push */ ||
	       b == 0x63 /* movsxd */ || b == 0x69 || b == 0x6b /* imul */ || b == 0x80 ||
	       b == 0x81 || b == 0x83 /* arithmetic with immediate */ || b == 0x84 ||
	       b == 0x85 /* test */ || b == 0xa8 || b == 0xa9 ||
	       (b >= 0x86 && b <= 0x8b) /* xchg, mov */ || b == 0x8d /* lea */ ||
	       (b >= 0x90 && b <= 0x99) /* nop, xchg, cdqe, cqo */ ||
	       (b & 0xf0) == 0xb0 /* mov immediate */ || b == 0xc0 || b == 0xc1 ||
	       (b >= 0xd0 && b <= 0xd3) /* shifts */ || b == 0xc6 || b == 0xc7 /* mov immediate */;
}

/* Whether the memory operand is disp(%rsp) with a displacement of 0 or more and no index. */
static bool is_own_stack(const uint8_t *op, size_t n)
{
	size_t at = op[0] == 0x0f ? 2 : 1;

	if (n < at + 3)
		return false;
	uint8_t mod = op[at] >> 6, rm = op[at] & 7, sib = op[at + 1];
	if (rm != 4 || (sib & 0x3f) != 0x24 || mod == 3)
		return false;
	if (mod == 0)
		return true;
	return mod == 1 ? op[at + 2] < 0x80 : n >= at + 6 && op[at + 5] < 0x80;
}

/* Extended registers make r12 of the SIB byte's rsp. */
static bool base_is_extended(const uint8_t *insn, const uint8_t *op)
{
	return op > insn && (op[-1] & 0xf0) == 0x40 && op[-1] & 3;
}

static bool is_push(uint8_t b)
{
	return (b & 0xf8) == 0x50 || b == 0x68 || b == 0x6a;
}

static bool can_be_skipped(const uint8_t *bytes, const struct insn *insn)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct prefixes p = skip_prefixes(bytes, insn->len);
	size_t n = insn->len - (size_t)(p.opcode - bytes);

	if (insn->len == sizeof(endbr64) && !memcmp(bytes, endbr64, sizeof(endbr64)))
		return true;
	if (p.other || !n || insn->flow != INSN_NEXT || insn->has_rep || !is_plain(p.opcode, n))
		return false;
	if (!insn->reads_memory && !insn->writes_memory)
		return true;
	return is_push(p.opcode[0]) ||
	       (is_own_stack(p.opcode, n) && !base_is_extended(bytes, p.opcode));
}

/* ---- the inputs of a fetch program ---- */

struct needs {
	uint16_t registers;
	bool memory;
};

static struct needs program_needs(const struct fetch_program *p)
{
	struct needs r = {0};

	for (uint32_t i = 0; i < p->n; i++) {
		const struct fetch_op *op = &p->ops[i];
		bool reads_file = op->code == FETCH_REG || op->code == FETCH_STORE_REG ||
				  (op->code >= FETCH_ADD && op->flags & FETCH_F_FILE);
		if (reads_file && op->reg < 16)
			r.registers |= (uint16_t)(1u << op->reg);
		r.memory |= op->code == FETCH_LOAD || op->code == FETCH_COPY ||
			    op->code == FETCH_STRING || op->code == FETCH_BYTES ||
			    (op->code == FETCH_STREQ && !(op->flags & FETCH_F_COMM));
		/* Two operations of text follow. */
		i += op->code == FETCH_STREQ ? 2 : 0;
	}
	return r;
}

/* The first emulated instruction after @at that can be reached; 0 when there is none. */
static uint64_t find_cheap(const struct mover *m, uint64_t at, uint64_t hi, struct needs needs)
{
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(m->elf, (struct cairn_vaddr){at}, &code, &n))
		return 0;
	n = hi - at < n ? hi - at : n;
	for (size_t off = 0, i = 0; i < WINDOW_INSNS_MAX && off < n; i++) {
		struct insn insn;
		struct insn_uprobe probe = insn_uprobe(code + off, n - off);
		if (off && probe.emulated)
			return probe.hazard == CAIRN_HAZARD_NONE ? at + off : 0;
		if (!insn_decode(code + off, n - off, at + off, &insn) ||
		    !can_be_skipped(code + off, &insn) || insn.writes & needs.registers ||
		    (insn.writes_memory && needs.memory))
			return 0;
		off += insn.len;
	}
	return 0;
}

/* The instruction after a nop, if it can be probed; 0 when it cannot. */
static uint64_t find_after(const struct mover *m, uint64_t at, uint64_t hi, bool *ret_emulated)
{
	const uint8_t *code;
	size_t n;
	struct insn nop;

	if (!elf_code_at(m->elf, (struct cairn_vaddr){at}, &code, &n))
		return 0;
	n = hi - at < n ? hi - at : n;
	if (!insn_decode(code, n, at, &nop) || nop.len >= n)
		return 0;
	struct insn_uprobe probe = insn_uprobe(code + nop.len, n - nop.len);
	*ret_emulated = probe.emulated;
	return probe.hazard == CAIRN_HAZARD_NONE ? at + nop.len : 0;
}

/*
 * The instruction nearest before @at that can be probed and from which control can only go to @at;
 * 0 when there is none. From @lo, where instructions are known to begin, all are decoded.
 */
static uint64_t find_before(const struct mover *m, uint64_t lo, uint64_t at, struct needs needs,
			    bool *ret_emulated)
{
	uint64_t goal = 0;
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(m->elf, (struct cairn_vaddr){lo}, &code, &n))
		return 0;
	for (size_t off = 0; lo + off < at;) {
		struct insn insn;
		if (off >= n || !insn_decode(code + off, n - off, lo + off, &insn) ||
		    lo + off + insn.len > at)
			return 0;
		struct insn_uprobe probe = insn_uprobe(code + off, n - off);
		if (!can_be_skipped(code + off, &insn) || insn.writes & needs.registers ||
		    (insn.writes_memory && needs.memory))
			goal = 0;
		else if (probe.hazard == CAIRN_HAZARD_NONE) {
			goal = at - (lo + off) <= WINDOW_INSNS_MAX * INSN_MAX_BYTES ? lo + off : 0;
			*ret_emulated = probe.emulated;
		}
		off += insn.len;
	}
	return goal;
}

/* ---- the function around it ---- */

static int scan_part(struct mover *m, struct part *part)
{
	const uint8_t *code;
	size_t size;

	part->first_target = (uint32_t)m->targets.n;
	part->unknown = true;
	if (part->hi - part->lo > FUNCTION_BYTES_MAX ||
	    !elf_code_at(m->elf, (struct cairn_vaddr){part->lo}, &code, &size) ||
	    size < part->hi - part->lo || cfi_may_land(m->cfi, (struct cairn_vaddr){part->lo}))
		return 0;
	size = part->hi - part->lo;
	for (size_t off = 0; off < size;) {
		struct insn insn;
		if (!insn_decode(code + off, size - off, part->lo + off, &insn) ||
		    insn.flow == INSN_JUMP_INDIRECT)
			return 0;
		if ((insn.flow == INSN_JUMP || insn.flow == INSN_BRANCH ||
		     insn.flow == INSN_CALL) &&
		    !VEC_ADD(&m->targets, insn.target))
			return -ENOMEM;
		/*
		 * Only calls into the part itself matter; calls to other code do not.
		 */
		if (insn.flow == INSN_CALL && (insn.target <= part->lo || insn.target >= part->hi))
			m->targets.n--;
		off += insn.len;
	}
	part->n_targets = (uint32_t)m->targets.n - part->first_target;
	part->unknown = false;
	return 0;
}

/* The code that the FDE covers in which @at lies; NULL when none does or there is no memory. */
static struct part *part_at(struct mover *m, uint64_t at)
{
	struct cairn_vaddr lo, hi;
	uint64_t id;

	if (!cfi_fde_at(m->cfi, (struct cairn_vaddr){at}, &lo, &hi))
		return NULL;
	if (map_get(&m->part_ids, lo.v, &id))
		return &m->parts.p[id - 1];
	struct part part = {.lo = lo.v, .hi = hi.v};
	if (scan_part(m, &part) < 0 || !VEC_ADD(&m->parts, part) ||
	    map_put(&m->part_ids, lo.v, m->parts.n) < 0)
		return NULL;
	return &m->parts.p[m->parts.n - 1];
}

/* A stub of the procedure linkage table jumps to the entry of a function, never into one. */
static bool is_linkage_stub(const struct mover *m, uint64_t at)
{
	const char *name;
	uint64_t off;

	return cairn_binary_section_of(m->bin, (struct cairn_vaddr){at}, &name, &off) &&
	       !strncmp(name, ".plt", 4);
}

static bool add_reached(uint64_t *reached, size_t *n, uint64_t lo)
{
	for (size_t i = 0; i < *n; i++)
		if (reached[i] == lo)
			return true;
	if (*n == REACHED_MAX)
		return false;
	reached[(*n)++] = lo;
	return true;
}

/*
 * Whether all code that the part reaches by direct jumps is known, without indirect jumps and
 * landing pads.
 */
static bool reaches_only_known(struct mover *m, uint64_t lo)
{
	uint64_t reached[REACHED_MAX] = {lo};
	size_t n = 1;

	for (size_t i = 0; i < n; i++) {
		const struct part *part = part_at(m, reached[i]);
		if (!part || part->unknown)
			return false;
		uint32_t first = part->first_target, n_targets = part->n_targets;
		uint64_t from = part->lo, to = part->hi;
		for (uint32_t k = 0; k < n_targets; k++) {
			uint64_t target = m->targets.p[first + k];
			if ((target >= from && target < to) || is_linkage_stub(m, target))
				continue;
			const struct part *other = part_at(m, target);
			if (!other || !add_reached(reached, &n, other->lo))
				return false;
		}
	}
	return true;
}

static bool is_closed(struct mover *m, uint64_t lo)
{
	struct part *part = part_at(m, lo);

	if (!part)
		return false;
	if (!part->closed) {
		bool known = reaches_only_known(m, lo);
		/* Parts may have moved while others were added. */
		part = part_at(m, lo);
		if (!part)
			return false;
		part->closed = known ? 1 : -1;
	}
	return part->closed > 0;
}

static bool function_jumps_into(const struct mover *m, const struct part *part, uint64_t from,
				uint64_t to)
{
	for (uint32_t i = 0; i < part->n_targets; i++) {
		uint64_t target = m->targets.p[part->first_target + i];
		if (target > from && target <= to)
			return true;
	}
	return false;
}

/* Bytes just outside of the function that could be short jumps into the window. */
static bool neighbour_may_jump_into(const struct mover *m, const struct part *part, uint64_t from,
				    uint64_t to)
{
	uint64_t lo = from > SHORT_REACH ? from - SHORT_REACH : 0, hi = to + SHORT_REACH;
	const uint8_t *code;
	size_t n;

	for (uint64_t at = lo; at < hi; at++) {
		if (at >= part->lo && at < part->hi) {
			at = part->hi - 1;
			continue;
		}
		if (!elf_code_at(m->elf, (struct cairn_vaddr){at}, &code, &n) || n < 2)
			continue;
		bool jump = (code[0] & 0xf0) == 0x70 || code[0] == 0xeb || (code[0] & 0xfc) == 0xe0;
		uint64_t target = at + 2 + (uint64_t)(int64_t)(int8_t)code[1];
		if (jump && target > from && target <= to)
			return true;
	}
	return false;
}

/* The window of a site, as far as the code between its ends determines it. */
static bool find_window(const struct mover *m, const struct part *part,
			const struct cairn_site *site, struct needs needs, struct window *w)
{
	w->from = site->at.v;
	w->to = w->goal = find_cheap(m, site->at.v, part->hi, needs);
	w->is_goal_emulated = true;
	if (!w->to && w->site->is_long_nop)
		w->to = w->goal = find_after(m, site->at.v, part->hi, &w->is_goal_emulated);
	if (w->to || site->hazard == CAIRN_HAZARD_NONE)
		return w->to != 0;
	w->to = site->at.v;
	w->from = w->goal = find_before(m, part->lo, site->at.v, needs, &w->is_goal_emulated);
	return w->from != 0;
}

int mover_add(struct mover *m, struct trace_site *planned, const struct fetch_program *program)
{
	const struct cairn_site *site = planned->pub.site;
	uint64_t at = site->at.v;
	struct part *part = part_at(m, at);
	struct window w = {.site = planned};

	/*
	 * The part with the entry: jumps to a split-off part may come from code that we would not
	 * find.
	 */
	if (!part || part->unknown || part->lo != at - (uint64_t)site->container_off)
		return 0;
	uint64_t lo = part->lo;
	if (!find_window(m, part, site, program_needs(program), &w) || !is_closed(m, lo))
		return 0;
	part = part_at(m, lo);
	if (!part || function_jumps_into(m, part, w.from, w.to) ||
	    neighbour_may_jump_into(m, part, w.from, w.to))
		return 0;
	return VEC_ADD(&m->windows, w) ? 0 : -ENOMEM;
}

/* ---- the whole file ---- */

static int by_from(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void set_bit(uint8_t *map, uint64_t at)
{
	uint64_t bit = (at >> PAGE_SHIFT) % MAP_BITS;

	map[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static bool has_bit(const uint8_t *map, uint64_t at)
{
	uint64_t bit = (at >> PAGE_SHIFT) % MAP_BITS;

	return map[bit / 8] >> bit % 8 & 1;
}

/*
 * A window is at most a few hundred bytes, so those that may hold @target start shortly before it.
 */
static void mark_entered(struct mover *m, uint64_t target)
{
	size_t lo = SEARCH(0, m->windows.n, mid, m->windows.p[mid].from < target);
	for (size_t i = lo; i-- > 0;) {
		struct window *w = &m->windows.p[i];
		if (target - w->from > WINDOW_INSNS_MAX * INSN_MAX_BYTES)
			break;
		w->entered |= target <= w->to;
	}
}

static void scan_bytes(struct mover *m, const uint8_t *map, const uint8_t *code, size_t n,
		       uint64_t at)
{
	for (size_t i = 0; i + 5 <= n; i++) {
		uint8_t b = code[i];
		size_t len = 5;
		int32_t distance;
		if (b == 0x0f && (code[i + 1] & 0xf0) == 0x80)
			len = 6;
		else if ((b & 0xfe) != 0xe8)
			continue;
		if (i + len > n)
			break;
		memcpy(&distance, code + i + len - 4, sizeof(distance));
		uint64_t target = at + i + len + (uint64_t)(int64_t)distance;
		if (has_bit(map, target))
			mark_entered(m, target);
	}
}

static void scan_file(struct mover *m, const uint8_t *map)
{
	for (size_t i = 0; i < elf_n_sections(m->elf); i++) {
		const struct elf_section *s = elf_section_at(m->elf, i);
		const uint8_t *code;
		size_t n;
		if (!(s->flags & SHF_EXECINSTR) || !(s->flags & SHF_ALLOC) || s->type == SHT_NOBITS)
			continue;
		if (elf_code_at(m->elf, s->addr, &code, &n))
			scan_bytes(m, map, code, n < s->size ? n : s->size, s->addr.v);
	}
}

/* A symbol inside the window is another way in. */
static void mark_symbols(struct mover *m, const uint8_t *map)
{
	const struct elf_symbol *symbols;
	struct elf *files[] = {m->elf, binary_debug(m->bin)};
	size_t n;

	for (size_t f = 0; f < 2; f++) {
		if (!files[f] || (f && files[f] == files[0]) ||
		    elf_symbols(files[f], &symbols, &n, NULL) < 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (has_bit(map, symbols[i].at.v))
				mark_entered(m, symbols[i].at.v);
	}
}

static bool move_site(const struct mover *m, const struct window *w)
{
	struct cairn_trace_site *pub = &w->site->pub;
	const struct cairn_vaddr to = {w->goal};

	if (w->entered || !cairn_binary_foff(m->bin, to, &pub->off))
		return false;
	pub->at = to;
	pub->moved = true;
	pub->emulated = w->is_goal_emulated;
	pub->refused = NULL;
	return true;
}

uint32_t mover_finish(struct mover *m)
{
	uint8_t *map = m->windows.n ? calloc(MAP_BITS / 8, 1) : NULL;
	uint32_t moved = 0;

	if (map) {
		qsort(m->windows.p, m->windows.n, sizeof(*m->windows.p), by_from);
		for (size_t i = 0; i < m->windows.n; i++)
			for (uint64_t at = m->windows.p[i].from; at <= m->windows.p[i].to; at++)
				set_bit(map, at);
		scan_file(m, map);
		mark_symbols(m, map);
		for (size_t i = 0; i < m->windows.n; i++)
			moved += move_site(m, &m->windows.p[i]);
	}
	free(map);
	m->windows.n = 0;
	return moved;
}
