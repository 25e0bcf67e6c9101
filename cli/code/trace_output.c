/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_output.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>

#include "cmd.h"

enum {
	BUFFER_BYTES = 256 << 10,
	ENDS_MAX = 16384, /* events that are not written yet */
	OLD_FILES_MAX = 10000,
	OLD_FILES_DEFAULT = 10,
};

struct trace_output {
	const char *path;
	int fd;
	bool is_regular;
	FILE *stream;
	uint64_t limit; /* bytes of a file; 0: none */
	unsigned int n_old;
	/* Of the file: bytes that were written, and that whole events have. */
	uint64_t n_written, n_whole;
	/* Where events end, of those that are not known to be written. */
	uint64_t ends[ENDS_MAX];
	size_t n_ends;
	int error;
	bool is_reported;
};

/* ---- writing ---- */

static void note_written(struct trace_output *o)
{
	size_t n = 0;

	while (n < o->n_ends && o->ends[n] <= o->n_written)
		n++;
	if (!n)
		return;
	o->n_whole = o->ends[n - 1];
	memmove(o->ends, o->ends + n, (o->n_ends - n) * sizeof(o->ends[0]));
	o->n_ends -= n;
}

/* What is written of an event is of no use without the rest. */
static void cut(struct trace_output *o)
{
	note_written(o);
	if (o->is_regular && o->n_written > o->n_whole && !ftruncate(o->fd, (off_t)o->n_whole))
		o->n_written = o->n_whole;
}

/* The stream's own: returns what was written. */
static ssize_t write_bytes(void *cookie, const char *bytes, size_t n)
{
	struct trace_output *o = cookie;
	size_t done = 0;

	while (done < n && !o->error) {
		ssize_t r = write(o->fd, bytes + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			o->error = -errno;
		else
			done += (size_t)r, o->n_written += (size_t)r;
	}
	if (o->error)
		cut(o);
	errno = -o->error;
	return o->error ? 0 : (ssize_t)n;
}

int trace_output_flush(struct trace_output *o)
{
	if (!o->error && fflush(o->stream) && !o->error)
		o->error = errno ? -errno : -EIO;
	if (!o->error)
		note_written(o);
	o->is_reported |= o->error != 0;
	return o->error;
}

bool trace_output_has_failed(const struct trace_output *o)
{
	return o && o->error;
}

FILE *trace_output_stream(struct trace_output *o)
{
	return o->stream;
}

/* ---- files ---- */

static int begin_file(struct trace_output *o, struct cairn_err *err)
{
	struct stat st;

	o->fd = cairn_file_create(o->path, err);
	if (o->fd < 0)
		return o->fd;
	o->is_regular = !fstat(o->fd, &st) && S_ISREG(st.st_mode);
	o->n_written = o->n_whole = 0;
	o->n_ends = 0;
	return 0;
}

/* FILE.1 becomes FILE.2 and so on; the last one is replaced. */
static int move_old_files(const struct trace_output *o)
{
	for (unsigned int i = o->n_old; i-- > 0;) {
		char *from, *to;
		int e = 0;

		if (asprintf(&to, "%s.%u", o->path, i + 1) < 0)
			return -ENOMEM;
		if ((i ? asprintf(&from, "%s.%u", o->path, i) : asprintf(&from, "%s", o->path)) <
		    0) {
			free(to);
			return -ENOMEM;
		}
		if (rename(from, to) && errno != ENOENT)
			e = -errno;
		free(from);
		free(to);
		if (e)
			return e;
	}
	return 0;
}

/* What an earlier run has left is older than all that comes. */
static int keep_last_run(const struct trace_output *o)
{
	struct stat st;
	bool has_left = !stat(o->path, &st) && S_ISREG(st.st_mode) && st.st_size;

	return has_left ? move_old_files(o) : 0;
}

static int rotate(struct trace_output *o)
{
	struct cairn_err err = {0};
	int e = trace_output_flush(o);

	if (e)
		return e;
	e = move_old_files(o);
	if (!e) {
		close(o->fd);
		e = begin_file(o, &err);
	}
	if (e) {
		o->error = e;
		o->is_reported = true;
	}
	return e;
}

int trace_output_event_ends(struct trace_output *o)
{
	uint64_t at = o->n_written + __fpending(o->stream);

	if (o->error)
		return trace_output_flush(o);
	o->ends[o->n_ends++] = at;
	if (o->limit && at >= o->limit && o->is_regular)
		return rotate(o);
	return o->n_ends == ENDS_MAX ? trace_output_flush(o) : 0;
}

/* ---- opening and closing ---- */

/* "64M": 0 if it is no size. */
static uint64_t read_size(const char *text, char **end)
{
	static const char units[] = "KMGT";
	unsigned long long n = strtoull(text, end, 10);
	const char *unit = **end ? strchr(units, **end) : NULL;
	unsigned int shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;

	if (unit)
		(*end)++;
	return text[0] >= '0' && text[0] <= '9' && n <= UINT64_MAX >> shift ? n << shift : 0;
}

static int read_rotate(const char *text, struct trace_output *o)
{
	unsigned long n = OLD_FILES_DEFAULT;
	char *end;

	o->limit = read_size(text, &end);
	if (*end == ',' && end[1] >= '0' && end[1] <= '9')
		n = strtoul(end + 1, &end, 10);
	if (!o->limit || *end || !n || n > OLD_FILES_MAX)
		return fail(STATUS_USAGE,
			    "--rotate %s: it is SIZE[,COUNT], the size of a file and how many old "
			    "ones are kept: 64M, 1G,5",
			    text);
	o->n_old = (unsigned int)n;
	return STATUS_YES;
}

static int open_stream(struct trace_output *o)
{
	static const cookie_io_functions_t functions = {.write = write_bytes};

	o->stream = fopencookie(o, "w", functions);
	if (!o->stream || setvbuf(o->stream, NULL, _IOFBF, BUFFER_BYTES))
		return fail(STATUS_NOT_HERE, "no memory");
	/* One thread prints; a lock for each piece of an event would be a tenth of its cost. */
	__fsetlocking(o->stream, FSETLOCKING_BYCALLER);
	return STATUS_YES;
}

int trace_output_open(const char *path, const char *rotate, struct trace_output **ret)
{
	struct trace_output *o = calloc(1, sizeof(*o));
	struct cairn_err err = {0};
	int status = STATUS_YES, e;

	if (!o)
		return fail(STATUS_NOT_HERE, "no memory");
	*ret = o;
	o->path = path;
	o->fd = -1;
	if (rotate)
		status = read_rotate(rotate, o);
	if (status)
		return status;
	e = rotate ? keep_last_run(o) : 0;
	if (e)
		return fail(STATUS_USAGE, "%s.1: %s", path, strerror(-e));
	e = begin_file(o, &err);
	if (e < 0)
		return fail_err(e, &err, STATUS_USAGE);
	if (rotate && !o->is_regular)
		return fail(STATUS_USAGE, "%s is no regular file, and has no size to --rotate by",
			    path);
	return open_stream(o);
}

int trace_output_close(struct trace_output *o)
{
	int e = 0;

	if (!o)
		return 0;
	if (o->stream) {
		bool was_reported = o->is_reported;
		e = trace_output_flush(o);
		e = was_reported ? 0 : e;
		fclose(o->stream);
	}
	if (o->fd >= 0 && close(o->fd) && !o->error)
		e = -errno;
	free(o);
	return e;
}
