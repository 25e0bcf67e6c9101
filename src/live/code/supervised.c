/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/supervised.h"

#include <errno.h>
#include <string.h>

#include "code/notice.h"

/*
 * Processes forked from each other, none of which called; a shell's pipeline has two or three.
 */
enum { MAX_PARENTS = 16 };

static void set(struct registry *r, const struct notice *notice, uint64_t as_of_ns)
{
	r->memory = code_memory_of_process(notice->supervisor);
	r->lo = notice->registry;
	r->hi = notice->registry + notice->size;
	r->as_of_ns = as_of_ns;
}

/*
 * 1 and *@ret, 0, or the reason why the notice is not accepted. A stale notice is none: its process
 * runs another program now.
 */
static int look(int pid, struct notice *ret, struct cairn_err *err)
{
	bool is_stale;
	int rc = notice_find(pid, ret, &is_stale, err);
	if (rc == 0)
		return 1;
	return rc == -EPERM || rc == -EBADMSG ? rc : 0;
}

int supervised_find(int pid, struct registry *ret, struct cairn_err *err)
{
	struct notice notice;
	struct target_id child, parent;
	int rc = look(pid, &notice, err);
	if (rc == 1)
		set(ret, &notice, 0);
	if (rc || !target_identify(pid, &child))
		return rc;
	for (int i = 0; i < MAX_PARENTS; i++, child = parent) {
		int up = target_parent_of(child.pid);
		if (up <= 1 || !target_identify(up, &parent) || parent.start > child.start ||
		    memcmp(parent.program, child.program, sizeof(child.program)))
			return 0;
		rc = look(up, &notice, err);
		if (rc == 1)
			set(ret, &notice, target_forked_ns(&child));
		if (rc)
			return rc;
	}
	return 0;
}
