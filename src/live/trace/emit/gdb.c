/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as a script of gdb: breakpoints whose hits are computed in gdb's Python, and that never
 * stop
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "insn/insn.h"
#include "trace/emit/emit.h"

static const char *const text[] = {
#include "gdb.h"
};

static void put_cell(uint8_t reg, FILE *out)
{
	if (reg < FETCH_FILE_IP)
		fprintf(out, "reg(\"%s\")", insn_reg_name(reg));
	else if (reg == FETCH_FILE_IP)
		fputs("reg(\"pc\")", out);
	else
		fprintf(out, "t%u", reg);
}

static void put_number(uint64_t value, FILE *out)
{
	fprintf(out, "0x%" PRIx64, value);
}

static void put_streq(const char *want, bool is_comm, FILE *out)
{
	fputs(is_comm ? "a = int(comm() == b\"" : "a = streq(a, b\"", out);
	cairn_quote_put(want, CAIRN_QUOTE_PYTHON_BYTES, out);
	fputs("\")\n", out);
}

#define BINARY(op)  "a = (@a " op " @b) & M"
#define COMPARE(op) "a = int(@a " op " @b)"
#define SIGNED(op)  "a = int(s(@a) " op " s(@b))"

static const struct emit_language language = {
	.ops = {[FETCH_REG] = "a = @b",
		[FETCH_CONST] = "a = @b",
		[FETCH_LOAD] = "a = load(a, @n)",
		[FETCH_KNOWN] = "a = @k",
		[FETCH_SAVE] = "@t = a",
		[FETCH_SEXT] = "a = sext(a, @n)",
		[FETCH_ZEXT] = "a &= (1 << @s) - 1",
		[FETCH_NEG] = "a = -a & M",
		[FETCH_NOT] = "a = ~a & M",
		[FETCH_SHL] = "a = (@a << @b) & M if @b < 64 else 0",
		[FETCH_SHR] = "a = @a >> min(@b, 64)",
		[FETCH_SAR] = "a = (s(@a) >> min(@b, 63)) & M",
		[FETCH_DIV] = "a = sdiv(@a, @b, False)",
		[FETCH_MOD] = "a = sdiv(@a, @b, True)",
		[FETCH_UDIV] = "a = udiv(@a, @b, False)",
		[FETCH_UMOD] = "a = udiv(@a, @b, True)",
		EMIT_OPERATORS(BINARY, COMPARE, SIGNED)},
	.known = {[FETCH_PID] = "gdb.selected_inferior().pid",
		  [FETCH_TID] = "gdb.selected_thread().ptid[1]",
		  [FETCH_THREAD_POINTER] = "reg(\"fs_base\")"},
	.acc = "a",
	.if_true = "if a:",
	.if_false = "if not a:",
	.otherwise = "else:",
	.put_cell = put_cell,
	.put_number = put_number,
	.put_streq = put_streq,
};

void cairn_emit_gdb_address(FILE *out)
{
	/* The kernel writes a newline of a path as \012. */
	fputs("def cairn_address(path, offset):\n"
	      "    path = path.replace(b\"\\n\", b\"\\\\012\")\n"
	      "    pid = gdb.selected_inferior().pid\n"
	      "    if not pid:\n"
	      "        raise gdb.GdbError(\"start the program first: the sites are set in its "
	      "memory\")\n"
	      "    for line in open(\"/proc/%d/maps\" % pid, \"rb\"):\n"
	      "        words = line.rstrip(b\"\\n\").split(None, 5)\n"
	      "        if len(words) < 6 or words[5] != path:\n"
	      "            continue\n"
	      "        start, end = (int(word, 16) for word in words[0].split(b\"-\"))\n"
	      "        first = int(words[2], 16)\n"
	      "        if first <= offset < first + end - start:\n"
	      "            return start + offset - first\n"
	      "    raise gdb.GdbError(ascii(path)[2:-1] + \" is not mapped yet\")\n",
	      out);
}

/* A name as it is shown, between the quotation marks of a string. */
static void put_shown(const char *name, FILE *out)
{
	ssize_t n = cairn_quote(name, CAIRN_QUOTE_TEXT, NULL, 0);
	char *safe = n < 0 ? NULL : malloc((size_t)n + 1);

	fputc('"', out);
	if (safe) {
		cairn_quote(name, CAIRN_QUOTE_TEXT, safe, (size_t)n + 1);
		cairn_quote_put(safe, CAIRN_QUOTE_PYTHON, out);
	}
	fputc('"', out);
	free(safe);
}

/* ---- the functions of a site ---- */

static void put_function(const struct emission *e, const char *kind, uint32_t site, uint32_t value)
{
	fprintf(e->out, "\n\ndef %s_%" PRIu32 "_%" PRIu32 "():\n\ta = 0\n", kind, site, value);
	emit_lift(&language, &e->value, 1, e->out);
	fputs("\treturn a\n", e->out);
}

static const char *why_missing(const struct emission *e)
{
	return e->value.form == EMIT_MISSING ? e->value.why : emit_refuses(&language, &e->value);
}

static void put_functions(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];

	if (emit_condition(e, site, &e->value))
		put_function(e, "condition", n, 0);
	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		emit_value(e, site, i, &e->value);
		if (!why_missing(e))
			put_function(e, "value", n, i);
	}
}

/* The value as text. */
static void put_call(struct emission *e, const struct trace_site *site, uint32_t n, uint32_t i)
{
	emit_value(e, site, i, &e->value);
	const char *why = why_missing(e);
	if (why) {
		char shown[256];
		snprintf(shown, sizeof(shown), "<unavailable: %s>", why);
		put_shown(shown, e->out);
	} else if (e->value.form == EMIT_STRING) {
		fprintf(e->out, "value(lambda: text(value_%" PRIu32 "_%" PRIu32 "(), %" PRIu32 "))",
			n, i, e->value.most);
	} else {
		fprintf(e->out, "value(lambda: number(value_%" PRIu32 "_%" PRIu32 "(), %s, %s))", n,
			i, e->value.is_signed ? "True" : "False",
			e->value.is_hex ? "True" : "False");
	}
}

static void put_event(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	const char *const separators[] = {": ", ", "};
	char title[EMIT_TITLE_MAX];

	emit_title(e, site, title, sizeof(title));
	fputs("\tsay(", e->out);
	put_shown(title, e->out);
	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		fprintf(e->out, " + \"%s\" + ", separators[i > 0]);
		put_shown(p->pub.values[i].text, e->out);
		fputs(" + \"=\" + ", e->out);
		put_call(e, site, n, i);
	}
	fputs(")\n", e->out);
}

/* ---- sums ---- */

static void put_key(struct emission *e, const struct trace_site *site, uint32_t n,
		    const struct aggregate_key *key)
{
	char title[EMIT_TITLE_MAX];

	put_shown(key->text, e->out);
	fputs(" + \"=\" + ", e->out);
	switch (key->kind) {
	case KEY_PID:
		fputs("str(gdb.selected_inferior().pid)", e->out);
		break;
	case KEY_TID:
		fputs("str(gdb.selected_thread().ptid[1])", e->out);
		break;
	case KEY_COMM:
		fputs("shown(comm(), False)", e->out);
		break;
	case KEY_SITE:
		emit_title(e, site, title, sizeof(title));
		put_shown(title, e->out);
		break;
	default:
		put_call(e, site, n, e->t->aggregates->n_numbers + key->value);
	}
}

static void put_sums(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct aggregates *a = e->t->aggregates;
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];

	fputs("\tkeys = (", e->out);
	put_shown(p->pub.function->name, e->out);
	for (uint32_t i = 0; i < a->n_keys; i++) {
		fputs(", ", e->out);
		put_key(e, site, n, &a->keys[i]);
	}
	fputs(",)\n\tnumbers = [", e->out);
	for (uint32_t i = 0; i < a->n_numbers; i++) {
		emit_value(e, site, i, &e->value);
		fprintf(e->out, "%sfor_sums(value_%" PRIu32 "_%" PRIu32 ", %s)", i ? ", " : "", n,
			i, e->value.is_signed ? "True" : "False");
	}
	fputs("]\n\trows.setdefault(keys, Row(items)).add(items, numbers)\n", e->out);
}

static void put_items(const struct emission *e)
{
	const struct aggregates *a = e->t->aggregates;

	fputs("\n\nitems = [\n", e->out);
	for (uint32_t i = 0; a && i < a->n_items; i++) {
		const struct aggregate_item *item = &a->items[i];
		fprintf(e->out, "    (\"%s\", ", emit_aggregate_name(item->kind));
		put_shown(item->text ? item->text : "", e->out);
		fprintf(e->out, ", %" PRIu32, item->number);
		if (item->kind == CAIRN_AGGREGATE_LHIST)
			fprintf(e->out, ", (%" PRId64 ", %" PRId64 ", %" PRId64 ")", item->range[0],
				item->range[1], item->range[2]);
		fputs("),\n", e->out);
	}
	fputs("]\n", e->out);
}

/* ---- the script ---- */

static void put_site(struct emission *e, const struct trace_site *site, uint32_t n)
{
	char *path = emit_path(e->t->probes.p[site->pub.probe]->file);

	put_functions(e, site, n);
	fprintf(e->out, "\n\ndef hit_%" PRIu32 "():\n", n);
	if (emit_condition(e, site, &e->value))
		fprintf(e->out, "\tif not condition_%" PRIu32 "_0():\n\t\treturn\n", n);
	if (e->t->aggregates)
		put_sums(e, site, n);
	else
		put_event(e, site, n);
	fputs("\n\nSite(b\"", e->out);
	cairn_quote_put(path ? path : "", CAIRN_QUOTE_PYTHON_BYTES, e->out);
	fprintf(e->out, "\", 0x%" PRIx64 ", hit_%" PRIu32 ")\n", site->pub.off.v, n);
	free(path);
}

static int write_script(struct emission *e)
{
	fputs("# gdb -p PID -x THIS-FILE -ex continue\n"
	      "# gdb -ex 'break main' -ex run -x THIS-FILE -ex continue --args PROGRAM\n"
	      "set pagination off\n"
	      "python\n",
	      e->out);
	cairn_emit_gdb_address(e->out);
	fputs("\n\n", e->out);
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		fputs(text[i], e->out);
	put_items(e);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			put_site(e, e->t->sites.p[i], (uint32_t)i);
	fputs("end\n", e->out);
	return 0;
}

const struct emit_tool emit_gdb = {
	.pub = {"gdb", "#", CAIRN_QUOTE_PYTHON_BYTES},
	.language = &language,
	.has_condition = true,
	.aggregates = 1u << CAIRN_AGGREGATE_COUNT | 1u << CAIRN_AGGREGATE_SUM |
		      1u << CAIRN_AGGREGATE_AVG | 1u << CAIRN_AGGREGATE_MIN |
		      1u << CAIRN_AGGREGATE_MAX | 1u << CAIRN_AGGREGATE_HIST |
		      1u << CAIRN_AGGREGATE_LHIST,
	.keys = 1u << KEY_PID | 1u << KEY_TID | 1u << KEY_COMM | 1u << KEY_SITE | 1u << KEY_VALUE,
	.instead = "cairn trace itself does it",
	.write = write_script,
};
