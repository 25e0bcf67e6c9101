/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that are in files beside the process: they may be appended to at any moment, and have no
 * generations.
 */
#include "code/runtime_impl.h"

#include <errno.h>

#include "base/err.h"

static int read_dumps(struct code_runtime *rt, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	rt->n_dumps = 0;
	for (size_t i = 0; i < maps->p.n && rt->n_dumps < RUNTIME_MAX_DUMPS; i++) {
		struct cairn_err story = {0};
		if (!maps->p.p[i].is_executable || !jitdump_is_name(maps->p.p[i].path))
			continue;
		int rc = jitdump_refresh(&rt->dumps[rt->n_dumps], rt->pid, maps->p.p[i].path,
					 &story);
		if (rc == -ENOMEM)
			return err_nomem(err, "a jitdump file");
		if (rc < 0)
			runtime_note(rt, story.msg);
		rt->n_dumps += rc == 0;
	}
	return 0;
}

int runtime_read_files(struct code_runtime *rt, struct cairn_err *err)
{
	struct cairn_err story = {0};
	if (rt->has_read_files || !rt->pid)
		return 0;
	rt->has_read_files = true;
	int rc = perf_map_refresh(&rt->perf, rt->pid, &story);
	if (rc == -ENOMEM)
		return err_nomem(err, "a perf map");
	if (rc < 0)
		runtime_note(rt, story.msg);
	return read_dumps(rt, err);
}
