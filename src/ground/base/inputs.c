/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal handler reads the table while another thread may change it, so that slots are never
 * freed. A slot is valid while its size is not 0, which is written last and cleared first.
 */
#include "base/inputs.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cairn/file.h>
#include <cairn/text.h>

struct input {
	_Atomic(uintptr_t) start;
	_Atomic(size_t) size; /* 0: free */
	struct input *next;
	/* For input_is_shorter(), which no handler calls; "" for one that is too long. */
	char path[PATH_MAX];
	dev_t dev;
	ino_t ino;
	char name[208];
};

static _Atomic(struct input *) inputs;
/* The first that was shorter when it was given back. */
static char shortened[208];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * A free slot, or a new one before all others; NULL without memory: the file is then not known to
 * handlers.
 */
static struct input *free_slot(void)
{
	struct input *i = atomic_load(&inputs);

	while (i && atomic_load(&i->size))
		i = i->next;
	if (i)
		return i;
	i = calloc(1, sizeof(*i));
	if (i) {
		i->next = atomic_load(&inputs);
		atomic_store(&inputs, i);
	}
	return i;
}

/*
 * A probe of any tool puts its breakpoint into each private mapping of the file that may become
 * executable, so into ours, too; not into a shared one. Some file systems do not share.
 */
static void *map_unprobed(int fd, size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	return bytes == MAP_FAILED ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : bytes;
}

void *input_map(int fd, size_t size, const char *name)
{
	void *bytes = map_unprobed(fd, size);

	if (bytes == MAP_FAILED)
		return NULL;
	pthread_mutex_lock(&lock);
	struct input *i = free_slot();
	if (i) {
		struct stat st;
		bool known = fstat(fd, &st) == 0 && strlen(name) < sizeof(i->path);
		strcpy(i->path, known ? name : "");
		i->dev = known ? st.st_dev : 0;
		i->ino = known ? st.st_ino : 0;
		cairn_quote(name, CAIRN_QUOTE_TEXT, i->name, sizeof(i->name));
		atomic_store(&i->start, (uintptr_t)bytes);
		atomic_store(&i->size, size);
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

/*
 * Bytes cut off inside a page read as zeros, without a signal. A file that was replaced under its
 * name meanwhile is not noticed.
 */
static bool input_is_shorter(const struct input *i)
{
	struct stat st;
	return i->path[0] && stat(i->path, &st) == 0 && st.st_dev == i->dev &&
	       st.st_ino == i->ino && st.st_size >= 0 &&
	       (uint64_t)st.st_size < atomic_load(&i->size);
}

static void note_shorter(const struct input *i)
{
	if (!shortened[0] && input_is_shorter(i))
		memcpy(shortened, i->name, sizeof(shortened));
}

static struct input *input_at(uintptr_t address)
{
	for (struct input *i = atomic_load(&inputs); i; i = i->next) {
		size_t size = atomic_load(&i->size);
		/* The last page is mapped whole. */
		size_t mapped = (size + 4095) & ~(size_t)4095;
		if (size && address - atomic_load(&i->start) < mapped)
			return i;
	}
	return NULL;
}

const char *input_shortened(const void *bytes)
{
	pthread_mutex_lock(&lock);
	const struct input *i = input_at((uintptr_t)bytes);
	const char *name = i && input_is_shorter(i) ? i->name : NULL;
	pthread_mutex_unlock(&lock);
	return name;
}

int input_check(const char *name, struct cairn_err *err)
{
	return name ? err_set(err, -EBADMSG,
			      "%s: became shorter while it was being read; run this again when it "
			      "is complete",
			      name)
		    : 0;
}

void input_unmap(const void *bytes, size_t size)
{
	pthread_mutex_lock(&lock);
	struct input *i = input_at((uintptr_t)bytes);
	if (i) {
		note_shorter(i);
		atomic_store(&i->size, 0);
	}
	pthread_mutex_unlock(&lock);
	munmap((void *)(uintptr_t)bytes, size);
}

const char *cairn_input_at(const void *address)
{
	const struct input *i = input_at((uintptr_t)address);

	return i ? i->name : NULL;
}

const char *cairn_inputs_shortened(void)
{
	pthread_mutex_lock(&lock);
	for (struct input *i = atomic_load(&inputs); i; i = i->next)
		if (atomic_load(&i->size))
			note_shorter(i);
	pthread_mutex_unlock(&lock);
	return shortened[0] ? shortened : NULL;
}
