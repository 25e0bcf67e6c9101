/* SPDX-License-Identifier: BSD-2-Clause */
/* The output and the messages of the verbs that make BTF from BTF. */
#include <inttypes.h>

#include <cairn/text.h>

#include "btf.h"
#include "json.h"
#include "say.h"
#include "truncated.h"

static void tell(const char *path, size_t size, uint32_t n, uint32_t n_before, bool as_json)
{
	struct json j = {.out = stdout};

	if (!as_json) {
		say(stdout, "%s: %zu bytes, %s of %" PRIu32 "\n", path, size,
		    cairn_counted(n, "record").text, n_before);
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "out", path);
	json_uint(&j, "bytes", size);
	json_uint(&j, "records", n);
	json_uint(&j, "records_before", n_before);
	json_close(&j);
}

static int count_records(const struct btf_made *made, uint32_t *ret)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = made->base};
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	int r = cairn_btf_open_mem(made->bytes, made->size, made->path, &opts, &btf, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	*ret = cairn_btf_end_id(btf) - cairn_btf_start_id(btf);
	cairn_btf_close(btf);
	return STATUS_YES;
}

int btf_write(const struct btf_made *made, size_t n, bool json)
{
	struct cairn_file files[BTF_MADE_MAX] = {0};
	uint32_t records[BTF_MADE_MAX];
	struct cairn_err err = {0};
	int status = STATUS_YES;

	for (size_t i = 0; !status && i < n; i++) {
		files[i] = (struct cairn_file){made[i].path, made[i].bytes, made[i].size};
		status = count_records(&made[i], &records[i]);
	}
	if (status)
		return status;
	int r = write_whole_answers(files, n, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	for (size_t i = 0; i < n; i++)
		tell(made[i].path, made[i].size, records[i], made[i].n_before, json);
	return STATUS_YES;
}
