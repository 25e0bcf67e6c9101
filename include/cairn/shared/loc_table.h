/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table in which a BPF program of cairn/loc.bpf.h finds its arguments
 *
 * libcairn fills it when the program is attached (cairn/loc.h). Both may be of different builds: the
 * table's name in the program's object ends in the version of what is here, and a library refuses
 * one that it does not know.
 *
 * A probe's cookie leads to a row: a head, an entry for each argument of the function, and the
 * operations of arguments that need more than one step. Sites whose arguments are in the same
 * places share a row.
 *
 *	head    to = the number of arguments          imm = the caller's cookie
 *	REG     reg = word of struct pt_regs
 *	CONST   imm = the value
 *	MEMORY  the size bytes at the register + imm
 *	OPS     to = the first operation, counted from the head
 *	NONE    imm = a negative errno
 *
 * The first four arguments are in the cookie as well, if they are whole in a register that every
 * processor of 64 bits has: programs that read only these never look into the table.
 *
 * An argument's size is that of its type, in bytes. Operations work on an accumulator, two slots and
 * the 16 bytes of the result, until END.
 */
#ifndef CAIRN_SHARED_LOC_TABLE_H
#define CAIRN_SHARED_LOC_TABLE_H

enum cairn_loc_kind {
	CAIRN_LOC_IS_NONE,
	CAIRN_LOC_IS_HEAD,
	CAIRN_LOC_IN_REG,
	CAIRN_LOC_IS_CONST,
	CAIRN_LOC_IN_MEMORY,
	CAIRN_LOC_BY_OPS,
};

enum cairn_loc_code {
	CAIRN_LOC_OP_END,
	CAIRN_LOC_OP_REG,   /* acc = register reg */
	CAIRN_LOC_OP_CONST, /* acc = imm */
	CAIRN_LOC_OP_LOAD,  /* acc = the size bytes at acc; size 1 to 8 */
	CAIRN_LOC_OP_COPY,  /* result[to] = the size bytes at acc + imm; size 1, 2, 4, 8 */
	CAIRN_LOC_OP_STORE, /* result[to] = the low size bytes of acc; not across a multiple of 8 */
	CAIRN_LOC_OP_SAVE,  /* slot reg = acc */
	CAIRN_LOC_OP_SEXT,  /* acc = its low size bytes, sign-extended */
	CAIRN_LOC_OP_ZEXT,
	CAIRN_LOC_OP_NEG,
	CAIRN_LOC_OP_NOT,
	/* acc = acc OP operand: imm, a register or a slot; with F_SWAP operand OP acc. */
	CAIRN_LOC_OP_ADD,
	CAIRN_LOC_OP_SUB,
	CAIRN_LOC_OP_MUL,
	CAIRN_LOC_OP_AND,
	CAIRN_LOC_OP_OR,
	CAIRN_LOC_OP_XOR,
	CAIRN_LOC_OP_SHL, /* by 64 or more: 0 */
	CAIRN_LOC_OP_SHR,
	CAIRN_LOC_OP_SAR, /* by 64 or more: all sign bits */
	CAIRN_LOC_OP_EQ,  /* comparisons are signed */
	CAIRN_LOC_OP_NE,
	CAIRN_LOC_OP_LT,
	CAIRN_LOC_OP_LE,
	CAIRN_LOC_OP_GT,
	CAIRN_LOC_OP_GE,
};

enum cairn_loc_flags {
	CAIRN_LOC_F_SIGNED = 1, /* an argument is extended with its sign */
	CAIRN_LOC_F_KERNEL = 2, /* memory is the kernel's */
	CAIRN_LOC_F_REG = 4,    /* the operand is a register */
	CAIRN_LOC_F_SLOT = 8,
	CAIRN_LOC_F_SWAP = 16,
};

enum {
	CAIRN_LOC_TABLE_SLOTS = 2,
	CAIRN_LOC_TABLE_OPS_MAX = 64,  /* of one argument */
	CAIRN_LOC_TABLE_MAX = 1 << 20, /* entries */
	CAIRN_LOC_COOKIE_MARK = 0x10c, /* the highest 12 bits of a cookie */
	CAIRN_LOC_NEAR_ARGS = 4,       /* those that are in the cookie */
	CAIRN_LOC_NEAR_WORDS = 19,     /* of struct pt_regs that they may be in */
};

/* 16 bytes; entry 0 is no row: imm identifies the process that fills the table. */
struct cairn_loc_entry {
	unsigned char kind; /* enum cairn_loc_kind; of an operation enum cairn_loc_code */
	unsigned char reg;
	unsigned char size;
	unsigned char flags;
	unsigned int to;
	unsigned long long imm;
};

/*
 * A cookie: the mark, 20 bits of the head's index, and a byte for each near argument, that of
 * argument 0 lowest.
 */
#define CAIRN_LOC_COOKIE(head, near)                                                               \
	((unsigned long long)CAIRN_LOC_COOKIE_MARK << 52 | (unsigned long long)(head) << 32 |      \
	 (near))
#define CAIRN_LOC_COOKIE_HEAD(cookie) ((unsigned int)((cookie) >> 32) & 0xfffff)

/* A near argument of 1 << @log bytes; 0: the argument is not near. */
#define CAIRN_LOC_NEAR(word, log, is_signed)                                                       \
	(((unsigned int)(word) + 1) | (unsigned int)(log) << 5 | (unsigned int)(is_signed) << 7)

#endif
