/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of Go's functions
 *
 * Go's compiler never changes how a function is called, so at its entry each argument is where the
 * convention puts it (abi_go.c), whether it is used or not. The question is which argument is
 * which. A parameter without a name is not described, and one that was assigned without an
 * instruction has the description of its new value:
 *
 *	func f(_ int, a, b int) { b = a ... }   at the entry a is rbx and b is rbx;
 *	                                        only a and b are listed
 *
 * So an argument counts only if description and convention agree on it and on all before it.
 *
 * Functions begin with a check of the stack bounds. They end with the code for its failure: store
 * the argument registers, call runtime.morestack, load them, and jump to the entry. The site is
 * then hit again with the same arguments.
 */
#include "sites/go.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "loc/code.h"
#include "sites/quirks/quirks.h"
#include "sites/symbol_names.h"

static int complete_types(struct dw_types *reader, const struct built_site *b,
			  struct cairn_param *params, struct cairn_err *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < b->formals.n && rc >= 0; i++) {
		params[i].type = b->args[i].type;
		rc = dwarf_type_complete(reader, params[i].type, err);
		/* A damaged type stays one that is not known. */
		if (rc == -EBADMSG || rc == -ENOTUNIQ)
			rc = 0;
	}
	return rc;
}

void go_check_pieces(struct built_site *b, uint32_t arg)
{
	struct cairn_location *loc = &b->args[arg].loc;
	struct dw_die formal;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < loc->n_pieces; i++)
		bytes += loc->pieces[i].size;
	if (loc->n_pieces > 1 &&
	    dw_die_near(b->die.unit, b->formals.die[arg], &formal, NULL) == 1 &&
	    dw_type_bytes(&formal) != bytes)
		quirk_reject(loc, CAIRN_QUIRK_GO_PIECES);
}

/* Go's assembler calls a function by a second body, which takes all from the stack. */
static bool is_for_assembler(const struct cairn_site *s)
{
	static const char suffix[] = ".abi0";
	size_t n = s->symbol ? strlen(s->symbol) : 0;
	return n >= strlen(suffix) && !strcmp(s->symbol + n - strlen(suffix), suffix);
}

int go_believe(const struct site_env *env, struct dw_types *reader, struct built_site *b,
	       struct arena *arena, struct cairn_err *err)
{
	uint32_t n = b->formals.n;
	struct cairn_location *abi = arena_array(arena, n, sizeof(*abi));
	struct cairn_param *params = arena_array(arena, n, sizeof(*params));
	if (!abi || !params)
		return err_nomem(err, "locations");
	int rc = complete_types(reader, b, params, err);
	if (rc < 0)
		return rc;
	bool in_registers =
		dw_unit_go(b->die.unit) == DW_GO_REGISTERS && !is_for_assembler(&b->site);
	if (abi_go_locations(dw_types_graph(reader), in_registers, params, n, arena, abi) < 0)
		return err_nomem(err, "locations");
	bool folded = env->icf_groups && symbol_name_has(env->icf_groups, b->site.at),
	     agrees = true;
	for (uint32_t i = 0; i < n; i++) {
		agrees = agrees && abi_go_agrees(&b->args[i].loc, &abi[i]);
		if (agrees)
			b->args[i].loc = abi[i];
		else
			go_check_pieces(b, i);
		if (!agrees && !env->assume_unmodified)
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_NO_VIEWS);
		if (folded)
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_ICF_ARGS);
	}
	return 0;
}

/* ---- the jump back to the entry ---- */

struct growth {
	struct elf *code;
	uint64_t entry;
	bool is_grown; /* in the straight line after the call that grows the stack */
	bool is_growth, is_other;
};

static bool is_morestack(struct elf *code, uint64_t at)
{
	static const char morestack[] = "runtime.morestack";
	const struct elf_symbol *symbols;
	size_t n;
	if (elf_symbols(code, &symbols, &n, NULL) < 0)
		return false;
	size_t from = SEARCH(0, n, i, symbols[i].at.v < at);
	for (; from < n && symbols[from].at.v == at; from++)
		if (!strncmp(symbols[from].name, morestack, strlen(morestack)))
			return true;
	return false;
}

static int see_insn(void *arg, const struct code_insn *insn)
{
	struct growth *g = arg;
	bool jumps = insn->step.flow == INSN_JUMP || insn->step.flow == INSN_BRANCH;
	if (jumps && insn->step.target == g->entry) {
		g->is_growth |= g->is_grown;
		g->is_other |= !g->is_grown;
	}
	if (insn->step.flow == INSN_CALL)
		g->is_grown = is_morestack(g->code, insn->step.target);
	else if (insn->step.flow != INSN_NEXT)
		g->is_grown = false;
	return 0;
}

bool go_grows_stack(struct elf *code, const struct dw_die *body, struct cairn_vaddr entry)
{
	struct growth g = {.code = code, .entry = entry.v};
	return code_visit(code, body, see_insn, &g) == 0 && g.is_growth && !g.is_other;
}
