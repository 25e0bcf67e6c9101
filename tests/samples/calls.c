/* SPDX-License-Identifier: BSD-2-Clause */
#include "calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "elf/elf.h"

enum { CALL_BYTES = 5, CALL_OPCODE = 0xe8 };

struct cairn_vaddr address_of(const struct cairn_binary *bin, const char *name)
{
	const struct elf_symbol *symbols;
	size_t n;
	assert_int_equal(elf_symbols(binary_main(bin), &symbols, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].at;
	fail_msg("no symbol %s", name);
	return (struct cairn_vaddr){0};
}

struct cairn_vaddr return_address_of(const struct cairn_binary *bin, struct cairn_vaddr caller,
				     struct cairn_vaddr callee)
{
	const uint8_t *code;
	size_t n;
	assert_true(elf_code_at(binary_main(bin), caller, &code, &n));
	for (size_t i = 0; i + CALL_BYTES <= n; i++) {
		int32_t distance;
		memcpy(&distance, code + i + 1, sizeof(distance));
		uint64_t after = caller.v + i + CALL_BYTES;
		if (code[i] == CALL_OPCODE && after + (uint64_t)(int64_t)distance == callee.v)
			return (struct cairn_vaddr){after};
	}
	fail_msg("0x%llx does not call 0x%llx", (unsigned long long)caller.v,
		 (unsigned long long)callee.v);
	return (struct cairn_vaddr){0};
}
