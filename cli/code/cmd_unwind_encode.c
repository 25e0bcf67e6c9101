/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn unwind encode: call frame information as SFrame. */
#include <inttypes.h>
#include <stdlib.h>

#include <cairn/file.h>
#include <cairn/text.h>

#include "cmd.h"
#include "json.h"
#include "say.h"
#include "truncated.h"
#include "unwind.h"

struct encode_values {
	const char *out, *version;
	bool embed, json;
};

#define AT(field) offsetof(struct encode_values, field)

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", AT(out), "write OUT; otherwise ELF.sframe"},
	{0, "embed", OPT_FLAG, NULL, AT(embed),
	 "OUT is a copy of ELF with a section .sframe; otherwise it has that section alone"},
	{0, "sframe", OPT_TEXT, "2|3", AT(version), "version of the format; otherwise 3"},
	{0, "json", OPT_FLAG, NULL, AT(json), "the written and the omitted, as a JSON object"},
	{0},
};

static const struct example examples[] = {
	{"cairn unwind encode libc.so.6 -o libc.sframe && readelf --sframe libc.sframe",
	 "SFrame of a library that has none"},
	{"cairn unwind encode --embed --sframe 2 server -o server.sframe",
	 "a copy with the section, for readers of version 2"},
	{0},
};

static double share(const struct cairn_sframe_encoded *e)
{
	uint64_t all = e->text_bytes + e->left_out_bytes;

	return all ? 100 * (double)e->text_bytes / (double)all : 0;
}

static const char *functions_are(uint32_t n)
{
	return n == 1 ? " is" : "s are";
}

static void report_left_out(const struct cairn_sframe_encoded *e)
{
	uint32_t unsaid = e->n_left_out - e->n_disproved;

	if (unsaid)
		say(stdout,
		    "%" PRIu32
		    " function%s left out: this version of SFrame cannot express one of the rows\n",
		    unsaid, functions_are(unsaid));
	if (e->n_disproved)
		say(stdout,
		    "%" PRIu32 " function%s left out: the instructions disprove one of the rows "
		    "(cairn unwind check)\n",
		    e->n_disproved, functions_are(e->n_disproved));
	if (e->n_mended)
		say(stdout,
		    "%" PRIu32 " function%s written by its instructions, because they disprove one "
		    "of its rows\n",
		    e->n_mended, functions_are(e->n_mended));
}

static void report(const char *out, const struct cairn_sframe_encoded *e, bool json)
{
	struct json j = {.out = stdout};

	if (!json) {
		say(stdout, "%s: %s, %zu bytes; %.2f %% of the code\n", out,
		    cairn_counted(e->n_functions, "function").text, e->size, share(e));
		report_left_out(e);
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "output", out);
	json_uint(&j, "functions", e->n_functions);
	json_uint(&j, "left_out", e->n_left_out);
	json_uint(&j, "disproved", e->n_disproved);
	json_uint(&j, "mended", e->n_mended);
	json_uint(&j, "bytes", e->size);
	json_uint(&j, "text_bytes", e->text_bytes);
	json_uint(&j, "left_out_bytes", e->left_out_bytes);
	json_close(&j);
}

static int write_out(const char *elf, const char *out, const struct encode_values *values,
		     const struct cairn_sframe_encoded *e)
{
	struct cairn_embed_section section = {".sframe", e->bytes, e->size};
	struct cairn_err err = {0};
	int r = check_inputs(&err);

	if (r == 0)
		r = values->embed ? cairn_embed(elf, out, &section, 1, &err)
				  : cairn_embed_alone(e->machine, out, &section, 1, &err);

	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

static int encode(const char *elf, const struct encode_values *values)
{
	unsigned int version = values->version ? (unsigned int)atoi(values->version) : 3;
	struct cairn_sframe_encoded e = {0};
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	char name[4096];
	const char *out = values->out ? values->out : name;
	int r = cairn_binary_open(elf, NULL, &bin, &err);

	snprintf(name, sizeof(name), "%s.sframe", elf);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	r = cairn_sframe_encode(bin, version, (struct cairn_vaddr){0}, &e, &err);
	cairn_binary_close(bin);
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	int status = write_out(elf, out, values, &e);
	if (!status)
		report(out, &e, values->json);
	free(e.bytes);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time");
	return encode(operands->items[0], v);
}

const struct cmd cmd_unwind_encode = {
	.name = "unwind encode",
	.summary = "write SFrame from call frame information",
	.operands = "ELF",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct encode_values),
	.run = run,
};
