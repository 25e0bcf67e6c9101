/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats that a profile is written in, by the end of a file's name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cairn/file.h>

#include "cmd.h"
#include "profile.h"

struct format {
	const char *end; /* of the file's name */
	/* NULL: a trace, which is a directory */
	int (*make)(const struct cairn_profile *p, size_t type, const char *title,
		    struct cairn_profile_bytes *ret, struct cairn_err *err);
	bool has_times; /* it shows when samples were taken */
};

static int make_folded(const struct cairn_profile *p, size_t type, const char *title,
		       struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_folded(p, type, ret, err);
}

static int make_pprof(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_pprof(p, ret, err);
}

static int make_firefox(const struct cairn_profile *p, size_t type, const char *title,
			struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_firefox(p, type, title, false, ret, err);
}

static int make_firefox_gzip(const struct cairn_profile *p, size_t type, const char *title,
			     struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return cairn_profile_firefox(p, type, title, true, ret, err);
}

/* A new format is a row here. The first one that fits is taken. */
static const struct format formats[] = {
	{".html", cairn_profile_html, false},
	{".folded", make_folded, false},
	{".pb.gz", make_pprof, false},
	{".firefox.json", make_firefox, true},
	{".firefox.json.gz", make_firefox_gzip, true},
	{".json", profile_make_json, false},
	{".ctf", NULL, true},
};

/* NULL: the name says none. */
static const struct format *format_of(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (profile_name_ends(name, formats[i].end))
			return &formats[i];
	return NULL;
}

/* The files of a trace. */
static const char *const trace_names[] = {"metadata", "stream"};

static int write_trace(const struct cairn_profile *p, size_t type, const char *name,
		       const char *title, struct cairn_err *err)
{
	struct cairn_profile_ctf ctf;
	int r = cairn_profile_ctf(p, type, title, &ctf, err);
	struct cairn_file files[] = {{trace_names[0], ctf.metadata.bytes, ctf.metadata.size},
				     {trace_names[1], ctf.stream.bytes, ctf.stream.size}};

	if (r == 0)
		r = cairn_file_write_directory(name, files, 2, err);
	cairn_profile_ctf_free(&ctf);
	return r;
}

static int write_file(const struct cairn_profile *p, size_t type, const char *name,
		      const char *title, struct cairn_err *err)
{
	struct cairn_profile_bytes bytes = {0};
	int r = format_of(name)->make(p, type, title, &bytes, err);

	if (r == 0)
		r = cairn_file_write(name, bytes.bytes, bytes.size, err);
	free(bytes.bytes);
	return r;
}

static int write_out(const struct cairn_profile *p, size_t type, const char *name,
		     const char *title)
{
	struct cairn_err err = {0};
	int r = format_of(name)->make ? write_file(p, type, name, title, &err)
				      : write_trace(p, type, name, title, &err);

	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* With what was lost, for formats that have no comments. */
static char *whole_title(const struct cairn_profile *p, const char *title)
{
	enum { COMMENTS_SHOWN = 4, SHOWN_BYTES = 100 };
	char *text = NULL;
	size_t size, n = cairn_profile_n_comments(p);
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs(title, out);
	for (size_t i = 0; i < n && i < COMMENTS_SHOWN; i++)
		fprintf(out, ", %.*s", SHOWN_BYTES, cairn_profile_comment(p, i));
	return fclose(out) == 0 ? text : NULL;
}

int profile_write_all(const struct cairn_profile *p, size_t type, const struct opt_list *out,
		      const char *title)
{
	char *whole = whole_title(p, title);
	int status = STATUS_YES;

	for (size_t i = 0; i < out->n; i++) {
		int one = write_out(p, type, out->items[i], whole ? whole : title);

		status = status == STATUS_YES ? one : status;
	}
	free(whole);
	return status;
}

bool profile_needs_moments(const struct opt_list *out)
{
	for (size_t i = 0; i < out->n; i++)
		if (format_of(out->items[i])->has_times)
			return true;
	return false;
}

void profile_remove(const char *name)
{
	if (format_of(name)->make)
		unlink(name);
	else
		cairn_file_remove_directory(name, trace_names, 2, NULL);
}

char *profile_window_name(const char *name, int64_t time_ns)
{
	size_t n = strlen(name) - strlen(format_of(name)->end);
	time_t seconds = (time_t)(time_ns / 1000000000);
	char stamp[32], *path;
	struct tm t;

	gmtime_r(&seconds, &t);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &t);
	return asprintf(&path, "%.*s.%s.%03dZ%s", (int)n, name, stamp,
			(int)(time_ns / 1000000 % 1000), format_of(name)->end) < 0
		       ? NULL
		       : path;
}

int profile_check_names(const struct opt_list *out)
{
	for (size_t i = 0; i < out->n; i++)
		if (!format_of(out->items[i]))
			return fail(STATUS_USAGE,
				    "%s: the name says the format: NAME.html, NAME.folded, "
				    "NAME.pb.gz, NAME.json, NAME.firefox.json, "
				    "NAME.firefox.json.gz or NAME.ctf",
				    out->items[i]);
	return STATUS_YES;
}
