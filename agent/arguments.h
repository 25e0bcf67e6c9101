/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request of a call of codectl(), and whether it makes sense
 *
 * The rules of the ABI and nothing else: no state, no memory but the arguments'. The library checks
 * its callers' calls with them, and so can a supervisor that serves the system call for another
 * process: step 1 before its memory is read, step 2 on the bytes that were read.
 */
#ifndef AGENT_ARGUMENTS_H
#define AGENT_ARGUMENTS_H

#include <cairn/shared/codectl.h>

enum {
	CODECTL_INFO_MAX = 4096, /* bytes of info, as the kernel's own calls of this kind: a page */
	CODECTL_PATH_MAX = 4096, /* of a string, with its NUL: PATH_MAX */
	CODECTL_BUILD_ID_MAX = 64, /* linkers write 8 to 20 bytes */
};

/* The same numbers mean different things; see cairn/jit/codectl.h. */
enum codectl_numbers { CODECTL_NUMBERS_REVIEWED, CODECTL_NUMBERS_RFC };

struct codectl_request {
	enum code_opt option;
	union {
		struct code_elf_info elf;
		/* the members after the RFC's part are 0 when it is not marked as extended */
		struct code_jit_info jit;
		struct code_unregister_info range;
	};
};

/*
 * codectl_check_call - step 1: the checks that do not need info
 *
 * @ret  the request, whatever its number is
 * Returns 0; -EINVAL (flags, or no such option), -E2BIG (more bytes than any info has).
 */
int codectl_check_call(enum codectl_numbers numbers, unsigned int option, size_t info_size,
		       unsigned int flags, enum code_opt *ret);

/*
 * codectl_read_request - step 2: the bytes of info
 *
 * @info  @info_size bytes, at most CODECTL_INFO_MAX, at any alignment
 * @ret   filled in when the result is 0; strings are still where the caller has them
 * Returns 0; -E2BIG (the bytes after the known members are not 0), -EINVAL (its values are
 * impossible),
 * -ERANGE (a JIT's region of more than 4 GiB, a build-id of more than CODECTL_BUILD_ID_MAX bytes).
 */
int codectl_read_request(enum code_opt option, const void *info, size_t info_size,
			 struct codectl_request *ret);

/* [@ret_lo, @ret_hi) is the range of the request. */
void codectl_request_text(const struct codectl_request *request, uint64_t *ret_lo,
			  uint64_t *ret_hi);

#endif
