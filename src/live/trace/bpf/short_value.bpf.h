/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The values of short programs (abi.h)
 *
 * The kernel's program and a test include it: abi.h, binary.bpf.h, struct pt_regs and opaque() come before it.
 */
#ifndef TRACE_SHORT_VALUE_BPF_H
#define TRACE_SHORT_VALUE_BPF_H

/*
 * A register by its number in the file. Each load has its own place in the code, as the verifier
 * wants constant offsets of the registers.
 */
static __always_inline __u64 register_of(const struct pt_regs *r, __u8 reg)
{
	__u64 v = 0;

	switch (reg) {
#define REGISTER_CASE(number, name)                                                                \
	case number:                                                                               \
		v = r->name;                                                                       \
		opaque(v);                                                                         \
		break;
		REGISTER_CASE(0, rax)
		REGISTER_CASE(1, rdx)
		REGISTER_CASE(2, rcx)
		REGISTER_CASE(3, rbx)
		REGISTER_CASE(4, rsi)
		REGISTER_CASE(5, rdi)
		REGISTER_CASE(6, rbp)
		REGISTER_CASE(7, rsp)
		REGISTER_CASE(8, r8)
		REGISTER_CASE(9, r9)
		REGISTER_CASE(10, r10)
		REGISTER_CASE(11, r11)
		REGISTER_CASE(12, r12)
		REGISTER_CASE(13, r13)
		REGISTER_CASE(14, r14)
		REGISTER_CASE(15, r15)
		REGISTER_CASE(FETCH_FILE_IP, rip)
	}
	return v;
}

static __always_inline __u64 cut(__u64 v, __u8 how)
{
	__u32 n = how & 63;

	v <<= n;
	return how & TRACE_SHORT_SIGNED ? (__u64)((__s64)v >> n) : v >> n;
}

static __always_inline __u64 short_value(const struct pt_regs *ctx,
					 const struct trace_short_value *s)
{
	__u64 v = cut(register_of(ctx, s->reg), s->before);
	int bad = 0;

	if (s->code == FETCH_CONST)
		v = s->imm;
	else if (s->code != FETCH_END)
		v = binary(s->code, v, s->imm, &bad);
	return cut(v, s->after) << (s->shift & 63);
}

/* Puts a value into its word of the key. The places are constants, as above. */
static __always_inline void put_value(__u64 *key, __u8 word, __u64 v)
{
	if (word == 1)
		key[1] |= v;
	else
		key[2] |= v;
}

#endif
