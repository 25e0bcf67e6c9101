/* SPDX-License-Identifier: BSD-2-Clause */
/* codectl(), as a system call would be, on the registry of this process. */
#include <cairn/jit/codectl.h>

#include <errno.h>

#include "process.h"

static int serve(const struct codectl_request *request)
{
	struct registry_writer *w;
	int rc = process_enter(&w);
	if (rc < 0)
		return rc;
	if (request->option == CODE_UNREGISTER)
		rc = registry_writer_remove(w, request->range.text_start, request->range.text_end);
	else
		rc = registry_writer_add(w, request);
	process_leave();
	return rc;
}

static long call(enum codectl_numbers numbers, unsigned int option, const void *info,
		 size_t info_size, unsigned int flags)
{
	struct codectl_request request;
	enum code_opt meant;
	int rc = codectl_check_call(numbers, option, info_size, flags, &meant);
	if (rc == 0 && !info && info_size)
		rc = -EFAULT;
	if (rc == 0)
		rc = codectl_read_request(meant, info, info_size, &request);
	return rc < 0 ? rc : serve(&request);
}

long codectl(unsigned int option, const void *info, size_t info_size, unsigned int flags)
{
	return call(CODECTL_NUMBERS_REVIEWED, option, info, info_size, flags);
}

long codectl_rfc(unsigned int option, const void *info, size_t info_size, unsigned int flags)
{
	return call(CODECTL_NUMBERS_RFC, option, info, info_size, flags);
}
