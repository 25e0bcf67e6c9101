/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf dump: the records of a file as text. */
#include <stdlib.h>
#include <string.h>

#include "btf.h"

struct dump_values {
	struct btf_source file;
	struct opt_list types;
	const char *format;
	bool pretty, json;
};

static const struct opt opts[] = {
	BTF_OPT_BASE(offsetof(struct dump_values, file.bases)),
	{'t', "type", OPT_LIST, "NAME", offsetof(struct dump_values, types),
	 "only the records of this name or number, in C with the types they need; may be repeated"},
	{'f', "format", OPT_TEXT, "raw|c", offsetof(struct dump_values, format),
	 "records as bpftool prints them, or declarations in C"},
	{0, "pretty", OPT_FLAG, NULL, offsetof(struct dump_values, pretty),
	 "locations as people write them: *(u64 *)(rsp + 16)"},
	{0, "json", OPT_FLAG, NULL, offsetof(struct dump_values, json),
	 "one JSON object per record"},
	BTF_OPT_SECTION(offsetof(struct dump_values, file.section)),
	BTF_OPT_DIALECT(offsetof(struct dump_values, file.dialect)),
	{0},
};

static const struct example examples[] = {
	{"cairn btf dump /sys/kernel/btf/vmlinux",
	 "the running kernel's types, as bpftool prints them"},
	{"cairn btf dump --format c /sys/kernel/btf/vmlinux >vmlinux.h",
	 "a header for BPF programs"},
	{"cairn btf dump --format c -t 'struct dirent' app.btf",
	 "one struct and the types it needs"},
	{"cairn btf dump --pretty -B app.btf app.btf.inline",
	 "the locations of inlined functions and their arguments"},
	{0},
};

struct ids {
	uint32_t *p;
	size_t n, cap;
};

static int add_id(struct ids *ids, uint32_t id)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? 2 * ids->cap : 16;
		uint32_t *p = realloc(ids->p, cap * sizeof(*p));

		if (!p)
			return fail(STATUS_NOT_HERE, "no memory");
		ids->p = p;
		ids->cap = cap;
	}
	ids->p[ids->n++] = id;
	return STATUS_YES;
}

/*
 * "struct NAME", "union NAME" and "enum NAME" give the kind; @name is moved past it.
 */
static bool has_keyword(const char **name, const char *keyword)
{
	size_t len = strlen(keyword);

	if (strncmp(*name, keyword, len) || (*name)[len] != ' ')
		return false;
	*name += len + 1;
	return true;
}

static bool is_wanted(const struct cairn_btf *btf, uint32_t id, const char *keyword)
{
	struct cairn_btf_type t;

	if (!cairn_btf_type(btf, id, &t))
		return false;
	switch (t.kind) {
	case CAIRN_BTF_STRUCT:
		return !keyword || !strcmp(keyword, "struct");
	case CAIRN_BTF_UNION:
		return !keyword || !strcmp(keyword, "union");
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		return !keyword || !strcmp(keyword, "enum");
	default:
		return !keyword;
	}
}

static int find_type(const struct cairn_btf *btf, const char *spec, struct ids *ids)
{
	static const char *const keywords[] = {"struct", "union", "enum"};
	const char *keyword = NULL, *name = spec;
	size_t before = ids->n;
	char *end;
	unsigned long number = strtoul(spec, &end, 10);
	int status = STATUS_YES;

	if (*spec >= '0' && *spec <= '9' && !*end && number && number < cairn_btf_end_id(btf))
		return add_id(ids, (uint32_t)number);
	for (size_t i = 0; !keyword && i < sizeof(keywords) / sizeof(keywords[0]); i++)
		keyword = has_keyword(&name, keywords[i]) ? keywords[i] : NULL;
	for (uint32_t id = 0; !status && (id = cairn_btf_find(btf, name, CAIRN_BTF_VOID, id));)
		if (is_wanted(btf, id, keyword))
			status = add_id(ids, id);
	return status || ids->n > before ? status : fail(STATUS_NO, "no record is named %s", spec);
}

static int dump(const struct cairn_btf *btf, const struct dump_values *values)
{
	enum cairn_btf_format format = values->pretty ? CAIRN_BTF_PRETTY : CAIRN_BTF_RAW;
	struct cairn_err err = {0};
	struct ids ids = {0};
	int status = STATUS_YES;

	if (values->format && !strcmp(values->format, "c"))
		format = CAIRN_BTF_C;
	for (size_t i = 0; i < values->types.n; i++) {
		int one = find_type(btf, values->types.items[i], &ids);

		/* Results are still shown. */
		status = one > status ? one : status;
	}
	if (status && !ids.n)
		return status;
	if (values->json) {
		btf_json(btf, ids.p, ids.n);
	} else {
		uint32_t n_renamed;
		int r = cairn_btf_dump_renaming(btf, format, ids.p, ids.n, 0, stdout, &n_renamed,
						&err);

		warn_of_renamed(n_renamed);
		/* An error of the output is reported when the program ends. */
		if (r < 0 && !ferror(stdout))
			status = fail_err(r, &err, STATUS_NO);
	}
	free(ids.p);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	const struct dump_values *values = v;
	struct btf_chain chain;

	if (values->json + values->pretty + (values->format != NULL) > 1)
		return fail(STATUS_USAGE,
			    "--format, --pretty and --json are different answers; choose one");
	int status = btf_open_only(operands, &values->file, &chain);

	if (!status)
		status = dump(btf_of(&chain), values);
	btf_close(&chain);
	return status;
}

const struct cmd cmd_btf_dump = {
	.name = "btf dump",
	.summary = "print BTF as records, C declarations or JSON",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct dump_values),
	.pages = true,
	.run = run,
};
