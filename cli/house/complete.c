/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion scripts, made from the verbs' tables
 *
 *	eval "$(cairn --completion bash)"
 *	cairn --completion zsh  > "${fpath[1]}/_cairn"
 *	cairn --completion fish > ~/.config/fish/completions/cairn.fish
 */
#include <string.h>

#include "cmd.h"

/* "a|b|c" as "a b c", NULL when the value is not one of a few words. */
static const char *choices(const struct opt *opt, char *buf, size_t size)
{
	if (!opt->value || !strchr(opt->value, '|'))
		return NULL;
	snprintf(buf, size, "%s", opt->value);
	for (char *at = buf; *at; at++)
		if (*at == '|')
			*at = ' ';
	return buf;
}

/* An option or operand whose names or numbers can be listed: a value or an operand. */
static const char *named_of(const char *value)
{
	static const struct {
		const char *word, *kind;
	} kinds[] = {{"FUNC", "functions"}, {"TYPE", "types"}, {"ABI", "abis"}, {"PID", "pids"}};

	for (size_t i = 0; value && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strstr(value, kinds[i].word))
			return kinds[i].kind;
	return NULL;
}

static bool takes_pid(const struct cmd *cmd)
{
	return cmd->operands && strstr(cmd->operands, "PID");
}

static void bash_options(const struct cmd *cmd, FILE *out)
{
	for (const struct opt *opt = cmd->opts; opt->name; opt++) {
		fprintf(out, "--%s ", opt->name);
		if (opt->letter)
			fprintf(out, "-%c ", opt->letter);
	}
	fputs("--help -h", out);
}

static void bash_values(const struct cmd *cmd, FILE *out)
{
	char words[128];

	for (const struct opt *opt = cmd->opts; opt->name; opt++) {
		if (!opt_takes_word(opt))
			continue;
		fprintf(out, "\t'%s:--%s'", cmd->name, opt->name);
		if (opt->letter)
			fprintf(out, "|'%s:-%c'", cmd->name, opt->letter);
		fputs(") ", out);
		if (choices(opt, words, sizeof(words)))
			fprintf(out, "COMPREPLY=($(compgen -W '%s' -- \"$word\"))", words);
		else if (named_of(opt->value))
			fprintf(out, "_cairn_%s", named_of(opt->value));
		else
			fputs("COMPREPLY=($(compgen -f -- \"$word\"))", out);
		fputs("; return ;;\n", out);
	}
}

/* The verbs of the group that @first is of. */
static void group_verbs(const struct cmd *first, FILE *out)
{
	size_t len = cmd_group_length(first);

	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (cmd_is_in_group(*cmd, first->name, len))
			fprintf(out, "%s ", (*cmd)->name + len + 1);
}

/* The words that may come first: verbs, and groups of verbs. */
static void first_words(FILE *out)
{
	const struct cmd *const *at = cmds, *group;

	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (!cmd_group_length(*cmd))
			fprintf(out, "%s ", (*cmd)->name);
	while ((group = cmd_next_group(&at)))
		if (!cmd_group_is_verb(group))
			fprintf(out, "%.*s ", (int)cmd_group_length(group), group->name);
}

/*
 * A group's second word is part of the verb; where the group's name is a verb, too, only if it is
 * one of the group's.
 */
static void bash_second_word(const struct cmd *group, FILE *out)
{
	size_t len = cmd_group_length(group);

	if (!cmd_group_is_verb(group)) {
		fputs("\t\tverb=\"$verb ${COMP_WORDS[2]}\" ;;\n", out);
		return;
	}
	fputs("\t\tcase ${COMP_WORDS[2]} in\n", out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (cmd_is_in_group(*cmd, group->name, len))
			fprintf(out, "\t\t%s) verb='%s' ;;\n", (*cmd)->name + len + 1,
				(*cmd)->name);
	fputs("\t\tesac ;;\n", out);
}

static void bash_groups(FILE *out)
{
	const struct cmd *const *at = cmds, *group;

	fputs("\tcase $verb in\n", out);
	while ((group = cmd_next_group(&at))) {
		/* An option after a group's name that is a verb is that verb's. */
		fprintf(out,
			"\t%.*s)\n\t\tif [ \"$COMP_CWORD\" -eq 2 ]%s; "
			"then\n\t\t\tCOMPREPLY=($(compgen -W '",
			(int)cmd_group_length(group), group->name,
			cmd_group_is_verb(group) ? " && [ \"${word:0:1}\" != - ]" : "");
		group_verbs(group, out);
		fputs("--help' -- \"$word\"))\n\t\t\treturn\n\t\tfi\n", out);
		bash_second_word(group, out);
	}
	fputs("\tesac\n", out);
}

/* Functions that complete what the program lists. A list of its own keeps odd names out. */
static const char bash_named[] =
	"_cairn_list()\n{\n\tlocal IFS=$'\\n'\n\tCOMPREPLY+=($(compgen -W \"$1\" -- "
	"\"$word\"))\n}\n"
	"_cairn_functions() { _cairn_list \"$(cairn --complete functions \"$file\" \"$word\" "
	"2>/dev/null)\"; }\n"
	"_cairn_types() { _cairn_list \"$(cairn --complete types \"$file\" \"$word\" "
	"2>/dev/null)\"; }\n"
	"_cairn_abis() { _cairn_list \"$(cairn --complete abis - \"$word\" 2>/dev/null)\"; }\n"
	"_cairn_pids() { _cairn_list \"$(ps -eo pid= 2>/dev/null | tr -d ' ')\"; }\n";

/* The first operand is a file or a process, and others are names in it. */
static void bash_operands(FILE *out)
{
	fputs("\tcase $verb in\n", out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		const char *kind = named_of((*cmd)->operands);

		if (!kind)
			continue;
		fprintf(out, "\t'%s') ", (*cmd)->name);
		if (takes_pid(*cmd))
			fputs("[ -n \"$file\" ] || _cairn_pids; ", out);
		if (strcmp(kind, "pids") != 0)
			fprintf(out, "[ -z \"$file\" ] || { _cairn_%s; return; }; ", kind);
		fputs(";;\n", out);
	}
	fputs("\tesac\n", out);
}

static void bash(FILE *out)
{
	fprintf(out, "# bash completion for cairn\n%s", bash_named);
	fputs("_cairn()\n{\n\tlocal word=${COMP_WORDS[COMP_CWORD]}\n"
	      "\tlocal verb=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD-1]} options= file= i\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\t[ \"${COMP_WORDS[i]:0:1}\" = - ] || { file=${COMP_WORDS[i]}; break; }\n\tdone\n"
	      "\tCOMPREPLY=()\n\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '",
	      out);
	first_words(out);
	fputs("--help --version --completion' -- \"$word\"))\n\t\treturn\n\tfi\n", out);
	bash_groups(out);
	fputs("\tcase $verb:$before in\n", out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		bash_values(*cmd, out);
	fputs("\t*:--completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")); return "
	      ";;\n"
	      "\tesac\n\tcase $verb in\n",
	      out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		fprintf(out, "\t'%s') options='", (*cmd)->name);
		bash_options(*cmd, out);
		fputs("' ;;\n", out);
	}
	fputs("\tesac\n\tif [ \"${word:0:1}\" = - ]; then\n\t\tCOMPREPLY=($(compgen -W "
	      "\"$options\" -- \"$word\"))\n\t\treturn\n\tfi\n",
	      out);
	bash_operands(out);
	fputs("\tCOMPREPLY+=($(compgen -f -- \"$word\"))\n}\n"
	      "complete -o filenames -F _cairn cairn\n",
	      out);
}

/* Inside '...' of a shell: help sentences may hold an apostrophe; zsh also reads [ ] and : */
static void quoted(const char *text, const char *escaped, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fprintf(out, strchr(escaped, *text) ? "\\%c" : "%c", *text);
	}
}

static void zsh_option(const struct opt *opt, FILE *out)
{
	char words[128];

	fputs("\t\t", out);
	/*
	 * The braces make one word of the two spellings, each excluding the other unless it may be
	 * repeated.
	 */
	if (opt->letter && opt->kind == OPT_LIST)
		fprintf(out, "'*'{-%c,--%s}", opt->letter, opt->name);
	else if (opt->letter)
		fprintf(out, "'(-%c --%s)'{-%c,--%s}", opt->letter, opt->name, opt->letter,
			opt->name);
	else
		fprintf(out, "%s--%s", opt->kind == OPT_LIST ? "\\*" : "", opt->name);
	fputs("'[", out);
	quoted(opt->help, "[]:\\", out);
	fputc(']', out);
	if (opt_takes_word(opt))
		fprintf(out, ":%s:", choices(opt, words, sizeof(words)) ? "word" : opt->value);
	if (opt_takes_word(opt) && choices(opt, words, sizeof(words)))
		fprintf(out, "(%s)", words);
	else if (opt_takes_word(opt) && named_of(opt->value))
		fprintf(out, "_cairn_%s", named_of(opt->value));
	else if (opt_takes_word(opt))
		fputs("_files", out);
	fputs("' \\\n", out);
}

static void zsh_verb(const char *name, const char *summary, FILE *out)
{
	fprintf(out, "\t'%s:", name);
	quoted(summary, ":\\", out);
	fputs("'\n", out);
}

/* As bash_groups(). */
static void zsh_groups(FILE *out)
{
	const struct cmd *const *at = cmds, *group;

	while ((group = cmd_next_group(&at))) {
		int len = (int)cmd_group_length(group);

		fprintf(out, "if [[ $verb == %.*s ]]; then\n\tlocal -a in_group=(\n", len,
			group->name);
		for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
			if (cmd_is_in_group(*cmd, group->name, (size_t)len))
				zsh_verb((*cmd)->name + len + 1, (*cmd)->summary, out);
		fprintf(out,
			"\t)\n\tif (( CURRENT == 2 ))%s; then\n\t\t_describe verb "
			"in_group\n\t\treturn\n\tfi\n%s"
			"\tverb=\"$verb $words[2]\"\n\tshift words\n\t(( CURRENT-- ))\n%sfi\n",
			cmd_group_is_verb(group) ? " && [[ $words[2] != -* ]]" : "",
			cmd_group_is_verb(group) ? "\tif (( ${in_group[(I)$words[2]:*]} )); then\n"
						 : "",
			cmd_group_is_verb(group) ? "\tfi\n" : "");
	}
}

/* $words[1] is the verb: the file is the first operand after it. */
static const char zsh_named[] =
	"_cairn_names() {\n\tlocal file=${${(M)words[2,-1]:#[^-]*}[1]}\n"
	"\tcompadd -- ${(f)\"$(cairn --complete $1 \"$file\" \"$PREFIX\" 2>/dev/null)\"}\n}\n"
	"_cairn_functions() { _cairn_names functions }\n"
	"_cairn_types() { _cairn_names types }\n"
	"_cairn_abis() { _cairn_names abis }\n"
	"_cairn_pids() { _pids }\n";

static void zsh_operands(const struct cmd *cmd, FILE *out)
{
	const char *kind = named_of(cmd->operands);

	if (takes_pid(cmd))
		fputs("\t\t'1:process or file:{_pids; _files}' \\\n", out);
	else
		fputs("\t\t'1:file:_files' \\\n", out);
	if (kind && strcmp(kind, "pids") != 0)
		fprintf(out, "\t\t'*:name:_cairn_%s' ;;\n", kind);
	else
		fputs("\t\t'*:file:_files' ;;\n", out);
}

static void zsh(FILE *out)
{
	const struct cmd *const *at = cmds, *group;

	fprintf(out, "#compdef cairn\n%slocal -a verbs=(\n", zsh_named);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (!cmd_group_length(*cmd))
			zsh_verb((*cmd)->name, (*cmd)->summary, out);
	while ((group = cmd_next_group(&at)))
		if (!cmd_group_is_verb(group))
			fprintf(out, "\t'%.*s:verbs on %.*s'\n", (int)cmd_group_length(group),
				group->name, (int)cmd_group_length(group), group->name);
	fputs(")\nif (( CURRENT == 2 )); then\n\t_describe verb verbs\n"
	      "\t_values option --help --version --completion\n\treturn\nfi\n"
	      "local verb=$words[2]\nshift words\n(( CURRENT-- ))\n",
	      out);
	zsh_groups(out);
	fputs("case $verb in\n", out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		fprintf(out, "'%s')\n\t_arguments -s \\\n", (*cmd)->name);
		for (const struct opt *opt = (*cmd)->opts; opt->name; opt++)
			zsh_option(opt, out);
		fputs("\t\t'(-h --help)'{-h,--help}'[show help]' \\\n", out);
		zsh_operands(*cmd, out);
	}
	fputs("--completion)\n\t_values shell bash zsh fish ;;\nesac\n", out);
}

/* " -d 'TEXT'" and the end of the line. */
static void fish_description(const char *text, FILE *out)
{
	fputs(" -d '", out);
	for (const char *at = text; *at; at++)
		fprintf(out, *at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
	fputs("'\n", out);
}

/* "__fish_seen_subcommand_from btf; and __fish_seen_subcommand_from dump" */
static void fish_seen(const struct cmd *cmd, FILE *out)
{
	int len = (int)cmd_group_length(cmd);

	if (len)
		fprintf(out, "__fish_seen_subcommand_from %.*s; and ", len, cmd->name);
	fprintf(out, "__fish_seen_subcommand_from %s", cmd->name + (len ? len + 1 : 0));
}

static void fish_verb(const struct cmd *cmd, FILE *out)
{
	int len = (int)cmd_group_length(cmd);

	fputs("complete -c cairn -f -n ", out);
	if (len)
		fprintf(out, "'__fish_seen_subcommand_from %.*s'", len, cmd->name);
	else
		fputs("__fish_use_subcommand", out);
	fprintf(out, " -a %s", cmd->name + (len ? len + 1 : 0));
	fish_description(cmd->summary, out);
}

static void fish_option(const struct cmd *cmd, const struct opt *opt, FILE *out)
{
	char words[128];

	fputs("complete -c cairn -n '", out);
	fish_seen(cmd, out);
	fprintf(out, "' -l %s", opt->name);
	if (opt->letter)
		fprintf(out, " -s %c", opt->letter);
	if (opt_takes_word(opt))
		fputs(" -r", out);
	if (opt_takes_word(opt) && choices(opt, words, sizeof(words)))
		fprintf(out, " -f -a '%s'", words);
	else if (opt_takes_word(opt) && opt->value && !strcmp(opt->value, "PID"))
		fputs(" -f -a '(__fish_complete_pids)'", out);
	fish_description(opt->help, out);
}

/* The words that the program lists for an operand. */
static void fish_operands(const struct cmd *cmd, FILE *out)
{
	const char *kind = named_of(cmd->operands);

	if (takes_pid(cmd)) {
		fputs("complete -c cairn -n '", out);
		fish_seen(cmd, out);
		fputs("' -a '(__fish_complete_pids)'\n", out);
	}
	if (!kind || !strcmp(kind, "pids"))
		return;
	fputs("complete -c cairn -n '", out);
	fish_seen(cmd, out);
	fprintf(out,
		"' -a '(cairn --complete %s (commandline -opc | string match -v -- \"-*\")[3] "
		"(commandline -ct) 2>/dev/null)'\n",
		kind);
}

static void fish(FILE *out)
{
	fputs("# fish completion for cairn\n", out);
	const struct cmd *const *at = cmds, *group;

	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		fish_verb(*cmd, out);
	while ((group = cmd_next_group(&at)))
		if (!cmd_group_is_verb(group))
			fprintf(out, "complete -c cairn -f -n __fish_use_subcommand -a %.*s\n",
				(int)cmd_group_length(group), group->name);
	fputs("complete -c cairn -n __fish_use_subcommand -l help -s h -d 'show help'\n"
	      "complete -c cairn -n __fish_use_subcommand -l version -d 'print the version'\n"
	      "complete -c cairn -n __fish_use_subcommand -l completion -x -a 'bash zsh fish'\n",
	      out);
	for (const struct cmd *const *cmd = cmds; *cmd; cmd++) {
		for (const struct opt *opt = (*cmd)->opts; opt->name; opt++)
			fish_option(*cmd, opt, out);
		fish_operands(*cmd, out);
	}
}

bool complete_print(const char *shell, FILE *out)
{
	static const struct {
		const char *shell;
		void (*print)(FILE *out);
	} scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		if (strcmp(scripts[i].shell, shell))
			continue;
		scripts[i].print(out);
		return true;
	}
	return false;
}
