/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn addr: addresses to functions, inlined calls and lines. */
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "cmd.h"

struct addr_values {
	struct opt_list debug_dirs;
	const char *debug_file;
	struct sidecar_wish wish;
	unsigned long jobs;
	bool json, back;
};

#define AT(field) offsetof(struct addr_values, field)

static const struct opt opts[] = {
	{'r', "return", OPT_FLAG, NULL, AT(back),
	 "the addresses are return addresses: tell of the call, the instruction before"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per address"},
	SIDECAR_OPT_PACK(AT(wish.file)),
	SIDECAR_OPT_NO_CACHE(AT(wish.no_cache)),
	SIDECAR_OPT_DEBUGINFOD(AT(wish.debuginfod)),
	{0, "debug-dir", OPT_LIST, "DIR", AT(debug_dirs),
	 "look for debug files in DIR, then in /usr/lib/debug; may be repeated"},
	{0, "debug-file", OPT_TEXT, "FILE", AT(debug_file), "take the debug information from FILE"},
	{'j', "jobs", OPT_COUNT, "N", AT(jobs), "use N threads to make a sidecar; otherwise one per processor"},
	{0},
};

static const struct example examples[] = {
	{"cairn addr /lib/x86_64-linux-gnu/libc.so.6 0x9d3f0",
	 "the function at that address, what it was inlined into, and the lines"},
	{"cairn addr 1234 0x55d0c0a011d6", "an address of a running process"},
	{"cut -d' ' -f1 samples | cairn addr vmlinux --json | jq .frames[0].function",
	 "many addresses, for other programs to read"},
	{0},
};

/* How many addresses belonged to something, and how many to nothing. */
struct tally {
	uint64_t n_known, n_unknown;
};

/* Hexadecimal, with or without 0x. */
static bool parse_address(const char *word, uint64_t *ret)
{
	const char *at = word;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*ret = 0;
	for (const char *start = at; *at; at++) {
		int digit = *at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10;

		if (digit < 0 || digit > 15 || (*at > '9' && digit < 10) || at - start >= 16)
			return false;
		*ret = *ret << 4 | (uint64_t)digit;
	}
	return at != word && (at[-1] | 32) != 'x';
}

static void answer(struct addr_space *space, const struct addr_values *values, uint64_t addr, struct tally *tally)
{
	struct addr_answer a;

	addr_space_ask(space, addr, values->back, &a);
	*(a.n ? &tally->n_known : &tally->n_unknown) += 1;
	if (values->json)
		addr_json(stdout, &a);
	else
		addr_text(stdout, &a);
}

static int answer_words(struct addr_space *space, const struct addr_values *values, char **words, size_t n,
			struct tally *tally)
{
	uint64_t addr;

	for (size_t i = 0; i < n; i++)
		if (!parse_address(words[i], &addr))
			return fail(STATUS_USAGE, "%s is no hexadecimal address", words[i]);
	for (size_t i = 0; i < n; i++) {
		parse_address(words[i], &addr);
		answer(space, values, addr, tally);
	}
	return STATUS_YES;
}

/* One address per line; empty lines are left out. */
static int answer_stdin(struct addr_space *space, const struct addr_values *values, struct tally *tally)
{
	char *line = NULL;
	size_t room = 0;
	unsigned long number = 0;
	int status = STATUS_YES;

	while (!status && getline(&line, &room, stdin) > 0) {
		uint64_t addr;
		char *word = line + strspn(line, " \t");

		word[strcspn(word, " \t\r\n")] = 0;
		number++;
		if (!*word)
			continue;
		if (parse_address(word, &addr))
			answer(space, values, addr, tally);
		else
			status = fail(STATUS_USAGE, "line %lu: %s is no hexadecimal address", number, word);
	}
	free(line);
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
	struct tally tally = {0};
	struct addr_space *space;
	int status;

	values->wish.jobs = (unsigned int)values->jobs;
	status = addr_space_open(operands->items[0], &bin_opts, &values->wish, &space);

	if (status)
		return status;
	if (operands->n > 1)
		status = answer_words(space, values, operands->items + 1, operands->n - 1, &tally);
	else
		status = answer_stdin(space, values, &tally);
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
