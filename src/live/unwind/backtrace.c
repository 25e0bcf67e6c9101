/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking one's own stack
 *
 * Most frames need three registers: pc, stack pointer, frame pointer. For those a rule fits a word
 * (backtrace_rule.h), and the word for an address that was seen before is in a cache:
 *
 *	pc 0x401234, sp 0x7ffc00, fp 0
 *	cache[0x401234 % 8192]: 0x401234 / 8192, from rsp, CFA = rsp + 4 words, rbp at CFA - 2 words
 *	CFA 0x7ffc20; next: pc = *(CFA - 8), fp = *(CFA - 16), sp = CFA
 *
 * If there is none, the object's table is searched (backtrace_prepare.c), or the FDE's program is
 * run in its mapping (cfi/eh_memory.h). A rule that does not fit is applied by cairn_unwind_step().
 * A rule that needs a register which was not followed restarts the walk with all registers. Signal
 * trampolines restore them all.
 *
 * The limit of the fast path is that each frame's address is known only when the previous frame was
 * read. So an entry also has the number of the entry that its caller had the last time. If the
 * number is right, as the processor predicts, the walk goes on from there, and the comparison with
 * the stack comes later.
 *
 * The cache is one for all threads, without locks: all that counts of an entry is one word, written
 * and read as a whole.
 *
 *	bits 0-7    how many words below the CFA the caller's rbp is saved; 0: it was not changed
 *	bits 8-18   CFA minus the register it starts from, in words; 0: the outermost frame, with 1
 *	            in bits 0-7
 *	bit  19     the CFA starts from rbp; else from rsp
 *	bits 20-28  slot
 *	bit  29     the address is of an exact frame: no check that it follows a call
 *	bits 30-63  the address, but for the bits of its index
 *
 * A rule that does not fit, such as a frame of more than 16 KB, is looked up each time. An entry
 * belongs to a slot (backtrace_object.c), and counts in a walk when that slot's object is still the
 * mapped one.
 *
 * On an overwritten stack each return address is garbage. A frame is reported when its pc is in the
 * code of a loaded object, directly after a call, or at a point that a signal trampoline names as
 * interrupted. The trampoline's registers must then have the code segment of user space. Reads are
 * checked (backtrace_memory.h), stack pointers only rise, and the number of frames is limited.
 */
#include <cairn/backtrace.h>

#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "unwind/backtrace_memory.h"
#include "unwind/backtrace_object.h"
#include "unwind/backtrace_rule.h"

enum { RBP = 6, RSP = 7, N_REGS = 16, WORD = 8 };

enum {
	N_ENTRIES = 8192,        /* 128 KB, of which a page is used for 256 addresses */
	INTERPRET_BYTES = 16384, /* of stack, for cfi/program.c */
	USER_CS = 0x33,          /* Linux: selector of 64-bit user code */
	N_OBJECTS = 4,           /* remembered within a walk */
};

static bool is_cache_off;

void backtrace_cache_use(bool on)
{
	__atomic_store_n(&is_cache_off, !on, __ATOMIC_RELAXED);
}

struct entry {
	uint64_t seen; /* 0: nothing */
	uint32_t next; /* a guess: where the caller's is, in bytes from the first */
	uint32_t reserved;
};

static struct entry cache[N_ENTRIES] __attribute__((aligned(64)));

struct walker {
	struct cairn_addr *pcs;
	size_t n, max;
	struct cairn_backtrace *walk;
	bool is_exact;
	bool has_all; /* regs has every register; else pc, sp and fp only */
	struct cairn_regs regs;
	struct backtrace_memory memory;
	bool verified[SELF_N_SLOTS]; /* its object is the one that is mapped */
	struct {
		struct backtrace_object object;
		int slot;
	} objects[N_OBJECTS];
	size_t n_objects;       /* all that there were; the last N_OBJECTS of them are kept */
	struct rule_words made; /* by the FDE's program */
};

/* Stack words are read even if a sanitizer has marked them. */
#define SELF_READS __attribute__((no_sanitize("address", "thread", "undefined")))

SELF_READS static uint64_t word_at(uint64_t at)
{
	return *(const uint64_t *)(uintptr_t)at;
}

static bool read_stack(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	struct walker *w = ctx;
	if (!backtrace_memory_has(&w->memory, at.v, n))
		return false;
	uint64_t value = word_at(at.v);
	memcpy(ret, &value, n);
	return true;
}

/* ---- the cache ---- */

enum {
	SEEN_OFF = 8,
	SEEN_OFF_MAX = (1 << 11) - 1,
	SEEN_FP_MAX = (1 << 8) - 1,
	SEEN_FROM_FP = 1 << 19,
	SEEN_SLOT = 20,
	SEEN_PLACE = 29,
	INDEX_BITS = 13,
	/* all bits that fit: addresses of user space with four levels of page tables */
	ADDRESS_BITS = SEEN_PLACE + 5 + INDEX_BITS,
	SEEN_OUTERMOST = 1,
};
_Static_assert(1 << INDEX_BITS == N_ENTRIES && SELF_N_SLOTS == 1 << (SEEN_PLACE - SEEN_SLOT),
	       "what an entry has room for");

/*
 * Tells apart the addresses of an index: an entry's bits from SEEN_PLACE on. A value that is no
 * address gives bits that no entry has.
 */
static inline uint64_t place_of(uint64_t pc, bool is_exact)
{
	return pc >> INDEX_BITS << 1 | is_exact;
}

static inline uint32_t index_of(uint64_t pc)
{
	return pc % N_ENTRIES;
}

static inline uint64_t seen_at(const struct entry *e)
{
	return __atomic_load_n(&e->seen, __ATOMIC_ACQUIRE);
}

static inline uint32_t seen_slot(uint64_t seen)
{
	return seen >> SEEN_SLOT & (SELF_N_SLOTS - 1);
}

/* 0 when there is no room for it. */
static uint64_t seen_of(uint64_t pc, bool is_exact, uint32_t slot, backtrace_word word)
{
	int64_t off = backtrace_word_off(word), fp = -backtrace_word_fp(word);
	uint64_t ret = place_of(pc, is_exact) << SEEN_PLACE | (uint64_t)slot << SEEN_SLOT;
	if (pc >> ADDRESS_BITS)
		return 0;
	if (backtrace_word_kind(word) == SELF_OUTERMOST)
		return ret | SEEN_OUTERMOST;
	if (backtrace_word_kind(word) != SELF_SIMPLE || off <= 0 || off % WORD ||
	    off / WORD > SEEN_OFF_MAX || fp % WORD || fp / WORD > SEEN_FP_MAX || fp > off)
		return 0;
	return ret | (word & SELF_FROM_FP ? SEEN_FROM_FP : 0) | (uint64_t)(off / WORD) << SEEN_OFF |
	       (uint64_t)(fp / WORD);
}

static void put_entry(uint64_t pc, bool is_exact, uint32_t slot, backtrace_word word)
{
	uint64_t seen = seen_of(pc, is_exact, slot, word);
	if (seen)
		__atomic_store_n(&cache[index_of(pc)].seen, seen, __ATOMIC_RELEASE);
}

/* ---- frames that were seen before ---- */

/*
 * The entry of the caller. When the guess is right the result is the guess, of which the compiler
 * must not know that it is the same number: then it need not wait for @pc to be read. In bytes,
 * since each step in between would be waited for.
 */
static inline struct entry *next_entry(struct entry *e, uint64_t pc)
{
	uint32_t off = index_of(pc) * (uint32_t)sizeof(*e),
		 guess = __atomic_load_n(&e->next, __ATOMIC_RELAXED);
	uint64_t hidden = guess;
	__asm__("" : "+r"(hidden));
	if (__builtin_expect(guess == off, 1))
		return (struct entry *)((char *)cache + hidden);
	__atomic_store_n(&e->next, off, __ATOMIC_RELAXED);
	return (struct entry *)((char *)cache + off);
}

/*
 * Whether the frame's stack pointer is in the thread's stack, from where on all is readable then,
 * and aligned.
 */
static bool begins_on_stack(struct walker *w)
{
	uint64_t sp = w->regs.r[RSP];
	return sp % WORD == 0 && backtrace_memory_has(&w->memory, sp, WORD) && sp >= w->memory.lo &&
	       sp < w->memory.hi;
}

/* @n in words; no small number where it is negative, or not of whole words. */
static inline uint64_t words_of(uint64_t n)
{
	return n >> 3 | n << 61;
}

/*
 * As far as it goes without a search, or a part of the stack that is not known to be readable.
 *
 * sp is aligned and in the stack, and only rises. A CFA is based on it, or on a frame pointer above
 * it, and the frame's saved registers are not below that base (seen_of()). So only one end needs a
 * check.
 */
SELF_READS static void walk_seen(struct walker *w)
{
	uint64_t pc = w->regs.pc.v, sp = w->regs.r[RSP], fp = w->regs.r[RBP],
		 place = place_of(pc, w->is_exact);
	struct cairn_addr *to = w->pcs + w->n, *end = w->pcs + w->max;
	struct entry *e = &cache[index_of(pc)];
	bool is_moved = false;
	if (!begins_on_stack(w))
		return;
	uint64_t last = w->memory.hi - WORD, most = (w->memory.hi - w->memory.lo) / WORD;
	while (to < end) {
		uint64_t seen = seen_at(e), base = sp;
		uint64_t off = seen >> SEEN_OFF & SEEN_OFF_MAX, n_fp = seen & SEEN_FP_MAX;
		if (seen >> SEEN_PLACE != place || !w->verified[seen_slot(seen)])
			break;
		if (seen & SEEN_FROM_FP) {
			if (words_of(fp - sp) > most)
				break;
			base = fp;
		}
		uint64_t cfa = base + off * WORD;
		if (!off || cfa >= last)
			break;
		(to++)->v = pc;
		pc = word_at(cfa - WORD);
		uint64_t value = word_at(cfa - n_fp * WORD);
		fp = n_fp ? value : fp;
		sp = cfa;
		place = place_of(pc, false);
		e = next_entry(e, pc);
		is_moved = true;
	}
	w->n = (size_t)(to - w->pcs);
	if (!is_moved)
		return;
	w->regs.pc.v = pc;
	w->regs.r[RSP] = sp;
	w->regs.r[RBP] = fp;
	w->regs.known = UINT32_C(1) << RSP | UINT32_C(1) << RBP;
	w->is_exact = false;
}

/* ---- finding a rule ---- */

/* NULL when no object is there. */
static const struct backtrace_object *find_object(struct walker *w, uint64_t at, int *ret_slot)
{
	size_t n = w->n_objects < N_OBJECTS ? w->n_objects : N_OBJECTS;
	for (size_t i = 0; i < n; i++)
		if (at >= w->objects[i].object.lo && at < w->objects[i].object.hi) {
			*ret_slot = w->objects[i].slot;
			return &w->objects[i].object;
		}
	struct backtrace_object *o = &w->objects[w->n_objects % N_OBJECTS].object;
	if (!backtrace_object_at(at, o)) {
		/* The place may have been another's. */
		o->lo = o->hi = 0;
		return NULL;
	}
	int slot = backtrace_slot_of(o);
	w->objects[w->n_objects++ % N_OBJECTS].slot = slot;
	if (slot >= 0)
		w->verified[slot] = true;
	*ret_slot = slot;
	return o;
}

/* On a small alternate stack that would overflow, the answer is better left unknown. */
static bool has_room(void)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	stack_t alternate;
	if (sigaltstack(NULL, &alternate) < 0 || alternate.ss_flags & SS_DISABLE)
		return true;
	uint64_t lo = (uint64_t)(uintptr_t)alternate.ss_sp;
	return here < lo || here >= lo + alternate.ss_size || here - lo >= INTERPRET_BYTES;
}

/* The rule at @at, and the word that it fits in; NULL when too little stack is left. */
static const struct cairn_unwind_rule *find_rule(struct walker *w, const struct backtrace_object *o,
						 int slot, uint64_t at, backtrace_word *ret)
{
	const struct backtrace_table *table =
		slot < 0 ? NULL : backtrace_slot_table((unsigned int)slot);
	if (table) {
		const struct cairn_unwind_rule *rule =
			unwind_table_find(&table->rows, (struct cairn_vaddr){at - o->bias});
		*ret = rule->cfa || rule->flags
			       ? table->words[(const uint32_t *)rule - table->rows.rules]
			       : SELF_NONE;
		return rule;
	}
	if (!has_room())
		return NULL;
	rule_undescribed(&w->made);
	if (o->eh.hdr)
		eh_memory_rule(&o->eh, at, &w->made);
	const struct cairn_unwind_rule *rule = (const struct cairn_unwind_rule *)w->made.words;
	*ret = backtrace_word_of(rule);
	return rule;
}

/* ---- one frame, the long way ---- */

static bool finish(struct walker *w, enum cairn_walk_end end)
{
	w->walk->end = end;
	w->walk->at = w->regs.pc;
	return false;
}

static bool push(struct walker *w)
{
	if (w->n == w->max)
		return finish(w, CAIRN_WALK_LIMIT);
	w->pcs[w->n++] = w->regs.pc;
	return true;
}

/* The kernel's frame of a signal begins where the trampoline's stack pointer is. */
static bool is_signal_frame(struct walker *w)
{
	uint64_t at = w->regs.r[RSP] + offsetof(ucontext_t, uc_mcontext.gregs[REG_CSGSFS]);
	return backtrace_memory_has(&w->memory, at, WORD) && (word_at(at) & 0xffff) == USER_CS;
}

static bool is_frame(struct walker *w, const struct backtrace_object *o,
		     const struct cairn_unwind_rule *rule)
{
	uint64_t pc = w->regs.pc.v;
	if (rule->cfa && rule->flags & CAIRN_UNWIND_SIGNAL)
		return is_signal_frame(w);
	return w->is_exact ? pc >= o->text_lo && pc < o->text_hi : backtrace_object_calls(o, pc);
}

enum step_result { STEP_DONE, STEP_END, STEP_AGAIN };

/* The frame that comes next. */
static void note_exact(struct walker *w)
{
	struct cairn_backtrace *walk = w->walk;
	if (walk->n_exact < sizeof(walk->exact) / sizeof(walk->exact[0]))
		walk->exact[walk->n_exact++] = (uint32_t)w->n;
}

static enum step_result end(struct walker *w, enum cairn_walk_end why)
{
	finish(w, why);
	return STEP_END;
}

static enum step_result step_simple(struct walker *w, backtrace_word word)
{
	uint64_t *r = w->regs.r;
	uint64_t cfa = r[word & SELF_FROM_FP ? RBP : RSP] + (uint64_t)backtrace_word_off(word);
	uint64_t saved = cfa + (uint64_t)backtrace_word_fp(word);
	if (cfa <= r[RSP] || cfa % WORD)
		return end(w, CAIRN_WALK_LOOP);
	if (!backtrace_memory_has(&w->memory, cfa - WORD, WORD) ||
	    (saved != cfa && !backtrace_memory_has(&w->memory, saved, WORD)))
		return end(w, CAIRN_WALK_UNREADABLE);
	w->regs.pc.v = word_at(cfa - WORD);
	if (saved != cfa)
		r[RBP] = word_at(saved);
	r[RSP] = cfa;
	w->regs.known = UINT32_C(1) << RSP | UINT32_C(1) << RBP;
	w->is_exact = false;
	return STEP_DONE;
}

static enum step_result step(struct walker *w, const struct cairn_unwind_rule *rule)
{
	bool is_signal = rule->flags & CAIRN_UNWIND_SIGNAL;
	switch (cairn_unwind_step(rule, EM_X86_64, read_stack, w, &w->regs)) {
	case CAIRN_STEP_OK:
		break;
	case CAIRN_STEP_OUTERMOST:
		return end(w, CAIRN_WALK_OUTERMOST);
	case CAIRN_STEP_UNDESCRIBED:
		return end(w, CAIRN_WALK_UNDESCRIBED);
	case CAIRN_STEP_UNREADABLE:
		return end(w, CAIRN_WALK_UNREADABLE);
	case CAIRN_STEP_LOST:
		end(w, CAIRN_WALK_LOST);
		return w->has_all ? STEP_END : STEP_AGAIN;
	case CAIRN_STEP_STUCK:
		return end(w, CAIRN_WALK_LOOP);
	}
	w->is_exact = is_signal;
	if (is_signal)
		note_exact(w);
	return STEP_DONE;
}

/* The entry for the frame's address; 0: none. */
static uint64_t seen_here(const struct walker *w)
{
	uint64_t pc = w->regs.pc.v, seen = seen_at(&cache[index_of(pc)]);
	return seen >> SEEN_PLACE == place_of(pc, w->is_exact) ? seen : 0;
}

/* Entries of an object whose slot was not checked in this walk do not count until it was. */
static bool verify_seen(struct walker *w)
{
	uint64_t seen = seen_here(w);
	uint32_t slot = seen_slot(seen);
	if (!seen || w->verified[slot] || !backtrace_slot_holds(slot, w->regs.pc.v - !w->is_exact))
		return false;
	w->verified[slot] = true;
	return true;
}

/*
 * A frame is only reported when there is something to say so; the first is a register's value, and
 * true in any case.
 */
static enum step_result refuse(struct walker *w, enum cairn_walk_end why)
{
	return w->n || push(w) ? end(w, why) : STEP_END;
}

static enum step_result walk_new(struct walker *w)
{
	uint64_t pc = w->regs.pc.v, at = pc - !w->is_exact;
	backtrace_word word;
	int slot = -1;
	/*
	 * A return address of 0 is how some programs mark the outermost frame, without a rule that
	 * says so.
	 */
	if (!pc && !w->is_exact)
		return end(w, CAIRN_WALK_OUTERMOST);
	const struct backtrace_object *o = find_object(w, at, &slot);
	if (!o)
		return refuse(w, CAIRN_WALK_NO_FILE);
	const struct cairn_unwind_rule *rule = find_rule(w, o, slot, at, &word);
	if (!rule)
		return refuse(w, CAIRN_WALK_NO_ROOM);
	if (!is_frame(w, o, rule))
		return refuse(w, CAIRN_WALK_NO_CALL);
	if (!push(w))
		return STEP_END;
	if (slot >= 0 && word != SELF_NONE)
		put_entry(pc, w->is_exact, (uint32_t)slot, word);
	return backtrace_word_kind(word) == SELF_SIMPLE && !w->has_all ? step_simple(w, word)
								       : step(w, rule);
}

/* The outermost frame of most walks was seen before, too. */
static bool is_seen_outermost(const struct walker *w)
{
	uint64_t seen = seen_here(w);
	return seen && w->verified[seen_slot(seen)] && !(seen >> SEEN_OFF & SEEN_OFF_MAX) &&
	       (seen & SEEN_FP_MAX) == SEEN_OUTERMOST;
}

static enum step_result walk_on(struct walker *w)
{
	enum step_result result = STEP_DONE;
	while (result == STEP_DONE) {
		if (!w->has_all && !__atomic_load_n(&is_cache_off, __ATOMIC_RELAXED)) {
			walk_seen(w);
			if (verify_seen(w))
				continue;
			if (w->n < w->max && is_seen_outermost(w))
				return push(w) ? end(w, CAIRN_WALK_OUTERMOST) : STEP_END;
		}
		if (w->n == w->max)
			return end(w, CAIRN_WALK_LIMIT);
		result = walk_new(w);
	}
	return result;
}

static void begin(struct walker *w, const struct cairn_regs *regs, bool is_exact)
{
	w->n = 0;
	w->is_exact = is_exact;
	if (w->has_all) {
		w->regs = *regs;
	} else {
		w->regs.pc = regs->pc;
		w->regs.r[RSP] = regs->r[RSP];
		w->regs.r[RBP] = regs->r[RBP];
		w->regs.known = UINT32_C(1) << RSP | UINT32_C(1) << RBP;
	}
	memset(w->verified, 0, sizeof(w->verified));
	w->n_objects = 0;
	backtrace_memory_begin(&w->memory);
	*w->walk = (struct cairn_backtrace){.n_exact = is_exact};
}

/* One step that leaves no frame: from inside of cairn_backtrace() to its caller. */
static bool leave(struct walker *w)
{
	struct cairn_addr *pcs = w->pcs, own;
	size_t max = w->max;
	w->pcs = &own;
	w->max = 1;
	bool is_done = walk_new(w) == STEP_DONE;
	w->pcs = pcs;
	w->max = max;
	w->n = 0;
	w->walk->n_exact = 0;
	return is_done;
}

/*
 * With the registers that nearly all code is content with, @regs, then, if need be, with @all.
 * @is_exact: they are those of a context, all the same; else @all are of a place in the function
 * that they have to leave first.
 */
static size_t run(const struct cairn_regs *regs, const struct cairn_regs *all, bool is_exact,
		  struct cairn_addr *ret_pcs, size_t max, struct cairn_backtrace *ret_walk)
{
	/* Not cleared as a whole: that would take longer than many a walk. */
	struct walker w;
	w.pcs = ret_pcs;
	w.max = max;
	w.walk = ret_walk;
	w.has_all = false;
	begin(&w, regs, is_exact);
	if (walk_on(&w) == STEP_AGAIN) {
		w.has_all = true;
		begin(&w, all, true);
		if (is_exact || leave(&w))
			walk_on(&w);
	}
	while (ret_walk->n_exact && ret_walk->exact[ret_walk->n_exact - 1] >= w.n)
		ret_walk->n_exact--;
	return w.n;
}

/* ---- where walks begin ---- */

/* The registers that a caller expects to be kept, at the instruction that reads the pc. */
#define READ_REGISTERS(REGS)                                                                       \
	__asm__ volatile("lea 0f(%%rip), %%rax\n"                                                  \
			 "0: mov %%rax, %0\n\t"                                                    \
			 "mov %%rbx, %1\n\t"                                                       \
			 "mov %%rbp, %2\n\t"                                                       \
			 "mov %%rsp, %3\n\t"                                                       \
			 "mov %%r12, %4\n\t"                                                       \
			 "mov %%r13, %5\n\t"                                                       \
			 "mov %%r14, %6\n\t"                                                       \
			 "mov %%r15, %7"                                                           \
			 : "=m"((REGS).pc.v), "=m"((REGS).r[3]), "=m"((REGS).r[6]),                \
			   "=m"((REGS).r[7]), "=m"((REGS).r[12]), "=m"((REGS).r[13]),              \
			   "=m"((REGS).r[14]), "=m"((REGS).r[15])                                  \
			 :                                                                         \
			 : "rax")

size_t cairn_backtrace(struct cairn_addr *ret_pcs, size_t max, struct cairn_backtrace *ret_walk)
{
	/*
	 * This function has a frame pointer, since it uses the builtin; its return address comes
	 * after it.
	 */
	const uint64_t *frame = __builtin_frame_address(0);
	struct cairn_regs caller, here;
	caller.pc.v = frame[1];
	caller.r[RSP] = (uint64_t)(uintptr_t)(frame + 2);
	caller.r[RBP] = frame[0];
	READ_REGISTERS(here);
	here.known = 1u << 3 | 1u << RBP | 1u << RSP | 0xf000;
	return run(&caller, &here, false, ret_pcs, max, ret_walk);
}

size_t cairn_backtrace_context(const void *ucontext, struct cairn_addr *ret_pcs, size_t max,
			       struct cairn_backtrace *ret_walk)
{
	/* DWARF's numbers 0 to 15, and where the kernel has them. */
	static const uint8_t gregs[N_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					      REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					      REG_R12, REG_R13, REG_R14, REG_R15};
	const ucontext_t *uc = ucontext;
	struct cairn_regs regs;
	regs.pc.v = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	for (unsigned int i = 0; i < N_REGS; i++)
		regs.r[i] = (uint64_t)uc->uc_mcontext.gregs[gregs[i]];
	regs.known = (UINT32_C(1) << N_REGS) - 1;
	return run(&regs, &regs, true, ret_pcs, max, ret_walk);
}

#else

size_t cairn_backtrace(struct cairn_addr *ret_pcs, size_t max, struct cairn_backtrace *ret_walk)
{
	*ret_walk = (struct cairn_backtrace){.end = CAIRN_WALK_NO_FILE};
	return 0;
}

size_t cairn_backtrace_context(const void *ucontext, struct cairn_addr *ret_pcs, size_t max,
			       struct cairn_backtrace *ret_walk)
{
	return cairn_backtrace(ret_pcs, max, ret_walk);
}

#endif
