/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking a debuginfod
 *
 * elfutils' client library does it: it knows the servers' protocol, and shares its cache with gdb and perf. It is loaded when
 * it is needed, because it brings a TLS library with it, whose start takes longer than most of our answers.
 */
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cairn/pack.h>

#include "cmd.h"
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
	int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *build_id, int len, char **path);
	void (*end)(struct debuginfod_client *client);
};

/* The library's callback has no other way to know its functions. */
struct download {
	const char *urls;
	time_t heard_of; /* when something came the last time */
	long done;
	bool told;
};

static struct library library;

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static bool load(struct library *l)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"debuginfod_begin", &l->begin},
		{"debuginfod_set_progressfn", &l->set_progress},
		{"debuginfod_set_user_data", &l->set_user_data},
		{"debuginfod_get_user_data", &l->get_user_data},
		{"debuginfod_find_debuginfo", &l->find_debuginfo},
		{"debuginfod_end", &l->end},
	};

	if (!l->handle)
		l->handle = dlopen("libdebuginfod.so.1", RTLD_NOW);
	for (size_t i = 0; l->handle && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(l->handle, symbols[i].name);

		if (!symbol)
			return false;
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
	return l->handle;
}

static int on_progress(struct debuginfod_client *client, long done, long total)
{
	struct download *d = library.get_user_data(client);

	if (done != d->done)
		d->heard_of = now();
	d->done = done;
	if (isatty(STDERR_FILENO)) {
		fputc('\r', stderr);
		say(stderr, "cairn: downloading from %s", d->urls);
		/* Before there are bytes it counts something else. */
		if (total > 1 << 16 && done <= total)
			fprintf(stderr, ": %ld of %ld KiB", done >> 10, total >> 10);
		d->told = true;
	}
	return now() - d->heard_of > SILENCE_SECONDS_MAX;
}

const char *debuginfod_wanted(const char *option)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *on = getenv("CAIRN_DEBUGINFOD");

	if (option && option[0])
		return option;
	if (!option && (!on || strcmp(on, "1")))
		return NULL;
	return urls && urls[strspn(urls, " ")] ? urls : NULL;
}

/*
 * Ctrl-C ends the program as it always does. To end the download by the library's callback would be worse: the library takes that
 * for "not there", and asks no more for ten minutes.
 */
static int ask(struct debuginfod_client *client, const char *urls, const uint8_t *id, size_t len, char **ret)
{
	struct download d = {.urls = urls, .heard_of = now()};
	int fd;

	library.set_user_data(client, &d);
	library.set_progress(client, on_progress);
	fd = library.find_debuginfo(client, id, (int)len, ret);
	if (d.told)
		fprintf(stderr, "\r\033[K");
	if (fd >= 0)
		close(fd);
	else
		*ret = NULL;
	return fd == -ENOENT || fd >= 0 ? 0 : fd;
}

/* What was asked, for @what of the binary whose id is @build_id. */
static void tell(const char *urls, const char *what, const uint8_t *build_id, size_t len, int r, const char *found)
{
	char hex[2 * CAIRN_PACK_SERVED_ID_MAX + 1] = "";
	struct stat st;

	for (size_t i = 0; i < len && i < CAIRN_PACK_SERVED_ID_MAX; i++)
		snprintf(hex + 2 * i, sizeof(hex) - 2 * i, "%02x", build_id[i]);
	if (r < 0)
		fail(STATUS_NOT_HERE, "%s: %s\nIt was asked for the %s of %s.", urls, strerror(-r), what, hex);
	else if (!found || stat(found, &st) < 0)
		fprintf(stderr, "cairn: asked %s for the %s of %s: not there\n", urls, what, hex);
	else
		fprintf(stderr, "cairn: asked %s for the %s of %s: %lld KiB\n", urls, what, hex,
			(long long)(st.st_size + 1023) / 1024);
}

int debuginfod_fetch(const char *urls, enum debuginfod_file file, const uint8_t *build_id, size_t len, char **ret)
{
	uint8_t id[CAIRN_PACK_SERVED_ID_MAX];
	size_t n = cairn_pack_served_id(build_id, len, id);
	bool sidecar = file == DEBUGINFOD_SIDECAR;
	struct debuginfod_client *client;
	int r;

	*ret = NULL;
	if (sidecar ? !n : !len)
		return 0;
	if (!load(&library)) {
		fail(STATUS_NOT_HERE, "asking a debuginfod needs libdebuginfod.so.1\nTry: apt install libdebuginfod1");
		return -ENOSYS;
	}
	/* The one way to tell the library. */
	if (setenv("DEBUGINFOD_URLS", urls, 1))
		return -ENOMEM;
	client = library.begin();
	if (!client)
		return -ENOMEM;
	r = ask(client, urls, sidecar ? id : build_id, sidecar ? n : len, ret);
	library.end(client);
	tell(urls, sidecar ? "sidecar" : "debug file", build_id, len, r, *ret);
	return r;
}
