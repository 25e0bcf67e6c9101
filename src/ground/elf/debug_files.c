/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of a stripped binary's DWARF
 *
 * Distributions cut the debug information off and ship it apart. Two traces lead there:
 *
 *     build-id    a note in both files    DIR/.build-id/93/ac61ec...40.debug
 *     debug link  .gnu_debuglink: a name  beside the file, in .debug beside it, DIR/<its directory>
 *     path        of kernel modules       DIR/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko
 *
 * where DIR is each debug directory in turn. A debug link carries a CRC-32 of the debug file:
 *
 *	OFFSET  SIZE      MEANING
 *	0       n         file name, NUL-terminated, without a directory
 *	n       0 to 3    padding to 4 bytes
 *	        4         CRC-32 of the whole file
 *
 * dwz goes one step further and moves data that several debug files share to a third one, named by
 * .gnu_debugaltlink: a path with its NUL, then the build-id of that file.
 *
 * A wrong debug file is worse than none, because everything read from it is plausible. So a
 * candidate counts only when its build-id is the binary's, or (by link) its CRC is right and no
 * build-id contradicts.
 *
 * Links are followed from the binary to its debug file and from that to its alternate file, and no
 * further: a chain or a ring of links ends there.
 *
 * A process may live in a mount namespace of its own. Its root (/proc/PID/root) is searched first;
 * symbolic links in it are resolved inside it, so that an absolute one cannot lead out.
 */
#include "elf/debug_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <libdeflate.h>

#include <cairn/text.h>

#include "base/scope.h"
#include "elf/elf_impl.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

/* The conditions that a candidate must meet. */
struct wanted {
	const uint8_t *build_id; /* NULL when the binary has none */
	size_t build_id_len;
	bool must_have_id; /* a candidate without a build-id does not do */
	bool check_crc;
	uint32_t crc;
	bool must_match_layout; /* of a relocatable file: same sections at the same addresses */
	bool split;             /* a .dwo file or a package of them */
};

void log_line(struct search_log *log, const char *fmt, ...)
{
	SCOPE_FREE char *raw = NULL, *line = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&raw, fmt, ap) < 0)
		raw = NULL;
	va_end(ap);
	ssize_t n = raw ? cairn_quote(raw, CAIRN_QUOTE_TEXT, NULL, 0) : -1;
	line = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!line) {
		log->out_of_memory = true;
		return;
	}
	cairn_quote(raw, CAIRN_QUOTE_TEXT, line, (size_t)n + 1);
	if (log->text.n)
		log->text.p[log->text.n - 1] = '\n'; /* over the NUL of the line before */
	for (ssize_t i = 0; i <= n; i++)
		if (!VEC_ADD(&log->text, line[i])) {
			log->out_of_memory = true;
			break;
		}
	if (log->text.n)
		log->text.p[log->text.n - 1] = 0;
}

static bool has_bytes(const struct elf *e, const char *name)
{
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (s->type != SHT_NOBITS && s->size && !strcmp(s->name, name))
			return true;
	}
	return false;
}

bool elf_has_dwarf(const struct elf *e)
{
	return has_bytes(e, ".debug_info") || has_bytes(e, ".zdebug_info");
}

static void hex(const uint8_t *id, size_t n, char *buf, size_t size)
{
	buf[0] = 0;
	for (size_t i = 0; i < n && 2 * i + 3 <= size; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
}

static bool same_id(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
	return n_a == n_b && !memcmp(a, b, n_a);
}

/* Sections of a .ko are laid out by their headers; those of its debug file must give the same. */
static bool same_layout(const struct elf *a, const struct elf *b)
{
	if (a->type != b->type || a->n_by_addr != b->n_by_addr)
		return false;
	for (size_t i = 0; i < a->n_by_addr; i++) {
		const struct section *x = &a->sections[a->by_addr[i]];
		const struct section *y = &b->sections[b->by_addr[i]];
		if (strcmp(x->file.name, y->file.name) || x->file.addr.v != y->file.addr.v ||
		    x->file_size != y->file_size)
			return false;
	}
	return true;
}

/* Why @e does not do, or NULL. @buf is for the text. */
static const char *objection(const struct debug_search *s, const struct elf *e,
			     const struct wanted *w, char *buf, size_t size)
{
	char have[2 * 64 + 1], want[2 * 64 + 1];
	if (w->split)
		return has_bytes(e, ".debug_info.dwo") ? NULL : "has no .debug_info.dwo";
	if (!elf_has_dwarf(e))
		return "has no .debug_info";
	if (w->build_id && !e->build_id && w->must_have_id)
		return "refused: it has no build-id";
	if (w->build_id && e->build_id &&
	    !same_id(w->build_id, w->build_id_len, e->build_id, e->build_id_len)) {
		hex(e->build_id, e->build_id_len, have, sizeof(have));
		hex(w->build_id, w->build_id_len, want, sizeof(want));
		snprintf(buf, size, "refused: its build-id is %s, the binary wants %s", have, want);
		return buf;
	}
	if (w->check_crc) {
		uint32_t crc = libdeflate_crc32(0, e->bytes, e->size);
		if (crc != w->crc) {
			snprintf(buf, size, "refused: its CRC is %08x, the debug link says %08x",
				 crc, w->crc);
			return buf;
		}
	}
	if (w->must_match_layout && !same_layout(s->main, e))
		return "refused: its sections are not those of the binary";
	return NULL;
}

/* Never blocks on a FIFO that another user put there. */
static int open_in(int root_fd, const char *path)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (root_fd < 0)
		return open(path, flags);
	struct open_how how = {.flags = flags, .resolve = RESOLVE_IN_ROOT};
	return syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

/*
 * Returns 1 when @path was taken, 0 when it is not suitable (the log has the reason), -ENOMEM.
 */
static int try_in(const struct debug_search *s, const char *root, int root_fd, const char *path,
		  const struct wanted *w, struct elf **ret, struct cairn_err *err)
{
	char shown[PATH_MAX + 64];
	snprintf(shown, sizeof(shown), "%s%s", root, path);
	SCOPE_CLOSE int fd = open_in(root_fd, path);
	if (fd < 0) {
		log_line(s->log, "%s: %s", shown, strerror(errno));
		return 0;
	}
	struct cairn_err why = {0};
	struct elf *e;
	int r = elf_open_fd(fd, shown, &e, &why);
	if (r == -ENOMEM)
		return err_nomem(err, "a debug file");
	if (r < 0) {
		log_line(s->log, "%s", why.msg);
		return 0;
	}
	char buf[512];
	const char *no = objection(s, e, w, buf, sizeof(buf));
	if (no) {
		log_line(s->log, "%s: %s", shown, no);
		elf_unref(e);
		return 0;
	}
	log_line(s->log, "%s: used", shown);
	*ret = e;
	return 1;
}

/* The path in the process's root, then in ours. */
static int try_path(const struct debug_search *s, const char *path, const struct wanted *w,
		    struct elf **ret, struct cairn_err *err)
{
	if (s->root) {
		int r = try_in(s, s->root, s->root_fd, path, w, ret, err);
		if (r)
			return r;
	}
	return try_in(s, "", -1, path, w, ret, err);
}

__attribute__((format(printf, 5, 6))) static int try_printf(const struct debug_search *s,
							    const struct wanted *w,
							    struct elf **ret, struct cairn_err *err,
							    const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		log_line(s->log, "%.60s...: path of more than %d bytes", path, PATH_MAX);
		return 0;
	}
	return try_path(s, path, w, ret, err);
}

static size_t n_dirs(const struct debug_search *s)
{
	return s->n_dirs + 1;
}

static const char *dir_at(const struct debug_search *s, size_t i)
{
	return i < s->n_dirs ? s->dirs[i] : SYSTEM_DEBUG_DIR;
}

/* Debian ships the debug files of kernel modules under the module's own path, without a link. */
static int find_by_path(const struct debug_search *s, const struct wanted *w, struct elf **ret,
			struct cairn_err *err)
{
	const char *path = s->real_path;
	int r = 0;
	if (!w->build_id || path[0] != '/')
		return 0;
	/* /lib is /usr/lib on a merged system, and the packages were built on another. */
	bool in_usr = !strncmp(path, "/usr/", 5);
	for (size_t i = 0; i < n_dirs(s) && r == 0; i++) {
		r = try_printf(s, w, ret, err, "%s%s", dir_at(s, i), path);
		if (r == 0 && in_usr)
			r = try_printf(s, w, ret, err, "%s%s", dir_at(s, i), path + 4);
	}
	return r;
}

static int find_by_build_id(const struct debug_search *s, const struct wanted *w, struct elf **ret,
			    struct cairn_err *err)
{
	/* One byte names the directory and the rest the file. */
	char id[2 * 128 + 1];
	if (!w->build_id || w->build_id_len < 2)
		return 0;
	hex(w->build_id, w->build_id_len, id, sizeof(id));
	int r = 0;
	for (size_t i = 0; i < n_dirs(s) && r == 0; i++)
		r = try_printf(s, w, ret, err, "%s/.build-id/%.2s/%s.debug", dir_at(s, i), id,
			       id + 2);
	return r;
}

/* Length of the directory part of @path, without the last slash; 0 for "/file". */
static int dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) : 0;
}

/* Returns 1 and name and CRC, 0 when there is no debug link or it is damaged (the log says so). */
static int read_link(const struct debug_search *s, const char **ret_name, uint32_t *ret_crc,
		     struct cairn_err *err)
{
	const struct elf_section *section;
	struct cairn_err why = {0};
	int r = elf_section(s->main, ".gnu_debuglink", &section, &why);
	if (r == -ENOMEM)
		return err_nomem(err, ".gnu_debuglink");
	if (r < 0) {
		log_line(s->log, "%s", why.msg);
		return 0;
	}
	if (!section || !section->data)
		return 0;
	struct cursor c = cursor_of(&section->src, section->data, section->size, false, &why);
	const char *name = cur_str(&c);
	cur_skip(&c, -cur_off(&c) % 4);
	uint32_t crc = cur_u32(&c);
	if (c.failed) {
		log_line(s->log, "%s", why.msg);
		return 0;
	}
	if (!*name || strchr(name, '/')) {
		log_line(s->log, "%s: .gnu_debuglink: not a file name: '%.80s'", elf_path(s->main),
			 name);
		return 0;
	}
	*ret_name = name;
	*ret_crc = crc;
	return 1;
}

static int find_by_link(const struct debug_search *s, const struct wanted *id, struct elf **ret,
			struct cairn_err *err)
{
	const char *name, *path = s->real_path;
	struct wanted w = *id;
	int r = read_link(s, &name, &w.crc, err);
	if (r <= 0)
		return r;
	w.check_crc = true;
	w.must_have_id = false;
	int len = dir_len(path);
	/* A binary whose debug file has the same name elsewhere has a link to itself. */
	if (strcmp(path + len + 1, name) || !len)
		r = try_printf(s, &w, ret, err, "%.*s/%s", len, path, name);
	else
		r = 0;
	if (r == 0)
		r = try_printf(s, &w, ret, err, "%.*s/.debug/%s", len, path, name);
	for (size_t i = 0; i < n_dirs(s) && r == 0; i++)
		r = try_printf(s, &w, ret, err, "%s%.*s/%s", dir_at(s, i), len, path, name);
	return r;
}

static struct wanted id_of(struct elf *e)
{
	struct wanted w = {.build_id = e->build_id,
			   .build_id_len = e->build_id_len,
			   .must_have_id = true,
			   .must_match_layout = elf_is_relocatable(e)};
	return w;
}

int debug_file_find(const struct debug_search *s, struct elf **ret, struct cairn_err *err)
{
	struct wanted w = id_of(s->main);
	*ret = NULL;
	if (!w.build_id)
		log_line(s->log, "%s: has no build-id", elf_path(s->main));
	int r = find_by_build_id(s, &w, ret, err);
	if (r == 0)
		r = find_by_link(s, &w, ret, err);
	if (r == 0 && elf_is_relocatable(s->main))
		r = find_by_path(s, &w, ret, err);
	return r < 0 ? r : 0;
}

int debug_file_use(const struct debug_search *s, const char *path, struct elf **ret,
		   struct cairn_err *err)
{
	struct wanted w = id_of(s->main);
	struct search_log log = {0};
	struct debug_search here = *s;
	here.log = &log;
	/* The caller vouches for a file without a build-id; never for one with a different one. */
	w.must_have_id = false;
	int r = try_in(&here, "", -1, path, &w, ret, err);
	if (r == 0)
		r = err_set(err, -ENOENT, "debug file for %s: %s", elf_path(s->main),
			    log.text.n ? log.text.p : path);
	else if (r > 0)
		log_line(s->log, "%s: used, as requested", path);
	VEC_FREE(&log.text);
	return r < 0 ? r : 0;
}

/* Returns 1 and the file's name and build-id; 0 without a link or with a damaged one (logged). */
static int read_alt_link(const struct debug_search *s, struct elf *debug, const char **ret_name,
			 struct wanted *ret, struct cairn_err *err)
{
	const struct elf_section *section;
	struct cairn_err why = {0};
	int r = elf_section(debug, ".gnu_debugaltlink", &section, &why);
	if (r == -ENOMEM)
		return err_nomem(err, ".gnu_debugaltlink");
	if (r == 0 && (!section || !section->data))
		return 0;
	if (r < 0) {
		log_line(s->log, "%s", why.msg);
		return 0;
	}
	struct cursor c = cursor_of(&section->src, section->data, section->size, false, &why);
	*ret_name = cur_str(&c);
	size_t n = cur_left(&c);
	const uint8_t *id = cur_bytes(&c, n);
	if (c.failed || !n || n > 64) {
		log_line(s->log, "%s: .gnu_debugaltlink: %s", elf_path(debug),
			 c.failed ? why.msg : "expected a path and a build-id after it");
		return 0;
	}
	*ret = (struct wanted){.build_id = id, .build_id_len = n, .must_have_id = true};
	return 1;
}

/*
 * The link says /usr/lib/debug/.dwz/x or ../../.dwz/x. The first form is also tried under each
 * other debug directory, because the tree it was written for may have been unpacked elsewhere.
 */
static int find_alt_by_name(const struct debug_search *s, struct elf *debug, const char *name,
			    const struct wanted *w, struct elf **ret, struct cairn_err *err)
{
	if (name[0] != '/') {
		SCOPE_FREE char *real = realpath(elf_path(debug), NULL);
		const char *path = real ? real : elf_path(debug);
		return try_printf(s, w, ret, err, "%.*s/%s", dir_len(path), path, name);
	}
	int r = try_path(s, name, w, ret, err);
	size_t skip = strlen(SYSTEM_DEBUG_DIR);
	bool in_system = !strncmp(name, SYSTEM_DEBUG_DIR "/", skip + 1);
	for (size_t i = 0; i < s->n_dirs && r == 0 && in_system; i++)
		r = try_printf(s, w, ret, err, "%s%s", s->dirs[i], name + skip);
	return r;
}

int debug_alt_find(const struct debug_search *s, struct elf *debug, struct elf **ret,
		   struct cairn_err *err)
{
	const char *name;
	struct wanted w;
	*ret = NULL;
	int r = read_alt_link(s, debug, &name, &w, err);
	if (r <= 0)
		return r;
	r = find_by_build_id(s, &w, ret, err);
	if (r == 0)
		r = find_alt_by_name(s, debug, name, &w, ret, err);
	return r < 0 ? r : 0;
}

/* ---- split DWARF ---- */

/*
 * Objects may have been built elsewhere, or moved with the binary. So after the path that the
 * skeleton names, the directory of the binary and the debug directories are searched.
 */
int debug_dwo_find(const struct debug_search *s, const char *comp_dir, const char *name,
		   struct elf **ret, struct cairn_err *err)
{
	struct wanted w = {.split = true};
	const char *path = s->real_path, *slash = strrchr(name, '/');
	const char *file = slash ? slash + 1 : name;
	int len = dir_len(path), r = 0;
	*ret = NULL;
	if (name[0] == '/')
		r = try_path(s, name, &w, ret, err);
	else if (*comp_dir)
		r = try_printf(s, &w, ret, err, "%s/%s", comp_dir, name);
	if (r == 0 && name[0] != '/' && slash)
		r = try_printf(s, &w, ret, err, "%.*s/%s", len, path, name);
	if (r == 0)
		r = try_printf(s, &w, ret, err, "%.*s/%s", len, path, file);
	for (size_t i = 0; i < s->n_dirs && r == 0; i++)
		r = try_printf(s, &w, ret, err, "%s/%s", s->dirs[i], name[0] == '/' ? file : name);
	return r < 0 ? r : 0;
}

int debug_dwp_find(const struct debug_search *s, const struct elf *debug, struct elf **ret,
		   struct cairn_err *err)
{
	struct wanted w = {.split = true};
	const char *path = s->real_path;
	int len = dir_len(path);
	*ret = NULL;
	int r = try_printf(s, &w, ret, err, "%s.dwp", path);
	if (r == 0 && debug != s->main)
		r = try_printf(s, &w, ret, err, "%s.dwp", elf_path(debug));
	for (size_t i = 0; i < n_dirs(s) && r == 0; i++) {
		r = try_printf(s, &w, ret, err, "%s%s.dwp", dir_at(s, i), path);
		if (r == 0 && i < s->n_dirs)
			r = try_printf(s, &w, ret, err, "%s/%s.dwp", dir_at(s, i),
				       path + (len ? len + 1 : 0));
	}
	return r < 0 ? r : 0;
}
