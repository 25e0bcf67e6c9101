/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader that stops reading
 *
 * A full pipe is waited for, but not when the trace is to end: then the probes have to go first. So
 * an end that comes meanwhile leaves the bytes that were not taken in memory, and the caller goes
 * on to its end. After that the reader has a second for each piece, and five in all. The rest is
 * dropped then, and counted.
 */
#include "trace_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>

#include "clock.h"
#include "cmd.h"
#include "interrupt.h"

enum {
	BUFFER_BYTES = 256 << 10,
	ENDS_MAX = 16384, /* events that are not written yet */
	OLD_FILES_MAX = 10000,
	OLD_FILES_DEFAULT = 10,
	PIECE_BYTES = 4096, /* for which a pipe that can be written has room */
	WAIT_MS = 50,
	PATIENCE_MS = 1000, /* for the next piece, once the probes are gone */
	PATIENCE_ALL_MS = 5000,
};

/* The end of an event, and the number of events until then. */
struct event_end {
	uint64_t at, n_events;
};

struct trace_output {
	const char *path;
	int fd;
	bool is_regular, is_own; /* is_own: it is closed here */
	bool may_block;          /* a pipe, a socket or a terminal */
	FILE *stream;
	uint64_t limit; /* bytes of a file; 0: none */
	unsigned int n_old;
	/* Bytes of the file that were written, and that whole events have. */
	uint64_t n_written, n_whole;
	/* The ends of the events that are not known to be written. */
	struct event_end ends[ENDS_MAX];
	size_t n_ends;
	uint64_t n_events, n_whole_events;
	uint64_t until_ns; /* no reader is waited for after that; 0: no such time */
	/* Bytes that a reader had not taken when the trace was to end. */
	char *late;
	size_t n_late;
	uint64_t give_up_ns; /* once the probes are gone; 0: they are there */
	bool is_dropping;
	uint64_t n_dropped; /* bytes */
	int error;
	bool is_reported;
};

/* ---- writing ---- */

static void note_written(struct trace_output *o)
{
	size_t n = 0;

	while (n < o->n_ends && o->ends[n].at <= o->n_written)
		n++;
	if (!n)
		return;
	o->n_whole = o->ends[n - 1].at;
	o->n_whole_events = o->ends[n - 1].n_events;
	memmove(o->ends, o->ends + n, (o->n_ends - n) * sizeof(o->ends[0]));
	o->n_ends -= n;
}

/* A part of an event is of no use without the rest. */
static void cut(struct trace_output *o)
{
	note_written(o);
	if (o->is_regular && o->n_written > o->n_whole && !ftruncate(o->fd, (off_t)o->n_whole))
		o->n_written = o->n_whole;
}

static bool is_ending(const struct trace_output *o)
{
	return interrupt_seen() || (o->until_ns && clock_now_ns() >= o->until_ns);
}

/* As much as can be written without waiting; an empty pipe takes more than a piece. */
static size_t piece_of(const struct trace_output *o, size_t n)
{
	int unread = 0, room = fcntl(o->fd, F_GETPIPE_SZ);
	size_t most = PIECE_BYTES;

	if (room > PIECE_BYTES && !ioctl(o->fd, FIONREAD, &unread) && !unread)
		most = (size_t)room;
	return n < most ? n : most;
}

/* Waits until a piece can be written. False: the trace is to end, or patience has. */
static bool wait_for_reader(const struct trace_output *o)
{
	struct pollfd fd = {.fd = o->fd, .events = POLLOUT};
	uint64_t patient_ns = clock_now_ns() + PATIENCE_MS * UINT64_C(1000000);

	while (poll(&fd, 1, WAIT_MS) <= 0)
		if (o->give_up_ns ? clock_now_ns() >= patient_ns || clock_now_ns() >= o->give_up_ns
				  : is_ending(o))
			return false;
	return true;
}

/* Returns what was written: all, unless there is an error or a reader that is not waited for. */
static size_t write_some(struct trace_output *o, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n && !o->error) {
		if (o->may_block && !wait_for_reader(o))
			break;
		size_t piece = o->may_block ? piece_of(o, n - done) : n - done;
		ssize_t r = write(o->fd, bytes + done, piece);

		if (r < 0 && (errno == EINTR || (errno == EAGAIN && o->may_block)))
			continue;
		if (r < 0)
			o->error = -errno;
		else
			done += (size_t)r, o->n_written += (size_t)r;
	}
	return done;
}

static void keep_late(struct trace_output *o, const char *bytes, size_t n)
{
	char *late = realloc(o->late, o->n_late + n);

	if (!late) {
		o->is_dropping = true;
		return;
	}
	memcpy(late + o->n_late, bytes, n);
	o->late = late;
	o->n_late += n;
}

/* The stream's own: returns what was written, or is kept or dropped. */
static ssize_t write_bytes(void *cookie, const char *bytes, size_t n)
{
	struct trace_output *o = cookie;
	size_t done = o->n_late || o->is_dropping ? 0 : write_some(o, bytes, n);

	if (o->error) {
		cut(o);
		errno = -o->error;
		return 0;
	}
	if (done < n && o->give_up_ns)
		o->is_dropping = true;
	else if (done < n && !o->is_dropping)
		keep_late(o, bytes + done, n - done);
	if (o->is_dropping)
		o->n_dropped += n - done;
	return (ssize_t)n;
}

void trace_output_until(struct trace_output *o, uint64_t until_ns)
{
	o->until_ns = until_ns;
}

void trace_output_probes_gone(struct trace_output *o)
{
	o->give_up_ns = clock_now_ns() + PATIENCE_ALL_MS * UINT64_C(1000000);
	size_t done = o->error || o->is_dropping ? 0 : write_some(o, o->late, o->n_late);
	o->is_dropping |= done < o->n_late;
	o->n_dropped += o->n_late - done;
	o->n_late = 0;
}

bool trace_output_dropped(struct trace_output *o, uint64_t *ret_events)
{
	note_written(o);
	*ret_events = o->n_events - o->n_whole_events;
	o->is_reported |= o->is_dropping;
	return o->is_dropping;
}

uint64_t trace_output_dropped_bytes(const struct trace_output *o)
{
	return o->n_dropped;
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

/* A device that is no terminal, such as /dev/null, is not waited for. */
static void look_at_file(struct trace_output *o)
{
	struct stat st;
	mode_t type = fstat(o->fd, &st) ? 0 : st.st_mode & S_IFMT;

	o->is_regular = type == S_IFREG;
	o->may_block = type == S_IFIFO || type == S_IFSOCK || (type == S_IFCHR && isatty(o->fd));
}

static int begin_file(struct trace_output *o, struct cairn_err *err)
{
	o->fd = cairn_file_create(o->path, err);
	if (o->fd < 0)
		return o->fd;
	look_at_file(o);
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

/* The files of an earlier run are older than all that comes. */
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

/* While no reader takes anything, the last of the ends stands for all before it. */
static int make_room(struct trace_output *o)
{
	int e = trace_output_flush(o);

	if (o->n_ends == ENDS_MAX) {
		o->ends[ENDS_MAX / 2 - 1] = o->ends[ENDS_MAX - 1];
		o->n_ends = ENDS_MAX / 2;
	}
	return e;
}

int trace_output_ends(struct trace_output *o, bool is_event)
{
	uint64_t at = o->n_written + o->n_late + __fpending(o->stream);

	if (o->error)
		return trace_output_flush(o);
	o->n_events += is_event;
	if (o->is_dropping)
		return 0;
	o->ends[o->n_ends++] = (struct event_end){at, o->n_events};
	if (o->limit && at >= o->limit && o->is_regular)
		return rotate(o);
	return o->n_ends == ENDS_MAX ? make_room(o) : 0;
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
	o->is_own = true;
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

int trace_output_standard(struct trace_output **ret)
{
	struct trace_output *o = calloc(1, sizeof(*o));

	if (!o)
		return fail(STATUS_NOT_HERE, "no memory");
	*ret = o;
	o->fd = STDOUT_FILENO;
	look_at_file(o);
	/* Earlier output comes first; and such a file begins where it is, and is not cut. */
	fflush(stdout);
	o->is_regular = false;
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
		if (o->n_late)
			trace_output_probes_gone(o);
		e = o->is_dropping && !e ? -ETIMEDOUT : e;
		e = was_reported ? 0 : e;
		fclose(o->stream);
	}
	if (o->is_own && o->fd >= 0 && close(o->fd) && !o->error)
		e = -errno;
	free(o->late);
	free(o);
	return e;
}
