/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a profile by their share, as lines and as JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "profile.h"
#include "say.h"
#include "style.h"

static int by_total(const void *a, const void *b)
{
	const struct cairn_profile_share *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->function, y->function);
}

void profile_order_by_total(struct cairn_profile_shares *shares)
{
	if (shares->n)
		qsort(shares->list, shares->n, sizeof(*shares->list), by_total);
}

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

void profile_show_shares(const struct cairn_profile_shares *shares, const char *unit, size_t n)
{
	struct style style = style_for(stdout);

	say(stdout, "%12s %7s %7s  %s\n", "self", "self", "total", "function");
	for (size_t i = 0; i < n && i < shares->n; i++)
		show_share(&shares->list[i], shares->sum, unit, &style);
	if (n < shares->n)
		say(stdout, "and %s (--top %zu shows all)\n",
		    cairn_counted(shares->n - n, "more function").text, shares->n);
}

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

void profile_json_shares(const struct cairn_profile_shares *shares)
{
	for (size_t i = 0; i < shares->n; i++)
		write_share(&shares->list[i], shares->sum);
}
