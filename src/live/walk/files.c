/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/files.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "code/space.h"
#include "elf/elf.h"
#include "unwind/begin.h"

/* A file that cannot be opened is tried again after a second, after two, ... */
#define RETRY_MIN_NS UINT64_C(1000000000)
#define RETRY_MAX_NS UINT64_C(64000000000)
/* Windows in which no process has a file mapped: half an hour, unless it is told otherwise. */
enum { UNUSED_MAX = 30 };
/* Files that are kept and not run: a machine that builds programs runs thousands in half an hour. */
enum { IDLE_FILES_MAX = 256 };
/* Openings of a file while its content changes. */
enum { OPENINGS_MAX = 3 };

static void file_free(struct walk_file *f)
{
	if (!f)
		return;
	cairn_unwind_close(f->made);
	cairn_sidecar_close(f->sidecar);
	cairn_binary_close(f->bin);
	identity_free(&f->identity);
	free(f->bytes);
	free(f->path);
	free(f);
}

/* ---- the thread that makes tables ---- */

static bool is_as_it_was(const struct walk_file *f)
{
	int64_t written_ns;

	return identity_holds(&f->identity, f->bin, &written_ns);
}

/* Pages of a file that was read are its own processes' too, and are read again at need. */
static void release_pages(const struct walk_file *f)
{
	size_t size;
	const uint8_t *bytes = elf_whole(binary_main(f->bin), &size);

	elf_release(binary_main(f->bin), bytes, size);
}

static void make_table(struct walk_file *f)
{
	struct cairn_err err = {0};

	if (!f->bin)
		return;
	if (cairn_unwind_make(f->bin, 0, &f->made, &err) < 0)
		snprintf(f->note, sizeof(f->note), "%s", err.msg);
	release_pages(f);
	bool is_shorter = cairn_binary_shortened(f->bin) || identity_is_shorter(&f->identity);
	if (!is_shorter && is_as_it_was(f))
		return;
	/* The bytes that were read may be zeros, or half of another file. */
	cairn_unwind_close(f->made);
	f->made = NULL;
	snprintf(f->note, sizeof(f->note), "%s while it was being read",
		 is_shorter ? "became shorter" : "was written again");
}

static void *make_tables(void *ctx)
{
	struct walk_files *f = ctx;
	uint64_t one = 1;

	pthread_mutex_lock(&f->lock);
	while (!f->is_ending) {
		if (f->n_made == f->n_asked) {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		struct walk_file *file = f->asked[f->n_begun++];
		pthread_mutex_unlock(&f->lock);
		make_table(file);
		pthread_mutex_lock(&f->lock);
		f->n_made++;
		/* Never full: the caller reads it whenever it is not 0. */
		if (write(f->done_fd, &one, sizeof(one)) < 0)
			break;
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static int ask_for_table(struct walk_files *f, struct walk_file *file)
{
	int rc = 0;

	pthread_mutex_lock(&f->lock);
	if (f->n_taken == f->n_asked)
		f->n_taken = f->n_made = f->n_begun = f->n_asked = 0;
	if (f->n_asked == f->asked_cap) {
		size_t cap = f->asked_cap ? 2 * f->asked_cap : 64;
		struct walk_file **grown = realloc(f->asked, cap * sizeof(struct walk_file *));
		rc = grown ? 0 : -ENOMEM;
		f->asked = grown ? grown : f->asked;
		f->asked_cap = grown ? cap : f->asked_cap;
	}
	if (rc == 0)
		f->asked[f->n_asked++] = file;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

size_t files_n_waited_for(struct walk_files *f)
{
	pthread_mutex_lock(&f->lock);
	size_t n = f->n_asked - f->n_made;
	pthread_mutex_unlock(&f->lock);
	return n;
}

void files_hurry(struct walk_files *f, uint32_t number)
{
	struct walk_file *file = number < f->list.n ? f->list.p[number] : NULL;

	if (!file || file->is_hurried)
		return;
	file->is_hurried = true;
	pthread_mutex_lock(&f->lock);
	for (size_t i = f->n_begun; i < f->n_asked; i++)
		if (f->asked[i] == file) {
			memmove(f->asked + f->n_begun + 1, f->asked + f->n_begun,
				(i - f->n_begun) * sizeof(struct walk_file *));
			f->asked[f->n_begun] = file;
			break;
		}
	pthread_mutex_unlock(&f->lock);
}

/* ---- numbers ---- */

/* The begin of its code, in whole pages of a table: small numbers have room in a frame. */
static uint64_t base_of(const struct cairn_binary *bin)
{
	const struct elf_load *loads;
	size_t n = elf_loads(binary_main(bin), &loads);
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (loads[i].flags & PF_X && loads[i].at < base)
			base = loads[i].at;
	/* Most files are linked from 0 or a few megabytes on: their addresses stay as they are. */
	return base >> WALK_FILE_SHIFT && n ? base & ~UINT64_C(0xffff) : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void close_binary(struct walk_file *f)
{
	cairn_binary_close(f->bin);
	f->bin = NULL;
	identity_free(&f->identity);
}

/* Returns 0, also with a file that cannot be opened, -ENOMEM, or -ESTALE: it has changed. */
static int open_once(struct walk_file *f, int pid, const struct code_mapping *m,
		     struct cairn_err *err)
{
	int rc = code_open_mapped(pid, m, &f->bin, &f->bytes, err);

	if (rc < 0 || !f->bin || !m->ino)
		return rc;
	rc = identity_take(&f->identity, f->bin, err);
	if (rc < 0)
		close_binary(f);
	return rc == -ENOMEM || rc == -ESTALE ? rc : 0;
}

static int open_binary(struct walk_file *f, int pid, uint64_t time_ns, const struct code_mapping *m)
{
	struct cairn_err err = {0};
	int rc = -ESTALE;

	for (int i = 0; i < OPENINGS_MAX && rc == -ESTALE; i++)
		rc = open_once(f, pid, m, &err);
	if (rc == -ENOMEM)
		return rc;
	if (f->bin && identity_is_later(&f->identity, time_ns)) {
		close_binary(f);
		f->is_late = true;
		err_set(&err, -ESTALE, "it was written again after it was mapped");
	}
	if (f->bin)
		f->base = base_of(f->bin);
	else
		snprintf(f->note, sizeof(f->note), "%s", err.msg);
	return 0;
}

static struct walk_file *open_file(int pid, uint64_t time_ns, const struct code_mapping *m)
{
	struct walk_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->dev = m->dev;
	f->ino = m->ino;
	f->path = strdup(m->path);
	if (!f->path || open_binary(f, pid, time_ns, m) < 0) {
		file_free(f);
		return NULL;
	}
	return f;
}

/* The facts of a file by which the kernel's program makes segments itself. */
static struct walk_inode_file inode_file(uint32_t number, const struct walk_file *f)
{
	bool is_ready = f->pages.n > 0;
	struct walk_inode_file to = {.n_pages = is_ready ? f->pages.n : 0};
	uint64_t frame = (uint64_t)number << WALK_FILE_SHIFT;
	const struct elf_load *loads;
	size_t n = f->bin ? elf_loads(binary_main(f->bin), &loads) : 0, n_to = 0;

	to.first_page = is_ready || f->is_made ? f->pages.first : WALK_NO_PAGES;
	for (size_t i = 0; i < n && n_to < WALK_INODE_LOADS; i++) {
		const struct elf_load *l = &loads[i];
		uint64_t at = l->at - l->foff - f->base;
		if (!(l->flags & PF_X) || (l->at - f->base + l->n_bytes) >> WALK_FILE_SHIFT)
			continue;
		to.loads[n_to].from = l->foff & ~UINT64_C(4095);
		to.loads[n_to].to = l->foff + l->n_bytes;
		to.loads[n_to++].at = frame + at;
	}
	to.size = f->identity.size;
	to.written_s = (uint64_t)f->identity.written_s;
	to.written_ns = f->identity.written_ns;
	return to;
}

/* Without room for it the reports of its mappings are waited for. */
static void tell_inode(const struct walk_files *f, uint32_t number)
{
	const struct walk_file *file = f->list.p[number];
	struct walk_inode key = {(uint64_t)major(file->dev) << 20 | minor(file->dev), file->ino};
	struct walk_inode_file value;

	if (f->inodes_fd < 0 || file->is_replaced)
		return;
	/* Another file may have the inode of one that could not be opened. */
	if (!file->bin) {
		bpf_map_delete_elem(f->inodes_fd, &key);
		return;
	}
	value = inode_file(number, file);
	bpf_map_update_elem(f->inodes_fd, &key, &value, BPF_ANY);
}

void files_tell_kernel(struct walk_files *f, int inodes_fd)
{
	f->inodes_fd = inodes_fd;
	for (size_t i = 1; i < f->list.n; i++)
		tell_inode(f, (uint32_t)i);
}

static bool is_file(const struct code_mapping *m)
{
	return (m->ino && m->path[0] == '/') || strcmp(m->path, "[vdso]") == 0;
}

/* The vDSO is the kernel's, and the same for all. */
static uint64_t key_of(const struct code_mapping *m)
{
	uint64_t parts[2] = {(uint64_t)m->dev, (uint64_t)m->ino};

	return m->ino ? map_hash_bytes(parts, sizeof(parts)) : 1;
}

/* The last one of that inode, and the key under which it is, or is to be. */
static struct walk_file *find_file(const struct walk_files *f, const struct code_mapping *m,
				   uint64_t *ret_key, uint64_t *ret_number)
{
	for (*ret_key = key_of(m); map_get(&f->ids, *ret_key, ret_number); ++*ret_key) {
		struct walk_file *file = f->list.p[*ret_number];
		if (file->dev == m->dev && file->ino == m->ino && !file->is_spare)
			return file;
	}
	return NULL;
}

/* Whether a mapping of its inode is one of what was opened. */
static bool is_that_one(const struct walk_file *file, uint64_t time_ns,
			const struct code_mapping *m)
{
	int64_t written_ns;

	if (!file->bin)
		return !file->is_released && strcmp(file->path, m->path) == 0 &&
		       now_ns() < file->retry_ns;
	if (identity_holds(&file->identity, file->bin, &written_ns))
		return true;
	/* A file that was mapped before it was written is the one that was opened. */
	return time_ns && identity_real_ns(time_ns) < written_ns;
}

/* Longer than for @before, which was such a file of the same inode; NULL: there was none. */
static void set_retry(struct walk_file *file, const struct walk_file *before)
{
	bool again = before && before->wait_ns && strcmp(before->path, file->path) == 0;
	uint64_t wait = again ? 2 * before->wait_ns : RETRY_MIN_NS;

	file->wait_ns = wait < RETRY_MAX_NS ? wait : RETRY_MAX_NS;
	file->retry_ns = now_ns() + file->wait_ns;
}

/* The number of @file, which it owns from now on. */
static int give_number(struct walk_files *f, struct walk_file *file, uint32_t *ret)
{
	*ret = (uint32_t)f->list.n;
	if (f->spare.n) {
		*ret = f->spare.p[--f->spare.n];
		file_free(f->list.p[*ret]);
		f->list.p[*ret] = file;
		return 0;
	}
	if (VEC_ADD(&f->list, file))
		return 0;
	file_free(file);
	return -ENOMEM;
}

static int add_file(struct walk_files *f, struct walk_file *file, uint64_t key, uint32_t *ret)
{
	if (give_number(f, file, ret) < 0 || map_put(&f->ids, key, *ret) < 0 ||
	    ask_for_table(f, file) < 0)
		return -ENOMEM;
	return 0;
}

/* It failed once more: it stays what it is. */
static bool is_still_missing(struct walk_file *known, struct walk_file *file)
{
	/* One that was let go has rows, which are no other file's. */
	if (!known || known->bin || known->is_released || file->bin ||
	    strcmp(known->path, file->path) != 0)
		return false;
	known->wait_ns = file->wait_ns;
	known->retry_ns = file->retry_ns;
	file_free(file);
	return true;
}

int files_number(struct walk_files *f, int pid, uint64_t time_ns, const struct code_mapping *m,
		 uint32_t *ret, struct cairn_err *err)
{
	uint64_t key, number = 0;

	*ret = 0;
	if (!is_file(m))
		return 0;
	struct walk_file *known = find_file(f, m, &key, &number);
	*ret = (uint32_t)number;
	if (known && is_that_one(known, time_ns, m))
		return 0;
	if (f->list.n > WALK_FILE_MASK && !f->spare.n) {
		*ret = 0;
		return 0;
	}
	struct walk_file *file = open_file(pid, time_ns, m);
	if (!file)
		return err_nomem(err, "a mapped file");
	/* A file that was written too late for this mapping is there for the next one. */
	if (!file->bin && !file->is_late)
		set_retry(file, known);
	if (is_still_missing(known, file))
		return 0;
	if (known)
		known->is_replaced = true;
	if (add_file(f, file, key, ret) < 0)
		return err_nomem(err, "a mapped file");
	tell_inode(f, *ret);
	return 0;
}

bool files_is_as_it_ran(const struct walk_file *file)
{
	return !file->bin || (!file->is_written && is_as_it_was(file));
}

int files_find_written(struct walk_files *f, int (*fn)(void *ctx, uint32_t number), void *ctx)
{
	int rc = 0;

	for (size_t i = 1; i < f->list.n && rc == 0; i++) {
		struct walk_file *file = f->list.p[i];
		if (file->is_replaced || file->is_written || files_is_as_it_ran(file))
			continue;
		file->is_written = true;
		rc = fn(ctx, (uint32_t)i);
	}
	return rc;
}

/* The age, in windows, from which on files go, so that no more than IDLE_FILES_MAX stay. */
static unsigned int age_of_those_that_go(const struct walk_files *f)
{
	size_t n_of_age[UNUSED_MAX] = {0}, n_idle = 0;

	for (size_t i = 1; i < f->list.n; i++) {
		const struct walk_file *file = f->list.p[i];
		if (file->bin && file->is_made && file->n_unused < UNUSED_MAX)
			n_of_age[file->n_unused]++;
	}
	for (unsigned int age = 1; age < UNUSED_MAX; age++) {
		n_idle += n_of_age[age];
		if (n_idle > IDLE_FILES_MAX)
			return age;
	}
	return UNUSED_MAX;
}

static void count_windows(struct walk_files *f)
{
	for (size_t i = 1; i < f->list.n; i++) {
		struct walk_file *file = f->list.p[i];
		file->n_unused = file->is_used ? 0 : file->n_unused + 1;
		file->is_used = false;
	}
}

/* A file that is there can be run again; it has another number then. */
static bool is_over(const struct walk_file *f, unsigned int unused_max)
{
	bool is_gone = f->is_replaced || f->is_written || identity_is_deleted(&f->identity);

	if (is_gone || unused_max < 2)
		unused_max = 2;
	return f->bin && f->is_made && f->n_unused >= unused_max;
}

/* One call later: nobody finds the file since it was released, and what did before has ended. */
static void drop_rows(struct walk_file *file, struct walk_tables *tables)
{
	if (!file->is_released || file->n_unused < 3 || !file->pages.n)
		return;
	tables_drop(tables, file->pages);
	file->pages = (struct walk_pages){0};
}

/* One call after its rows were dropped. Without memory for it the number is used no more. */
static void spare_number(struct walk_files *f, uint32_t number)
{
	struct walk_file *file = f->list.p[number];
	bool is_over = file->is_released || (!file->bin && file->is_made);

	if (file->is_spare || !is_over || file->pages.n || file->n_unused < 4)
		return;
	/* Nobody finds it any more: it has no inode. */
	file->is_spare = file->is_replaced = VEC_ADD(&f->spare, number);
}

void files_release_unused(struct walk_files *f, struct walk_tables *tables)
{
	unsigned int unused_max;

	count_windows(f);
	unused_max = age_of_those_that_go(f);
	for (size_t i = 1; i < f->list.n; i++) {
		struct walk_file *file = f->list.p[i];
		spare_number(f, (uint32_t)i);
		drop_rows(file, tables);
		/* Names of a window were read from it. */
		if (file->bin && file->is_made) {
			binary_forget_symbols(file->bin);
			release_pages(file);
		}
		if (is_over(file, unused_max)) {
			close_binary(file);
			file->is_released = true;
			tell_inode(f, (uint32_t)i);
		}
	}
}

/* A mapping begins at a whole page, and so before the first byte of its segment. */
static bool place_of(const struct cairn_binary *bin, uint64_t off, uint64_t *ret)
{
	const struct elf_load *loads;
	size_t n = elf_loads(binary_main(bin), &loads);

	for (size_t i = 0; i < n; i++) {
		const struct elf_load *l = &loads[i];
		if (l->flags & PF_X && off >= (l->foff & ~UINT64_C(4095)) &&
		    off < l->foff + l->n_bytes) {
			*ret = l->at - l->foff + off;
			return true;
		}
	}
	return false;
}

uint64_t files_at(const struct walk_files *f, uint32_t number, const struct code_mapping *m)
{
	uint64_t at = m->off;

	if (!number)
		return 0;
	const struct walk_file *file = f->list.p[number];
	if (file->bin && !place_of(file->bin, m->off, &at))
		return 0;
	at -= file->base;
	return at >> WALK_FILE_SHIFT ? 0 : (uint64_t)number << WALK_FILE_SHIFT | at;
}

bool files_gdb_list(struct walk_files *f, uint32_t number, uint64_t *ret)
{
	struct walk_file *file = f->list.p[number];
	const struct elf_symbol *symbols;
	size_t n;

	/* One that could not be opened yet is asked again. */
	if (!file->bin)
		return false;
	if (!file->is_searched && elf_symbols(binary_main(file->bin), &symbols, &n, NULL) == 0)
		for (size_t i = 0; i < n && !file->has_gdb_list; i++) {
			file->has_gdb_list = !strcmp(symbols[i].name, "__jit_debug_descriptor");
			file->gdb_list = symbols[i].at.v - file->base;
		}
	file->is_searched = true;
	*ret = file->gdb_list;
	return file->has_gdb_list;
}

bool files_begins_context(const struct walk_files *f, uint64_t frame)
{
	uint64_t number = frame >> WALK_FILE_SHIFT & WALK_FILE_MASK;
	const struct walk_file *file = number < f->list.n ? f->list.p[number] : NULL;
	const uint8_t *code;
	const char *why;
	size_t n;

	if (frame & (WALK_KERNEL | WALK_RAW) || !file || !file->bin)
		return false;
	struct cairn_vaddr from = {(frame & WALK_AT_MASK) + file->base + 1 - BEGIN_BEFORE};
	return elf_code_at(binary_main(file->bin), from, &code, &n) &&
	       n >= BEGIN_BEFORE + BEGIN_AFTER && begin_is_context(code + BEGIN_BEFORE, &why);
}

/* ---- tables ---- */

/* Only a lack of memory is an error: without a table stacks end in the file, and say so. */
static int put_table(struct walk_file *file, struct walk_tables *tables, struct cairn_err *err)
{
	struct unwind_table table;
	size_t size;
	int rc;

	file->is_made = true;
	if (!file->made)
		return 0;
	const void *bytes = cairn_unwind_bytes(file->made, &size);
	rc = unwind_table_open(bytes, size, file->path, "unwind table", &table, err);
	if (rc == 0)
		rc = tables_add(tables, &table, file->base, &file->pages, err);
	cairn_unwind_close(file->made);
	file->made = NULL;
	if (rc < 0 && rc != -ENOMEM) {
		snprintf(file->note, sizeof(file->note), "%s", err->msg);
		rc = 0;
	}
	return rc;
}

static uint32_t number_of(const struct walk_files *f, const struct walk_file *file)
{
	for (size_t i = f->list.n; i-- > 1;)
		if (f->list.p[i] == file)
			return (uint32_t)i;
	return 0;
}

int files_put_tables(struct walk_files *f, struct walk_tables *tables,
		     void (*on_ready)(void *ctx, uint32_t number, const struct walk_file *file),
		     void *ctx, struct cairn_err *err)
{
	uint64_t n;
	int rc = 0;

	while (read(f->done_fd, &n, sizeof(n)) > 0)
		;
	pthread_mutex_lock(&f->lock);
	while (rc == 0 && f->n_taken < f->n_made) {
		struct walk_file *file = f->asked[f->n_taken++];
		pthread_mutex_unlock(&f->lock);
		rc = put_table(file, tables, err);
		if (rc == 0) {
			tell_inode(f, number_of(f, file));
			on_ready(ctx, number_of(f, file), file);
		}
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

/* ---- the whole ---- */

int files_init(struct walk_files *f, struct cairn_err *err)
{
	*f = (struct walk_files){.lock = PTHREAD_MUTEX_INITIALIZER,
				 .changed = PTHREAD_COND_INITIALIZER,
				 .inodes_fd = -1};
	f->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->done_fd < 0)
		return err_set(err, -errno, "eventfd: %s", strerror(errno));
	if (!VEC_ADD(&f->list, NULL))
		return err_nomem(err, "mapped files");
	int rc = pthread_create(&f->thread, NULL, make_tables, f);
	if (rc)
		return err_set(err, -rc, "a thread for unwind tables: %s", strerror(rc));
	f->has_thread = true;
	return 0;
}

void files_fini(struct walk_files *f)
{
	pthread_mutex_lock(&f->lock);
	f->is_ending = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (f->has_thread)
		pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->list.n; i++)
		file_free(f->list.p[i]);
	VEC_FREE(&f->list);
	VEC_FREE(&f->spare);
	map_fini(&f->ids);
	free(f->asked);
	if (f->done_fd >= 0)
		close(f->done_fd);
}
