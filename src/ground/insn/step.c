/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next instruction's address, and whether control goes there
 *
 * Control-flow analysis needs only the length, the flow, and the memory writes of nearly every
 * instruction. A full decode of all of a kernel's code takes a second. Most of the code consists of
 * a few hundred opcodes, for which a table and the ModRM byte give all three. The tables have a
 * letter for each opcode, and each letter is one of the kinds below:
 *
 *	!  the second table
 *	.  ask the full decoder: rare, invalid, or of several meanings
 *	1  nothing follows            p  the same, writes: push, and string copies
 *	m  ModRM                      w  the same, writes to memory it names
 *	N  nop                        M  nop with ModRM
 *	l  ModRM that names memory and leaves it alone: lea
 *	i  ModRM, 8-bit immediate     I  the same, writes
 *	z  ModRM, 32-bit immediate    Y, Z  mov to memory, of 8 and 32 bits
 *	g, G  group 1 with an immediate of 8 and 32 bits: all write but cmp
 *	f, F  group 3, where test has the immediate
 *	e, E  groups 4 and 5: inc and dec; of 5 also calls, jumps, push
 *	B  group 8: bt writes nothing, its brothers do
 *	b  8-bit immediate            d  32-bit immediate      v  of as many bits as the register
 *	q, Q  push of an 8-bit and a 32-bit immediate
 *	j, k  conditional branch, 8 and 32 bits    J, K  jump    C  call    R  return
 *	U  undefined on purpose
 *	s  a segment    o  the operand size (an immediate of 32 bits has 16 then)    x  REX
 *	L  lock, before lockable instructions
 *	r  rep, before string instructions, pause and endbr64 (n)
 *
 * Instructions with other prefixes go to the decoder. tests/unit/test_insn.c compares every letter
 * with the full decoder, for all ModRM bytes and prefixes.
 */
#include "insn/insn.h"

#include <string.h>

#include "insn/modrm.h"
#include "insn/zydis.h"

/* clang-format off */
static const char opcodes[2][256 + 1] = {
	/*        0123456789abcdef */
	/* 00 */ "wwmmbd..wwmmbd.!"
	/* 10 */ "wwmmbd..wwmmbd.."
	/* 20 */ "wwmmbds.wwmmbds."
	/* 30 */ "wwmmbds.mmmmbds."
	/* 40 */ "xxxxxxxxxxxxxxxx"
	/* 50 */ "pppppppp11111111"
	/* 60 */ "...msso.Qzqi...."
	/* 70 */ "jjjjjjjjjjjjjjjj"
	/* 80 */ "gG.gmmwwwwmm.l.."
	/* 90 */ "N.......11......"
	/* a0 */ "....pp..bdpp...."
	/* b0 */ "bbbbbbbbvvvvvvvv"
	/* c0 */ "II.R..YZ.1......"
	/* d0 */ "wwww............"
	/* e0 */ "........CK.J...."
	/* f0 */ "L..r..fF......eE",
	/*
	 *        after 0f
	 */
	/* 00 */ "...........U...."
	/* 10 */ "mw............nM"
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
	/* f0 */ "................",
};
/* clang-format on */

enum immediate {
	NO_IMMEDIATE,
	IMM_8,
	IMM_32, /* 16 with the operand size */
	IMM_REGISTER,
};

/*
 * The meaning of a letter. Masks have a bit for each value of ModRM's reg field: one for a ModRM
 * that names a register, and one for memory. Without ModRM all are the same.
 */
struct kind {
	_Alignas(16) bool is_known; /* as an index it is shifted */
	bool is_prefix;
	uint8_t operands; /* with ModRM not 0: the bits of their number */
	bool is_group;    /* more than the memory writes depends on ModRM */
	bool is_nop;
	uint8_t served[2];        /* else ask the full decoder; without rep */
	uint8_t writes[2];        /* writes, with ModRM to the memory that it names */
	uint8_t bare;             /* has no immediate */
	uint8_t immediate, bytes; /* of 32 bits */
	uint8_t wider;            /* bytes more with 64 */
	uint8_t distance;         /* bytes */
	uint8_t flow;
	bool is_named; /* has no general registers but those that its ModRM names */
};

#define KNOWN         .is_known = true, .served = {0xff, 0xff}
#define MODRM         KNOWN, .operands = INSN_MODRM_BYTES
#define MODRM_OF(reg) .is_known = true, .served = {reg, reg}, .operands = INSN_MODRM_BYTES
#define NAMED         MODRM, .is_named = true

static const struct kind kinds['z' + 1] = {
	['1'] = {KNOWN},
	['N'] = {KNOWN, .is_nop = true},
	['M'] = {MODRM, .is_nop = true},
	['p'] = {KNOWN, .writes = {0xff, 0xff}},
	['m'] = {NAMED},
	['w'] = {NAMED, .writes = {0, 0xff}},
	['l'] = {.is_known = true,
		 .served = {0, 0xff},
		 .operands = INSN_MODRM_BYTES,
		 .is_named = true},
	['i'] = {NAMED, .immediate = IMM_8, .bytes = 1},
	['I'] = {NAMED, .writes = {0, 0xff}, .immediate = IMM_8, .bytes = 1},
	['z'] = {NAMED, .immediate = IMM_32, .bytes = 4},
	['Y'] = {MODRM_OF(0x01), .writes = {0, 0xff}, .immediate = IMM_8, .bytes = 1},
	['Z'] = {MODRM_OF(0x01), .writes = {0, 0xff}, .immediate = IMM_32, .bytes = 4},
	['g'] = {NAMED, .writes = {0, 0x7f}, .immediate = IMM_8, .bytes = 1},
	['G'] = {NAMED, .writes = {0, 0x7f}, .immediate = IMM_32, .bytes = 4},
	['f'] = {MODRM, .is_group = true, .writes = {0, 0x0c}, .immediate = IMM_8, .bytes = 1,
		 .bare = 0xfc},
	['F'] = {MODRM, .is_group = true, .writes = {0, 0x0c}, .immediate = IMM_32, .bytes = 4,
		 .bare = 0xfc},
	['e'] = {MODRM_OF(0x03), .writes = {0, 0x03}},
	['E'] = {MODRM_OF(0x57), .is_group = true, .writes = {0, 0x03}},
	['B'] = {MODRM_OF(0xf0), .writes = {0, 0xef}, .immediate = IMM_8, .bytes = 1},
	['b'] = {KNOWN, .immediate = IMM_8, .bytes = 1},
	['d'] = {KNOWN, .immediate = IMM_32, .bytes = 4},
	['v'] = {KNOWN, .immediate = IMM_REGISTER, .bytes = 4, .wider = 4},
	['q'] = {KNOWN, .writes = {0xff, 0xff}, .immediate = IMM_8, .bytes = 1},
	['Q'] = {KNOWN, .writes = {0xff, 0xff}, .immediate = IMM_32, .bytes = 4},
	['j'] = {KNOWN, .distance = 1, .flow = INSN_BRANCH},
	['k'] = {KNOWN, .distance = 4, .flow = INSN_BRANCH},
	['J'] = {KNOWN, .distance = 1, .flow = INSN_JUMP},
	['K'] = {KNOWN, .distance = 4, .flow = INSN_JUMP},
	['C'] = {KNOWN, .writes = {0xff, 0xff}, .distance = 4, .flow = INSN_CALL},
	['R'] = {KNOWN, .flow = INSN_RETURN},
	['U'] = {KNOWN, .flow = INSN_TRAP},
	['n'] = {.is_known = true, .immediate = IMM_8, .bytes = 1},
	['s'] = {.is_prefix = true},
	['o'] = {.is_prefix = true},
	['L'] = {.is_prefix = true},
	['r'] = {.is_prefix = true},
};

#undef NAMED
#undef MODRM_OF
#undef MODRM
#undef KNOWN

/* An instruction while it is read. */
struct step {
	const uint8_t *p, *end;      /* after the bytes already read */
	bool small, wide, lock, rep; /* prefixes: the operand size, REX.W */
	char letter;
	bool is_second; /* of the second table */
	uint8_t opcode;
};

/* By kind and width of the operation: 32 bits, 16, 64. */
static const uint8_t immediate_bytes[][3] = {[NO_IMMEDIATE] = {0, 0, 0},
					     [IMM_8] = {1, 1, 1},
					     [IMM_32] = {4, 2, 4},
					     [IMM_REGISTER] = {4, 2, 8}};

static inline unsigned int immediate_of(const struct step *s, const struct kind *k,
					unsigned int reg)
{
	unsigned int width = s->wide ? 2 : s->small;
	return k->bare >> reg & 1 ? 0 : immediate_bytes[k->immediate][width];
}

/* Prefixes and opcode. False: it ends before. */
static inline bool read_opcode(struct step *s)
{
	for (; s->p < s->end && kinds[(uint8_t)opcodes[0][*s->p]].is_prefix; s->p++) {
		char letter = opcodes[0][*s->p];
		s->small |= letter == 'o';
		s->lock |= letter == 'L';
		s->rep |= letter == 'r';
	}
	if (s->p == s->end)
		return false;
	bool rex = (*s->p & 0xf0) == 0x40;
	s->wide = rex & *s->p >> 3;
	s->p += rex;
	if (s->p == s->end)
		return false;
	s->opcode = *s->p++;
	s->letter = opcodes[0][s->opcode];
	if (s->letter != '!')
		return true;
	if (s->p == s->end)
		return false;
	s->is_second = true;
	s->opcode = *s->p++;
	s->letter = opcodes[1][s->opcode];
	return true;
}

/* Instructions that read and write the memory that they name in one go. @reg is of its ModRM */
static bool can_be_locked(struct step s, unsigned int reg)
{
	switch (s.letter) {
	case 'w':
		/* add to xor, xchg; xadd, cmpxchg, bts, btr, btc */
		if (!s.is_second)
			return s.opcode < 0x38 || s.opcode == 0x86 || s.opcode == 0x87;
		return s.opcode == 0xab || (s.opcode & 0xf6) == 0xb0 || s.opcode == 0xbb ||
		       (s.opcode & 0xfe) == 0xc0;
	case 'g':
	case 'G':
	case 'f':
	case 'F':
	case 'B':
	case 'e':
		return true;
	case 'E':
		return reg < 2;
	}
	return false;
}

/*
 * The prefixes do not change the letter's meaning. By value, as above: a variable whose address is
 * taken is not kept in registers.
 */
static bool are_prefixes_usual(struct step s)
{
	if (s.small && (kinds[(uint8_t)s.letter].flow != INSN_NEXT || s.lock || s.rep))
		return false;
	if (!s.rep)
		return s.letter != 'n';
	bool is_endbr = s.letter == 'n' && s.p < s.end && *s.p == 0xfa;
	bool is_string = s.letter == 'p' && s.opcode >= 0xa4;
	return !s.lock && (is_endbr || is_string || (!s.is_second && s.opcode == 0x90));
}

/*
 * Calls and jumps through a pointer or register, and push: the instructions of group 5 that do more
 * than write their operand.
 */
static void take_group5(unsigned int reg, struct insn_step *ret)
{
	if (reg < 2)
		return;
	ret->writes_memory = reg != 4;
	ret->flow = reg == 2 ? INSN_CALL_INDIRECT : reg == 4 ? INSN_JUMP_INDIRECT : INSN_NEXT;
}

/* False: ask. */
static inline bool take_modrm(struct step *s, const struct kind *k, struct insn_step *ret)
{
	unsigned int n = insn_modrm_bytes(s->p, s->end);
	if (!n)
		return false;
	unsigned int reg = *s->p >> 3 & 7;
	bool memory = *s->p < 0xc0;
	if (!(k->served[memory] >> reg & 1))
		return false;
	ret->writes_memory = k->writes[memory] >> reg & 1;
	if (s->lock && !(ret->writes_memory && can_be_locked(*s, reg)))
		return false;
	if (s->letter == 'E')
		take_group5(reg, ret);
	s->p += n + immediate_of(s, k, reg);
	return true;
}

/* Branches, jumps and calls: the distance counts from the byte after them. */
static inline bool take_distance(struct step *s, unsigned int n, int64_t *ret)
{
	int8_t near;
	int32_t far;
	if ((size_t)(s->end - s->p) < n)
		return false;
	memcpy(&near, s->p, 1);
	if (n == 4)
		memcpy(&far, s->p, 4);
	*ret = n == 4 ? far : near;
	s->p += n;
	return true;
}

static bool step_fast(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret)
{
	struct step s = {.p = bytes, .end = bytes + n};
	int64_t distance = 0;
	if (!read_opcode(&s))
		return false;
	const struct kind *k = &kinds[(uint8_t)s.letter];
	if (!k->is_known || ((s.small || s.rep || s.letter == 'n') && !are_prefixes_usual(s)))
		return false;
	struct insn_step step = {.flow = k->flow, .writes_memory = k->writes[0]};
	if (k->operands) {
		if (!take_modrm(&s, k, &step))
			return false;
	} else if (s.lock || (k->distance && !take_distance(&s, k->distance, &distance))) {
		return false;
	} else {
		s.p += immediate_of(&s, k, 0);
	}
	if (s.p > s.end || s.p - bytes > INSN_MAX_BYTES)
		return false;
	step.len = (uint8_t)(s.p - bytes);
	if (k->distance)
		step.target = at + step.len + (uint64_t)distance;
	*ret = step;
	return true;
}

/* @p  at its ModRM */
static bool step_group(const uint8_t *bytes, const uint8_t *p, const struct kind *k,
		       struct insn_step *ret)
{
	unsigned int reg = *p >> 3 & 7;
	ret->writes_memory = k->writes[*p < 0xc0] >> reg & 1;
	if (k == &kinds['E'])
		take_group5(reg, ret);
	ret->len =
		(uint8_t)(p - bytes + insn_modrm_bytes_of(p) + (k->bare >> reg & 1 ? 0 : k->bytes));
	return true;
}

/*
 * Instructions with no prefix but REX, with enough bytes after them for the longest, so that no
 * bounds are checked: nearly all instructions. False: the function above may know it. The next
 * instruction's position depends on this one. So the path from the first byte to the length is
 * short, and has no branch that is hard to predict: such branches are for rare cases.
 */
static inline __attribute__((always_inline)) bool step_usual(const uint8_t *bytes, uint64_t at,
							     struct insn_step *ret)
{
	uint64_t code;
	memcpy(&code, bytes, sizeof(code));
	unsigned int rex = (code & 0xf0) == 0x40, wide = rex & (unsigned int)code >> 3;
	code >>= 8 * rex;
	unsigned int start = rex + 1;
	uint8_t letter = (uint8_t)opcodes[0][code & 0xff];
	if (letter == '!') {
		code >>= 8;
		start++;
		letter = (uint8_t)opcodes[1][code & 0xff];
	}
	const struct kind *k = &kinds[letter];
	unsigned int modrm = code >> 8 & 0xff, reg = modrm >> 3 & 7, operands = insn_modrm[modrm];
	bool memory = modrm < 0xc0;
	if (!(k->served[memory] >> reg & 1))
		return false;
	ret->flow = k->flow;
	ret->is_nop = k->is_nop & !rex;
	ret->target = 0;
	if (k->is_group)
		return step_group(bytes, bytes + start, k, ret);
	if (operands & INSN_MODRM_SIB)
		operands = insn_modrm_bytes_of(bytes + start);
	ret->writes_memory = k->writes[memory] >> reg & 1;
	unsigned int len =
		start + (operands & k->operands) + k->bytes + k->distance + (k->wider & 4 * wide);
	ret->len = (uint8_t)len;
	if (k->distance) {
		int32_t far = (int32_t)(code >> 8);
		ret->target = at + len + (uint64_t)(int64_t)(k->distance == 1 ? (int8_t)far : far);
	}
	return true;
}

/*
 * The registers that a ModRM byte names, and its SIB, by the machine's numbers. Of bytes, 4 to 7
 * may be the second bytes of the first four registers.
 */
static unsigned int named_by(const uint8_t *modrm, unsigned int rex)
{
	enum { REX_R = 2, REX_X = 1, REX_B = 0, SIB = 4 };
	unsigned int reg = modrm[0] >> 3 & 7, rm = modrm[0] & 7;
	unsigned int ret = 1u << (reg & 3) | 1u << (reg | (rex >> REX_R & 1) << 3);
	if (modrm[0] < 0xc0 && rm == SIB) {
		ret |= 1u << ((modrm[1] >> 3 & 7) | (rex >> REX_X & 1) << 3);
		rm = modrm[1] & 7;
	}
	return ret | 1u << (rm & 3) | 1u << (rm | (rex >> REX_B & 1) << 3);
}

/* The same registers by DWARF's numbers: rdx comes before rcx, and rsi, rdi before rbp, rsp. */
static uint16_t by_dwarf(unsigned int machine)
{
	return (uint16_t)((machine & 0xff09) | (machine & 0x02) << 1 | (machine & 0x04) >> 1 |
			  (machine & 0x10) << 3 | (machine & 0x20) << 1 | (machine & 0xc0) >> 2);
}

/* cl: the distance of a shift; rax: what cmpxchg compares with */
static bool has_hidden_register(bool is_second, uint8_t opcode)
{
	return is_second ? opcode == 0xa5 || opcode == 0xad || opcode == 0xb0 || opcode == 0xb1
			 : opcode == 0xd2 || opcode == 0xd3;
}

uint16_t insn_named_registers(const uint8_t *bytes, size_t n, uint8_t *ret_len)
{
	struct insn_step step;
	if (n < INSN_MAX_BYTES || !step_usual(bytes, 0, &step))
		return INSN_ANY_REGISTERS;
	unsigned int rex = (bytes[0] & 0xf0) == 0x40 ? bytes[0] : 0;
	const uint8_t *p = bytes + (rex != 0);
	bool is_second = *p == 0x0f;
	p += is_second;
	*ret_len = step.len;
	if (!kinds[(uint8_t)opcodes[is_second][*p]].is_named || has_hidden_register(is_second, *p))
		return INSN_ANY_REGISTERS;
	return by_dwarf(named_by(p + 1, rex));
}

bool insn_is_padding(const uint8_t *insn, size_t n)
{
	size_t i = 0;
	while (i < n && (insn[i] == 0x66 || insn[i] == 0x2e))
		i++;
	return i < n && (insn[i] == 0x90 || (n - i >= 3 && insn[i] == 0x0f && insn[i + 1] == 0x1f));
}

static bool step_rare(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret)
{
	struct insn insn;
	if (!step_fast(bytes, n, at, ret)) {
		if (!insn_decode(bytes, n, at, &insn))
			return false;
		*ret = (struct insn_step){.len = insn.len,
					  .flow = insn.flow,
					  .writes_memory = insn.writes_memory,
					  .target = insn.target};
	}
	ret->is_nop = insn_is_padding(bytes, ret->len);
	return true;
}

bool insn_step(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret)
{
	return (n >= INSN_MAX_BYTES && step_usual(bytes, at, ret)) || step_rare(bytes, n, at, ret);
}

size_t insn_steps(const uint8_t *bytes, size_t n, size_t readable, uint64_t at,
		  struct insn_step *ret, size_t max, size_t *ret_bytes)
{
	size_t k = 0, off = 0;
	/* An instruction that begins before @inside ends in the bytes. */
	size_t inside = n < INSN_MAX_BYTES ? 0 : n - INSN_MAX_BYTES + 1;
	while (k < max && off < n) {
		while (k < max && off < inside && step_usual(bytes + off, at + off, &ret[k]))
			off += ret[k++].len;
		if (k == max || off >= n)
			break;
		bool usual = off >= inside && off + INSN_MAX_BYTES <= readable &&
			     step_usual(bytes + off, at + off, &ret[k]);
		if ((!usual && !step_rare(bytes + off, n - off, at + off, &ret[k])) ||
		    ret[k].len > n - off)
			break;
		off += ret[k++].len;
	}
	*ret_bytes = off;
	return k;
}

size_t insn_boundaries(const uint8_t *code, size_t n, uint8_t *bits)
{
	ZydisDecoder d = zydis_decoder();
	size_t bad = 0;
	for (size_t at = 0; at < n;) {
		ZydisDecodedInstruction zi;
		struct insn_step step;
		bits[at / 8] |= (uint8_t)(1u << at % 8);
		if ((n - at >= INSN_MAX_BYTES && step_usual(code + at, 0, &step)) ||
		    step_fast(code + at, n - at, 0, &step)) {
			at += step.len;
			continue;
		}
		bool valid = zydis_instruction(&d, code + at, n - at, &zi);
		bad += !valid;
		at += valid ? zi.length : 1;
	}
	return bad;
}
