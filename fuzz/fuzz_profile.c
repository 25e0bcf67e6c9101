/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles: pprof's messages and folded stacks, and what is written of them. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/profile.h>

#include "export/gzip.h"

/* What was written is read again, and has the same sum. */
static void write_and_read(const struct cairn_profile *p, size_t type, int64_t sum)
{
	struct cairn_profile_bytes bytes;
	struct cairn_profile *again;
	struct cairn_profile_shares shares;

	if (cairn_profile_pprof(p, &bytes, NULL) < 0)
		return;
	int rc = cairn_profile_read(bytes.bytes, bytes.size, "fuzz", &again, NULL);
	assert(rc == 0 || rc == -ENOMEM || rc == -ERANGE);
	if (rc == 0 && cairn_profile_shares(again, type, &shares, NULL) == 0) {
		assert(shares.sum == sum);
		cairn_profile_shares_free(&shares);
	}
	cairn_profile_close(again);
	free(bytes.bytes);
}

static void write_requests(const struct cairn_profile *p)
{
	static const enum cairn_profile_server servers[] = {
		CAIRN_PROFILE_PYROSCOPE, CAIRN_PROFILE_PARCA, CAIRN_PROFILE_OTLP};
	struct cairn_profile_bytes bytes;

	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		struct cairn_profile_push push = {.to = servers[i],
						  .id = "01234567-89ab-4def-8123-456789abcdef"};
		int rc = cairn_profile_push_request(p, &push, &bytes, NULL);

		assert(rc == 0 || rc == -ENOMEM || rc == -ENODATA || rc == -EFBIG);
		assert((rc == 0) == (bytes.bytes != NULL));
		free(bytes.bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_err err = {0};
	struct cairn_profile *p;
	struct cairn_profile_shares shares;
	struct cairn_profile_bytes folded, html, firefox;
	struct cairn_profile_ctf ctf;
	int rc = cairn_profile_read(bytes, size, "fuzz", &p, &err);

	assert((rc == 0) == (p != NULL));
	assert(rc == 0 || (err.code == rc && (rc == -EBADMSG || rc == -ERANGE || rc == -ENOMEM)));
	for (size_t type = 0; p && type < cairn_profile_n_types(p) && type < 2; type++) {
		if (cairn_profile_shares(p, type, &shares, NULL) == 0) {
			int64_t sum = shares.sum;
			cairn_profile_shares_free(&shares);
			write_and_read(p, type, sum);
		}
		if (cairn_profile_folded(p, type, &folded, NULL) == 0)
			free(folded.bytes);
		if (cairn_profile_html(p, type, "fuzz", &html, NULL) == 0)
			free(html.bytes);
		if (cairn_profile_firefox(p, type, "fuzz", false, &firefox, NULL) == 0)
			free(firefox.bytes);
		if (cairn_profile_ctf(p, type, "fuzz", &ctf, NULL) == 0)
			cairn_profile_ctf_free(&ctf);
	}
	if (p)
		write_requests(p);
	cairn_profile_close(p);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char text[] = "main;work;put_[i] 61\nmain;read_[k] 5\njitted_[j];x 2\n";
	struct cairn_profile_bytes bytes;
	struct cairn_profile *p;
	uint8_t *plain;
	size_t n;

	put(text, sizeof(text) - 1);
	if (cairn_profile_read(text, sizeof(text) - 1, "seed", &p, NULL) < 0)
		return;
	if (cairn_profile_pprof(p, &bytes, NULL) == 0) {
		put(bytes.bytes, bytes.size);
		/* Not compressed, so that a changed byte is a changed message. */
		if (gzip_inflate(bytes.bytes, bytes.size, "seed", &plain, &n, NULL) == 0) {
			put(plain, n);
			free(plain);
		}
		free(bytes.bytes);
	}
	cairn_profile_close(p);
}
