/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Operations of fetch programs (abi.h, included before) that have two operands */
#ifndef TRACE_BINARY_BPF_H
#define TRACE_BINARY_BPF_H

/* 64-bit signed division, which the instruction set of older kernels lacks. */
static __always_inline __u64 sdiv(__u64 a, __u64 b, int mod)
{
	__u64 ua = (__s64)a < 0 ? -a : a;
	__u64 ub = (__s64)b < 0 ? -b : b;
	__u64 q = mod ? ua % ub : ua / ub;
	int negative = mod ? (__s64)a < 0 : ((__s64)a < 0) != ((__s64)b < 0);

	return negative ? -q : q;
}

/* Operations with two operands; *@bad when they have no result. */
static __always_inline __u64 binary(__u8 code, __u64 a, __u64 b, int *bad)
{
	switch (code) {
	case FETCH_ADD:
		return a + b;
	case FETCH_SUB:
		return a - b;
	case FETCH_MUL:
		return a * b;
	case FETCH_AND:
		return a & b;
	case FETCH_OR:
		return a | b;
	case FETCH_XOR:
		return a ^ b;
	case FETCH_SHL:
		return b > 63 ? 0 : a << (b & 63);
	case FETCH_SHR:
		return b > 63 ? 0 : a >> (b & 63);
	case FETCH_SAR:
		return (__u64)((__s64)a >> (b > 63 ? 63 : b & 63));
	case FETCH_EQ:
		return a == b;
	case FETCH_NE:
		return a != b;
	case FETCH_LT:
		return (__s64)a < (__s64)b;
	case FETCH_LE:
		return (__s64)a <= (__s64)b;
	case FETCH_GT:
		return (__s64)a > (__s64)b;
	case FETCH_GE:
		return (__s64)a >= (__s64)b;
	case FETCH_ULT:
		return a < b;
	case FETCH_ULE:
		return a <= b;
	case FETCH_UGT:
		return a > b;
	case FETCH_UGE:
		return a >= b;
	}
	if (!b || code < FETCH_DIV || code > FETCH_UMOD) {
		*bad = 1;
		return 0;
	}
	if (code == FETCH_UDIV)
		return a / b;
	if (code == FETCH_UMOD)
		return a % b;
	return sdiv(a, b, code == FETCH_MOD);
}

#endif
