/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server of OTLP answers. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <cairn/profile.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	for (int is_failure = 0; is_failure < 2; is_failure++) {
		struct cairn_profile_answer answer;
		struct cairn_err err = {0};
		int rc = cairn_profile_read_answer(bytes, size, is_failure, &answer, &err);

		assert(rc == 0 ||
		       (err.code == rc && (rc == -EBADMSG || rc == -ERANGE || rc == -ENOMEM)));
		assert(strnlen(answer.text, sizeof(answer.text)) < sizeof(answer.text));
		assert(!is_failure || !answer.n_rejected);
	}
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/*
	 * Full success; a warning; 3 rejected with the reason; a field that nobody knows; a Status.
	 */
	static const char warning[] = "\x0a\x06\x12\x04slow",
			  rejected[] = "\x0a\x0a\x08\x03\x12\x06no \xc3\xbc!",
			  unknown[] = "\x0a\x04\x08\x02\x18\x05\x9d\x01\x01\x02\x03\x04",
			  status[] = "\x08\x03\x12\x07invalid\x1a\x02\x0a\x00";

	put("", 0);
	put(warning, sizeof(warning) - 1);
	put(rejected, sizeof(rejected) - 1);
	put(unknown, sizeof(unknown) - 1);
	put(status, sizeof(status) - 1);
}
