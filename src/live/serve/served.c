/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/served.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/registry_writer.h"
#include "base/err.h"
#include "code/notice.h"

struct served {
	struct registry_writer writer;
	int pid;
};

static int leave_notice(const struct served *s, const struct target_id *id, struct cairn_err *err)
{
	struct target_id self;
	if (!target_identify(getpid(), &self))
		return err_set(err, -EPERM, "this process may not read its own files below /proc");
	struct notice notice = {
		.supervisor = self.pid,
		.supervisor_start = self.start,
		.process = *id,
		.registry = (uintptr_t)s->writer.head,
		.size = s->writer.head->size,
	};
	return notice_leave(&notice, err);
}

static int new_hidden(int pid, struct served **ret, struct cairn_err *err)
{
	struct served *s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, "a registry");
	int rc = registry_writer_open(&s->writer);
	if (rc < 0) {
		free(s);
		return err_set(err, rc, "a registry: %s", strerror(-rc));
	}
	s->pid = pid;
	*ret = s;
	return 0;
}

static int show(struct served *s, const struct target_id *id, struct served **ret,
		struct cairn_err *err)
{
	registry_writer_show(&s->writer);
	int rc = leave_notice(s, id, err);
	if (rc < 0)
		served_end(s);
	else
		*ret = s;
	return rc;
}

int served_new(const struct target_id *id, struct served **ret, struct cairn_err *err)
{
	struct served *s = NULL;
	int rc = new_hidden(id->pid, &s, err);
	return rc < 0 ? rc : show(s, id, ret, err);
}

/*
 * Removed entries stay readable for a while: entries removed after the fork are still the child's.
 */
static bool was_there(const struct codectl_entry *e, uint64_t at_ns)
{
	return (e->epoch || e->last_epoch) && e->since_ns <= at_ns &&
	       (e->epoch || e->until_ns > at_ns);
}

static int copy_entries(const struct served *from, uint64_t at_ns, struct served *to)
{
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < from->writer.head->n_entries; i++) {
		const struct codectl_entry *e = &from->writer.entries[i];
		struct codectl_request request = {.option = (enum code_opt)e->option};
		if (!was_there(e, at_ns))
			continue;
		if (request.option == CODE_REGISTER_ELF)
			request.elf = e->info.elf;
		else
			request.jit = e->info.jit;
		rc = registry_writer_add(&to->writer, &request);
	}
	return rc;
}

int served_copy(const struct served *from, uint64_t at_ns, const struct target_id *id,
		struct served **ret, struct cairn_err *err)
{
	struct served *s = NULL;
	int rc = new_hidden(id->pid, &s, err);
	if (rc < 0)
		return rc;
	rc = copy_entries(from, at_ns, s);
	if (rc == 0)
		return show(s, id, ret, err);
	served_end(s);
	return err_set(err, rc, "copying the registry of process %d: %s", from->pid, strerror(-rc));
}

int served_apply(struct served *s, const struct codectl_request *request)
{
	if (request->option == CODE_UNREGISTER)
		return registry_writer_remove(&s->writer, request->range.text_start,
					      request->range.text_end);
	return registry_writer_add(&s->writer, request);
}

void served_end(struct served *s)
{
	if (!s)
		return;
	notice_take_back(s->pid);
	registry_writer_close(&s->writer);
	free(s);
}
