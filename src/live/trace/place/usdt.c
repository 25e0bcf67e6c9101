/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the head of a USDT probe to its sites
 *
 *	/usr/lib/postgresql/15/bin/postgres:postgresql:lock__wait__start
 *	`-------------- PATH --------------'`PROVIDER-'`----- NAME -----'
 *
 * The last two parts are the provider and the name, which may be patterns; without the first it is
 * the executable of the process or command.
 */
#include <errno.h>
#include <string.h>

#include "base/near.h"
#include "sites/usdt.h"
#include "trace/trace.h"

struct head {
	const char *path; /* NULL: none */
	const char *provider, *name;
};

static int split(struct cairn_trace *t, const struct probe_text *text, struct head *ret,
		 struct cairn_err *err)
{
	char *copy = arena_strdup(&t->arena, text->head);
	char *colon = copy ? strrchr(copy, ':') : NULL;

	if (!copy)
		return err_nomem(err, "a probe");
	*ret = (struct head){.provider = copy};
	if (!colon || !colon[1] || colon == copy)
		return probe_error(err, -EINVAL, text->text, 0,
				   "a USDT probe is usdt:FILE:PROVIDER:NAME; cairn sites FILE "
				   "--usdt lists them");
	*colon = 0;
	ret->name = colon + 1;
	colon = strrchr(copy, ':');
	if (!colon)
		return 0;
	*colon = 0;
	ret->path = copy;
	ret->provider = colon + 1;
	return 0;
}

static int open_usdt(struct trace_file *f, struct cairn_err *err)
{
	return f->usdt ? 0 : cairn_usdt_open(f->bin, &f->usdt, err);
}

static int unknown(const struct trace_file *f, const struct head *head, struct cairn_err *err)
{
	const struct cairn_usdt_site *sites;
	size_t n = cairn_usdt_sites(f->usdt, &sites);
	struct near_names near = {.max = 1};

	if (!n)
		return err_set(err, -ENXIO, "%s has no USDT probes", f->shown);
	for (size_t i = 0; i < n; i++)
		near_offer(&near, sites[i].name, near_rank(head->name, sites[i].name));
	if (near.n)
		return err_set(err, -ENXIO,
			       "%s has no USDT probe %s:%s; perhaps you mean %s (cairn sites FILE "
			       "--usdt lists them)",
			       f->shown, head->provider, head->name, near.names[0]);
	return err_set(
		err, -ENXIO,
		"%s has no USDT probe %s:%s; cairn sites FILE --usdt lists those that it has",
		f->shown, head->provider, head->name);
}

static int targets_of(struct cairn_trace *t, const struct trace_file *f,
		      const struct usdt_functions *found, struct trace_targets *ret,
		      struct cairn_err *err)
{
	struct trace_target *targets = arena_array(&t->arena, found->n, sizeof(*targets));

	if (!targets)
		return err_nomem(err, "probes");
	for (size_t i = 0; i < found->n; i++)
		targets[i] = (struct trace_target){.function = &found->p[i].function,
						   .types = usdt_types(f->usdt),
						   .semaphores = found->p[i].semaphores};
	ret->p = targets;
	ret->n = found->n;
	return 0;
}

int resolve_usdt(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret_file,
		 struct trace_targets *ret, struct cairn_err *err)
{
	struct usdt_functions found;
	struct head head = {0};
	int e = split(t, text, &head, err);

	if (e == 0 && !head.path && !t->opts.pid && !t->opts.exe)
		return err_set(err, -EINVAL,
			       "%s: which file? Write usdt:FILE:%s:%s, or name a process or a "
			       "command",
			       text->text, head.provider, head.name);
	if (e == 0)
		e = resolve_file(t, head.path, ret_file, err);
	if (e == 0)
		e = open_usdt(*ret_file, err);
	if (e == 0)
		e = usdt_functions_find((*ret_file)->usdt, head.provider, head.name, &t->arena,
					&found, err);
	if (e < 0)
		return e;
	if (!found.n)
		return unknown(*ret_file, &head, err);
	ret->found = strpbrk(head.provider, "*?[") || strpbrk(head.name, "*?[")
			     ? CAIRN_FOUND_PATTERN
			     : CAIRN_FOUND_NAME;
	return targets_of(t, *ret_file, &found, ret, err);
}
