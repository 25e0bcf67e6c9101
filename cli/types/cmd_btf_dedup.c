/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf dedup and btf merge: equal types as one, of one file or of several. */
#include <stdlib.h>

#include "btf.h"

struct dedup_values {
	struct btf_source file;
	const char *out;
	bool json;
};

static const struct opt dedup_opts[] = {
	{'o', "output", OPT_TEXT, "OUT", offsetof(struct dedup_values, out),
	 "the file to write; it appears whole or not at all"},
	{'B', "base", OPT_LIST, "BASE", offsetof(struct dedup_values, file.bases),
	 "the BTF that FILE was split from; its types are not written again; may be repeated, "
	 "parents first"},
	BTF_OPT_SECTION(offsetof(struct dedup_values, file.section)),
	BTF_OPT_DIALECT(offsetof(struct dedup_values, file.dialect)),
	{0, "json", OPT_FLAG, NULL, offsetof(struct dedup_values, json),
	 "the output's counts, as a JSON object"},
	{0},
};

static const struct opt merge_opts[] = {
	{'o', "output", OPT_TEXT, "OUT", offsetof(struct dedup_values, out),
	 "the file to write; it appears whole or not at all"},
	{'B', "base", OPT_LIST, "BASE", offsetof(struct dedup_values, file.bases),
	 "the BTF that all of them were split from; may be repeated, parents first"},
	{0, "section", OPT_TEXT, "NAME", offsetof(struct dedup_values, file.section),
	 "section of ELF files; otherwise .BTF, or the only one of .BTF.inline and .BTF.extra"},
	{0, "dialect", OPT_TEXT, "n|v1", offsetof(struct dedup_values, file.dialect),
	 "dialect of location records, if the files do not show it"},
	{0, "json", OPT_FLAG, NULL, offsetof(struct dedup_values, json),
	 "the output's counts, as a JSON object"},
	{0},
};

static const struct example dedup_examples[] = {
	{"cairn btf dedup units.btf -o program.btf", "each type once"},
	{"cairn btf dedup -B /sys/kernel/btf/vmlinux module.btf -o small.btf",
	 "without the types that the kernel has"},
	{0},
};

static const struct example merge_examples[] = {
	{"cairn btf merge a.bpf.o b.bpf.o -o all.btf", "the types of two BPF programs, each once"},
	{"cairn btf merge -B vmlinux.btf one.btf two.btf -o both.btf",
	 "of two that were split from one kernel"},
	{0},
};

static int write_result(const struct dedup_values *values, const struct btf_chain *chain,
			size_t n_bases)
{
	struct cairn_err err = {0};
	void *bytes = NULL;
	size_t size = 0;
	uint32_t before = 0;

	for (size_t i = n_bases; i < chain->n; i++)
		before += cairn_btf_end_id(chain->p[i]) - cairn_btf_start_id(chain->p[i]);
	int r = cairn_btf_merge((const struct cairn_btf *const *)chain->p + n_bases,
				chain->n - n_bases, &bytes, &size, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	const struct btf_made made = {values->out, bytes, size, cairn_btf_base(chain->p[n_bases]),
				      before};
	int status = btf_write(&made, 1, values->json);

	free(bytes);
	return status;
}

/* One file is deduped alone: only so records of unknown kinds stay. */
static int dedup(const struct dedup_values *values, const struct cairn_btf *btf)
{
	struct cairn_err err = {0};
	void *bytes = NULL;
	size_t size = 0;
	int r = cairn_btf_dedup(btf, NULL, &bytes, &size, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	const struct btf_made made = {values->out, bytes, size, cairn_btf_base(btf),
				      cairn_btf_end_id(btf) - cairn_btf_start_id(btf)};
	int status = btf_write(&made, 1, values->json);

	free(bytes);
	return status;
}

static int run_dedup(void *v, const struct operands *operands)
{
	const struct dedup_values *values = v;
	struct btf_chain chain;

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time: %s\nTry: cairn btf merge",
			    operands->items[1]);
	if (!values->out)
		return fail(STATUS_USAGE, "cairn btf dedup needs -o OUT");
	int status = btf_open_only(operands, &values->file, &chain);

	if (!status)
		status = dedup(values, btf_of(&chain));
	btf_close(&chain);
	return status;
}

static int run_merge(void *v, const struct operands *operands)
{
	const struct dedup_values *values = v;
	struct btf_chain chain;

	if (!values->out)
		return fail(STATUS_USAGE, "cairn btf merge needs -o OUT");
	int status = btf_open_beside(&values->file.bases, operands->items, operands->n,
				     values->file.section, values->file.dialect, &chain);

	if (!status)
		status = write_result(values, &chain, values->file.bases.n);
	btf_close(&chain);
	return status;
}

const struct cmd cmd_btf_dedup = {
	.name = "btf dedup",
	.summary = "write BTF with equal types as one",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = dedup_opts,
	.examples = dedup_examples,
	.values_size = sizeof(struct dedup_values),
	.run = run_dedup,
};

const struct cmd cmd_btf_merge = {
	.name = "btf merge",
	.summary = "write the types of several files into one, each type once",
	.operands = "FILE...",
	.n_operands_min = 1,
	.opts = merge_opts,
	.examples = merge_examples,
	.values_size = sizeof(struct dedup_values),
	.run = run_merge,
};
