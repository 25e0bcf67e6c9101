/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's treatment of a uprobe, from the bytes of the instruction
 *
 * Installing a uprobe replaces the first byte of an instruction by int3. The replaced instruction
 * must still have its effect, so the kernel decodes it once and then has three ways:
 *
 *     emulate      it does the instruction's work itself: nop, push, direct jumps and calls
 *                  (0.6 us)
 *     single-step  it runs a copy elsewhere with the trap flag set and repairs what depends on the
 *                  address: rip-relative operands, return addresses, the instruction pointer (9 us)
 *     refuse       everything it cannot do right
 *
 * The refusal comes too late for a probe that is attached before the file is mapped: attaching then
 * succeeds, the refusal happens inside mmap(2), which ignores it, and the probe never fires. So the
 * rules must be known beforehand. They are these, in the kernel's order:
 *
 *	refuse        0. an int3 that is already there
 *	refuse        1. bytes that the kernel's decoder does not know, see is_unknown()
 *	refuse        2. a prefix 26 2e 36 3e (es cs ss ds) or f0 (lock), also where it means
 *	                 something else: "2e" in the assembler's long nops, "3e" for notrack
 *	refuse        3. pop %ss and mov to %ss, which hold back the trap of the next step
 *	refuse        4. an opcode byte of the list no_step[] below
 *	emulate       5. the nops that the kernel itself uses (1 to 8 bytes), and 90 with any
 *	                 prefix: a pause, and also "xchg %r8,%rax" (49 90), which gets lost
 *	refuse        6. jcc, jmp, call with an operand size prefix (66)
 *	emulate       7. jcc, jmp, call with a direct target, push of a general register
 *	single-step   8. the rest
 *
 * The single step is not exact for all of the others. Instructions that reveal it are
 * CAIRN_HAZARD_SEES_STEP, see sees_step(); a repeated string instruction, which traps after each
 * repetition, is CAIRN_HAZARD_REPEATS. tests/live/live_uprobe_steps.c runs each kind of instruction
 * whose result depends on flags, rip or the kernel.
 *
 * "Opcode byte" needs a definition. For an instruction after the escape 0f it is 0f, which no list
 * names: all of them pass rule 4, syscall and ud2 included. For a VEX, EVEX or XOP instruction it
 * is the opcode itself, *without its map*, and the lists were made for the one-byte map. So vpxor
 * (VEX.0f ef) is refused as if it were "out", and vpor (VEX.0f eb) is *emulated as a short jump by
 * zero bytes*: the program goes on without its result. The same happens to every opcode of rules 5
 * and 7, and to those that the single step repairs in a way of their own (ret, popf). The table
 * misread[] lists them. Measured: docs/findings/uprobe-avx-misemulated.md.
 *
 * A 5-byte nop is, after its first hit, overwritten by a call into a trampoline, which costs less
 * and pushes a return address onto the program's stack: docs/findings/uprobe-nop5-red-zone.md.
 * Newer kernels count more instructions as nops (mov of a register to itself, lea of 0 + register,
 * a jump to the next instruction). We call all of them a hazard when they are 5 bytes long, and
 * "emulated" only those that 6.18 emulates.
 *
 * Established by comparing a million encodings with Linux 6.18's behaviour, see
 * tests/live/live_uprobe_rules.c. Bytes that our decoder (Zydis) rejects are reported as not
 * probeable, although the kernel's decoder, which checks less, takes some of them: such bytes are
 * no code.
 */
#include "insn/insn.h"

#include <string.h>

#include "insn/uprobe.h"
#include "insn/zydis.h"

/* Inclusive ranges of one-byte opcodes. */
struct opcode_range {
	uint8_t first, last;
};

/* Rule 4. Invalid in 64-bit mode, privileged, or traps by itself. */
static const struct opcode_range no_step[] = {
	{0x06, 0x07}, {0x0e, 0x0e},               /* push, pop es; push cs: invalid */
	{0x16, 0x17}, {0x1e, 0x1f},               /* push, pop ss, ds: invalid */
	{0x27, 0x27}, {0x2f, 0x2f},               /* daa, das: invalid */
	{0x37, 0x37}, {0x3f, 0x3f},               /* aaa, aas: invalid */
	{0x60, 0x62},                             /* pusha, popa, bound: invalid */
	{0x6c, 0x6f},                             /* ins, outs */
	{0x82, 0x82}, {0x9a, 0x9a},               /* invalid */
	{0xcc, 0xcf},                             /* int3, int, into, iret */
	{0xd4, 0xd6},                             /* aam, aad, salc: invalid */
	{0xe4, 0xe7}, {0xec, 0xef},               /* in, out */
	{0xea, 0xea},                             /* far jmp: invalid */
	{0xf1, 0xf1}, {0xf4, 0xf4}, {0xfa, 0xfb}, /* int1, hlt, cli, sti */
};

/*
 * VEX, EVEX and XOP opcodes that the kernel takes for the one-byte instruction of the same number:
 * jumps and calls are emulated, ret and popf get the wrong repair after the step.
 */
static const struct opcode_range misread[] = {
	{0x70, 0x7f}, /* jcc: vpshufd, vpcmpeqb, vzeroupper, vmovd, vmovdqa (store) */
	{0x90, 0x90}, /* nop: kmovw */
	{0x9d, 0x9d}, /* popf, which leaves the trap flag set: vfnmadd132ss */
	{0xc2, 0xc3}, /* ret, after which rip stays in the copy: vcmpps */
	{0xca, 0xcb}, /* far ret: vrcp28ps, vsha512rnds2 */
	{0xe8, 0xe9}, /* call, jmp: vpsubsb, vpsubsw */
	{0xeb, 0xeb}, /* short jmp: vpor */
};

#define IN_RANGES(table, op) in_ranges(table, sizeof(table) / sizeof((table)[0]), op)

static bool in_ranges(const struct opcode_range *table, size_t n, uint8_t op)
{
	for (size_t i = 0; i < n; i++)
		if (op >= table[i].first && op <= table[i].last)
			return true;
	return false;
}

static bool has_prefix(const ZydisDecodedInstruction *zi, uint8_t byte)
{
	for (size_t i = 0; i < zi->raw.prefix_count; i++)
		if (zi->raw.prefixes[i].value == byte)
			return true;
	return false;
}

static enum cairn_hazard prefix_hazard(const ZydisDecodedInstruction *zi)
{
	static const uint8_t segments[] = {0x26, 0x2e, 0x36, 0x3e};
	for (size_t i = 0; i < sizeof(segments); i++)
		if (has_prefix(zi, segments[i]))
			return CAIRN_HAZARD_SEGMENT_PREFIX;
	return has_prefix(zi, 0xf0) ? CAIRN_HAZARD_LOCK_PREFIX : CAIRN_HAZARD_NONE;
}

static bool is_vector_encoded(const ZydisDecodedInstruction *zi)
{
	return zi->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ||
	       zi->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
	       zi->encoding == ZYDIS_INSTRUCTION_ENCODING_XOP;
}

/* The byte that rules 3 to 7 look at. */
static uint8_t kernel_opcode(const ZydisDecodedInstruction *zi)
{
	if (is_vector_encoded(zi) || zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return zi->opcode;
	return 0x0f;
}

/*
 * Encodings that our decoder knows and the kernel's does not: sets of instructions that only a few
 * processors had, and a REX prefix that is not the last one (ignored by processors, taken for the
 * end of the prefixes by the kernel; no compiler emits it).
 */
static bool is_unknown(const ZydisDecodedInstruction *zi)
{
	for (size_t i = 0; i + 1 < zi->raw.prefix_count; i++)
		if ((zi->raw.prefixes[i].value & 0xf0) == 0x40)
			return true;
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_EXTRQ:
	case ZYDIS_MNEMONIC_INSERTQ:
	case ZYDIS_MNEMONIC_VPERMIL2PS:
	case ZYDIS_MNEMONIC_VPERMIL2PD:
		return true;
	default:
		break;
	}
	return zi->meta.isa_set == ZYDIS_ISA_SET_FMA4;
}

/*
 * "mov %rax,%rax" and "lea 0(%rax),%rax" with 64-bit operands, in the spellings the kernel accepts.
 */
static bool is_self_move(const ZydisDecodedInstruction *zi)
{
	unsigned int reg = zi->raw.modrm.reg + 8u * zi->raw.rex.R;
	unsigned int rm = zi->raw.modrm.rm + 8u * zi->raw.rex.B;
	bool has_sib = (zi->attributes & ZYDIS_ATTRIB_HAS_SIB) != 0;
	if (!zi->raw.rex.W)
		return false;
	if (zi->opcode == 0x89)
		return zi->raw.modrm.mod == 3 && reg == rm;
	if (zi->opcode != 0x8d || zi->raw.modrm.mod == 0 || zi->raw.disp.value != 0)
		return false;
	if (has_sib)
		rm = zi->raw.sib.base + 8u * zi->raw.rex.B;
	if (has_sib && (zi->raw.sib.scale || zi->raw.sib.index != 4 || zi->raw.rex.X))
		return false;
	/* The only prefix may be REX. */
	return zi->raw.prefix_count == 1 && reg == rm;
}

/* Instructions that some kernel counts as a nop, and overwrites when they are 5 bytes long. */
static bool is_any_nop(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (zi->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return zi->opcode == 0x1f && zi->raw.modrm.reg == 0;
	if (zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	switch (zi->opcode) {
	case 0x90:
		return true;
	case 0xe9: /* a jump to the next instruction */
	case 0xeb:
		return zi->raw.imm[0].value.u == 0;
	default:
		return is_self_move(zi);
	}
}

/* Rule 5. */
static bool is_emulated_nop(const ZydisDecodedInstruction *zi, const uint8_t *bytes)
{
	static const uint8_t kernel_nops[][8] = {
		{0x90},
		{0x66, 0x90},
		{0x0f, 0x1f, 0x00},
		{0x0f, 0x1f, 0x40, 0x00},
		{0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
		{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	};
	if (zi->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	    zi->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && zi->opcode == 0x90)
		return true;
	return zi->length <= 8 && memcmp(bytes, kernel_nops[zi->length - 1], zi->length) == 0;
}

/* Direct jump, conditional jump or call of the legacy encodings, loop and jrcxz not among them. */
static bool is_direct_branch(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (zi->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return zi->opcode >= 0x80 && zi->opcode <= 0x8f;
	if (zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	return (zi->opcode >= 0x70 && zi->opcode <= 0x7f) || zi->opcode == 0xe8 ||
	       zi->opcode == 0xe9 || zi->opcode == 0xeb;
}

/* push of a register in its one- or two-byte form; any other spelling is single-stepped. */
static bool is_plain_push(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    zi->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	if (zi->opcode < 0x50 || zi->opcode > 0x57)
		return false;
	return zi->length == 1 || (zi->length == 2 && has_prefix(zi, 0x41));
}

/*
 * Instructions whose result the single step changes (rule 8). pushf stores the trap flag. syscall
 * leaves the flags in r11 and the address after the copy in rcx, and a child that it makes has no
 * copy to go on in. A far call leaves 4 bytes of address, where the kernel repairs 8. The kernel
 * itself emulates sgdt, sidt, sldt, str and smsw (UMIP), which ends no step: the bytes after the
 * copy are executed. The trap aborts an xbegin, which goes on at a distance from the copy. On
 * Intel's processors sysenter returns to another address, and the fault of AMD's vmmcall, which a
 * hypervisor raises, has the address of the copy; on AMD's the same may be true of Intel's vmcall.
 * Hypervisors execute cpuid themselves, and one (PVM) was seen to end no step then.
 */
static bool sees_step(const ZydisDecodedInstruction *zi)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMMCALL:
	case ZYDIS_MNEMONIC_SGDT:
	case ZYDIS_MNEMONIC_SIDT:
	case ZYDIS_MNEMONIC_SLDT:
	case ZYDIS_MNEMONIC_STR:
	case ZYDIS_MNEMONIC_SMSW:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_CPUID:
		return true;
	case ZYDIS_MNEMONIC_CALL:
		return zi->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	default:
		return false;
	}
}

/* A string instruction that is stepped once for each repetition. */
static bool repeats(const ZydisDecodedInstruction *zi)
{
	return (zi->attributes &
		(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

static enum cairn_hazard opcode_hazard(const ZydisDecodedInstruction *zi)
{
	uint8_t op = kernel_opcode(zi);
	bool vector = is_vector_encoded(zi);
	/* mov to %ss is 8e /2. A vector instruction of that number is refused without a reason. */
	if (op == 0x8e && zi->raw.modrm.reg == 2)
		return vector ? CAIRN_HAZARD_NOT_PROBEABLE : CAIRN_HAZARD_MASKS_TRAPS;
	if (IN_RANGES(no_step, op))
		return CAIRN_HAZARD_NOT_PROBEABLE;
	if (vector && IN_RANGES(misread, op))
		return CAIRN_HAZARD_MISEMULATED;
	/* xchg %r8,%rax, taken for a nop with a prefix. */
	if (!vector && op == 0x90 && zi->raw.rex.B)
		return CAIRN_HAZARD_MISEMULATED;
	if (sees_step(zi))
		return CAIRN_HAZARD_SEES_STEP;
	return repeats(zi) ? CAIRN_HAZARD_REPEATS : CAIRN_HAZARD_NONE;
}

struct insn_uprobe uprobe_judge(const ZydisDecodedInstruction *zi, const uint8_t *bytes)
{
	struct insn_uprobe u = {.hazard = CAIRN_HAZARD_NONE};
	if (bytes[0] == 0xcc)
		u.hazard = CAIRN_HAZARD_TRAP;
	else if (is_unknown(zi))
		u.hazard = CAIRN_HAZARD_NOT_PROBEABLE;
	if (!u.hazard)
		u.hazard = prefix_hazard(zi);
	if (!u.hazard)
		u.hazard = opcode_hazard(zi);
	if (u.hazard)
		return u;
	bool branch = is_direct_branch(zi);
	if (branch && has_prefix(zi, 0x66))
		u.hazard = CAIRN_HAZARD_NOT_PROBEABLE;
	else if (zi->length == 5 && is_any_nop(zi))
		u.hazard = CAIRN_HAZARD_NOP5_RED_ZONE;
	u.emulated = u.hazard != CAIRN_HAZARD_NOT_PROBEABLE &&
		     (branch || is_emulated_nop(zi, bytes) || is_plain_push(zi));
	return u;
}

struct insn_uprobe insn_uprobe(const uint8_t *bytes, size_t n)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	if (!zydis_instruction(&d, bytes, n, &zi))
		return (struct insn_uprobe){.hazard = CAIRN_HAZARD_NOT_PROBEABLE};
	return uprobe_judge(&zi, bytes);
}
