/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer of a collector to a request of OTLP. */
#include "export/otlp.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "export/messages.h"
#include "otlp.pb-c.h"

/* For an answer of 4 MiB that is full of small fields. */
#define MEMORY_MAX ((size_t)256 << 20)

/* The begin of a text, up to a whole character. */
static void copy_text(const char *text, struct cairn_profile_answer *ret)
{
	size_t n = strlen(text), at = 0, len;
	uint32_t c;

	while (at < n && (len = utf8_length((const uint8_t *)text + at, n - at, &c)) &&
	       at + len < sizeof(ret->text))
		at += len;
	memcpy(ret->text, text, at);
	ret->text[at] = 0;
}

static int refused(const struct messages_memory *memory, const char *what, struct cairn_err *err)
{
	if (memory->rc == -ENOMEM)
		return err_nomem(err, "the server's answer");
	return err_set(err, -EBADMSG, "the answer is no %s", what);
}

static int read_response(const void *bytes, size_t size, struct cairn_profile_answer *ret,
			 struct cairn_err *err)
{
	struct messages_memory memory = {.max = MEMORY_MAX};
	ProtobufCAllocator allocator = messages_allocator(&memory);
	CairnOtlp__ExportProfilesServiceResponse *in =
		cairn_otlp__export_profiles_service_response__unpack(&allocator, size, bytes);
	int rc = 0;

	if (!in)
		return refused(&memory, "ExportProfilesServiceResponse", err);
	if (in->partial_success && in->partial_success->rejected_profiles < 0) {
		rc = err_set(err, -EBADMSG, "the answer rejects less than no profile");
	} else if (in->partial_success) {
		ret->n_rejected = (uint64_t)in->partial_success->rejected_profiles;
		copy_text(in->partial_success->error_message, ret);
	}
	cairn_otlp__export_profiles_service_response__free_unpacked(in, &allocator);
	return rc;
}

static int read_status(const void *bytes, size_t size, struct cairn_profile_answer *ret,
		       struct cairn_err *err)
{
	struct messages_memory memory = {.max = MEMORY_MAX};
	ProtobufCAllocator allocator = messages_allocator(&memory);
	CairnOtlp__Status *in = cairn_otlp__status__unpack(&allocator, size, bytes);

	if (!in)
		return refused(&memory, "Status", err);
	copy_text(in->message, ret);
	cairn_otlp__status__free_unpacked(in, &allocator);
	return 0;
}

int cairn_profile_read_answer(const void *bytes, size_t size, bool is_failure,
			      struct cairn_profile_answer *ret, struct cairn_err *err)
{
	*ret = (struct cairn_profile_answer){0};
	if (size > CAIRN_PROFILE_ANSWER_MAX)
		return err_set(err, -ERANGE, "the answer has more than 4 MiB");
	return is_failure ? read_status(bytes, size, ret, err)
			  : read_response(bytes, size, ret, err);
}
