/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module insn decodes instructions of x86-64: boundaries, effects, and the results of a user probe
 * on them.
 *
 * Zydis decodes. Our part is the kernel's view: whether a uprobe on this instruction fires at all,
 * whether it is emulated (fast) or single-stepped out of line (slow), and whether it can corrupt
 * the program. include/cairn/hazards.h explains the traps to users.
 */
#ifndef INSN_INSN_H
#define INSN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/hazards.h>

#include "base/vec.h"

/*
 * The registers that a call may overwrite by the System V ABI: rax, rdx, rcx, rsi, rdi, r8 to r11,
 * by DWARF number.
 */
enum { INSN_CALL_WRITES = 0x0f37 };

/* The maximum of one instruction; longer ones fault. */
enum { INSN_MAX_BYTES = 15 };

enum insn_flow {
	INSN_NEXT, /* control continues with the next instruction, and only there */
	INSN_JUMP, /* direct, to target */
	INSN_JUMP_INDIRECT,
	INSN_BRANCH, /* conditional, to target or next */
	INSN_CALL,   /* direct, to target */
	INSN_CALL_INDIRECT,
	INSN_RETURN,
	INSN_TRAP, /* int3, ud2, hlt, syscall, int n: leaves the straight line */
};

struct insn {
	uint8_t len;
	enum insn_flow flow;
	/*
	 * For INSN_JUMP, INSN_BRANCH, INSN_CALL: the target's address, counted like @at of the
	 * decoding call.
	 */
	uint64_t target;
	/* General registers (DWARF numbers 0-15) written in whole or part, as a bit mask. */
	uint16_t writes;
	uint16_t reads;
	bool writes_memory;
	bool reads_memory;
	bool has_rep; /* may be interrupted and resumed in the middle */
};

/*
 * insn_decode - decode one instruction
 *
 * @bytes, @n the bytes there; at most 15 are read
 * @at         address of the first byte, for targets
 * Returns false when they are no complete, valid 64-bit instruction.
 * Cost: one table-driven decode, no allocation. Threads: any. Signals: safe.
 */
bool insn_decode(const uint8_t *bytes, size_t n, uint64_t at, struct insn *ret);

/* The properties of an instruction that control flow needs; as in struct insn. */
struct insn_step {
	uint8_t len;
	bool writes_memory;
	bool is_nop; /* insn_is_padding() */
	enum insn_flow flow;
	uint64_t target;
};

/*
 * insn_step - the same as insn_decode() for callers that need no more than that
 *
 * Returns false if insn_decode() returns false.
 * Cost: a table and the bytes for nearly all instructions of real code. No allocation. Threads:
 * any. Signals: safe.
 */
bool insn_step(const uint8_t *bytes, size_t n, uint64_t at, struct insn_step *ret);

/*
 * insn_steps - the same for several instructions, one after the other
 *
 * @readable   bytes that may be looked at, @n or more
 * @ret        room for @max
 * @ret_bytes  how long they are together
 * Returns their number; fewer than @max at the end of the bytes, or before an instruction for which
 * insn_step() returns false.
 */
size_t insn_steps(const uint8_t *bytes, size_t n, size_t readable, uint64_t at,
		  struct insn_step *ret, size_t max, size_t *ret_bytes);

/*
 * The padding of assemblers: 90, 66 90, 0f 1f /0 and its prefixed forms. @insn an instruction of @n
 * bytes
 */
bool insn_is_padding(const uint8_t *insn, size_t n);

/*
 * Arithmetic on several numbers in one vector register; see packed.c. @insn: one instruction of @n
 * bytes.
 */
bool insn_is_packed(const uint8_t *insn, size_t n);

/*
 * False: it is none of those. VEX and EVEX, 66, and 0f itself or after REX are the bytes that they
 * begin with, and most instructions begin with others.
 */
static inline bool insn_may_be_packed(const uint8_t *insn, size_t n)
{
	if (n < 3)
		return false;
	if ((insn[0] & 0xf0) == 0x40)
		return insn[1] == 0x0f;
	return insn[0] == 0x0f || insn[0] == 0x66 || insn[0] == 0xc5 || insn[0] == 0xc4 ||
	       insn[0] == 0x62;
}

/*
 * xor or sub of a general register with itself: the result does not depend on it. @insn: one
 * instruction of @n bytes.
 */
bool insn_is_zeroing(const uint8_t *insn, size_t n);

/*
 * insn_takes_address - whether an instruction loads an address that is fixed in the file: lea
 * N(%rip)
 *
 * @at   address of the first byte
 * @ret  the address
 * Returns false for any other instruction, and for bytes that are none.
 * Cost: one decode, no allocation. Threads: any. Signals: safe.
 */
bool insn_takes_address(const uint8_t *bytes, size_t n, uint64_t at, uint64_t *ret);

/*
 * insn_takes_frame_address - whether an instruction puts an address in the frame into a register:
 * lea 8(%rsp), %rdi; mov %rsp, %rdi
 *
 * @dwarf_reg  what it counts from: the stack pointer or rbp; @ret the distance, without an index's
 *             share
 * Returns false for any other instruction, and for bytes that are none.
 * Cost: a look at its bytes; no allocation. Threads: any. Signals: safe.
 */
bool insn_takes_frame_address(const uint8_t *bytes, size_t n, unsigned int *dwarf_reg,
			      int64_t *ret);

/* False: the first two bytes are of no such one: REX.W, and lea or mov. */
static inline bool insn_may_take_frame_address(const uint8_t *bytes)
{
	return (bytes[0] & 0xf8) == 0x48 && (bytes[1] == 0x8d || (bytes[1] & 0xfd) == 0x89);
}

/*
 * insn_is_table_jump - whether an indirect jump is one of a switch, whose table has distances
 *
 * @code  instructions one after the other, the last of which is the jump; @n bytes of them
 * False also for a jump that may be any: through a table of addresses, to a register whose origin
 * is not among the instructions. Cost: decodes them, no allocation. Threads: any. Signals: safe.
 */
bool insn_is_table_jump(const uint8_t *code, size_t n);

struct insn_access {
	bool loads; /* or takes the address */
	bool stores;
	bool takes_address; /* where a load, a store or a call may follow that is not seen */
};

/*
 * insn_accesses - how an instruction accesses the @size bytes at register + @off, by that register
 * and a displacement
 *
 * Both when the bytes are no instruction. An access through another register or with an index is
 * not seen. Cost: one decode, no allocation. Threads: any. Signals: safe.
 */
struct insn_access insn_accesses(const uint8_t *bytes, size_t n, unsigned int dwarf_reg,
				 int64_t off, unsigned int size);

/* In doubt an instruction may have to do with all of them. */
enum { INSN_ANY_REGISTERS = 0xffff };

/*
 * insn_named_registers - the general registers that an ordinary instruction has to do with: which
 * it may read or write, or by which it accesses memory
 *
 * @ret_len  its length, unless the result is INSN_ANY_REGISTERS
 * Returns them as a bit mask of DWARF numbers. INSN_ANY_REGISTERS: control may not go on after it,
 * it has a prefix or registers that its bytes do not name, it is no instruction, or the bytes end
 * soon.
 * Cost: a table and the bytes, no allocation. Threads: any. Signals: safe.
 */
uint16_t insn_named_registers(const uint8_t *bytes, size_t n, uint8_t *ret_len);

/*
 * insn_decode_near - where an instruction leads, whether it writes a register, what it accesses
 * there as insn_accesses() says, and whether the memory around the place may be written
 *
 * @ret          its length and flow; of the registers and memory that it reads and writes, only
 *               whether it writes @dwarf_reg
 * @stores_near  a store with the same base register, no index, and a displacement that differs by
 *               less than 64 bytes (the widest store) counts; one through another register does not
 * Returns false if insn_decode() returns false. Threads: any. Signals: safe.
 */
bool insn_decode_near(const uint8_t *bytes, size_t n, unsigned int dwarf_reg, int64_t off,
		      unsigned int size, struct insn *ret, struct insn_access *access,
		      bool *stores_near);

/*
 * insn_stores_register - whether an instruction copies a general register to memory at register +
 * @off: mov %rsi, 8(%rsp)
 *
 * @ret_reg    the register that is copied, @ret_bytes how many of its bytes; untouched otherwise
 * Cost: one decode, no allocation. Threads: any. Signals: safe.
 */
bool insn_stores_register(const uint8_t *bytes, size_t n, unsigned int dwarf_reg, int64_t off,
			  unsigned int *ret_reg, unsigned int *ret_bytes);

/*
 * insn_copies_register - whether it copies the low @ret_bytes of a general register to another: mov
 * %edi, %eax
 */
bool insn_copies_register(const uint8_t *bytes, size_t n, unsigned int *ret_to,
			  unsigned int *ret_from, unsigned int *ret_bytes);

/* A register that is copied to or from memory at another register and a distance. */
struct insn_slot_move {
	int64_t off;
	unsigned int reg, bytes; /* its lowest */
	bool is_store;
};

/*
 * insn_moves_slot - whether it is such a copy, with register @base: mov %rdi, 8(%rsp), mov 8(%rsp),
 * %edi
 */
bool insn_moves_slot(const uint8_t *bytes, size_t n, unsigned int base, struct insn_slot_move *ret);

/*
 * insn_keeps_lowest_bit - whether it clears all but the lowest bit of a register's low byte: and
 * $1, %al
 */
bool insn_keeps_lowest_bit(const uint8_t *bytes, size_t n, unsigned int *ret_reg);

/* Name of a DWARF register number of x86-64 ("rdi"); NULL for a number that has none. Static. */
const char *insn_reg_name(unsigned int dwarf_reg);

/*
 * The same for the low @size_bytes (1, 2, 4, 8) of it: "dil", "di", "edi", "rdi". Registers that
 * are not general ones have one name for every width. NULL for another width. Static.
 */
const char *insn_subreg_name(unsigned int dwarf_reg, unsigned int size_bytes);

struct insn_uprobe {
	enum cairn_hazard hazard;
	bool emulated; /* the kernel emulates it: no single step */
};

/*
 * insn_uprobe - the kernel's treatment of a uprobe on this instruction
 *
 * By the rules that Linux 6.18 has for 64-bit code; see the essay in uprobe.c.
 *
 * @bytes, @n the instruction and the bytes after it, at most 15 bytes are read.
 * Bytes that are no valid instruction are CAIRN_HAZARD_NOT_PROBEABLE, although the kernel's
 * decoder, which is more generous, might accept them. Every 5-byte nop is
 * CAIRN_HAZARD_NOP5_RED_ZONE: the bytes cannot tell that it is a function's entry, where
 * cairn_hazard_at() accepts it.
 * Cost: one decode, no allocation. Threads: any. Signals: safe.
 */
struct insn_uprobe insn_uprobe(const uint8_t *bytes, size_t n);

/*
 * insn_hazard_in - the hazard of a uprobe in a function whose bounds are known
 *
 * For callers that know where the function starts better than the symbol table does (DWARF, an
 * FDE).
 * @func, @n the whole function from its entry
 * @off       the place, in bytes from the entry
 * Returns CAIRN_HAZARD_NOT_A_BOUNDARY also when @off is outside. A 5-byte nop is accepted only at
 * the entry or directly after its endbr64.
 * Cost: decodes from the entry to @off, no allocation. Threads: any.
 */
enum cairn_hazard insn_hazard_in(const uint8_t *func, size_t n, size_t off);

/* [lo, hi) is the code of one function. */
struct hazard_function {
	uint64_t lo, hi;
};

struct hazard_functions {
	VEC(struct hazard_function) v;
	bool are_all; /* code between them is padding, or belongs to none */
};

typedef int hazard_visitor(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard);

/*
 * hazards_among - as cairn_hazards(), for callers that know the functions better than the present
 * symbol tables
 *
 * @functions  in any order; they may overlap
 */
int hazards_among(const struct cairn_binary *bin, const struct hazard_functions *functions,
		  hazard_visitor *visit, void *ctx, struct cairn_err *err);

/*
 * insn_boundaries - mark the start of every instruction of a piece of code by linear decoding
 *
 * @bits  one bit per byte of code, (n + 7) / 8 bytes, zeroed by the caller
 * Returns the number of bytes that could not be decoded (each is stepped over as one byte).
 */
size_t insn_boundaries(const uint8_t *code, size_t n, uint8_t *bits);

/* The bits of insn_boundaries(), in memory that is used again for the next piece of code. */
struct insn_starts {
	uint8_t *bits;
	size_t cap;
};
bool insn_starts_find(struct insn_starts *s, const uint8_t *code, size_t n); /* false: no memory */
void insn_starts_fini(struct insn_starts *s);

/* Whether an instruction begins at byte @off. */
static inline bool insn_starts_at(const struct insn_starts *s, size_t off)
{
	return s->bits[off / 8] & 1u << off % 8;
}

/*
 * insn_uses_red_zone - whether a function keeps data below rsp, in the 128 bytes that the ABI
 * promises to leave alone
 *
 * @code, @n the whole function from its entry
 * Returns true also when it is not known (bytes that do not decode, a frame pointer that is set up
 * in an unknown way); see the comment in redzone.c.
 * Cost: one decode per instruction, no allocation. Threads: any. Signals: safe.
 */
bool insn_uses_red_zone(const uint8_t *code, size_t n);

#endif
