/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands
 *
 * A verb is one file cmd_<verb>.c that exports one struct cmd. The struct says everything about the
 * verb: parsing, --help, the manual page and the shell completion are made from it, so they cannot
 * differ.
 *
 * To add a verb:
 *  1. cmd_<verb>.c: a struct for its option values, a table of struct opt, examples, a run function
 *  2. its file name in meson.build, its struct in the table of verbs.c
 *  3. man/<verb>.roff: the text that the table does not have
 *  4. tests/cli/test_<verb>.py: one claim per promise
 *  5. README.md, CHANGELOG.md
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cairn/err.h>

/* The meaning of cairn's exit status; the same for every verb. */
enum exit_status {
	STATUS_YES,      /* done; answered yes */
	STATUS_NO,       /* answered no: nothing matched, a check failed */
	STATUS_USAGE,    /* the command line makes no sense */
	STATUS_NOT_HERE, /* not permitted or not supported here; stderr suggests what would help */
	STATUS_DAMAGED,  /* the input is damaged */
	STATUS_LOST,     /* events were lost, with --fail-on-loss */
	STATUS_ASSUMED,  /* answered yes, by an assumption */
};

enum opt_kind {
	OPT_FLAG,    /* bool */
	OPT_COUNT,   /* unsigned long: a decimal number of at least 1 */
	OPT_SECONDS, /* double: "2", "0.5", "500ms", "2s", "1m" */
	OPT_TEXT,    /* const char * */
	OPT_MAYBE,   /* const char *, "" without a value: "--name" or "--name=value" */
	OPT_LIST,    /* struct opt_list: may be repeated */
};

struct opt_list {
	const char **items;
	size_t n;
};

struct opt {
	char letter;      /* 0: none */
	const char *name; /* without the dashes; NULL ends a table */
	enum opt_kind kind;
	/* the value's placeholder in --help; "a|b|c" or "a|" allows only these; NULL: flag */
	const char *value;
	size_t off;       /* offset in the verb's struct of values */
	const char *help; /* one sentence, lower case, without a full stop */
};

/* Is the next word of the command line its value, when there is no "="? */
static inline bool opt_takes_word(const struct opt *opt)
{
	return opt->value && opt->kind != OPT_MAYBE;
}

struct example {
	const char *command;
	const char *what; /* one sentence, lower case, without a full stop */
};

struct operands {
	char **items; /* NULL at the end */
	size_t n;
	bool is_command; /* the first one is behind "--" */
};

struct cmd {
	/*
	 * One word, or two: "btf dump" is the verb dump of the group btf. A group's name may be a
	 * verb, too ("code").
	 */
	const char *name;
	const char *summary;  /* as in a manual's NAME: lower case, without a full stop */
	const char *operands; /* as in a SYNOPSIS: "FILE|PID [FUNC...]" */
	size_t n_operands_min;
	/* Its output can be long, and nobody waits for single lines: a terminal gets a pager. */
	bool pages;
	const struct opt *opts;
	const struct example *examples; /* command NULL ends */
	/* of the struct that opts' off counts in; zeroed before parsing */
	size_t values_size;
	/* Returns an exit status. @values belongs to the caller and is freed, lists included. */
	int (*run)(void *values, const struct operands *operands);
};

extern const struct cmd cmd_sites;
extern const struct cmd cmd_trace;
extern const struct cmd cmd_run;
extern const struct cmd cmd_layout;
extern const struct cmd cmd_decode;
extern const struct cmd cmd_bind;
extern const struct cmd cmd_addr;
extern const struct cmd cmd_stack;
extern const struct cmd cmd_unwind_check;
extern const struct cmd cmd_unwind_dump;
extern const struct cmd cmd_unwind_encode;
extern const struct cmd cmd_code;
extern const struct cmd cmd_code_run;
extern const struct cmd cmd_profile;
extern const struct cmd cmd_profile_show;
extern const struct cmd cmd_profile_diff;
extern const struct cmd cmd_profile_push;
extern const struct cmd cmd_sidecar;
extern const struct cmd cmd_btf_dump;
extern const struct cmd cmd_btf_check;
extern const struct cmd cmd_btf_convert;
extern const struct cmd cmd_btf_encode;
extern const struct cmd cmd_btf_dedup;
extern const struct cmd cmd_btf_merge;
extern const struct cmd cmd_btf_distil;
extern const struct cmd cmd_doctor;

/* The verbs in the order of help, NULL at the end (verbs.c). */
extern const struct cmd *const cmds[];

/* The topic that begins with this verb in the order of help; NULL: it continues one. Static. */
const char *cmd_topic(const struct cmd *cmd);

/*
 * current_spelling - the word of today for one that a verb or an option had before
 *
 * @word   the verb, or the option's name without its dashes; need not end after @len
 * Returns a static string, or NULL when the word never was another one's.
 */
const char *current_spelling(const char *word, size_t len);

/*
 * options_parse - fill @values and @operands from the words after the verb
 *
 * Options and operands may be mixed; "--" ends options; "--name=value", "--name value", "-n5" and
 * "-n 5" are the same. Talks on stderr.
 * Returns STATUS_YES, STATUS_USAGE, STATUS_NOT_HERE without memory, or OPTIONS_HELP for --help,
 * whatever follows it. options_fini() frees its allocations, also after a failure.
 */
#define OPTIONS_HELP (-1)
int options_parse(const struct cmd *cmd, char **words, void *values, struct operands *operands);
void options_fini(const struct cmd *cmd, void *values, struct operands *operands);

/* Length of the group's name in a verb's name; 0: it is in none. */
size_t cmd_group_length(const struct cmd *cmd);

/* True if a verb is in the group of this name, which need not end after @len. */
bool cmd_is_in_group(const struct cmd *cmd, const char *group, size_t len);

/* Whether a group's name alone is a verb: its second word then need not be one of the group's. */
bool cmd_group_is_verb(const struct cmd *in_group);

/*
 * cmd_next_group - the first group at or after *@cmd in the table; *@cmd is moved past that group's
 * verbs
 *
 * Returns one of its verbs, for its name up to cmd_group_length(); NULL: no more.
 */
const struct cmd *cmd_next_group(const struct cmd *const **cmd);

/*
 * Help of one verb, of a group's verbs, of the program, the manual page of a verb (@prose: file
 * with its hand-written part).
 */
void help_cmd(const struct cmd *cmd, FILE *out);
void help_group(const char *group, FILE *out);
void help_program(FILE *out);
/* A sentence of our own whose first line begins at column @indent, as its other lines will. */
void help_wrapped(FILE *out, const char *text, size_t indent);
int help_man(const char *verb, const char *prose);

/*
 * The script that makes a shell complete cairn's command lines; false when the shell is not known.
 */
bool complete_print(const char *shell, FILE *out);

/*
 * complete_names - print the names that a shell completes (complete_names.c)
 *
 * @kind    "functions", "types" or "abis"
 * @file    a file, or for functions a process number
 * Returns an exit status.
 */
int complete_names(const char *kind, const char *file, const char *prefix, FILE *out);

/*
 * "cairn: " and the message on stderr, by say(); the result is @status, so that failing is one
 * line.
 */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * The same, followed by text that is safe already, and may have more lines: a library's message.
 */
int fail_lines(int status, const char *lines, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A library's message alone. */
int fail_told(int status, const struct cairn_err *err);

/*
 * fail_as_json - let failures be lines of JSON on stdout, too
 *
 * fail_print_json() writes them after the answer: {"error": "no function x in y", "status": 1}
 * fail_only_on_stderr() takes it back, as when stdout cannot be written: that is said once.
 */
void fail_as_json(void);
void fail_print_json(FILE *out);
void fail_only_on_stderr(void);

/*
 * warn_of_missing_dwo - report that .dwo files were not found, which, and the consequence
 *
 * @which  lines, as cairn_sites_missing() gives them
 * Returns whether there are some.
 */
bool warn_of_missing_dwo(size_t n, const char *which, const char *consequence);

/*
 * Tell once that names are no identifiers in the language that is written; a comment there has
 * each.
 */
void warn_of_renamed(size_t n);

/*
 * fail_err - tell a library error and choose the exit status
 *
 * @code     the negative errno that came back
 * @missing  the status for -ENOENT, whose meaning depends on the object of the search
 */
int fail_err(int code, const struct cairn_err *err, int missing);
/* The same of what was asked for: if it exceeds a limit, that is no damage of a file. */
int fail_asked(int code, const struct cairn_err *err);

#endif
