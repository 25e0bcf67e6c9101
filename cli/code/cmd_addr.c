/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn addr: addresses to functions, inlined calls and lines. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "cmd.h"
#include "demangled.h"
#include "shared_opts.h"

struct addr_values {
	struct opt_list debug_dirs;
	const char *debug_file;
	struct sidecar_wish wish;
	unsigned long jobs;
	bool json, back, no_demangle;
};

#define AT(field) offsetof(struct addr_values, field)

static const struct opt opts[] = {
	{'r', "return", OPT_FLAG, NULL, AT(back),
	 "the addresses are return addresses: describe the call, the instruction before"},
	DEMANGLE_OPT_OFF(AT(no_demangle)),
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per address"},
	SIDECAR_OPT_SIDECAR(AT(wish.file)),
	SIDECAR_OPT_NO_CACHE(AT(wish.no_cache)),
	SIDECAR_OPT_DEBUGINFOD(AT(wish.debuginfod)),
	OPT_DEBUG_DIR(AT(debug_dirs)),
	OPT_DEBUG_FILE(AT(debug_file)),
	{'j', "jobs", OPT_COUNT, "N", AT(jobs),
	 "use N threads to make a sidecar; otherwise one per processor"},
	{0},
};

static const struct example examples[] = {
	{"cairn addr /lib/x86_64-linux-gnu/libc.so.6 0x9d3f0",
	 "the function at that address, the functions it was inlined into, and the lines"},
	{"cairn addr 1234 0x55d0c0a011d6", "an address of a running process"},
	{"cut -d' ' -f1 samples | cairn addr vmlinux --json | jq .frames[0].function",
	 "many addresses, for other programs to read"},
	{0},
};

/* 1 to 16; 0 for a character that is no digit. */
static const uint8_t digit_of[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/*
 * Hexadecimal, with or without 0x. Returns where it ends, at @end or before; NULL: there is none,
 * or more than 64 bits.
 */
static const char *parse_address(const char *at, const char *end, uint64_t *ret)
{
	uint64_t value = 0;
	uint8_t digit;

	if (end - at > 2 && at[0] == '0' && (at[1] | 32) == 'x')
		at += 2;
	const char *first = at;
	for (; at < end && (digit = digit_of[(uint8_t)*at]); at++)
		value = value << 4 | (digit - 1u);
	*ret = value;
	return at == first || at - first > 16 ? NULL : at;
}

static int answer(struct addr_batch *batch, struct addr_space *space,
		  const struct addr_values *values, struct addr_tally *tally)
{
	return addr_batch_answer(batch, space, values->back, values->json ? addr_json : addr_text,
				 tally);
}

static int answer_words(struct addr_space *space, const struct addr_values *values, char **words,
			size_t n, struct addr_tally *tally)
{
	struct addr_batch *batch = addr_batch_new(n);
	int status = batch ? STATUS_YES : fail(STATUS_NOT_HERE, "no memory");

	for (size_t i = 0; i < n && !status; i++) {
		const char *end = words[i] + strlen(words[i]);
		uint64_t addr;

		if (parse_address(words[i], end, &addr) == end)
			addr_batch_add(batch, addr);
		else
			status = fail(STATUS_USAGE, "%s is no hexadecimal address", words[i]);
	}
	if (!status)
		status = answer(batch, space, values, tally);
	addr_batch_free(batch);
	return status;
}

/* ---- stdin ---- */

/*
 * Input is read and answered in batches, and a user who writes a line and waits gets the answer at
 * once.
 */
enum { INPUT_SIZE = 1 << 20, BATCH = 1 << 15 };

struct input {
	struct addr_batch *batch;
	char *buf;
	size_t n; /* bytes that have been read */
	unsigned long line;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The first word of a line; an empty one is left out. */
static int add_line(struct input *in, const char *at, const char *end, bool *full)
{
	const char *word, *after;
	uint64_t addr;

	in->line++;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	after = parse_address(at, end, &addr);
	if (after && (after == end || is_blank(*after))) {
		*full = addr_batch_add(in->batch, addr);
		return STATUS_YES;
	}
	for (word = at; at < end && !is_blank(*at);)
		at++;
	if (at == word)
		return STATUS_YES;
	return fail(STATUS_USAGE, "line %lu: %.*s is no hexadecimal address", in->line,
		    (int)(at - word), word);
}

/* The whole lines of the bytes read so far; at the end also a line without its end. */
static int answer_lines(struct input *in, bool at_end, struct addr_space *space,
			const struct addr_values *values, struct addr_tally *tally)
{
	const char *at = in->buf, *end = in->buf + in->n;
	int status = STATUS_YES;

	while (!status && at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		bool full = false;

		/* No address is as long as the buffer. */
		if (!eol && !at_end && (at > in->buf || in->n < INPUT_SIZE))
			break;
		status = add_line(in, at, eol ? eol : end, &full);
		at = eol ? eol + 1 : end;
		if (full)
			status = answer(in->batch, space, values, tally);
	}
	in->n = (size_t)(end - at);
	memmove(in->buf, at, in->n);
	/* The lines before a malformed line are answered all the same. */
	int answered = answer(in->batch, space, values, tally);
	return status ? status : answered;
}

/* One address per line. */
static int answer_stdin(struct addr_space *space, const struct addr_values *values,
			struct addr_tally *tally)
{
	struct input in = {.batch = addr_batch_new(BATCH), .buf = malloc(INPUT_SIZE)};
	int status = in.batch && in.buf ? STATUS_YES : fail(STATUS_NOT_HERE, "no memory");
	ssize_t n = 1;

	while (!status && n > 0) {
		n = read(STDIN_FILENO, in.buf + in.n, INPUT_SIZE - in.n);
		if (n < 0)
			status = fail(STATUS_NOT_HERE, "standard input: %m");
		else
			in.n += (size_t)n;
		if (!status)
			status = answer_lines(&in, !n, space, values, tally);
	}
	addr_batch_free(in.batch);
	free(in.buf);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	struct addr_values *values = v;
	struct cairn_binary_opts bin_opts = {
		.size = sizeof(bin_opts),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.debug_file = values->debug_file,
	};
	struct addr_tally tally = {0};
	struct addr_space *space;
	int status;

	values->wish.jobs = (unsigned int)values->jobs;
	if (values->no_demangle)
		demangle_never();
	status = addr_space_open(operands->items[0], &bin_opts, &values->wish, &space);

	if (status)
		return status;
	if (operands->n > 1)
		status = answer_words(space, values, operands->items + 1, operands->n - 1, &tally);
	else
		status = answer_stdin(space, values, &tally);
	if (!status && tally.n_unknown)
		addr_space_tell_object(space);
	if (!status)
		status = addr_space_status(space);
	addr_space_close(space);
	if (status)
		return status;
	return tally.n_unknown ? STATUS_NO : STATUS_YES;
}

const struct cmd cmd_addr = {
	.name = "addr",
	.summary = "addresses to functions, inlined calls and lines",
	.operands = "FILE|PID [ADDR...]",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct addr_values),
	.run = run,
};
