/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/btf/sites.h>
#include <cairn/text.h>

#include "cmd.h"
#include "running.h"
#include "say.h"

/* The kernel, or a module. */
struct kernel_source {
	struct kernel_source *next;
	struct running running;
	struct sidecar_wish wish;
	struct sidecar_sites source;
};

static int open_source(const struct session *session, const char *module, struct kernel_source *k)
{
	const struct cairn_binary_opts opts = {
		.size = sizeof(opts),
		.debug_dirs = session->wish.debug_dirs.items,
		.n_debug_dirs = session->wish.debug_dirs.n,
		.debug_file = session->debug_file,
	};
	const struct cairn_sites_opts sites_opts = {.size = sizeof(sites_opts),
						    .threads = session->wish.jobs};
	int status;

	k->wish = session->wish;
	k->wish.many = false;
	k->wish.none |= session->debug_file || session->wish.debug_dirs.n;
	status = running_open(module ? module : "", &opts, &k->wish, &k->running);
	/* A stripped file that was named may have BTF with sites. */
	if (!status && !cairn_binary_has_dwarf(k->running.bin))
		k->wish.none = session->wish.none;
	if (!status)
		status = sidecar_sites_open(k->running.bin, &k->wish, &sites_opts, &k->source);
	return status ? status : running_bind(&k->running, k->source.sidecar, true);
}

int trace_kernel_find(void *ctx, const char *module, struct cairn_trace_kernel *ret,
		      struct cairn_err *err)
{
	struct session *session = ctx;
	struct kernel_source *k = calloc(1, sizeof(*k));

	(void)err;
	if (!k)
		return -ENOMEM;
	k->next = session->kernels;
	session->kernels = k;
	session->kernel_status = open_source(session, module, k);
	if (session->kernel_status && k->running.kernel &&
	    cairn_kernel_kprobe_type(k->running.kernel) < 0)
		say(stderr,
		    "this kernel has no kprobes (CONFIG_KPROBE_EVENTS): none of its functions "
		    "can be traced\n");
	if (session->kernel_status)
		return -ECANCELED;
	*ret = (struct cairn_trace_kernel){.kernel = k->running.kernel,
					   .bin = k->running.bin,
					   .sites = k->source.sites,
					   .sidecar = k->source.sidecar};
	return 0;
}

static bool is_of_debug_info(const struct kernel_source *k)
{
	return k->source.sites && !k->source.sidecar && !cairn_btf_sites_path(k->source.sites);
}

/* The next trace of this kernel starts at once. */
static void close_source(struct kernel_source *k)
{
	bool is_worth = is_of_debug_info(k);

	sidecar_sites_close(&k->source);
	if (is_worth)
		sidecar_keep(k->running.bin, &k->wish);
	running_close(&k->running);
	free(k);
}

void trace_kernel_close(struct session *session)
{
	for (struct kernel_source *k = session->kernels, *next; k; k = next) {
		next = k->next;
		close_source(k);
	}
	session->kernels = NULL;
}

void trace_kernel_report(const struct cairn_trace_probe *probe, uint32_t n_left_out)
{
	if (n_left_out)
		say(stderr, "%s: %s left out: the kernel frees this code when it has run\n",
		    probe->text, cairn_counted(n_left_out, "site").text);
}

void trace_kernel_summary(const struct cairn_trace_stats *stats)
{
	if (stats->missed_unknown)
		say(stderr, "hits inside the handler of another probe are lost, and this kernel "
			    "does not count them (Linux 6.7 does)\n");
	if (stats->returns_missed)
		say(stderr,
		    "the kernel did not report %s, of all processes: it follows only so many calls "
		    "of a function at a time, 10 or twice the number of processors; they are free "
		    "where the function does not sleep\n",
		    cairn_counted(stats->returns_missed, "return").text);
	if (stats->n_unloaded)
		say(stderr,
		    "%s in modules that were unloaded meanwhile: calls since then are not seen\n",
		    cairn_counted(stats->n_unloaded, "site").text);
}
