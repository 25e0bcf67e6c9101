/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that the library writes, and those that it reads
 *
 * A file is written whole or not at all. Functions that make BTF, a sidecar and the like give
 * bytes; this puts bytes into a file, or into a copy of an ELF file as sections. At the end: input
 * files that change while they are mapped.
 *
 *	if (cairn_file_write("out.btf", bytes, size, &err) < 0)
 *		fprintf(stderr, "%s\n", err.msg);
 */
#ifndef CAIRN_FILE_H
#define CAIRN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

/*
 * cairn_file_write - make or replace a file, completely or not at all
 *
 * The bytes go to a file without a name, which is synced and then renamed over @path. A reader sees
 * the old content or the new one, also after a full disk or a kill -9.
 *
 * @path  a symbolic link is followed. Root follows no link of another user, anywhere in the path.
 *        Other users follow no link of a third user in a sticky directory that all may write to
 *        (-EPERM). A file that is replaced passes its permissions on. A file that is not regular (a
 *        terminal, a pipe) is written to directly; a pipe of another user is refused under the same
 *        rules as a link
 * Functions that make bytes of a binary refuse one that became shorter meanwhile. A caller
 * that makes text of several answers queries the handles first (cairn_inputs_shortened()).
 *
 * Returns 0, or the system's error: -ENOENT (no such directory), -EACCES, -EISDIR, -ENOSPC, -EFBIG,
 * -EIO; -ENOMEM. @path is then as it was. Cost: one write, two fsync. Threads: any; if two write
 * one file, the last wins.
 */
int cairn_file_write(const char *path, const void *bytes, size_t size, struct cairn_err *err);

/*
 * cairn_file_create - a file that is written piece by piece, new or emptied
 *
 * @path  as in cairn_file_write(). As root, a file with several names in a directory of another
 *        user is refused (-EPERM)
 * Returns a descriptor, or the system's error. Threads: any.
 */
int cairn_file_create(const char *path, struct cairn_err *err);

struct cairn_file {
	const char *path;
	const void *bytes; /* @size of them */
	size_t size;
};

/*
 * cairn_file_write_together - make or replace several files; the first is complete without the
 * others, and the others mean nothing without it
 *
 * An example is BTF and the split BTF that continues it: beside other types the second would not be
 * refused, but would mean something else. All bytes are on disk before any file appears. Then the
 * old ones of files[1..] are removed, and the new files take their names in order. So a reader sees
 * the old files, or the first one, old or new, with some of those that belong to it; also after a
 * kill -9.
 *
 * @files  @n of them, with paths that differ; each as cairn_file_write() takes it
 * Returns 0, or as cairn_file_write(). If the bytes cannot be written (-ENOSPC, -EFBIG, -EIO) or a
 * file cannot be made (-ENOENT, -EACCES, -EISDIR, -ENOMEM), all files are as they were.
 * Cost: one write and two fsync per file, one more for each that is replaced. Threads: any.
 */
int cairn_file_write_together(const struct cairn_file *files, size_t n, struct cairn_err *err);

/*
 * cairn_file_write_directory - make or replace a directory of files, completely or not at all
 *
 * The files go to a directory with another name beside @path, ".NAME.PID-N.tmp". It is synced and
 * takes the place of the one that is there in one step, also under a kill -9, which may leave it.
 *
 * @path   under the rules of cairn_file_write(); a directory that has other entries than @files, or
 *         some of them and not all, is not replaced
 * @files  @n of them; their paths are names in it
 * Returns 0, or the system's error: -ENOTEMPTY (err: the other entry, if there is one), -ENOTDIR,
 * -ENOENT (no such parent), -EACCES, -ENOSPC, -EFBIG, -EIO, -EINVAL (a file system that cannot
 * exchange names);
 * -ENOMEM. @path is then as it was. Threads: any.
 */
int cairn_file_write_directory(const char *path, const struct cairn_file *files, size_t n,
			       struct cairn_err *err);

/*
 * cairn_file_check_directory - whether cairn_file_write_directory() would replace what is there
 *
 * @names  @n of them, at most 8: the files
 * Returns 0, also if there is none; -ENOTEMPTY, -ENOTDIR and the others as above; -EINVAL: too many
 * names. Nothing is made, so a parent that may not be written to is not found. Threads: any.
 */
int cairn_file_check_directory(const char *path, const char *const *names, size_t n,
			       struct cairn_err *err);

/*
 * cairn_file_remove_directory - remove what cairn_file_write_directory() wrote
 *
 * @names  @n of them, at most 8: the files
 * Returns 0, also if there is none. -ENOTEMPTY: it has other entries, or not all files, and all
 * stays. -EINVAL: too many names; otherwise the system's error. Threads: any.
 */
int cairn_file_remove_directory(const char *path, const char *const *names, size_t n,
				struct cairn_err *err);

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

/*
 * Handles input files that change while they are mapped
 *
 * The library maps the files that it reads. If another program makes such a file shorter meanwhile,
 * the next read of the missing part raises SIGBUS. The library installs no signal handlers; a
 * program's handler can query here which file it was:
 *
 *	static void on_bus_error(int signal, siginfo_t *info, void *context)
 *	{
 *		const char *name = cairn_input_at(info->si_addr);
 *		...
 */

/*
 * cairn_input_at - the file that is mapped at @address
 *
 * Returns its name, quoted as text (cairn/text.h) and cut after some 200 characters; NULL when no
 * input is mapped there. The name is valid while the file is open. Threads: any; may be called by a
 * signal handler.
 */
const char *cairn_input_at(const void *address);

/*
 * cairn_inputs_shortened - the first input of the program that became shorter while it was mapped
 *
 * The missing part of a page reads as zeros and raises no signal. So a program that answers one
 * question queries this before it trusts its answer. A program with many questions queries the
 * handles that an answer is made of: cairn_binary_shortened(), cairn_source_shortened(),
 * cairn_btf_shortened(), cairn_sidecar_shortened().
 *
 * Returns its name, as cairn_input_at() gives it and valid until the program ends; NULL if there
 * is none. A file that was replaced by another one does not count. Once a file was noticed, this
 * reports it as long as the program runs; nothing else depends on that.
 * Cost: a stat(2) for each file that is open. Threads: any. Signals: not safe.
 */
const char *cairn_inputs_shortened(void);

CAIRN_END_DECLS
#endif
