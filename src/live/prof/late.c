/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/late.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/libbpf.h>

#include "profile.skel.h"

static const struct call {
	enum late_form form;
	const char *name;
	size_t size; /* with both zeros around it, as in a table of strings */
} calls[] = {
#define CALL(form, name)                                                                           \
	{                                                                                          \
		form, "\0" name, sizeof("\0" name)                                                 \
	}
	CALL(LATE_6_18, "bpf_task_work_schedule_resume_impl"),
	CALL(LATE_7_0, "bpf_task_work_schedule_resume"),
};

enum late_form late_form_of_kernel(void)
{
	unsigned int major, minor;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return LATE_NONE;
	if (major > 6)
		return LATE_7_0;
	return major == 6 && minor >= 18 ? LATE_6_18 : LATE_NONE;
}

static void make_unknown(char *bytes, size_t n, const struct call *call)
{
	char *end = bytes + n, *at = bytes;

	while ((at = memmem(at, (size_t)(end - at), call->name, call->size))) {
		at[1] = '_';
		at += call->size;
	}
}

static int open_bytes(struct profile_bpf *bpf, const void *bytes)
{
	int e = profile_bpf__create_skeleton(bpf);

	if (e)
		return e;
	bpf->skeleton->data = bytes;
	return bpf_object__open_skeleton(bpf->skeleton, NULL);
}

struct profile_bpf *late_open(enum late_form form, void **ret_bytes)
{
	struct profile_bpf *bpf = calloc(1, sizeof(*bpf));
	size_t n;
	const void *elf = profile_bpf__elf_bytes(&n);
	char *bytes = malloc(n);

	*ret_bytes = bytes;
	if (!bpf || !bytes) {
		free(bpf);
		return NULL;
	}
	memcpy(bytes, elf, n);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].form != form)
			make_unknown(bytes, n, &calls[i]);
	if (open_bytes(bpf, bytes) == 0)
		return bpf;
	profile_bpf__destroy(bpf);
	return NULL;
}
