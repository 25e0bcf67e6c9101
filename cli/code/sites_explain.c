/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sites --explain WORD: a reason's paragraph of docs/reasons.md, a quirk's row. */
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "say.h"
#include "sites.h"

static const struct {
	const char *word, *text, *line;
} reasons[] = {
#include "reasons.h"
};

enum { N_REASONS = sizeof(reasons) / sizeof(reasons[0]) };

const char *sites_reason(const char *word, bool as_line)
{
	for (size_t i = 0; i < N_REASONS; i++)
		if (!strcmp(reasons[i].word, word))
			return as_line ? reasons[i].line : reasons[i].text;
	return NULL;
}

/* ---- one reason, one quirk ---- */

static void show_reason(size_t i, bool as_json)
{
	struct json j = {.out = stdout};

	if (!as_json) {
		say(stdout, "%s\n\n", reasons[i].word);
		/* Text of our own, with line ends. */
		fputs(reasons[i].text, stdout);
		fputc('\n', stdout);
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "reason", reasons[i].word);
	json_text(&j, "text", reasons[i].line);
	json_close(&j);
}

void sites_explain_quirk(FILE *out, const struct cairn_quirk_rule *rule)
{
	help_wrapped(out, rule->effect, 0);
	say(out, "Producers: %s.\n", rule->producers);
	if (rule->finding)
		say(out, "Finding: docs/findings/%s.md\n", rule->finding);
	else
		say(out, "Finding: none, as %s.\n", rule->no_finding);
	say(out, "Code: src/facts/%s\n", rule->file);
}

static const char *reason_of(const struct cairn_quirk_rule *rule)
{
	return rule->why ? cairn_unavailable_id(rule->why) : NULL;
}

static void show_quirk(const struct cairn_quirk_rule *rule, bool as_json)
{
	struct json j = {.out = stdout};

	if (!as_json) {
		say(stdout, "%s\n\n", rule->id);
		sites_explain_quirk(stdout, rule);
		if (rule->why)
			say(stdout, "Reason: %s\n", reason_of(rule));
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "quirk", rule->id);
	json_text(&j, "text", rule->effect);
	json_text(&j, "producers", rule->producers);
	json_text(&j, "finding", rule->finding);
	json_text(&j, "no_finding", rule->no_finding);
	json_text(&j, "code", rule->file);
	json_text(&j, "reason", reason_of(rule));
	json_close(&j);
}

/* ---- all that fit ---- */

static bool is_named(const char *id, const char *text, const char *word)
{
	(void)text;
	return !strcmp(id, word);
}

/* People know the sentence and not the word. */
static bool is_in_sentence(const char *id, const char *text, const char *words)
{
	(void)id;
	return strlen(words) >= 4 && strstr(text, words);
}

typedef bool (*fits_fn)(const char *id, const char *text, const char *word);

static void separate(size_t n, bool as_json)
{
	if (n && !as_json)
		putchar('\n');
}

static size_t show_all(fits_fn fits, const char *word, bool as_json)
{
	size_t n = 0;

	for (size_t i = 0; i < N_REASONS; i++) {
		if (!fits(reasons[i].word, reasons[i].line, word))
			continue;
		separate(n++, as_json);
		show_reason(i, as_json);
	}
	for (unsigned int i = 1; i < CAIRN_N_QUIRKS; i++) {
		const struct cairn_quirk_rule *rule = cairn_quirk_rule(i);

		if (!fits(rule->id, rule->effect, word))
			continue;
		separate(n++, as_json);
		show_quirk(rule, as_json);
	}
	return n;
}

static bool is_any(const char *id, const char *text, const char *word)
{
	(void)id;
	(void)text;
	(void)word;
	return true;
}

static int list(void)
{
	for (size_t i = 0; i < N_REASONS; i++)
		puts(reasons[i].word);
	for (unsigned int i = 1; i < CAIRN_N_QUIRKS; i++)
		puts(cairn_quirk_rule(i)->id);
	return STATUS_YES;
}

int sites_explain(const char *word, bool as_json)
{
	bool all = !strcmp(word, "list");

	if (all && !as_json)
		return list();
	if (all ? show_all(is_any, word, true)
		: show_all(is_named, word, as_json) || show_all(is_in_sentence, word, as_json))
		return STATUS_YES;
	return fail(STATUS_NO,
		    "no reason is called %s; cairn sites --explain list prints all of them", word);
}
