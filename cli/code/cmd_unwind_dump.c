/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn unwind dump: the unwind rows of a file, or its SFrame section. */
#include <errno.h>
#include <inttypes.h>

#include <cairn/sidecar.h>
#include <cairn/text.h>

#include "cmd.h"
#include "json.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "unwind.h"

struct dump_values {
	bool sframe, json;
	unsigned long jobs;
};

#define AT(field) offsetof(struct dump_values, field)

static const struct opt opts[] = {
	{0, "sframe", OPT_FLAG, NULL, AT(sframe),
	 "the section .sframe instead, as readelf --sframe prints it"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per row"},
	OPT_JOBS(AT(jobs)),
	{0},
};

static const struct example examples[] = {
	{"cairn unwind dump /lib/x86_64-linux-gnu/libc.so.6", "how to unwind at each address"},
	{"cairn unwind dump vmlinux.cairn", "the rows that a sidecar keeps"},
	{"cairn unwind dump --sframe vmlinux", "its SFrame section"},
	{0},
};

static void put_row_text(uint16_t machine, struct cairn_vaddr lo, struct cairn_vaddr hi,
			 const struct cairn_unwind_rule *rule)
{
	char text[UNWIND_TEXT_MAX], name[8];

	unwind_cfa_text(machine, rule, text, sizeof(text));
	printf("%-16" PRIx64 "  %-16" PRIx64 "  %-16s", lo.v, hi.v, text);
	if (rule->flags & CAIRN_UNWIND_SIGNAL)
		fputs(" signal", stdout);
	if (rule->flags & CAIRN_UNWIND_RA_SIGNED)
		fputs(" ra-signed", stdout);
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];

		unwind_word_text(machine, rule, word, text, sizeof(text));
		printf(" %s:%s", unwind_reg_name(machine, cairn_unwind_word_reg(word), name), text);
	}
	putchar('\n');
}

static void put_row_json(uint16_t machine, struct cairn_vaddr lo, struct cairn_vaddr hi,
			 const struct cairn_unwind_rule *rule)
{
	char text[UNWIND_TEXT_MAX], name[8];
	struct json j = {.out = stdout};

	unwind_cfa_text(machine, rule, text, sizeof(text));
	json_open(&j, NULL, '{');
	json_hex(&j, "lo", lo.v);
	json_hex(&j, "hi", hi.v);
	json_text(&j, "cfa", text);
	json_bool(&j, "signal", rule->flags & CAIRN_UNWIND_SIGNAL);
	json_bool(&j, "ra_signed", rule->flags & CAIRN_UNWIND_RA_SIGNED);
	json_open(&j, "saved", '{');
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];

		unwind_word_text(machine, rule, word, text, sizeof(text));
		json_text(&j, unwind_reg_name(machine, cairn_unwind_word_reg(word), name), text);
	}
	json_close(&j);
	json_close(&j);
}

static void put_rows(const struct cairn_unwind *table, bool json)
{
	size_t size;
	const struct cairn_unwind_header *h = cairn_unwind_bytes(table, &size);

	if (!json)
		printf("# %s and %s of rules in %zu bytes, for %s of code\n"
		       "%-16s  %-16s  %-16s %s\n",
		       cairn_counted(h->n_rows, "row").text,
		       cairn_counted(h->rules_size, "byte").text, size,
		       cairn_counted(h->text_bytes, "byte").text, "# from", "to", "CFA",
		       "saved registers");
	for (uint32_t i = 0; i + 1 < h->n_rows; i++) {
		struct cairn_vaddr lo, hi;
		const struct cairn_unwind_rule *rule = cairn_unwind_row(table, i, &lo, &hi);

		if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED)
			continue;
		if (json)
			put_row_json(h->machine, lo, hi, rule);
		else
			put_row_text(h->machine, lo, hi, rule);
	}
}

/* Those are missing among the rows, and their code is like code that nothing describes. */
static void report_dropped(const char *path, const struct cairn_unwind *table)
{
	size_t size;
	const struct cairn_unwind_header *h = cairn_unwind_bytes(table, &size);

	if (h->n_dropped)
		say(stderr,
		    "%s: %" PRIu32 " entr%s left out of the call frame information: damaged, not "
		    "understood, or not over code\n",
		    path, h->n_dropped, h->n_dropped == 1 ? "y is" : "ies are");
}

static int dump_rows(const struct cairn_binary *bin, const struct dump_values *values)
{
	struct cairn_err err = {0};
	struct cairn_unwind *table;
	int r = cairn_unwind_make(bin, (unsigned int)values->jobs, &table, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	put_rows(table, values->json);
	report_dropped(cairn_binary_path(bin), table);
	cairn_unwind_close(table);
	return STATUS_YES;
}

/* Prints the sidecar that cairn sidecar made of a binary, without the binary. */
static int dump_sidecar(const char *path, bool json)
{
	struct cairn_err err = {0};
	struct cairn_sidecar *sidecar;
	struct cairn_unwind *table;
	size_t size;
	int r = cairn_sidecar_open(path, NULL, &sidecar, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	sidecar_say_unbound(sidecar);
	const void *bytes = cairn_sidecar_section(sidecar, ".cairn.cfi", &size);
	if (!bytes) {
		int status = sidecar_trouble(sidecar);

		cairn_sidecar_close(sidecar);
		return status ? status
			      : fail(STATUS_NO,
				     "%s: has no unwind rows: neither had its binary, or an older "
				     "cairn made it",
				     path);
	}
	r = cairn_unwind_open_mem(bytes, size, path, &table, &err);
	if (r < 0) {
		cairn_sidecar_close(sidecar);
		return fail_err(r, &err, STATUS_NO);
	}
	put_rows(table, json);
	cairn_unwind_close(table);
	cairn_sidecar_close(sidecar);
	return STATUS_YES;
}

static int dump_sframe(const struct cairn_binary *bin)
{
	struct cairn_err err = {0};
	struct cairn_sframe *s;
	int r = cairn_sframe_open_binary(bin, &s, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	unwind_sframe_text(stdout, s);
	cairn_sframe_close(s);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct dump_values *values = v;
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int status;

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time");
	if (values->sframe && values->json)
		return fail(STATUS_USAGE, "--sframe is text; without it --json has the rows");
	if (!values->sframe && sidecar_is_named(operands->items[0]))
		return dump_sidecar(operands->items[0], values->json);
	int r = cairn_binary_open(operands->items[0], NULL, &bin, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	status = values->sframe ? dump_sframe(bin) : dump_rows(bin, values);
	cairn_binary_close(bin);
	return status;
}

const struct cmd cmd_unwind_dump = {
	.name = "unwind dump",
	.summary = "unwind rows of a file",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct dump_values),
	.pages = true,
	.run = run,
};
