/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the files that hold a binary's DWARF; the essay is in debug_files.c. */
#ifndef ELF_DEBUG_FILES_H
#define ELF_DEBUG_FILES_H

#include <cairn/binary.h>

#include "base/vec.h"
#include "elf/elf.h"

/* Lines that tell where was looked and why a place did not do. Always NUL-terminated once used. */
struct search_log {
	VEC(char) text;
	bool out_of_memory;
};

__attribute__((format(printf, 2, 3))) void log_line(struct search_log *log, const char *fmt, ...);

struct debug_search {
	/* The binary. */
	struct elf *main;
	/* Its real path, as seen from @root; for the files beside it. */
	const char *real_path;
	/* Debug directories before the system's; may be NULL. */
	const char *const *dirs;
	size_t n_dirs;
	/*
	 * "/proc/PID/root" and an O_PATH descriptor of it, looked at first; NULL and -1 for files.
	 */
	const char *root;
	int root_fd;
	struct search_log *log;
};

/* The file has .debug_info with bytes. */
bool elf_has_dwarf(const struct elf *e);

/*
 * debug_file_find - search the separate debug file of a binary
 *
 * @ret  owned by the caller; NULL when there is none, which is no error
 * Returns 0 or -ENOMEM.
 */
int debug_file_find(const struct debug_search *s, struct elf **ret, struct cairn_err *err);

/*
 * debug_file_use - take the file that the caller named
 *
 * Returns 0; -ENOENT when it cannot be used (err: why), -ENOMEM.
 */
int debug_file_use(const struct debug_search *s, const char *path, struct elf **ret,
		   struct cairn_err *err);

/*
 * debug_alt_find - search the file that dwz shared out of @debug
 *
 * @ret  NULL when @debug names none or it is not there; the log has the latter
 * Returns 0 or -ENOMEM.
 */
int debug_alt_find(const struct debug_search *s, struct elf *debug, struct elf **ret,
		   struct cairn_err *err);

/*
 * debug_dwo_find - search a .dwo file, to which -gsplit-dwarf moved the DWARF of a unit
 *
 * @comp_dir, @name from the unit's skeleton: DW_AT_comp_dir, DW_AT_dwo_name
 * @ret  NULL when there is none; the log lists the searched paths. An id in its DWARF proves that
 *	  it is the right one; it is not read here.
 * Returns 0 or -ENOMEM.
 */
int debug_dwo_find(const struct debug_search *s, const char *comp_dir, const char *name,
		   struct elf **ret, struct cairn_err *err);

/*
 * debug_dwp_find - the same for a package of them, NAME.dwp; @debug is the file with the skeletons
 */
int debug_dwp_find(const struct debug_search *s, const struct elf *debug, struct elf **ret,
		   struct cairn_err *err);

#endif
