/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arithmetic on several numbers at once
 *
 * The opcodes are those of SSE's map 0f with no prefix or 66, which VEX and EVEX keep: add,
 * subtract, multiply, divide, minimum, maximum, shift and compare. Left out are the ones that
 * scalar code has, too: moves, shuffles, conversions and bitwise logic (xorps clears a register and
 * changes a sign).
 */
#include "insn/insn.h"

/*
 * The part before the opcode: its map (1: 0f, 2: 0f 38) and whether f2 or f3 makes it a scalar
 * operation.
 */
struct opcode {
	uint8_t map, byte;
	bool is_scalar;
};

static struct opcode vex(uint8_t map, uint8_t pp, uint8_t byte)
{
	return (struct opcode){.map = map, .byte = byte, .is_scalar = pp > 1};
}

static struct opcode legacy(const uint8_t *p, size_t n)
{
	struct opcode op = {0};
	size_t i = 0;
	while (i < n && (p[i] == 0x66 || p[i] == 0xf2 || p[i] == 0xf3))
		op.is_scalar |= p[i++] != 0x66;
	if (i < n && (p[i] & 0xf0) == 0x40)
		i++;
	if (n - i < 3 || p[i] != 0x0f)
		return op;
	op.map = p[i + 1] == 0x38 ? 2 : p[i + 1] == 0x3a ? 3 : 1;
	op.byte = op.map == 1 ? p[i + 1] : p[i + 2];
	return op;
}

static struct opcode opcode_of(const uint8_t *p, size_t n)
{
	if (n > 3 && p[0] == 0xc5)
		return vex(1, p[1] & 3, p[2]);
	if (n > 4 && p[0] == 0xc4)
		return vex(p[1] & 0x1f, p[2] & 3, p[3]);
	if (n > 5 && p[0] == 0x62)
		return vex(p[1] & 7, p[2] & 3, p[4]);
	return legacy(p, n);
}

bool insn_is_packed(const uint8_t *insn, size_t n)
{
	if (!insn_may_be_packed(insn, n))
		return false;
	struct opcode op = opcode_of(insn, n);
	uint8_t b = op.byte;
	if (op.is_scalar)
		return false;
	/*
	 * pmuldq, pmulld, minima and maxima; VEX: shifts by vectors, multiply and add (96 to bf, of
	 * which the odd ones from 99 are scalar).
	 */
	if (op.map == 2)
		return b == 0x28 || (b >= 0x38 && b <= 0x40) || (b >= 0x45 && b <= 0x47) ||
		       (b >= 0x96 && b <= 0xbf && !((b & 0xf) > 8 && b & 1));
	if (op.map != 1)
		return false;
	return b == 0x51 || b == 0x58 || b == 0x59 ||
	       (b >= 0x5c && b <= 0x5f) /* sqrt add mul sub min div max */ ||
	       (b >= 0x64 && b <= 0x66) || (b >= 0x74 && b <= 0x76) /* compare */ || b == 0xc2 ||
	       (b >= 0x71 && b <= 0x73) || (b >= 0xd1 && b <= 0xd5) /* shift, paddq, pmullw */ ||
	       (b >= 0xd8 && b <= 0xde && b != 0xdb) || (b >= 0xe0 && b <= 0xe5) ||
	       (b >= 0xe8 && b <= 0xee && b != 0xeb) || (b >= 0xf1 && b <= 0xf6) ||
	       (b >= 0xf8 && b <= 0xfe);
}
