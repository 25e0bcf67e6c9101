/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the next instruction is, and whether control goes there
 *
 * Who looks at the paths through a function asks of nearly every instruction nothing but its length, its flow, and whether it
 * writes memory. A full decode of all of a kernel's code takes a second; most of it is a few hundred opcodes of which all three
 * are known from a table and the ModRM byte. The tables have a letter for each opcode:
 *
 *	!  the second table
 *	.  ask the full decoder: rare, invalid, or of several meanings
 *	1  nothing follows            p  the same, pushes
 *	m  ModRM                      w  the same, writes to memory it names
 *	l  ModRM that names memory and leaves it alone: lea
 *	i  ModRM, 8-bit immediate     I  the same, writes
 *	z  ModRM, 32-bit immediate    Z  the same, writes
 *	g, G  group 1 with an immediate of 8 and 32 bits: all write but cmp
 *	f, F  group 3, where test has the immediate
 *	e, E  groups 4 and 5: inc and dec; of 5 also calls, jumps, push
 *	B  group 8: bt writes nothing, its brothers do
 *	b  8-bit immediate            d  32-bit immediate      v  of as many bits as the register
 *	q, Q  push of an 8-bit and a 32-bit immediate
 *	j, k  conditional branch, 8 and 32 bits    J, K  jump    C  call    R  return
 *
 * Prefixes: REX, the operand size (an immediate of 32 bits has 16 then), and segments. What has others is asked about.
 * tests/unit/test_insn.c compares every letter with the full decoder, for all ModRM bytes and prefixes.
 */
#include "insn/insn.h"

#include <string.h>

#include "insn/zydis.h"

static const char one_byte[] =
	/*        0123456789abcdef */
	/* 00 */ "wwmmbd..wwmmbd.!"
	/* 10 */ "wwmmbd..wwmmbd.."
	/* 20 */ "wwmmbd..wwmmbd.."
	/* 30 */ "wwmmbd..mmmmbd.."
	/* 40 */ "................"
	/* 50 */ "pppppppp11111111"
	/* 60 */ "...m....Qzqi...."
	/* 70 */ "jjjjjjjjjjjjjjjj"
	/* 80 */ "gG.gmmwwwwmm.l.."
	/* 90 */ "1.......11......"
	/* a0 */ "........bd......"
	/* b0 */ "bbbbbbbbvvvvvvvv"
	/* c0 */ "II.R...Z.1......"
	/* d0 */ "wwww............"
	/* e0 */ "........CK.J...."
	/* f0 */ "......fF......eE";

static const char two_bytes[] =
	/*        0123456789abcdef */
	/* 00 */ "................"
	/* 10 */ "mw.............m"
	/* 20 */ "........mw......"
	/* 30 */ ".1.............."
	/* 40 */ "mmmmmmmmmmmmmmmm"
	/* 50 */ ".......m........"
	/* 60 */ "..............mm"
	/* 70 */ "..............ww"
	/* 80 */ "kkkkkkkkkkkkkkkk"
	/* 90 */ "wwwwwwwwwwwwwwww"
	/* a0 */ "..1mIw.....wIw.m"
	/* b0 */ "ww.w..mm..Bwmmmm"
	/* c0 */ "ww......11111111"
	/* d0 */ "................"
	/* e0 */ "...............m"
	/* f0 */ "................";

/* An instruction while it is read: what is behind the opcode. */
struct step {
	const uint8_t *p, *end;
	unsigned int imm; /* bytes of an immediate that depends on the operand size */
	bool writes;
	enum insn_flow flow;
};

/* Bytes of ModRM, SIB and displacement; 0 when the first two are not there. */
static inline unsigned int modrm_bytes(const uint8_t *p, const uint8_t *end)
{
	if (end - p < 2)
		return p < end && *p >= 0xc0;
	unsigned int mod = *p >> 6, rm = *p & 7, n = 1;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		n = 2;
		rm = p[1] & 7;
	}
	return n + (mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0);
}

/* What the letter says. False: ask. */
static bool take_modrm(struct step *s, char letter)
{
	unsigned int n = modrm_bytes(s->p, s->end), reg, imm = 0;
	if (!n)
		return false;
	bool memory = *s->p < 0xc0;
	reg = *s->p >> 3 & 7;
	switch (letter) {
	case 'm':
		break;
	case 'l':
		if (!memory)
			return false;
		break;
	case 'w':
		s->writes = memory;
		break;
	case 'i':
	case 'I':
		s->writes = memory && letter == 'I';
		imm = 1;
		break;
	case 'z':
	case 'Z':
		s->writes = memory && letter == 'Z';
		if (letter == 'Z' && reg)
			return false;
		imm = s->imm;
		break;
	case 'g':
	case 'G':
		s->writes = memory && reg != 7;
		imm = letter == 'g' ? 1 : s->imm;
		break;
	case 'f':
	case 'F':
		s->writes = memory && (reg == 2 || reg == 3);
		imm = reg > 1 ? 0 : letter == 'f' ? 1 : s->imm;
		break;
	case 'B':
		s->writes = memory && reg != 4;
		if (reg < 4)
			return false;
		imm = 1;
		break;
	case 'e':
	case 'E':
		if (reg > 1)
			return false;
		s->writes = memory;
		break;
	default:
		return false;
	}
	s->p += n + imm;
	return true;
}

/* Calls and jumps through a pointer or register, and push, of group 5. */
static bool take_group5(struct step *s)
{
	unsigned int n = modrm_bytes(s->p, s->end), reg = n ? *s->p >> 3 & 7 : 0;
	if (reg != 2 && reg != 4 && reg != 6)
		return take_modrm(s, 'E');
	s->writes = reg != 4;
	s->flow = reg == 2 ? INSN_CALL_INDIRECT : reg == 4 ? INSN_JUMP_INDIRECT : INSN_NEXT;
	s->p += n;
	return true;
}

static bool take_plain(struct step *s, char letter, bool wide)
{
	unsigned int n;
	switch (letter) {
	case '1':
	case 'p':
		n = 0;
		break;
	case 'b':
	case 'q':
		n = 1;
		break;
	case 'd':
	case 'Q':
		n = s->imm;
		break;
	case 'v':
		n = wide ? 8 : s->imm;
		break;
	case 'R':
		n = 0;
		s->flow = INSN_RETURN;
		break;
	default:
		return letter == 'E' ? take_group5(s) : take_modrm(s, letter);
	}
	s->writes = letter == 'p' || letter == 'q' || letter == 'Q';
	s->p += n;
	return true;
}

/* Branches, jumps and calls with a distance of @n bytes, counted from behind them. */
static bool take_relative(struct step *s, enum insn_flow flow, unsigned int n, int64_t *ret)
{
	int8_t near;
	int32_t far;
	if ((size_t)(s->end - s->p) < n)
		return false;
	memcpy(&near, s->p, 1);
	if (n == 4)
		memcpy(&far, s->p, 4);
	*ret = n == 4 ? far : near;
	s->flow = flow;
	s->writes = flow == INSN_CALL;
	s->p += n;
	return true;
}

static bool take(struct step *s, char letter, bool wide, int64_t *ret_distance)
{
	switch (letter) {
	case '.':
		return false;
	case 'j':
	case 'k':
		return take_relative(s, INSN_BRANCH, letter == 'j' ? 1 : 4, ret_distance);
	case 'J':
	case 'K':
		return take_relative(s, INSN_JUMP, letter == 'J' ? 1 : 4, ret_distance);
	case 'C':
		return take_relative(s, INSN_CALL, 4, ret_distance);
	default:
		return take_plain(s, letter, wide);
	}
}

static bool is_segment(uint8_t byte)
{
	return byte == 0x2e || byte == 0x3e || byte == 0x26 || byte == 0x36 || byte == 0x64 || byte == 0x65;
}

static bool is_direct(char letter)
{
	return letter == 'j' || letter == 'k' || letter == 'J' || letter == 'K' || letter == 'C';
}

static bool step_fast(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret)
{
	struct step s = {.p = bytes, .end = bytes + n, .imm = 4, .flow = INSN_NEXT};
	bool small = false, wide = false;
	int64_t distance = 0;
	for (; s.p < s.end && (*s.p == 0x66 || is_segment(*s.p)); s.p++)
		small |= *s.p == 0x66;
	if (s.p < s.end && (*s.p & 0xf0) == 0x40)
		wide = *s.p++ & 8;
	if (s.p == s.end)
		return false;
	char letter = one_byte[*s.p++];
	if (letter == '!' && s.p == s.end)
		return false;
	if (letter == '!')
		letter = two_bytes[*s.p++];
	if (small && (is_direct(letter) || letter == 'R'))
		return false;
	if (small && !wide)
		s.imm = 2;
	enum { LONGEST = 15 };
	if (!take(&s, letter, wide, &distance) || s.p > s.end || s.p - bytes > LONGEST)
		return false;
	*ret = (struct insn_step){.len = (uint8_t)(s.p - bytes), .flow = s.flow, .writes_memory = s.writes};
	if (is_direct(letter))
		ret->target = at + ret->len + (uint64_t)distance;
	return true;
}

bool insn_step(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret)
{
	struct insn insn;
	if (step_fast(bytes, n, at, ret))
		return true;
	if (!insn_decode(bytes, n, at, &insn))
		return false;
	*ret = (struct insn_step){
		.len = insn.len, .flow = insn.flow, .writes_memory = insn.writes_memory, .target = insn.target};
	return true;
}

size_t insn_boundaries(const uint8_t *code, size_t n, uint8_t *bits)
{
	ZydisDecoder d = zydis_decoder();
	size_t bad = 0;
	for (size_t at = 0; at < n;) {
		ZydisDecodedInstruction zi;
		struct insn_step step;
		bits[at / 8] |= (uint8_t)(1u << at % 8);
		if (step_fast(code + at, n - at, 0, &step)) {
			at += step.len;
			continue;
		}
		bool valid = zydis_instruction(&d, code + at, n - at, &zi);
		bad += !valid;
		at += valid ? zi.length : 1;
	}
	return bad;
}
