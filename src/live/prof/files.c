/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/files.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "code/space.h"
#include "elf/elf.h"

static void file_free(struct prof_file *f)
{
	if (!f)
		return;
	cairn_unwind_close(f->made);
	cairn_sidecar_close(f->sidecar);
	cairn_binary_close(f->bin);
	free(f->bytes);
	free(f->path);
	free(f);
}

/* ---- the thread that makes tables ---- */

static void make_table(struct prof_file *f)
{
	struct cairn_err err = {0};

	if (!f->bin)
		return;
	if (cairn_unwind_make(f->bin, 0, &f->made, &err) < 0)
		snprintf(f->note, sizeof(f->note), "%s", err.msg);
	if (!cairn_binary_shortened(f->bin))
		return;
	/* What was read may be zeros. */
	cairn_unwind_close(f->made);
	f->made = NULL;
	snprintf(f->note, sizeof(f->note), "became shorter while it was being read");
}

static void *make_tables(void *ctx)
{
	struct prof_files *f = ctx;
	uint64_t one = 1;

	pthread_mutex_lock(&f->lock);
	while (!f->is_ending) {
		if (f->n_made == f->n_asked) {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		struct prof_file *file = f->asked[f->n_begun++];
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

static int ask_for_table(struct prof_files *f, struct prof_file *file)
{
	int rc = 0;

	pthread_mutex_lock(&f->lock);
	if (f->n_asked == f->asked_cap) {
		size_t cap = f->asked_cap ? 2 * f->asked_cap : 64;
		struct prof_file **grown = realloc(f->asked, cap * sizeof(struct prof_file *));
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

bool files_are_waited_for(struct prof_files *f)
{
	pthread_mutex_lock(&f->lock);
	bool is_waiting = f->n_made < f->n_asked;
	pthread_mutex_unlock(&f->lock);
	return is_waiting;
}

void files_hurry(struct prof_files *f, uint32_t number)
{
	struct prof_file *file = number < f->list.n ? f->list.p[number] : NULL;

	if (!file || file->is_hurried)
		return;
	file->is_hurried = true;
	pthread_mutex_lock(&f->lock);
	for (size_t i = f->n_begun; i < f->n_asked; i++)
		if (f->asked[i] == file) {
			memmove(f->asked + f->n_begun + 1, f->asked + f->n_begun,
				(i - f->n_begun) * sizeof(struct prof_file *));
			f->asked[f->n_begun] = file;
			break;
		}
	pthread_mutex_unlock(&f->lock);
}

/* ---- numbers ---- */

/* Where its code begins, in whole pages of a table: small numbers have room in a frame. */
static uint64_t base_of(const struct cairn_binary *bin)
{
	const struct elf_load *loads;
	size_t n = elf_loads(binary_main(bin), &loads);
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (loads[i].flags & PF_X && loads[i].at < base)
			base = loads[i].at;
	/* Most files are linked from 0 or a few megabytes on: their addresses stay as they are. */
	return base >> PROF_FILE_SHIFT && n ? base & ~UINT64_C(0xffff) : 0;
}

static struct prof_file *open_file(int pid, const struct code_mapping *m)
{
	struct prof_file *f = calloc(1, sizeof(*f));
	struct cairn_err err = {0};

	if (!f)
		return NULL;
	f->dev = m->dev;
	f->ino = m->ino;
	f->path = strdup(m->path);
	int rc = f->path ? code_open_mapped(pid, m, &f->bin, &f->bytes, &err) : -ENOMEM;
	if (rc < 0) {
		file_free(f);
		return NULL;
	}
	if (f->bin)
		f->base = base_of(f->bin);
	else
		snprintf(f->note, sizeof(f->note), "%s", err.msg);
	return f;
}

/* What the kernel's program needs of a file to make segments by itself. */
static struct prof_inode_file inode_file(uint32_t number, const struct prof_file *f)
{
	bool is_ready = f->pages.n > 0;
	struct prof_inode_file to = {.n_pages = is_ready ? f->pages.n : 0};
	uint64_t frame = (uint64_t)number << PROF_FILE_SHIFT;
	const struct elf_load *loads;
	size_t n = f->bin ? elf_loads(binary_main(f->bin), &loads) : 0, n_to = 0;

	to.first_page = is_ready || f->is_made ? f->pages.first : PROF_NO_PAGES;
	for (size_t i = 0; i < n && n_to < PROF_INODE_LOADS; i++) {
		const struct elf_load *l = &loads[i];
		uint64_t at = l->at - l->foff - f->base;
		if (!(l->flags & PF_X) || (l->at - f->base + l->n_bytes) >> PROF_FILE_SHIFT)
			continue;
		to.loads[n_to].from = l->foff & ~UINT64_C(4095);
		to.loads[n_to].to = l->foff + l->n_bytes;
		to.loads[n_to++].at = frame + at;
	}
	if (!f->bin) {
		to.loads[0].to = PROF_AT_MASK;
		to.loads[0].at = frame;
	}
	return to;
}

/* Without room for it the reports of its mappings are waited for. */
static void tell_inode(const struct prof_files *f, uint32_t number)
{
	const struct prof_file *file = f->list.p[number];
	struct prof_inode key = {(uint64_t)major(file->dev) << 20 | minor(file->dev), file->ino};
	struct prof_inode_file value;

	if (f->inodes_fd < 0)
		return;
	value = inode_file(number, file);
	bpf_map_update_elem(f->inodes_fd, &key, &value, BPF_ANY);
}

void files_tell_kernel(struct prof_files *f, int inodes_fd)
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

int files_number(struct prof_files *f, int pid, const struct code_mapping *m, uint32_t *ret,
		 struct cairn_err *err)
{
	uint64_t key = key_of(m), number;

	*ret = 0;
	if (!is_file(m) || f->list.n > PROF_FILE_MASK)
		return 0;
	for (; map_get(&f->ids, key, &number); key++)
		if (f->list.p[number]->dev == m->dev && f->list.p[number]->ino == m->ino) {
			*ret = (uint32_t)number;
			return 0;
		}
	struct prof_file *file = open_file(pid, m);
	number = f->list.n;
	if (!file || !VEC_ADD(&f->list, file)) {
		file_free(file);
		return err_nomem(err, "a mapped file");
	}
	if (map_put(&f->ids, key, number) < 0 || ask_for_table(f, file) < 0)
		return err_nomem(err, "a mapped file");
	tell_inode(f, (uint32_t)number);
	*ret = (uint32_t)number;
	return 0;
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

uint64_t files_at(const struct prof_files *f, uint32_t number, const struct code_mapping *m)
{
	uint64_t at = m->off;

	if (!number)
		return 0;
	const struct prof_file *file = f->list.p[number];
	if (file->bin && !place_of(file->bin, m->off, &at))
		return 0;
	at -= file->base;
	return at >> PROF_FILE_SHIFT ? 0 : (uint64_t)number << PROF_FILE_SHIFT | at;
}

/* ---- tables ---- */

/* Only a lack of memory is an error: without a table stacks end in the file, and say so. */
static int put_table(struct prof_file *file, struct prof_tables *tables, struct cairn_err *err)
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

static uint32_t number_of(const struct prof_files *f, const struct prof_file *file)
{
	for (size_t i = f->list.n; i-- > 1;)
		if (f->list.p[i] == file)
			return (uint32_t)i;
	return 0;
}

int files_put_tables(struct prof_files *f, struct prof_tables *tables,
		     void (*on_ready)(void *ctx, uint32_t number, const struct prof_file *file),
		     void *ctx, struct cairn_err *err)
{
	uint64_t n;
	int rc = 0;

	while (read(f->done_fd, &n, sizeof(n)) > 0)
		;
	pthread_mutex_lock(&f->lock);
	while (rc == 0 && f->n_taken < f->n_made) {
		struct prof_file *file = f->asked[f->n_taken++];
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

int files_init(struct prof_files *f, struct cairn_err *err)
{
	*f = (struct prof_files){.lock = PTHREAD_MUTEX_INITIALIZER,
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

void files_fini(struct prof_files *f)
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
	map_fini(&f->ids);
	free(f->asked);
	if (f->done_fd >= 0)
		close(f->done_fd);
}
