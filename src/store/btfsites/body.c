/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out-of-line bodies
 *
 * A FUNC of the main blob has code with its name and its very prototype; the encoder made sure of
 * that (btfgen/funcs.h). So the calling convention says where the arguments are at the entry, for
 * C. What BTF does not record decides against a value:
 *
 *  - The language. With mangled names in the file, or Go's, only words are believed to be passed as
 *    C passes them.
 *  - The compiler. Clang's callers do not pass an argument that the function ignores, so its code
 *    has to use the register. Code that is all GCC's, by .comment, needs no such proof.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "btfsites/btfsites.h"
#include "loc/code.h"
#include "loc/loc.h"
#include "sites/convention.h"
#include "sites/quirks/quirks.h"

/* Parameters of GCC's constructors that not every instance gets. */
static bool is_artificial(const char *name)
{
	return name && (!strcmp(name, "__in_chrg") || !strcmp(name, "__vtt_parm"));
}

static bool has_convention(const struct btf_sites *s, const struct cairn_function *f)
{
	if (!s->is_foreign)
		return true;
	for (uint32_t i = 0; i < f->n_params; i++)
		if (is_artificial(f->params[i].name) ||
		    !convention_is_word(s->sites.graph, f->params[i].type))
			return false;
	return convention_is_word(s->sites.graph, f->return_type);
}

static int by_convention(const struct btf_sites *s, const struct cairn_function *f,
			 struct arena *arena, struct cairn_location *ret)
{
	struct abi_param result = {.type = f->return_type};
	struct abi_param *params = arena_array(arena, f->n_params, sizeof(*params));
	if (!params)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_params; i++)
		params[i].type = f->params[i].type;
	return abi_locations(s->sites.graph, &result, params, f->n_params, arena, ret);
}

/* Whether the function at @at reads all registers of a location. */
static bool is_used(struct flow *flow, struct cairn_vaddr at, const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		/* Whether it reads an argument on the stack is not looked for. */
		if (p->kind != CAIRN_PIECE_VALUE || !p->n_steps ||
		    !flow_used(flow, at, p->steps[0].reg))
			return false;
	}
	return true;
}

/* Takes out the values that Clang's callers may not have passed. */
static void check_uses(const struct btf_sites *s, struct cairn_vaddr at, struct cairn_location *loc,
		       uint32_t n)
{
	struct dw_range range = {.lo = at, .hi = {s->around.hi}};
	struct flow *flow =
		at.v < s->around.hi ? flow_of_range(binary_main(s->sites.bin), range) : NULL;
	for (uint32_t i = 0; i < n; i++)
		if (loc[i].why == CAIRN_AVAILABLE && !is_used(flow, at, &loc[i]))
			loc[i].why = CAIRN_UNAVAIL_MAY_NOT_BE_PASSED;
	flow_free(flow);
}

static int set_args(const struct btf_sites *s, const struct cairn_function *f, struct arena *arena,
		    struct cairn_site *site)
{
	struct cairn_location *loc = arena_array(arena, f->n_params, sizeof(*loc));
	struct cairn_arg *args = arena_array(arena, f->n_params, sizeof(*args));
	bool known = has_convention(s, f);
	if (!loc || !args || (known && by_convention(s, f, arena, loc) < 0))
		return -ENOMEM;
	if (known && !s->is_gcc)
		check_uses(s, site->at, loc, f->n_params);
	for (uint32_t i = 0; i < f->n_params; i++) {
		if (!known)
			loc[i].why = CAIRN_UNAVAIL_NO_CONVENTION;
		args[i] = (struct cairn_arg){
			.name = f->params[i].name, .type = f->params[i].type, .loc = loc[i]};
	}
	site->args = args;
	site->n_args = f->n_params;
	return 0;
}

/* ---- what its code says about calls ---- */

struct entry_search {
	uint64_t entry;
	bool is_jumped_to, is_called, has_loop;
};

static int look_for_entry(void *arg, const struct code_insn *insn)
{
	struct entry_search *s = arg;
	bool jumps = insn->step.flow == INSN_JUMP || insn->step.flow == INSN_BRANCH;
	s->has_loop |= jumps && insn->step.target <= insn->at && insn->step.target >= s->entry;
	if (insn->step.target != s->entry)
		return 0;
	s->is_jumped_to |= jumps;
	s->is_called |= insn->step.flow == INSN_CALL;
	return 0;
}

/*
 * A body that calls itself may have turned some of these calls into a loop. The place of the
 * loop in it is not looked at.
 */
static uint32_t caveats_of(const struct btf_sites *s, struct cairn_vaddr at)
{
	struct entry_search search = {.entry = at.v};
	struct dw_range range = {.lo = at, .hi = {s->around.hi}};
	if (code_visit_range(binary_main(s->sites.bin), range, look_for_entry, &search) < 0)
		return CAIRN_COUNT_UNKNOWN;
	if (search.is_jumped_to)
		return CAIRN_COUNT_LOOPED;
	return search.is_called && search.has_loop ? CAIRN_COUNT_UNKNOWN : 0;
}

/* ---- several functions at one address ---- */

static uint32_t prototype_of(const struct btf_sites *s, const struct func_ids *ids)
{
	struct cairn_btf_type t;
	for (size_t i = 0; i < ids->v.n; i++)
		if (btfsites_has_body(s, ids->v.p[i]) &&
		    cairn_btf_type(s->inlined, ids->v.p[i], &t))
			return t.ref;
	return 0;
}

/* The others that begin there: the linker or the compiler folded them, or they are aliases. */
struct others {
	bool is_any, has_other_prototype;
};

static int see_other(struct btf_sites *s, const char *name, uint32_t proto, struct others *ret)
{
	struct func_ids ids = {0};
	int rc = btfsites_named(s, name, &ids);
	uint32_t other = rc < 0 ? 0 : prototype_of(s, &ids);
	ret->is_any |= other != 0;
	ret->has_other_prototype |= other && other != proto;
	VEC_FREE(&ids.v);
	return rc;
}

static int see_others(struct btf_sites *s, const struct cairn_function *f, uint32_t proto,
		      struct cairn_vaddr at, struct others *ret)
{
	const struct elf_symbol *p;
	size_t n;
	int rc = 0;
	*ret = (struct others){0};
	if (btfsites_symbols_at(s, at.v, &p, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n && rc >= 0; i++)
		if (p[i].type == STT_FUNC && strcmp(p[i].name, f->name))
			rc = see_other(s, p[i].name, proto, ret);
	return rc;
}

/* Values that the calls of another function pass there are none of this one's. */
static void reject_args(struct cairn_site *site, struct cairn_arg *args, enum cairn_quirk quirk)
{
	for (uint32_t i = 0; i < site->n_args; i++)
		quirk_reject(&args[i].loc, quirk);
}

int btfsites_body(struct btf_sites *s, const struct cairn_function *f, uint32_t proto,
		  struct cairn_vaddr at, struct arena *arena, struct cairn_site *ret,
		  struct cairn_err *err)
{
	struct others others;
	*ret = (struct cairn_site){
		.kind = CAIRN_SITE_OUT_OF_LINE, .rule = CAIRN_AT_SYMBOL, .at = at, .n_shared = 1};
	ret->has_off = cairn_binary_foff(s->sites.bin, at, &ret->off);
	int rc = btfsites_surround(s, at, err);
	if (rc < 0)
		return rc;
	btfsites_see_producers(s);
	ret->hazard = btfsites_hazard(s, at);
	ret->count_caveats = caveats_of(s, at);
	if (btfsites_place(s, arena, ret) < 0 || set_args(s, f, arena, ret) < 0 ||
	    see_others(s, f, proto, at, &others) < 0)
		return err_nomem(err, "a function's body");
	struct cairn_arg *args = (struct cairn_arg *)ret->args;
	if (ret->count_caveats & CAIRN_COUNT_LOOPED)
		reject_args(ret, args, CAIRN_QUIRK_LOOP_HEAD_ENTRY);
	if (others.has_other_prototype)
		reject_args(ret, args, CAIRN_QUIRK_ICF_ARGS);
	ret->count_caveats |= others.is_any ? CAIRN_COUNT_UNKNOWN : 0;
	return 0;
}
