/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules for arguments
 *
 * info is read as by copy_struct_from_user(): missing members are 0, unknown ones must be 0. This
 * decides the meaning of a call made with the other numbering. Each of them fails, because the
 * structs were laid out for it:
 *
 *	meant                  taken as        why it fails
 *	ELF (80 bytes)         UNREGISTER (16) text_end is after the known members: E2BIG
 *	JIT (24 bytes)         ELF             text_end is 0: EINVAL
 *	JIT, extended          ELF             text_end is CODE_JIT_EXTENDED, no address: EINVAL
 *	UNREGISTER (16 bytes)  JIT             no tables: EINVAL
 *	UNREGISTER             ELF             text_end is 0: EINVAL
 *	ELF                    JIT             text_end is where CODE_JIT_EXTENDED should be: E2BIG
 *	JIT                    UNREGISTER      tables, or CODE_JIT_EXTENDED, are after the known
 *	                                       members: E2BIG
 */
#include "arguments.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* No user space has more: x86-64 with five levels of page tables. */
static const uint64_t address_limit = UINT64_C(1) << 56;
/* Rows have 32-bit offsets. */
static const uint64_t jit_limit = UINT64_C(1) << 32;

int codectl_check_call(enum codectl_numbers numbers, unsigned int option, size_t info_size,
		       unsigned int flags, enum code_opt *ret)
{
	static const enum code_opt options[][3] = {
		[CODECTL_NUMBERS_REVIEWED] = {CODE_UNREGISTER, CODE_REGISTER_ELF,
					      CODE_REGISTER_JIT},
		[CODECTL_NUMBERS_RFC] =
			{
				[CODE_RFC_REGISTER_ELF] = CODE_REGISTER_ELF,
				[CODE_RFC_REGISTER_JIT] = CODE_REGISTER_JIT,
				[CODE_RFC_UNREGISTER] = CODE_UNREGISTER,
			},
	};
	if (flags || option >= sizeof(options[0]) / sizeof(options[0][0]))
		return -EINVAL;
	if (info_size > CODECTL_INFO_MAX)
		return -E2BIG;
	*ret = options[numbers][option];
	return 0;
}

static size_t known_bytes(enum code_opt option)
{
	switch (option) {
	case CODE_UNREGISTER:
		return sizeof(struct code_unregister_info);
	case CODE_REGISTER_ELF:
		return sizeof(struct code_elf_info);
	case CODE_REGISTER_JIT:
		return sizeof(struct code_jit_info);
	}
	return 0;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool is_range(uint64_t lo, uint64_t hi)
{
	return lo < hi && hi <= address_limit;
}

/* Two zeros: not there. */
static bool is_optional_range(uint64_t lo, uint64_t hi)
{
	return (!lo && !hi) || is_range(lo, hi);
}

static bool is_unwind(uint64_t lo, uint64_t hi, uint32_t kind)
{
	switch (kind) {
	case CODE_UNWIND_NONE:
		return !lo && !hi;
	case CODE_UNWIND_EH_FRAME:
	case CODE_UNWIND_EH_FRAME_HDR:
		return lo && is_range(lo, hi);
	}
	return false;
}

static int check_elf(const struct code_elf_info *elf)
{
	if (!is_range(elf->text_start, elf->text_end) || !is_range(elf->elf_start, elf->elf_end) ||
	    elf->text_start < elf->elf_start || elf->text_end > elf->elf_end)
		return -EINVAL;
	if (!is_optional_range(elf->sframe_start, elf->sframe_end) ||
	    !is_unwind(elf->unwind_start, elf->unwind_end, elf->unwind_kind))
		return -EINVAL;
	if (!elf->build_id != !elf->build_id_len || elf->reserved)
		return -EINVAL;
	return elf->build_id_len > CODECTL_BUILD_ID_MAX ? -ERANGE : 0;
}

/* Tables are read word by word, by several processes. */
static bool is_table(uint64_t at)
{
	return at % sizeof(uint64_t) == 0 && at < address_limit;
}

static int check_jit(const struct code_jit_info *jit)
{
	bool says_something = jit->unwind_head || jit->symbols_head || jit->lines_head ||
			      jit->unwind_kind || jit->flags & CODE_JIT_FRAME_POINTER;
	if (!is_range(jit->text_start, jit->text_end) || !says_something)
		return -EINVAL;
	if (!is_table(jit->unwind_head) || !is_table(jit->symbols_head) ||
	    !is_table(jit->lines_head) ||
	    !is_unwind(jit->unwind_start, jit->unwind_end, jit->unwind_kind))
		return -EINVAL;
	if (jit->flags & ~(uint32_t)(CODE_JIT_FRAME_POINTER | CODE_JIT_ASSUMED))
		return -EINVAL;
	return jit->text_end - jit->text_start > jit_limit ? -ERANGE : 0;
}

static int read_jit(struct code_jit_info *jit)
{
	const uint8_t *bytes = (const uint8_t *)jit;
	bool is_extended = jit->extended == CODE_JIT_EXTENDED;
	if (!is_extended &&
	    !is_zero(bytes + CODE_JIT_INFO_RFC_SIZE, sizeof(*jit) - CODE_JIT_INFO_RFC_SIZE))
		return -E2BIG;
	return check_jit(jit);
}

int codectl_read_request(enum code_opt option, const void *info, size_t info_size,
			 struct codectl_request *ret)
{
	size_t known = known_bytes(option), n = info_size < known ? info_size : known;
	struct codectl_request request = {.option = option};
	int rc = 0;
	if (!is_zero((const uint8_t *)info + n, info_size - n))
		return -E2BIG;
	if (n)
		memcpy(&request.elf, info, n);
	switch (option) {
	case CODE_UNREGISTER:
		rc = is_range(request.range.text_start, request.range.text_end) ? 0 : -EINVAL;
		break;
	case CODE_REGISTER_ELF:
		rc = check_elf(&request.elf);
		break;
	case CODE_REGISTER_JIT:
		rc = read_jit(&request.jit);
		break;
	}
	if (rc == 0)
		*ret = request;
	return rc;
}

void codectl_request_text(const struct codectl_request *request, uint64_t *ret_lo, uint64_t *ret_hi)
{
	bool is_elf = request->option == CODE_REGISTER_ELF;
	/* Those of a JIT's region and of a removal come first, and are the same. */
	*ret_lo = is_elf ? request->elf.text_start : request->range.text_start;
	*ret_hi = is_elf ? request->elf.text_end : request->range.text_end;
}
