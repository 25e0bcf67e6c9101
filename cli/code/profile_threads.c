/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a profile by name, as lines and as JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include <cairn/text.h>

#include "cmd.h"
#include "profile.h"
#include "say.h"
#include "style.h"

static void show_thread(const struct cairn_profile_thread *t, int64_t sum, const char *unit,
			const struct style *style)
{
	/* A name may be empty, and other tools' samples may have no thread. */
	const char *none = t->n_threads ? "\"\"" : "(not said)", *name = *t->name ? t->name : none;
	char self[PROFILE_VALUE_MAX];

	profile_value_text(unit, t->self, self);
	say(stdout, "%12s %6.2f%% %7zu  ", self, profile_percent(t->self, sum), t->n_threads);
	fputs(style->name, stdout);
	say_name(stdout, name);
	fputs(style->off, stdout);
	putchar('\n');
}

void profile_show_threads(const struct profile_threads *threads, const char *unit, size_t n)
{
	struct style style = style_for(stdout);

	/* One name says nothing that the command line did not. */
	if (threads->n < 2)
		return;
	say(stdout, "%12s %7s %7s  %s\n", "self", "self", "threads", "name of thread");
	for (size_t i = 0; i < n && i < threads->n; i++)
		show_thread(&threads->list[i], threads->sum, unit, &style);
	if (n < threads->n)
		say(stdout, "and %s\n", cairn_counted(threads->n - n, "more name").text);
	putchar('\n');
}

void profile_json_threads(struct json *j, const struct profile_threads *threads)
{
	json_open(j, "threads", '[');
	for (size_t i = 0; i < threads->n; i++) {
		const struct cairn_profile_thread *t = &threads->list[i];
		json_open(j, NULL, '{');
		json_text(j, "name", *t->name ? t->name : NULL);
		json_uint(j, "threads", t->n_threads);
		json_int(j, "self", t->self);
		profile_json_percent(j, "self_percent", profile_percent(t->self, threads->sum));
		json_close(j);
	}
	json_close(j);
}
