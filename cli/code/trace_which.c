/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_which.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>

#include "say.h"

/* A number before a comma or the end; NULL: there is none. */
static const char *read_pid(const char *text, int *ret)
{
	char *end;

	errno = 0;
	long pid = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;
	if (pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
		return NULL;
	*ret = (int)pid;
	return end;
}

static int add_pids(const char *text, struct session *session)
{
	for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
		int pid;

		end = read_pid(at, &pid);
		if (!end)
			return fail(STATUS_USAGE, "not a process id: %s", text);
		session->pids[session->n_pids++] = pid;
	}
	return STATUS_YES;
}

int trace_which_pids(const struct opt_list *list, struct session *session)
{
	size_t n = 1;
	int status = STATUS_YES;

	/* A number takes a character at least. */
	for (size_t i = 0; i < list->n; i++)
		n += strlen(list->items[i]);
	session->pids = calloc(n, sizeof(*session->pids));
	if (!session->pids)
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < list->n && !status; i++)
		status = add_pids(list->items[i], session);
	return status;
}

int trace_which_output(const char *path, int *ret)
{
	struct cairn_err err = {0};
	int fd = cairn_file_create(path, &err);

	if (fd < 0)
		return fail_err(fd, &err, STATUS_USAGE);
	*ret = fd;
	return STATUS_YES;
}

int trace_which_text(const struct session *session, char *buf, size_t size)
{
	int pid = cairn_trace_pid(session->trace);

	if (pid)
		return snprintf(buf, size, "process %d", pid);
	return snprintf(buf, size, "one of %zu processes", session->n_pids);
}

void trace_which_awaited(struct session *session, uint32_t probe)
{
	const struct cairn_trace_probe *p = cairn_trace_probe(session->trace, probe);
	char who[40];

	if (!p->is_awaited)
		return;
	session->looks = true;
	trace_which_text(session, who, sizeof(who));
	say(stderr, "%s: not loaded yet; its calls are seen once %s has loaded it\n", p->path, who);
}

void trace_which_attached(const struct session *session)
{
	if (session->of_process)
		return;
	if (!session->cgroup && !session->comm) {
		if (cairn_trace_probe(session->trace, 0)->of_kernel)
			return;
		say(stderr, "all processes that map the probed files are traced; -p, --comm and "
			    "--cgroup choose\n");
		return;
	}
	say(stderr, "processes");
	if (session->comm)
		say(stderr, " with the name %s", session->comm);
	if (session->cgroup)
		say(stderr, " in %s", session->cgroup);
	say(stderr, " are traced, also those that start later\n");
}
