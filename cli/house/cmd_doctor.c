/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn doctor: checks what works here, and shows the command that fixes the rest
 *
 * Nothing is concluded from versions. Tracing is tried, on this very process: a probe on a function
 * of a library that it loads, which is then called; and so is sampling. Each finding is a row, also where nothing
 * works: without /proc, without /sys, in a container that may not call bpf(2). A missing decoder
 * has none: the program is linked with it, and the loader names it before main().
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cairn/binary.h>
#include <cairn/text.h>
#include <cairn/sites.h>

#include "cmd.h"
#include "doctor.h"
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
	{"ldd $(command -v cairn)",
	 "libraries that are \"not found\": without them no verb starts, and this one has no rows"},
	{0},
};

struct exam {
	bool json;
	struct style style;
	unsigned int n_bad;
	const char *last_fix; /* of the text; not repeated */
};

/* @detail: safe text. @fix: a command or a sentence; NULL when there is nothing to do. */
static void report(struct exam *exam, bool ok, const char *what, const char *detail,
		   const char *fix)
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
	report(exam, !strcmp(name.machine, "x86_64"), "machine", detail,
	       strcmp(name.machine, "x86_64") ? "tracing works on x86-64 only" : NULL);
}

static void examine_proc(struct exam *exam)
{
	bool there = !access("/proc/self/maps", R_OK);

	report(exam, there, "/proc",
	       there ? "mounted" : "not mounted: processes cannot be looked at",
	       there ? NULL : "sudo mount -t proc proc /proc");
}

static void examine_btf(struct exam *exam)
{
	const char *detail = "/sys/kernel/btf/vmlinux", *fix = NULL;
	bool there = !access(detail, R_OK);

	if (!there && access("/sys/kernel/mm", F_OK)) {
		detail = "/sys is not mounted";
		fix = "sudo mount -t sysfs sysfs /sys";
	} else if (!there) {
		detail = "there is no /sys/kernel/btf/vmlinux, which BPF programs need";
		fix = "a kernel with CONFIG_DEBUG_INFO_BTF=y";
	}
	report(exam, there, "BTF of the kernel", detail, fix);
}

/* A command that no kernel knows: EINVAL says that the system call may be used. */
static int try_bpf(void)
{
	return syscall(SYS_bpf, INT_MAX, NULL, 0) < 0 && errno != EINVAL ? -errno : 0;
}

static void examine_bpf(struct exam *exam)
{
	int r = try_bpf();
	bool filtered = r < 0 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;

	if (!r)
		report(exam, true, "bpf(2)", "may be called", NULL);
	else if (r == -EPERM && geteuid())
		report(exam, false, "bpf(2)", "not permitted", "sudo cairn doctor");
	else if (filtered)
		report(exam, false, "bpf(2)", "refused by a seccomp filter, as containers have one",
		       "run cairn outside of the container, or allow bpf(2) and "
		       "perf_event_open(2) in its seccomp profile");
	else if (r == -ENOSYS)
		report(exam, false, "bpf(2)", "this kernel has none",
		       "a kernel with CONFIG_BPF_SYSCALL=y");
	else
		report(exam, false, "bpf(2)", "not permitted: CAP_BPF and CAP_PERFMON are missing",
		       "give the container these capabilities, or run cairn outside of it");
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
	report(exam, !r, what, r ? err.msg : found, r ? fix : NULL);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
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
	default:
		return NULL;
	}
}

/* @r: of what was tried: 1 it works, 0 it is only there, or a negative error. */
static void report_tried(struct exam *exam, const char *what, int r, const struct cairn_err *err,
			 const char *const texts[2], const char *fix)
{
	/* The message would repeat the command, which is the fix, after this one's own name. */
	if ((r == -EPERM || r == -EACCES) && geteuid())
		report(exam, false, what, "not permitted", fix);
	else if (r < 0)
		report(exam, false, what, err->msg[0] ? err->msg : strerror(-r), fix);
	else
		report(exam, r, what, texts[r], NULL);
}

static void examine_tracing(struct exam *exam, enum cairn_trace_backend backend, const char *what)
{
	static const char *const texts[] = {"attached, and the probe did not see the call",
					    "attached, saw the call and its argument, detached"};
	struct cairn_err err = {0};
	int r = doctor_try_tracing(backend, &err);

	report_tried(exam, what, r, &err, texts, tracing_fix(r, backend));
}

static const char *sampling_fix(int r)
{
	if ((r == -EPERM || r == -EACCES) && geteuid())
		return "sudo cairn doctor";
	return r == -EOPNOTSUPP ? "Linux 6.1 or later with CONFIG_PERF_EVENTS" : NULL;
}

static void examine_sampling(struct exam *exam)
{
	static const char *const texts[] = {
		"no sample came of a busy process",
		"a sample came, and its stack was walked in the kernel"};
	struct cairn_err err = {0};
	int r = doctor_try_sampling(&err);

	report_tried(exam, "samples with stacks (perf events)", r, &err, texts, sampling_fix(r));
}

/* The C library of this process; asked of the loader, as there may be no /proc. */
static void examine_libc(struct exam *exam)
{
	void *symbol = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	char path[PATH_MAX];
	Dl_info info;

	if (symbol && dladdr(symbol, &info) && realpath(info.dli_fname, path))
		examine_debug_info(exam, path, "sudo apt-get install libc6-dbg");
}

static int run(void *v, const struct operands *operands)
{
	struct doctor_values *values = v;
	struct exam exam = {.json = values->json, .style = style_for(stdout)};

	examine_kernel(&exam);
	examine_proc(&exam);
	examine_btf(&exam);
	examine_bpf(&exam);
	examine_tracing(&exam, CAIRN_BACKEND_UPROBE_MULTI,
			"many probes with one call (uprobe_multi)");
	examine_tracing(&exam, CAIRN_BACKEND_UPROBE, "single probes (uprobe)");
	examine_sampling(&exam);
	examine_libc(&exam);
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
