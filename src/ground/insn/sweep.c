/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of a few registers a piece of code writes
 *
 * Small functions use only registers that they may overwrite, so the answer is nearly always "none
 * of rbx, rbp, rsp, r12 to r15". It has to be cheap: it is needed for a third of all functions when
 * their unwind rows are made. Nearly all instructions write the register that their ModRM byte or
 * their opcode names, or only memory, vector registers, rax and the like. So when none of the
 * wanted registers is named, only the length is needed. Otherwise, and for opcodes that are not in
 * the tables, the full decoder answers.
 *
 *     48 8b 5c 24 08  mov 8(%rsp),%rbx      reg 3: rbx. The decoder answers
 *     48 89 c8        mov %rcx,%rax         reg 1, rm 0: no
 *     41 83 ec 01     sub $1,%r12d          reg 5: operation, rm 4 + 8: r12. The decoder answers
 *     c5 fd 6f 06     vmovdqa (%rsi),%ymm0  of vectors: no
 *
 * Each opcode has a letter:
 *
 *	.     the decoder answers
 *	1     names nothing
 *	b, d  the same, with an immediate of 8 and 32 bits (16 with the prefix)
 *	m     ModRM names two registers
 *	i, z  the same, with such an immediate
 *	g     ModRM names one; the other field is part of the opcode
 *	h, y  the same, with such an immediate
 *	t     group 3: the same; only test has an immediate
 *	v     ModRM names vector registers or none, and memory
 *	w     the same, with an immediate of 8 bits
 *	o     the opcode names it
 *	O, V  mov of 8 and 32 or 64 bits to that
 *	p, P  push, pop
 */
#include "insn/insn.h"
#include "insn/modrm.h"
#include "insn/values.h"

enum { RSP = 7, RSP_MACHINE = 4 };

static const char one_byte[] =
	/*        0123456789abcdef */
	/* 00 */ "mmmmbd..mmmmbd.."
		 /* 10 */ "mmmmbd..mmmmbd.."
		 /* 20 */ "mmmmbd..mmmmbd.."
		 /* 30 */ "mmmmbd..mmmmbd.."
		 /* 40 */ "................"
		 /* 50 */ "ppppppppPPPPPPPP"
		 /* 60 */ "...m.....z.i...."
		 /* 70 */ "bbbbbbbbbbbbbbbb"
		 /* 80 */ "hy.hmmmmmmmm.m.."
		 /* 90 */ "1.......11......"
		 /* a0 */ "........bd......"
		 /* b0 */ "OOOOOOOOVVVVVVVV"
		 /* c0 */ "hh.1..hy........"
		 /* d0 */ "gggg............"
		 /* e0 */ "........dd.b...."
		 /* f0 */ "......tt......g.";

static const char two_bytes[] =
	/*        0123456789abcdef */
	/* 00 */ "...........1.v.."
		 /* 10 */ "vvvvvvvvv.....gv"
		 /* 20 */ "........vvvv..vv"
		 /* 30 */ "................"
		 /* 40 */ "mmmmmmmmmmmmmmmm"
		 /* 50 */ ".vvvvvvvvvvvvvvv"
		 /* 60 */ "vvvvvvvvvvvvvvvv"
		 /* 70 */ "wwwwvvv.....vvvv"
		 /* 80 */ "dddddddddddddddd"
		 /* 90 */ "gggggggggggggggg"
		 /* a0 */ "...mim.....mim.m"
		 /* b0 */ "...m..mm..hmmmmm"
		 /* c0 */ "mmw.w.w.oooooooo"
		 /* d0 */ "vvvvvvv.vvvvvvvv"
		 /* e0 */ "vvvvvvvvvvvvvvvv"
		 /* f0 */ "vvvvvvvvvvvvvvv.";

/* An instruction while it is read. */
struct sweep {
	const uint8_t *p, *end;
	uint8_t rex;
	bool is_small; /* the operand size */
	bool is_byte;  /* an operation of 8 bits, and no REX */
};

/* By number of the machine: rsp is 4, rbp 5, rbx 3. */
static unsigned int to_machine(uint16_t dwarf)
{
	static const uint8_t machine[8] = {0, 2, 1, 3, 6, 7, 5, 4};
	unsigned int ret = dwarf & 0xff00;
	for (unsigned int i = 0; i < 8; i++)
		ret |= (dwarf >> i & 1u) << machine[i];
	return ret;
}

/* In an instruction of 8 bits without REX the number 7 is bh. */
static inline unsigned int named(const struct sweep *s, unsigned int field, unsigned int high)
{
	enum { RBX_MACHINE = 3, BH = 7 };
	unsigned int alias = s->is_byte && field == BH ? 1u << RBX_MACHINE : 0;
	return 1u << (field | (high & 8)) | alias;
}

static inline unsigned int named_by_modrm(const struct sweep *s, bool has_reg)
{
	unsigned int ret = has_reg ? named(s, *s->p >> 3 & 7, (unsigned int)s->rex << 1) : 0;
	return *s->p < 0xc0 ? ret : ret | named(s, *s->p & 7, (unsigned int)s->rex << 3);
}

/*
 * After the opcode: bytes of ModRM with its operands, and @immediate; 0 when they are incomplete.
 */
static inline bool pass_modrm(struct sweep *s, unsigned int immediate)
{
	unsigned int n = insn_modrm_bytes(s->p, s->end);
	s->p += n + immediate;
	return n;
}

/* After VEX or EVEX, or 0f 38 and 0f 3a: by the number of the map. False: the decoder answers. */
static bool pass_vector(struct sweep *s, unsigned int map)
{
	if (s->p >= s->end)
		return false;
	uint8_t opcode = *s->p++;
	/* vzeroupper */
	if (map == 1 && opcode == 0x77)
		return true;
	if (map == 1)
		return (two_bytes[opcode] == 'v' && opcode != 0x7e && pass_modrm(s, 0)) ||
		       (two_bytes[opcode] == 'w' && pass_modrm(s, 1));
	if (map == 2)
		return opcode < 0xe0 && pass_modrm(s, 0);
	/* pextr, rorx */
	return map == 3 && opcode < 0xf0 && (opcode & 0xfc) != 0x14 && pass_modrm(s, 1);
}

/* c5 xx, c4 xx xx, 62 xx xx xx; the maps are numbered alike. */
static bool pass_vex(struct sweep *s)
{
	uint8_t first = *s->p;
	unsigned int n = first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
	if ((size_t)(s->end - s->p) <= n)
		return false;
	unsigned int map = first == 0xc5 ? 1 : s->p[1] & (first == 0xc4 ? 31 : 7);
	s->p += n;
	return pass_vector(s, map);
}

static bool pass_letter(struct sweep *s, char letter, uint8_t opcode, unsigned int regs)
{
	unsigned int wide = s->is_small && !(s->rex & 8) ? 2 : 4;
	switch (letter) {
	case '1':
		return true;
	case 'b':
		s->p += 1;
		return true;
	case 'd':
		s->p += wide;
		return true;
	case 'o':
		return !(named(s, opcode & 7, (unsigned int)s->rex << 3) & regs);
	case 'O':
		s->p += 1;
		return !(named(s, opcode & 7, (unsigned int)s->rex << 3) & regs);
	case 'V':
		s->p += s->rex & 8 ? 8 : wide;
		return !(named(s, opcode & 7, (unsigned int)s->rex << 3) & regs);
	case 'p':
		return !(regs & 1u << RSP_MACHINE);
	case 'P':
		return !((named(s, opcode & 7, (unsigned int)s->rex << 3) | 1u << RSP_MACHINE) &
			 regs);
	case 'v':
	case 'w':
		return pass_modrm(s, letter == 'w');
	}
	/* The others have a ModRM byte that names general registers. */
	bool has_reg = letter == 'm' || letter == 'i' || letter == 'z';
	if (letter == '.' || s->p >= s->end || named_by_modrm(s, has_reg) & regs ||
	    (letter == 't' && !(*s->p & 0x30)))
		return false;
	return pass_modrm(s, letter == 'i' || letter == 'h'   ? 1
			     : letter == 'z' || letter == 'y' ? wide
							      : 0);
}

/*
 * Length of the instruction at @code when it writes none of @regs, by number of the machine; 0:
 * ask.
 */
static size_t pass(const uint8_t *code, size_t n, unsigned int regs)
{
	struct sweep s = {.p = code, .end = code + (n < INSN_MAX_BYTES ? n : INSN_MAX_BYTES)};
	bool is_repeated = false;
	for (; s.p < s.end; s.p++) {
		if (*s.p == 0xf3 || *s.p == 0xf2)
			is_repeated = true;
		else if (*s.p == 0x66)
			s.is_small = true;
		else if (*s.p != 0x2e && *s.p != 0x3e && *s.p != 0x64)
			break;
	}
	if (s.p < s.end && (*s.p & 0xf0) == 0x40)
		s.rex = *s.p++;
	if (s.p + 1 >= s.end)
		return s.p < s.end && *s.p == 0xc3 ? (size_t)(s.p + 1 - code) : 0;
	bool is_passed;
	uint8_t first = s.p[0], second = s.p[1];
	if (first == 0xc5 || first == 0xc4 || first == 0x62) {
		is_passed = pass_vex(&s);
	} else if (first != 0x0f) {
		s.p++;
		s.is_byte = !s.rex && (!(first & 1) || (first & 0xf0) == 0xb0);
		/* Jumps and calls with an operand size do not occur. */
		is_passed = !(s.is_small && (first & 0xf0) == 0xe0) &&
			    pass_letter(&s, one_byte[first], first, regs);
	} else if (second == 0x38 || second == 0x3a) {
		s.p += 2;
		is_passed = pass_vector(&s, second == 0x38 ? 2 : 3);
	} else {
		s.p += 2;
		s.is_byte = !s.rex && ((second & 0xf0) == 0x90 || second == 0xb0 || second == 0xc0);
		/* movd to a general register; movq between others has the prefix */
		is_passed = (second != 0x7e || is_repeated) &&
			    !(s.is_small && (second & 0xf0) == 0x80) &&
			    pass_letter(&s, two_bytes[second], second, regs);
	}
	return is_passed && s.p <= s.end ? (size_t)(s.p - code) : 0;
}

bool insn_writes_any(const uint8_t *code, size_t n, uint16_t regs)
{
	unsigned int machine = to_machine(regs);
	for (size_t at = 0, len; at < n; at += len) {
		struct insn insn;
		len = pass(code + at, n - at, machine);
		if (len)
			continue;
		if (!insn_decode(code + at, n - at, 0, &insn))
			return true;
		bool moves_only = insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT ||
				  insn.flow == INSN_RETURN;
		uint16_t written = insn.writes & (uint16_t)(moves_only ? ~(1u << RSP) : ~0u);
		if (written & regs)
			return true;
		len = insn.len;
	}
	return false;
}
