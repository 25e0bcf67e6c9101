/* SPDX-License-Identifier: BSD-2-Clause */
#include "push_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cairn/file.h>

#include "own_folder.h"

static const char *const states[] = {
	[SPOOL_NEW] = ".new",
	[SPOOL_SENT] = ".sent",
	[SPOOL_REFUSED] = ".refused",
};

#define COUNTS "counts"
/* Numbers, and a name. */
enum { COUNTS_SIZE = 256 };
/* The head of a batch: its address is the longest of it. */
enum { HEAD_MAX = 8192 };

static int set_err(struct cairn_err *err, int code, const char *path, const char *what)
{
	err->code = -code;
	snprintf(err->msg, sizeof(err->msg), "%.300s: %s", path, what);
	return -code;
}

static int system_err(struct cairn_err *err, const struct spool *s)
{
	return set_err(err, errno, s->path, strerror(errno));
}

static int no_memory(struct cairn_err *err)
{
	return set_err(err, ENOMEM, "the spool", "out of memory");
}

/* ---- the folder ---- */

/* A batch of another user would be sent under our name. */
static int check_owner(const struct spool *s, struct cairn_err *err)
{
	struct stat st;

	if (fstat(s->dir, &st) < 0)
		return system_err(err, s);
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return set_err(err, EPERM, s->path,
			       "a spool must belong to this user, and no one else may write there");
	return 0;
}

int spool_open(struct spool *s, const char *path, uint64_t room, struct cairn_err *err)
{
	*s = (struct spool){.path = strdup(path), .dir = -1, .room = room};
	if (!s->path)
		return no_memory(err);
	int r = own_folder_make(path, err);
	if (r < 0)
		return r;
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->dir < 0 ? system_err(err, s) : check_owner(s, err);
}

void spool_close(struct spool *s)
{
	if (s->dir >= 0)
		close(s->dir);
	free(s->path);
	*s = (struct spool){.dir = -1};
}

int spool_write(struct spool *s, const char *name, const void *bytes, size_t size,
		struct cairn_err *err)
{
	char *path;
	mode_t before;
	int r;

	if (asprintf(&path, "%s/%s", s->path, name) < 0)
		return no_memory(err);
	/* Profiles name the programs of all users. */
	before = umask(077);
	r = cairn_file_write(path, bytes, size, err);
	umask(before);
	free(path);
	return r;
}

/* ---- what is there ---- */

/*
 * The time in 20 digits, "-": how the name of each batch begins. The folder may have other files.
 */
static bool is_batch(const char *name)
{
	return strspn(name, "0123456789") == 20 && name[20] == '-';
}

static bool read_name(const char *name, enum spool_state *state)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < SPOOL_N_STATES; i++) {
		size_t k = strlen(states[i]);

		if (n > k && n < SPOOL_NAME_SIZE && !strcmp(name + n - k, states[i])) {
			*state = (enum spool_state)i;
			return is_batch(name);
		}
	}
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct spool_entry *)a)->name, ((const struct spool_entry *)b)->name);
}

static int add_entry(struct spool *s, struct spool_list *list, size_t *room, const char *name)
{
	struct spool_entry *grown, e = {0};
	struct stat st;

	if (!read_name(name, &e.state) || fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	if (list->n == *room) {
		grown = realloc(list->items, (*room = *room * 2 + 16) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->items = grown;
	}
	strcpy(e.name, name);
	e.size = (uint64_t)st.st_size;
	e.tried_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	list->items[list->n++] = e;
	list->bytes += e.size;
	return 0;
}

int spool_read(struct spool *s, struct spool_list *ret, struct cairn_err *err)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	size_t room = 0;

	*ret = (struct spool_list){0};
	if (!dir) {
		r = system_err(err, s);
		if (fd >= 0)
			close(fd);
		return r;
	}
	for (struct dirent *d; r == 0 && (d = readdir(dir));)
		r = add_entry(s, ret, &room, d->d_name);
	closedir(dir);
	if (r < 0) {
		spool_free(ret);
		return no_memory(err);
	}
	if (ret->n)
		qsort(ret->items, ret->n, sizeof(*ret->items), by_name);
	return 0;
}

static int by_turn(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;

	return x->tried_ns == y->tried_ns
		       ? by_name(a, b)
		       : (x->tried_ns > y->tried_ns) - (x->tried_ns < y->tried_ns);
}

void spool_order_by_turn(struct spool_list *list)
{
	if (list->n)
		qsort(list->items, list->n, sizeof(*list->items), by_turn);
}

/* Without it the batch comes first again: nothing is lost. */
void spool_put_back(struct spool *s, const struct spool_entry *e)
{
	const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

	(void)!utimensat(s->dir, e->name, now, AT_SYMLINK_NOFOLLOW);
}

void spool_free(struct spool_list *list)
{
	free(list->items);
	*list = (struct spool_list){0};
}

/* ---- changes ---- */

int spool_set_state(struct spool *s, struct spool_entry *e, enum spool_state to,
		    struct cairn_err *err)
{
	size_t n = strlen(e->name) - strlen(states[e->state]);
	char name[SPOOL_NAME_SIZE + 16];

	if (e->state == to)
		return 0;
	snprintf(name, sizeof(name), "%.*s%s", (int)n, e->name, states[to]);
	if (renameat(s->dir, e->name, s->dir, name) < 0)
		return system_err(err, s);
	snprintf(e->name, sizeof(e->name), "%.*s", SPOOL_NAME_SIZE - 1, name);
	e->state = to;
	return fsync(s->dir) < 0 ? system_err(err, s) : 0;
}

int spool_remove(struct spool *s, const struct spool_entry *e, struct cairn_err *err)
{
	if (unlinkat(s->dir, e->name, 0) < 0 || fsync(s->dir) < 0)
		return system_err(err, s);
	return 0;
}

/* ---- dropping ---- */

/* @last: the one that was counted last, and may be there still. */
static void read_counts(struct spool *s, struct spool_counts *c, char last[SPOOL_NAME_SIZE])
{
	int fd = openat(s->dir, COUNTS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[COUNTS_SIZE + 1] = "";

	*c = (struct spool_counts){0};
	last[0] = 0;
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "dropped %" SCNu64 " bytes %" SCNu64 " last %79s", &c->n_dropped,
		       &c->bytes_dropped, last);
	close(fd);
}

/* In place, as a full disk has room for that. So few bytes are written as a whole, or not. */
static int write_counts(struct spool *s, const struct spool_counts *c, const char *last,
			struct cairn_err *err)
{
	int fd = openat(s->dir, COUNTS, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r = 0;
	char text[COUNTS_SIZE];
	int n = snprintf(text, sizeof(text), "dropped %" PRIu64 " bytes %" PRIu64 " last %s\n",
			 c->n_dropped, c->bytes_dropped, last);

	if (fd < 0)
		return system_err(err, s);
	memset(text + n, '\n', sizeof(text) - (size_t)n);
	errno = ENOSPC;
	if (pwrite(fd, text, sizeof(text), 0) != (ssize_t)sizeof(text) || fdatasync(fd) < 0)
		r = system_err(err, s);
	close(fd);
	return r;
}

/* It is there before a disk is full. Without it there is nothing to say. */
static void make_counts(struct spool *s)
{
	const struct spool_counts none = {0};
	struct cairn_err err;

	if (faccessat(s->dir, COUNTS, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		write_counts(s, &none, "-", &err);
}

/* A drop that was counted, by a process that was killed then: it is not to be sent any more. */
static void finish_drop(struct spool *s)
{
	char last[SPOOL_NAME_SIZE], name[SPOOL_NAME_SIZE + 16];
	struct spool_counts c;

	read_counts(s, &c, last);
	for (size_t i = 0; strchr(last, '.') && i < SPOOL_N_STATES; i++) {
		snprintf(name, sizeof(name), "%.*s%s", (int)strcspn(last, "."), last, states[i]);
		unlinkat(s->dir, name, 0);
	}
}

int spool_lock(struct spool *s, struct cairn_err *err)
{
	while (flock(s->dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return system_err(err, s);
	make_counts(s);
	finish_drop(s);
	return 0;
}

void spool_unlock(struct spool *s)
{
	flock(s->dir, LOCK_UN);
}

int spool_lock_sending(struct spool *s, struct cairn_err *err)
{
	int fd = openat(s->dir, "sending", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return system_err(err, s);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR) {
			r = system_err(err, s);
			close(fd);
			return r;
		}
	return fd;
}

void spool_counts(struct spool *s, struct spool_counts *ret)
{
	char last[SPOOL_NAME_SIZE];

	read_counts(s, ret, last);
}

/* Counted first: a kill before the removal leaves the name, and finish_drop() ends it. */
static int drop(struct spool *s, const struct spool_entry *e, struct cairn_err *err)
{
	char last[SPOOL_NAME_SIZE];
	struct spool_counts c;
	int r;

	read_counts(s, &c, last);
	c.n_dropped++;
	c.bytes_dropped += e->size;
	r = write_counts(s, &c, e->name, err);
	return r < 0 ? r : spool_remove(s, e, err);
}

int spool_count_dropped(struct spool *s, uint64_t bytes, struct cairn_err *err)
{
	char last[SPOOL_NAME_SIZE];
	struct spool_counts c;

	read_counts(s, &c, last);
	c.n_dropped++;
	c.bytes_dropped += bytes;
	return write_counts(s, &c, *last ? last : "-", err);
}

/* Batches that the server refused come first, then the oldest. */
static struct spool_entry *next_to_drop(struct spool_list *list)
{
	struct spool_entry *oldest = NULL;

	for (size_t i = 0; i < list->n; i++) {
		struct spool_entry *e = &list->items[i];

		if (!e->name[0])
			continue;
		if (e->state == SPOOL_REFUSED)
			return e;
		oldest = oldest ? oldest : e;
	}
	return oldest;
}

static bool is_being_sent(struct spool *s, const struct spool_entry *e)
{
	int fd = openat(s->dir, e->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;

	if (fd >= 0)
		close(fd);
	return busy;
}

/* Drops what goes first, unless it is being sent; *@n counts it. */
static int drop_next(struct spool *s, struct spool_list *list, size_t *n, struct cairn_err *err)
{
	struct spool_entry *e = next_to_drop(list);
	int r = 0;

	if (!e)
		return -ENOENT;
	if (!is_being_sent(s, e)) {
		r = drop(s, e, err);
		list->bytes -= e->size;
		*n += r == 0;
	}
	e->name[0] = 0;
	return r;
}

/* Drops until @size fits. It is no error if there is nothing more to drop. */
static int make_room(struct spool *s, struct spool_list *list, uint64_t size, size_t *n,
		     struct cairn_err *err)
{
	int r = 0;

	while (r == 0 && list->bytes + size > s->room)
		r = drop_next(s, list, n, err);
	return r == -ENOENT ? 0 : r;
}

/* ---- batches ---- */

/* Removes what a writer left that was killed, on a file system without files without names. */
static void remove_leftovers(struct spool *s)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	for (struct dirent *d; dir && (d = readdir(dir));) {
		size_t n = strlen(d->d_name);

		if (d->d_name[0] == '.' && n > 5 && !strcmp(d->d_name + n - 4, ".tmp") &&
		    (is_batch(d->d_name + 1) ||
		     !strncmp(d->d_name + 1, COUNTS ".", strlen(COUNTS ".")) ||
		     !strncmp(d->d_name + 1, SPOOL_PAUSES ".", strlen(SPOOL_PAUSES "."))))
			unlinkat(s->dir, d->d_name, 0);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

static char *text_of(const struct batch *b, size_t *size)
{
	char *head, *all = NULL;
	int n = asprintf(&head, "cairn-push 1\nid %s\nurl %s\ntype %s\n\n", b->id, b->url, b->type);

	if (n < 0)
		return NULL;
	*size = (size_t)n + b->size;
	all = malloc(*size);
	if (all)
		memcpy(mempcpy(all, head, (size_t)n), b->body, b->size);
	free(head);
	return all;
}

static void make_name(const struct batch *b, char name[SPOOL_NAME_SIZE])
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(name, SPOOL_NAME_SIZE, "%011" PRId64 "%09ld-%s%s", (int64_t)now.tv_sec,
		 now.tv_nsec, b->id, states[SPOOL_NEW]);
}

/*
 * The new one is worth more than the old ones that gave it room: if the disk is full all the same,
 * more of them go.
 */
static int add_text(struct spool *s, const char *name, const char *text, size_t size,
		    struct cairn_err *err)
{
	struct spool_list list;
	size_t n_dropped = 0;
	int r = spool_read(s, &list, err), dropped = 0;

	if (r == 0)
		r = make_room(s, &list, size, &n_dropped, err);
	if (r == 0)
		r = spool_write(s, name, text, size, err);
	while (r == -ENOSPC && n_dropped && dropped == 0) {
		struct cairn_err unsaid;

		dropped = drop_next(s, &list, &n_dropped, &unsaid);
		if (dropped == 0)
			r = spool_write(s, name, text, size, err);
	}
	spool_free(&list);
	return r;
}

int spool_add(struct spool *s, const struct batch *b, struct cairn_err *err)
{
	char name[SPOOL_NAME_SIZE];
	size_t size;
	char *text = text_of(b, &size);
	int r;

	if (!text)
		return no_memory(err);
	remove_leftovers(s);
	make_name(b, name);
	r = size > s->room ? set_err(err, EFBIG, s->path,
				     "the batch alone is larger than the spool may be")
			   : add_text(s, name, text, size, err);
	free(text);
	return r;
}

static int read_all(int fd, char *to, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = read(fd, to + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

/* The first @max bytes at most, with room for a NUL; *@ret_all: the file's. NULL, and errno. */
static char *read_begin(int fd, size_t max, size_t *size, uint64_t *ret_all)
{
	char *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	*ret_all = (uint64_t)st.st_size;
	*size = *ret_all < max ? (size_t)*ret_all : max;
	bytes = malloc(*size + 1);
	if (bytes && read_all(fd, bytes, *size) < 0) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* The value of a line "KEY VALUE", whose end becomes a NUL; NULL: the next line is another. */
static const char *take_line(char **at, const char *key)
{
	size_t n = strlen(key);
	char *value = *at + n, *end = strchr(*at, '\n');

	if (!end || strncmp(*at, key, n) != 0)
		return NULL;
	*end = 0;
	*at = end + 1;
	return value;
}

static bool read_batch(char *bytes, size_t size, struct batch *ret)
{
	char *at = bytes;
	const char *version, *id, *url, *type;

	bytes[size] = 0;
	version = take_line(&at, "cairn-push ");
	id = version ? take_line(&at, "id ") : NULL;
	url = id ? take_line(&at, "url ") : NULL;
	type = url ? take_line(&at, "type ") : NULL;
	if (!type || !take_line(&at, "") || strcmp(version, "1") != 0 ||
	    strlen(id) != SPOOL_ID_SIZE - 1)
		return false;
	ret->url = url;
	ret->type = type;
	ret->body = at;
	ret->size = size - (size_t)(at - bytes);
	strcpy(ret->id, id);
	return true;
}

int spool_load(struct spool *s, const struct spool_entry *e, struct batch *ret,
	       struct cairn_err *err)
{
	uint64_t all;
	size_t size = 0;
	int r = 0;

	*ret = (struct batch){.fd = openat(s->dir, e->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
	if (ret->fd < 0 || flock(ret->fd, LOCK_SH) < 0)
		r = set_err(err, errno, e->name, strerror(errno));
	if (r == 0 && !(ret->bytes = read_begin(ret->fd, SIZE_MAX, &size, &all)))
		r = set_err(err, errno, e->name, strerror(errno));
	if (r == 0 && !read_batch(ret->bytes, size, ret))
		r = set_err(err, EBADMSG, e->name,
			    "this is no batch of the spool, or it is damaged");
	if (r < 0)
		spool_unload(ret);
	return r;
}

int spool_peek(struct spool *s, const struct spool_entry *e, struct batch *ret,
	       struct cairn_err *err)
{
	int fd = openat(s->dir, e->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), r = 0;
	uint64_t all = 0;
	size_t size = 0;

	*ret = (struct batch){.fd = -1};
	if (fd < 0 || !(ret->bytes = read_begin(fd, HEAD_MAX, &size, &all)))
		r = set_err(err, errno, e->name, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (r == 0 && !read_batch(ret->bytes, size, ret))
		r = set_err(err, EBADMSG, e->name,
			    "this is no batch of the spool, or it is damaged");
	if (r < 0)
		spool_unload(ret);
	else
		ret->size += all - size;
	return r;
}

void spool_unload(struct batch *b)
{
	free(b->bytes);
	if (b->fd >= 0)
		close(b->fd);
	*b = (struct batch){.fd = -1};
}

void spool_new_id(char id[SPOOL_ID_SIZE])
{
	uint8_t b[16];

	while (getrandom(b, sizeof(b), 0) != sizeof(b))
		;
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(id, SPOOL_ID_SIZE,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		 b[15]);
}
