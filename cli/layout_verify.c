/* SPDX-License-Identifier: BSD-2-Clause */
/* Compilers as witnesses: text that compiles only when what it claims is true. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout.h"

enum { ARGS_MAX = 16, OUTPUT_MAX = 4096 };

/* Its exit status, 127 when it is not there; what it says goes to @ret, cut. */
static int compile(char *const *argv, int text, char *ret, size_t size)
{
	size_t n = 0;
	int fds[2], state = 0;
	ssize_t got = 1;

	if (pipe(fds) < 0)
		return 127;
	pid_t pid = fork();
	if (!pid) {
		lseek(text, 0, SEEK_SET);
		dup2(text, STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && got) {
		char rest[512];
		char *to = n + 1 < size ? ret + n : rest;

		got = read(fds[0], to, to == rest ? sizeof(rest) : size - 1 - n);
		if (got < 0 && errno != EINTR)
			break;
		n += to != rest && got > 0 ? (size_t)got : 0;
	}
	ret[n] = 0;
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(state) ? WEXITSTATUS(state) : 127;
}

/* 1: it agrees; 0: it is not there; -1: it does not, and the user has been told. */
static int ask(const char *compiler, const char *option, int text)
{
	const char *argv[ARGS_MAX] = {compiler, "-x", "c", "-std=gnu11", "-w", "-fsyntax-only"};
	char output[OUTPUT_MAX];
	size_t n = 6;

	if (option)
		argv[n++] = option;
	argv[n] = "-";
	int status = compile((char *const *)argv, text, output, sizeof(output));
	if (!status)
		return 1;
	if (status == 127)
		return 0;
	fail(STATUS_NO, "%s does not agree with the layout:\n%s", compiler, output);
	return -1;
}

static int write_all(int fd, const char *text)
{
	for (size_t n = strlen(text); n;) {
		ssize_t put = write(fd, text, n);

		if (put < 0 && errno != EINTR)
			return -errno;
		text += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

int layout_verify(const char *text, const struct cairn_abi *abi, char *ret, size_t size)
{
	const char *cc = getenv("CC"), *names[] = {cc && *cc ? cc : "gcc", "clang"};
	bool own = !abi || !strcmp(abi->name, "x86-64"), i386 = abi && !strcmp(abi->name, "i386");
	int fd = memfd_create("layout", MFD_CLOEXEC), agreed = 0;
	char target[64];

	snprintf(target, sizeof(target), "--target=%s", abi ? abi->triple : "");
	if (fd < 0 || write_all(fd, text) < 0) {
		if (fd >= 0)
			close(fd);
		return fail(STATUS_NOT_HERE, "cannot pass text to a compiler: %m");
	}
	ret[0] = 0;
	for (int i = own || i386 ? 0 : 1; i < 2 && agreed >= 0; i++) {
		int one = ask(names[i], i ? own ? NULL : target : i386 ? "-m32" : NULL, fd);
		size_t n = strlen(ret);

		if (one > 0 && !(i && !strcmp(names[0], names[1])))
			snprintf(ret + n, size - n, "%s%s%s%s", n ? ", " : "", names[i], own ? "" : " for ", own ? "" : abi->name);
		agreed = one < 0 ? -1 : agreed + one;
	}
	close(fd);
	if (agreed < 0)
		return STATUS_NO;
	return agreed ? STATUS_YES
		      : fail(STATUS_NOT_HERE, "no compiler for %s is installed to verify with: install %s",
			     abi ? abi->name : "x86-64", own || i386 ? "gcc or clang" : "clang");
}
