/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-liners of bpftrace
 *
 *	script     := head { "," head } [ "/" cond "/" ] "{" statement { ";" statement } [ ";" ] "}"
 *	head       := ( "uprobe" | "u" | "uretprobe" | "ur" ) ":" PATH ":" FUNC
 *	             | ( "usdt" | "U" ) ":" PATH ":" [ PROVIDER ":" ] NAME
 *	statement  := "@" [ name ] [ "[" expr { "," expr } "]" ] ( "=" aggregate | "++" )
 *	             | "printf" "(" "text" { "," expr } ")" | "print" "(" expr ")"
 *	aggregate  := ( "count" | "sum" | "avg" | "min" | "max" | "hist" | "lhist" | "stats" ) "("
 *	... ")"
 *
 * Expressions are not parsed here but rewritten word by word: arg0 becomes $arg1, comm $comm, and
 * so on. They are parsed where all expressions of a trace are. A word that means nothing here, or
 * something else, is refused with its name, so nothing is taken that would have another meaning.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/script.h>

#include "base/arena.h"
#include "base/scope.h"
#include "base/vec.h"
#include "trace/expr/expr.h"

enum { PROBES_MAX = 16, ITEMS_MAX = 8, WORD_MAX = 64 };

struct script {
	struct cairn_script pub;
	struct arena arena;
	const char *probes[PROBES_MAX];
	struct cairn_aggregate items[ITEMS_MAX];
};

/* Text that is put together; NULL bytes: no memory. */
struct text {
	char *bytes;
	size_t n;
	FILE *out;
};

struct reader {
	struct script *s;
	const char *text, *at;
	struct cairn_err *err;
	int code;
	bool is_return, is_usdt, uses_return, has_keys;
};

/* ---- text ---- */

static int refuse(struct reader *r, const char *at, const char *what, const char *why)
{
	if (!r->code)
		r->code = probe_error(r->err, -EINVAL, r->text, (uint32_t)(at - r->text), "%s%s",
				      what, why);
	return r->code;
}

static int no_memory(struct reader *r)
{
	if (!r->code)
		r->code = err_nomem(r->err, "a script");
	return r->code;
}

static void skip_blanks(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

static bool take(struct reader *r, const char *punct)
{
	size_t n = strlen(punct);

	skip_blanks(r);
	if (strncmp(r->at, punct, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool must_take(struct reader *r, const char *punct)
{
	char what[40];

	if (r->code)
		return false;
	if (take(r, punct))
		return true;
	snprintf(what, sizeof(what), "here a %s is missing", punct);
	refuse(r, r->at, what, "");
	return false;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The word at the reader, moved past; "" if there is none. */
static void take_word(struct reader *r, char word[WORD_MAX])
{
	size_t n = 0;

	skip_blanks(r);
	while (is_word(r->at[n]))
		n++;
	snprintf(word, WORD_MAX, "%.*s", (int)(n < WORD_MAX ? n : 0), r->at);
	r->at += n;
}

static char *finish(struct reader *r, struct text *t)
{
	char *ret = NULL;

	if (t->out && !fclose(t->out) && t->bytes)
		ret = arena_strdup(&r->s->arena, t->bytes);
	free(t->bytes);
	if (!ret)
		no_memory(r);
	return ret;
}

static void begin(struct text *t)
{
	*t = (struct text){0};
	t->out = open_memstream(&t->bytes, &t->n);
}

static void put(struct text *t, const char *text)
{
	if (t->out)
		fputs(text, t->out);
}

static void put_bytes(struct text *t, const char *from, size_t n)
{
	if (t->out)
		fwrite(from, 1, n, t->out);
}

/* ---- words of expressions ---- */

/* What has the same meaning in both, under its name here. */
static const struct {
	const char *theirs, *ours;
} words[] = {
	{"pid", "$pid"},        {"tid", "$tid"},        {"comm", "$comm"},
	{"cpu", "$cpu"},        {"uid", "$uid"},        {"gid", "$gid"},
	{"cgroup", "$cgroup"},  {"str", "str"},         {"buf", "buf"},
	{"sizeof", "sizeof"},   {"int8", "int8_t"},     {"int16", "int16_t"},
	{"int32", "int32_t"},   {"int64", "int64_t"},   {"uint8", "uint8_t"},
	{"uint16", "uint16_t"}, {"uint32", "uint32_t"}, {"uint64", "uint64_t"},
	{"struct", "struct"},   {"enum", "enum"},       {"union", "union"},
};

static void put_known(struct reader *r, struct text *t, const char *word, const char *at)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i].theirs)) {
			put(t, words[i].ours);
			return;
		}
	refuse(r, at, word,
	       strcmp(word, "nsecs")
		       ? " is not taken from bpftrace"
		       : " is not taken from bpftrace; --time and {$time} of --format "
			 "show it");
}

static void put_argument(struct reader *r, struct text *t, const char *word, const char *at)
{
	char name[24];

	if (r->is_return)
		refuse(r, at, word,
		       " of a uretprobe is no argument any more; a probe 'PATH:FUNC($arg1, $ret)' "
		       "has "
		       "both");
	snprintf(name, sizeof(name), "$arg%lu", strtoul(word + 3, NULL, 10) + 1);
	put(t, name);
}

static bool is_argument(const char *word)
{
	return !strncmp(word, "arg", 3) && isdigit((unsigned char)word[3]) &&
	       strspn(word + 3, "0123456789") == strlen(word + 3) && strlen(word) < 6;
}

static bool is_record(const char *word)
{
	return !strcmp(word, "struct") || !strcmp(word, "union") || !strcmp(word, "enum");
}

/* A name that is the program's own: of a type, a member or a parameter. */
static void put_name(struct reader *r, struct text *t)
{
	char name[WORD_MAX];

	take_word(r, name);
	if (!*name)
		refuse(r, r->at, "here a name is missing", "");
	put(t, name);
}

static void put_word(struct reader *r, struct text *t)
{
	char word[WORD_MAX];
	const char *at = r->at;

	take_word(r, word);
	if (!strcmp(word, "args") && (take(r, ".") || take(r, "->"))) {
		put_name(r, t);
	} else if (is_argument(word)) {
		put_argument(r, t, word, at);
	} else if (!strcmp(word, "retval")) {
		r->uses_return = true;
		put(t, "$ret");
		if (!r->is_return)
			refuse(r, at, word, " is of a uretprobe");
	} else {
		put_known(r, t, *word ? word : "this name", at);
	}
	if (is_record(word)) {
		put(t, " ");
		put_name(r, t);
	}
}

static void put_number(struct reader *r, struct text *t)
{
	const char *from = r->at;
	bool is_hex = from[0] == '0' && (from[1] == 'x' || from[1] == 'X');

	r->at += is_hex ? 2 : 0;
	while (is_hex ? isxdigit((unsigned char)*r->at) : isdigit((unsigned char)*r->at))
		r->at++;
	if (is_word(*r->at))
		refuse(r, from, "this number", " is not taken from bpftrace");
	put_bytes(t, from, (size_t)(r->at - from));
}

static void put_string(struct reader *r, struct text *t)
{
	const char *from = r->at++;

	while (*r->at && *r->at != '"')
		r->at += *r->at == '\\' && r->at[1] ? 2 : 1;
	if (!*r->at) {
		refuse(r, from, "this string has no end", "");
		return;
	}
	r->at++;
	put_bytes(t, from, (size_t)(r->at - from));
}

static void put_operator(struct reader *r, struct text *t)
{
	static const char *const taken[] = {"->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
	static const char *const refused[] = {
		"++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!strncmp(r->at, refused[i], 2))
			refuse(r, r->at, refused[i], " is not taken from bpftrace");
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strncmp(r->at, taken[i], 2)) {
			put_bytes(t, r->at, 2);
			r->at += 2;
			return;
		}
	if (*r->at == '$')
		refuse(r, r->at, "a variable", " is not taken from bpftrace");
	else if (*r->at == '@')
		refuse(r, r->at, "a map in an expression", " is not taken from bpftrace");
	else if (*r->at == '?' || *r->at == ':')
		refuse(r, r->at, "? :", " is not taken from bpftrace");
	else if (!strchr("+-*/%&|^~!<>.", *r->at))
		refuse(r, r->at, "this", " is not taken from bpftrace");
	put_bytes(t, r->at, 1);
	r->at++;
}

/* The member after a dot or an arrow may have any name. */
static bool is_after_member(const struct reader *r, const char *begin)
{
	const char *before = r->at;

	while (before > begin && isspace((unsigned char)before[-1]))
		before--;
	return before > begin && (before[-1] == '.' ||
				  (before > begin + 1 && before[-1] == '>' && before[-2] == '-'));
}

static void put_part(struct reader *r, struct text *t, const char *begin, int *depth)
{
	if (isalpha((unsigned char)*r->at) || *r->at == '_') {
		if (is_after_member(r, begin))
			put_name(r, t);
		else
			put_word(r, t);
	} else if (isdigit((unsigned char)*r->at)) {
		put_number(r, t);
	} else if (*r->at == '"') {
		put_string(r, t);
	} else if (strchr("([])", *r->at) || (*r->at == ',' && *depth)) {
		*depth += *r->at == '(' || *r->at == '[';
		*depth -= *r->at == ')' || *r->at == ']';
		put_bytes(t, r->at++, 1);
	} else {
		put_operator(r, t);
	}
}

/* Up to one of @ends outside of parentheses, which is not taken. NULL: it was refused. */
static const char *take_expr(struct reader *r, const char *ends)
{
	int depth = 0;
	struct text t;

	skip_blanks(r);
	const char *from = r->at;
	begin(&t);
	while (!r->code && *r->at && (depth || !strchr(ends, *r->at))) {
		if (isspace((unsigned char)*r->at)) {
			put(&t, " ");
			skip_blanks(r);
		} else {
			put_part(r, &t, from, &depth);
		}
	}
	const char *ret = finish(r, &t);
	if (!r->code && (r->at == from || !ret || !*ret))
		refuse(r, from, "here an expression is missing", "");
	return r->code ? NULL : ret;
}

/* ---- heads ---- */

enum head { HEAD_NONE, HEAD_ENTRY, HEAD_RETURN, HEAD_USDT };

static enum head head_of(const char *word)
{
	if (!strcmp(word, "uprobe") || !strcmp(word, "u"))
		return HEAD_ENTRY;
	if (!strcmp(word, "uretprobe") || !strcmp(word, "ur"))
		return HEAD_RETURN;
	return !strcmp(word, "usdt") || !strcmp(word, "U") ? HEAD_USDT : HEAD_NONE;
}

/* After the kind: up to a comma, the condition or the block. */
static size_t head_length(const char *at)
{
	size_t n = 0;

	while (at[n] && !strchr(",{", at[n]) &&
	       !(isspace((unsigned char)at[n]) && at[n + 1] == '/'))
		n++;
	return n;
}

static char *trimmed(struct reader *r, const char *from, size_t n)
{
	while (n && isspace((unsigned char)from[n - 1]))
		n--;
	char *ret = arena_strndup(&r->s->arena, from, n);
	if (!ret)
		no_memory(r);
	return ret;
}

/*
 * "/" begins the condition without a blank only after "FUNC" of a path: there it is the last part.
 */
static size_t cut_condition(const char *from, size_t n)
{
	const char *colon = memrchr(from, ':', n);
	const char *slash = colon ? memchr(colon, '/', (size_t)(from + n - colon)) : NULL;

	return slash ? (size_t)(slash - from) : n;
}

static const char *usdt_name(struct reader *r, char *path)
{
	char *name = strrchr(path, ':');
	bool has_provider = name && memchr(path, ':', (size_t)(name - path));

	if (!name || has_provider)
		return arena_printf(&r->s->arena, "usdt:%s", path);
	*name = 0;
	return arena_printf(&r->s->arena, "usdt:%s:*:%s", path, name + 1);
}

static void take_head(struct reader *r)
{
	char word[WORD_MAX];

	skip_blanks(r);
	const char *at = r->at;
	take_word(r, word);
	enum head kind = head_of(word);
	if (kind == HEAD_NONE || *r->at != ':') {
		refuse(r, at, *word ? word : "this",
		       strcmp(word, "kprobe")
			       ? " is not taken from bpftrace; uprobe:, uretprobe: and usdt: are"
			       : " is not taken from bpftrace; -k FUNC traces functions of the "
				 "kernel");
		return;
	}
	r->at++;
	size_t n = cut_condition(r->at, head_length(r->at));
	char *head = trimmed(r, r->at, n);
	if (!head)
		return;
	r->is_return |= kind == HEAD_RETURN;
	r->is_usdt |= kind == HEAD_USDT;
	if (r->s->pub.n_probes && (kind == HEAD_RETURN) != r->is_return)
		refuse(r, at, "probes of entries and of returns", " together are not taken");
	if (!strchr(head, ':') || strchr(head, '"'))
		refuse(r, r->at, "here PATH:FUNC is needed", "");
	r->at += n;
	if (r->s->pub.n_probes == PROBES_MAX)
		refuse(r, at, "more probes than 16", " are not taken");
	if (r->code)
		return;
	const char *probe = kind == HEAD_USDT ? usdt_name(r, head) : head;
	r->s->probes[r->s->pub.n_probes++] = probe;
	if (!probe)
		no_memory(r);
}

/* ---- statements ---- */

static void add_item(struct reader *r, const char *at, enum cairn_aggregate_kind kind,
		     const char *text)
{
	struct script *s = r->s;

	if (s->pub.n_items == ITEMS_MAX)
		refuse(r, at, "more aggregates than 8", " are not taken");
	else
		s->items[s->pub.n_items++] = (struct cairn_aggregate){.kind = kind, .text = text};
}

static const struct {
	const char *name;
	enum cairn_aggregate_kind kind;
} aggregates[] = {
	{"sum", CAIRN_AGGREGATE_SUM},   {"avg", CAIRN_AGGREGATE_AVG},
	{"min", CAIRN_AGGREGATE_MIN},   {"max", CAIRN_AGGREGATE_MAX},
	{"hist", CAIRN_AGGREGATE_HIST}, {"lhist", CAIRN_AGGREGATE_LHIST},
};

/* The range of lhist comes after the number, as in --lhist. */
static const char *take_number(struct reader *r, enum cairn_aggregate_kind kind)
{
	const char *number = take_expr(r, ",)");

	if (kind != CAIRN_AGGREGATE_LHIST)
		return number;
	for (int i = 0; i < 3 && number && must_take(r, ","); i++) {
		const char *bound = take_expr(r, ",)");
		number = bound ? arena_printf(&r->s->arena, "%s,%s", number, bound) : NULL;
	}
	return number;
}

static void take_aggregate(struct reader *r)
{
	char word[WORD_MAX];

	skip_blanks(r);
	const char *at = r->at;
	take_word(r, word);
	if (!strcmp(word, "nsecs")) {
		refuse(r, at, word,
		       " is not taken from bpftrace: how long calls take is --hist '$duration' "
		       "PATH:FUNC");
		return;
	}
	if (!must_take(r, "("))
		return;
	if (!strcmp(word, "count")) {
		add_item(r, at, CAIRN_AGGREGATE_COUNT, NULL);
		must_take(r, ")");
		return;
	}
	size_t i = 0, n = sizeof(aggregates) / sizeof(aggregates[0]);
	while (i < n && strcmp(aggregates[i].name, word) != 0)
		i++;
	bool is_stats = !strcmp(word, "stats");
	if (i == n && !is_stats) {
		refuse(r, at, word, " is no aggregate that is taken from bpftrace");
		return;
	}
	const char *number = take_number(r, is_stats ? CAIRN_AGGREGATE_SUM : aggregates[i].kind);
	must_take(r, ")");
	if (r->code)
		return;
	if (is_stats) {
		add_item(r, at, CAIRN_AGGREGATE_COUNT, NULL);
		add_item(r, at, CAIRN_AGGREGATE_AVG, number);
	}
	add_item(r, at, is_stats ? CAIRN_AGGREGATE_SUM : aggregates[i].kind, number);
}

/*
 * Stacks stand alone, and so do names of the probe: each function has rows of its own in any case,
 * so the key is "".
 */
static const char *take_key(struct reader *r)
{
	char word[WORD_MAX];

	skip_blanks(r);
	const char *at = r->at;
	take_word(r, word);
	skip_blanks(r);
	bool is_alone = *r->at == ',' || *r->at == ']';
	if (!strcmp(word, "ustack") && take(r, "(")) {
		skip_blanks(r);
		if (*r->at != ')')
			refuse(r, at, "ustack(...)",
			       " is taken without a number; --stack=N has one");
		must_take(r, ")");
		return "$stack";
	}
	if (is_alone && !strcmp(word, "ustack"))
		return "$stack";
	if (is_alone && (!strcmp(word, "func") || !strcmp(word, "probe")))
		return "";
	r->at = at;
	return take_expr(r, ",]");
}

static void take_keys(struct reader *r, const char *at)
{
	const char *by = NULL;

	do {
		const char *key = take_key(r);
		if (!key || !*key)
			continue;
		by = by ? arena_printf(&r->s->arena, "%s, %s", by, key) : key;
		if (!by)
			no_memory(r);
	} while (!r->code && take(r, ","));
	must_take(r, "]");
	if (r->code)
		return;
	if (r->has_keys && strcmp(by ? by : "", r->s->pub.by ? r->s->pub.by : "") != 0)
		refuse(r, at, "maps with different keys", " are not taken in one trace");
	r->s->pub.by = by;
}

static void take_map(struct reader *r)
{
	const char *at = r->at;
	char name[WORD_MAX];

	take_word(r, name);
	if (take(r, "["))
		take_keys(r, at);
	else if (r->has_keys && r->s->pub.by)
		refuse(r, at, "maps with different keys", " are not taken in one trace");
	r->has_keys = true;
	if (r->code)
		return;
	if (take(r, "++"))
		add_item(r, at, CAIRN_AGGREGATE_COUNT, NULL);
	else if (must_take(r, "="))
		take_aggregate(r);
}

/* ---- printf ---- */

/* "%-10.3ld" -> the spec of a field; @at moves past it. */
static void put_spec(struct reader *r, struct text *t, const char **at)
{
	const char *from = (*at)++;
	size_t flags = strspn(*at, "-0#+");

	put(t, ":");
	if (memchr(*at, '-', flags))
		put(t, "<");
	if (memchr(*at, '+', flags))
		put(t, "+");
	if (memchr(*at, '#', flags) || (*at)[strcspn(*at, "\"pdiuxXocs")] == 'p')
		put(t, "#");
	if (memchr(*at, '0', flags) && !memchr(*at, '-', flags))
		put(t, "0");
	*at += flags;
	size_t n = strspn(*at, "0123456789.");
	put_bytes(t, *at, n);
	*at += n;
	*at += strspn(*at, "lh");
	if (!**at || !strchr("diuxXocsp", **at)) {
		refuse(r, from, "this conversion", " is not taken from bpftrace");
		return;
	}
	char letter[2] = {**at == 'i' ? 'd' : **at == 'p' ? 'x' : **at, 0};
	put(t, letter);
	(*at)++;
}

/* One character of the text; an escape stays one of --format's, braces are doubled. */
static void put_literal(struct text *t, const char **at)
{
	if (**at == '{' || **at == '}')
		put_bytes(t, *at, 1);
	if (**at == '\\' && (*at)[1])
		put_bytes(t, (*at)++, 1);
	put_bytes(t, (*at)++, 1);
}

static void put_field(struct reader *r, struct text *t, const char **at)
{
	if (!must_take(r, ","))
		return;
	const char *value = take_expr(r, ",)");
	if (!value)
		return;
	put(t, "{");
	put(t, value);
	put_spec(r, t, at);
	put(t, "}");
}

static void take_printf(struct reader *r)
{
	struct text t;

	if (!must_take(r, "("))
		return;
	skip_blanks(r);
	const char *at = r->at + 1;
	if (*r->at != '"') {
		refuse(r, r->at, "printf needs a text first", "");
		return;
	}
	struct text skipped;
	begin(&skipped);
	put_string(r, &skipped);
	finish(r, &skipped);
	const char *end = r->at - 1;
	if (!r->code && (end - at < 2 || strncmp(end - 2, "\\n", 2) != 0))
		refuse(r, end, "each event is a line", ": end the text with \\n");
	begin(&t);
	while (!r->code && at < end - 2) {
		if (at[0] == '%' && at[1] != '%') {
			put_field(r, &t, &at);
			continue;
		}
		/* "%%" */
		at += at[0] == '%';
		put_literal(&t, &at);
	}
	r->s->pub.format = finish(r, &t);
	must_take(r, ")");
}

static void take_print(struct reader *r)
{
	if (!must_take(r, "("))
		return;
	skip_blanks(r);
	if (*r->at == '@')
		refuse(r, r->at, "print of a map", " is not taken: tables are shown in the end");
	const char *value = r->code ? NULL : take_expr(r, ",)");
	must_take(r, ")");
	if (value && !(r->s->pub.format = arena_printf(&r->s->arena, "{%s}", value)))
		no_memory(r);
}

static void take_statement(struct reader *r)
{
	bool was_event = r->s->pub.format;
	char word[WORD_MAX];

	skip_blanks(r);
	const char *at = r->at;
	if (take(r, "@")) {
		take_map(r);
	} else {
		take_word(r, word);
		if (!strcmp(word, "printf"))
			take_printf(r);
		else if (!strcmp(word, "print"))
			take_print(r);
		else
			refuse(r, at, *word ? word : "this", " is not taken from bpftrace");
	}
	if (was_event || (r->s->pub.format && r->s->pub.n_items))
		refuse(r, at, "more than one printf, or one with a map,", " is not taken");
}

/* ---- the whole ---- */

static void take_block(struct reader *r)
{
	if (!must_take(r, "{"))
		return;
	do {
		skip_blanks(r);
		if (*r->at == '}' || !*r->at)
			break;
		take_statement(r);
	} while (!r->code && take(r, ";"));
	must_take(r, "}");
	skip_blanks(r);
	if (*r->at)
		refuse(r, r->at, "a second block", " is not taken from bpftrace");
	if (!r->s->pub.n_items && !r->s->pub.format)
		refuse(r, r->text, "a block without a map and without printf", " is not taken");
}

static const char *take_condition(struct reader *r)
{
	if (!take(r, "/"))
		return NULL;
	const char *condition = take_expr(r, "/");
	must_take(r, "/");
	return condition;
}

/* A return without its result is one with a time. */
static void complete_probes(struct reader *r, const char *condition)
{
	struct script *s = r->s;
	bool needs_return = r->is_return && !r->uses_return;
	const char *return_of = needs_return ? "$duration >= 0" : NULL;

	if (condition && return_of)
		condition = arena_printf(&s->arena, "(%s) && %s", condition, return_of);
	else if (return_of)
		condition = return_of;
	for (size_t i = 0; i < s->pub.n_probes && condition; i++) {
		s->probes[i] = arena_printf(&s->arena, "%s if %s", s->probes[i], condition);
		if (!s->probes[i])
			no_memory(r);
	}
}

static int read_script(struct reader *r)
{
	if (strlen(r->text) > PROBE_TEXT_MAX)
		return err_set(r->err, -ERANGE, "a script has at most %d characters",
			       PROBE_TEXT_MAX);
	do
		take_head(r);
	while (!r->code && take(r, ","));
	const char *condition = r->code ? NULL : take_condition(r);
	take_block(r);
	if (!r->code)
		complete_probes(r, condition);
	return r->code;
}

/* Kinds of probes that are not taken are known, so that they are refused by their names. */
static bool is_kind(const char *word)
{
	static const char *const others[] = {"kprobe",     "kretprobe",     "kfunc",    "kretfunc",
					     "fentry",     "fexit",         "interval", "profile",
					     "tracepoint", "rawtracepoint", "software", "hardware",
					     "watchpoint", "iter"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(word, others[i]))
			return true;
	return head_of(word) != HEAD_NONE;
}

bool cairn_script_is_one(const char *text)
{
	const char *brace = strchr(text, '{'), *colon = strchr(text, ':');
	char word[WORD_MAX];

	text += strspn(text, " \t\n");
	size_t n = strcspn(text, ":{ ");
	snprintf(word, sizeof(word), "%.*s", (int)(n < WORD_MAX ? n : 0), text);
	if (brace && (!strcmp(word, "BEGIN") || !strcmp(word, "END")))
		return true;
	return brace && colon && colon < brace && is_kind(word);
}

int cairn_script_parse(const char *text, struct cairn_script **ret, struct cairn_err *err)
{
	struct script *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "a script");
	arena_init(&s->arena);
	struct reader r = {.s = s, .text = text, .at = text, .err = err};
	int e = read_script(&r);
	if (e < 0) {
		cairn_script_free(&s->pub);
		return e;
	}
	s->pub.probes = s->probes;
	s->pub.items = s->items;
	*ret = &s->pub;
	return 0;
}

void cairn_script_free(struct cairn_script *script)
{
	struct script *s = (struct script *)script;

	if (!s)
		return;
	arena_fini(&s->arena);
	free(s);
}
