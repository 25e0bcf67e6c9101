/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors
 *
 * A function that can fail returns an int: 0 or a count when it worked, a negative errno when it
 * did not. The numbers are few:
 *
 *	-ENOENT      the wanted thing is not there
 *	-ENODATA     the file has no debug information
 *	-ENXIO       the file or the process is there, but not the thing that a probe names in it
 *	-EBADMSG     the input is damaged
 *	-EOPNOTSUPP  the input is of a kind or version that is not known here
 *	-ERANGE      the input exceeds one of our limits
 *	-EINVAL      the caller's request makes no sense
 *	-ENOMEM      no memory
 *
 * and the errors of system calls. The details are in a struct that the caller owns, usually on its
 * stack. Nothing needs to be freed.
 *
 *	struct cairn_err err = {0};
 *	if (cairn_binary_open(path, NULL, &bin, &err) < 0)
 *		fprintf(stderr, "cairn: %s\n", err.msg);
 *
 * Every function takes NULL for it. The library never prints and never exits.
 */
#ifndef CAIRN_ERR_H
#define CAIRN_ERR_H

#include <cairn/api.h>

CAIRN_BEGIN_DECLS

#define CAIRN_ERR_MSG_MAX 1536

struct cairn_err {
	/* The negative errno that the failing function returned; 0 while nothing failed. */
	int code;
	/*
	 * One or more lines for a person, without a final newline: the operation, the file, section
	 * and offset, the found value and the expected one. Cut at the buffer's end. Names and
	 * paths in it are quoted as text (cairn/text.h): it can be shown on a terminal.
	 */
	char msg[CAIRN_ERR_MSG_MAX];
};

CAIRN_END_DECLS
#endif
