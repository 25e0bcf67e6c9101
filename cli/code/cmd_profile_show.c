/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn profile show: what takes the time in a profile, and the profile in another format. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>

#include "cmd.h"
#include "profile.h"
#include "say.h"
#include "style.h"

struct show_values {
	struct opt_list out;
	const char *value;
	unsigned long top;
	bool by_total, json;
};

#define AT(field) offsetof(struct show_values, field)

static const struct opt opts[] = {
	{'o', "output", OPT_LIST, "NAME", AT(out),
	 "write the profile to NAME, which ends with .html, .folded, .pb.gz, .json, "
	 ".firefox.json, .firefox.json.gz or .ctf (a directory); may be repeated"},
	{0, "value", OPT_TEXT, "NAME", AT(value),
	 "show the values of this name, such as cpu or alloc_space; otherwise the last of a "
	 "sample"},
	{0, "total", OPT_FLAG, NULL, AT(by_total),
	 "order by the time in a function and all that it called, not by its own"},
	{0, "top", OPT_COUNT, "N", AT(top),
	 "show N functions (20), and half as many names of threads"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per function, then a summary"},
	{0},
};

static const struct example examples[] = {
	{"cairn profile show cpu.pb.gz", "the functions that take most of the time"},
	{"cairn profile show heap.pb.gz --value alloc_space --total",
	 "functions by the bytes that they and what they called allocated"},
	{"cairn profile show cpu.pb.gz -o cpu.html", "its flame graph as one page"},
	{"cairn profile show cpu.pb.gz -o cpu.folded", "its stacks for flamegraph.pl"},
	{"perf script | stackcollapse-perf.pl >p.folded; cairn profile show p.folded -o p.pb.gz",
	 "a profile of perf for pprof"},
	{0},
};

/* ---- text ---- */

enum { COMMENTS_SHOWN = 8 };

static void show_head(const char *path, const struct cairn_profile *p, size_t type, int64_t sum)
{
	const struct cairn_profile_type *t = cairn_profile_type(p, type);
	struct cairn_profile_run run = cairn_profile_run(p);
	char text[PROFILE_VALUE_MAX];

	profile_value_text(t->unit, sum, text);
	say(stdout, "%s: %s of %s, %zu different stack%s", path, text, t->type,
	    cairn_profile_n_samples(p), cairn_profile_n_samples(p) == 1 ? "" : "s");
	if (run.duration_ns > 0) {
		profile_value_text("nanoseconds", run.duration_ns, text);
		say(stdout, ", in %s", text);
	}
	say(stdout, "\n");
	for (size_t i = 0; i < cairn_profile_n_comments(p) && i < COMMENTS_SHOWN; i++)
		say(stdout, "%s\n", cairn_profile_comment(p, i));
	say(stdout, "\n");
}

static void show_text(const char *path, const struct cairn_profile *p, size_t type,
		      const struct cairn_profile_shares *shares,
		      const struct profile_threads *threads, size_t n)
{
	const char *unit = cairn_profile_type(p, type)->unit;

	show_head(path, p, type, shares->sum);
	profile_show_threads(threads, unit, n / 2);
	profile_show_shares(shares, unit, n);
}

/* ---- JSON ---- */

static void write_summary(const char *path, const struct cairn_profile *p, size_t type,
			  const struct cairn_profile_shares *shares,
			  const struct profile_threads *threads)
{
	const struct cairn_profile_type *t = cairn_profile_type(p, type);
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "path", path);
	json_text(&j, "value", t->type);
	json_text(&j, "unit", t->unit);
	json_int(&j, "sum", shares->sum);
	json_uint(&j, "stacks", cairn_profile_n_samples(p));
	json_uint(&j, "functions", shares->n);
	json_int(&j, "duration_ns", cairn_profile_run(p).duration_ns);
	json_open(&j, "comments", '[');
	for (size_t i = 0; i < cairn_profile_n_comments(p); i++)
		json_text(&j, NULL, cairn_profile_comment(p, i));
	json_close(&j);
	profile_json_threads(&j, threads);
	json_close(&j);
}

/* ---- the verb ---- */

static int show(const char *path, const struct cairn_profile *p, size_t type,
		const struct cairn_profile_shares *shares, const struct show_values *values)
{
	struct profile_threads threads = {.sum = shares->sum};
	struct cairn_err err = {0};
	int r = cairn_profile_threads(p, type, &threads.list, &threads.n, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (values->json) {
		profile_json_shares(shares);
		write_summary(path, p, type, shares, &threads);
	} else {
		show_text(path, p, type, shares, &threads, values->top ? values->top : 20);
	}
	free(threads.list);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct show_values *values = v;
	const char *path = operands->items[0];
	struct cairn_profile_shares shares;
	struct cairn_profile *p;
	size_t type;
	int status = profile_check_names(&values->out);

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one profile at a time: %s\nTry: cairn profile diff",
			    operands->items[1]);
	if (status == STATUS_YES)
		status = profile_open_shares(path, values->value, &p, &type, &shares);
	if (status != STATUS_YES)
		return status;
	if (values->by_total)
		profile_order_by_total(&shares);
	status = profile_write_all(p, type, &values->out, path);
	if (status == STATUS_YES)
		status = show(path, p, type, &shares, values);
	cairn_profile_shares_free(&shares);
	cairn_profile_close(p);
	return status;
}

const struct cmd cmd_profile_show = {
	.name = "profile show",
	.summary = "show what takes the time in a profile, and write it in another format",
	.operands = "FILE",
	.n_operands_min = 1,
	.pages = true,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct show_values),
	.run = run,
};
