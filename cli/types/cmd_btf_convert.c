/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf convert: the same content for another reader. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "btf.h"
#include "json.h"
#include "say.h"
#include "truncated.h"

struct convert_values {
	struct btf_source file;
	const char *out, *dialect, *endian;
	bool layout, no_layout, downgrade, kernel, json;
};

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", offsetof(struct convert_values, out),
	 "the file to write; it appears whole or not at all"},
	{'B', "base", OPT_LIST, "BASE", offsetof(struct convert_values, file.bases),
	 "the BTF that FILE was split from, and the result is; may be repeated, parents first"},
	{0, "dialect", OPT_TEXT, "n|v1|none", offsetof(struct convert_values, dialect),
	 "dialect of location records in the result; none drops them; otherwise as in FILE"},
	{0, "layout", OPT_FLAG, NULL, offsetof(struct convert_values, layout),
	 "write a layout section, with which readers skip kinds they do not know"},
	{0, "no-layout", OPT_FLAG, NULL, offsetof(struct convert_values, no_layout),
	 "write none; otherwise as in FILE"},
	{0, "endian", OPT_TEXT, "little|big", offsetof(struct convert_values, endian),
	 "byte order of the result; otherwise as in FILE"},
	{0, "downgrade", OPT_FLAG, NULL, offsetof(struct convert_values, downgrade),
	 "rewrite or drop records that libbpf 1.1 and kernels of its time refuse"},
	{0, "kernel", OPT_FLAG, NULL, offsetof(struct convert_values, kernel),
	 "rewrite or drop records that a kernel refuses to load: names of C++, Rust and Go, "
	 "location records, the layout section"},
	{0, "from", OPT_TEXT, "n|v1", offsetof(struct convert_values, file.dialect),
	 "dialect of location records in FILE, if FILE does not show it"},
	BTF_OPT_SECTION(offsetof(struct convert_values, file.section)),
	{0, "json", OPT_FLAG, NULL, offsetof(struct convert_values, json),
	 "the output and the losses, as a JSON object"},
	{0},
};

static const struct example examples[] = {
	{"cairn btf convert --downgrade new.btf -o old.btf",
	 "BTF that the tools of Debian 12 read"},
	{"cairn btf convert --kernel rust-program.btf -o program.btf",
	 "BTF that BPF_BTF_LOAD takes"},
	{"cairn btf convert --dialect v1 -B app.btf app.btf.inline -o app.btf.extra",
	 "location records as the first proposal had them"},
	{0},
};

struct loss {
	const char *key, *text;
	uint32_t n;
};

static void tell(const struct convert_values *values, const char *from, size_t bytes,
		 const struct loss *losses)
{
	struct json j = {.out = stdout};

	if (!values->json) {
		say(stdout, "%s: %zu bytes\n", values->out, bytes);
		for (; losses->key; losses++)
			if (losses->n)
				say(stdout, "lost: %" PRIu32 " %s\n", losses->n, losses->text);
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "path", from);
	json_text(&j, "out", values->out);
	json_uint(&j, "bytes", bytes);
	json_open(&j, "lost", '{');
	for (; losses->key; losses++)
		json_uint(&j, losses->key, losses->n);
	json_close(&j);
	json_close(&j);
}

static bool wants_layout(const struct convert_values *values, const struct cairn_btf *btf)
{
	if (values->layout || values->no_layout)
		return values->layout;
	return !values->downgrade && !values->kernel && cairn_btf_has_layout(btf);
}

static int convert(const struct cairn_btf *btf, const struct convert_values *values,
		   const char *from)
{
	struct cairn_btf_convert_opts to = {
		.size = sizeof(to),
		.base = cairn_btf_base(btf),
		.dialect = values->dialect ? btf_dialect(values->dialect) : cairn_btf_dialect(btf),
		.layout = wants_layout(values, btf),
		.big_endian = values->endian ? !strcmp(values->endian, "big")
					     : cairn_btf_is_big_endian(btf),
		.downgrade = values->downgrade,
		.kernel = values->kernel,
	};
	struct cairn_btf_losses lost = {0};
	struct cairn_err err = {0};
	void *bytes = NULL;
	size_t size = 0;
	int r = cairn_btf_convert(btf, &to, &lost, &bytes, &size, &err);

	if (r == 0)
		r = write_whole_answer(values->out, bytes, size, &err);
	free(bytes);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	const struct loss losses[] = {
		{"loc_params", "parameter locations that the dialect cannot express",
		 lost.loc_params},
		{"loc_protos", "lists of parameter locations", lost.loc_protos},
		{"locsecs", "sections of sites", lost.locsecs},
		{"locs", "sites of functions", lost.locs},
		{"enum64s", "enums with values of 64 bits, rewritten", lost.enum64s},
		{"unknown_kinds", "records of unknown kinds", lost.unknown_kinds},
		{"wide_vlens", "records with more than 65,535 elements", lost.wide_vlens},
		{"tags", "tags", lost.tags},
		{"names", "names, rewritten as the kernel takes them", lost.names},
		{"member_orders", "orders of members, sorted by offset", lost.member_orders},
		{"params", "parameters without a name, called arg0, arg1 ...", lost.params},
		{"functions",
		 "functions of other files, or with values of types that are only declared, left "
		 "out",
		 lost.functions},
		{"variables",
		 "variables of other files, without a size, or in the place of another, left out",
		 lost.variables},
		{"sections", "sections that have no size before the object is linked, left out",
		 lost.sections},
		{"floats", "members that are floats at odd offsets, written as bytes", lost.floats},
		{NULL, NULL, 0},
	};

	tell(values, from, size, losses);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct convert_values *values = v;
	struct btf_chain chain;

	if (!values->out)
		return fail(STATUS_USAGE, "cairn btf convert needs -o OUT");
	if (values->layout && values->no_layout)
		return fail(STATUS_USAGE, "--layout and --no-layout are two answers; choose one");
	int status = btf_open_only(operands, &values->file, &chain);

	if (!status)
		status = convert(btf_of(&chain), values, operands->items[0]);
	btf_close(&chain);
	return status;
}

const struct cmd cmd_btf_convert = {
	.name = "btf convert",
	.summary = "write BTF for another reader, and report the losses",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct convert_values),
	.run = run,
};
