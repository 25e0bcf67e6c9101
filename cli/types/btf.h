/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the verbs on BTF. */
#ifndef CLI_BTF_H
#define CLI_BTF_H

#include <cairn/btf.h>

#include "cmd.h"

/* A file and the bases below it. */
struct btf_chain {
	struct cairn_btf **p; /* parents first; the file itself is the last */
	size_t n;
};

struct btf_source {
	const char *section;   /* NULL: the usual ones */
	const char *dialect;   /* "n", "v1", or NULL: find out */
	struct opt_list bases; /* parents first */
};

/* Options of a source, at its members. */
/* clang-format off */
#define BTF_OPT_BASE(at) \
	{'B', "base", OPT_LIST, "BASE", (at), \
	 "the BTF that FILE was split from; may be repeated, parents first"}
#define BTF_OPT_SECTION(at) \
	{0, "section", OPT_TEXT, "NAME", (at), \
	 "section of an ELF file; otherwise .BTF, or the only one of .BTF.inline and .BTF.extra"}
#define BTF_OPT_DIALECT(at) \
	{0, "dialect", OPT_TEXT, "n|v1", (at), \
	 "dialect of location records, if the file does not show it"}
/* clang-format on */

/*
 * btf_open - open a file on its bases
 *
 * A file in /sys/kernel/btf needs no -B: its name gives its parents ("xfs.inline" is split from
 * xfs, which is from vmlinux). A base that is not split from the previous one is refused, and the
 * order explained.
 * Returns an exit status. btf_close() also after a failure.
 */
int btf_open(const char *path, const struct btf_source *source, struct btf_chain *ret);
/* btf_open_only - the same for the only operand of a verb; more are refused */
int btf_open_only(const struct operands *operands, const struct btf_source *source,
		  struct btf_chain *ret);
/* Bases without a file on them. */
int btf_open_bases(const struct opt_list *bases, struct btf_chain *ret);
/* Bases, and several files on the last of them, which are beside one another. */
int btf_open_beside(const struct opt_list *bases, char *const *paths, size_t n, const char *section,
		    const char *dialect, struct btf_chain *ret);
void btf_close(struct btf_chain *chain);

static inline struct cairn_btf *btf_of(const struct btf_chain *chain)
{
	return chain->p[chain->n - 1];
}

/* "n" and "v1"; NULL and "none": NO_LOC. */
enum cairn_btf_dialect btf_dialect(const char *word);

/* A blob that was made, and the file it goes to. */
struct btf_made {
	const char *path;
	const void *bytes;
	size_t size;
	const struct cairn_btf *base; /* NULL: none */
	uint32_t n_before;            /* records of its input */
};

/*
 * btf_write - write blobs that were made, all or none, and say how many records each has and its
 * input had
 *
 * @made  @n of them, as cairn_file_write_together() takes files; at most BTF_MADE_MAX
 * Returns an exit status.
 */
enum { BTF_MADE_MAX = 2 };
int btf_write(const struct btf_made *made, size_t n, bool json);

/*
 * btf_linux_version - a version of Linux for the library's checks: "6.18", "6.18.44-cloud", "all"
 * (0); "": this machine's
 *
 * Returns an exit status: STATUS_USAGE if the text is no version, or a version older than the known
 * rules.
 */
int btf_linux_version(const char *text, uint32_t *ret);

/* Own records, or those of @ids when it is not NULL, one JSON object per line: docs/json.md. */
void btf_json(const struct cairn_btf *btf, const uint32_t *ids, size_t n_ids);

#endif
