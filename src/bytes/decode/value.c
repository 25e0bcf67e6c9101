/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans for callers: kept, or for one value that goes to a stream. */
#include <errno.h>
#include <stdlib.h>

#include "decode/plan.h"

int cairn_decode_new(const struct cairn_types *types, uint32_t id,
		     const struct cairn_value_opts *opts, struct cairn_decode **ret,
		     struct cairn_err *err)
{
	return plan_compile(types, id, NULL, opts, ret, err);
}

int cairn_text_put(struct cairn_text_out *out, const char *text, size_t n)
{
	out_bytes(out, text, n);
	return out->failed;
}

int cairn_text_quote(struct cairn_text_out *out, const char *text, size_t n, bool json)
{
	const struct look look = {.json = json};

	out_text(out, &look, (const uint8_t *)text, n, NULL);
	return out->failed;
}

static int write_stream(void *ctx, const char *text, size_t n)
{
	FILE *to = ctx;

	errno = 0;
	if (fwrite_unlocked(text, 1, n, to) == n)
		return 0;
	return errno > 0 ? -errno : -EIO;
}

static int print(const struct cairn_types *types, uint32_t id, const struct cairn_member *member,
		 const void *bytes, size_t n_bytes, const struct cairn_value_opts *opts, FILE *to)
{
	char buf[4 * CAIRN_TEXT_OUT_MIN];
	struct cairn_text_out out = {
		.buf = buf, .size = sizeof(buf), .flush = write_stream, .ctx = to};
	struct cairn_decode *d;
	int rc = plan_compile(types, id, member, opts, &d, NULL);

	if (rc < 0)
		return rc;
	flockfile(to);
	rc = cairn_decode_run(d, bytes, n_bytes, &out);
	if (!rc && out.n)
		rc = write_stream(to, buf, out.n);
	funlockfile(to);
	cairn_decode_free(d);
	return rc;
}

int cairn_value_print(const struct cairn_types *types, uint32_t id, const void *bytes,
		      size_t n_bytes, const struct cairn_value_opts *opts, FILE *out)
{
	return print(types, id, NULL, bytes, n_bytes, opts, out);
}

int cairn_value_print_member(const struct cairn_types *types, const struct cairn_member *member,
			     const void *bytes, size_t n_bytes, const struct cairn_value_opts *opts,
			     FILE *out)
{
	return print(types, 0, member, bytes, n_bytes, opts, out);
}
