/* SPDX-License-Identifier: BSD-2-Clause */
#include "handlers/handlers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "trace/attach/link.h"

enum section { OF_USER, OF_USER_BEST, OF_KERNEL, OF_KERNEL_BEST, N_SECTIONS };

static const char *const names[N_SECTIONS] = {
	[OF_USER] = "uloc+",
	[OF_USER_BEST] = "uloc.best_effort+",
	[OF_KERNEL] = "kloc+",
	[OF_KERNEL_BEST] = "kloc.best_effort+",
};

static struct cairn_loc_opts options;
/*
 * The first one stays once it was taken: libbpf 1.1 frees its list with the last handler, and
 * uses it again.
 */
static int handler_ids[N_SECTIONS];
static bool is_registered, is_first_kept;

static bool is_kernel(long section)
{
	return section == OF_KERNEL || section == OF_KERNEL_BEST;
}

static bool is_best_effort(long section)
{
	return section == OF_USER_BEST || section == OF_KERNEL_BEST;
}

/* ---- what libbpf prints ---- */

static void print(libbpf_print_fn_t to, enum libbpf_print_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	to(level, format, args);
	va_end(args);
}

/* libbpf hands out its callback only when it is set. */
static void say(enum libbpf_print_level level, const struct bpf_program *prog, const char *what)
{
	libbpf_print_fn_t to = libbpf_set_print(NULL);

	libbpf_set_print(to);
	if (to)
		print(to, level, "cairn: prog '%s': %s\n", bpf_program__name(prog), what);
}

/* ---- callbacks ---- */

int handlers_check_kernel(char *ret_why, size_t n)
{
	/* 0: it is not there. Without permission nothing is known, and loading will say so. */
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL))
		return 0;
	snprintf(ret_why, n,
		 "this kernel has no BPF cookies, by which a program knows where its arguments are "
		 "(Linux 5.15)");
	return -EOPNOTSUPP;
}

/* One link for all sites of a file, where the kernel has that. */
static int prepare(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long section)
{
	char why[200] = "cairn_loc_unregister() was called";
	int e = is_registered ? handlers_check_kernel(why, sizeof(why)) : -EOPNOTSUPP;

	if (e)
		say(LIBBPF_WARN, prog, why);
	if (e)
		return e;
	if (is_kernel(section) || !link_multi_is_known())
		return 0;
	opts->expected_attach_type = LINK_UPROBE_MULTI;
	return bpf_program__set_expected_attach_type(prog, LINK_UPROBE_MULTI);
}

static void tell_left_out(const struct bpf_program *prog, uint32_t n_sites, uint32_t n_left_out)
{
	char text[120];

	if (!n_left_out)
		return;
	snprintf(text, sizeof(text), "%u of %u sites are left out", n_left_out,
		 n_sites + n_left_out);
	say(LIBBPF_WARN, prog, text);
}

static int attach_section(const struct bpf_program *prog, long section, struct bpf_link **ret)
{
	const char *name = bpf_program__section_name(prog), *slash = strchr(name, '/');
	uint32_t n_sites = 0, n_left_out = 0;
	const struct cairn_loc_attach_opts opts = {.size = sizeof(opts),
						   .best_effort = is_best_effort(section),
						   .n_sites = &n_sites,
						   .n_left_out = &n_left_out};
	struct cairn_err err = {0};

	*ret = NULL;
	if (!slash)
		return 0;
	int e = cairn_loc_attach(prog, slash + 1, &opts, ret, &err);
	if (e < 0)
		say(LIBBPF_WARN, prog, err.msg);
	else
		tell_left_out(prog, n_sites, n_left_out);
	return e;
}

/* ---- the interface ---- */

static int register_section(long section)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = section,
		    .prog_prepare_load_fn = prepare, .prog_attach_fn = attach_section);

	return libbpf_register_prog_handler(names[section], BPF_PROG_TYPE_KPROBE, 0, &opts);
}

/* All but the first of @n. */
static void unregister_sections(int n)
{
	for (int i = 1; i < n; i++)
		libbpf_unregister_prog_handler(handler_ids[i]);
}

int cairn_loc_register(const struct cairn_loc_opts *opts, struct cairn_err *err)
{
	int e = opts_take(&options, sizeof(options), opts, err);

	kernels_forget();
	if (e < 0 || is_registered)
		return e;
	for (int i = is_first_kept; i < N_SECTIONS; i++) {
		handler_ids[i] = register_section(i);
		is_first_kept |= handler_ids[i] >= 0;
		if (handler_ids[i] >= 0)
			continue;
		unregister_sections(i);
		return err_set(err, handler_ids[i], "libbpf does not take SEC(\"%s\"): %s",
			       names[i], strerror(-handler_ids[i]));
	}
	is_registered = true;
	return 0;
}

void cairn_loc_unregister(void)
{
	if (is_registered)
		unregister_sections(N_SECTIONS);
	is_registered = false;
	kernels_forget();
}

int cairn_loc_attach(const struct bpf_program *prog, const char *target,
		     const struct cairn_loc_attach_opts *opts, struct bpf_link **ret,
		     struct cairn_err *err)
{
	struct cairn_loc_attach_opts own;
	int e = opts_take(&own, sizeof(own), opts, err);

	*ret = NULL;
	return e < 0 ? e : loc_attach(prog, target, &own, &options, ret, err);
}
