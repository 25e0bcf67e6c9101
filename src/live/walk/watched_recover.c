/* SPDX-License-Identifier: BSD-2-Clause */
/* After lost reports nothing is certain: all that is known of processes is looked at once more. */
#include <errno.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "code/target.h"
#include "walk/watched_impl.h"

/* Also if it was not waited for. */
static bool is_gone(int pid)
{
	return !target_living_thread(pid);
}

/* Those that are known: gone, or with other mappings. */
static int look_at_known(struct watched *p, uint64_t now_ns, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < p->list.n && rc == 0; i++) {
		struct walk_known *k = &p->list.p[i];
		if (k->has_ended)
			continue;
		if (k->made)
			k->made->is_unsure = true;
		rc = is_gone(k->pid) ? watched_ended(p, k->pid, now_ns, err)
				     : watched_note_outdated(p, k, err);
	}
	return rc;
}

/* Children that the kernel's program found by itself. */
static int look_at_unknown(struct watched *p)
{
	struct cairn_err unread = {0};
	uint32_t key, next;
	bool has_next = bpf_map_get_next_key(p->map_fd, NULL, &next) == 0;
	int rc = 0;

	while (has_next && rc != -ENOMEM) {
		key = next;
		has_next = bpf_map_get_next_key(p->map_fd, &key, &next) == 0;
		if (watched_find(p, (int)key))
			continue;
		rc = is_gone((int)key) ? -ESRCH : watched_add(p, (int)key, false, &unread);
		if (rc == -ESRCH)
			bpf_map_delete_elem(p->map_fd, &key);
	}
	return rc == -ENOMEM ? rc : 0;
}

int watched_recover(struct watched *p, uint64_t now_ns, struct cairn_err *err)
{
	int rc = look_at_known(p, now_ns, err);

	if (rc == 0 && look_at_unknown(p) < 0)
		rc = err_nomem(err, "processes");
	return rc;
}
