/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small key-value server, to be traced
 *
 *	server SOCKET		answers one connection after the other, until SIGTERM
 *
 * A request is a line: VERB[!] [PRIORITY] KEY [VALUE], where ! asks for an answer only when
 * something is wrong. It is written as servers are: a struct for the request, small static
 * functions for each step. Built with -O2 most of these are gone: inlined into their callers, where
 * no ordinary uprobe finds them.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define KEY_MAX   24
#define VALUE_MAX 40
#define SLOTS     64

enum verb { VERB_NONE, VERB_GET, VERB_PUT, VERB_DROP };

struct request {
	enum verb verb;
	unsigned int quiet : 1;
	unsigned int priority : 3;
	unsigned int n_words : 4;
	char key[KEY_MAX];
	const char *value;
};

struct slot {
	bool used;
	unsigned int n_hits;
	char key[KEY_MAX];
	char value[VALUE_MAX];
};

static struct slot slots[SLOTS];
static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
	stopped = 1;
}

static unsigned int hash(const char *key)
{
	unsigned int h = 2166136261u;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 16777619u;
	return h;
}

static bool is_mine(const struct slot *slot, const char *key)
{
	return slot->used && !strcmp(slot->key, key);
}

/* The slot of @key, or a free one for it, or NULL when all are taken. */
static struct slot *find_slot(const char *key, bool create)
{
	unsigned int first = hash(key) % SLOTS;
	struct slot *slot_free = NULL;

	for (unsigned int i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[(first + i) % SLOTS];

		if (is_mine(slot, key))
			return slot;
		if (!slot->used && !slot_free)
			slot_free = slot;
	}
	return create ? slot_free : NULL;
}

static enum verb verb_of(const char *word)
{
	static const char *const words[] = {
		[VERB_GET] = "GET", [VERB_PUT] = "PUT", [VERB_DROP] = "DROP"};

	for (enum verb verb = VERB_GET; verb <= VERB_DROP; verb++)
		if (!strcmp(word, words[verb]))
			return verb;
	return VERB_NONE;
}

static bool read_verb(struct request *request, char *word)
{
	size_t len = strlen(word);

	if (len && word[len - 1] == '!') {
		request->quiet = 1;
		word[len - 1] = '\0';
	}
	request->verb = verb_of(word);
	return request->verb != VERB_NONE;
}

static bool parse(char *line, struct request *request)
{
	char *rest, *word = strtok_r(line, " \n", &rest);

	memset(request, 0, sizeof(*request));
	if (!word || !read_verb(request, word))
		return false;
	word = strtok_r(NULL, " \n", &rest);
	if (word && word[0] >= '0' && word[0] <= '7' && !word[1]) {
		request->priority = (unsigned int)(word[0] - '0');
		word = strtok_r(NULL, " \n", &rest);
	}
	if (!word)
		return false;
	snprintf(request->key, sizeof(request->key), "%s", word);
	request->value = strtok_r(NULL, "\n", &rest);
	request->n_words = request->value ? 3 : 2;
	return true;
}

static void store(struct slot *slot, const struct request *request)
{
	slot->used = true;
	memcpy(slot->key, request->key, sizeof(slot->key));
	snprintf(slot->value, sizeof(slot->value), "%s", request->value ? request->value : "");
}

static const char *answer(const struct request *request)
{
	struct slot *slot = find_slot(request->key, request->verb == VERB_PUT);

	if (!slot)
		return "none";
	slot->n_hits++;
	switch (request->verb) {
	case VERB_PUT:
		store(slot, request);
		return "ok";
	case VERB_DROP:
		slot->used = false;
		return "ok";
	default:
		return slot->value;
	}
}

static void serve(FILE *in, FILE *out)
{
	struct request request;
	char line[256];

	while (!stopped && fgets(line, sizeof(line), in)) {
		const char *text = parse(line, &request) ? answer(&request) : "what?";

		if (request.quiet && !strcmp(text, "ok"))
			text = "";
		fprintf(out, "%s\n", text);
		fflush(out);
	}
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 4)) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	/* No SA_RESTART: accept() and fgets() have to return. */
	struct sigaction action = {.sa_handler = on_term};
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: server SOCKET\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = listen_at(argv[1]);
	while (!stopped) {
		int peer = accept(fd, NULL, NULL);
		FILE *in = peer < 0 ? NULL : fdopen(peer, "r");
		FILE *out = in ? fdopen(dup(peer), "w") : NULL;

		if (out) {
			serve(in, out);
			fclose(out);
		}
		if (in)
			fclose(in);
	}
	unlink(argv[1]);
	return 0;
}
