/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verbs that make BTF of BTF write, and say of it. */
#include <inttypes.h>

#include <cairn/file.h>

#include "btf.h"
#include "json.h"
#include "say.h"

static void tell(const char *path, size_t size, uint32_t n, uint32_t n_before, bool as_json)
{
	struct json j = {.out = stdout};

	if (!as_json) {
		say(stdout, "%s: %zu bytes, %" PRIu32 " records of %" PRIu32 "\n", path, size, n, n_before);
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "out", path);
	json_uint(&j, "bytes", size);
	json_uint(&j, "records", n);
	json_uint(&j, "records_before", n_before);
	json_close(&j);
}

int btf_write(const char *path, const void *bytes, size_t size, const struct cairn_btf *base, uint32_t n_before, bool json)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_err err = {0};
	struct cairn_btf *made;
	int r = cairn_btf_open_mem(bytes, size, path, &opts, &made, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	uint32_t n = cairn_btf_end_id(made) - cairn_btf_start_id(made);

	cairn_btf_close(made);
	r = cairn_file_write(path, bytes, size, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	tell(path, size, n, n_before, json);
	return STATUS_YES;
}
