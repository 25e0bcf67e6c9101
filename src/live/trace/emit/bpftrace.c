/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as a script of bpftrace (0.17 and later)
 *
 * bpftrace reads 0 where memory cannot be read, and does not tell. So a computed index, which
 * Cairn checks against the array's bounds by such a fault, is refused; the script says what it
 * shows of the rest.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/emit/emit.h"

/* The number of values that one printf takes, and the longest literal that is a key. */
enum { VALUES_MAX = 6, KEY_TEXT_MAX = 60, STRLEN_DEFAULT = 64, STRLEN_MAX = 200 };

static const char *const registers[] = {
	"ax", "dx",  "cx",  "bx",  "si",  "di",  "bp",  "sp", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip",
};

static void put_cell(uint8_t reg, FILE *out)
{
	if (reg <= FETCH_FILE_IP)
		fprintf(out, "reg(\"%s\")", registers[reg]);
	else
		fprintf(out, "$t%u", reg);
}

/* Its literals have no sign, and 63 bits. */
static void put_number(uint64_t value, FILE *out)
{
	int64_t v = (int64_t)value;

	if (v == INT64_MIN)
		fputs("(0 - 9223372036854775807 - 1)", out);
	else if (v < 0)
		fprintf(out, "(0 - %" PRId64 ")", -v);
	else
		fprintf(out, "%" PRId64, v);
}

static void put_streq(const char *text, bool is_comm, FILE *out)
{
	fprintf(out, "if (%s == \"", is_comm ? "comm" : "str($a)");
	cairn_quote_put(text, CAIRN_QUOTE_FORMAT, out);
	fputs("\") { $a = (uint64)1; } else { $a = (uint64)0; }\n", out);
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || strchr("\"\\%", *text))
			return false;
	return true;
}

static const char *refuses(const struct fetch_op *op)
{
	bool is_shift = op->code == FETCH_SHL || op->code == FETCH_SHR || op->code == FETCH_SAR;
	bool is_division = op->code >= FETCH_DIV && op->code <= FETCH_UMOD;
	bool has_size = op->code == FETCH_LOAD || op->code == FETCH_SEXT || op->code == FETCH_ZEXT;
	char text[FETCH_STREQ_BYTES + 1] = "";

	if (has_size && (op->size == 0 || op->size & (op->size - 1)))
		return "it reads numbers of 1, 2, 4 and 8 bytes";
	if (is_shift && (op->flags || op->imm > 63))
		return "its shifts by 64 bits and more are not C's";
	if (is_division && (op->flags || !op->imm))
		return "it cannot leave a value out when the divisor is 0 or the index not one of "
		       "the array";
	if (op->code != FETCH_STREQ)
		return NULL;
	memcpy(text, op + 1, FETCH_STREQ_BYTES);
	return is_plain(text) ? NULL
			      : "it compares strings of printable letters without \", \\ "
				"and %";
}

#define BINARY(op)  "$a = (uint64)(@a " op " @b);"
#define COMPARE(op) "if (@a " op " @b) { $a = (uint64)1; } else { $a = (uint64)0; }"
#define SIGNED(op)  "if ((int64)@a " op " (int64)@b) { $a = (uint64)1; } else { $a = (uint64)0; }"

static const struct emit_language language = {
	.ops = {[FETCH_REG] = "$a = (uint64)@b;",
		[FETCH_CONST] = "$a = (uint64)@b;",
		[FETCH_LOAD] = "$a = (uint64)(*(uint@s*)uptr($a));",
		[FETCH_KNOWN] = "$a = (uint64)@k;",
		[FETCH_SAVE] = "@t = $a;",
		[FETCH_SEXT] = "$a = (uint64)(int64)(int@s)$a;",
		[FETCH_ZEXT] = "$a = (uint64)(uint@s)$a;",
		[FETCH_NEG] = "$a = (uint64)(0 - $a);",
		[FETCH_NOT] = "$a = (uint64)(~$a);",
		[FETCH_SHL] = BINARY("<<"),
		[FETCH_SHR] = BINARY(">>"),
		/* Its >> shifts zeroes in; of a negative number, all bits are inverted before and after. */
		[FETCH_SAR] = "$a = (uint64)(((@a ^ (0 - (@a >> 63))) >> @b) ^ (0 - (@a >> 63)));",
		[FETCH_UDIV] = BINARY("/"),
		[FETCH_UMOD] = BINARY("%"),
		EMIT_OPERATORS(BINARY, COMPARE, SIGNED)},
	.known = {[FETCH_PID] = "pid",
		  [FETCH_TID] = "tid",
		  [FETCH_CPU] = "cpu",
		  [FETCH_UID] = "uid",
		  [FETCH_GID] = "gid",
		  [FETCH_CGROUP] = "cgroup"},
	.acc = "$a",
	.if_true = "if ($a != 0) {",
	.if_false = "if ($a == 0) {",
	.otherwise = "} else {",
	.end = "}",
	.put_cell = put_cell,
	.put_number = put_number,
	.put_streq = put_streq,
	.refuses = refuses,
};

void cairn_emit_bpftrace_head(FILE *out, const char *path, struct cairn_vaddr at)
{
	fputs("\nuprobe:\"", out);
	cairn_quote_put(path, CAIRN_QUOTE_BPFTRACE, out);
	fprintf(out, "\":0x%" PRIx64 "\n", at.v);
}

static const char *refuses_value(const struct emit_value *v)
{
	return v->form == EMIT_STRING && v->most >= STRLEN_MAX
		       ? "its strings have at most 199 bytes; make --str-len smaller"
		       : NULL;
}

static const char *refuses_item(const struct aggregate_item *item)
{
	return item->kind == CAIRN_AGGREGATE_LHIST && item->range[0] < 0
		       ? "its lhist begins at 0 or later"
		       : NULL;
}

/* ---- values ---- */

/* Leaves it in $vN. */
static void put_value(const struct emission *e, uint32_t n, unsigned int depth)
{
	emit_lift(&language, &e->value, depth, e->out);
	emit_tabs(depth, e->out);
	fprintf(e->out, "$v%" PRIu32 " = $a;\n", n);
}

static void put_reference(const struct emit_value *v, uint32_t n, char *buf, size_t size)
{
	if (v->form == EMIT_STRING)
		snprintf(buf, size, "str($v%" PRIu32 ", %" PRIu32 ")", n, v->most + 1);
	else
		snprintf(buf, size, "%s$v%" PRIu32, v->is_signed ? "(int64)" : "", n);
}

static const char *conversion(const struct emit_value *v)
{
	if (v->form == EMIT_STRING)
		return "%s";
	if (v->is_hex)
		return "0x%lx";
	return v->is_signed ? "%ld" : "%lu";
}

static void put_missing(const char *why, FILE *out)
{
	fputc('<', out);
	cairn_quote_put(why, CAIRN_QUOTE_FORMAT, out);
	fputc('>', out);
}

/* A listed value that has no room was refused. */
static const char *why_missing(const struct emission *e, uint32_t n)
{
	const char *why = e->value.form == EMIT_MISSING ? e->value.why : NULL;

	if (!why)
		why = emit_refuses(&language, &e->value);
	if (!why)
		why = refuses_value(&e->value);
	return why || n < VALUES_MAX ? why : "too many values";
}

static void put_event(struct emission *e, const struct trace_site *site, unsigned int depth)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	const char *const separators[] = {": ", ", "};
	char title[EMIT_TITLE_MAX], text[80], *format = NULL, *values = NULL;
	size_t n_format = 0, n_values = 0;
	FILE *out = open_memstream(&format, &n_format), *list = open_memstream(&values, &n_values);
	uint32_t n = 0;

	for (uint32_t i = 0; out && list && i < p->pub.n_values; i++) {
		emit_value(e, site, i, &e->value);
		fputs(separators[i > 0], out);
		cairn_quote_put(p->pub.values[i].text, CAIRN_QUOTE_FORMAT, out);
		fputc('=', out);
		const char *why = why_missing(e, n);
		if (why) {
			put_missing(why, out);
			continue;
		}
		put_value(e, i, depth);
		put_reference(&e->value, i, text, sizeof(text));
		fputs(conversion(&e->value), out);
		fprintf(list, ", %s", text);
		n++;
	}
	if (out && list && !fclose(out) && !fclose(list)) {
		emit_title(e, site, title, sizeof(title));
		emit_tabs(depth, e->out);
		fputs("printf(\"", e->out);
		cairn_quote_put(title, CAIRN_QUOTE_FORMAT, e->out);
		fprintf(e->out, "%s\\n\"%s);\n", format, values);
	}
	free(format);
	free(values);
}

/* ---- sums ---- */

static void put_key_text(const struct emission *e, const char *text)
{
	char cut[KEY_TEXT_MAX];

	/* As it is shown: a cut escape would be another text. */
	cairn_quote(text, CAIRN_QUOTE_TEXT, cut, sizeof(cut));
	fputc('"', e->out);
	cairn_quote_put(cut, CAIRN_QUOTE_FORMAT, e->out);
	fputc('"', e->out);
}

static void put_key(const struct emission *e, const struct trace_site *site,
		    const struct aggregate_key *key, const char *reference)
{
	static const char *const words[] = {
		[KEY_PID] = "pid", [KEY_TID] = "tid",       [KEY_COMM] = "comm",
		[KEY_CPU] = "cpu", [KEY_CGROUP] = "cgroup", [KEY_STACK] = "ustack"};
	char title[EMIT_TITLE_MAX];

	if (key->kind == KEY_VALUE) {
		fputs(reference, e->out);
	} else if (key->kind == KEY_SITE) {
		emit_title(e, site, title, sizeof(title));
		put_key_text(e, title);
	} else {
		fputs(words[key->kind], e->out);
	}
}

/* "[KEY, ...]", or nothing. Each function has keys of its own. */
static void put_keys(const struct emission *e, const struct trace_site *site, char references[][80])
{
	const struct aggregates *a = e->t->aggregates;
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	const char *separator = "[";

	if (e->t->probes.n > 1) {
		fputs(separator, e->out);
		put_key_text(e, p->pub.function->name);
		separator = ", ";
	}
	for (uint32_t i = 0; i < a->n_keys; i++) {
		fputs(separator, e->out);
		put_key(e, site, &a->keys[i], references[i]);
		separator = ", ";
	}
	if (*separator == ',')
		fputc(']', e->out);
}

static void put_item(const struct emission *e, const struct aggregate_item *item, uint32_t i,
		     const struct trace_site *site, char references[][80], bool is_signed)
{
	emit_tabs(2, e->out);
	fprintf(e->out, "@%s%" PRIu32, emit_aggregate_name(item->kind), i + 1);
	put_keys(e, site, references);
	fprintf(e->out, " = %s(", emit_aggregate_name(item->kind));
	if (item->kind != CAIRN_AGGREGATE_COUNT)
		fprintf(e->out, "%s$v%" PRIu32, is_signed ? "(int64)" : "", item->number);
	if (item->kind == CAIRN_AGGREGATE_LHIST)
		fprintf(e->out, ", %" PRId64 ", %" PRId64 ", %" PRId64, item->range[0],
			item->range[1], item->range[2]);
	fputs(");\n", e->out);
}

static void put_sums(struct emission *e, const struct trace_site *site)
{
	const struct aggregates *a = e->t->aggregates;
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	char references[AGGREGATE_KEYS_MAX][80];

	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		emit_value(e, site, i, &e->value);
		put_value(e, i, 2);
		for (uint32_t k = 0; k < a->n_keys; k++)
			if (a->keys[k].kind == KEY_VALUE && a->n_numbers + a->keys[k].value == i)
				put_reference(&e->value, i, references[k], sizeof(references[k]));
	}
	for (uint32_t i = 0; i < a->n_items; i++)
		put_item(e, &a->items[i], i, site, references, p->is_signed >> i & 1);
}

/* ---- the script ---- */

static void put_processes(const struct emission *e)
{
	const struct cairn_trace_opts *o = &e->t->opts;
	const char *separator = "/";

	if (o->pid && !o->n_pids) {
		fprintf(e->out, "/pid == %d", o->pid);
		separator = " || ";
	} else if (o->argv && !o->n_pids) {
		fputs("/pid == cpid", e->out);
		separator = " || ";
	}
	for (size_t i = 0; i < o->n_pids; i++) {
		fprintf(e->out, "%spid == %d", separator, o->pids[i]);
		separator = " || ";
	}
	if (*separator == ' ')
		fputs("/\n", e->out);
}

static void put_site(struct emission *e, const struct trace_site *site)
{
	char *path = emit_path(e->t->probes.p[site->pub.probe]->file);

	cairn_emit_bpftrace_head(e->out, path ? path : "", site->pub.at);
	free(path);
	put_processes(e);
	fputs("{\n\t$a = (uint64)1;\n", e->out);
	if (emit_condition(e, site, &e->value))
		emit_lift(&language, &e->value, 1, e->out);
	fputs("\tif ($a != 0) {\n", e->out);
	if (e->t->aggregates)
		put_sums(e, site);
	else
		put_event(e, site, 2);
	fputs("\t}\n}\n", e->out);
}

static int write_script(struct emission *e)
{
	uint32_t length = e->t->string_shown + 1;

	fputs("// ", e->out);
	if (length > STRLEN_DEFAULT)
		fprintf(e->out, "BPFTRACE_STRLEN=%" PRIu32 " ", length);
	fprintf(e->out, "sudo bpftrace --unsafe THIS-FILE%s\n",
		e->t->opts.argv ? " -c 'COMMAND'" : "");
	fputs("// --unsafe, because most sites are in the middle of a symbol. A bpftrace that was\n"
	      "// built without bcc's offsets (Debian 12's) takes those of stripped files only.\n"
	      "// bpftrace shows 0 or an empty string where memory cannot be read, and counts it.\n"
	      "// Its sums are signed and of 64 bits: not those of numbers of 2^63 and more.\n",
	      e->out);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			put_site(e, e->t->sites.p[i]);
	return 0;
}

const struct emit_tool emit_bpftrace = {
	.pub = {"bpftrace", "//", CAIRN_QUOTE_BPFTRACE},
	.language = &language,
	.has_condition = true,
	.aggregates = 1u << CAIRN_AGGREGATE_COUNT | 1u << CAIRN_AGGREGATE_SUM |
		      1u << CAIRN_AGGREGATE_AVG | 1u << CAIRN_AGGREGATE_MIN |
		      1u << CAIRN_AGGREGATE_MAX | 1u << CAIRN_AGGREGATE_HIST |
		      1u << CAIRN_AGGREGATE_LHIST,
	.keys = 1u << KEY_PID | 1u << KEY_TID | 1u << KEY_COMM | 1u << KEY_CPU | 1u << KEY_CGROUP |
		1u << KEY_SITE | 1u << KEY_STACK | 1u << KEY_VALUE,
	.instead = "cairn trace itself does it",
	.refuses = refuses_value,
	.refuses_item = refuses_item,
	.write = write_script,
};
