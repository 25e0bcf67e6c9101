// SPDX-License-Identifier: BSD-2-Clause
/* cairn profile show: what takes the time in a profile, and the profile in another format. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>

#include "counted.h"
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
	 "write the profile to NAME, which ends with .html, .folded or .pb.gz; may be repeated"},
	{0, "value", OPT_TEXT, "NAME", AT(value),
	 "show the values of this name, such as cpu or alloc_space; otherwise the last of a "
	 "sample"},
	{0, "total", OPT_FLAG, NULL, AT(by_total),
	 "order by the time in a function and all that it called, not by its own"},
	{0, "top", OPT_COUNT, "N", AT(top), "show N functions (20)"},
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

static const char *note_of(const struct cairn_profile_share *s)
{
	if (s->code != CAIRN_PROFILE_USER)
		return s->code == CAIRN_PROFILE_KERNEL ? " [kernel]" : " [jit]";
	return s->self && s->inlined == s->self ? " (inlined)" : "";
}

static void show_share(const struct cairn_profile_share *s, int64_t sum, const char *unit,
		       const struct style *style)
{
	char self[PROFILE_VALUE_MAX];

	profile_value_text(unit, s->self, self);
	say(stdout, "%12s %6.2f%% %6.2f%%  ", self, profile_percent(s->self, sum),
	    profile_percent(s->total, sum));
	fputs(style->name, stdout);
	say_name(stdout, s->function);
	fputs(style->off, stdout);
	say(stdout, "%s", note_of(s));
	if (s->inlined && s->inlined != s->self)
		say(stdout, " (inlined: %.2f%%)", profile_percent(s->inlined, sum));
	if (*s->file) {
		fputs(style->faint, stdout);
		say(stdout, "  %s", s->file);
		fputs(style->off, stdout);
	}
	putchar('\n');
}

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
	say(stdout, "\n\n%12s %7s %7s  %s\n", "self", "self", "total", "function");
}

static void show_text(const char *path, const struct cairn_profile *p, size_t type,
		      const struct cairn_profile_shares *shares, size_t n)
{
	struct style style = style_for(stdout);

	show_head(path, p, type, shares->sum);
	for (size_t i = 0; i < n; i++)
		show_share(&shares->list[i], shares->sum, cairn_profile_type(p, type)->unit,
			   &style);
	if (n < shares->n)
		say(stdout, "and %s (--top %zu shows all)\n",
		    counted(shares->n - n, "more function"), shares->n);
}

/* ---- JSON ---- */

static void write_share(const struct cairn_profile_share *s, int64_t sum)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "function", s->function);
	json_text(&j, "file", *s->file ? s->file : NULL);
	json_text(&j, "code", profile_code_id(s->code));
	json_int(&j, "self", s->self);
	json_int(&j, "total", s->total);
	json_int(&j, "inlined", s->inlined);
	profile_json_percent(&j, "self_percent", profile_percent(s->self, sum));
	profile_json_percent(&j, "total_percent", profile_percent(s->total, sum));
	json_close(&j);
}

static void write_summary(const char *path, const struct cairn_profile *p, size_t type,
			  const struct cairn_profile_shares *shares)
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
	json_close(&j);
}

/* ---- other formats ---- */

struct format {
	const char *end; /* of the file's name */
	int (*make)(const struct cairn_profile *p, size_t type, const char *title,
		    struct cairn_profile_bytes *ret, struct cairn_err *err);
};

static int make_folded(const struct cairn_profile *p, size_t type, const char *title,
		       struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_folded(p, type, ret, err);
}

static int make_pprof(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_pprof(p, ret, err);
}

/* A new format is a row here. */
static const struct format formats[] = {
	{".html", cairn_profile_html},
	{".folded", make_folded},
	{".pb.gz", make_pprof},
};

/* NULL: the name says none. */
static const struct format *format_of(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (profile_name_ends(name, formats[i].end))
			return &formats[i];
	return NULL;
}

static int write_out(const struct cairn_profile *p, size_t type, const char *name,
		     const char *title)
{
	struct cairn_profile_bytes bytes = {0};
	struct cairn_err err = {0};
	int r = format_of(name)->make(p, type, title, &bytes, &err);

	if (r == 0)
		r = cairn_file_write(name, bytes.bytes, bytes.size, &err);
	free(bytes.bytes);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

static int write_all(const struct cairn_profile *p, size_t type, const struct opt_list *out,
		     const char *title)
{
	int status = STATUS_YES;

	for (size_t i = 0; status == STATUS_YES && i < out->n; i++)
		status = write_out(p, type, out->items[i], title);
	return status;
}

/* ---- the verb ---- */

static int by_total(const void *a, const void *b)
{
	const struct cairn_profile_share *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->function, y->function);
}

static int check_names(const struct opt_list *out)
{
	for (size_t i = 0; i < out->n; i++)
		if (!format_of(out->items[i]))
			return fail(STATUS_USAGE,
				    "%s: the name says the format: NAME.html, NAME.folded or "
				    "NAME.pb.gz",
				    out->items[i]);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct show_values *values = v;
	const char *path = operands->items[0];
	struct cairn_profile_shares shares;
	struct cairn_profile *p;
	size_t type, n;
	int status = check_names(&values->out);

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one profile at a time: %s\nTry: cairn profile diff",
			    operands->items[1]);
	if (status == STATUS_YES)
		status = profile_open_shares(path, values->value, &p, &type, &shares);
	if (status != STATUS_YES)
		return status;
	if (values->by_total)
		qsort(shares.list, shares.n, sizeof(*shares.list), by_total);
	n = values->top ? values->top : 20;
	n = n < shares.n && !values->json ? n : shares.n;
	status = write_all(p, type, &values->out, path);
	if (status == STATUS_YES && values->json) {
		for (size_t i = 0; i < n; i++)
			write_share(&shares.list[i], shares.sum);
		write_summary(path, p, type, &shares);
	} else if (status == STATUS_YES) {
		show_text(path, p, type, &shares, n);
	}
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
