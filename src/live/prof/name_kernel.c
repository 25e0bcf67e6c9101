/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames in the kernel: by its own list of symbols. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "prof/name_impl.h"

/* The kernel's half of the addresses begins here. */
#define KERNEL_HALF (1ULL << 63)

/* A BPF program, or what leads to one. */
static bool is_of_tracepoint(const struct kernel_symbol *s)
{
	static const char *const begins[] = {"bpf_trace_run", "__bpf_trace_", "__traceiter_",
					     "perf_trace_", "trace_call_bpf"};

	if (s->module && !strcmp(s->module, "[bpf]"))
		return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(s->name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

size_t kernel_names_skip(const struct kernel_names *k, const uint64_t *frames, size_t n)
{
	size_t skip = 0;

	for (; skip < n; skip++) {
		const struct kernel_symbol *s = kernel_names_find(k, frames[skip]);

		if (!s || !is_of_tracepoint(s))
			break;
	}
	return skip;
}

/* ---- reading them ---- */

static int read_names(struct prof_names *names)
{
	const char *path = names->opts->kallsyms;

	return kernel_names_read(&names->kernel, path ? path : "/proc/kallsyms");
}

/* Without memory they are not read, and who asks for them finds out. */
static void *read_beside(void *ctx)
{
	read_names(ctx);
	return NULL;
}

void kernel_names_begin(struct prof_names *names)
{
	sigset_t all, before;

	if (names->is_reading || names->kernel.is_read)
		return;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	names->is_reading = pthread_create(&names->reader, NULL, read_beside, names) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kernel_names_await(struct prof_names *names)
{
	if (names->is_reading)
		pthread_join(names->reader, NULL);
	names->is_reading = false;
}

/* ---- naming by them ---- */

static int note_hidden(struct naming *n)
{
	return prof_names_add_note(n->names,
				   "kernel functions have no names: /proc/kallsyms does not show "
				   "addresses here; as root: sysctl kernel.kptr_restrict=1");
}

/* The half of the kernel: an address in it is shown as it is. */
static int mapping_of(struct naming *n, const struct kernel_symbol *s, uint32_t *ret,
		      struct cairn_err *err)
{
	struct cairn_profile_mapping m = {.start = KERNEL_HALF,
					  .limit = UINT64_MAX,
					  .offset = KERNEL_HALF,
					  .code = CAIRN_PROFILE_KERNEL};

	if (n->names->kernel.is_hidden)
		m.path = "[kernel]";
	else
		m.path = s && s->module ? s->module : "[kernel.kallsyms]";
	return cairn_profile_add_mapping(n->p, &m, ret, err);
}

int location_in_kernel(struct naming *n, uint64_t at, uint32_t *ret, struct cairn_err *err)
{
	struct kernel_names *k = &n->names->kernel;
	struct cairn_profile_location l = {.address = at};
	struct cairn_profile_line line = {0};
	const struct kernel_symbol *s;
	int rc;

	kernel_names_await(n->names);
	rc = read_names(n->names);
	if (rc == 0 && k->is_hidden)
		rc = note_hidden(n);
	if (rc < 0)
		return err_nomem(err, "the kernel's symbols");
	s = kernel_names_find(k, at);
	rc = mapping_of(n, s, &l.mapping, err);
	if (rc == 0 && s) {
		rc = add_plain_function(n, s->name, NULL, &line.function, err);
		l.symbol = s->at;
		l.lines = &line;
		l.n_lines = 1;
	}
	return rc < 0 ? rc : cairn_profile_add_location(n->p, &l, ret, err);
}
