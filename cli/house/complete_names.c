/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that a shell completes: cairn --complete KIND FILE PREFIX
 *
 *	functions  those of the file, or of a process' program, that begin with PREFIX
 *	types      its structs, unions and enums
 *	abis       those that --abi takes; FILE is not used
 *
 * Shells expand the words that they are given: a function called `$(id)` would run a command. So
 * names are printed only if they are made of letters, digits, and _ . : - alone.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout.h>
#include <cairn/source.h>

#include "cmd.h"
#include "sidecar.h"

enum { NAMES_MAX = 2000 }; /* nobody reads more */

struct names {
	FILE *out;
	const char *prefix;
	size_t n;
};

static bool is_harmless(const char *name)
{
	if (!*name || *name == '-')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_.:-", *name))
			return false;
	return true;
}

/* Returns false when there are enough. */
static bool put_name(struct names *names, const char *name)
{
	if (name && is_harmless(name) && !strncmp(name, names->prefix, strlen(names->prefix))) {
		fprintf(names->out, "%s\n", name);
		names->n++;
	}
	return names->n < NAMES_MAX;
}

static int put_function(void *ctx, const struct cairn_function *function)
{
	return put_name(ctx, function->name) ? 0 : 1;
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")] && strlen(word) < 10;
}

static void put_functions(struct names *names, const char *file, const char *pattern)
{
	struct cairn_binary_opts bin_opts = {.size = sizeof(bin_opts)};
	struct cairn_sites_opts opts = {.size = sizeof(opts)};
	struct sidecar_wish wish = {0};
	struct sidecar_sites source;
	struct cairn_binary *bin;
	int r = is_number(file) ? cairn_binary_open_pid(atoi(file), &bin_opts, &bin, NULL)
				: cairn_binary_open(file, &bin_opts, &bin, NULL);

	if (r < 0)
		return;
	if (!sidecar_sites_open(bin, &wish, &opts, &source)) {
		cairn_sites_visit_matching(source.sites, pattern, put_function, names, NULL);
		sidecar_sites_close(&source);
	}
	cairn_binary_close(bin);
}

static void put_types(struct names *names, const char *file, const char *pattern)
{
	struct cairn_source_opts opts = {.size = sizeof(opts)};
	struct cairn_source_list list = {0};
	struct cairn_source *source;

	if (cairn_source_open(file, &opts, &source, NULL) < 0)
		return;
	int64_t n = cairn_source_select(source, pattern, &list, NULL);
	const struct cairn_types *types = cairn_source_types(source);

	for (int64_t i = 0; i < n; i++)
		if (!put_name(names, cairn_types_get(types, list.ids[i])->name))
			break;
	free(list.ids);
	cairn_source_close(source);
}

static void put_abis(struct names *names)
{
	for (size_t i = 0; cairn_abi_at(i); i++)
		put_name(names, cairn_abi_at(i)->name);
}

int complete_names(const char *kind, const char *file, const char *prefix, FILE *out)
{
	struct names names = {.out = out, .prefix = prefix};
	char pattern[512];

	if (!strcmp(kind, "abis")) {
		put_abis(&names);
		return STATUS_YES;
	}
	/* Without a letter it would be all names of the file. */
	if (!is_harmless(prefix) || strlen(prefix) + 2 > sizeof(pattern))
		return STATUS_NO;
	snprintf(pattern, sizeof(pattern), "%s*", prefix);
	if (!strcmp(kind, "functions"))
		put_functions(&names, file, pattern);
	else if (!strcmp(kind, "types"))
		put_types(&names, file, pattern);
	else
		return STATUS_USAGE;
	return STATUS_YES;
}
