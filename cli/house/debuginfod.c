/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking a debuginfod
 *
 * elfutils' client library does it: it knows the servers' protocol, and shares its cache with gdb
 * and perf. It is loaded on demand, because it loads a TLS library, whose start takes longer than
 * most of our answers.
 */
#include "debuginfod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/sidecar.h>

#include "clock.h"
#include "cmd.h"
#include "library.h"
#include "say.h"

enum { SILENCE_SECONDS_MAX = 30 };

/* elfutils/debuginfod.h, as far as it is used; unchanged since the library's first version. */
struct debuginfod_client;
typedef int progress_fn(struct debuginfod_client *client, long done, long total);

struct library {
	void *handle;
	struct debuginfod_client *(*begin)(void);
	void (*set_progress)(struct debuginfod_client *client, progress_fn *fn);
	void (*set_user_data)(struct debuginfod_client *client, void *data);
	void *(*get_user_data)(struct debuginfod_client *client);
	int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *build_id,
			      int len, char **path);
	void (*set_verbose_fd)(struct debuginfod_client *client, int fd);
	void (*end)(struct debuginfod_client *client);
};

/* The library's callback has no other way to know its functions. */
struct download {
	const char *urls;
	double heard_of; /* when something came the last time */
	long done;
	bool told;
};

static struct library library;

static bool load(struct library *l)
{
	const struct library_symbol symbols[] = {
		{"debuginfod_begin", &l->begin},
		{"debuginfod_set_progressfn", &l->set_progress},
		{"debuginfod_set_user_data", &l->set_user_data},
		{"debuginfod_get_user_data", &l->get_user_data},
		{"debuginfod_find_debuginfo", &l->find_debuginfo},
		{"debuginfod_set_verbose_fd", &l->set_verbose_fd},
		{"debuginfod_end", &l->end},
	};

	if (!l->handle)
		l->handle = library_load("libdebuginfod.so.1", symbols,
					 sizeof(symbols) / sizeof(symbols[0]));
	return l->handle;
}

static int on_progress(struct debuginfod_client *client, long done, long total)
{
	struct download *d = library.get_user_data(client);

	if (done != d->done)
		d->heard_of = clock_now_seconds();
	d->done = done;
	if (isatty(STDERR_FILENO)) {
		fputc('\r', stderr);
		say(stderr, "cairn: downloading from %s", d->urls);
		/* Before there are bytes it counts something else. */
		if (total > 1 << 16 && done <= total)
			fprintf(stderr, ": %ld of %ld KiB", done >> 10, total >> 10);
		d->told = true;
	}
	return clock_now_seconds() - d->heard_of > SILENCE_SECONDS_MAX;
}

bool debuginfod_asked(const char *option)
{
	const char *on = getenv("CAIRN_DEBUGINFOD");

	return option || (on && !strcmp(on, "1"));
}

const char *debuginfod_wanted(const char *option)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (option && option[0])
		return option;
	if (!debuginfod_asked(option))
		return NULL;
	return urls && urls[strspn(urls, " ")] ? urls : NULL;
}

/* ---- failures of servers ---- */

/*
 * A line of the client's report that says why a request failed; NULL: it says something else, or
 * that the server does not have the file.
 */
static const char *failure_in(const char *line)
{
	static const char response[] = "server response ", from[] = "url ";
	const char *text;

	if (!strncmp(line, response, strlen(response)))
		return strstr(line, "HTTP response code said error") ? NULL
								     : line + strlen(response);
	if (strncmp(line, from, strlen(from)))
		return NULL;
	/* "url 0 http://..." is the request, "url 0 Empty reply from server" its end. */
	text = line + strlen(from);
	text += strspn(text, "0123456789");
	if (*text++ != ' ' || strcspn(text, ":") + 1 == strcspn(text, "/"))
		return NULL;
	return strstr(text, "error: 404") || strstr(text, "Couldn't open file") ? NULL : text;
}

/*
 * The client takes each failure that it has no errno for as "not there": an empty reply, or an
 * error of the server. Its reports tell them apart. The last failure; free(). NULL: none.
 */
static char *last_failure(int fd)
{
	enum { REPORT_MAX = 64 << 10 };
	char *report = malloc(REPORT_MAX + 1), *failure = NULL, *at;
	ssize_t n = report ? pread(fd, report, REPORT_MAX, 0) : 0;

	if (n > 0) {
		report[n] = 0;
		for (char *line = strtok_r(report, "\n", &at); line;
		     line = strtok_r(NULL, "\n", &at))
			if (failure_in(line)) {
				free(failure);
				failure = strdup(failure_in(line));
			}
	}
	free(report);
	return failure;
}

/*
 * Ctrl-C ends the program as it always does. To end the download by the library's callback would be
 * worse: the library takes that for "not there", and sends no request for ten minutes.
 */
static int ask(struct debuginfod_client *client, const char *urls, const uint8_t *id, size_t len,
	       char **ret, char **ret_failure)
{
	struct download d = {.urls = urls, .heard_of = clock_now_seconds()};
	/* A user who wants to read the report gets it. */
	int report = getenv("DEBUGINFOD_VERBOSE") ? -1 : memfd_create("debuginfod", MFD_CLOEXEC),
	    fd;

	library.set_user_data(client, &d);
	library.set_progress(client, on_progress);
	if (report >= 0)
		library.set_verbose_fd(client, report);
	fd = library.find_debuginfo(client, id, (int)len, ret);
	*ret_failure = fd < 0 && report >= 0 ? last_failure(report) : NULL;
	if (report >= 0)
		close(report);
	if (d.told)
		fprintf(stderr, "\r\033[K");
	if (fd >= 0)
		close(fd);
	else
		*ret = NULL;
	if (fd == -ENOENT && *ret_failure)
		return -EIO;
	return fd == -ENOENT || fd >= 0 ? 0 : fd;
}

enum { HEX_MAX = 2 * CAIRN_SIDECAR_SERVED_ID_MAX + 1 };

static void put_hex(const uint8_t *id, size_t len, char hex[HEX_MAX])
{
	hex[0] = 0;
	for (size_t i = 0; i < len && i < CAIRN_SIDECAR_SERVED_ID_MAX; i++)
		snprintf(hex + 2 * i, HEX_MAX - 2 * i, "%02x", id[i]);
}

/* ---- the client's cache ---- */

enum { DIRS_MAX = 3 };

static void add_dir(char *dirs[DIRS_MAX], size_t *n, const char *base, const char *name)
{
	char *dir;

	/* The specification of XDG_CACHE_HOME: a relative path is to be ignored. */
	if (base && base[0] == '/' && asprintf(&dir, "%s%s", base, name) >= 0)
		dirs[(*n)++] = dir;
}

/* As elfutils chooses: its variable, or the first of these that is there. */
static size_t cache_dirs(char *dirs[DIRS_MAX])
{
	const char *own = getenv("DEBUGINFOD_CACHE_PATH"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	size_t n = 0;

	if (own && own[0]) {
		dirs[n] = strdup(own);
		return n + (dirs[n] != NULL);
	}
	add_dir(dirs, &n, home, "/.debuginfod_client_cache");
	add_dir(dirs, &n, xdg, "/debuginfod_client");
	add_dir(dirs, &n, home, "/.cache/debuginfod_client");
	return n;
}

/* An empty file says that no server had it. */
static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

void debuginfod_cached(enum debuginfod_file file, const uint8_t *build_id, size_t len, char **ret)
{
	uint8_t id[CAIRN_SIDECAR_SERVED_ID_MAX];
	bool sidecar = file == DEBUGINFOD_SIDECAR;
	size_t n_id = sidecar ? cairn_sidecar_served_id(build_id, len, id) : len, n;
	char hex[HEX_MAX], *dirs[DIRS_MAX], *path;

	*ret = NULL;
	if (!n_id || n_id > CAIRN_SIDECAR_SERVED_ID_MAX)
		return;
	put_hex(sidecar ? id : build_id, n_id, hex);
	n = cache_dirs(dirs);
	for (size_t i = 0; i < n; i++) {
		if (!*ret && asprintf(&path, "%s/%s/debuginfo", dirs[i], hex) >= 0) {
			if (is_file(path))
				*ret = path;
			else
				free(path);
		}
		free(dirs[i]);
	}
	if (*ret)
		say(stderr, "cairn: found the %s in the debuginfod client's cache: %s\n",
		    sidecar ? "sidecar" : "debug file", *ret);
}

char *debuginfod_cache_text(void)
{
	char *dirs[DIRS_MAX], *text = NULL;
	size_t n = cache_dirs(dirs);

	for (size_t i = 0; i < n; i++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", text ? text : "", text ? ", " : "", dirs[i]) < 0)
			longer = NULL;
		free(text);
		text = longer;
		free(dirs[i]);
	}
	return text;
}

/* The client keeps an empty file for what no server has; after a failure that is not known. */
static void forget_negative(const uint8_t *id, size_t len)
{
	char hex[HEX_MAX], *dirs[DIRS_MAX], *path;
	size_t n = cache_dirs(dirs);
	struct stat st;

	put_hex(id, len, hex);
	for (size_t i = 0; i < n; i++) {
		if (asprintf(&path, "%s/%s/debuginfo", dirs[i], hex) >= 0) {
			if (!lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size)
				unlink(path);
			free(path);
		}
		free(dirs[i]);
	}
}

/* A request, for @what of the binary whose id is @build_id; @failure is the client's text. */
static void tell(const char *urls, const char *what, const uint8_t *build_id, size_t len, int r,
		 const char *failure, const char *found)
{
	char hex[HEX_MAX];
	struct stat st;

	put_hex(build_id, len, hex);
	if (r < 0)
		fail(STATUS_NOT_HERE, "%s: %s\nThe request was for the %s of %s.", urls,
		     failure ? failure : strerror(-r), what, hex);
	else if (!found || stat(found, &st) < 0)
		fprintf(stderr, "cairn: queried %s for the %s of %s: not there\n", urls, what, hex);
	else
		fprintf(stderr, "cairn: queried %s for the %s of %s: %lld KiB\n", urls, what, hex,
			(long long)(st.st_size + 1023) / 1024);
}

int debuginfod_fetch(const char *urls, enum debuginfod_file file, const uint8_t *build_id,
		     size_t len, char **ret)
{
	uint8_t id[CAIRN_SIDECAR_SERVED_ID_MAX];
	size_t n = cairn_sidecar_served_id(build_id, len, id);
	bool sidecar = file == DEBUGINFOD_SIDECAR;
	struct debuginfod_client *client;
	char *failure;
	int r;

	*ret = NULL;
	if (sidecar ? !n : !len)
		return 0;
	if (!load(&library)) {
		fail(STATUS_NOT_HERE, "asking a debuginfod needs libdebuginfod.so.1\nTry: apt "
				      "install libdebuginfod1");
		return -ENOSYS;
	}
	/* The one way to tell the library. */
	if (setenv("DEBUGINFOD_URLS", urls, 1))
		return -ENOMEM;
	client = library.begin();
	if (!client)
		return -ENOMEM;
	r = ask(client, urls, sidecar ? id : build_id, sidecar ? n : len, ret, &failure);
	library.end(client);
	if (r == -EIO)
		forget_negative(sidecar ? id : build_id, sidecar ? n : len);
	tell(urls, sidecar ? "sidecar" : "debug file", build_id, len, r, failure, *ret);
	free(failure);
	return r;
}
