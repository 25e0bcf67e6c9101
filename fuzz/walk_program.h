/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code to be walked through: one function for each way a frame can be left, in assembler
 *
 * Function number n begins at 64 * n. Its two calls end at 64 * n + 32 and + 48, so that return
 * addresses are known without a symbol table. It is put into the targets themselves
 * (WALK_IN_TARGET), and written to a file and assembled (WALK_FILE), where it also has stubs, a GOT
 * and a code segment of its own.
 */
#ifndef FUZZ_WALK_PROGRAM_H
#define FUZZ_WALK_PROGRAM_H

#include <stdint.h>

enum walk_function {
	WALK_START,
	WALK_FP,
	WALK_SP,
	WALK_TAIL,
	WALK_SWITCH,
	WALK_INDIRECT,
	WALK_NO_ROW,
	WALK_EXPRESSION,
	WALK_SIGNAL,
	WALK_VALUES,
	WALK_INTERPRETER,
	WALK_RA_VALUE,
	WALK_REGISTERS,
	WALK_PUSHES,
	WALK_CONTEXT,
	WALK_SHADOW,
	WALK_BOOST,
	WALK_LARGE,
	WALK_N
};

enum { WALK_FUNCTION_BYTES = 64, WALK_CALL_1 = 32, WALK_CALL_2 = 48 };

/*
 * A function: what it does first, its two calls, what it does last; each is less than what is left
 * to the next mark.
 */
#define WALK_FN(n, rows, first, call_1, call_2, last)                                              \
	".org walk_text + 64 * " #n ", 0x90\n.type walk_" #n ", @function\nwalk_" #n ":\n" first   \
	".org walk_text + 64 * " #n " + 27, 0x90\n" call_1 ".org walk_text + 64 * " #n             \
	" + 43, 0x90\n" call_2 last rows ".size walk_" #n ", . - walk_" #n "\n"

#define WALK_ROWS(n, first, call_1, call_2, last)                                                  \
	WALK_FN(n, ".cfi_endproc\n", ".cfi_startproc\n" first, call_1, call_2, last)

#define WALK_FUNCTIONS(stub, slot)                                                                                                                           \
	".balign 64\nwalk_text:\n" WALK_ROWS(                                                                                                                \
		0, ".cfi_undefined rip\n", "call walk_1\n", "call walk_2\n",                                                                                 \
		"hlt\n") WALK_ROWS(1,                                                                                                                        \
				   "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\nmov "                                                           \
				   "%rsp, %rbp\n.cfi_def_cfa_register rbp\n",                                                                                \
				   "call walk_2\n", ".byte 0x90, 0x90, 0x90\ncall *%rax\n",                                                                  \
				   "pop %rbp\n.cfi_def_cfa rsp, 8\nret\n") WALK_ROWS(2,                                                                      \
										     "sub $40, "                                                             \
										     "%rsp\n.cfi_"                                                           \
										     "adjust_cfa_"                                                           \
										     "offset "                                                               \
										     "40\n",                                                                 \
										     "call " stub                                                            \
										     "\n",                                                                   \
										     "call "                                                                 \
										     "walk_3\n",                                                             \
										     "add $40, "                                                             \
										     "%rsp\n.cfi_"                                                           \
										     "adjust_cfa_"                                                           \
										     "offset "                                                               \
										     "-40\nret\n")                                                           \
		WALK_ROWS(3, "test %edi, %edi\nje walk_4\njmp walk_5\n", "call walk_4\n",                                                                    \
			  "call walk_6\n",                                                                                                                   \
			  "jmp walk_1\n") WALK_ROWS(4,                                                                                                       \
						    "cmp $3, %edi\nja 1f\nlea walk_text(%rip), "                                                             \
						    "%rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, "                                                           \
						    "%rax\njmp *%rax\n1:",                                                                                   \
						    "call walk_1\n", "call walk_0\n",                                                                        \
						    "ret\n") WALK_ROWS(5,                                                                                    \
								       "mov (%rdi), %rax\njmp "                                                              \
								       "*%rax\n",                                                                            \
								       "call walk_7\n",                                                                      \
								       "call walk_8\n",                                                                      \
								       "jmp *%rcx\n")                                                                        \
			WALK_FN(6, "", "push %rbx\n", "call walk_1\n", "call walk_2\n",                                                                      \
				"ret\n") /* CFA = *(rsp + 16) by an expression; rbx at CFA - 24 by another. */                                               \
		WALK_ROWS(                                                                                                                                   \
			7,                                                                                                                                   \
			".cfi_escape 0x0f, 3, 0x77, 16, 6\n.cfi_escape 0x10, 3, 2, 0x11, 0x68\n",                                                            \
			"call walk_8\n", "call walk_9\n",                                                                                                    \
			"ret\n") WALK_ROWS(8,                                                                                                                \
					   ".cfi_signal_frame\n.cfi_escape 0x0f, 3, 0x77, 0xa0, "                                                            \
					   "1\n.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n",                                                                    \
					   "call walk_1\n", "call walk_9\n",                                                                                 \
					   "mov $15, %eax\nsyscall\n") WALK_ROWS(9,                                                                          \
										 ".cfi_def_cfa_"                                                             \
										 "offset "                                                                   \
										 "48\n.cfi_"                                                                 \
										 "escape 0x14, "                                                             \
										 "3, "                                                                       \
										 "1\n.cfi_escape "                                                           \
										 "0x16, 12, 2, "                                                             \
										 "0x77, "                                                                    \
										 "8\n.cfi_offset "                                                           \
										 "r13, -24\n",                                                               \
										 "call walk_10\n",                                                           \
										 "call walk_1\n",                                                            \
										 "ret\n")                                                                    \
			WALK_ROWS(10,                                                                                                                        \
				  ".cfi_def_cfa_offset 80\n.cfi_offset rbp, -16\n.cfi_offset "                                                               \
				  "rbx, -24\n",                                                                                                              \
				  "call walk_1\n", "call walk_10\n",                                                                                         \
				  "ret\n") WALK_ROWS(11, ".cfi_escape 0x16, 16, 3, 0x77, 8, 6\n",                                                            \
						     "call walk_12\n", "call walk_1\n",                                                                      \
						     "ret\n") WALK_ROWS(12,                                                                                  \
									".cfi_register rbx, "                                                                \
									"r12\n.cfi_undefined "                                                               \
									"r13\n.cfi_same_value "                                                              \
									"r14\n.cfi_def_cfa rbx, "                                                            \
									"24\n",                                                                              \
									"call walk_13\n",                                                                    \
									"call walk_1\n", "ret\n")                                                            \
				WALK_ROWS(                                                                                                                   \
					13, "push %rax\n.cfi_adjust_cfa_offset 8\n",                                                                         \
					"call walk_1\n", "call walk_2\n",                                                                                    \
					"ret\n") /* As __start_context of glibc, with and without a shadow stack, and boost.context's end of a coroutine. */ \
		WALK_FN(14, "", "mov %rbx, %rsp\nmov (%rsp), %rdi\ntest %rdi, %rdi\n",                                                                       \
			"call walk_1\n", "call walk_2\n",                                                                                                    \
			"ret\n") WALK_FN(15, "", "testl $2, %fs:0x48\nje 1f\n", "call walk_1\n",                                                             \
					 "1:call walk_2\n", "ret\n")                                                                                         \
			WALK_FN(16, "",                                                                                                                      \
				"push %rbp\njmp *%rbx\nxor %rdi, %rdi\ncall walk_1\nhlt\n",                                                                  \
				"call walk_1\n", "call walk_2\n", "ret\n")                                                                                   \
				WALK_ROWS(17, ".cfi_def_cfa_offset 0x4008\n", "call " slot "\n",                                                             \
					  "call walk_17\n",                                                                                                  \
					  "ret\n") ".org walk_text + 64 * 18, 0x90\nwalk_end:\n"

/*
 * "call *slot(%rip)" has six bytes: one more than what is left before the mark; it is written so
 * that it ends there.
 */
#define WALK_IN_TARGET                                                                             \
	".pushsection .text.walk, \"ax\", @progbits\n" WALK_FUNCTIONS("walk_3",                    \
								      "walk_3") ".popsection\n"

#define WALK_FILE                                                                                  \
	".globl _start\n.set _start, walk_text\n.text\n" WALK_FUNCTIONS(                           \
		"stub_of_5", "stub_of_1") ".section .plt, \"ax\", @progbits\nstub_of_5: jmp "      \
					  "*slot_of_5(%rip)\n.balign 16\nstub_of_1: endbr64\njmp " \
					  "*slot_of_1(%rip)\n"                                     \
					  ".balign 16\ncall *slot_of_1(%rip)\n"                    \
					  ".section .got.plt, \"aw\", @progbits\nslot_of_5: "      \
					  ".quad walk_5\nslot_of_1: .quad walk_1\n"                \
					  ".section .note.GNU-stack, \"\", @progbits\n"

static inline uint64_t walk_after_call(enum walk_function n, unsigned int call)
{
	return WALK_FUNCTION_BYTES * (uint64_t)n + (call == 1 ? WALK_CALL_1 : WALK_CALL_2);
}

/*
 * Words of registers and stacks, of two bytes each: three bits say what they count from, the rest
 * is an offset. So a fuzzer that changes a bit makes another address of the same kind, or the same
 * of another kind.
 */
enum walk_base {
	WALK_AT_TEXT,
	WALK_AT_JIT,
	WALK_AT_STACK,
	WALK_AT_DATA,
	WALK_AT_NUMBER,
	WALK_AT_STUBS,
	WALK_AT_NEGATIVE,
	WALK_AT_WILD,
	WALK_N_BASES
};

#define WALK_WORD(base, off) ((uint16_t)((base) << 13 | (off)))

static inline uint64_t walk_value(const uint64_t bases[WALK_N_BASES], uint16_t word)
{
	uint64_t off = word & 0x1fff;
	switch (word >> 13) {
	case WALK_AT_NUMBER:
		return off;
	case WALK_AT_NEGATIVE:
		return -off;
	case WALK_AT_WILD:
		return off << 51 | off << 20 | off;
	default:
		return bases[word >> 13] + off;
	}
}

#endif
