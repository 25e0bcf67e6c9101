/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES_MAX = 4096 };

static struct probe probes[PROBES_MAX];
/* All places from here on have always been free. */
static uint32_t n_probes;

struct probe *probe_add(const struct probe *as)
{
	uint32_t i = 0;

	while (i < n_probes && probes[i].kind)
		i++;
	if (i == PROBES_MAX)
		return NULL;
	char *text = as->text ? strdup(as->text) : NULL;
	if (as->text && !text)
		return NULL;
	probes[i] = *as;
	probes[i].text = text;
	if (i == n_probes)
		__atomic_store_n(&n_probes, i + 1, __ATOMIC_RELEASE);
	return &probes[i];
}

static struct probe *find(int fd, bool of_links)
{
	for (uint32_t i = 0; fd >= 0 && i < n_probes; i++)
		if (probes[i].kind && (of_links ? probes[i].link : probes[i].event) == fd)
			return &probes[i];
	return NULL;
}

struct probe *probe_of_event(int fd)
{
	return find(fd, false);
}

struct probe *probe_of_link(int fd)
{
	return find(fd, true);
}

bool probe_may_have(int fd)
{
	uint32_t n = __atomic_load_n(&n_probes, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&probes[i].event, __ATOMIC_RELAXED) == fd ||
		    __atomic_load_n(&probes[i].link, __ATOMIC_RELAXED) == fd)
			return true;
	return false;
}

void probe_free(struct probe *p)
{
	free(p->text);
	*p = (struct probe){.event = -1, .link = -1};
}

void probes_forget(void)
{
	for (uint32_t i = 0; i < n_probes; i++)
		probe_free(&probes[i]);
}
