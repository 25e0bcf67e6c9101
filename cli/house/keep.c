/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping a sidecar after an answer that was read from debug information
 *
 * The answer is out; the next one should come at once. Making the sidecar of a kernel takes
 * seconds, and a user who asked about one function has not agreed to wait for that. So a separate
 * process makes it, `cairn sidecar --keep FILE`:
 *
 *	- executed anew, with none of our descriptors and none of our memory: a link that holds
 *	  probes, or the write end of a pipe with a reader, would live on in it
 *	- in a session of its own, without input or output: neither Ctrl-C nor a closing terminal is
 *	  meant for it
 *	- at the lowest priority, one thread, the first to be killed when memory is short, and ended
 *	  by the kernel should it ever need minutes
 *	- the cache lets one such process work at a time; those that wait find that the work is
 *	  done, or that it just failed, and leave it for a while
 *
 * We wait for it, but only a moment: the sidecar of a program of ordinary size is there when the
 * command ends.
 */
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <linux/ioprio.h>

/* Work that is done by then does not make the command feel slower. */
enum { MOMENT_MS = 50 };

/* For making it, and for the turn of others. */
enum { CPU_SECONDS_MAX = 600, SECONDS_MAX = 1800 };

static void be_modest(void)
{
	struct rlimit cpu = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
	struct sched_param idle = {0};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Whatever is refused: it works less modestly. */
	if (fd >= 0)
		(void)!write(fd, "1000", 4);
	setrlimit(RLIMIT_CPU, &cpu);
	setpriority(PRIO_PROCESS, 0, 19);
	sched_setscheduler(0, SCHED_IDLE, &idle);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
	alarm(SECONDS_MAX);
}

static bool move_to_3(int fd)
{
	return fd == 3 || (fd > 3 && dup2(fd, 3) == 3);
}

/* In the child. @done is the one descriptor that stays open: its end shows that all is over. */
static void become_maker(char *const argv[], int done)
{
	sigset_t none;
	int null;

	done = fcntl(done, F_DUPFD, 3);
	null = open("/dev/null", O_RDWR);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(1);
	if (!move_to_3(done) || syscall(SYS_close_range, 4u, ~0u, 0u) < 0)
		_exit(1);
	be_modest();
	execv("/proc/self/exe", argv);
	_exit(1);
}

/* A grandchild, so that no process has to wait for it. */
static void start(char *const argv[], int done)
{
	pid_t child = fork();

	if (!child) {
		pid_t maker = fork();

		if (!maker)
			become_maker(argv, done);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A moment for @argv to be done; then it goes on alone. */
static void run_in_background(char *const argv[])
{
	struct pollfd pipe_end = {.events = POLLIN};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	fflush(NULL);
	start(argv, ends[1]);
	close(ends[1]);
	pipe_end.fd = ends[0];
	poll(&pipe_end, 1, MOMENT_MS);
	close(ends[0]);
}

void keep_in_background(const char *path, const char *const *debug_dirs, size_t n_debug_dirs)
{
	const char **argv = calloc(2 * n_debug_dirs + 8, sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return;
	argv[n++] = "cairn";
	argv[n++] = "sidecar";
	argv[n++] = "--keep=background";
	argv[n++] = "--jobs=1";
	for (size_t i = 0; i < n_debug_dirs; i++) {
		argv[n++] = "--debug-dir";
		argv[n++] = debug_dirs[i];
	}
	argv[n++] = "--";
	argv[n++] = path;
	run_in_background((char *const *)argv);
	free(argv);
}

void keep_fetched_in_background(const char *path, const char *debuginfod)
{
	char *option = NULL;
	/* Any answer about the file will do: it comes from the sidecar, of which a copy is kept. */
	const char *argv[] = {"cairn", "addr", "--debuginfod", "--", path, "0x0", NULL};

	if (*debuginfod) {
		if (asprintf(&option, "--debuginfod=%s", debuginfod) < 0)
			return;
		argv[2] = option;
	}
	run_in_background((char *const *)argv);
	free(option);
}
