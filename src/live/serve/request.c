/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/request.h"

#include <errno.h>
#include <string.h>

enum { PAGE = 4096 };

/*
 * As strncpy_from_user(): nothing after the string is read, so a string may end where its mapping
 * does. Memory comes and goes by pages: within one page, all of it is there or nothing.
 */
static int fetch_string(const struct caller *caller, uint64_t *at, char ret[CODECTL_PATH_MAX])
{
	size_t n = 0;
	if (!*at)
		return 0;
	while (n < CODECTL_PATH_MAX) {
		size_t part = PAGE - (*at + n) % PAGE;
		if (part > CODECTL_PATH_MAX - n)
			part = CODECTL_PATH_MAX - n;
		int rc = caller->read(caller->ctx, *at + n, ret + n, part);
		if (rc < 0)
			return rc;
		if (memchr(ret + n, 0, part)) {
			*at = (uintptr_t)ret;
			return 0;
		}
		n += part;
	}
	return -ENAMETOOLONG;
}

static int fetch_elf(const struct caller *caller, struct code_elf_info *elf, struct fetched *f)
{
	int rc = fetch_string(caller, &elf->pathname, f->path);
	if (rc == 0)
		rc = fetch_string(caller, &elf->debug_link_pathname, f->debug_link);
	if (rc == 0 && elf->build_id) {
		rc = caller->read(caller->ctx, elf->build_id, f->build_id, elf->build_id_len);
		elf->build_id = (uintptr_t)f->build_id;
	}
	return rc;
}

int request_fetch(const struct caller *caller, enum codectl_numbers numbers, const uint64_t args[4],
		  struct fetched *ret)
{
	uint8_t info[CODECTL_INFO_MAX];
	enum code_opt option;
	uint64_t size = args[2];
	/* Option and flags are unsigned int: the upper halves of their registers mean nothing. */
	int rc = codectl_check_call(numbers, (unsigned int)args[0], size, (unsigned int)args[3],
				    &option);
	if (rc == 0 && size)
		rc = caller->read(caller->ctx, args[1], info, size);
	if (rc == 0)
		rc = codectl_read_request(option, info, size, &ret->request);
	if (rc < 0)
		return rc;
	switch (option) {
	case CODE_REGISTER_ELF:
		return fetch_elf(caller, &ret->request.elf, ret);
	case CODE_REGISTER_JIT:
		return fetch_string(caller, &ret->request.jit.name, ret->path);
	case CODE_UNREGISTER:
		break;
	}
	return 0;
}
