/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning the returns of calls
 *
 * A return probe replaces the return address on the stack. Code that reads it there finds the
 * kernel's trampoline instead, and an exception that passes such a frame ends the program. So calls
 * of functions that exceptions may pass are followed by probes on their returns (exits.h). Go moves
 * its stacks, so there a call cannot be found again (docs/limits.md).
 */
#include "trace/attach/returns.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/elf.h"
#include "kernel/symbols.h"
#include "loc/loc.h"
#include "sites/convention.h"
#include "trace/aggregate/aggregate.h"
#include "trace/attach/copies.h"
#include "trace/attach/exits.h"
#include "trace/attach/kernel_returns.h"
#include "trace/show/format.h"

/* ---- where return probes do no harm ---- */

static bool is_mangled(const char *name)
{
	return name && (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2));
}

static bool is_go(const struct elf *e)
{
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (strstr(elf_section_at(e, i)->name, ".gopclntab"))
			return true;
	return false;
}

struct names {
	size_t n;
	const char *const *p;
};

/* Functions that only a language with exceptions needs. */
static const char *const unwinding[] = {
	"__gxx_personality_v0", "rust_eh_personality",  "__gnat_personality_v0",    "__cxa_throw",
	"_d_eh_personality",    "__gdc_personality_v0", "__gnu_objc_personality_v0"};
/* Functions by which a thread runs on several stacks. */
static const char *const several_stacks[] = {"makecontext", "swapcontext", "sigaltstack",
					     "jump_fcontext", "make_fcontext"};

static bool is_one_of(const char *name, const struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strncmp(name, names->p[i], strlen(names->p[i])))
			return true;
	return false;
}

/* Imported functions have no address, and are in no list of symbols: the string table has them. */
static bool is_in_section(struct elf *e, const char *section, const struct names *names)
{
	const struct elf_section *strings;

	if (elf_section(e, section, &strings, NULL) < 0 || !strings || !strings->data)
		return false;
	const char *text = (const char *)strings->data;
	for (size_t at = 0; at < strings->size; at += strnlen(text + at, strings->size - at) + 1)
		if (memchr(text + at, 0, strings->size - at) && is_one_of(text + at, names))
			return true;
	return false;
}

static bool is_named_by(const struct trace_file *f, const struct names *names)
{
	struct elf *e = f->bin ? binary_main(f->bin) : NULL;

	return e && (is_in_section(e, ".dynstr", names) || is_in_section(e, ".strtab", names));
}

/* A library that has such a function for others, as libc does, need not use it. */
static bool exports_one_of(struct elf *e, const struct names *names)
{
	const struct elf_section *dynamic;
	const struct elf_symbol *symbols;
	size_t n;

	if (elf_section(e, ".dynsym", &dynamic, NULL) < 0 || !dynamic ||
	    elf_symbols(e, &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (symbols[i].binding != STB_LOCAL && is_one_of(symbols[i].name, names))
			return true;
	return false;
}

bool returns_has_stacks(const struct trace_file *f)
{
	const struct names names = {sizeof(several_stacks) / sizeof(several_stacks[0]),
				    several_stacks};

	return is_named_by(f, &names) && !exports_one_of(binary_main(f->bin), &names);
}

/* Whether the file's own imports show that exceptions pass its functions. */
static bool may_throw(struct trace_file *f)
{
	const struct names names = {sizeof(unwinding) / sizeof(unwinding[0]), unwinding};

	if (!f->knows_returns)
		f->throws = is_named_by(f, &names);
	f->knows_returns = true;
	return f->throws;
}

static bool is_named_in(const char *text)
{
	return text && (strstr(text, "$ret") || strstr(text, "$duration"));
}

static bool is_named(const struct cairn_trace *t, const struct trace_probe *p)
{
	const struct aggregates *a = t->aggregates;

	if (t->opts.shows_calls || is_named_in(p->text->text) || (a && is_named_in(a->by)) ||
	    (t->format && is_named_in(t->format->text)))
		return true;
	for (uint32_t i = 0; a && i < a->n_numbers; i++)
		if (is_named_in(a->numbers[i]))
			return true;
	return false;
}

/*
 * Functions that keep their return address, or go by it, as setjmp() and dlsym(). A return probe
 * would give them that of the trampoline.
 */
static bool is_own_return_used(const char *name)
{
	static const char *const functions[] = {"setjmp", "sigsetjmp", "getcontext", "swapcontext",
						"dlsym",  "dlvsym",    "dlopen",     "dlmopen"};

	name += strspn(name, "_");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(name, functions[i]))
			return true;
	return !strncmp(name, "Unwind_", strlen("Unwind_"));
}

const char *returns_refused(struct cairn_trace *t, struct trace_probe *p)
{
	const struct cairn_function *f = p->pub.function;
	struct elf *e = p->file->bin ? binary_main(p->file->bin) : NULL;

	if (!is_named(t, p))
		return NULL;
	if (t->weighs)
		return "a profile counts a call when it begins";
	if (p->text->kind != PROBE_OF_FUNCTION)
		return "the probe is on an instruction, and only a function returns";
	if (p->file->kernel)
		return kernel_returns_refused(f);
	if (e && is_go(e))
		return "Go moves its stacks during a call";
	p->by_exits = is_mangled(f->linkage_name) || is_mangled(f->name) || strstr(f->name, "::") ||
		      may_throw(p->file);
	if (!p->by_exits && is_own_return_used(f->name))
		return "the function uses its return address, which a return probe replaces";
	return NULL;
}

/* ---- taking expressions apart ---- */

bool returns_needs(const struct expr *e)
{
	if (!e)
		return false;
	return e->special || returns_needs(e->a) || returns_needs(e->b) || returns_needs(e->c);
}

static int own_returns(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	if (!p->returns)
		p->returns = arena_alloc(&t->arena, sizeof(*p->returns));
	return p->returns ? 0 : err_nomem(err, "a probe");
}

int returns_of_calls(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	if (p->file->kernel)
		return err_set(
			err, -EOPNOTSUPP,
			"%s: calls of kernel functions make no tree, as an interrupt has its "
			"own within those of a thread",
			p->text->text);
	p->pub.not_followed = p->no_returns;
	return own_returns(t, p, err);
}

/* Replaces a part that the entry can compute by the number that it keeps. */
static int keep(struct cairn_trace *t, struct trace_probe *p, const struct expr **e, uint32_t value,
		struct cairn_err *err)
{
	struct probe_returns *r = p->returns;
	struct expr *kept;

	if ((*e)->is_float)
		return probe_error(err, -EOPNOTSUPP, p->text->text, 0,
				   "a float of the entry cannot be compared with one of the "
				   "return");
	if (r->n_kept == FETCH_KEPT_MAX)
		return probe_error(
			err, -ERANGE, p->text->text, 0,
			"expressions with $ret and $duration need more than %d numbers of "
			"the entry",
			FETCH_KEPT_MAX);
	kept = arena_alloc(&t->arena, sizeof(*kept));
	if (!kept)
		return err_nomem(err, "a probe");
	*kept = (struct expr){.kind = EXPR_NAME,
			      .special = EXPR_KEPT,
			      .at = (*e)->at,
			      .name = (*e)->name,
			      .is_unsigned = (*e)->is_unsigned,
			      .is_long = (*e)->is_long,
			      .is_path = true,
			      .is_address = true,
			      .is_pointer = (*e)->is_pointer,
			      .pointee = (*e)->pointee,
			      .param = r->n_kept};
	r->kept[r->n_kept].expr = *e;
	r->kept[r->n_kept++].value = (uint8_t)value;
	*e = kept;
	return 0;
}

static bool is_literal(const struct expr *e)
{
	return e->kind == EXPR_INT || e->kind == EXPR_STRING || e->kind == EXPR_FLOAT;
}

/*
 * The root of a path, which is $ret, $duration or a number, stays; what is read through a parameter
 * at the return may be something else than at the entry.
 */
static int check_root(const struct trace_probe *p, const struct expr *e, struct cairn_err *err)
{
	while (e->is_path && e->kind != EXPR_NAME)
		e = e->a;
	if (!e->is_path || e->special)
		return 0;
	return probe_error(err, -EOPNOTSUPP, p->text->text, 0,
			   "an index with $ret or $duration needs a pointer that is $ret, or is "
			   "reached from it");
}

static int take_apart(struct cairn_trace *t, struct trace_probe *p, const struct expr **e,
		      uint32_t value, struct cairn_err *err)
{
	struct expr *copy;
	int r = (*e)->is_path ? check_root(p, *e, err) : 0;

	if (is_literal(*e))
		return 0;
	if (!returns_needs(*e))
		return keep(t, p, e, value, err);
	if (r < 0 || (*e)->kind == EXPR_NAME)
		return r;
	copy = arena_alloc(&t->arena, sizeof(*copy));
	if (!copy)
		return err_nomem(err, "a probe");
	*copy = **e;
	*e = copy;
	r = take_apart(t, p, (const struct expr **)&copy->a, value, err);
	if (r == 0 && copy->b)
		r = take_apart(t, p, (const struct expr **)&copy->b, value, err);
	if (r == 0 && copy->c)
		r = take_apart(t, p, (const struct expr **)&copy->c, value, err);
	return r;
}

static bool has_duration(const struct expr *e)
{
	return e && (e->special == EXPR_DURATION || has_duration(e->a) || has_duration(e->b) ||
		     has_duration(e->c));
}

/* Takes apart an expression of a probe whose returns are needed. */
static int take(struct cairn_trace *t, struct trace_probe *p, const struct expr **e, uint32_t value,
		struct cairn_err *err)
{
	p->returns->has_duration |= has_duration(*e);
	return take_apart(t, p, e, value, err);
}

int returns_take(struct cairn_trace *t, struct trace_probe *p, const struct expr **e,
		 uint32_t value, struct cairn_err *err)
{
	int r = returns_needs(*e) ? own_returns(t, p, err) : 1;

	return r ? (r < 0 ? r : 0) : take(t, p, e, value, err);
}

int returns_take_bytes(struct cairn_trace *t, struct trace_probe *p, struct probe_value_text *v,
		       uint32_t value, struct cairn_err *err)
{
	int r;

	if (!returns_needs(v->expr) && !returns_needs(v->n_bytes))
		return 0;
	r = own_returns(t, p, err);
	if (r == 0)
		r = take(t, p, (const struct expr **)&v->expr, value, err);
	return r < 0 ? r : take(t, p, (const struct expr **)&v->n_bytes, value, err);
}

/* Appends a part of the condition to one of the two. */
static int add_part(struct cairn_trace *t, const struct expr *part, const struct expr **to,
		    struct cairn_err *err)
{
	struct expr *both;

	if (!*to) {
		*to = part;
		return 0;
	}
	both = arena_alloc(&t->arena, sizeof(*both));
	if (!both)
		return err_nomem(err, "a probe");
	*both = (struct expr){.kind = EXPR_AND,
			      .at = part->at,
			      .a = (struct expr *)(uintptr_t)*to,
			      .b = (struct expr *)(uintptr_t)part};
	*to = both;
	return 0;
}

/* The outermost && have the order of the text in each of the two parts. */
static int split_condition(struct cairn_trace *t, struct trace_probe *p, const struct expr *e,
			   struct cairn_err *err)
{
	int r;

	if (e->kind == EXPR_AND) {
		r = split_condition(t, p, e->a, err);
		return r < 0 ? r : split_condition(t, p, e->b, err);
	}
	if (!returns_needs(e))
		return add_part(t, e, &p->returns->at_entry, err);
	r = take(t, p, &e, FETCH_CONDITION_FAULT, err);
	return r < 0 ? r : add_part(t, e, &p->returns->at_return, err);
}

int returns_take_condition(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	const struct expr *condition = p->text->condition;
	int r;

	if (!condition || (!p->returns && !returns_needs(condition)))
		return 0;
	if (p->pub.n_values > FETCH_CONDITION_FAULT)
		return err_set(err, -ERANGE,
			       "%s: with $ret or $duration a probe has at most %d values",
			       p->text->text, FETCH_CONDITION_FAULT);
	r = own_returns(t, p, err);
	r = r < 0 ? r : split_condition(t, p, condition, err);
	if (r == 0 && t->opts.shows_calls && p->returns->at_return)
		return probe_error(err, -EOPNOTSUPP, p->text->text,
				   (uint32_t)(p->text->condition_text - p->text->text),
				   "a call is shown when it begins, so its condition cannot have "
				   "$ret or $duration");
	return r;
}

uint32_t returns_class(uint32_t n_bytes)
{
#define AS_SIZE(n) n,
	static const uint32_t classes[] = {TRACE_RETURN_CLASSES(AS_SIZE)};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (n_bytes <= classes[i])
			return classes[i];
	return 0;
}

/* ---- sites ---- */

/*
 * A compiler may remove the result of a function that only this file calls, and callers do not
 * use: GCC in a clone, whose symbol has a suffix; Clang in place.
 */
static bool may_return_nothing(const struct trace_probe *p, const struct cairn_site *site)
{
	struct elf *e = binary_main(p->file->bin);

	if (convention_is_certain(e, site->at))
		return false;
	if (!site->symbol || strchr(site->symbol, '.'))
		return true;
	return p->file->kernel ? kernel_is_of_gcc(p->file->kernel) <= 0 || is_mangled(site->symbol)
			       : !convention_is_all_gcc(e);
}

/*
 * An exception that comes to a return probe ends the program. So the returns themselves are probed,
 * if there is no other way out.
 */
static int plan_exits(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		      struct cairn_err *err)
{
	struct trace_exits exits;
	const char *why;
	int r = exits_find(t, p->file, site->pub.site, &exits, &why, err);

	if (r < 0)
		return r;
	site->n_exits = exits.n;
	site->exits = exits.offsets;
	if (!why || site->pub.refused)
		return 0;
	site->pub.refused =
		arena_printf(&t->arena,
			     "its calls cannot be followed: an exception may pass it, so that a "
			     "return probe would do harm, and %s",
			     why);
	return site->pub.refused ? 0 : err_nomem(err, "a site");
}

int returns_plan_site(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		      struct cairn_err *err)
{
	struct cairn_location *result;
	struct abi_param type = {.type = p->pub.function->return_type};
	bool is_certain = !p->by_exits || convention_is_word(p->pub.types, type.type);

	if (!p->returns || p->no_returns)
		return 0;
	if (site->pub.site->kind != CAIRN_SITE_OUT_OF_LINE)
		return copies_plan_site(t, p, site, err);
	result = arena_alloc(&t->arena, sizeof(*result));
	if (!result || abi_result(p->pub.types, &type, &t->arena, result) < 0)
		return err_nomem(err, "a site");
	if (may_return_nothing(p, site->pub.site))
		result->why = CAIRN_UNAVAIL_MAY_NOT_RETURN;
	else if (!is_certain)
		/* Other languages than C return some classes by their address. */
		result->why = CAIRN_UNAVAIL_NO_CONVENTION;
	site->follows = true;
	site->result = result;
	return p->by_exits ? plan_exits(t, p, site, err) : 0;
}

enum cairn_unavailable returns_keep(const struct trace_probe *p, struct compiler *c)
{
	enum cairn_unavailable why = CAIRN_AVAILABLE;

	for (uint32_t i = 0; i < p->returns->n_kept && why == CAIRN_AVAILABLE; i++)
		why = compile_kept(c, p->returns->kept[i].expr, FETCH_KEPT + i,
				   p->returns->kept[i].value);
	return why;
}
