/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sites --explain WORD: the paragraph of docs/reasons.md about one reason. */
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

static void show(size_t i, bool as_json)
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

static bool is_named(size_t i, const char *word)
{
	return !strcmp(reasons[i].word, word);
}

/* People know the sentence and not the word. */
static bool has_in_sentence(size_t i, const char *words)
{
	return strlen(words) >= 4 && strstr(reasons[i].line, words);
}

static size_t show_all(bool (*fits)(size_t i, const char *word), const char *word, bool as_json)
{
	size_t n = 0;

	for (size_t i = 0; i < N_REASONS; i++) {
		if (!fits(i, word))
			continue;
		if (n++ && !as_json)
			putchar('\n');
		show(i, as_json);
	}
	return n;
}

static int list(bool as_json)
{
	for (size_t i = 0; i < N_REASONS; i++) {
		if (as_json)
			show(i, true);
		else
			puts(reasons[i].word);
	}
	return STATUS_YES;
}

int sites_explain(const char *word, bool as_json)
{
	if (!strcmp(word, "list"))
		return list(as_json);
	if (show_all(is_named, word, as_json) || show_all(has_in_sentence, word, as_json))
		return STATUS_YES;
	return fail(STATUS_NO, "no reason is called %s; cairn sites --explain list prints all of them", word);
}
