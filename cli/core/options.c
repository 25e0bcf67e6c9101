/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines, read by a verb's option table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "near.h"
#include "say.h"

struct parser {
	const struct cmd *cmd;
	char **words;
	char *values;
	struct operands *operands;
};

static int usage(const struct cmd *cmd, const char *what, const char *word)
{
	return fail(STATUS_USAGE, "%s: %s\nTry: cairn %s --help", what, word, cmd->name);
}

static int no_such_option(const struct cmd *cmd, const char *word, size_t len)
{
	const char *before = "Did you mean: ";

	fail(STATUS_USAGE, "no such option: %s", word);
	for (const struct opt *opt = cmd->opts; opt->name; opt++) {
		if (!near_word(word + 2, len, opt->name))
			continue;
		say(stderr, "%s--%s", before, opt->name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', stderr);
	say(stderr, "Try: cairn %s --help\n", cmd->name);
	return STATUS_USAGE;
}

static const struct opt *find_exactly(const struct cmd *cmd, const char *name, size_t len)
{
	for (const struct opt *opt = cmd->opts; opt->name; opt++)
		if (strlen(opt->name) == len && !memcmp(opt->name, name, len))
			return opt;
	return NULL;
}

static const struct opt *find_name(const struct cmd *cmd, const char *name, size_t len)
{
	const struct opt *opt = find_exactly(cmd, name, len);
	const char *now = opt ? NULL : current_spelling(name, len);

	return now ? find_exactly(cmd, now, strlen(now)) : opt;
}

static const struct opt *find_letter(const struct cmd *cmd, char letter)
{
	for (const struct opt *opt = cmd->opts; opt->name; opt++)
		if (opt->letter && opt->letter == letter)
			return opt;
	return NULL;
}

/* True when @value is one of the words of "a|b|c", or when @choices are not of that form. */
static bool allowed(const char *choices, const char *value)
{
	size_t len = strlen(value);

	if (!strchr(choices, '|'))
		return true;
	for (const char *word = choices; word; word = strchr(word, '|')) {
		word += *word == '|';
		if (!strncmp(word, value, len) && (word[len] == '|' || !word[len]))
			return true;
	}
	return false;
}

static bool read_count(const char *text, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *ret;
}

static bool read_seconds(const char *text, double *ret)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}};
	char *end;
	double number = strtod(text, &end);

	if (end == text || !isfinite(number) || number <= 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		*ret = number * units[i].seconds;
		return true;
	}
	return false;
}

static bool append(struct opt_list *list, const char *item)
{
	const char **grown = realloc(list->items, (list->n + 1) * sizeof(*grown));

	if (!grown)
		return false;
	grown[list->n++] = item;
	list->items = grown;
	return true;
}

static int store(struct parser *parser, const struct opt *opt, const char *value)
{
	void *to = parser->values + opt->off;

	if (opt->value && !(opt->kind == OPT_MAYBE && !*value) && !allowed(opt->value, value))
		return fail(STATUS_USAGE, "--%s takes %s, not %s", opt->name, opt->value, value);
	switch (opt->kind) {
	case OPT_FLAG:
		*(bool *)to = true;
		return STATUS_YES;
	case OPT_COUNT:
		if (read_count(value, to))
			return STATUS_YES;
		return fail(STATUS_USAGE, "--%s takes a number of at least 1, not %s", opt->name,
			    value);
	case OPT_SECONDS:
		if (read_seconds(value, to))
			return STATUS_YES;
		return fail(STATUS_USAGE, "--%s takes a time such as 10, 500ms or 2m, not %s",
			    opt->name, value);
	case OPT_TEXT:
	case OPT_MAYBE:
		*(const char **)to = value;
		return STATUS_YES;
	case OPT_LIST:
		if (append(to, value))
			return STATUS_YES;
		return fail(STATUS_NOT_HERE, "no memory");
	}
	return STATUS_USAGE;
}

/* The value of an option: the rest of its word, else the next word. */
static const char *take_value(struct parser *parser, const char *rest)
{
	if (*rest)
		return rest;
	return *parser->words ? *parser->words++ : NULL;
}

static int parse_long(struct parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct opt *opt = find_name(parser->cmd, word, len);
	const char *value;

	if (!opt)
		return no_such_option(parser->cmd, word - 2, len);
	if (!opt->value) {
		if (equals)
			return usage(parser->cmd, "this option takes no value", word - 2);
		return store(parser, opt, "");
	}
	if (!equals && !opt_takes_word(opt))
		return store(parser, opt, "");
	value = equals ? equals + 1 : take_value(parser, "");
	if (!value)
		return usage(parser->cmd, "this option needs a value", word - 2);
	return store(parser, opt, value);
}

static int parse_letters(struct parser *parser, const char *word)
{
	for (const char *at = word; *at; at++) {
		const struct opt *opt = find_letter(parser->cmd, *at);
		const char *value;
		int status;

		if (!opt)
			return usage(parser->cmd, "no such option", word - 1);
		if (!opt_takes_word(opt)) {
			status = store(parser, opt, "");
			if (status)
				return status;
			continue;
		}
		value = take_value(parser, at + 1);
		return value ? store(parser, opt, value)
			     : usage(parser->cmd, "this option needs a value", word - 1);
	}
	return STATUS_YES;
}

static int parse_words(struct parser *parser)
{
	struct operands *operands = parser->operands;

	while (*parser->words) {
		char *word = *parser->words++;
		int status;

		if (!strcmp(word, "--")) {
			operands->is_command = !operands->n;
			break;
		}
		if (word[0] != '-' || !word[1]) {
			operands->items[operands->n++] = word;
			continue;
		}
		if (!strcmp(word, "-h") || !strcmp(word, "--help"))
			return OPTIONS_HELP;
		status = word[1] == '-' ? parse_long(parser, word + 2)
					: parse_letters(parser, word + 1);
		if (status)
			return status;
	}
	while (*parser->words)
		operands->items[operands->n++] = *parser->words++;
	return STATUS_YES;
}

int options_parse(const struct cmd *cmd, char **words, void *values, struct operands *operands)
{
	struct parser parser = {.cmd = cmd, .words = words, .values = values, .operands = operands};
	size_t n = 0;
	int status;

	while (words[n])
		n++;
	*operands = (struct operands){0};
	operands->items = calloc(n + 1, sizeof(*operands->items));
	if (!operands->items)
		return fail(STATUS_NOT_HERE, "no memory");
	status = parse_words(&parser);
	if (status)
		return status;
	if (operands->n < cmd->n_operands_min)
		return fail(STATUS_USAGE, "cairn %s needs %s\nTry: cairn %s --help", cmd->name,
			    cmd->operands, cmd->name);
	if (operands->n && !cmd->operands)
		return usage(cmd, "not expected", operands->items[0]);
	return STATUS_YES;
}

void options_fini(const struct cmd *cmd, void *values, struct operands *operands)
{
	for (const struct opt *opt = cmd->opts; opt->name; opt++)
		if (opt->kind == OPT_LIST)
			free(((struct opt_list *)((char *)values + opt->off))->items);
	free(operands->items);
}
