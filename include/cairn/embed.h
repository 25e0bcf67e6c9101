/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a copy of an ELF file with more sections
 *
 * The loaded parts stay byte for byte at their offsets: the new sections, the names of all and the
 * table of sections come after everything else.
 *
 *	struct cairn_embed_section btf = {".BTF", bytes, size};
 *	if (cairn_embed("server", "server.with-btf", &btf, 1, &err) < 0)
 *		fprintf(stderr, "%s\n", err.msg);
 */
#ifndef CAIRN_EMBED_H
#define CAIRN_EMBED_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

struct cairn_embed_section {
	const char *name;
	const void *bytes;
	size_t size;
};

/*
 * cairn_embed - write a copy of an ELF file that also has these sections
 *
 * @path      a 64-bit little-endian ELF file with a table of sections
 * @out       appears whole or not at all (cairn_file_write()), with the permissions of @path; may
 *            be @path itself
 * @sections  one whose name the file has already replaces that one
 * Returns 0. -ENOENT: no @path. -EBADMSG: damaged (err: what, where). -EOPNOTSUPP: another class or
 * byte order, or no table of sections. -EEXIST: a section of that name is in a loaded segment, and
 * cannot be replaced. -ENOMEM, or the error of writing.
 * Cost: one copy of the file. Threads: any.
 */
int cairn_embed(const char *path, const char *out, const struct cairn_embed_section *sections,
		size_t n, struct cairn_err *err);

/*
 * cairn_embed_alone - write an ELF file that has only these sections
 *
 * @machine  EM_*, of the program that the sections describe
 * Otherwise as cairn_embed().
 */
int cairn_embed_alone(uint16_t machine, const char *out, const struct cairn_embed_section *sections,
		      size_t n, struct cairn_err *err);

CAIRN_END_DECLS
#endif
