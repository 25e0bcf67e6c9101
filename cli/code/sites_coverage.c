/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All functions of a file: how many sites they have, and at how many inlined sites all, some or
 * none of the arguments can be read. The split is the one that the kernel's inline BTF was measured
 * with, so that figures can stand beside each other: a function without parameters counts as "all".
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "running.h"
#include "say.h"
#include "sites.h"

struct tally {
	uint64_t functions, sites, without_code;
	uint64_t kinds[CAIRN_SITE_PLACE + 1];
	uint64_t covered[N_COVERAGES];                   /* of inlined sites */
	uint64_t args, unavailable[CAIRN_N_UNAVAILABLE]; /* of inlined sites */
	uint64_t hazards;
};

struct walk {
	const struct view *view;
	struct tally total;
	struct progress progress;
};

static void count_args(struct tally *tally, const struct cairn_site *site)
{
	tally->args += site->n_args;
	for (uint32_t i = 0; i < site->n_args; i++)
		tally->unavailable[site->args[i].loc.why]++;
	tally->covered[site_coverage(site)]++;
}

static struct tally tally_of(const struct cairn_function *function)
{
	struct tally tally = {.functions = 1,
			      .sites = function->n_sites,
			      .without_code = function->n_without_code};

	for (uint32_t i = 0; i < function->n_sites; i++) {
		const struct cairn_site *site = &function->sites[i];

		tally.kinds[site->kind]++;
		tally.hazards += site->hazard != CAIRN_HAZARD_NONE &&
				 site->hazard != CAIRN_HAZARD_NOT_CHECKED;
		if (site->kind == CAIRN_SITE_INLINED)
			count_args(&tally, site);
	}
	return tally;
}

static void tally_add(struct tally *total, const struct tally *one)
{
	total->functions += one->functions;
	total->sites += one->sites;
	total->without_code += one->without_code;
	total->args += one->args;
	total->hazards += one->hazards;
	for (size_t i = 0; i < 3; i++)
		total->kinds[i] += one->kinds[i];
	for (size_t i = 0; i < N_COVERAGES; i++)
		total->covered[i] += one->covered[i];
	for (size_t i = 0; i < CAIRN_N_UNAVAILABLE; i++)
		total->unavailable[i] += one->unavailable[i];
}

static void put_tally(struct json *j, const struct tally *tally)
{
	json_uint(j, "sites", tally->sites);
	json_uint(j, "entries", tally->kinds[CAIRN_SITE_OUT_OF_LINE]);
	json_uint(j, "inlined", tally->kinds[CAIRN_SITE_INLINED]);
	json_uint(j, "parts", tally->kinds[CAIRN_SITE_PART]);
	json_uint(j, "without_code", tally->without_code);
	json_uint(j, "args_all", tally->covered[COVERED_ALL]);
	json_uint(j, "args_some", tally->covered[COVERED_SOME]);
	json_uint(j, "args_none", tally->covered[COVERED_NONE]);
	json_uint(j, "args", tally->args);
	json_open(j, "unavailable", '{');
	for (int i = CAIRN_AVAILABLE + 1; i < CAIRN_N_UNAVAILABLE; i++)
		if (tally->unavailable[i])
			json_uint(j, cairn_unavailable_id((enum cairn_unavailable)i),
				  tally->unavailable[i]);
	json_close(j);
	json_uint(j, "hazards", tally->hazards);
}

static void put_function(const struct view *view, const struct cairn_function *function,
			 const struct tally *tally)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	sites_json_declared(&j, function);
	put_tally(&j, tally);
	json_close(&j);
}

static void print_function(const struct view *view, const struct cairn_function *function,
			   const struct tally *tally)
{
	char source[512];

	view_source(function->decl_file, function->decl_line, 0, source, sizeof(source));
	fprintf(view->out, "%6" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 "  %s",
		tally->kinds[CAIRN_SITE_OUT_OF_LINE], tally->kinds[CAIRN_SITE_INLINED],
		tally->covered[COVERED_ALL], tally->covered[COVERED_SOME],
		tally->covered[COVERED_NONE], view->style.name);
	say_name(view->out, function->name);
	fprintf(view->out, "%s  ", view->style.off);
	say_name(view->out, source);
	fputc('\n', view->out);
}

static int visit(void *ctx, const struct cairn_function *function)
{
	struct walk *walk = ctx;
	struct cairn_function room;
	struct tally tally;

	if (walk->view->running)
		function = running_function(walk->view->running, function, &room);
	if (!function)
		return -ENOMEM;
	tally = tally_of(function);
	progress_step(&walk->progress);
	tally_add(&walk->total, &tally);
	if (walk->view->json)
		put_function(walk->view, function, &tally);
	else
		print_function(walk->view, function, &tally);
	/* The reader went away (head, say): no need to go on. */
	return ferror(walk->view->out) ? -EPIPE : 0;
}

static void print_share(const struct view *view, const char *what, uint64_t part, uint64_t whole)
{
	fprintf(view->out, "%10" PRIu64 "  %5.1f %%  %s\n", part,
		whole ? 100.0 * (double)part / (double)whole : 0.0, what);
}

static void print_total(const struct view *view, const struct tally *total)
{
	uint64_t inlined = total->kinds[CAIRN_SITE_INLINED];

	fprintf(view->out,
		"\n%s, %s: %s, %" PRIu64 " inlined, %s; %" PRIu64 " inlined %s without code\n",
		cairn_counted(total->functions, "function").text,
		cairn_counted(total->sites, "site").text,
		cairn_counted(total->kinds[CAIRN_SITE_OUT_OF_LINE], "body").text, inlined,
		cairn_counted(total->kinds[CAIRN_SITE_PART], "split-off part").text,
		total->without_code, total->without_code == 1 ? "copy" : "copies");
	fprintf(view->out, "inlined sites by their arguments:\n");
	print_share(view, "all known", total->covered[COVERED_ALL], inlined);
	print_share(view, "some known", total->covered[COVERED_SOME], inlined);
	print_share(view, "none known", total->covered[COVERED_NONE], inlined);
	fprintf(view->out, "%s at inlined sites:\n", cairn_counted(total->args, "argument").text);
	print_share(view, "known", total->unavailable[CAIRN_AVAILABLE], total->args);
	for (int i = CAIRN_AVAILABLE + 1; i < CAIRN_N_UNAVAILABLE; i++)
		if (total->unavailable[i])
			print_share(view, cairn_unavailable_text((enum cairn_unavailable)i),
				    total->unavailable[i], total->args);
	if (total->hazards)
		fprintf(view->out, "%s with a hazard (--hazards lists all of the file)\n",
			cairn_counted(total->hazards, "site").text);
}

static void put_total(const struct view *view, const struct tally *total)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "path", cairn_binary_path(view->bin));
	json_text(&j, "debug_path", cairn_binary_debug_path(view->bin));
	json_text(&j, "sidecar", view->sidecar);
	json_uint(&j, "functions", total->functions);
	put_tally(&j, total);
	json_close(&j);
}

int sites_coverage(const struct view *view)
{
	struct walk walk = {.view = view, .progress = {.what = "functions"}};
	struct cairn_err err = {0};
	int r;

	if (!view->json)
		fprintf(view->out, "%6s %7s %7s %7s %7s\n", "bodies", "inlined", "all", "some",
			"none");
	r = cairn_sites_visit(view->sites, visit, &walk, &err);
	progress_end(&walk.progress);
	if (r == -EPIPE)
		return STATUS_NOT_HERE;
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (view->json)
		put_total(view, &walk.total);
	else
		print_total(view, &walk.total);
	return walk.total.functions ? STATUS_YES : STATUS_NO;
}
