/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sites: where the functions of a file went. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/btf/sites.h>

#include "cmd.h"
#include "demangled.h"
#include "near.h"
#include "running.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "sites.h"

struct sites_values {
	struct opt_list debug_dirs;
	const char *debug_file;
	const char *emit;
	struct sidecar_wish wish;
	unsigned long jobs;
	const char *explain;
	const char *running; /* "": the kernel itself */
	bool json, no_demangle;
	bool sites;
	bool hazards;
	bool usdt;
	bool lines;
	bool vars;
	bool assume_unmodified;
};

static const struct opt opts[] = {
	OPT_DEBUG_DIR(offsetof(struct sites_values, debug_dirs)),
	OPT_DEBUG_FILE(offsetof(struct sites_values, debug_file)),
	SIDECAR_OPTS(offsetof(struct sites_values, wish)),
	SIDECAR_OPTS_BTF(offsetof(struct sites_values, wish)),
	DEMANGLE_OPT_OFF(offsetof(struct sites_values, no_demangle)),
	{0, "json", OPT_FLAG, NULL, offsetof(struct sites_values, json),
	 "one JSON object per site, or per function without FUNC"},
	{0, "sites", OPT_FLAG, NULL, offsetof(struct sites_values, sites),
	 "without FUNC: every site of every function, not only how many there are"},
	{0, "running", OPT_MAYBE, "MODULE", offsetof(struct sites_values, running),
	 "the kernel that runs, or a module that it has loaded, instead of FILE: where its sites "
	 "are "
	 "now"},
	{0, "emit", OPT_TEXT, "bpftrace|perf|gdb|tracefs", offsetof(struct sites_values, emit),
	 "print probe definitions that another tool takes"},
	{0, "hazards", OPT_FLAG, NULL, offsetof(struct sites_values, hazards),
	 "list every instruction of the file on which a uprobe is lost or does harm"},
	{0, "lines", OPT_FLAG, NULL, offsetof(struct sites_values, lines),
	 "list the lines of each FUNC that can be probed, in all its copies, and where: FUNC, "
	 "FUNC:LINE or FILE:LINE"},
	{0, "vars", OPT_FLAG, NULL, offsetof(struct sites_values, vars),
	 "list the variables in scope at FUNC:LINE or FILE:LINE, at each place of the line"},
	{0, "usdt", OPT_FLAG, NULL, offsetof(struct sites_values, usdt),
	 "list the USDT probes of the file, or those named PROVIDER:NAME, and their arguments"},
	{0, "explain", OPT_TEXT, "WORD", offsetof(struct sites_values, explain),
	 "explain a reason, such as \"stale\" or \"bypassed\", and the remedy; \"list\" prints all "
	 "words. With FUNC: why the parameter WORD is unavailable at each site; \"*\": all "
	 "parameters"},
	OPT_ASSUME_UNMODIFIED(offsetof(struct sites_values, assume_unmodified)),
	OPT_JOBS(offsetof(struct sites_values, jobs)),
	{0},
};

static const struct example examples[] = {
	{"cairn sites /lib/x86_64-linux-gnu/libc.so.6 tcache_get",
	 "every site of tcache_get in Debian's libc, with its argument's location"},
	{"cairn sites ./server http.c:parse",
	 "of several functions named parse, the one that http.c declares"},
	{"cairn sites ./server 'list_*'",
	 "every site of every function whose name begins with list_"},
	{"cairn sites vmlinux --sites --json | jq -r 'select(.hazard) | .addr'",
	 "all sites of a file, for other programs to read"},
	{"cairn sites vmlinux",
	 "how many functions were inlined, and how many arguments are known there"},
	{"sudo cairn sites --running tcp_rcv_established",
	 "where a function of the kernel that runs was inlined, after KASLR"},
	{"sudo cairn sites --running blk_account_io_start --emit tracefs >probe.sh; sudo sh "
	 "probe.sh",
	 "have the kernel trace a function that it has inlined everywhere"},
	{"cairn sites ./server parse --emit bpftrace >parse.bt; sudo bpftrace --unsafe parse.bt",
	 "let another tool trace sites that it cannot find itself"},
	{"cairn sites --hazards /usr/bin/redis-server",
	 "the instructions that no uprobe may be set on"},
	{"cairn sites ./server --lines parse",
	 "the lines of parse that a probe can be set on, in its body and in every copy"},
	{"cairn sites --usdt /usr/bin/python3.11 'python:gc__*'",
	 "the probes that the authors of a program marked, their arguments and semaphores"},
	{"cairn sites --explain stale", "what a reason means, and what to do"},
	{"cairn sites ./server parse --explain len",
	 "why len is unavailable at each site of parse, and which error of the compiler is the "
	 "cause"},
	{0},
};

/*
 * The results so far; --emit needs all of them at once, everything else is written as it is found.
 */
struct answers {
	const struct cairn_function **p;
	size_t n;
	const char *emit;
};

/* The functions of a pattern, while they are shown. */
struct shown {
	const struct view *view;
	size_t n, n_sites;
	int status; /* the worst of all */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* @tail is all of @name, or the part after a "::" in it. */
static bool is_name_tail(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	if (m > n || strcmp(name + n - m, tail))
		return false;
	return m == n || (n - m >= 2 && !memcmp(name + n - m - 2, "::", 2));
}

static bool is_path_tail(const char *path, const char *tail)
{
	size_t n = strlen(path), m = strlen(tail);

	if (m > n || strcmp(path + n - m, tail))
		return false;
	return m == n || path[n - m - 1] == '/';
}

/* How many of the list does FILE:NAME, or with a line FILE:LINE:NAME, choose? */
static size_t n_chosen(const struct cairn_function_list *list, const char *file, uint32_t line,
		       const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct cairn_function *other = list->p[i];

		n += is_name_tail(other->name, name) && other->decl_file &&
		     is_path_tail(other->decl_file, file) && (!line || other->decl_line == line);
	}
	return n;
}

/*
 * The shortest way to type which function of the list is meant: FILE:NAME, with more of the path,
 * or a line.
 */
static void print_choice(const struct cairn_function_list *list,
			 const struct cairn_function *function)
{
	const char *path = function->decl_file, *file;

	if (!path) {
		say_name(stderr, function->linkage_name ? function->linkage_name : function->name);
		return;
	}
	file = base_name(path);
	while (file > path && n_chosen(list, file, 0, function->name) > 1) {
		file--;
		while (file > path && file[-1] != '/')
			file--;
	}
	if (n_chosen(list, file, 0, function->name) == 1) {
		say(stderr, "%s:%s", file, function->name);
		return;
	}
	file = base_name(path);
	if (n_chosen(list, file, function->decl_line, function->name) > 1 && function->linkage_name)
		say_name(stderr, function->linkage_name);
	else
		say(stderr, "%s:%" PRIu32 ":%s", file, function->decl_line, function->name);
}

static int report_ambiguous(const struct view *view, const char *spec,
			    const struct cairn_function_list *list)
{
	char declaration[VIEW_TEXT_MAX], source[512];

	fail(STATUS_NO, "%s names %zu functions; choose one:", spec, list->n);
	for (size_t i = 0; i < list->n; i++) {
		view_declaration(view, list->p[i], declaration, sizeof(declaration));
		view_source(list->p[i]->decl_file, list->p[i]->decl_line, 0, source,
			    sizeof(source));
		fputs("  ", stderr);
		print_choice(list, list->p[i]);
		say(stderr, "  %s  %s\n", declaration, source);
	}
	return STATUS_NO;
}

static const char *source_kind(const struct view *view)
{
	if (view->sidecar)
		return "sidecar";
	return cairn_btf_sites_path(view->sites) ? "BTF" : "debug information";
}

static const char *source_path(const struct view *view)
{
	const char *btf = cairn_btf_sites_path(view->sites);

	if (view->sidecar)
		return view->sidecar;
	return btf ? btf : cairn_binary_debug_path(view->bin);
}

static int report_missing(const struct view *view, const char *spec)
{
	const char *near[SUGGESTIONS_MAX];
	char hint[600], is[300];
	int n = cairn_sites_suggest(view->sites, spec, near, SUGGESTIONS_MAX, NULL);

	if (cairn_sites_imports(view->sites, spec))
		return fail(STATUS_NO,
			    "%s is not in %s, which takes it from a shared library: name that one",
			    spec, cairn_binary_path(view->bin));
	if (cairn_binary_symbol_text(view->bin, spec, is, sizeof(is)))
		return fail(STATUS_NO, "no function %s in %s: %s; cairn addr says what is there",
			    spec, cairn_binary_path(view->bin), is);
	fail(STATUS_NO, "no function %s in %s (%s: %s)", spec, cairn_binary_path(view->bin),
	     source_kind(view), source_path(view));
	if (cairn_sites_spec_hint(spec, hint, sizeof(hint))) {
		say(stderr, "%s\n", hint);
		return STATUS_NO;
	}
	say_near(near, n);
	return STATUS_NO;
}

/* Reports the function taken for a name that differs from the one in the debug information. */
static void report_found(const char *spec, const struct cairn_function_list *list)
{
	const struct cairn_function *first = list->p[0];
	char source[512];

	fflush(stdout);
	if (list->found == CAIRN_FOUND_INDIRECT) {
		say(stderr,
		    "%s is an indirect function: the program takes one of %zu %s when it starts\n",
		    spec, list->n, list->n == 1 ? "implementation" : "implementations");
	} else if (list->found == CAIRN_FOUND_SYMBOL && first->decl_file) {
		view_source(first->decl_file, first->decl_line, 0, source, sizeof(source));
		say(stderr, "%s is %s (%s)\n", spec, first->name, source);
	} else if (list->found == CAIRN_FOUND_SYMBOL && !first->params_unknown) {
		/* For BTF, which does not record where it is declared. */
		say(stderr, "%s is %s\n", spec, first->name);
	}
}

/* Returns an exit status. */
static int show(const struct view *view, const struct cairn_function *function, bool first)
{
	struct cairn_function room;

	if (view->running)
		function = running_function(view->running, function, &room);
	if (!function)
		return fail(STATUS_NOT_HERE, "no memory");
	if (!first && !view->json)
		fputc('\n', view->out);
	if (view->explain)
		return sites_explain_args(view, function);
	if (view->json)
		sites_json(view, function);
	else
		sites_text(view, function);
	return STATUS_YES;
}

static int show_one(void *ctx, const struct cairn_function *function)
{
	struct shown *shown = ctx;
	int status;

	if (!function->n_sites && !function->n_without_code)
		return 0;
	status = show(shown->view, function, !shown->n);
	shown->status = status > shown->status ? status : shown->status;
	shown->n++;
	shown->n_sites += function->n_sites;
	/* The reader went away (head, say): no need to go on. */
	return ferror(shown->view->out) ? -EPIPE : 0;
}

/* Every site of the functions that @pattern matches, of all with NULL; an exit status. */
static int show_matching(const struct view *view, const char *pattern)
{
	struct shown shown = {.view = view};
	struct cairn_err err = {0};
	int r = cairn_sites_visit_matching(view->sites, pattern, show_one, &shown, &err);

	if (r == -EPIPE)
		return STATUS_NOT_HERE;
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	if (!shown.n && pattern)
		return fail(STATUS_NO, "no function in %s matches %s", cairn_binary_path(view->bin),
			    pattern);
	fflush(stdout);
	if (pattern)
		say(stderr, "%s: %zu %s, %zu %s\n", pattern, shown.n,
		    shown.n == 1 ? "function" : "functions", shown.n_sites,
		    shown.n_sites == 1 ? "site" : "sites");
	return shown.n ? shown.status : STATUS_NO;
}

static int take(const struct view *view, const struct cairn_function_list *list,
		struct answers *answers)
{
	const struct cairn_function **more;
	int status = STATUS_YES;

	for (size_t i = 0; i < list->n && !answers->emit; i++) {
		int one = show(view, list->p[i], !answers->n++);

		status = one > status ? one : status;
	}
	if (!answers->emit)
		return status;
	more = realloc(answers->p, (answers->n + list->n) * sizeof(*more));
	if (!more)
		return fail(STATUS_NOT_HERE, "no memory");
	answers->p = more;
	for (size_t i = 0; i < list->n; i++)
		answers->p[answers->n++] = list->p[i];
	return STATUS_YES;
}

/* Shows or collects the meanings of @spec; an exit status. */
static int find_one(const struct view *view, const char *spec, struct answers *answers)
{
	struct cairn_function_list list;
	struct cairn_err err = {0};
	int n;

	if (!answers->emit && cairn_sites_is_pattern(spec))
		return show_matching(view, spec);
	n = cairn_sites_find(view->sites, spec, &list, &err);
	if (n < 0)
		return fail_err(n, &err, STATUS_NO);
	if (!n && list.found == CAIRN_FOUND_INDIRECT)
		return fail(STATUS_NO,
			    "%s is an indirect function, whose resolver does not show its "
			    "implementations",
			    spec);
	if (!n)
		return report_missing(view, spec);
	if (n > 1 && (list.found == CAIRN_FOUND_NAME || list.found == CAIRN_FOUND_SYMBOL))
		return report_ambiguous(view, spec, &list);
	report_found(spec, &list);
	return take(view, &list, answers);
}

static int answer(const struct view *view, const struct sites_values *values, char **specs,
		  size_t n)
{
	struct answers answers = {.emit = values->emit};
	int status = STATUS_YES;

	for (size_t i = 0; i < n; i++) {
		int one = find_one(view, specs[i], &answers);

		/* Results are still shown; the worst status tells that some are missing. */
		status = one > status ? one : status;
	}
	if (answers.emit && answers.n) {
		int emitted = view->running ? sites_emit_running(view, answers.p, answers.n)
					    : sites_emit(view, answers.emit, answers.p, answers.n);

		status = emitted > status ? emitted : status;
	}
	free(answers.p);
	return status;
}

static bool is_pid(const char *word)
{
	for (const char *at = word; *at; at++)
		if (!isdigit((unsigned char)*at))
			return false;
	return *word && strlen(word) < 10 && access(word, F_OK);
}

static struct cairn_binary_opts binary_opts(const struct sites_values *values)
{
	return (struct cairn_binary_opts){
		.size = sizeof(struct cairn_binary_opts),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.debug_file = values->debug_file,
	};
}

static int open_binary(const char *word, const struct sites_values *values,
		       struct cairn_binary **ret)
{
	struct cairn_binary_opts bin_opts = binary_opts(values);
	struct cairn_err err = {0};
	int r;

	if (is_pid(word))
		r = cairn_binary_open_pid(atoi(word), &bin_opts, ret, &err);
	else
		r = cairn_binary_open(word, &bin_opts, ret, &err);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* Missing data is reported, also when there is an answer. */
static void warn_of_missing(const struct cairn_sites *sites)
{
	const char *which;
	size_t n = cairn_sites_missing(sites, &which);

	warn_of_missing_dwo(n, which, "sites that only they describe are not listed");
}

/* With the functions of a sidecar, where the binary and its debug file do not tell them. */
static int hazards(const struct view *view, struct sidecar_wish *wish)
{
	struct cairn_err err = {0};
	struct cairn_sidecar *sidecar = NULL;
	int r = 0, status;

	wish->lines = true;
	if (wish->file || !cairn_binary_has_dwarf(view->bin))
		r = sidecar_find(wish, view->bin, &sidecar, &err);
	if (r >= 0 && sidecar)
		r = cairn_sidecar_compare(sidecar, &err);
	if (r == -ENODATA)
		r = 0;
	if (r >= 0 && sidecar)
		r = cairn_sidecar_trouble(sidecar, &err);
	if (r < 0 && wish->file) {
		cairn_sidecar_close(sidecar);
		return fail_err(r, &err, STATUS_NO);
	}
	if (r < 0) {
		fail_told(STATUS_YES, &err);
		cairn_sidecar_close(sidecar);
		sidecar = NULL;
	}
	status = sites_hazards(view, sidecar);
	cairn_sidecar_close(sidecar);
	return status;
}

/* An exit status: the worst. */
static int lines(const struct view *view, const struct sites_values *values,
		 const struct operands *specs)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < specs->n; i++) {
		int one = sites_lines(view, specs->items[i], values->vars);

		status = one > status ? one : status;
	}
	return status;
}

/* Before anything is printed. */
static int bind_running(const struct view *view, const struct sidecar_sites *source,
			const struct operands *specs)
{
	bool is_whole = !specs->n;

	for (size_t i = 0; i < specs->n; i++)
		is_whole |= cairn_sites_is_pattern(specs->items[i]);
	return view->running ? running_bind(view->running, source->sidecar, is_whole) : STATUS_YES;
}

/* @specs  the functions */
static int ask(struct view *view, const struct sites_values *values, struct sidecar_wish wish,
	       const struct operands *specs)
{
	struct cairn_sites_opts sites_opts = {.size = sizeof(sites_opts),
					      .threads = (unsigned int)values->jobs,
					      .assume_unmodified = values->assume_unmodified};
	struct sidecar_sites source;
	bool from_debug_info;
	int status;

	if (values->hazards && sidecar_is_named(cairn_binary_path(view->bin)))
		return fail(STATUS_NOT_HERE,
			    "%s: a sidecar has no code to look at: name the program",
			    cairn_binary_path(view->bin));
	/* A user who names a file of debug information wants to see its contents. */
	wish.none |= values->debug_file || values->debug_dirs.n || values->lines || values->vars;
	if (values->hazards)
		return hazards(view, &wish);
	status = sidecar_sites_open(view->bin, &wish, &sites_opts, &source);
	if (!status)
		status = sidecar_sites_settle(view->bin, &wish, &sites_opts, specs->items, specs->n,
					      &source);
	if (status)
		return status;
	status = bind_running(view, &source, specs);
	if (status) {
		sidecar_sites_close(&source);
		return status;
	}
	view->sites = source.sites;
	view->sidecar = source.sidecar ? cairn_sidecar_path(source.sidecar) : NULL;
	warn_of_missing(view->sites);
	view->types = cairn_sites_types(view->sites);
	if (values->lines || values->vars)
		status = lines(view, values, specs);
	else if (specs->n)
		status = answer(view, values, specs->items, specs->n);
	else if (values->sites)
		status = show_matching(view, NULL);
	else
		status = sites_coverage(view);
	if (!status)
		status = sidecar_trouble(source.sidecar);
	from_debug_info = !source.sidecar && !values->assume_unmodified &&
			  !cairn_btf_sites_path(source.sites);
	sidecar_sites_close(&source);
	if (from_debug_info)
		sidecar_keep(view->bin, &wish);
	return status;
}

/* Whether the options make sense together, with @n functions; an exit status. */
static int check_values(const struct sites_values *values, const struct operands *specs)
{
	if (values->hazards && specs->n)
		return fail(STATUS_USAGE, "--hazards is about a whole file, not about %s",
			    specs->items[0]);
	if (values->emit && !specs->n)
		return fail(STATUS_USAGE, "--emit needs a function");
	if (values->emit && values->json)
		return fail(STATUS_USAGE, "--emit and --json are two answers; choose one");
	if (values->usdt + (values->lines || values->vars) + values->hazards +
		    (values->emit != NULL) + (values->explain != NULL) >
	    1)
		return fail(STATUS_USAGE, "--usdt, --lines, --hazards, --emit and --explain are "
					  "five answers; choose one");
	if ((values->lines || values->vars) && !specs->n)
		return fail(STATUS_USAGE,
			    values->lines ? "--lines needs a function" : "--vars needs FUNC:LINE");
	if (values->running && (values->usdt || values->lines || values->vars || values->hazards))
		return fail(STATUS_USAGE, "--running lists sites; --usdt, --lines, --vars and "
					  "--hazards are about a file: name vmlinux");
	if (values->emit && !strcmp(values->emit, "tracefs") != (values->running != NULL))
		return fail(STATUS_USAGE, "--emit tracefs is for --running, and the other tools "
					  "for a file");
	return STATUS_YES;
}

static int run_file(struct view *view, const struct sites_values *values, const char *word,
		    const struct operands *specs)
{
	struct cairn_binary *bin;
	int status = open_binary(word, values, &bin);

	if (status)
		return status;
	view->bin = bin;
	status = values->usdt ? sites_usdt(view, specs->items, specs->n)
			      : ask(view, values, values->wish, specs);
	cairn_binary_close(bin);
	return status;
}

static int run_kernel(struct view *view, const struct sites_values *values,
		      const struct operands *specs)
{
	struct cairn_binary_opts bin_opts = binary_opts(values);
	struct sidecar_wish wish = values->wish;
	struct running running;
	int status = running_open(values->running, &bin_opts, &wish, &running);

	if (!status) {
		view->bin = running.bin;
		view->running = &running;
		status = ask(view, values, wish, specs);
		running_report(&running);
	}
	running_close(&running);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	struct sites_values *values = v;
	struct view view = {.out = stdout,
			    .style = style_for(stdout),
			    .json = values->json,
			    .explain = values->explain};
	/* The first one is the file, unless it is the kernel that is asked about. */
	size_t n_files = values->running ? 0 : 1;
	struct operands specs;
	int status;

	if (values->explain && operands->n <= n_files)
		return sites_explain(values->explain, values->json);
	if (operands->n < n_files)
		return fail(STATUS_USAGE, "cairn sites needs %s\nTry: cairn sites --help",
			    cmd_sites.operands);
	specs = (struct operands){.items = operands->items + n_files, .n = operands->n - n_files};
	status = check_values(values, &specs);
	if (status)
		return status;
	if (values->no_demangle)
		demangle_never();
	return values->running ? run_kernel(&view, values, &specs)
			       : run_file(&view, values, operands->items[0], &specs);
}

const struct cmd cmd_sites = {
	.name = "sites",
	.summary = "the sites of functions, out of line and inlined",
	.operands = "FILE|PID [FUNC...]",
	/* None with --explain. */
	.n_operands_min = 0,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct sites_values),
	.pages = true,
	.run = run,
};
