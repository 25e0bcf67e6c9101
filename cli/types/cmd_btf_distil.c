/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf distil: split BTF on the least of its base. */
#include <stdio.h>
#include <stdlib.h>

#include "btf.h"

struct distil_values {
	struct btf_source file;
	const char *out;
	bool json;
};

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", offsetof(struct distil_values, out),
	 "the files to write, OUT and OUT.base; each appears whole or not at all"},
	BTF_OPT_BASE(offsetof(struct distil_values, file.bases)),
	BTF_OPT_SECTION(offsetof(struct distil_values, file.section)),
	BTF_OPT_DIALECT(offsetof(struct distil_values, file.dialect)),
	{0, "json", OPT_FLAG, NULL, offsetof(struct distil_values, json),
	 "the output's counts, as a JSON object per file"},
	{0},
};

static const struct example examples[] = {
	{"cairn btf distil -B vmlinux.btf module.btf -o module.small.btf",
	 "a module's types on the least of the kernel's (.BTF.base), to be found in another build "
	 "of it"},
	{"cairn btf dump -B module.small.btf.base module.small.btf", "to look at the result"},
	{0},
};

static int write_both(const struct distil_values *values, const struct cairn_btf *btf, void *base,
		      size_t base_size, const void *split, size_t split_size)
{
	struct cairn_btf_open_opts open = {.size = sizeof(open)};
	struct cairn_btf *on;
	struct cairn_err err = {0};
	char *path;

	if (asprintf(&path, "%s.base", values->out) < 0)
		return fail(STATUS_NOT_HERE, "no memory");
	int r = cairn_btf_open_mem(base, base_size, path, &open, &on, &err);
	int status = r < 0 ? fail_err(r, &err, STATUS_NO) : STATUS_YES;

	if (!status) {
		const struct btf_made made[] = {
			{path, base, base_size, NULL, cairn_btf_start_id(btf) - 1},
			{values->out, split, split_size, on,
			 cairn_btf_end_id(btf) - cairn_btf_start_id(btf)},
		};

		status = btf_write(made, 2, values->json);
		cairn_btf_close(on);
	}
	free(path);
	return status;
}

static int distil(const struct distil_values *values, const struct cairn_btf *btf)
{
	struct cairn_err err = {0};
	void *base = NULL, *split = NULL;
	size_t base_size, split_size;
	int r = cairn_btf_distil_base(btf, &base, &base_size, &split, &split_size, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	int status = write_both(values, btf, base, base_size, split, split_size);

	free(base);
	free(split);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	const struct distil_values *values = v;
	struct btf_chain chain;

	if (!values->out)
		return fail(STATUS_USAGE, "cairn btf distil needs -o OUT");
	int status = btf_open_only(operands, &values->file, &chain);

	if (!status)
		status = distil(values, btf_of(&chain));
	btf_close(&chain);
	return status;
}

const struct cmd cmd_btf_distil = {
	.name = "btf distil",
	.summary = "write split BTF on the least that it needs of its base",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct distil_values),
	.run = run,
};
