/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as "perf probe" commands
 *
 * A fetch argument of the kernel is %REG, \CONST or +OFF(FETCH), and nothing else. What operations
 * amount to that is written so: a register or memory, and a displacement that no brackets hold yet.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/emit/emit.h"

/* Probes with longer names of arguments are refused (MAX_ARG_NAME_LEN). */
enum { NAME_MAX_KERNEL = 31, FETCH_TEXT_MAX = 512 };

struct argument {
	char base[FETCH_TEXT_MAX];
	int64_t displacement;
	bool is_constant; /* the displacement alone */
	uint32_t loaded;  /* bytes of the load that base ends with; 0: no load */
	uint32_t kept;    /* bytes that are left of it */
	bool is_signed;
};

static const char *const registers[] = {
	"ax", "dx",  "cx",  "bx",  "si",  "di",  "bp",  "sp", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip",
};

static bool wrap(struct argument *a, uint32_t size)
{
	char was[FETCH_TEXT_MAX];

	/* A pointer on the way is read with 8 bytes; a narrower value can only be the last. */
	if (a->is_constant || (a->loaded && a->loaded != 8) || a->kept != 8)
		return false;
	memcpy(was, a->base, sizeof(was));
	int n = snprintf(a->base, sizeof(a->base), "%+" PRId64 "(%s)", a->displacement, was);
	a->displacement = 0;
	a->loaded = size;
	return n > 0 && (size_t)n < sizeof(a->base);
}

static bool extend(struct argument *a, const struct fetch_op *op)
{
	uint32_t has = a->loaded ? a->loaded : 8;

	a->is_signed = op->code == FETCH_SEXT;
	a->kept = op->size;
	/* A sum in a register has no name. */
	return op->size <= has && (op->size & (op->size - 1)) == 0 &&
	       (!a->displacement || a->is_constant);
}

static bool step(struct argument *a, const struct fetch_op *op)
{
	switch (op->code) {
	case FETCH_REG:
		snprintf(a->base, sizeof(a->base), "%%%s",
			 op->reg <= FETCH_FILE_IP ? registers[op->reg] : "");
		return op->reg <= FETCH_FILE_IP;
	case FETCH_CONST:
		a->is_constant = true;
		a->displacement = (int64_t)op->imm;
		return true;
	case FETCH_ADD:
	case FETCH_SUB:
		a->displacement = (int64_t)((uint64_t)a->displacement +
					    (op->code == FETCH_ADD ? op->imm : -op->imm));
		return !op->flags && a->kept == 8 && (!a->loaded || a->loaded == 8);
	case FETCH_LOAD:
		return op->size <= 8 && !(op->size & (op->size - 1)) && wrap(a, op->size);
	case FETCH_SEXT:
	case FETCH_ZEXT:
		return extend(a, op);
	default:
		return false;
	}
}

static bool put_fetch(const struct argument *a, const struct emit_value *v, char *buf, size_t size)
{
	/* perf script shows a negative s16 as 65534; its bits are not misread in hexadecimal. */
	bool narrow = v->is_signed && a->kept < 4;
	const char *sign = v->is_hex || narrow ? "x" : v->is_signed ? "s" : "u";
	int n;

	if (a->is_constant)
		n = snprintf(buf, size, "\\%" PRId64 ":%s%u", a->displacement,
			     v->is_signed ? "s" : sign, a->kept < 4 ? 32 : a->kept * 8);
	else
		n = snprintf(buf, size, "%s:%s%u", a->base, sign, a->kept * 8);
	return n > 0 && (size_t)n < size && (a->is_constant || !a->displacement);
}

/* As a fetch argument of a trace event, with its type after a colon. */
static bool argument_of(const struct emit_value *v, char *buf, size_t size)
{
	struct argument a = {.kept = 8};

	for (uint32_t i = 0; i < v->n; i++)
		if (!step(&a, &v->ops[i]))
			return false;
	if (v->form == EMIT_STRING) {
		int n = wrap(&a, 1) ? snprintf(buf, size, "%s:string", a.base) : -1;
		return n > 0 && (size_t)n < size;
	}
	return v->form == EMIT_NUMBER && v->n && put_fetch(&a, v, buf, size);
}

static const char *refuses_value(const struct emit_value *v)
{
	char text[FETCH_TEXT_MAX];

	return argument_of(v, text, sizeof(text))
		       ? NULL
		       : "an argument of perf is a register, a constant, or memory at one and "
			 "offsets";
}

/* ---- the script ---- */

void cairn_emit_perf_head(FILE *out, const char *path, const char *name, unsigned int number,
			  struct cairn_vaddr at)
{
	char plain[64];

	/* A name in a C++ namespace is no event name; the number keeps cut names apart. */
	cairn_emit_name(name, 0, plain, sizeof(plain) - 12);
	fputs("perf probe -q -x '", out);
	cairn_quote_put(path, CAIRN_QUOTE_SH, out);
	fprintf(out, "' 'cairn:%s_%u=0x%" PRIx64, plain, number, at.v);
}

static void put_missing(const struct emission *e, const char *name)
{
	fputs("#   ", e->out);
	cairn_quote_put(name, CAIRN_QUOTE_COMMENT, e->out);
	fprintf(e->out, ": %s\n",
		e->value.form == EMIT_MISSING ? e->value.why : refuses_value(&e->value));
}

static void put_arguments(struct emission *e, const struct trace_site *site, bool comments)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	char text[FETCH_TEXT_MAX], name[NAME_MAX_KERNEL + 1];

	for (uint32_t i = 0; i < p->pub.n_values && !e->t->aggregates; i++) {
		emit_value(e, site, i, &e->value);
		bool has = argument_of(&e->value, text, sizeof(text));
		if (!has && comments)
			put_missing(e, p->pub.values[i].text);
		if (!has || comments)
			continue;
		cairn_emit_name(p->pub.values[i].text, i, name, sizeof(name));
		fprintf(e->out, " %s=%s", name, text);
	}
}

static void put_site(struct emission *e, const struct trace_site *site, unsigned int number)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	char title[EMIT_TITLE_MAX], *path = emit_path(p->file);

	emit_title(e, site, title, sizeof(title));
	fputs("# ", e->out);
	cairn_quote_put(title, CAIRN_QUOTE_COMMENT, e->out);
	fputc('\n', e->out);
	put_arguments(e, site, true);
	cairn_emit_perf_head(e->out, path ? path : "", p->pub.function->name, number, site->pub.at);
	put_arguments(e, site, false);
	fputs("'\n", e->out);
	free(path);
}

static void put_processes(const struct emission *e)
{
	const struct cairn_trace_opts *o = &e->t->opts;
	const char *separator = "-p ";

	if (o->pid && !o->n_pids) {
		fprintf(e->out, "-p %d", o->pid);
		separator = ",";
	}
	for (size_t i = 0; i < o->n_pids; i++) {
		fprintf(e->out, "%s%d", separator, o->pids[i]);
		separator = ",";
	}
	if (*separator == '-')
		fputs(o->argv ? "COMMAND" : "-a", e->out);
}

static int write_script(struct emission *e)
{
	fprintf(e->out, "# sudo sh THIS-FILE; sudo perf %s -e 'cairn:*' ",
		e->t->aggregates ? "stat" : "record");
	put_processes(e);
	fputs("; sudo perf probe -d 'cairn:*'\nset -e\n", e->out);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			put_site(e, e->t->sites.p[i], (unsigned int)i + 1);
	return 0;
}

const struct emit_tool emit_perf = {
	.pub = {"perf", "#", CAIRN_QUOTE_SH},
	.aggregates = 1u << CAIRN_AGGREGATE_COUNT,
	.instead = "--emit bpftrace can do it",
	.refuses = refuses_value,
	.write = write_script,
};
