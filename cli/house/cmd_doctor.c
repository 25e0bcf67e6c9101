/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn doctor: checks what works here, and shows the command that fixes the rest
 *
 * Nothing is concluded from versions. Tracing is tried, on this very process: a probe on a function
 * of cairn, which is then called.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cairn/binary.h>
#include <cairn/quote.h>
#include <cairn/sites.h>
#include <cairn/trace.h>

#include "cmd.h"
#include "json.h"
#include "say.h"
#include "style.h"

struct doctor_values {
	bool json;
};

static const struct opt opts[] = {
	{0, "json", OPT_FLAG, NULL, offsetof(struct doctor_values, json),
	 "one JSON object per finding"},
	{0},
};

static const struct example examples[] = {
	{"sudo cairn doctor", "the verbs that work here with root's permissions"},
	{"cairn doctor", "the verbs that work here with yours"},
	{0},
};

struct exam {
	bool json;
	struct style style;
	unsigned int n_bad;
	const char *last_fix; /* of the text; not repeated */
};

/* @detail: safe text. @fix: a command or a sentence; NULL when there is nothing to do. */
static void tell(struct exam *exam, bool ok, const char *what, const char *detail, const char *fix)
{
	struct json j = {.out = stdout};

	exam->n_bad += !ok;
	if (exam->json) {
		json_open(&j, NULL, '{');
		json_text(&j, "what", what);
		json_bool(&j, "ok", ok);
		json_text(&j, "detail", detail);
		json_text(&j, "fix", fix);
		json_close(&j);
		return;
	}
	printf("%s%-3s%s ", ok ? "" : exam->style.bad, ok ? "yes" : "no", exam->style.off);
	say(stdout, "%s: ", what);
	printf("%s\n", detail);
	if (fix && (!exam->last_fix || strcmp(fix, exam->last_fix)))
		say(stdout, "    fix: %s\n", fix);
	exam->last_fix = fix;
}

static void examine_kernel(struct exam *exam)
{
	struct utsname name;
	char detail[256];

	if (uname(&name))
		return;
	snprintf(detail, sizeof(detail), "%s %s on %s", name.sysname, name.release, name.machine);
	tell(exam, !strcmp(name.machine, "x86_64"), "machine", detail,
	     strcmp(name.machine, "x86_64") ? "tracing works on x86-64 only" : NULL);
}

static void examine_debug_info(struct exam *exam, const char *path, const char *fix)
{
	struct cairn_binary *bin = NULL;
	struct cairn_sites *sites = NULL;
	struct cairn_err err = {0};
	char what[4096 + 64], found[4096] = "";
	int r = cairn_binary_open(path, NULL, &bin, &err);

	snprintf(what, sizeof(what), "debug information of %s", path);
	if (!r)
		r = cairn_sites_open(bin, NULL, &sites, &err);
	if (!r)
		cairn_quote(cairn_binary_debug_path(bin), CAIRN_QUOTE_TEXT, found, sizeof(found));
	tell(exam, !r, what, r ? err.msg : found, r ? fix : NULL);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
}

/* The path of a file that this process maps, by the end of its name; false when it maps none. */
static bool mapped_file(const char *end, char *ret, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');
		size_t n;

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		n = strlen(path);
		found = n > strlen(end) && !strcmp(path + n - strlen(end), end);
		if (found)
			snprintf(ret, size, "%s", path);
	}
	if (maps)
		fclose(maps);
	return found;
}

static int last_seen;

/* The probed function. Its argument is in a register, and the compiler cannot remove the call. */
__attribute__((noinline, noclone)) void cairn_doctor_target(int number);
__attribute__((noinline, noclone)) void cairn_doctor_target(int number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}

static int see(void *ctx, const struct cairn_event *event)
{
	if (event->n_values == 1 && event->values[0].state == CAIRN_VALUE_OK &&
	    event->values[0].n_bytes == sizeof(last_seen))
		memcpy(&last_seen, event->values[0].bytes, sizeof(last_seen));
	return 0;
}

/* Probes this process, calls the probed function and looks whether its argument comes back. */
static int try_tracing(enum cairn_trace_backend backend, struct cairn_err *err)
{
	struct cairn_trace_opts trace_opts = {
		.size = sizeof(trace_opts), .pid = getpid(), .backend = backend};
	struct cairn_trace *t = NULL;
	int r = cairn_trace_open(&trace_opts, &t, err);

	if (r >= 0)
		r = cairn_trace_add(t, "cairn_doctor_target(number)", err);
	if (r >= 0)
		r = cairn_trace_attach(t, err);
	if (r >= 0)
		r = cairn_trace_start(t, err);
	last_seen = 0;
	if (r >= 0) {
		cairn_doctor_target(4711);
		cairn_trace_detach(t);
		r = cairn_trace_poll(t, 1000, see, NULL, err);
	}
	cairn_trace_close(t);
	return r;
}

static const char *tracing_fix(int r, enum cairn_trace_backend backend)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return geteuid() ? "sudo cairn doctor" : NULL;
	case -EOPNOTSUPP:
		return backend == CAIRN_BACKEND_UPROBE_MULTI
			       ? "Linux 6.6 or later; single uprobes do the same, slower"
			       : "Linux 5.15 or later with CONFIG_UPROBES and CONFIG_BPF_SYSCALL";
	case -ENODATA:
	case -ENXIO:
	case -ENOENT:
		return "a cairn that is not stripped, which this test looks at";
	default:
		return NULL;
	}
}

static void examine_tracing(struct exam *exam, enum cairn_trace_backend backend, const char *what)
{
	struct cairn_err err = {0};
	int r = try_tracing(backend, &err);

	/* The message would repeat the command, which is the fix, after this one's own name. */
	if ((r == -EPERM || r == -EACCES) && geteuid())
		tell(exam, false, what, "not permitted", tracing_fix(r, backend));
	else if (r < 0)
		tell(exam, false, what, err.msg[0] ? err.msg : strerror(-r),
		     tracing_fix(r, backend));
	else if (last_seen != 4711)
		tell(exam, false, what, "attached, and the probe did not see the call", NULL);
	else
		tell(exam, true, what, "attached, saw the call and its argument, detached", NULL);
}

static int run(void *v, const struct operands *operands)
{
	struct doctor_values *values = v;
	struct exam exam = {.json = values->json, .style = style_for(stdout)};
	char path[4096];

	examine_kernel(&exam);
	examine_tracing(&exam, CAIRN_BACKEND_UPROBE_MULTI,
			"many probes with one call (uprobe_multi)");
	examine_tracing(&exam, CAIRN_BACKEND_UPROBE, "single probes (uprobe)");
	if (mapped_file("/libc.so.6", path, sizeof(path)))
		examine_debug_info(&exam, path, "sudo apt-get install libc6-dbg");
	return exam.n_bad ? STATUS_NO : STATUS_YES;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "check what works here, and show the command that fixes the rest",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct doctor_values),
	.run = run,
};
