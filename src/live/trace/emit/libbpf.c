/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as one file of C for libbpf: compiled for BPF it is the kernel's side, else the program
 * that loads that, sets the probes and prints
 *
 * Each site has a program of its own. The parts that do not depend on the trace are in
 * libbpf_kernel.txt and libbpf_user.txt.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/emit/emit.h"

static const char *const kernel_text[] = {
#include "libbpf_kernel.h"
};
static const char *const user_text[] = {
#include "libbpf_user.h"
};

enum { TEXTS_MAX = 8, BUCKETS_OF_POWERS = 129 };

static const char *const registers[] = {
	"ax", "dx",  "cx",  "bx",  "si",  "di",  "bp",  "sp", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip",
};

static void put_cell(uint8_t reg, FILE *out)
{
	if (reg <= FETCH_FILE_IP)
		fprintf(out, "r->%s", registers[reg]);
	else
		fprintf(out, "t[%u]", reg - FETCH_SLOT);
}

static void put_number(uint64_t value, FILE *out)
{
	fprintf(out, "0x%" PRIx64 "ULL", value);
}

/* As words, so that no letter of it is one of C's. */
static void put_streq(const char *text, bool is_comm, FILE *out)
{
	uint64_t words[FETCH_STREQ_BYTES / 8];

	memcpy(words, text, sizeof(words));
	fprintf(out, "if (%s(&a", is_comm ? "streq_comm" : "streq");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		fprintf(out, ", 0x%" PRIx64 "ULL", words[i]);
	fputs(")) return -1;\n", out);
}

#define BINARY(op)     "a = @a " op " @b;"
#define SIGNED(op)     "a = (__s64)@a " op " (__s64)@b;"
#define DIVIDE(result) "if (!@b) return -1; a = " result ";"

static const struct emit_language language = {
	.ops = {[FETCH_REG] = "a = @b;",
		[FETCH_CONST] = "a = @b;",
		[FETCH_LOAD] = "if (load(&a, @n)) return -1;",
		[FETCH_KNOWN] = "a = @k;",
		[FETCH_SAVE] = "@t = a;",
		[FETCH_SEXT] = "a = (__u64)((__s64)(a << @m) >> @m);",
		[FETCH_ZEXT] = "a = a << @m >> @m;",
		[FETCH_NEG] = "a = -a;",
		[FETCH_NOT] = "a = ~a;",
		[FETCH_SHL] = "a = @b > 63 ? 0 : @a << (@b & 63);",
		[FETCH_SHR] = "a = @b > 63 ? 0 : @a >> (@b & 63);",
		[FETCH_SAR] = "a = (__u64)((__s64)@a >> (@b > 63 ? 63 : @b & 63));",
		[FETCH_DIV] = DIVIDE("sdiv(@a, @b, 0)"),
		[FETCH_MOD] = DIVIDE("sdiv(@a, @b, 1)"),
		[FETCH_UDIV] = DIVIDE("@a / @b"),
		[FETCH_UMOD] = DIVIDE("@a % @b"),
		EMIT_OPERATORS(BINARY, BINARY, SIGNED)},
	.known = {[FETCH_PID] = "(bpf_get_current_pid_tgid() >> 32)",
		  [FETCH_TID] = "(__u32)bpf_get_current_pid_tgid()",
		  [FETCH_CPU] = "bpf_get_smp_processor_id()",
		  [FETCH_UID] = "(__u32)bpf_get_current_uid_gid()",
		  [FETCH_GID] = "bpf_get_current_uid_gid() >> 32",
		  [FETCH_CGROUP] = "bpf_get_current_cgroup_id()"},
	.acc = "a",
	.if_true = "if (a) {",
	.if_false = "if (!a) {",
	.otherwise = "} else {",
	.end = "}",
	.put_cell = put_cell,
	.put_number = put_number,
	.put_streq = put_streq,
};

static void put_all(const char *const *lines, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++)
		fputs(lines[i], out);
}

static void put_string(const char *text, FILE *out)
{
	fputc('"', out);
	cairn_quote_put(text, CAIRN_QUOTE_C, out);
	fputc('"', out);
}

/* As it is shown on a terminal. */
static void put_shown(const char *name, FILE *out)
{
	ssize_t n = cairn_quote(name, CAIRN_QUOTE_TEXT, NULL, 0);
	char *safe = n < 0 ? NULL : malloc((size_t)n + 1);

	if (safe)
		cairn_quote(name, CAIRN_QUOTE_TEXT, safe, (size_t)n + 1);
	put_string(safe ? safe : "", out);
	free(safe);
}

/* ---- the kernel's side ---- */

static void put_function(const struct emission *e, const char *kind, uint32_t site, uint32_t value)
{
	fprintf(e->out,
		"\ninline_ int %s_%" PRIu32 "_%" PRIu32
		"(const struct regs *r, __u64 *to)\n{\n\t__u64 a = 0, t[%d] = {};\n\n",
		kind, site, value, FETCH_KEPT - FETCH_SLOT);
	emit_lift(&language, &e->value, 1, e->out);
	fputs("\t*to = a;\n\treturn 0;\n}\n", e->out);
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

static void put_condition(struct emission *e, const struct trace_site *site, uint32_t n)
{
	if (!emit_condition(e, site, &e->value))
		return;
	fprintf(e->out,
		"\tif (condition_%" PRIu32 "_0(r, &n)) {\n\t\tcount(UNDECIDED);\n\t\treturn 0;\n"
		"\t}\n\tif (!n) {\n\t\tcount(FILTERED);\n\t\treturn 0;\n\t}\n",
		n);
}

static void put_event_values(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	uint32_t n_texts = 0;

	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		emit_value(e, site, i, &e->value);
		if (why_missing(e))
			continue;
		fprintf(e->out, "\tif (value_%" PRIu32 "_%" PRIu32 "(r, &n)", n, i);
		if (e->value.form == EMIT_STRING)
			fprintf(e->out,
				" || bpf_probe_read_user_str(e->texts[%" PRIu32 "], %" PRIu32
				", (void *)n) < 0",
				n_texts++, e->value.most + 2);
		fprintf(e->out,
			")\n\t\te->faults |= 1u << %" PRIu32 ";\n\te->numbers[%" PRIu32 "] = n;\n",
			i, i);
	}
}

static void put_event(struct emission *e, const struct trace_site *site, uint32_t n)
{
	fprintf(e->out,
		"\tstruct event *e = event_begin(%" PRIu32 ");\n\n\tif (!e)\n\t\treturn 0;\n", n);
	put_event_values(e, site, n);
	fputs("\tbpf_ringbuf_submit(e, 0);\n\treturn 0;\n", e->out);
}

static void put_key_known(const struct emission *e, const struct aggregate_key *key, uint32_t i)
{
	static const char *const words[] = {[KEY_PID] = "bpf_get_current_pid_tgid() >> 32",
					    [KEY_TID] = "(__u32)bpf_get_current_pid_tgid()",
					    [KEY_CPU] = "bpf_get_smp_processor_id()",
					    [KEY_CGROUP] = "bpf_get_current_cgroup_id()"};

	fprintf(e->out, "\tk->numbers[%" PRIu32 "] = %s;\n", i, words[key->kind]);
}

static void put_key_value(struct emission *e, uint32_t n, uint32_t value, uint32_t i,
			  uint32_t *n_texts)
{
	fprintf(e->out, "\tif (value_%" PRIu32 "_%" PRIu32 "(r, &n)", n, value);
	if (e->value.form != EMIT_STRING) {
		fprintf(e->out,
			")\n\t\tk->faults |= 1u << %" PRIu32 ";\n\telse\n\t\tk->numbers[%" PRIu32
			"] = n;\n",
			i, i);
		return;
	}
	fprintf(e->out,
		")\n\t\tk->faults |= 1u << %" PRIu32
		";\n\telse if (!n)\n\t\tk->is_null |= 1u << %" PRIu32
		";\n\telse if (bpf_probe_read_user_str(k->texts[%" PRIu32 "], %" PRIu32
		", (void *)n) < 0)\n\t\tk->faults |= 1u << %" PRIu32 ";\n",
		i, i, *n_texts, e->value.most + 2, i);
	++*n_texts;
}

static void put_keys(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct aggregates *a = e->t->aggregates;
	uint32_t n_texts = 0;

	for (uint32_t i = 0; i < a->n_keys; i++) {
		const struct aggregate_key *key = &a->keys[i];
		if (key->kind == KEY_COMM) {
			fprintf(e->out, "\tbpf_get_current_comm(k->texts[%" PRIu32 "], 16);\n",
				n_texts++);
		} else if (key->kind == KEY_SITE) {
			fprintf(e->out, "\tk->site = %" PRIu32 ";\n", n);
		} else if (key->kind == KEY_VALUE) {
			emit_value(e, site, a->n_numbers + key->value, &e->value);
			put_key_value(e, n, a->n_numbers + key->value, i, &n_texts);
		} else {
			put_key_known(e, key, i);
		}
	}
}

static void put_item(const struct emission *e, const struct trace_site *site, uint32_t n,
		     uint32_t i)
{
	const struct aggregate_item *item = &e->t->aggregates->items[i];
	bool is_signed = e->t->probes.p[site->pub.probe]->is_signed >> i & 1;

	if (item->kind == CAIRN_AGGREGATE_COUNT)
		return;
	fprintf(e->out,
		"\tif (value_%" PRIu32 "_%" PRIu32
		"(r, &n)) {\n\t\t__sync_fetch_and_add(&s->items[%" PRIu32
		"].unreadable, 1);\n\t} else {\n\t\tadd_number(&s->items[%" PRIu32 "], n, %d);\n",
		n, item->number, i, i, is_signed);
	if (item->kind == CAIRN_AGGREGATE_HIST)
		fprintf(e->out, "\t\tadd_bucket(&s->items[%" PRIu32 "], bucket_of(n, %d));\n", i,
			is_signed);
	if (item->kind == CAIRN_AGGREGATE_LHIST)
		fprintf(e->out,
			"\t\tadd_bucket(&s->items[%" PRIu32 "], step_of(n, %d, %" PRId64
			"LL, %" PRId64 "LL, %" PRId64 "));\n",
			i, is_signed, item->range[0], item->range[1], item->range[2]);
	fputs("\t}\n", e->out);
}

static void put_sums(struct emission *e, const struct trace_site *site, uint32_t n)
{
	fprintf(e->out,
		"\tstruct scratch *scratch = key_begin(%" PRIu32
		");\n\n\tif (!scratch)\n\t\treturn 0;\n\tstruct key *k = &scratch->key;\n",
		site->pub.probe);
	put_keys(e, site, n);
	fputs("\tstruct sums *s = sums_of(k);\n\tkey_end(scratch);\n\tif (!s)\n\t\treturn 0;\n",
	      e->out);
	for (uint32_t i = 0; i < e->t->aggregates->n_items; i++)
		put_item(e, site, n, i);
	fputs("\treturn 0;\n", e->out);
}

static void put_program(struct emission *e, const struct trace_site *site, uint32_t n)
{
	put_functions(e, site, n);
	fprintf(e->out,
		"\nSEC(\"uprobe\")\nint site_%" PRIu32 "(struct regs *r)\n{\n\t__u64 n = 0;\n\n",
		n);
	put_condition(e, site, n);
	if (e->t->aggregates)
		put_sums(e, site, n);
	else
		put_event(e, site, n);
	fputs("}\n", e->out);
}

/* ---- the user's side ---- */

static const char *how_of(const struct emit_value *v)
{
	if (v->form == EMIT_STRING)
		return "TEXT";
	if (v->is_hex)
		return "HEX";
	return v->is_signed ? "SIGNED" : "UNSIGNED";
}

static void put_value(struct emission *e, const struct trace_site *site, uint32_t i)
{
	const char *name = e->t->probes.p[site->pub.probe]->pub.values[i].text;

	emit_value(e, site, i, &e->value);
	const char *why = why_missing(e);
	fputs("\t{", e->out);
	put_shown(name, e->out);
	fprintf(e->out, ", %s, %" PRIu32 ", ", why ? "UNSIGNED" : how_of(&e->value), e->value.most);
	if (why)
		put_shown(why, e->out);
	else
		fputc('0', e->out);
	fputs("},\n", e->out);
}

static void put_values(struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];

	fprintf(e->out, "static const struct value values_%" PRIu32 "[] = {\n", n);
	for (uint32_t i = 0; i < p->pub.n_values; i++)
		put_value(e, site, i);
	fputs("\t{0}\n};\n", e->out);
}

static void put_site(const struct emission *e, const struct trace_site *site, uint32_t n)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	char title[EMIT_TITLE_MAX], *path = emit_path(p->file);

	emit_title(e, site, title, sizeof(title));
	fputs("\t{", e->out);
	put_string(path ? path : "", e->out);
	fprintf(e->out, ", 0x%" PRIx64 ", ", site->pub.off.v);
	put_shown(title, e->out);
	fprintf(e->out, ", \"site_%" PRIu32 "\", %" PRIu32 ", values_%" PRIu32 "},\n", n,
		p->pub.n_values, n);
	free(path);
}

/* How a key that is no value of the probe is shown. */
static const char *how_known(enum key_kind kind)
{
	if (kind == KEY_COMM)
		return "TEXT";
	return kind == KEY_SITE ? "SITE" : "UNSIGNED";
}

static const struct trace_site *first_site(const struct emission *e, uint32_t probe)
{
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (e->t->sites.p[i]->pub.probe == probe && !e->t->sites.p[i]->pub.refused)
			return e->t->sites.p[i];
	return NULL;
}

static void put_key_values(struct emission *e, const struct trace_site *site)
{
	const struct aggregates *a = e->t->aggregates;

	fputs("\t{", e->out);
	for (uint32_t i = 0; a && site && i < a->n_keys; i++) {
		const struct aggregate_key *key = &a->keys[i];
		bool is_value = key->kind == KEY_VALUE;
		if (is_value)
			emit_value(e, site, a->n_numbers + key->value, &e->value);
		fputc('{', e->out);
		put_shown(key->text, e->out);
		fprintf(e->out, ", %s, %" PRIu32 ", 0}, ",
			is_value ? how_of(&e->value) : how_known(key->kind),
			is_value ? e->value.most : 16);
	}
	fputs("{0}},\n", e->out);
}

static uint32_t n_buckets(const struct aggregate_item *item)
{
	if (item->kind == CAIRN_AGGREGATE_HIST)
		return BUCKETS_OF_POWERS;
	if (item->kind != CAIRN_AGGREGATE_LHIST)
		return 0;
	return 2 + (uint32_t)(((uint64_t)item->range[1] - (uint64_t)item->range[0]) /
			      (uint64_t)item->range[2]);
}

static void put_items(const struct emission *e)
{
	const struct aggregates *a = e->t->aggregates;

	fputs("static const struct what what[] = {\n", e->out);
	for (uint32_t i = 0; a && i < a->n_items; i++) {
		const struct aggregate_item *item = &a->items[i];
		bool has_steps = item->kind == CAIRN_AGGREGATE_LHIST;
		fprintf(e->out, "\t{\"%s\", ", emit_aggregate_name(item->kind));
		if (item->text)
			put_shown(item->text, e->out);
		else
			fputc('0', e->out);
		fprintf(e->out, ", %" PRIu32 ", %" PRId64 ", %" PRId64 "},\n", n_buckets(item),
			has_steps ? item->range[0] : 0, has_steps ? item->range[2] : 0);
	}
	fputs("\t{0}\n};\n", e->out);
}

static void put_probes(struct emission *e)
{
	fputs("static const char *const probes[] = {\n", e->out);
	for (size_t i = 0; i < e->t->probes.n; i++) {
		fputc('\t', e->out);
		put_shown(e->t->probes.p[i]->pub.function->name, e->out);
		fputs(",\n", e->out);
	}
	fputs("};\nstatic const unsigned char signs[] = {", e->out);
	for (size_t i = 0; i < e->t->probes.n; i++)
		fprintf(e->out, "%u, ", e->t->probes.p[i]->is_signed);
	fputs("};\nstatic const struct value key_values[][N_KEYS + 1] = {\n", e->out);
	for (size_t i = 0; i < e->t->probes.n; i++)
		put_key_values(e, first_site(e, (uint32_t)i));
	fputs("};\n", e->out);
}

static void put_pids(const struct emission *e)
{
	const struct cairn_trace_opts *o = &e->t->opts;

	fputs("static const int pids[] = {", e->out);
	if (!o->n_pids)
		fprintf(e->out, "%d, ", o->pid ? o->pid : -1);
	for (size_t i = 0; i < o->n_pids; i++)
		fprintf(e->out, "%d, ", o->pids[i]);
	fputs("};\nenum { N_SITES = sizeof(sites) / sizeof(sites[0]), "
	      "N_PIDS = sizeof(pids) / sizeof(pids[0]) };\n\n",
	      e->out);
}

static void put_tables(struct emission *e)
{
	fputs("\n#else /* the user's side */\n", e->out);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			put_values(e, e->t->sites.p[i], (uint32_t)i);
	/* Refused ones have a place, so that numbers stay those of the trace. */
	fputs("static const struct site sites[] = {\n", e->out);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (e->t->sites.p[i]->pub.refused)
			fputs("\t{0},\n", e->out);
		else
			put_site(e, e->t->sites.p[i], (uint32_t)i);
	fputs("};\n", e->out);
	put_items(e);
	put_probes(e);
	put_pids(e);
}

/* ---- sizes ---- */

struct sizes {
	uint32_t values, texts, text_bytes, keys, items, buckets;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void measure_site(struct emission *e, const struct trace_site *site, struct sizes *s)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	uint32_t texts = 0;

	s->values = larger(s->values, p->pub.n_values);
	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		emit_value(e, site, i, &e->value);
		texts += e->value.form == EMIT_STRING;
		/* One byte more tells that the text goes on. */
		if (e->value.form == EMIT_STRING)
			s->text_bytes = larger(s->text_bytes, e->value.most + 2);
	}
	s->texts = larger(s->texts, texts + 1);
}

static struct sizes sizes_of(struct emission *e)
{
	const struct aggregates *a = e->t->aggregates;
	struct sizes s = {1, 1, 16, 1, 1, 1};

	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			measure_site(e, e->t->sites.p[i], &s);
	for (uint32_t i = 0; a && i < a->n_items; i++)
		s.buckets = larger(s.buckets, n_buckets(&a->items[i]));
	if (a) {
		s.keys = larger(1, a->n_keys);
		s.items = a->n_items;
	}
	s.text_bytes = (s.text_bytes + 7) / 8 * 8;
	return s;
}

static void put_sizes(struct emission *e)
{
	const struct aggregates *a = e->t->aggregates;
	struct sizes s = sizes_of(e);

	fprintf(e->out,
		"enum {\n\tVALUES = %" PRIu32 ", TEXTS = %" PRIu32 ", TEXT_BYTES = %" PRIu32
		", KEYS = %" PRIu32 ",\n\tITEMS = %" PRIu32 ", BUCKETS = %" PRIu32
		", N_KEYS = %" PRIu32 ", N_ITEMS = %" PRIu32 "\n};\n",
		s.values, s.texts, s.text_bytes, s.keys, s.items, s.buckets, a ? a->n_keys : 0,
		a ? a->n_items : 0);
}

static int write_script(struct emission *e)
{
	fputs("/* SPDX-License-Identifier: BSD-2-Clause */\n"
	      "/*\n"
	      " * clang -O2 -g -mcpu=v3 -target bpf -I/usr/include/x86_64-linux-gnu -c THIS-FILE "
	      "-o trace.bpf.o\n"
	      " * cc -O2 THIS-FILE -o trace -lbpf\n"
	      " * sudo ./trace trace.bpf.o [PID...]\n"
	      " *\n"
	      " * Without PID: the processes that the trace named, else all that run the files.\n"
	      " */\n",
	      e->out);
	put_sizes(e);
	put_all(kernel_text, sizeof(kernel_text) / sizeof(kernel_text[0]), e->out);
	for (size_t i = 0; i < e->t->sites.n; i++)
		if (!e->t->sites.p[i]->pub.refused)
			put_program(e, e->t->sites.p[i], (uint32_t)i);
	put_tables(e);
	put_all(user_text, sizeof(user_text) / sizeof(user_text[0]), e->out);
	return 0;
}

const struct emit_tool emit_libbpf = {
	.pub = {"c", "//", CAIRN_QUOTE_C},
	.language = &language,
	.has_condition = true,
	.aggregates = 1u << CAIRN_AGGREGATE_COUNT | 1u << CAIRN_AGGREGATE_SUM |
		      1u << CAIRN_AGGREGATE_AVG | 1u << CAIRN_AGGREGATE_MIN |
		      1u << CAIRN_AGGREGATE_MAX | 1u << CAIRN_AGGREGATE_HIST |
		      1u << CAIRN_AGGREGATE_LHIST,
	.keys = 1u << KEY_PID | 1u << KEY_TID | 1u << KEY_COMM | 1u << KEY_CPU | 1u << KEY_CGROUP |
		1u << KEY_SITE | 1u << KEY_VALUE,
	.instead = "cairn trace itself does it",
	.write = write_script,
};
