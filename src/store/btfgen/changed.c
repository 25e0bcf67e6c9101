/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/changed.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/params.h"
#include "sites/convention.h"

enum { RBP = 6, RSP = 7, N_GENERAL = 16 };

int changed_init(struct changed *c, const struct dwarf *dw, struct cairn_err *err)
{
	const struct cairn_binary *bin = dwarf_binary(dw);
	struct elf *code = binary_main(bin);
	*c = (struct changed){
		.dw = dw, .code = code, .symbols = elf_has_symtab(code) ? code : binary_debug(bin)};
	c->graph = types_new();
	return c->graph ? dw_types_new(dw, c->graph, &c->types, err)
			: err_nomem(err, "the type graph");
}

void changed_fini(struct changed *c)
{
	dw_types_free(c->types);
	types_free(c->graph);
	arena_fini(&c->arena);
}

static bool in_frame(const struct cairn_location *l)
{
	if (l->why == CAIRN_UNAVAIL_NOT_STORED_YET || l->why == CAIRN_UNAVAIL_NO_CFA)
		return true;
	const struct cairn_piece *p = l->pieces;
	return l->why == CAIRN_AVAILABLE && l->n_pieces == 1 && p->kind == CAIRN_PIECE_MEMORY &&
	       p->n_steps && p->steps->op == CAIRN_LOC_REG &&
	       (p->steps->reg == RSP || p->steps->reg == RBP);
}

/*
 * Without location views, a description of the entry may belong to the first statement: "n |= 1"
 * leaves "rdi | 1".
 */
static bool is_of_same_register(const struct cairn_location *said, const struct cairn_location *abi)
{
	const struct cairn_piece *p = said->pieces, *q = abi->pieces;
	if (said->why != CAIRN_AVAILABLE || said->n_pieces != 1 || abi->n_pieces != 1 ||
	    p->kind != q->kind || !p->n_steps || !q->n_steps)
		return false;
	return p->steps->op == CAIRN_LOC_REG && q->steps->op == CAIRN_LOC_REG &&
	       p->steps->reg == q->steps->reg;
}

/*
 * Whether the code reads all that the convention passes in general registers: it may keep it in a
 * stack slot.
 */
static bool reads(struct flow *flow, struct cairn_vaddr at, const struct cairn_location *abi)
{
	for (uint32_t i = 0; i < abi->n_pieces; i++) {
		const struct cairn_piece *p = &abi->pieces[i];
		if (p->n_steps && p->steps->reg < N_GENERAL && !flow_used(flow, at, p->steps->reg))
			return false;
	}
	return true;
}

/*
 * Clang lists the calls of a function that it optimised. In any other function the parameters are
 * as in the source.
 */
static bool is_optimised(const struct dw_die *body)
{
	return dw_flag(body, DW_AT_call_all_calls) || dw_flag(body, DW_AT_GNU_all_call_sites);
}

/*
 * Stack locations are not compared to the byte: if an earlier argument was removed or split, that
 * argument is reported.
 */
static bool is_at_its_place(const struct loc_context *ctx, const struct cairn_location *said,
			    const struct cairn_location *abi)
{
	if (abi->why == CAIRN_UNAVAIL_NOT_STORED_YET)
		return said->why == CAIRN_AVAILABLE || said->why == CAIRN_UNAVAIL_VECTOR_REGISTER ||
		       in_frame(said);
	if (loc_equal(said, abi) || is_of_same_register(said, abi))
		return true;
	if (!in_frame(said))
		return false;
	return in_frame(abi) || !is_optimised(&ctx->function) || reads(ctx->flow, ctx->at, abi);
}

/* ---- a function ---- */

/* The DIE of the body for a parameter of the abstract instance; that one when the body has none. */
static int concrete(const struct dw_die *body, dw_off formal, struct dw_die *ret)
{
	struct dw_die die;
	for (int rc = dw_param_child(body, &die, NULL); rc == 1;
	     rc = dw_param_next(&die, &die, NULL)) {
		if (die.tag == DW_TAG_formal_parameter &&
		    (die.off == formal || dw_origin_of(&die) == formal)) {
			*ret = die;
			return 1;
		}
	}
	return dw_die_near(body->unit, formal, ret, NULL);
}

static int see_params(struct changed *c, struct loc_context *ctx, const struct formals *f,
		      struct abi_param *params, struct cairn_location *said, struct cairn_err *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < f->n && rc >= 0; i++) {
		struct dw_die die;
		uint32_t type;
		if (concrete(&ctx->function, f->die[i], &die) != 1)
			return -EBADMSG;
		rc = dwarf_type_of(c->types, &die, &type, err);
		if (rc >= 0)
			rc = convention_passing(c->types, die.unit, type, &params[i], err);
		if (rc >= 0)
			rc = loc_of_argument(ctx, &die, &c->arena, &said[i]);
	}
	return rc;
}

static int is_changed(struct changed *c, struct loc_context *ctx, const struct formals *f,
		      struct cairn_err *err)
{
	struct cairn_location *said = arena_array(&c->arena, f->n, sizeof(*said)),
			      *abi = arena_array(&c->arena, f->n, sizeof(*abi));
	struct abi_param *params = arena_array(&c->arena, f->n, sizeof(*params)), result;
	uint32_t type;
	if (!said || !abi || !params)
		return -ENOMEM;
	int rc = dwarf_type_of(c->types, &ctx->function, &type, err);
	if (rc >= 0)
		rc = convention_passing(c->types, ctx->function.unit, type, &result, err);
	if (rc >= 0)
		rc = see_params(c, ctx, f, params, said, err);
	if (rc >= 0)
		rc = abi_locations(c->graph, &result, params, f->n, &c->arena, abi);
	for (uint32_t i = 0; i < f->n && rc >= 0; i++) {
		if (abi[i].why != CAIRN_UNAVAIL_NOT_STORED_YET && in_frame(&said[i]) &&
		    !in_frame(&abi[i]) && !ctx->flow && is_optimised(&ctx->function))
			ctx->flow = flow_new(c->code, &ctx->function, ctx->entry);
		if (!is_at_its_place(ctx, &said[i], &abi[i]))
			return 1;
	}
	return rc < 0 ? rc : 0;
}

int changed_has(struct changed *c, const struct dw_die *body, struct cairn_vaddr at,
		struct cairn_err *err)
{
	if (!dw_unit_is_clang(body->unit))
		return 0;
	if (convention_is_foreign(body))
		return 1;
	if (convention_is_certain(c->symbols, at))
		return 0;
	const struct abstract *abstract;
	struct abstracts abstracts;
	struct loc_context ctx;
	memset(&ctx, 0, offsetof(struct loc_context, row));
	ctx.dw = c->dw;
	ctx.code = c->code;
	ctx.function = *body;
	ctx.entry = ctx.at = ctx.padding = at;
	arena_fini(&c->arena);
	arena_init(&c->arena);
	abstracts_init(&abstracts, &c->arena);
	int rc = abstract_of(&abstracts, c->dw, body->unit, body->off, &abstract, err);
	if (rc >= 0 && abstract->formals.n)
		rc = is_changed(c, &ctx, &abstract->formals, err);
	abstracts_fini(&abstracts);
	flow_free(ctx.flow);
	return rc == -EBADMSG ? 1 : rc;
}
