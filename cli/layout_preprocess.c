/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preprocessor: $CC -E, or cc; for an ABI that is not this machine's, clang --target=... -E, so that macros are that
 * machine's. What it complains about goes to stderr as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout.h"

struct words {
	char **p;
	size_t n, cap;
};

/* Copies; false when there is no memory. */
static bool add(struct words *w, const char *prefix, const char *text)
{
	char *word = NULL;

	if (w->n + 2 > w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 16;
		char **grown = realloc(w->p, cap * sizeof(*grown));

		if (!grown)
			return false;
		w->p = grown;
		w->cap = cap;
	}
	if (asprintf(&word, "%s%s", prefix, text) < 0)
		return false;
	w->p[w->n++] = word;
	w->p[w->n] = NULL;
	return true;
}

static bool command(struct words *w, const char *path, const struct cairn_abi *abi, const struct layout_values *values)
{
	const char *cc = getenv("CC");
	bool own = !abi || !strcmp(abi->name, "x86-64"), ok;

	ok = own ? add(w, "", cc && *cc ? cc : "cc") : add(w, "", "clang") && add(w, "--target=", abi->triple);
	for (size_t i = 0; ok && i < values->include_dirs.n; i++)
		ok = add(w, "-I", values->include_dirs.items[i]);
	for (size_t i = 0; ok && i < values->defines.n; i++)
		ok = add(w, "-D", values->defines.items[i]);
	return ok && add(w, "", "-E") && add(w, "-x", "c") && add(w, "", path);
}

static pid_t start(char **argv, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	if (pid < 0)
		close(fds[0]);
	*ret_fd = fds[0];
	return pid;
}

/* The compiler's own debug information, also of what nothing uses. */
static bool compile_command(struct words *w, const char *path, const struct cairn_abi *abi,
			    const struct layout_values *values, const char *out)
{
	bool own = !abi || !strcmp(abi->name, "x86-64"), ok = add(w, "", "clang");

	if (ok && !own)
		ok = add(w, "--target=", abi->triple);
	for (size_t i = 0; ok && i < values->include_dirs.n; i++)
		ok = add(w, "-I", values->include_dirs.items[i]);
	for (size_t i = 0; ok && i < values->defines.n; i++)
		ok = add(w, "-D", values->defines.items[i]);
	return ok && add(w, "", "-g") && add(w, "", "-fno-eliminate-unused-debug-types") && add(w, "", "-fstandalone-debug") &&
	       add(w, "", "-w") && add(w, "", "-c") && add(w, "-x", "c") && add(w, "-o", out) && add(w, "", path);
}

static void words_free(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->p[i]);
	free(w->p);
}

int layout_compile(const char *path, const struct cairn_abi *abi, const struct layout_values *values, const char *out)
{
	struct words w = {0};
	int fd = -1, state = 0, status = STATUS_YES;
	pid_t pid = compile_command(&w, path, abi, values, out) ? start(w.p, &fd) : -1;

	if (pid < 0) {
		status = fail(STATUS_NOT_HERE, "cannot start clang: %m");
	} else {
		close(fd);
		while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
			status = fail(STATUS_NOT_HERE, "clang, which --via-compiler is about, is not installed");
		else if (state)
			status = fail(STATUS_USAGE, "clang cannot compile %s", path);
	}
	words_free(&w);
	return status;
}

/* Everything up to the end; NULL: no memory. */
static char *read_all(int fd, size_t *ret_size)
{
	size_t n = 0, cap = 1 << 16;
	char *text = malloc(cap);
	ssize_t got = 1;

	while (text && got) {
		got = read(fd, text + n, cap - n);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
		if (n < cap)
			continue;
		char *grown = realloc(text, cap *= 2);
		if (!grown)
			free(text);
		text = grown;
	}
	*ret_size = n;
	return text;
}

int layout_preprocess(const char *path, const struct cairn_abi *abi, const struct layout_values *values, char **ret,
		      size_t *ret_size)
{
	struct words w = {0};
	int fd = -1, state = 0, status = STATUS_YES;
	char *text = NULL;
	pid_t pid = command(&w, path, abi, values) ? start(w.p, &fd) : -1;

	if (pid < 0) {
		status = fail(STATUS_NOT_HERE, "cannot start the preprocessor: %m");
	} else {
		text = read_all(fd, ret_size);
		close(fd);
		while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
			;
		if (!text)
			status = fail(STATUS_NOT_HERE, "no memory");
		else if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
			status = fail(STATUS_NOT_HERE,
				      "%s, which would preprocess %s, is not installed\n"
				      "Install it, or name another in CC, or preprocess the file to NAME.i",
				      w.p[0], path);
		else if (state)
			status = fail(STATUS_USAGE, "%s cannot preprocess %s", w.p[0], path);
	}
	words_free(&w);
	if (status) {
		free(text);
		return status;
	}
	*ret = text;
	return STATUS_YES;
}
