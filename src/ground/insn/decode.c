/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One instruction: length, flow, and the registers and memory that it reads and writes
 *
 * Zydis lists the operands of an instruction, including those that the assembler does not show:
 * "push %rbx" has rbx, rsp and the memory below rsp. All of them are folded into two masks of
 * general registers and two flags for memory. A register written in part (%al) counts as written,
 * and one written under a condition (cmov) counts as written too: callers want to know which values
 * still hold afterwards, so "perhaps" must mean "no longer".
 *
 * Not memory accesses: lea, which only computes an address, and the operand of a multi-byte nop and
 * of prefetch, whose address may be anything.
 */
#include "insn/insn.h"

#include "insn/zydis.h"

/* Zydis numbers registers as the machine encodes them; DWARF has an order of its own. */
/* clang-format off */
static const uint8_t dwarf_of_machine[16] = {
	0 /* rax */, 2 /* rcx */, 1 /* rdx */, 3 /* rbx */, 7 /* rsp */, 6 /* rbp */,
	4 /* rsi */, 5 /* rdi */, 8, 9, 10, 11, 12, 13, 14, 15,
};
/* clang-format on */

int zydis_dwarf_reg(ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
		return -1;
	return dwarf_of_machine[full - ZYDIS_REGISTER_RAX];
}

uint16_t zydis_reg_bit(ZydisRegister reg)
{
	int n = zydis_dwarf_reg(reg);
	return n < 0 ? 0 : (uint16_t)(1u << n);
}

static bool only_names_memory(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_NOP ||
	       zi->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	       zi->meta.category == ZYDIS_CATEGORY_PREFETCH;
}

static void fold_memory(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op,
			struct insn *insn)
{
	if (only_names_memory(zi))
		return;
	insn->reads |= zydis_reg_bit(op->mem.base) | zydis_reg_bit(op->mem.index);
	if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return;
	insn->reads_memory |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
	insn->writes_memory |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

static void fold_operands(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
			  struct insn *insn)
{
	for (size_t i = 0; i < zi->operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			fold_memory(zi, op, insn);
		} else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			/* A register written under a condition may keep its old value. */
			if (op->actions &
			    (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE))
				insn->reads |= zydis_reg_bit(op->reg.value);
			if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				insn->writes |= zydis_reg_bit(op->reg.value);
		}
	}
}

static bool has_target(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	return zi->operand_count > 0 && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       ops[0].imm.is_relative;
}

static enum insn_flow flow_of(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
		return INSN_TRAP;
	default:
		break;
	}
	switch (zi->meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		return has_target(zi, ops) ? INSN_JUMP : INSN_JUMP_INDIRECT;
	case ZYDIS_CATEGORY_COND_BR:
		return INSN_BRANCH;
	case ZYDIS_CATEGORY_CALL:
		return has_target(zi, ops) ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return INSN_RETURN;
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
		return INSN_TRAP;
	default:
		return INSN_NEXT;
	}
}

struct insn zydis_insn(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
		       uint64_t at)
{
	struct insn insn = {.len = zi->length};
	insn.flow = flow_of(zi, ops);
	if (has_target(zi, ops))
		insn.target = at + zi->length + ops[0].imm.value.u;
	insn.has_rep = (zi->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
					  ZYDIS_ATTRIB_HAS_REPNE)) != 0;
	fold_operands(zi, ops, &insn);
	return insn;
}

bool insn_decode(const uint8_t *bytes, size_t n, uint64_t at, struct insn *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	*ret = zydis_insn(&zi, ops, at);
	return true;
}

/* The names of the psABI's table "DWARF register number mapping"; gaps are reserved numbers. */
static const char *const dwarf_names[] = {
	"rax",     "rdx",        "rcx",
	"rbx",     "rsi",        "rdi",
	"rbp",     "rsp",        "r8",
	"r9",      "r10",        "r11",
	"r12",     "r13",        "r14",
	"r15",     "rip",        "xmm0",
	"xmm1",    "xmm2",       "xmm3",
	"xmm4",    "xmm5",       "xmm6",
	"xmm7",    "xmm8",       "xmm9",
	"xmm10",   "xmm11",      "xmm12",
	"xmm13",   "xmm14",      "xmm15",
	"st0",     "st1",        "st2",
	"st3",     "st4",        "st5",
	"st6",     "st7",        "mm0",
	"mm1",     "mm2",        "mm3",
	"mm4",     "mm5",        "mm6",
	"mm7",     "rflags",     "es",
	"cs",      "ss",         "ds",
	"fs",      "gs",         [58] = "fs.base",
	"gs.base", [62] = "tr",  "ldtr",
	"mxcsr",   "fcw",        "fsw",
	"xmm16",   "xmm17",      "xmm18",
	"xmm19",   "xmm20",      "xmm21",
	"xmm22",   "xmm23",      "xmm24",
	"xmm25",   "xmm26",      "xmm27",
	"xmm28",   "xmm29",      "xmm30",
	"xmm31",   [118] = "k0", "k1",
	"k2",      "k3",         "k4",
	"k5",      "k6",         "k7",
};

const char *insn_reg_name(unsigned int dwarf_reg)
{
	if (dwarf_reg >= sizeof(dwarf_names) / sizeof(dwarf_names[0]))
		return NULL;
	return dwarf_names[dwarf_reg];
}

const char *insn_subreg_name(unsigned int dwarf_reg, unsigned int size_bytes)
{
	static const char *const names[16][3] = {
		{"al", "ax", "eax"},      {"dl", "dx", "edx"},      {"cl", "cx", "ecx"},
		{"bl", "bx", "ebx"},      {"sil", "si", "esi"},     {"dil", "di", "edi"},
		{"bpl", "bp", "ebp"},     {"spl", "sp", "esp"},     {"r8b", "r8w", "r8d"},
		{"r9b", "r9w", "r9d"},    {"r10b", "r10w", "r10d"}, {"r11b", "r11w", "r11d"},
		{"r12b", "r12w", "r12d"}, {"r13b", "r13w", "r13d"}, {"r14b", "r14w", "r14d"},
		{"r15b", "r15w", "r15d"},
	};
	if (dwarf_reg >= 16 || size_bytes == 8)
		return insn_reg_name(dwarf_reg);
	switch (size_bytes) {
	case 1:
		return names[dwarf_reg][0];
	case 2:
		return names[dwarf_reg][1];
	case 4:
		return names[dwarf_reg][2];
	default:
		return NULL;
	}
}

bool insn_is_zeroing(const uint8_t *insn, size_t n)
{
	uint8_t rex = 0;
	if (n && (insn[0] & 0xf0) == 0x40) {
		rex = insn[0];
		insn++;
		n--;
	}
	if (n != 2 || (insn[0] != 0x31 && insn[0] != 0x33 && insn[0] != 0x29 && insn[0] != 0x2b))
		return false;
	bool same_high = !!(rex & 4) == !!(rex & 1);
	return same_high && insn[1] >= 0xc0 && (insn[1] >> 3 & 7) == (insn[1] & 7);
}

bool insn_takes_address(const uint8_t *bytes, size_t n, uint64_t at, uint64_t *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops) || zi.mnemonic != ZYDIS_MNEMONIC_LEA ||
	    ops[1].mem.base != ZYDIS_REGISTER_RIP)
		return false;
	*ret = at + zi.length + (uint64_t)ops[1].mem.disp.value;
	return true;
}

/*
 * Addresses in the frame are found by hand: every instruction of a function is asked, and there are
 * few shapes. Addresses of 32 bits do not count.
 */
enum { REX = 0x40, REX_MASK = 0xf0, REX_B = 1, REX_R = 4, REX_W = 8 };
enum { ENCODED_RSP = 4, ENCODED_RBP = 5, ENCODED_SIB = 4, FIELD = 7, REG_SHIFT = 3 };
enum { LEA = 0x8d, STORE = 0x89, LOAD = 0x8b, DWARF_RBP = 6, DWARF_RSP = 7 };
enum { MODE_SHIFT = 6, MODE_NONE = 0, MODE_BYTE, MODE_LONG, MODE_REGISTER };

/* The register, as it is encoded, from which a lea counts; -1. @p: its @n bytes after the opcode. */
static int lea_counts_from(const uint8_t *p, size_t n, int64_t *ret)
{
	enum { LONG_BYTES = 4 };
	unsigned int mode = p[0] >> MODE_SHIFT, from = p[0] & FIELD;
	size_t i = 1;
	if (mode == MODE_REGISTER || (from == ENCODED_SIB && n == i))
		return -1;
	if (from == ENCODED_SIB)
		from = p[i++] & FIELD;
	if (n - i < (mode == MODE_LONG ? LONG_BYTES : mode) ||
	    (mode == MODE_NONE && from == ENCODED_RBP))
		return -1;
	int32_t distance = 0;
	if (mode == MODE_LONG)
		memcpy(&distance, p + i, LONG_BYTES);
	*ret = mode == MODE_BYTE ? (int8_t)p[i] : distance;
	return (int)from;
}

bool insn_takes_frame_address(const uint8_t *bytes, size_t n, unsigned int *dwarf_reg, int64_t *ret)
{
	const size_t i = 1;
	if (n < i + 2 || (bytes[0] & (REX_MASK | REX_W)) != (REX | REX_W))
		return false;
	uint8_t rex = bytes[0];
	bool is_store = bytes[i] == STORE, is_lea = bytes[i] == LEA;
	bool is_copy =
		(is_store || bytes[i] == LOAD) && bytes[i + 1] >> MODE_SHIFT == MODE_REGISTER;
	int64_t distance = 0;
	int from = -1;
	if (is_lea)
		from = lea_counts_from(bytes + i + 1, n - i - 1, &distance);
	else if (is_copy)
		from = (is_store ? bytes[i + 1] >> REG_SHIFT : bytes[i + 1]) & FIELD;
	if (rex & (is_store ? REX_R : REX_B) || (from != ENCODED_RSP && from != ENCODED_RBP))
		return false;
	*dwarf_reg = from == ENCODED_RSP ? DWARF_RSP : DWARF_RBP;
	*ret = distance;
	return true;
}

/* The general register that an operand is, of which the lowest bytes are meant; -1. */
static int low_register(const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    (op->reg.value >= ZYDIS_REGISTER_AH && op->reg.value <= ZYDIS_REGISTER_BH))
		return -1;
	int reg = zydis_dwarf_reg(op->reg.value);
	return reg < 16 ? reg : -1;
}

bool insn_copies_register(const uint8_t *bytes, size_t n, unsigned int *ret_to,
			  unsigned int *ret_from, unsigned int *ret_bytes)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops) || zi.mnemonic != ZYDIS_MNEMONIC_MOV)
		return false;
	int to = low_register(&ops[0]), from = low_register(&ops[1]);
	if (to < 0 || from < 0)
		return false;
	*ret_to = (unsigned int)to;
	*ret_from = (unsigned int)from;
	*ret_bytes = ops[1].size / 8;
	return true;
}

bool insn_moves_slot(const uint8_t *bytes, size_t n, unsigned int base, struct insn_slot_move *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops) || zi.mnemonic != ZYDIS_MNEMONIC_MOV)
		return false;
	bool is_store = ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
	const ZydisDecodedOperand *memory = &ops[is_store ? 0 : 1], *other = &ops[is_store ? 1 : 0];
	int reg = low_register(other);
	if (memory->type != ZYDIS_OPERAND_TYPE_MEMORY || memory->mem.index != ZYDIS_REGISTER_NONE ||
	    zydis_dwarf_reg(memory->mem.base) != (int)base || reg < 0)
		return false;
	*ret = (struct insn_slot_move){
		.off = memory->mem.disp.value,
		.reg = (unsigned int)reg,
		.bytes = memory->size / 8,
		.is_store = is_store,
	};
	return true;
}

bool insn_keeps_lowest_bit(const uint8_t *bytes, size_t n, unsigned int *ret_reg)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops) || zi.mnemonic != ZYDIS_MNEMONIC_AND)
		return false;
	int reg = low_register(&ops[0]);
	if (reg < 0 || ops[0].size != 8 || ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    ops[1].imm.value.u != 1)
		return false;
	*ret_reg = (unsigned int)reg;
	return true;
}
