/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of a verb's table, for people: --help, and the manual page. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"

/* The column of the sentences about options. */
#define OPTION_COLUMN 26

/* Columns of a line: of the terminal, or those of our own documents. */
static size_t columns_of(FILE *out)
{
	enum { COLUMNS = 100, COLUMNS_MIN = 40 };
	struct winsize size;

	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col)
		return COLUMNS;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

void help_wrapped(FILE *out, const char *text, size_t indent)
{
	size_t columns = columns_of(out), room = columns > 2 * indent ? columns - indent : columns;

	while (strlen(text) > room) {
		size_t n = room;

		while (n && text[n] != ' ')
			n--;
		/* A word that is longer than the line stays whole. */
		n = n ? n : strcspn(text, " ");
		fprintf(out, "%.*s\n", (int)n, text);
		text += n + (text[n] == ' ');
		if (!*text)
			return;
		fprintf(out, "%*s", (int)indent, "");
	}
	fprintf(out, "%s\n", text);
}

static void option_words(const struct opt *opt, char *buf, size_t size)
{
	char letter[5] = "";

	if (opt->letter)
		snprintf(letter, sizeof(letter), "-%c, ", opt->letter);
	if (opt->kind == OPT_MAYBE)
		snprintf(buf, size, "%4s--%s[=%s]", letter, opt->name, opt->value);
	else
		snprintf(buf, size, "%4s--%s%s%s", letter, opt->name, opt->value ? " " : "",
			 opt->value ? opt->value : "");
}

static void help_option(const struct opt *opt, FILE *out)
{
	char words[128];

	option_words(opt, words, sizeof(words));
	if (strlen(words) + 4 > OPTION_COLUMN)
		fprintf(out, "  %s\n  %*s", words, OPTION_COLUMN - 2, "");
	else
		fprintf(out, "  %-*s", OPTION_COLUMN - 2, words);
	help_wrapped(out, opt->help, OPTION_COLUMN);
}

static const struct opt opt_help = {.letter = 'h', .name = "help", .help = "show this"};

/* "btf-dump" of "btf dump". */
static void put_page_name(const struct cmd *cmd, FILE *out)
{
	for (const char *at = cmd->name; *at; at++)
		fputc(*at == ' ' ? '-' : *at, out);
}

void help_cmd(const struct cmd *cmd, FILE *out)
{
	fprintf(out, "cairn %s - %s\n\n", cmd->name, cmd->summary);
	fprintf(out, "Usage: cairn %s [OPTION...]%s%s\n\nExamples:\n", cmd->name,
		cmd->operands ? " " : "", cmd->operands ? cmd->operands : "");
	for (const struct example *example = cmd->examples; example->command; example++) {
		fprintf(out, "  %s\n      ", example->command);
		help_wrapped(out, example->what, 6);
	}
	fputs("\nOptions:\n", out);
	for (const struct opt *opt = cmd->opts; opt->name; opt++)
		help_option(opt, out);
	help_option(&opt_help, out);
	fputs("\nMore: man cairn-", out);
	put_page_name(cmd, out);
	fputc('\n', out);
}

void help_group(const char *group, FILE *out)
{
	size_t len = strlen(group);

	fprintf(out, "Usage: cairn %s VERB [OPTION...] [OPERAND...]\n\nVerbs:\n", group);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (cmd_is_in_group(*cmd, group, len))
			fprintf(out, "  %-10s %s\n", (*cmd)->name + len + 1, (*cmd)->summary);
	fprintf(out, "\nMore: cairn %s VERB --help\n", group);
}

void help_program(FILE *out)
{
	fputs("cairn - where the functions of an optimised program went, and what they are called "
	      "with\n\n"
	      "Usage: cairn VERB [OPTION...] [OPERAND...]\n\n"
	      "Examples:\n"
	      "  cairn sites /lib/x86_64-linux-gnu/libc.so.6 tcache_get\n"
	      "      every site of tcache_get in Debian's libc, with its argument's location\n"
	      "  sudo cairn trace -c 'ls /usr/bin' '/lib/x86_64-linux-gnu/libc.so.6:tcache_get'\n"
	      "      each call that ls makes, also where the function was inlined\n",
	      out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		if (cmd_topic(*cmd))
			fprintf(out, "\n%s:\n", cmd_topic(*cmd));
		fprintf(out, "  %-14s ", (*cmd)->name);
		help_wrapped(out, (*cmd)->summary, 17);
	}
	fputs("\nOptions:\n      --completion bash|zsh|fish  print the script that completes "
	      "command lines\n      --version                   print the version\n  -h, --help    "
	      "                  show this; cairn VERB --help describes one verb\n\nExit status: 0 "
	      "yes, 1 no, 2 usage, 3 not permitted or supported here, 4 damaged input,\n5 events "
	      "lost (with --fail-on-loss), 6 yes, by an assumption (stack)\n",
	      out);
}

/* roff reads a dash as a hyphen and a point at the start of a line as a request. */
static void roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			fputs(*text == '-' ? "\\-" : "\\e", stdout);
		else
			fputc(*text, stdout);
	}
}

static void man_option(const struct opt *opt)
{
	fputs(".TP\n", stdout);
	if (opt->letter)
		printf("\\fB\\-%c\\fR, ", opt->letter);
	fputs("\\fB\\-\\-", stdout);
	roff(opt->name);
	fputs("\\fR", stdout);
	if (opt->value) {
		fputs(opt->kind == OPT_MAYBE ? "[=\\fI" : " \\fI", stdout);
		roff(opt->value);
		fputs(opt->kind == OPT_MAYBE ? "\\fR]" : "\\fR", stdout);
	}
	putchar('\n');
	/* A sentence here, part of a table there. */
	putchar(toupper((unsigned char)opt->help[0]));
	roff(opt->help + 1);
	fputs(".\n", stdout);
}

static void man_generated(const struct cmd *cmd)
{
	fputs(".TH CAIRN\\-", stdout);
	for (const char *at = cmd->name; *at; at++)
		putchar(*at == ' ' ? '-' : toupper((unsigned char)*at));
	/* Justified lines tear commands apart. */
	fputs(" 1\n.ad l\n.SH NAME\ncairn\\-", stdout);
	for (const char *at = cmd->name; *at; at++)
		fputs(*at == ' ' ? "\\-" : (char[]){*at, '\0'}, stdout);
	fputs(" \\- ", stdout);
	roff(cmd->summary);
	printf("\n.SH SYNOPSIS\n\\fBcairn %s\\fR [\\fIOPTION\\fR...]", cmd->name);
	if (cmd->operands) {
		putchar(' ');
		roff(cmd->operands);
	}
	fputs("\n.SH EXAMPLES\n", stdout);
	for (const struct example *example = cmd->examples; example->command; example++) {
		fputs(".TP\n\\fB", stdout);
		roff(example->command);
		fputs("\\fR\n", stdout);
		putchar(toupper((unsigned char)example->what[0]));
		roff(example->what + 1);
		fputs(".\n", stdout);
	}
	fputs(".SH OPTIONS\n", stdout);
	for (const struct opt *opt = cmd->opts; opt->name; opt++)
		man_option(opt);
	man_option(&opt_help);
}

int help_man(const char *verb, const char *prose)
{
	const struct cmd *const *cmd = cmds;
	FILE *in;
	int c;

	while (*cmd && strcmp((*cmd)->name, verb))
		cmd++;
	if (!*cmd)
		return fail(STATUS_USAGE, "no such verb: %s", verb);
	in = fopen(prose, "re");
	if (!in)
		return fail(STATUS_USAGE, "cannot read %s", prose);
	man_generated(*cmd);
	while ((c = getc(in)) != EOF)
		putchar(c);
	fclose(in);
	return STATUS_YES;
}
