/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites as definitions for other tools
 *
 * bpftrace and perf attach to an address of a file; they lack the addresses, and the locations of
 * the arguments there. gdb knows most of both, and gets the rest. The rules are those of `cairn
 * trace`. A site that no uprobe may be set on is left out, and so is an unavailable argument. Both
 * are reported, in the script and on stderr.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>
#include <cairn/trace.h>
#include <cairn/trace_emit.h>

#include "cmd.h"
#include "demangled.h"
#include "emit_expr.h"
#include "running.h"
#include "sites.h"

struct emitter {
	const char *name;
	const char *comment;   /* "//" or "#" */
	enum cairn_quote path; /* where the file's path stands */
	void (*begin)(const struct view *view, const char *path);
	/* @number: of the site, from 1, unique in the output. */
	void (*site)(const struct view *view, const char *path,
		     const struct cairn_function *function, const struct cairn_site *site,
		     unsigned int number);
};

/* Probes of perf and tracefs are refused with longer names of arguments (MAX_ARG_NAME_LEN). */
enum { KERNEL_NAME_MAX = 31 };

/* The text for an argument that cannot be read. */
static const char *missing(const struct cairn_arg *arg)
{
	return arg->loc.why == CAIRN_AVAILABLE ? "cannot be expressed"
					       : cairn_unavailable_text(arg->loc.why);
}

static void site_title(const struct cairn_function *function, const struct cairn_site *site,
		       char *buf, size_t size)
{
	char text[512];

	cairn_site_text(function, site, shown_name, text, sizeof(text));
	snprintf(buf, size, "%s %s", function->name, text);
}

/* ---- bpftrace ---- */

/* The number of values that one printf of bpftrace takes. */
#define BPFTRACE_VALUES_MAX 6

static void bpftrace_begin(const struct view *view, const char *path)
{
	fprintf(view->out, "// sudo bpftrace --unsafe THIS-FILE\n"
			   "// --unsafe, because most sites are in the middle of a symbol.\n");
}

static const char *bpftrace_conversion(struct scalar scalar)
{
	if (scalar.is_string)
		return "%s";
	if (scalar.is_pointer)
		return "0x%lx";
	return scalar.is_signed ? "%ld" : "%lu";
}

static void bpftrace_site(const struct view *view, const char *path,
			  const struct cairn_function *function, const struct cairn_site *site,
			  unsigned int number)
{
	char title[1024], expr[EXPR_MAX], name[256], values[EXPR_MAX * BPFTRACE_VALUES_MAX] = "";
	uint32_t n = 0;

	site_title(function, site, title, sizeof(title));
	cairn_emit_bpftrace_head(view->out, path, site->at);
	fputs("{\n\tprintf(\"", view->out);
	cairn_quote_put(title, CAIRN_QUOTE_FORMAT, view->out);
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];
		struct scalar scalar = scalar_of(view->types, arg->type);
		size_t used = strlen(values);

		cairn_emit_name(arg->name, i, name, sizeof(name));
		if (n == BPFTRACE_VALUES_MAX ||
		    !expr_c(&dialect_bpftrace, &arg->loc, scalar, site->at, expr)) {
			fprintf(view->out, " %s=<", name);
			cairn_quote_put(n == BPFTRACE_VALUES_MAX ? "too many values" : missing(arg),
					CAIRN_QUOTE_FORMAT, view->out);
			fputc('>', view->out);
			continue;
		}
		fprintf(view->out, " %s=%s", name, bpftrace_conversion(scalar));
		snprintf(values + used, sizeof(values) - used,
			 scalar.is_string ? ", str(%s)" : ", %s", expr);
		n++;
	}
	fprintf(view->out, "\\n\"%s);\n}\n", values);
}

/* ---- perf ---- */

static void perf_begin(const struct view *view, const char *path)
{
	fprintf(view->out, "# sudo sh THIS-FILE; sudo perf record -e 'cairn:*' -a; sudo perf probe "
			   "-d 'cairn:*'\n"
			   "set -e\n");
}

static void perf_missing(FILE *out, const struct cairn_arg *arg)
{
	fputs("#   ", out);
	cairn_quote_put(arg->name ? arg->name : "(no name)", CAIRN_QUOTE_COMMENT, out);
	fprintf(out, ": %s\n", missing(arg));
}

static void perf_site(const struct view *view, const char *path,
		      const struct cairn_function *function, const struct cairn_site *site,
		      unsigned int number)
{
	char title[1024], expr[EXPR_MAX], name[64];

	site_title(function, site, title, sizeof(title));
	fputs("# ", view->out);
	cairn_quote_put(title, CAIRN_QUOTE_COMMENT, view->out);
	fputc('\n', view->out);
	for (uint32_t i = 0; i < site->n_args; i++)
		if (!expr_perf(&site->args[i].loc, scalar_of(view->types, site->args[i].type),
			       site->at, expr))
			perf_missing(view->out, &site->args[i]);
	cairn_emit_perf_head(view->out, path, function->name, number, site->at);
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];

		if (!expr_perf(&arg->loc, scalar_of(view->types, arg->type), site->at, expr))
			continue;
		cairn_emit_name(arg->name, i, name, KERNEL_NAME_MAX + 1);
		fprintf(view->out, " %s=%s", name, expr);
	}
	fputs("'\n", view->out);
}

/* ---- tracefs ---- */

/* Addresses in a location are link-time addresses, and not those of the kernel as it is loaded. */
static bool has_address(const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++)
		for (uint32_t k = 0; k < loc->pieces[i].n_steps; k++)
			if (loc->pieces[i].steps[k].op == CAIRN_LOC_ADDR)
				return true;
	return false;
}

static bool expr_tracefs(const struct cairn_location *loc, struct scalar scalar,
			 struct cairn_vaddr site, char ret[EXPR_MAX])
{
	return loc->why == CAIRN_AVAILABLE && !has_address(loc) &&
	       expr_perf(loc, scalar, site, ret);
}

/* All or none: what was set is removed when one is refused. */
static void tracefs_begin(const struct view *view, const char *path)
{
	fprintf(view->out,
		"# Kprobes of the kernel as it is loaded now (%s). As root: sh THIS-FILE; then "
		"read\n"
		"# /sys/kernel/tracing/trace_pipe; then: sh THIS-FILE remove\n"
		"cd /sys/kernel/tracing || exit 1\n"
		"remove()\n"
		"{\n"
		"\t[ ! -e events/cairn ] || echo 0 >events/cairn/enable\n"
		"\tfor event in $(sed -n 's/^p[0-9]*:\\(cairn\\/[^ ]*\\).*/\\1/p' kprobe_events); "
		"do\n"
		"\t\techo \"-:$event\" >>kprobe_events\n"
		"\tdone\n"
		"}\n"
		"if [ \"$1\" = remove ]; then\n"
		"\tremove\n"
		"\texit\n"
		"fi\n"
		"set -e\n"
		"trap remove EXIT\n",
		cairn_kernel_release(view->running->kernel));
}

static void tracefs_site(const struct view *view, const char *path,
			 const struct cairn_function *function, const struct cairn_site *site,
			 unsigned int number)
{
	char title[1024], expr[EXPR_MAX], name[64];
	uint64_t at = site->at.v;

	cairn_kernel_address(view->running->kernel, site->at, &at);
	site_title(function, site, title, sizeof(title));
	fputs("# ", view->out);
	cairn_quote_put(title, CAIRN_QUOTE_COMMENT, view->out);
	fputc('\n', view->out);
	for (uint32_t i = 0; i < site->n_args; i++)
		if (!expr_tracefs(&site->args[i].loc, scalar_of(view->types, site->args[i].type),
				  site->at, expr))
			perf_missing(view->out, &site->args[i]);
	cairn_emit_name(function->name, 0, name, sizeof(name) - 12);
	/* In an echo, dash would take the backslash of a constant for an escape. */
	fprintf(view->out, "printf '%%s\\n' 'p:cairn/%s_%u 0x%" PRIx64, name, number, at);
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];

		if (!expr_tracefs(&arg->loc, scalar_of(view->types, arg->type), site->at, expr))
			continue;
		cairn_emit_name(arg->name, i, name, KERNEL_NAME_MAX + 1);
		fprintf(view->out, " %s=%s", name, expr);
	}
	fputs("' >>kprobe_events\n", view->out);
}

static void tracefs_end(const struct view *view)
{
	fputs("echo 1 >events/cairn/enable\ntrap - EXIT\n", view->out);
}

/* ---- gdb ---- */

/*
 * A breakpoint needs the address in the process, which is known once the file is mapped. The script
 * looks it up in /proc/PID/maps by file offset, so that it is right wherever the file was loaded.
 */
static void gdb_begin(const struct view *view, const char *path)
{
	fputs("# gdb -p PID -x THIS-FILE\n"
	      "# gdb -ex 'break main' -ex run -x THIS-FILE -ex continue --args PROGRAM\n"
	      "set pagination off\n"
	      "python\n",
	      view->out);
	cairn_emit_gdb_address(view->out);
	fputs("def cairn_break(offset):\n"
	      "    address = cairn_address(b\"",
	      view->out);
	cairn_quote_put(path, CAIRN_QUOTE_PYTHON_BYTES, view->out);
	fputs("\", offset)\n"
	      "    gdb.execute(\"break *%d\" % address, False, True)\n"
	      "end\n",
	      view->out);
}

static void gdb_site(const struct view *view, const char *path,
		     const struct cairn_function *function, const struct cairn_site *site,
		     unsigned int number)
{
	char title[1024], expr[EXPR_MAX];

	site_title(function, site, title, sizeof(title));
	fprintf(view->out, "\npython cairn_break(0x%" PRIx64 ")\ncommands\nsilent\nprintf \"",
		site->off.v);
	cairn_quote_put(title, CAIRN_QUOTE_FORMAT, view->out);
	fputs("\"\n", view->out);
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];
		struct scalar scalar = scalar_of(view->types, arg->type);
		bool known = expr_c(&dialect_gdb, &arg->loc, scalar, site->at, expr);

		fputs("printf \" ", view->out);
		cairn_quote_put(arg->name ? arg->name : "(no name)", CAIRN_QUOTE_FORMAT, view->out);
		fputc('=', view->out);
		if (!known) {
			fputc('<', view->out);
			cairn_quote_put(missing(arg), CAIRN_QUOTE_FORMAT, view->out);
			fputs(">\"\n", view->out);
			continue;
		}
		/* output, unlike printf, goes on when a string cannot be read. */
		fprintf(view->out, "\"\noutput%s %s%s\n",
			scalar.is_pointer && !scalar.is_string ? "/x" : "",
			scalar.is_string   ? "(char *)"
			: scalar.size == 1 ? "(int)"
					   : "",
			expr);
	}
	fputs("printf \"\\n\"\ncontinue\nend\n", view->out);
}

static const struct emitter tracefs = {"tracefs", "#", CAIRN_QUOTE_SH, tracefs_begin, tracefs_site};

static const struct emitter emitters[] = {
	{"bpftrace", "//", CAIRN_QUOTE_BPFTRACE, bpftrace_begin, bpftrace_site},
	{"perf", "#", CAIRN_QUOTE_SH, perf_begin, perf_site},
	{"gdb", "#", CAIRN_QUOTE_PYTHON_BYTES, gdb_begin, gdb_site},
};

/* Why a site is left out, or NULL. */
static const char *refusal(const struct view *view, const struct cairn_site *site)
{
	if (site->kind == CAIRN_SITE_PART)
		return "the split-off rest of a body: reaching it is not a call";
	/* A running kernel itself checks what is not known of it. */
	if (view->running && site->hazard == CAIRN_HAZARD_NOT_CHECKED)
		return NULL;
	if (!view->running && !site->has_off)
		return "not in the file";
	if (site->hazard != CAIRN_HAZARD_NONE)
		return cairn_hazard_text(site->hazard);
	return NULL;
}

/* Number of sites left out that are calls. */
static unsigned int emit_function(const struct view *view, const struct emitter *emitter,
				  const char *path, const struct cairn_function *function,
				  unsigned int *number)
{
	unsigned int left_out = 0;

	for (uint32_t i = 0; i < function->n_sites; i++) {
		const struct cairn_site *site = &function->sites[i];
		const char *why = refusal(view, site);

		++*number;
		if (!why) {
			emitter->site(view, path, function, site, *number);
			continue;
		}
		fprintf(view->out, "\n%s left out: 0x%" PRIx64 ": %s\n", emitter->comment,
			site->at.v, why);
		left_out += site->kind != CAIRN_SITE_PART;
	}
	return left_out;
}

/* An exit status. */
static int report_left_out(unsigned int left_out, unsigned int number)
{
	if (left_out)
		fail(STATUS_NO, "%u of %s %s left out; the script lists the reasons", left_out,
		     cairn_counted(number, "site").text, left_out == 1 ? "is" : "are");
	return left_out ? STATUS_NO : STATUS_YES;
}

int sites_emit_running(const struct view *view, const struct cairn_function *const *functions,
		       size_t n_functions)
{
	unsigned int number = 0, left_out = 0;

	tracefs_begin(view, NULL);
	for (size_t i = 0; i < n_functions; i++) {
		struct cairn_function room;
		const struct cairn_function *function =
			running_function(view->running, functions[i], &room);

		if (!function)
			return fail(STATUS_NOT_HERE, "no memory");
		left_out += emit_function(view, &tracefs, NULL, function, &number);
	}
	tracefs_end(view);
	return report_left_out(left_out, number);
}

int sites_emit(const struct view *view, const char *dialect,
	       const struct cairn_function *const *functions, size_t n_functions)
{
	const struct emitter *emitter = emitters;
	unsigned int number = 0, left_out = 0;
	int status;
	char *path;

	while (strcmp(emitter->name, dialect))
		emitter++;
	if (cairn_binary_is_kernel(view->bin))
		return fail(STATUS_NOT_HERE,
			    "%s is a Linux kernel or a module of one, which no process maps: user "
			    "probes, as --emit writes them, never fire "
			    "there. Without --emit its sites are shown as NAME+0xOFFSET, which "
			    "kernel probes take: sudo bpftrace -e "
			    "'kprobe:NAME+0xOFFSET { ... }'. Of the kernel that runs: cairn sites "
			    "--running FUNC --emit tracefs",
			    cairn_binary_path(view->bin));
	if (cairn_binary_is_relocatable(view->bin))
		return fail(STATUS_NOT_HERE,
			    "%s is relocatable: its sites have no address that %s could probe",
			    cairn_binary_path(view->bin), dialect);
	path = realpath(cairn_binary_path(view->bin), NULL);
	if (!path)
		return fail(STATUS_NOT_HERE, "%s: %m", cairn_binary_path(view->bin));
	if (cairn_quote(path, emitter->path, NULL, 0) < 0) {
		status = fail(STATUS_NOT_HERE,
			      "%s: %s has no way to write this path; give the file another name",
			      path, dialect);
		free(path);
		return status;
	}
	emitter->begin(view, path);
	for (size_t i = 0; i < n_functions; i++)
		left_out += emit_function(view, emitter, path, functions[i], &number);
	free(path);
	return report_left_out(left_out, number);
}
