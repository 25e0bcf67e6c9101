/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The use that a program makes of its context
 *
 * The instructions are followed from the entry with what each register and each slot of the stack
 * holds: the context, a constant, an address of the stack, or something else. Where two paths meet
 * and only one has the context, what is held is unsure. An instruction that uses such a value ends
 * the search with a reason: a register that is read must not be overlooked.
 *
 *	r6 = r1			r6: context
 *	r3 = r6; r3 += 112	r3: context + 112
 *	r2 = 8			r2: 8
 *	call probe_read		reads the words of [112, 120): %rdi
 *
 * Functions of the program are entered with what all their callers hand them. The context on the
 * stack is followed as long as nobody else has an address of that stack.
 */
#include "cover/cover.h"

#include <errno.h>

#include "base/err.h"

#define SLOTS     64 /* of 8 bytes: MAX_BPF_STACK */
#define REGISTERS 11
#define FRAME     10

enum held_kind {
	HELD_NOTHING, /* no path came by yet */
	HELD_NUMBER,
	HELD_FRAME, /* an address of the function's own stack: off from its end */
	HELD_CONTEXT,
	HELD_OTHER,
	HELD_UNSURE, /* perhaps the context */
};

struct held {
	uint8_t kind;
	int32_t off;
};

struct state {
	struct held regs[REGISTERS];
	struct held slots[SLOTS];
};

struct walk {
	const struct bpf_insn *insns;
	size_t n;
	struct cover_use *use;
	struct state *states;
	struct state now; /* after the instruction that is looked at */
	VEC(uint32_t) todo;
	bool context_is_stored, frame_is_known; /* to others than the function itself */
	bool failed;
};

#define NOT_UNDERSTOOD "how it uses its context is not understood"

static const struct held other = {.kind = HELD_OTHER};

static void refuse(struct walk *w, const char *why)
{
	if (!w->use->why)
		w->use->why = why;
}

static bool has_context(struct held h)
{
	return h.kind == HELD_CONTEXT || h.kind == HELD_UNSURE;
}

/* ---- paths that meet ---- */

static struct held join(struct walk *w, struct held a, struct held b)
{
	if (a.kind == HELD_NOTHING || (a.kind == b.kind && a.off == b.off))
		return b;
	if (b.kind == HELD_NOTHING)
		return a;
	if (has_context(a) || has_context(b))
		return (struct held){.kind = HELD_UNSURE};
	w->frame_is_known |= a.kind == HELD_FRAME || b.kind == HELD_FRAME;
	return other;
}

static bool join_one(struct walk *w, struct held *to, struct held from)
{
	struct held h = join(w, *to, from);
	bool is_new = h.kind != to->kind || h.off != to->off;

	*to = h;
	return is_new;
}

/* A path leads to instruction @to with the state @s. */
static void reach(struct walk *w, int64_t to, const struct state *s)
{
	bool is_new = false;

	if (to < 0 || (uint64_t)to >= w->n)
		return refuse(w, "a jump leads out of it");
	for (int i = 0; i < REGISTERS; i++)
		is_new |= join_one(w, &w->states[to].regs[i], s->regs[i]);
	for (int i = 0; i < SLOTS; i++)
		is_new |= join_one(w, &w->states[to].slots[i], s->slots[i]);
	if (is_new && !VEC_ADD(&w->todo, (uint32_t)to))
		w->failed = true;
}

/* A function begins at @to; @args: r1 to r5, or NULL. */
static void enter(struct walk *w, int64_t to, const struct held *args)
{
	struct state s;

	for (int i = 0; i < REGISTERS; i++)
		s.regs[i] = args && i >= 1 && i <= 5 ? args[i - 1] : other;
	for (int i = 0; i < SLOTS; i++)
		s.slots[i] = other;
	s.regs[FRAME] = (struct held){.kind = HELD_FRAME};
	reach(w, to, &s);
}

/* ---- memory ---- */

static unsigned int size_of(const struct bpf_insn *insn)
{
	switch (BPF_SIZE(insn->code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	default:
		return 8;
	}
}

static void read_context(struct walk *w, int64_t off, int64_t size)
{
	if (off < 0 || size < 1 || off + size > WORDS * 8)
		return refuse(w, NOT_UNDERSTOOD);
	for (int64_t i = off / 8; i <= (off + size - 1) / 8; i++)
		w->use->words |= 1u << i;
}

/* The slot of [off, off + 8); NULL: not one slot. */
static struct held *slot_at(struct walk *w, int64_t off, unsigned int size)
{
	if (size != 8 || off % 8 || off < -8 * SLOTS || off >= 0)
		return NULL;
	return &w->now.slots[SLOTS + off / 8];
}

static void forget_slots(struct walk *w, int64_t off, int64_t size)
{
	for (int64_t i = off; i < off + size; i++)
		if (i >= -8 * SLOTS && i < 0)
			w->now.slots[(8 * SLOTS + i) / 8] = other;
}

static bool slots_have_context(const struct walk *w, int64_t off, int64_t size)
{
	for (int64_t i = off; i < off + size; i++)
		if (i >= -8 * SLOTS && i < 0 && has_context(w->now.slots[(8 * SLOTS + i) / 8]))
			return true;
	return false;
}

static struct held load(struct walk *w, struct held base, int64_t off, unsigned int size)
{
	off += base.off;
	if (base.kind == HELD_CONTEXT)
		read_context(w, off, size);
	if (base.kind == HELD_UNSURE)
		refuse(w, NOT_UNDERSTOOD);
	if (base.kind != HELD_FRAME)
		return other;
	struct held *slot = slot_at(w, off, size);
	if (!slot && slots_have_context(w, off, size))
		refuse(w, NOT_UNDERSTOOD);
	return slot ? *slot : other;
}

static void store(struct walk *w, struct held base, int64_t off, unsigned int size,
		  struct held value)
{
	off += base.off;
	w->frame_is_known |= value.kind == HELD_FRAME;
	if (has_context(base) || (has_context(value) && base.kind != HELD_FRAME))
		return refuse(w, NOT_UNDERSTOOD);
	if (base.kind != HELD_FRAME)
		return;
	forget_slots(w, off, size);
	struct held *slot = slot_at(w, off, size);
	if (!has_context(value))
		return;
	w->context_is_stored = true;
	if (slot)
		*slot = value;
	else
		refuse(w, NOT_UNDERSTOOD);
}

/* ---- arithmetic ---- */

static struct held moved(const struct bpf_insn *insn, struct held src)
{
	bool is_whole = BPF_CLASS(insn->code) == BPF_ALU64 && !insn->off;

	if (BPF_SRC(insn->code) == BPF_K)
		return is_whole || insn->imm >= 0
			       ? (struct held){.kind = HELD_NUMBER, .off = insn->imm}
			       : other;
	if (is_whole)
		return src;
	return has_context(src) ? (struct held){.kind = HELD_UNSURE} : other;
}

static struct held added(struct walk *w, const struct bpf_insn *insn, struct held to,
			 struct held by)
{
	bool is_pointer = to.kind == HELD_CONTEXT || to.kind == HELD_FRAME;
	int64_t off = (int64_t)to.off +
		      (BPF_OP(insn->code) == BPF_SUB ? -(int64_t)by.off : (int64_t)by.off);

	if (BPF_CLASS(insn->code) == BPF_ALU64 && is_pointer && by.kind == HELD_NUMBER &&
	    off >= -4096 && off <= 4096)
		return (struct held){.kind = to.kind, .off = (int32_t)off};
	w->frame_is_known |= to.kind == HELD_FRAME || by.kind == HELD_FRAME;
	return has_context(to) || has_context(by) ? (struct held){.kind = HELD_UNSURE} : other;
}

static void compute(struct walk *w, const struct bpf_insn *insn)
{
	struct held *to = &w->now.regs[insn->dst_reg];
	struct held src = BPF_SRC(insn->code) == BPF_X && insn->src_reg < REGISTERS
				  ? w->now.regs[insn->src_reg]
				  : (struct held){.kind = HELD_NUMBER, .off = insn->imm};

	*to = BPF_OP(insn->code) == BPF_MOV ? moved(insn, src) : added(w, insn, *to, src);
}

/* Only additions and subtractions leave an address what it is. */
static void compute_other(struct walk *w, const struct bpf_insn *insn)
{
	uint8_t op = BPF_OP(insn->code);

	if (op == BPF_MOV || op == BPF_ADD || op == BPF_SUB)
		return compute(w, insn);
	struct held *to = &w->now.regs[insn->dst_reg];
	bool is_unsure = has_context(*to) || (BPF_SRC(insn->code) == BPF_X && op != BPF_END &&
					      has_context(w->now.regs[insn->src_reg]));
	w->frame_is_known |= to->kind == HELD_FRAME;
	*to = is_unsure ? (struct held){.kind = HELD_UNSURE} : other;
}

/* ---- calls ---- */

static void after_call(struct walk *w)
{
	for (int i = 0; i <= 5; i++)
		w->now.regs[i] = other;
}

static void call_with_context(struct walk *w, uint32_t at)
{
	struct held context = w->now.regs[1];

	if (context.kind != HELD_CONTEXT || context.off)
		return refuse(w, NOT_UNDERSTOOD);
	w->use->n_context_calls += !w->use->context_calls[at];
	w->use->context_calls[at] = 1;
}

static void read_by_helper(struct walk *w)
{
	struct held size = w->now.regs[2], from = w->now.regs[3];

	if (from.kind == HELD_UNSURE || (from.kind == HELD_CONTEXT && size.kind != HELD_NUMBER))
		return refuse(w, NOT_UNDERSTOOD);
	if (from.kind == HELD_CONTEXT)
		read_context(w, from.off, size.off);
}

static bool calls_back(int32_t helper)
{
	return helper == BPF_FUNC_loop || helper == BPF_FUNC_for_each_map_elem ||
	       helper == BPF_FUNC_find_vma || helper == BPF_FUNC_timer_set_callback ||
	       helper == BPF_FUNC_user_ringbuf_drain;
}

static void call_helper(struct walk *w, uint32_t at, int32_t helper)
{
	switch (helper) {
	case BPF_FUNC_perf_event_output:
	case BPF_FUNC_get_stackid:
	case BPF_FUNC_get_stack:
	case BPF_FUNC_get_attach_cookie:
		call_with_context(w, at);
		break;
	case BPF_FUNC_tail_call:
		refuse(w, "it tail-calls another program, which would see the probe's registers");
		break;
	case BPF_FUNC_get_func_ip:
		refuse(w, "it asks for the function's address, and an inlined copy has none");
		break;
	case BPF_FUNC_override_return:
		refuse(w, "it changes the function's result, and an inlined copy has none");
		break;
	case BPF_FUNC_get_func_arg:
	case BPF_FUNC_get_func_arg_cnt:
	case BPF_FUNC_get_func_ret:
		refuse(w, "it asks for its arguments by a helper, which knows those of functions "
			  "only");
		break;
	case BPF_FUNC_probe_read:
	case BPF_FUNC_probe_read_kernel:
		read_by_helper(w);
		break;
	case BPF_FUNC_probe_read_str:
	case BPF_FUNC_probe_read_kernel_str:
		if (has_context(w->now.regs[3]))
			refuse(w, NOT_UNDERSTOOD);
		break;
	}
	for (int i = 1; i <= 5 && calls_back(helper); i++)
		w->frame_is_known |= w->now.regs[i].kind == HELD_FRAME;
	after_call(w);
}

/* An address of the caller's stack is one of nobody's in the function. */
static void call_function(struct walk *w, int64_t to)
{
	struct held args[5];

	for (int i = 0; i < 5; i++) {
		args[i] = w->now.regs[i + 1];
		w->frame_is_known |= args[i].kind == HELD_FRAME;
		if (args[i].kind == HELD_FRAME)
			args[i] = other;
	}
	enter(w, to, args);
	after_call(w);
}

static void call(struct walk *w, uint32_t at)
{
	const struct bpf_insn *insn = &w->insns[at];

	if (insn->src_reg == BPF_PSEUDO_CALL)
		return call_function(w, (int64_t)at + 1 + insn->imm);
	if (!insn->src_reg)
		return call_helper(w, at, insn->imm);
	for (int i = 1; i <= 5; i++)
		if (has_context(w->now.regs[i]))
			refuse(w, "it may hand its context to a function of the kernel");
	after_call(w);
}

/* ---- one instruction ---- */

static void jump(struct walk *w, uint32_t at)
{
	const struct bpf_insn *insn = &w->insns[at];
	bool is_32 = BPF_CLASS(insn->code) == BPF_JMP32;

	switch (BPF_OP(insn->code)) {
	case BPF_CALL:
		call(w, at);
		break;
	case BPF_EXIT:
		if (has_context(w->now.regs[0]))
			refuse(w, NOT_UNDERSTOOD);
		return;
	case BPF_JA:
		return reach(w, (int64_t)at + 1 + (is_32 ? insn->imm : insn->off), &w->now);
	default:
		reach(w, (int64_t)at + 1 + insn->off, &w->now);
	}
	reach(w, (int64_t)at + 1, &w->now);
}

static void load_constant(struct walk *w, uint32_t at)
{
	const struct bpf_insn *insn = &w->insns[at];

	if (BPF_MODE(insn->code) != BPF_IMM || BPF_SIZE(insn->code) != BPF_DW)
		return refuse(w, NOT_UNDERSTOOD);
	if (insn->src_reg == BPF_PSEUDO_FUNC) {
		w->use->has_callbacks = true;
		enter(w, (int64_t)at + 1 + insn->imm, NULL);
	}
	w->now.regs[insn->dst_reg] = other;
	reach(w, (int64_t)at + 2, &w->now);
}

/* An exchange leaves what was in memory in a register. */
static void store_atomic(struct walk *w, const struct bpf_insn *insn)
{
	store(w, w->now.regs[insn->dst_reg], insn->off, size_of(insn), other);
	if (has_context(w->now.regs[insn->src_reg]) || has_context(w->now.regs[0]))
		refuse(w, NOT_UNDERSTOOD);
	w->now.regs[insn->src_reg] = w->now.regs[0] = other;
}

static void access_memory(struct walk *w, const struct bpf_insn *insn)
{
	const struct held *regs = w->now.regs;

	if (BPF_CLASS(insn->code) == BPF_LDX)
		w->now.regs[insn->dst_reg] = load(w, regs[insn->src_reg], insn->off, size_of(insn));
	else if (BPF_MODE(insn->code) != BPF_MEM)
		store_atomic(w, insn);
	else
		store(w, regs[insn->dst_reg], insn->off, size_of(insn),
		      BPF_CLASS(insn->code) == BPF_STX ? regs[insn->src_reg] : other);
}

static void look_at(struct walk *w, uint32_t at)
{
	const struct bpf_insn *insn = &w->insns[at];
	uint8_t class = BPF_CLASS(insn->code);

	w->now = w->states[at];
	if (insn->dst_reg >= REGISTERS || (class != BPF_LD && insn->src_reg >= REGISTERS))
		return refuse(w, NOT_UNDERSTOOD);
	if (class == BPF_LD)
		return load_constant(w, at);
	if (class == BPF_JMP || class == BPF_JMP32)
		return jump(w, at);
	if (class == BPF_ALU || class == BPF_ALU64)
		compute_other(w, insn);
	else
		access_memory(w, insn);
	reach(w, (int64_t)at + 1, &w->now);
}

static void walk_all(struct walk *w)
{
	struct held args[5] = {{.kind = HELD_CONTEXT}, other, other, other, other};

	enter(w, 0, args);
	while (w->todo.n && !w->failed && !w->use->why)
		look_at(w, w->todo.p[--w->todo.n]);
	if (w->context_is_stored && w->frame_is_known)
		refuse(w, "it keeps its context in memory that other functions of it may read");
}

int use_find(const struct bpf_insn *insns, size_t n, struct cover_use *ret, struct cairn_err *err)
{
	struct walk w = {.insns = insns, .n = n, .use = ret};

	*ret = (struct cover_use){0};
	if (!n || n > COVER_INSNS_MAX) {
		ret->why = n ? "it is too long" : "its instructions are not there";
		return 0;
	}
	w.states = calloc(n, sizeof(*w.states));
	ret->context_calls = calloc(n, 1);
	w.failed = !w.states || !ret->context_calls;
	if (!w.failed)
		walk_all(&w);
	free(w.states);
	VEC_FREE(&w.todo);
	return w.failed ? err_nomem(err, "a program's instructions") : 0;
}

void use_fini(struct cover_use *use)
{
	free(use->context_calls);
	use->context_calls = NULL;
}
