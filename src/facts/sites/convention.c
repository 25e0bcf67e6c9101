/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/convention.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"
#include "elf/elf.h"

static int symbol_order(const void *key, const void *symbol)
{
	uint64_t at = *(const uint64_t *)key, s = ((const struct elf_symbol *)symbol)->at.v;
	return at < s ? -1 : at > s;
}

bool convention_is_certain(struct elf *code, struct cairn_vaddr at)
{
	const struct elf_symbol *symbols, *hit;
	size_t n;
	if (elf_symbols(code, &symbols, &n, NULL) < 0 || !n)
		return false;
	hit = bsearch(&at.v, symbols, n, sizeof(*symbols), symbol_order);
	if (!hit)
		return false;
	while (hit > symbols && hit[-1].at.v == at.v)
		hit--;
	for (; hit < symbols + n && hit->at.v == at.v; hit++)
		if (hit->type == STT_FUNC && hit->binding != STB_LOCAL)
			return true;
	return false;
}

bool convention_is_all_gcc(struct elf *code)
{
	const struct elf_section *comment;
	size_t n = 0;
	if (elf_section(code, ".comment", &comment, NULL) < 0 || !comment || !comment->data)
		return false;
	const char *text = (const char *)comment->data;
	for (size_t at = 0; at < comment->size; at += strnlen(text + at, comment->size - at) + 1) {
		size_t left = comment->size - at, len = strnlen(text + at, left);
		if (len && strncmp(text + at, "GCC: ", len < 5 ? len : 5))
			return false;
		n += len > 5;
	}
	return n;
}

bool convention_is_silent(const struct dw_unit *u, uint64_t line)
{
	return dw_unit_language(u) == DW_LANG_Mips_Assembler || dw_unit_is_terse(u) ||
	       (dw_unit_is_clang(u) && !line);
}

bool convention_is_word(const struct cairn_types *types, uint32_t type)
{
	enum { WORD_BYTES = 8 };
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, type));
	switch (t->kind) {
	case CAIRN_T_VOID:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
		return true;
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
	case CAIRN_T_FLOAT:
		return t->size && t->size <= WORD_BYTES;
	default:
		return false;
	}
}

bool convention_is_foreign(const struct dw_die *body)
{
	struct dw_value v;
	if (dw_attr_deep(body, DW_AT_calling_convention, &v, NULL, NULL) != 1)
		return false;
	return v.u >= DW_CC_lo_user && v.u != DW_CC_LLVM_X86_64SysV &&
	       v.u != DW_CC_LLVM_PreserveMost && v.u != DW_CC_LLVM_PreserveAll;
}

/* The first step, if @l is one whole register, or memory of the frame. */
static const struct cairn_loc_step *base_of(const struct cairn_location *l, enum cairn_piece_kind k)
{
	const struct cairn_piece *p = l->pieces;
	bool is_one = l->n_pieces == 1 && p->kind == k && p->n_steps;
	return is_one && p->steps->op == CAIRN_LOC_REG ? p->steps : NULL;
}

bool convention_is_contradicted(const struct cairn_location *said, const struct cairn_location *abi)
{
	enum { RSP = 7 };
	bool known = abi->why == CAIRN_AVAILABLE || abi->why == CAIRN_UNAVAIL_VECTOR_REGISTER;
	const struct cairn_loc_step *at = base_of(said, CAIRN_PIECE_VALUE);
	const struct cairn_loc_step *expected = base_of(abi, CAIRN_PIECE_VALUE);
	if (!known || said->why != CAIRN_AVAILABLE || !expected)
		return false;
	if (at)
		return said->pieces->n_steps == 1 && at->reg != expected->reg;
	at = base_of(said, CAIRN_PIECE_MEMORY);
	return at && at->reg == RSP;
}

int convention_passing(struct dw_types *reader, const struct dw_unit *unit, uint32_t type,
		       struct abi_param *ret, struct cairn_err *err)
{
	static const enum abi_passing how[] = {
		[DW_PASSING_UNKNOWN] = ABI_UNKNOWN,
		[DW_PASSED_BY_VALUE] = ABI_BY_VALUE,
		[DW_PASSED_BY_ADDRESS] = ABI_BY_ADDRESS,
	};
	enum dw_passing passing;
	int rc = dwarf_type_passing(reader, type, unit, &passing, err);
	if (rc >= 0)
		*ret = (struct abi_param){type, how[passing]};
	return rc;
}
