/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn unwind check: are the unwind rows of a file true? */
#include <elf.h>
#include <inttypes.h>

#include <cairn/text.h>
#include <cairn/unwind.h>

#include "cmd.h"
#include "demangled.h"
#include "json.h"
#include "say.h"
#include "unwind.h"

struct check_values {
	bool json;
};

static const struct opt opts[] = {
	{0, "json", OPT_FLAG, NULL, offsetof(struct check_values, json),
	 "one JSON object per disagreement, then one with the counts"},
	{0},
};

static const struct example examples[] = {
	{"cairn unwind check /lib/x86_64-linux-gnu/libc.so.6",
	 "rows that the instructions contradict"},
	{0},
};

struct telling {
	const struct cairn_binary *bin;
	bool json;
};

static void report_json(const struct cairn_unwind_disagreement *d, const char *function,
			const char *reg)
{
	static const char *const against[] = {[CAIRN_UNWIND_DOUBT_INSN] = "instructions",
					      [CAIRN_UNWIND_DOUBT_KEPT] = "registers",
					      [CAIRN_UNWIND_DOUBT_SFRAME] = "sframe"};
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "against", against[d->kind]);
	json_hex(&j, "at", d->at.v);
	json_text(&j, "function", function);
	json_hex(&j, "function_at", d->function.v);
	if (d->kind != CAIRN_UNWIND_DOUBT_SFRAME) {
		json_hex(&j, "from", d->from.v);
		json_text(&j, "register", reg);
	}
	if (d->kind == CAIRN_UNWIND_DOUBT_INSN) {
		json_int(&j, "row", d->row);
		json_int(&j, "found", d->found);
	}
	json_close(&j);
}

static void report_text(const struct cairn_unwind_disagreement *d, const char *function,
			struct cairn_vaddr start, const char *reg)
{
	say(stdout, "%" PRIx64 "  %s+0x%" PRIx64 ": ", d->at.v, function, d->at.v - start.v);
	if (d->kind == CAIRN_UNWIND_DOUBT_SFRAME)
		say(stdout, ".sframe differs\n");
	else if (d->kind == CAIRN_UNWIND_DOUBT_KEPT)
		say(stdout,
		    "the row leaves %s as it was, the instructions overwrite it (at %" PRIx64 ")\n",
		    reg, d->from.v);
	else
		say(stdout,
		    "the row says %s%+" PRId64 ", the instructions %s%+" PRId64 " (from %" PRIx64
		    ")\n",
		    reg, d->row, reg, d->found, d->from.v);
}

static int report(void *ctx, const struct cairn_unwind_disagreement *d)
{
	const struct telling *t = ctx;
	const char *function = NULL;
	struct cairn_vaddr start;
	char name[8];
	const char *reg = unwind_reg_name(EM_X86_64, d->reg, name);

	if (!cairn_binary_symbol_of(t->bin, d->at, &function, &start)) {
		function = "?";
		start = d->function;
	}
	if (t->json)
		report_json(d, function, reg);
	else
		report_text(d, demangled(function), start, reg);
	return 0;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100 * (double)part / (double)all : 0;
}

static void report_counts(const struct cairn_unwind_checked *c, bool json)
{
	struct json j = {.out = stdout};

	if (!json) {
		say(stdout, "%s, %s of code\n", cairn_counted(c->n_fdes, "FDE").text,
		    cairn_counted(c->text_bytes, "byte").text);
		say(stdout, "instructions: %.2f %% followed and compared\n",
		    percent(c->followed_bytes, c->text_bytes));
		say(stdout, "frame pointers: the same caller at %.2f %%\n",
		    percent(c->fp_bytes, c->text_bytes));
		if (c->sframe_bytes)
			say(stdout, "SFrame: has %.2f %%\n",
			    percent(c->sframe_bytes, c->text_bytes));
		say(stdout, "%s\n", cairn_counted(c->n_disagreements, "disagreement").text);
		return;
	}
	json_open(&j, NULL, '{');
	json_uint(&j, "fdes", c->n_fdes);
	json_uint(&j, "text_bytes", c->text_bytes);
	json_uint(&j, "followed_bytes", c->followed_bytes);
	json_uint(&j, "frame_pointer_bytes", c->fp_bytes);
	json_uint(&j, "sframe_bytes", c->sframe_bytes);
	json_uint(&j, "ends", c->n_ends);
	json_uint(&j, "disagreements", c->n_disagreements);
	json_close(&j);
}

static int run(void *v, const struct operands *operands)
{
	const struct check_values *values = v;
	struct telling t = {.json = values->json};
	struct cairn_unwind_checked checked;
	struct cairn_err err = {0};
	struct cairn_binary *bin;

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time");
	int r = cairn_binary_open(operands->items[0], NULL, &bin, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	t.bin = bin;
	r = cairn_unwind_check(bin, report, &t, &checked, &err);
	if (r >= 0)
		report_counts(&checked, values->json);
	cairn_binary_close(bin);
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	return checked.n_disagreements ? STATUS_NO : STATUS_YES;
}

const struct cmd cmd_unwind_check = {
	.name = "unwind check",
	.summary = "check unwind rows against the instructions",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct check_values),
	.pages = true,
	.run = run,
};
