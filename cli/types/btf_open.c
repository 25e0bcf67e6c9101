/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of bases
 *
 * Split BTF continues the ids and string offsets of its base, and says nothing about which base
 * that was. A wrong one, or the right ones in the wrong order, would give wrong names and types
 * without any number being out of range. Two things tell: names must begin where strings begin (the
 * library looks at all of them), and a file that can be read without a base is not split at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btf.h"
#include "say.h"
#include "sidecar.h"

#define BTF_SECTION ".BTF"
#define SYSFS       "/sys/kernel/btf/"
/* Parents of a file in sysfs, and the file itself. */
#define MORE        3
#define ORDER       "-B goes parent first: -B vmlinux -B module module.inline"

enum cairn_btf_dialect btf_dialect(const char *word)
{
	if (word && !strcmp(word, "v1"))
		return CAIRN_BTF_LOC_V1;
	return word && !strcmp(word, "n") ? CAIRN_BTF_LOC_N : CAIRN_BTF_NO_LOC;
}

static bool is_complete(const char *path, const char *section)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .section = section};
	struct cairn_btf *btf;

	if (cairn_btf_open(path, &opts, &btf, NULL) < 0)
		return false;
	cairn_btf_close(btf);
	return true;
}

static int open_one(struct btf_chain *chain, const char *path, const char *section,
		    const char *dialect)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts),
					   .section = section,
					   .dialect = btf_dialect(dialect),
					   .base = chain->n ? btf_of(chain) : NULL};
	struct cairn_err err = {0};

	if (opts.base && is_complete(path, section))
		return fail(STATUS_USAGE, "%s is not split BTF: it needs no base, and has none\n%s",
			    path, ORDER);
	sidecar_say_unbound_file(path);
	int r = cairn_btf_open(path, &opts, &chain->p[chain->n], &err);

	if (r < 0) {
		int status = fail_err(r, &err, STATUS_USAGE);

		if (opts.base && r == -EBADMSG)
			say(stderr, "%s\n", ORDER);
		if (!section && r == -ENODATA)
			say(stderr, "Try: cairn btf encode %s\n", path);
		return status;
	}
	chain->n++;
	return STATUS_YES;
}

/* The parents of a file in sysfs; how many, or -1 when there is no memory. */
static int sysfs_parents(const char *path, char **parents)
{
	const char *name = path + strlen(SYSFS);
	size_t len = strcspn(name, ".");
	int n = 0;

	if (strncmp(path, SYSFS, strlen(SYSFS)) || !strcmp(name, "vmlinux"))
		return 0;
	parents[n] = strdup(SYSFS "vmlinux");
	if (!parents[n++])
		return -1;
	if (!name[len] || (len == strlen("vmlinux") && !memcmp(name, "vmlinux", len)))
		return n;
	parents[n] = strndup(path, strlen(SYSFS) + len);
	return parents[n++] ? n : -1;
}

static int open_sysfs_parents(struct btf_chain *chain, const char *path)
{
	char *parents[2] = {NULL};
	int n = sysfs_parents(path, parents),
	    status = n < 0 ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;

	for (int i = 0; i < n && !status; i++)
		status = open_one(chain, parents[i], NULL, NULL);
	free(parents[0]);
	free(parents[1]);
	return status;
}

int btf_open_bases(const struct opt_list *bases, struct btf_chain *ret)
{
	int status = STATUS_YES;

	ret->n = 0;
	ret->p = calloc(bases->n + MORE, sizeof(struct cairn_btf *));
	if (!ret->p)
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < bases->n && !status; i++)
		status = open_one(ret, bases->items[i], NULL, NULL);
	return status;
}

int btf_open_beside(const struct opt_list *bases, char *const *paths, size_t n, const char *section,
		    const char *dialect, struct btf_chain *ret)
{
	int status = btf_open_bases(bases, ret);
	size_t n_bases = ret->n;
	struct cairn_btf **room = status ? NULL : realloc(ret->p, (n_bases + n) * sizeof(*room));

	if (!status && !room)
		status = fail(STATUS_NOT_HERE, "no memory");
	ret->p = room ? room : ret->p;
	for (size_t i = 0; i < n && !status; i++) {
		/* Each is put on the bases, not on the one before. */
		struct btf_chain one = {ret->p, n_bases};
		struct cairn_btf *last = ret->p[n_bases];

		status = open_one(&one, paths[i], section, dialect);
		if (status)
			break;
		ret->p[n_bases + i] = ret->p[n_bases];
		if (i)
			ret->p[n_bases] = last;
		ret->n++;
	}
	return status;
}

/* A sidecar, or a file that it was embedded in, has its own base beside it. */
static bool is_inline(const char *path, const struct btf_source *source)
{
	return source->section && !strcmp(source->section, BTF_SECTION ".inline") &&
	       is_complete(path, BTF_SECTION);
}

int btf_open(const char *path, const struct btf_source *source, struct btf_chain *ret)
{
	int status = btf_open_bases(&source->bases, ret);

	if (!status && !source->bases.n)
		status = open_sysfs_parents(ret, path);
	if (!status && !ret->n && is_inline(path, source))
		status = open_one(ret, path, BTF_SECTION, NULL);
	return status ? status : open_one(ret, path, source->section, source->dialect);
}

int btf_open_only(const struct operands *operands, const struct btf_source *source,
		  struct btf_chain *ret)
{
	*ret = (struct btf_chain){0};
	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time, and bases by -B: %s",
			    operands->items[1]);
	return btf_open(operands->items[0], source, ret);
}

void btf_close(struct btf_chain *chain)
{
	while (chain->n)
		cairn_btf_close(chain->p[--chain->n]);
	free(chain->p);
	chain->p = NULL;
}
