/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every site of every function of a file, through the public interface
 *
 *	all_sites FILE
 *
 * One line per site: KIND DIE-OFFSET ADDRESS NAME, separated by tabs, numbers in hexadecimal. KIND
 * is "inlined" for every copy, also for one that is a part, and "further" for a site that a copy
 * has besides its first. Then one line per function that has copies without code: "without_code"
 * COUNT - NAME.
 */
#include <cairn/sites.h>
#include <inttypes.h>
#include <stdio.h>

static const char *kind_of(const struct cairn_function *function, uint32_t i)
{
	const struct cairn_site *site = &function->sites[i];

	if (!site->n_chain)
		return site->kind == CAIRN_SITE_PART ? "part" : "body";
	if (site->rule == CAIRN_AT_ENTRY_ROW)
		return "further";
	for (uint32_t k = 0; k < i && site->rule == CAIRN_AT_CFG_ENTRY; k++)
		if (function->sites[k].die == site->die)
			return "further";
	return "inlined";
}

static int show(void *ctx, const struct cairn_function *function)
{
	(void)ctx;
	for (uint32_t i = 0; i < function->n_sites; i++) {
		const struct cairn_site *site = &function->sites[i];

		printf("%s\t%" PRIx64 "\t%" PRIx64 "\t%s\n", kind_of(function, i), site->die,
		       site->at.v, function->name);
	}
	if (function->n_without_code)
		printf("without_code\t%" PRIx32 "\t-\t%s\n", function->n_without_code,
		       function->name);
	return 0;
}

int main(int argc, char **argv)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	struct cairn_sites *sites = NULL;
	int r;

	if (argc < 2)
		return 2;
	r = cairn_binary_open(argv[1], NULL, &bin, &err);
	if (r == 0) {
		r = cairn_sites_open(bin, NULL, &sites, &err);
		if (r == 0)
			r = cairn_sites_visit(sites, show, NULL, &err);
		cairn_sites_close(sites);
		cairn_binary_close(bin);
	}
	if (r < 0)
		fprintf(stderr, "all_sites: %s\n", err.msg);
	return r < 0;
}
