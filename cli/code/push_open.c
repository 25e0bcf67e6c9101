/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a push: the server, the lines of its requests' heads, labels, the spool. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "push.h"
#include "push_http.h"

static const struct server {
	const char *name, *path, *type;
} servers[] = {
	[CAIRN_PROFILE_PYROSCOPE] = {"pyroscope", "/push.v1.PusherService/Push",
				     "application/proto"},
	[CAIRN_PROFILE_PARCA] = {"parca", "/api/profiles/writeraw", "application/json"},
	[CAIRN_PROFILE_OTLP] = {"otlp", "/v1development/profiles", "application/x-protobuf"},
};

#define N_SERVERS (sizeof(servers) / sizeof(servers[0]))

/* ---- the address ---- */

static bool ends_with(const char *text, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n >= k && !memcmp(text + n - k, end, k);
}

/* A password in an address would be in the spool and in messages. */
static const char *what_is_wrong(const char *url)
{
	const char *host;

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return "the address begins with http:// or https://";
	host = strstr(url, "//") + 2;
	if (memchr(host, '@', strcspn(host, "/")))
		return "a name and a password belong into --header @FILE";
	if (!*host || *host == '/')
		return "there is no host in it";
	for (const char *at = url; *at; at++)
		if (!isgraph((unsigned char)*at) || strchr("?#\"\\<>", *at))
			return "a character of it has no place in such an address";
	return NULL;
}

/* The server that the path says; N_SERVERS: none. */
static size_t server_of_path(const char *url, size_t n)
{
	size_t i = 0;

	while (i < N_SERVERS && !ends_with(url, n, servers[i].path))
		i++;
	return i;
}

/* Its format may still change: nobody gets it without asking for it. */
static int check_otlp(const struct push_wish *wish, size_t by_path)
{
	if (wish->otlp && wish->as)
		return fail(STATUS_USAGE, "--otlp and --as name two kinds of server");
	if (wish->otlp && by_path < N_SERVERS && by_path != CAIRN_PROFILE_OTLP)
		return fail(STATUS_USAGE, "%s: --otlp, and the path of %s", wish->url,
			    servers[by_path].name);
	if (!wish->otlp && by_path == CAIRN_PROFILE_OTLP)
		return fail(STATUS_USAGE, "%s: this is OTLP's path\nTry: --otlp", wish->url);
	return STATUS_YES;
}

static enum cairn_profile_server choose_server(const struct push_wish *wish, size_t by_path)
{
	if (wish->otlp)
		return CAIRN_PROFILE_OTLP;
	if (by_path < N_SERVERS)
		return (enum cairn_profile_server)by_path;
	for (size_t i = 0; wish->as && i < N_SERVERS; i++)
		if (!strcmp(wish->as, servers[i].name))
			return (enum cairn_profile_server)i;
	return CAIRN_PROFILE_PYROSCOPE;
}

static int read_url(struct push *p)
{
	const char *url = p->wish->url, *wrong = what_is_wrong(url);
	size_t n = strlen(url), by_path;
	int status;

	if (wrong || n > 2000)
		return fail(STATUS_USAGE, "%s: %s", url, wrong ? wrong : "too long");
	while (url[n - 1] == '/')
		n--;
	by_path = server_of_path(url, n);
	status = check_otlp(p->wish, by_path);
	if (status != STATUS_YES)
		return status;
	p->to = choose_server(p->wish, by_path);
	p->type = servers[p->to].type;
	if (by_path < N_SERVERS)
		n -= strlen(servers[by_path].path);
	if (asprintf(&p->url, "%.*s%s", (int)n, url, servers[p->to].path) >= 0)
		return STATUS_YES;
	p->url = NULL;
	return fail(STATUS_NOT_HERE, "no memory");
}

/* ---- lines of the head, and labels ---- */

static int add_header(struct push *p, const char *line, const char *from)
{
	const char **grown;

	/* The wrong word may be a secret. */
	if (!strchr(line, ':') || line[strcspn(line, "\r\n")])
		return fail(STATUS_USAGE, "%s: a line of a head is NAME: VALUE", from);
	grown = realloc(p->headers.items, (p->headers.n + 1) * sizeof(*grown));
	if (!grown)
		return fail(STATUS_NOT_HERE, "no memory");
	p->headers.items = grown;
	p->headers.items[p->headers.n++] = line;
	return STATUS_YES;
}

/* Files are read into one text, whose lines stay. */
static int read_headers(struct push *p, const char *path)
{
	FILE *in = fopen(path, "re");
	char *text = malloc(1 << 16), *at, *rest = NULL;
	size_t n = in && text ? fread(text, 1, (1 << 16) - 1, in) : 0;
	int status = STATUS_YES;

	if (!in || ferror(in))
		status = fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
	else if (p->header_text)
		status = fail(STATUS_USAGE, "--header: one file at most");
	else if (n == (1 << 16) - 1)
		status = fail(STATUS_USAGE, "%s: headers of more than 64 KiB", path);
	if (in)
		fclose(in);
	if (!text || status != STATUS_YES) {
		free(text);
		return text ? status : fail(STATUS_NOT_HERE, "no memory");
	}
	text[n] = 0;
	p->header_text = text;
	for (at = strtok_r(text, "\r\n", &rest); at && status == STATUS_YES;
	     at = strtok_r(NULL, "\r\n", &rest))
		status = add_header(p, at, path);
	return status;
}

static int take_headers(struct push *p)
{
	const struct opt_list *list = &p->wish->headers;
	int status = STATUS_YES;

	for (size_t i = 0; status == STATUS_YES && i < list->n; i++)
		status = list->items[i][0] == '@' ? read_headers(p, list->items[i] + 1)
						  : add_header(p, list->items[i], "--header");
	return status;
}

/* Room for three more. */
static int take_labels(struct push *p)
{
	const struct opt_list *list = &p->wish->labels;
	struct cairn_err err = {0};
	int r;

	p->labels = calloc(list->n + 3, sizeof(*p->labels));
	if (!p->labels)
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < list->n; i++) {
		const char *equals = strchr(list->items[i], '=');
		char *key =
			equals ? strndup(list->items[i], (size_t)(equals - list->items[i])) : NULL;

		if (!equals)
			return fail(STATUS_USAGE, "--label takes NAME=VALUE, not %s",
				    list->items[i]);
		if (!key)
			return fail(STATUS_NOT_HERE, "no memory");
		p->labels[i] = (struct cairn_profile_label){.key = key, .text = equals + 1};
	}
	r = cairn_profile_check_labels(p->to, p->labels, list->n, &err);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* ---- the spool's place ---- */

/* NULL: there is none, or no memory. */
static char *spool_path(const struct push *p)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n = -1;

	if (p->wish->spool)
		return strdup(p->wish->spool);
	/* The specification of XDG_STATE_HOME: a relative path is to be ignored. */
	if (state && state[0] == '/')
		n = asprintf(&path, "%s/cairn/push", state);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.local/state/cairn/push", home);
	return n < 0 ? NULL : path;
}

static int open_spool(struct push *p)
{
	uint64_t mib = p->wish->spool_mib ? p->wish->spool_mib : 256;
	struct cairn_err err = {0};
	char *path = spool_path(p);
	int r;

	if (!path)
		return fail(STATUS_USAGE, "there is no place for what waits\nTry: --spool DIR");
	if (mib > 1u << 20) {
		free(path);
		return fail(STATUS_USAGE, "--spool-size %" PRIu64 ": at most %u", mib, 1u << 20);
	}
	r = spool_open(&p->spool, path, mib << 20, &err);
	free(path);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

int push_open(const struct push_wish *wish, struct push *ret)
{
	int status;

	*ret = (struct push){.wish = wish, .spool = {.dir = -1}};
	status = read_url(ret);
	if (status == STATUS_YES)
		status = take_headers(ret);
	if (status == STATUS_YES)
		status = take_labels(ret);
	if (status == STATUS_YES && !http_here())
		status = STATUS_NOT_HERE;
	return status == STATUS_YES ? open_spool(ret) : status;
}

void push_close(struct push *p)
{
	for (size_t i = 0; p->labels && i < p->wish->labels.n; i++)
		free((char *)p->labels[i].key);
	free(p->labels);
	free(p->headers.items);
	free(p->header_text);
	free(p->url);
	free(p->failure);
	if (p->spool.path)
		spool_close(&p->spool);
}
