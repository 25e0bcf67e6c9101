/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the loader will put a preloaded library into a program
 *
 * It ignores LD_PRELOAD without a word for programs that gain privileges, a static program has no
 * loader, and for those of another machine the library is the wrong one. Whoever relies on a
 * preloaded library wants to know before.
 *
 *	enum cairn_preload_obstacle why;
 *	if (cairn_preload_look("/bin/busybox", &why, &err) == 0 && why == CAIRN_PRELOAD_STATIC)
 *		...
 */
#ifndef CAIRN_PRELOAD_H
#define CAIRN_PRELOAD_H

#include <stddef.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

enum cairn_preload_obstacle {
	CAIRN_PRELOAD_NONE,
	/* no program interpreter; a loader that is run as a program has none either */
	CAIRN_PRELOAD_STATIC,
	/* set-user-ID, set-group-ID or file capabilities that the caller does not have */
	CAIRN_PRELOAD_PRIVILEGED,
	CAIRN_PRELOAD_FOREIGN, /* of another machine or word size than this program */
};

/*
 * cairn_preload_look - the obstacle to preloading a library into the program in a file
 *
 * @exe  path of a program; for any other file, such as a script, the result is CAIRN_PRELOAD_NONE
 * Returns 0; -EBADMSG (an ELF file that is damaged), and the errors of open(2) and read(2).
 * Cost: some system calls. Threads: any. Signals: no.
 */
int cairn_preload_look(const char *exe, enum cairn_preload_obstacle *ret, struct cairn_err *err);

/* The same for the first bytes of a file: only its headers are read. */
int cairn_preload_look_at(const void *bytes, size_t n, enum cairn_preload_obstacle *ret,
			  struct cairn_err *err);

CAIRN_END_DECLS
#endif
