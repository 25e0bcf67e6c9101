/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn profile diff: which functions take another share than before. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>

#include "cmd.h"
#include "profile.h"
#include "say.h"
#include "style.h"

struct diff_values {
	const char *out;
	const char *value;
	unsigned long top;
	bool by_total, json;
};

#define AT(field) offsetof(struct diff_values, field)

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "NAME.html", AT(out),
	 "write the flame graph of AFTER to NAME.html, with what grew and what shrank"},
	{0, "value", OPT_TEXT, "NAME", AT(value),
	 "compare the values of this name, such as cpu; otherwise the last of a sample"},
	{0, "total", OPT_FLAG, NULL, AT(by_total),
	 "compare the time in a function and all that it called, not its own"},
	{0, "top", OPT_COUNT, "N", AT(top), "show the N largest changes (20)"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per function, then a summary"},
	{0},
};

static const struct example examples[] = {
	{"cairn profile diff before.pb.gz after.pb.gz",
	 "which functions take another share of the time"},
	{"cairn profile diff before.folded after.folded --total --top 5",
	 "the five largest changes, with all that a function called"},
	{"cairn profile diff before.pb.gz after.pb.gz -o diff.html",
	 "a flame graph with marks at what grew and what shrank"},
	{0},
};

/* A function of either profile; NULL: the other one has it alone. */
struct change {
	const struct cairn_profile_share *before, *after;
	double points; /* percentage points from before to after */
};

struct side {
	struct cairn_profile *p;
	struct cairn_profile_shares shares;
	size_t type;
};

static double percent_of(const struct cairn_profile_share *s, const struct side *side, bool total)
{
	return s ? profile_percent(total ? s->total : s->self, side->shares.sum) : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct cairn_profile_share *x = *(const struct cairn_profile_share *const *)a;
	const struct cairn_profile_share *y = *(const struct cairn_profile_share *const *)b;
	int names = strcmp(x->function, y->function);

	if (names == 0)
		names = strcmp(x->file, y->file);
	return names ? names : (int)x->code - (int)y->code;
}

static const struct cairn_profile_share **sorted(const struct cairn_profile_shares *shares)
{
	const struct cairn_profile_share **list = calloc(shares->n + 1, sizeof(*list));

	for (size_t i = 0; list && i < shares->n; i++)
		list[i] = &shares->list[i];
	if (list && shares->n)
		qsort(list, shares->n, sizeof(*list), by_name);
	return list;
}

/* Both lists are in the order of names. */
static size_t join(const struct cairn_profile_share **a, size_t n_a,
		   const struct cairn_profile_share **b, size_t n_b, struct change *to)
{
	size_t i = 0, k = 0, n = 0;

	while (i < n_a || k < n_b) {
		int order = i == n_a ? 1 : k == n_b ? -1 : by_name(&a[i], &b[k]);

		to[n].before = order <= 0 ? a[i++] : NULL;
		to[n].after = order >= 0 ? b[k++] : NULL;
		n++;
	}
	return n;
}

static int by_change(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	double difference = fabs(y->points) - fabs(x->points);

	if (difference)
		return difference > 0 ? 1 : -1;
	return strcmp((x->before ? x->before : x->after)->function,
		      (y->before ? y->before : y->after)->function);
}

static struct change *compare(const struct side *before, const struct side *after, bool total,
			      size_t *ret_n)
{
	const struct cairn_profile_share **a = sorted(&before->shares),
					 **b = sorted(&after->shares);
	struct change *changes = calloc(before->shares.n + after->shares.n + 1, sizeof(*changes));

	if (a && b && changes) {
		*ret_n = join(a, before->shares.n, b, after->shares.n, changes);
		for (size_t i = 0; i < *ret_n; i++)
			changes[i].points = percent_of(changes[i].after, after, total) -
					    percent_of(changes[i].before, before, total);
		qsort(changes, *ret_n, sizeof(*changes), by_change);
	} else {
		free(changes);
		changes = NULL;
	}
	free(a);
	free(b);
	return changes;
}

static void show_text(const struct side *before, const struct side *after,
		      const struct change *changes, size_t n, const struct diff_values *values)
{
	struct style style = style_for(stdout);
	size_t shown = values->top ? values->top : 20;
	char a[PROFILE_VALUE_MAX], b[PROFILE_VALUE_MAX];

	profile_value_text(cairn_profile_type(before->p, before->type)->unit, before->shares.sum,
			   a);
	profile_value_text(cairn_profile_type(after->p, after->type)->unit, after->shares.sum, b);
	say(stdout, "%s: %s before, %s after; shares of %s\n\n%9s %8s %8s  function\n",
	    cairn_profile_type(after->p, after->type)->type, a, b,
	    values->by_total ? "a function and all that it called" : "a function itself", "change",
	    "before", "after");
	for (size_t i = 0; i < n && i < shown && changes[i].points; i++) {
		const struct change *c = &changes[i];

		say(stdout, "%+8.2f%% %7.2f%% %7.2f%%  ", c->points,
		    percent_of(c->before, before, values->by_total),
		    percent_of(c->after, after, values->by_total));
		fputs(style.name, stdout);
		say_name(stdout, (c->after ? c->after : c->before)->function);
		fputs(style.off, stdout);
		say(stdout, "%s\n", !c->before ? " (new)" : !c->after ? " (gone)" : "");
	}
}

static void write_value(struct json *j, const char *key, const struct cairn_profile_share *s,
			bool total)
{
	if (s)
		json_int(j, key, total ? s->total : s->self);
	else
		json_null(j, key);
}

static void write_json(const struct side *before, const struct side *after,
		       const struct change *changes, size_t n, bool total)
{
	struct json j = {.out = stdout};

	for (size_t i = 0; i < n; i++) {
		const struct cairn_profile_share *s =
			changes[i].after ? changes[i].after : changes[i].before;

		json_open(&j, NULL, '{');
		json_text(&j, "function", s->function);
		json_text(&j, "file", *s->file ? s->file : NULL);
		json_text(&j, "code", profile_code_id(s->code));
		write_value(&j, "before", changes[i].before, total);
		write_value(&j, "after", changes[i].after, total);
		profile_json_percent(&j, "change_percent", changes[i].points);
		json_close(&j);
	}
	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "value", cairn_profile_type(after->p, after->type)->type);
	json_text(&j, "of", total ? "total" : "self");
	json_int(&j, "before", before->shares.sum);
	json_int(&j, "after", after->shares.sum);
	json_close(&j);
}

static void side_free(struct side *side)
{
	cairn_profile_shares_free(&side->shares);
	cairn_profile_close(side->p);
}

static int write_page(const struct side *before, const struct side *after, const char *title,
		      const char *out)
{
	struct cairn_profile_bytes bytes = {0};
	struct cairn_err err = {0};
	int r = cairn_profile_html_diff(before->p, before->type, after->p, after->type, title,
					&bytes, &err);

	if (r == 0)
		r = cairn_file_write(out, bytes.bytes, bytes.size, &err);
	free(bytes.bytes);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

static int show(const struct side *before, const struct side *after,
		const struct diff_values *values)
{
	size_t n = 0;
	struct change *changes = compare(before, after, values->by_total, &n);

	if (!changes)
		return fail(STATUS_NOT_HERE, "no memory for the functions of two profiles");
	if (values->json)
		write_json(before, after, changes, n, values->by_total);
	else
		show_text(before, after, changes, n, values);
	free(changes);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct diff_values *values = v;
	struct side before, after;
	int status;

	if (operands->n != 2)
		return fail(STATUS_USAGE, "two profiles are compared, not %zu", operands->n);
	if (values->out && !profile_name_ends(values->out, ".html"))
		return fail(STATUS_USAGE, "%s: the name says the format: NAME.html", values->out);
	status = profile_open_shares(operands->items[0], values->value, &before.p, &before.type,
				     &before.shares);
	if (status != STATUS_YES)
		return status;
	/* The same values of both: "cpu" of one is not "wall" of the other. */
	status = profile_open_shares(operands->items[1],
				     cairn_profile_type(before.p, before.type)->type, &after.p,
				     &after.type, &after.shares);
	if (status == STATUS_YES) {
		if (values->out)
			status = write_page(&before, &after, operands->items[1], values->out);
		if (status == STATUS_YES)
			status = show(&before, &after, values);
		side_free(&after);
	}
	side_free(&before);
	return status;
}

const struct cmd cmd_profile_diff = {
	.name = "profile diff",
	.summary = "compare two profiles: which functions take another share of the time",
	.operands = "BEFORE AFTER",
	.n_operands_min = 2,
	.pages = true,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct diff_values),
	.run = run,
};
