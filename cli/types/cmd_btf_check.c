/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf check: does a file keep the rules of the format? */
#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "btf.h"
#include "json.h"
#include "say.h"
#include "truncated.h"

struct check_values {
	struct btf_source file;
	const char *kernel;
	bool json;
};

static const struct opt opts[] = {
	BTF_OPT_BASE(offsetof(struct check_values, file.bases)),
	{0, "kernel", OPT_MAYBE, "VERSION", offsetof(struct check_values, kernel),
	 "also the rules by which Linux of that version loads it (BPF_BTF_LOAD): 6.18, or all; "
	 "otherwise this machine's"},
	{0, "json", OPT_FLAG, NULL, offsetof(struct check_values, json),
	 "one JSON object per broken rule, then a summary"},
	BTF_OPT_SECTION(offsetof(struct check_values, file.section)),
	BTF_OPT_DIALECT(offsetof(struct check_values, file.dialect)),
	{0},
};

static const struct example examples[] = {
	{"cairn btf check /sys/kernel/btf/vmlinux", "whether the running kernel's types are sound"},
	{"cairn btf check --kernel app.btf",
	 "whether this machine's kernel would load it, and the records it would refuse"},
	{"cairn btf check --kernel=6.6 app.btf", "the same of Linux 6.6"},
	{"cairn btf check -B app.btf app.btf.inline", "the same of split BTF"},
	{0},
};

struct answer {
	const char *path;
	bool json;
};

static void report(void *ctx, uint32_t id, uint64_t off, const char *text)
{
	const struct answer *a = ctx;
	struct json j = {.out = stdout};

	if (!a->json) {
		say(stdout, "%s: record %" PRIu32 " at offset 0x%" PRIx64 ": %s\n", a->path, id,
		    off, text);
		return;
	}
	json_open(&j, NULL, '{');
	json_uint(&j, "record", id);
	json_hex(&j, "offset", off);
	json_text(&j, "text", text);
	json_close(&j);
}

static void summarise(const struct answer *a, const struct cairn_btf *btf, int broken)
{
	uint32_t n = cairn_btf_end_id(btf) - cairn_btf_start_id(btf);
	struct json j = {.out = stdout};

	if (!a->json) {
		say(stdout, "%s: %s, ", a->path, cairn_counted(n, "record").text);
		if (broken)
			say(stdout, "%s\n", cairn_counted((uint64_t)broken, "broken rule").text);
		else
			puts("sound");
		return;
	}
	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "path", a->path);
	json_uint(&j, "records", n);
	json_int(&j, "broken", broken);
	json_close(&j);
}

static int run(void *v, const struct operands *operands)
{
	const struct check_values *values = v;
	struct answer a = {.path = operands->items[0], .json = values->json};
	struct btf_chain chain;
	uint32_t version = 0;
	int status = STATUS_YES;

	if (values->kernel)
		status = btf_linux_version(values->kernel, &version);
	if (status)
		return status;
	status = btf_open_only(operands, &values->file, &chain);
	if (!status) {
		int broken = values->kernel ? cairn_btf_check_for_kernel(btf_of(&chain), version,
									 report, &a)
					    : cairn_btf_check(btf_of(&chain), report, &a);

		if (broken == -EBADMSG)
			status = truncated_status(STATUS_NO);
		else if (broken < 0)
			status = fail(STATUS_NOT_HERE, "no memory");
		else
			summarise(&a, btf_of(&chain), broken);
		if (broken > 0)
			status = STATUS_NO;
	}
	btf_close(&chain);
	return status;
}

const struct cmd cmd_btf_check = {
	.name = "btf check",
	.summary = "check BTF against every rule of the format",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct check_values),
	.pages = true,
	.run = run,
};
