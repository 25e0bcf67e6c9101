/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single instructions: their part in the index, the table and the target of a switch's jump
 *
 *	cmp    $5, %eax			COMPARE: from rax, value 5
 *	ja     default			BRANCH: relation INSN_ABOVE
 *	lea    table(%rip), %rdx	ADDRESS: to rdx, value table
 *	mov    %eax, %eax		COPY: to rax, from rax
 *	movslq (%rdx,%rax,4), %rax	LOAD: to rax, base rdx, index rax
 *	add    %rdx, %rax		SUM: to rax, from rdx
 *	jmp    *%rax			JUMP: from rax
 *
 * and, in code that is linked to one address,
 *
 *	jmp    *table(,%rax,8)		JUMP_WHOLE: index rax, value table
 */
#ifndef INSN_TABLE_H
#define INSN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_table_kind {
	INSN_TABLE_OTHER,
	INSN_TABLE_COMPARE,
	INSN_TABLE_BRANCH,
	INSN_TABLE_MASK, /* and $value, %to */
	INSN_TABLE_COPY, /* of the whole register, or of its low bytes that are extended */
	INSN_TABLE_ADDRESS,
	INSN_TABLE_LOAD,
	INSN_TABLE_SUM,
	INSN_TABLE_JUMP,
	INSN_TABLE_JUMP_WHOLE,
};

/* When a conditional branch is taken, by an unsigned comparison before it. */
enum insn_relation {
	INSN_UNRELATED,
	INSN_ABOVE,
	INSN_ABOVE_OR_EQUAL,
	INSN_BELOW,
	INSN_BELOW_OR_EQUAL,
};

struct insn_table {
	enum insn_table_kind kind;
	enum insn_relation relation;
	uint8_t to, from, base, index; /* DWARF numbers, 0 to 15 */
	uint64_t value;                /* an address; or a number as wide as the operand */
	uint16_t writes;               /* registers, as struct insn has them, and by a call */
	bool writes_flags;
};

/*
 * insn_table - describe one instruction
 *
 * @at  address of the first byte
 * Returns false for bytes that are no instruction.
 * Cost: one decode, no allocation. Threads: any. Signals: safe.
 */
bool insn_table(const uint8_t *bytes, size_t n, uint64_t at, struct insn_table *ret);

#endif
