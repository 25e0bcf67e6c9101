/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/cover.h"

#include <errno.h>

#include "base/err.h"
#include "loc/loc.h"

static const char *const names[WORDS] = {
	"%r15", "%r14", "%r13",      "%r12", "%rbp", "%rbx", "%r11", "%r10",
	"%r9",  "%r8",  "%rax",      "%rcx", "%rdx", "%rsi", "%rdi", "the system call's number",
	"%rip", "%cs",  "the flags", "%rsp", "%ss"};

const char *word_name(unsigned int word)
{
	return word < WORDS ? names[word] : "";
}

/* A struct by value may be passed in other ways in C++: what comes after it is not known. */
static enum abi_passing passing(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	bool is_struct = t && (t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS ||
			       t->kind == CAIRN_T_UNION);

	return is_struct ? ABI_UNKNOWN : ABI_BY_VALUE;
}

/* The word that has all of a parameter; negative: it is in none. */
static int word_of(const struct cairn_location *loc)
{
	const struct cairn_piece *piece = loc->pieces;

	if (loc->why || loc->n_pieces != 1 || piece->kind != CAIRN_PIECE_VALUE ||
	    piece->n_steps != 1 || piece->steps[0].op != CAIRN_LOC_REG)
		return -1;
	return trace_register_word(piece->steps[0].reg);
}

static void place(const struct cairn_location *locs, uint32_t n, struct cover_params *ret)
{
	for (uint32_t i = 0; i < n && i <= INT8_MAX; i++) {
		int word = word_of(&locs[i]);
		if (word >= 0)
			ret->of_word[word] = (int8_t)i;
	}
}

static void forget_rest(struct cover_params *ret)
{
	for (unsigned int i = 0; i < WORDS; i++)
		if (ret->of_word[i] == NO_PARAM)
			ret->of_word[i] = PARAM_UNKNOWN;
}

int params_find(const struct cairn_types *types, const struct cairn_function *f,
		struct cover_params *ret, struct cairn_err *err)
{
	struct abi_param result = {f->return_type, passing(types, f->return_type)};
	struct cairn_location *locs;
	struct abi_param *params;
	struct arena arena;
	int e = -ENOMEM;

	*ret = (struct cover_params){0};
	for (unsigned int i = 0; i < WORDS; i++)
		ret->of_word[i] = NO_PARAM;
	arena_init(&arena);
	locs = arena_array(&arena, f->n_params + 1u, sizeof(*locs));
	params = arena_array(&arena, f->n_params + 1u, sizeof(*params));
	for (uint32_t i = 0; params && i < f->n_params; i++)
		params[i] =
			(struct abi_param){f->params[i].type, passing(types, f->params[i].type)};
	if (locs && params)
		e = abi_locations(types, &result, params, f->n_params, &arena, locs);
	if (!e)
		place(locs, f->n_params, ret);
	if (!e && f->n_params && locs[f->n_params - 1].why)
		forget_rest(ret);
	arena_fini(&arena);
	return e ? err_nomem(err, "parameters") : 0;
}
