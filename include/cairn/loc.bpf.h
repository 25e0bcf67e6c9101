/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For BPF programs: the arguments of functions, wherever the compiler keeps them
 *
 * The program runs at each call of a function, its inlined copies included, and has the arguments
 * by their position, in registers, in memory, or as constants. libcairn attaches it (cairn/loc.h).
 *
 *	#include "vmlinux.h"			// or <linux/bpf.h>
 *	#include <bpf/bpf_helpers.h>
 *	#include <cairn/loc.bpf.h>
 *
 *	SEC("uloc//usr/bin/redis-server:lookupKey")
 *	int BPF_LOC_PROG(on_lookup, void *db, void *key, int flags)
 *	{
 *		...
 *	}
 *
 *	SEC("uloc/libc.so.6:qsort")
 *	int on_sort(struct pt_regs *ctx)
 *	{
 *		unsigned long size;
 *
 *		if (!bpf_loc_arg(ctx, 2, &size))	// the third one
 *			...
 *	}
 *
 *	SEC("kloc/blk_account_io_start")	// of the kernel
 *	int BPF_LOC_PROG(on_request, struct request *rq)
 *	{
 *		...
 *	}
 *
 * Nothing here depends on the processor. The kernel needs BPF cookies (Linux 5.15).
 */
#ifndef CAIRN_LOC_BPF_H
#define CAIRN_LOC_BPF_H

#include <bpf/bpf_helpers.h>

#include <cairn/shared/loc_table.h>

/* Entries of 16 bytes; see cairn_loc_attach() for how many are needed. */
#ifndef BPF_LOC_TABLE_ENTRIES
#define BPF_LOC_TABLE_ENTRIES 16384
#endif

struct pt_regs;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BPF_LOC_TABLE_ENTRIES);
	__type(key, __u32);
	__type(value, struct cairn_loc_entry);
} bpf_loc_table_2 SEC(".maps") __weak;

#define BPF_LOC_ENOENT 2
#define BPF_LOC_ESRCH  3
#define BPF_LOC_E2BIG  7
#define BPF_LOC_EFAULT 14
#define BPF_LOC_EINVAL 22

/* ---- how it works; what programs use is below ---- */

/*
 * The cookie. It is the same in a whole run: this is no volatile statement, so the compiler takes one
 * call for all that a program asks.
 */
static __attribute__((always_inline, unused)) __u64 bpf_loc_own_cookie_(void *ctx)
{
	__u64 cookie;

	asm("r1 = %1; call 174; %0 = r0"
	    : "=r"(cookie)
	    : "r"(ctx)
	    : "r0", "r1", "r2", "r3", "r4", "r5");
	return cookie;
}

static __attribute__((always_inline, unused)) int bpf_loc_is_ours_(__u64 cookie)
{
	return cookie >> 52 == CAIRN_LOC_COOKIE_MARK;
}

/*
 * A word of the registers. The context is only read at offsets that the compiler knows, and no
 * compiler joins two statements of assembler. No processor of 64 bits has fewer than 19 words.
 */
#define BPF_LOC_WORD_(i)                                                                           \
	case i:                                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + " #i " * 8)" : "=r"(value) : "r"(ctx));           \
		return value;

static __attribute__((always_inline, unused)) __u64 bpf_loc_near_word_(void *ctx, __u32 word)
{
	__u64 value = 0;

	switch (word) {
		BPF_LOC_WORD_(0)
		BPF_LOC_WORD_(1)
		BPF_LOC_WORD_(2)
		BPF_LOC_WORD_(3)
		BPF_LOC_WORD_(4)
		BPF_LOC_WORD_(5)
		BPF_LOC_WORD_(6)
		BPF_LOC_WORD_(7)
		BPF_LOC_WORD_(8)
		BPF_LOC_WORD_(9)
		BPF_LOC_WORD_(10)
		BPF_LOC_WORD_(11)
		BPF_LOC_WORD_(12)
		BPF_LOC_WORD_(13)
		BPF_LOC_WORD_(14)
		BPF_LOC_WORD_(15)
		BPF_LOC_WORD_(16)
		BPF_LOC_WORD_(17)
		BPF_LOC_WORD_(18)
	}
	return value;
}

static __attribute__((always_inline, unused)) __u64 bpf_loc_word_(void *ctx, __u32 word)
{
	__u64 value = 0;

	if (word < CAIRN_LOC_NEAR_WORDS)
		return bpf_loc_near_word_(ctx, word);
	bpf_probe_read_kernel(&value, sizeof(value), (const char *)ctx + (word & 63) * 8);
	return value;
}

static __attribute__((always_inline, unused)) __u64 bpf_loc_extend_(__u64 value, __u32 size,
								    __u32 flags)
{
	__u32 shift = 64 - 8 * (size < 8 ? size : 8);

	value <<= shift & 63;
	if (flags & CAIRN_LOC_F_SIGNED)
		return (__u64)((__s64)value >> (shift & 63));
	return value >> (shift & 63);
}

static __attribute__((always_inline, unused)) long bpf_loc_read_(void *to, __u32 size, __u64 from,
								 __u32 flags)
{
	if (flags & CAIRN_LOC_F_KERNEL)
		return bpf_probe_read_kernel(to, size, (const void *)from);
	return bpf_probe_read_user(to, size, (const void *)from);
}

/* Below 64 bytes, with all that is called: larger stacks are one per processor since Linux 6.13. */
struct bpf_loc_run_ {
	void *ctx;
	__u64 acc, low, high; /* the last two are the result */
	__u64 slots[CAIRN_LOC_TABLE_SLOTS];
	__u32 at;
	int error;
};

static __attribute__((always_inline, unused)) void bpf_loc_put_(struct bpf_loc_run_ *r, __u32 to,
								__u32 size, __u64 value)
{
	value = bpf_loc_extend_(value, size, 0) << ((to & 7) * 8);
	if (to & 8)
		r->high |= value;
	else
		r->low |= value;
}

static __attribute__((always_inline, unused)) __u64 bpf_loc_binary_(__u32 code, __u64 a, __u64 b)
{
	switch (code) {
	case CAIRN_LOC_OP_ADD:
		return a + b;
	case CAIRN_LOC_OP_SUB:
		return a - b;
	case CAIRN_LOC_OP_MUL:
		return a * b;
	case CAIRN_LOC_OP_AND:
		return a & b;
	case CAIRN_LOC_OP_OR:
		return a | b;
	case CAIRN_LOC_OP_XOR:
		return a ^ b;
	case CAIRN_LOC_OP_SHL:
		return b > 63 ? 0 : a << (b & 63);
	case CAIRN_LOC_OP_SHR:
		return b > 63 ? 0 : a >> (b & 63);
	case CAIRN_LOC_OP_SAR:
		return (__u64)((__s64)a >> (b > 63 ? 63 : b & 63));
	case CAIRN_LOC_OP_EQ:
		return a == b;
	case CAIRN_LOC_OP_NE:
		return a != b;
	case CAIRN_LOC_OP_LT:
		return (__s64)a < (__s64)b;
	case CAIRN_LOC_OP_LE:
		return (__s64)a <= (__s64)b;
	case CAIRN_LOC_OP_GT:
		return (__s64)a > (__s64)b;
	}
	return (__s64)a >= (__s64)b;
}

static __attribute__((always_inline, unused)) __u64
bpf_loc_operand_(const struct bpf_loc_run_ *r, const struct cairn_loc_entry *e)
{
	if (e->flags & CAIRN_LOC_F_REG)
		return bpf_loc_word_(r->ctx, e->reg);
	if (e->flags & CAIRN_LOC_F_SLOT)
		return e->reg ? r->slots[1] : r->slots[0];
	return e->imm;
}

/* One operation; 1: it was the last. */
static __attribute__((unused)) long bpf_loc_step_(__u32 i __attribute__((unused)),
						  struct bpf_loc_run_ *r)
{
	__u32 at = r->at;
	const struct cairn_loc_entry *e = bpf_map_lookup_elem(&bpf_loc_table_2, &at);
	__u64 value = 0;
	__u32 size;

	if (!e || e->kind == CAIRN_LOC_OP_END)
		return 1;
	r->at = at + 1;
	size = e->size;
	switch (e->kind) {
	case CAIRN_LOC_OP_REG:
		r->acc = bpf_loc_word_(r->ctx, e->reg);
		return 0;
	case CAIRN_LOC_OP_CONST:
		r->acc = e->imm;
		return 0;
	case CAIRN_LOC_OP_LOAD:
	case CAIRN_LOC_OP_COPY:
		if (size < 1 || size > 8 ||
		    bpf_loc_read_(&value, size, e->imm + r->acc, e->flags)) {
			r->error = -BPF_LOC_EFAULT;
			return 1;
		}
		if (e->kind == CAIRN_LOC_OP_LOAD)
			r->acc = value;
		else
			bpf_loc_put_(r, e->to, size, value);
		return 0;
	case CAIRN_LOC_OP_STORE:
		bpf_loc_put_(r, e->to, size, r->acc);
		return 0;
	case CAIRN_LOC_OP_SAVE:
		if (e->reg)
			r->slots[1] = r->acc;
		else
			r->slots[0] = r->acc;
		return 0;
	case CAIRN_LOC_OP_SEXT:
		r->acc = bpf_loc_extend_(r->acc, size, CAIRN_LOC_F_SIGNED);
		return 0;
	case CAIRN_LOC_OP_ZEXT:
		r->acc = bpf_loc_extend_(r->acc, size, 0);
		return 0;
	case CAIRN_LOC_OP_NEG:
		r->acc = -r->acc;
		return 0;
	case CAIRN_LOC_OP_NOT:
		r->acc = ~r->acc;
		return 0;
	}
	value = bpf_loc_operand_(r, e);
	if (e->flags & CAIRN_LOC_F_SWAP)
		r->acc = bpf_loc_binary_(e->kind, value, r->acc);
	else
		r->acc = bpf_loc_binary_(e->kind, r->acc, value);
	return 0;
}

/* A header of the kernel may be older than bpf_loop(), and so may the kernel (Linux 5.17). */
enum bpf_func_id___loc { BPF_FUNC_loop___loc = 181 };
#define bpf_loc_has_loop_()                                                                        \
	__builtin_preserve_enum_value(*(enum bpf_func_id___loc *)BPF_FUNC_loop___loc, 0)

__weak __hidden __attribute__((noinline)) int bpf_loc_run_(void *ctx, __u32 at, __u64 *to)
{
	static long (*const loop)(__u32 n, void *body, void *r, __u64 flags) = (void *)181;
	struct bpf_loc_run_ r = {.ctx = ctx, .at = at};

	if (bpf_loc_has_loop_()) {
		loop(CAIRN_LOC_TABLE_OPS_MAX, bpf_loc_step_, &r, 0);
	} else {
		for (__u32 i = 0; i < CAIRN_LOC_TABLE_OPS_MAX; i++)
			if (bpf_loc_step_(i, &r))
				break;
	}
	to[0] = r.low;
	to[1] = r.high;
	return r.error;
}

/* The entry of an argument; NULL: there is none, and *@error says why. */
static __attribute__((always_inline, unused)) const struct cairn_loc_entry *
bpf_loc_entry_(__u64 cookie, __u64 n, int *error)
{
	__u32 at = CAIRN_LOC_COOKIE_HEAD(cookie);
	const struct cairn_loc_entry *head = bpf_map_lookup_elem(&bpf_loc_table_2, &at);

	*error = -BPF_LOC_ESRCH;
	if (!head || !bpf_loc_is_ours_(cookie))
		return 0;
	*error = -BPF_LOC_ENOENT;
	if (n >= head->to)
		return 0;
	at += 1 + (__u32)n;
	return bpf_map_lookup_elem(&bpf_loc_table_2, &at);
}

/* All 16 bytes of an argument. Returns the number of its bytes, or a negative errno. */
__weak __hidden __attribute__((noinline)) int bpf_loc_bytes_(void *ctx, __u64 n, __u64 *to)
{
	__u64 cookie = bpf_loc_own_cookie_(ctx);
	int error;
	const struct cairn_loc_entry *e = bpf_loc_entry_(cookie, n, &error);
	__u32 size;

	to[0] = to[1] = 0;
	if (!e)
		return error;
	size = e->size;
	error = 0;
	switch (e->kind) {
	case CAIRN_LOC_IN_REG:
		to[0] = bpf_loc_word_(ctx, e->reg);
		break;
	case CAIRN_LOC_IS_CONST:
		to[0] = e->imm;
		break;
	case CAIRN_LOC_IN_MEMORY:
		if (size < 1 || size > 16)
			return -BPF_LOC_EINVAL;
		if (bpf_loc_read_(to, size, bpf_loc_word_(ctx, e->reg) + e->imm, e->flags))
			error = -BPF_LOC_EFAULT;
		break;
	case CAIRN_LOC_BY_OPS:
		error = bpf_loc_run_(ctx, CAIRN_LOC_COOKIE_HEAD(cookie) + e->to, to);
		break;
	default:
		return (int)e->imm;
	}
	if (error) {
		to[0] = to[1] = 0;
		return error;
	}
	if (size < 8)
		to[0] = bpf_loc_extend_(to[0], size, e->flags);
	/* The sign of an integer goes on. */
	if (size <= 8 && e->flags & CAIRN_LOC_F_SIGNED)
		to[1] = (__u64)((__s64)to[0] >> 63);
	return (int)size;
}

/*
 * What most arguments are is done without a call, which costs more than all else where the processor
 * needs protection of its returns, and without the table. 0: the argument is not so.
 */
static __attribute__((always_inline, unused)) __u32 bpf_loc_near_(__u64 cookie, __u64 n)
{
	if (n >= CAIRN_LOC_NEAR_ARGS || !bpf_loc_is_ours_(cookie))
		return 0;
	return cookie >> (8 * n) & 0xff;
}

/* Where calling conventions have argument @n: those of other processors are only slower so. */
#define BPF_LOC_USUAL_WORD_(n) (14 - (n))

static __attribute__((always_inline, unused)) __u64 bpf_loc_near_value_(void *ctx, __u64 n,
									__u32 near)
{
	__u32 word = (near & 31) - 1, shift = 64 - (8 << (near >> 5 & 3));
	__u64 value;

	/* The next instruction of all, rather than at the end of many jumps. */
	if (__builtin_expect(__builtin_constant_p(n) && word == BPF_LOC_USUAL_WORD_(n), 1))
		value = bpf_loc_near_word_(ctx, BPF_LOC_USUAL_WORD_(n));
	else
		value = bpf_loc_near_word_(ctx, word);
	value <<= shift & 63;
	return near >> 7 ? (__u64)((__s64)value >> (shift & 63)) : value >> (shift & 63);
}

static __attribute__((always_inline, unused)) int bpf_loc_get_(void *ctx, __u64 n, __u64 *to)
{
	__u32 near = bpf_loc_near_(bpf_loc_own_cookie_(ctx), n);

	if (__builtin_expect(!near, 0))
		return bpf_loc_bytes_(ctx, n, to);
	to[0] = bpf_loc_near_value_(ctx, n, near);
	to[1] = near >> 7 ? (__u64)((__s64)to[0] >> 63) : 0;
	return 1 << (near >> 5 & 3);
}

/* An argument of at most 8 bytes, extended to 8; 0 when there is none. */
static __attribute__((always_inline, unused)) __u64 bpf_loc_number_(void *ctx, __u64 n)
{
	__u32 near = bpf_loc_near_(bpf_loc_own_cookie_(ctx), n);
	__u64 to[2];

	if (__builtin_expect(near, 1))
		return bpf_loc_near_value_(ctx, n, near);
	return bpf_loc_bytes_(ctx, n, to) < 0 ? 0 : to[0];
}

/* ---- what programs use ---- */

/*
 * bpf_loc_arg - the value of argument @n, counted from 0
 *
 * @to  a pointer to a variable: an integer, a pointer, or a struct or union of at most 16 bytes. An
 *      integer is extended to the variable's size by its own type; a value is never cut. It is all
 *      zero when there is no value.
 * Returns 0, or negative:
 *   -ENOENT  it is unavailable at this site, or the function has no such argument
 *   -EFAULT  its memory cannot be read now
 *   -E2BIG   it has more bytes than @to, or more than 16
 *   -ESRCH   the program was not attached by libcairn
 */
#define bpf_loc_arg(ctx, n, to)                                                                    \
	({                                                                                         \
		_Static_assert(sizeof(*(to)) <= 16, "an argument has at most 16 bytes");           \
		__u64 loc_bytes_[2];                                                               \
		int loc_result_ = bpf_loc_get_((ctx), (n), loc_bytes_);                            \
		if (loc_result_ > (int)sizeof(*(to))) {                                            \
			loc_bytes_[0] = loc_bytes_[1] = 0;                                         \
			loc_result_ = -BPF_LOC_E2BIG;                                              \
		}                                                                                  \
		__builtin_memcpy((to), loc_bytes_, sizeof(*(to)));                                 \
		loc_result_ < 0 ? loc_result_ : 0;                                                 \
	})

static __attribute__((always_inline, unused)) const struct cairn_loc_entry *bpf_loc_head_(void *ctx)
{
	__u64 cookie = bpf_loc_own_cookie_(ctx);
	__u32 at = CAIRN_LOC_COOKIE_HEAD(cookie);

	return bpf_loc_is_ours_(cookie) ? bpf_map_lookup_elem(&bpf_loc_table_2, &at) : 0;
}

/* How many arguments the function has, or -ESRCH. */
static __attribute__((always_inline, unused)) int bpf_loc_arg_cnt(void *ctx)
{
	const struct cairn_loc_entry *head = bpf_loc_head_(ctx);

	return head ? (int)head->to : -BPF_LOC_ESRCH;
}

/* The cookie that was given to cairn_loc_attach(); 0: none was. */
static __attribute__((always_inline, unused)) __u64 bpf_loc_cookie(void *ctx)
{
	const struct cairn_loc_entry *head = bpf_loc_head_(ctx);

	return head ? head->imm : 0;
}

/*
 * BPF_LOC_PROG - a program whose parameters are the first arguments of the function
 *
 * As BPF_KPROBE() and BPF_USDT(), with the context as ctx. At most 12, each of at most 8 bytes. A
 * site where one of them is unavailable is not attached: all are refused then, or with .best_effort
 * the others are attached. So a parameter is 0 without being so only if its memory could not be
 * read, which bpf_loc_arg() tells.
 */
#define BPF_LOC_PROG(name, args...)                                                                \
	name(struct pt_regs *ctx);                                                                 \
	static bpf_loc_inner_ typeof(name(0)) bpf_loc_##name(struct pt_regs *ctx bpf_loc_unused_,  \
							     ##args);                              \
	typeof(name(0)) name(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		bpf_loc_needs_(bpf_loc_narg_(args));                                               \
		_Pragma("GCC diagnostic push") bpf_loc_quiet_ return bpf_loc_##name(               \
			bpf_loc_join_(bpf_loc_args_, bpf_loc_narg_(args)));                        \
		_Pragma("GCC diagnostic pop")                                                      \
	}                                                                                          \
	static bpf_loc_inner_ typeof(name(0)) bpf_loc_##name(struct pt_regs *ctx bpf_loc_unused_,  \
							     ##args)

#define bpf_loc_inner_  __attribute__((always_inline))
#define bpf_loc_unused_ __attribute__((unused))
#define bpf_loc_quiet_  _Pragma("GCC diagnostic ignored \"-Wint-conversion\"")

/* An instruction without effect tells the library how many are needed. */
#define BPF_LOC_NEEDS_MARK 0x6c6f6300
#define bpf_loc_needs_(n)  asm volatile("r0 = %0" : : "i"(BPF_LOC_NEEDS_MARK + (n)) : "r0")

#define bpf_loc_nth_(_, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, N, ...) N
#define bpf_loc_narg_(...)                                                         bpf_loc_nth_(_, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define bpf_loc_paste_(a, b)                                                       a##b
#define bpf_loc_join_(a, b)                                                        bpf_loc_paste_(a, b)

#define bpf_loc_one_(n) ((void *)bpf_loc_number_(ctx, n))
#define bpf_loc_args_0  ctx
#define bpf_loc_args_1  bpf_loc_args_0, bpf_loc_one_(0)
#define bpf_loc_args_2  bpf_loc_args_1, bpf_loc_one_(1)
#define bpf_loc_args_3  bpf_loc_args_2, bpf_loc_one_(2)
#define bpf_loc_args_4  bpf_loc_args_3, bpf_loc_one_(3)
#define bpf_loc_args_5  bpf_loc_args_4, bpf_loc_one_(4)
#define bpf_loc_args_6  bpf_loc_args_5, bpf_loc_one_(5)
#define bpf_loc_args_7  bpf_loc_args_6, bpf_loc_one_(6)
#define bpf_loc_args_8  bpf_loc_args_7, bpf_loc_one_(7)
#define bpf_loc_args_9  bpf_loc_args_8, bpf_loc_one_(8)
#define bpf_loc_args_10 bpf_loc_args_9, bpf_loc_one_(9)
#define bpf_loc_args_11 bpf_loc_args_10, bpf_loc_one_(10)
#define bpf_loc_args_12 bpf_loc_args_11, bpf_loc_one_(11)

#endif
