/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary with its debug files: the public face of this module. */
#include <cairn/binary.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/inputs.h"
#include "base/opts.h"
#include "base/scope.h"
#include "elf/debug_files.h"
#include "elf/functions.h"
#include "elf/package.h"
#include "elf/segments.h"

#define DPKG_LISTS "/var/lib/dpkg/info"

/* A file with a part of the DWARF that its reader has. */
struct part {
	char *path;
	struct elf_origin origin;
};

/* Data made on first use; in a separate allocation, because it changes in a const binary. */
struct lazy {
	pthread_mutex_t lock;
	atomic_bool functions_ready;
	struct functions functions;
	bool hinted;
	struct search_log log;
	pthread_mutex_t search_lock;
	atomic_bool has_searched; /* for the debug files */
	struct elf *debug, *alt;
	VEC(struct part) parts;
	pthread_mutex_t attach_lock;
	atomic_bool has_attached;
	void *attached;
	void (*attached_done)(void *attached);
};

struct cairn_binary {
	char *path;
	char *real_path; /* for the search and the hint */
	/* The root of another mount namespace that it is a path in; NULL and -1 when it is ours. */
	char *root;
	int root_fd;
	char **debug_dirs;
	size_t n_debug_dirs;
	struct elf *main;
	struct lazy *lazy;
};

static struct cairn_binary *binary_new(const char *path, struct cairn_err *err)
{
	struct cairn_binary *bin = calloc(1, sizeof(*bin));
	if (bin) {
		bin->root_fd = -1;
		bin->path = strdup(path);
		bin->lazy = calloc(1, sizeof(*bin->lazy));
	}
	if (!bin || !bin->path || !bin->lazy) {
		cairn_binary_close(bin);
		err_nomem(err, "a binary");
		return NULL;
	}
	pthread_mutex_init(&bin->lazy->lock, NULL);
	pthread_mutex_init(&bin->lazy->search_lock, NULL);
	pthread_mutex_init(&bin->lazy->attach_lock, NULL);
	return bin;
}

void cairn_binary_close(struct cairn_binary *bin)
{
	if (!bin)
		return;
	if (bin->lazy) {
		elf_unref(bin->lazy->alt);
		if (bin->lazy->debug != bin->main)
			elf_unref(bin->lazy->debug);
		if (bin->lazy->attached)
			bin->lazy->attached_done(bin->lazy->attached);
		pthread_mutex_destroy(&bin->lazy->attach_lock);
		pthread_mutex_destroy(&bin->lazy->search_lock);
		pthread_mutex_destroy(&bin->lazy->lock);
		functions_fini(&bin->lazy->functions);
		VEC_FREE(&bin->lazy->log.text);
		for (size_t i = 0; i < bin->lazy->parts.n; i++)
			free(bin->lazy->parts.p[i].path);
		VEC_FREE(&bin->lazy->parts);
	}
	elf_unref(bin->main);
	for (size_t i = 0; i < bin->n_debug_dirs; i++)
		free(bin->debug_dirs[i]);
	free(bin->debug_dirs);
	if (bin->root_fd >= 0)
		close(bin->root_fd);
	free(bin->root);
	free(bin->lazy);
	free(bin->real_path);
	free(bin->path);
	free(bin);
}

/* The data that later searches need: those for split DWARF. */
static int keep_search(struct cairn_binary *bin, const char *root, int root_fd,
		       const struct cairn_binary_opts *opts, struct cairn_err *err)
{
	if (root) {
		bin->root = strdup(root);
		bin->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
		if (!bin->root || bin->root_fd < 0)
			return err_nomem(err, "the root of a process");
	}
	bin->debug_dirs = calloc(opts->n_debug_dirs + 1, sizeof(*bin->debug_dirs));
	for (size_t i = 0; bin->debug_dirs && i < opts->n_debug_dirs; i++) {
		bin->debug_dirs[i] = strdup(opts->debug_dirs[i]);
		if (!bin->debug_dirs[i])
			return err_nomem(err, "debug directories");
		bin->n_debug_dirs++;
	}
	return bin->debug_dirs ? 0 : err_nomem(err, "debug directories");
}

static struct debug_search search_of(const struct cairn_binary *bin, struct search_log *log)
{
	return (struct debug_search){.main = bin->main,
				     .real_path = bin->real_path ? bin->real_path : bin->path,
				     .dirs = (const char *const *)bin->debug_dirs,
				     .n_dirs = bin->n_debug_dirs,
				     .root = bin->root,
				     .root_fd = bin->root_fd,
				     .log = log};
}

static int search(const struct cairn_binary *bin, struct debug_search *s, const char *debug_file,
		  struct cairn_err *err)
{
	struct lazy *lazy = bin->lazy;
	int r = 0;
	if (debug_file) {
		r = debug_file_use(s, debug_file, &lazy->debug, err);
	} else if (elf_has_dwarf(bin->main)) {
		lazy->debug = bin->main;
		log_line(s->log, "%s: has its own .debug_info", bin->path);
	} else {
		log_line(s->log, "%s: has no .debug_info", bin->path);
		r = debug_file_find(s, &lazy->debug, err);
	}
	if (r == 0 && lazy->debug)
		r = debug_alt_find(s, lazy->debug, &lazy->alt, err);
	if (r == 0 && s->log->out_of_memory)
		r = err_nomem(err, "the search log");
	return r;
}

static int find_debug(const struct cairn_binary *bin, const char *debug_file, struct cairn_err *err)
{
	struct debug_search s = search_of(bin, &bin->lazy->log);
	int r = search(bin, &s, debug_file, err);
	atomic_store_explicit(&bin->lazy->has_searched, true, memory_order_release);
	return r;
}

/* The file with the DWARF, looked for now where that was left for later; NULL: there is none. */
static struct elf *debug_of(const struct cairn_binary *bin)
{
	struct lazy *lazy = bin->lazy;
	if (!atomic_load_explicit(&lazy->has_searched, memory_order_acquire)) {
		pthread_mutex_lock(&lazy->search_lock);
		/*
		 * A file that could not be found for lack of memory counts as missing; the log says
		 * so.
		 */
		if (!lazy->has_searched)
			find_debug(bin, NULL, NULL);
		pthread_mutex_unlock(&lazy->search_lock);
	}
	return lazy->debug;
}

enum wanted {
	ALL,
	FOR_LATER, /* the debug files are looked for when a caller needs them */
	FOR_TYPES, /* of BPF objects, too */
};

static int open_fd(int fd, const char *path, char *real_path, const char *root, int root_fd,
		   const struct cairn_binary_opts *user_opts, enum wanted wanted,
		   struct cairn_binary **ret, struct cairn_err *err)
{
	struct cairn_binary_opts opts;
	struct cairn_binary *bin = binary_new(path, err);
	if (!bin) {
		free(real_path);
		return -ENOMEM;
	}
	bin->real_path = real_path;
	int r = opts_take(&opts, sizeof(opts), user_opts, err);
	if (r == 0)
		r = keep_search(bin, root, root_fd, &opts, err);
	if (r == 0)
		r = wanted == FOR_TYPES ? elf_open_fd_for_types(fd, path, &bin->main, err)
					: elf_open_fd(fd, path, &bin->main, err);
	if (r == 0 && wanted != FOR_LATER)
		r = find_debug(bin, opts.debug_file, err);
	if (r < 0) {
		cairn_binary_close(bin);
		return r;
	}
	*ret = bin;
	return 0;
}

static int open_path(const char *path, const struct cairn_binary_opts *opts, enum wanted wanted,
		     struct cairn_binary **ret, struct cairn_err *err)
{
	/* Not blocking: a FIFO is refused, not waited for. */
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		int code = -errno;
		return err_set(err, code, "%s: %s", path, strerror(-code));
	}
	return open_fd(fd, path, realpath(path, NULL), NULL, -1, opts, wanted, ret, err);
}

int cairn_binary_open(const char *path, const struct cairn_binary_opts *opts,
		      struct cairn_binary **ret, struct cairn_err *err)
{
	return open_path(path, opts, ALL, ret, err);
}

int binary_open_fd(int fd, const char *path, const struct cairn_binary_opts *opts,
		   struct cairn_binary **ret, struct cairn_err *err)
{
	return open_fd(fd, path, realpath(path, NULL), NULL, -1, opts, ALL, ret, err);
}

int binary_open_alone(const char *path, struct cairn_binary **ret, struct cairn_err *err)
{
	return open_path(path, NULL, FOR_LATER, ret, err);
}

int binary_open_for_types(const char *path, struct cairn_binary **ret, struct cairn_err *err)
{
	return open_path(path, NULL, FOR_TYPES, ret, err);
}

static int no_exe(int pid, int code, struct cairn_err *err)
{
	char dir[32];
	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	if (code == -ENOENT && access(dir, F_OK) < 0)
		return err_set(err, -ESRCH, "process %d: no such process", pid);
	if (code == -ENOENT)
		return err_set(err, -ENOENT,
			       "process %d: has no executable (a kernel thread or a "
			       "zombie)",
			       pid);
	return err_set(err, code, "%s/exe: %s", dir, strerror(-code));
}

static bool read_link(const char *link, char buf[static PATH_MAX])
{
	ssize_t n = readlink(link, buf, PATH_MAX - 1);
	buf[n > 0 ? n : 0] = 0;
	return n > 0;
}

/*
 * The path that /proc/PID/exe is a link to, as the process sees it, for files beside it; NULL when
 * it is not known. After chroot(2) both links are shown as we see them:
 *
 *	exe  /srv/jail/bin/prog (deleted)
 *	root /srv/jail				-> /bin/prog
 */
static char *exe_path(const char *exe, const char *root)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX], top[PATH_MAX];
	if (!read_link(exe, path))
		return NULL;
	size_t n = strlen(path), tail = sizeof(deleted) - 1;
	if (n > tail && !strcmp(path + n - tail, deleted))
		path[n - tail] = 0;
	size_t skip = read_link(root, top) && strcmp(top, "/") ? strlen(top) : 0;
	if (strncmp(path, top, skip) || path[skip] != '/')
		skip = 0;
	return strdup(path + skip);
}

static bool same_file(int fd, const char *path)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int cairn_binary_open_pid(int pid, const struct cairn_binary_opts *opts, struct cairn_binary **ret,
			  struct cairn_err *err)
{
	char exe[32], root[32];
	if (pid <= 0)
		return err_set(err, -ESRCH, "process %d: no such process", pid);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	SCOPE_CLOSE int fd = open(exe, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return no_exe(pid, -errno, err);
	SCOPE_CLOSE int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool other_root = root_fd >= 0 && !same_file(root_fd, "/");
	return open_fd(fd, exe, exe_path(exe, root), other_root ? root : NULL,
		       other_root ? root_fd : -1, opts, ALL, ret, err);
}

int binary_open_mem(const void *bytes, size_t size, const char *name, struct cairn_binary **ret,
		    struct cairn_err *err)
{
	struct cairn_binary *bin = binary_new(name, err);
	if (!bin)
		return -ENOMEM;
	int r = elf_open_mem(bytes, size, name, &bin->main, err);
	if (r < 0) {
		cairn_binary_close(bin);
		return r;
	}
	if (elf_has_dwarf(bin->main))
		bin->lazy->debug = bin->main;
	bin->lazy->has_searched = true;
	*ret = bin;
	return 0;
}

int binary_with_debug(const struct cairn_binary *bin, struct elf *debug, struct cairn_binary **ret,
		      struct cairn_err *err)
{
	struct cairn_binary *made = binary_new(bin->path, err);
	if (!made) {
		elf_unref(debug);
		return -ENOMEM;
	}
	made->main = elf_ref(bin->main);
	made->lazy->debug = debug;
	made->lazy->has_searched = true;
	*ret = made;
	return 0;
}

static int attach(const struct cairn_binary *bin,
		  int (*make)(const struct cairn_binary *bin, void **ret, struct cairn_err *err),
		  void (*done)(void *attached), struct cairn_err *err)
{
	struct lazy *lazy = bin->lazy;
	int rc = 0;
	pthread_mutex_lock(&lazy->attach_lock);
	if (!lazy->has_attached) {
		rc = make(bin, &lazy->attached, err);
		lazy->attached_done = done;
		atomic_store_explicit(&lazy->has_attached, rc >= 0, memory_order_release);
	}
	pthread_mutex_unlock(&lazy->attach_lock);
	return rc;
}

int binary_attached(const struct cairn_binary *bin,
		    int (*make)(const struct cairn_binary *bin, void **ret, struct cairn_err *err),
		    void (*done)(void *attached), void **ret, struct cairn_err *err)
{
	struct lazy *lazy = bin->lazy;
	int rc = atomic_load_explicit(&lazy->has_attached, memory_order_acquire)
			 ? 0
			 : attach(bin, make, done, err);
	*ret = rc < 0 ? NULL : lazy->attached;
	return rc < 0 ? rc : 0;
}

const char *cairn_binary_path(const struct cairn_binary *bin)
{
	return bin->path;
}

bool cairn_binary_has_dwarf(const struct cairn_binary *bin)
{
	return debug_of(bin) != NULL;
}

const char *cairn_binary_debug_path(const struct cairn_binary *bin)
{
	const struct elf *debug = debug_of(bin);
	return debug ? elf_path(debug) : NULL;
}

static void add_hint(const struct cairn_binary *bin, struct search_log *log)
{
	char package[256], debug_package[272];
	if (!bin->real_path || bin->root ||
	    !package_of(DPKG_LISTS, bin->real_path, package, sizeof(package))) {
		log_line(log,
			 "No installed package is known to own it: name its debug file or a debug "
			 "directory, put its sidecar (made by cairn sidecar of the unstripped "
			 "file) beside it as "
			 "NAME.cairn, or build it with -g");
		return;
	}
	debug_package_of(package, debug_package, sizeof(debug_package));
	size_t n = strlen(debug_package);
	bool dbgsym = n > 7 && !strcmp(debug_package + n - 7, "-dbgsym");
	log_line(log, "Debian package %s owns it: install %s%s", package, debug_package,
		 dbgsym ? " (from the archive debian-debug)" : "");
}

const char *cairn_binary_search_log(const struct cairn_binary *bin)
{
	struct lazy *lazy = bin->lazy;
	bool has_debug = debug_of(bin);
	pthread_mutex_lock(&lazy->lock);
	if (!has_debug && !lazy->hinted)
		add_hint(bin, &lazy->log);
	lazy->hinted = true;
	pthread_mutex_unlock(&lazy->lock);
	return lazy->log.text.n ? lazy->log.text.p : "";
}

const uint8_t *cairn_binary_build_id(const struct cairn_binary *bin, size_t *ret_len)
{
	return elf_build_id(bin->main, ret_len);
}

bool cairn_binary_is_relocatable(const struct cairn_binary *bin)
{
	return elf_is_relocatable(bin->main);
}

bool cairn_binary_is_kernel(const struct cairn_binary *bin)
{
	return elf_is_kernel(bin->main);
}

bool cairn_binary_foff(const struct cairn_binary *bin, struct cairn_vaddr at,
		       struct cairn_foff *ret)
{
	return elf_foff(bin->main, at, ret);
}

bool cairn_binary_vaddr(const struct cairn_binary *bin, struct cairn_foff off,
			struct cairn_vaddr *ret)
{
	return elf_vaddr(bin->main, off, ret);
}

bool cairn_binary_section_of(const struct cairn_binary *bin, struct cairn_vaddr at,
			     const char **ret_name, uint64_t *ret_off)
{
	const struct section *s = elf_section_holding(bin->main, at);
	if (!s)
		return false;
	*ret_name = s->file.name;
	*ret_off = at.v - s->file.addr.v;
	return true;
}

/* .symtab of the binary, else of the debug file, else .dynsym of the binary. */
struct elf *binary_symbol_file(const struct cairn_binary *bin)
{
	struct elf *debug = elf_has_symtab(bin->main) ? NULL : debug_of(bin);
	return debug && elf_has_symtab(debug) ? debug : bin->main;
}

int binary_functions(const struct cairn_binary *bin, const struct functions **ret,
		     struct cairn_err *err)
{
	struct lazy *lazy = bin->lazy;
	int rc = 0;
	if (!atomic_load_explicit(&lazy->functions_ready, memory_order_acquire)) {
		pthread_mutex_lock(&lazy->lock);
		if (!lazy->functions_ready)
			rc = functions_init(&lazy->functions, binary_symbol_file(bin), NULL);
		if (rc == 0)
			atomic_store_explicit(&lazy->functions_ready, true, memory_order_release);
		pthread_mutex_unlock(&lazy->lock);
	}
	/* Damaged symbols are no symbols: an address without a name is still an address. */
	*ret = rc == 0 ? &lazy->functions : NULL;
	return rc == -ENOMEM ? err_nomem(err, "function symbols") : 0;
}

int binary_functions_need(const struct cairn_binary *bin, const struct functions **ret,
			  struct cairn_err *err)
{
	const struct elf_symbol *symbols;
	size_t n;
	int rc = binary_functions(bin, ret, err);
	if (rc == 0 && !*ret)
		rc = elf_symbols(binary_symbol_file(bin), &symbols, &n, err);
	return rc == 0 && !*ret ? err_nomem(err, "function symbols") : rc;
}

void binary_forget_symbols(const struct cairn_binary *bin)
{
	struct lazy *lazy = bin->lazy;

	pthread_mutex_lock(&lazy->lock);
	atomic_store_explicit(&lazy->functions_ready, false, memory_order_release);
	functions_fini(&lazy->functions);
	pthread_mutex_unlock(&lazy->lock);
	elf_forget_symbols(bin->main);
	if (lazy->debug && lazy->debug != bin->main)
		elf_forget_symbols(lazy->debug);
}

bool binary_has_symtab(const struct cairn_binary *bin)
{
	return elf_has_symtab(binary_symbol_file(bin));
}

bool cairn_binary_symbol_of(const struct cairn_binary *bin, struct cairn_vaddr at,
			    const char **ret_name, struct cairn_vaddr *ret_start)
{
	const struct functions *functions;
	const struct elf_symbol *s = binary_functions(bin, &functions, NULL) == 0 && functions
					     ? functions_at(functions, at)
					     : NULL;
	if (!s)
		return false;
	*ret_name = s->name;
	*ret_start = s->at;
	return true;
}

bool cairn_binary_imports(const struct cairn_binary *bin, const char *name)
{
	return elf_imports(bin->main, name);
}

struct elf *binary_main(const struct cairn_binary *bin)
{
	return bin->main;
}

struct elf *binary_debug(const struct cairn_binary *bin)
{
	return debug_of(bin);
}

struct elf *binary_separate_debug(const struct cairn_binary *bin)
{
	struct lazy *lazy = bin->lazy;
	bool has_searched = atomic_load_explicit(&lazy->has_searched, memory_order_acquire);
	return has_searched && lazy->debug != bin->main ? lazy->debug : NULL;
}

struct elf *binary_alt(const struct cairn_binary *bin)
{
	debug_of(bin);
	return bin->lazy->alt;
}

/* A file with a part of the DWARF may have been closed with its reader. */
static bool part_is_shorter(const struct part *part)
{
	const struct elf_origin *o = &part->origin;
	struct stat st;
	return stat(part->path, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino &&
	       (uint64_t)st.st_size < o->size;
}

static const char *shorter_part(struct lazy *lazy)
{
	const char *name = NULL;
	pthread_mutex_lock(&lazy->lock);
	for (size_t i = 0; i < lazy->parts.n && !name; i++)
		if (part_is_shorter(&lazy->parts.p[i]))
			name = lazy->parts.p[i].path;
	pthread_mutex_unlock(&lazy->lock);
	return name;
}

const char *cairn_binary_shortened(const struct cairn_binary *bin)
{
	struct lazy *lazy = bin->lazy;
	const char *name = elf_shortened(bin->main);
	/* If no caller has searched for debug files, nothing is made of them. */
	if (!atomic_load_explicit(&lazy->has_searched, memory_order_acquire))
		return name;
	if (!name && lazy->debug)
		name = elf_shortened(lazy->debug);
	if (!name && lazy->alt)
		name = elf_shortened(lazy->alt);
	return name ? name : shorter_part(lazy);
}

int binary_check_inputs(const struct cairn_binary *bin, struct cairn_err *err)
{
	return input_check(cairn_binary_shortened(bin), err);
}

static int note_part(const struct cairn_binary *bin, const struct elf *e, struct cairn_err *err)
{
	struct lazy *lazy = bin->lazy;
	struct part part = {strdup(elf_path(e)), *elf_origin(e)};
	pthread_mutex_lock(&lazy->lock);
	bool ok = part.path && VEC_ADD(&lazy->parts, part);
	pthread_mutex_unlock(&lazy->lock);
	if (ok)
		return 0;
	free(part.path);
	return err_nomem(err, "the files of a binary");
}

/* The log becomes the caller's string. */
static int hand_out(int r, const struct cairn_binary *bin, struct search_log *log, struct elf **elf,
		    char **ret_log, struct cairn_err *err)
{
	if (r == 0 && log->out_of_memory)
		r = err_nomem(err, "the search log");
	if (r == 0 && *elf)
		r = note_part(bin, *elf, err);
	if (r < 0) {
		elf_unref(*elf);
		*elf = NULL;
	}
	*ret_log = log->text.p;
	return r;
}

int binary_open_dwo(const struct cairn_binary *bin, const char *comp_dir, const char *name,
		    struct elf **ret_elf, char **ret_log, struct cairn_err *err)
{
	struct search_log log = {0};
	struct debug_search s = search_of(bin, &log);
	return hand_out(debug_dwo_find(&s, comp_dir, name, ret_elf, err), bin, &log, ret_elf,
			ret_log, err);
}

int binary_open_dwp(const struct cairn_binary *bin, struct elf **ret_elf, char **ret_log,
		    struct cairn_err *err)
{
	struct search_log log = {0};
	struct debug_search s = search_of(bin, &log);
	return hand_out(debug_dwp_find(&s, debug_of(bin), ret_elf, err), bin, &log, ret_elf,
			ret_log, err);
}

int binary_visit_origins(const struct cairn_binary *bin,
			 int (*visit)(void *ctx, const char *path, const struct elf_origin *origin),
			 void *ctx)
{
	struct elf *files[] = {bin->main, debug_of(bin), binary_alt(bin)};
	struct lazy *lazy = bin->lazy;
	int r = 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !r; i++)
		if (files[i])
			r = visit(ctx, elf_path(files[i]), elf_origin(files[i]));
	pthread_mutex_lock(&lazy->lock);
	for (size_t i = 0; i < lazy->parts.n && !r; i++)
		r = visit(ctx, lazy->parts.p[i].path, &lazy->parts.p[i].origin);
	pthread_mutex_unlock(&lazy->lock);
	return r;
}
