/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks that were made by hand
 *
 * No code called a coroutine's function. The code that makes its stack stores a return address
 * there, and the code at that address ends the coroutine:
 *
 *     makecontext, glibc  mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi  __start_context begins so
 *                         the same after testl $2,%fs:0x48; je            built for shadow stacks
 *     boost.context       push %rbp; jmp *%rbx                            before it; then
 *                         xor %rdi,%rdi; call _exit; hlt
 *
 * A row would be looked up for the byte before, which belongs to another function, or to none. So
 * all of the instructions are compared, and no call may come before them. A damaged stack is
 * unlikely to lead to just these addresses.
 */
#include "unwind/begin.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "insn/call.h"

static_assert((int)BEGIN_BEFORE == (int)INSN_CALL_LONGEST, "what a call takes");

static bool is_at(const uint8_t *bytes, const char *what, size_t n)
{
	return memcmp(bytes, what, n) == 0;
}

static bool is_makecontext(const uint8_t *pc)
{
	static const char start[] = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff";
	static const char shadow[] = "\x64\xf7\x04\x25\x48\x00\x00\x00\x02\x00\x00\x00\x74";
	if (is_at(pc, start, sizeof(start) - 1))
		return true;
	/* The je skips the work on the shadow stack; that part is not compared. */
	return is_at(pc, shadow, sizeof(shadow) - 1);
}

static bool is_boost(const uint8_t *pc)
{
	return is_at(pc - 3, "\x55\xff\xe3", 3) && is_at(pc, "\x48\x31\xff\xe8", 4) &&
	       pc[8] == 0xf4;
}

bool begin_is_context(const uint8_t *at, const char **ret_why)
{
	if (insn_ends_with_call(at))
		return false;
	*ret_why = is_makecontext(at) ? "a context of makecontext begins there"
				      : "a context of boost.context begins there";
	return is_makecontext(at) || is_boost(at);
}

bool begin_of_context(uint16_t machine, const struct code_memory *code, uint64_t pc,
		      const char **ret_why)
{
	uint8_t bytes[BEGIN_BEFORE + BEGIN_AFTER];
	return machine == EM_X86_64 &&
	       code_memory_all(code, pc - BEGIN_BEFORE, bytes, sizeof(bytes)) &&
	       begin_is_context(bytes + BEGIN_BEFORE, ret_why);
}
