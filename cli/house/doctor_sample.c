/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/prof.h>

#include "clock.h"
#include "doctor.h"

/*
 * Processor time that a child needs for a sample is 10 ms; it may wait long for a processor. A poll
 * ends early when any process of the machine begins or ends.
 */
#define WAIT_NS 10000000000u
#define POLL_MS 100

/* A child that takes processor time, as the sampler does not sample itself. */
static pid_t start_busy(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		;
	_exit(0);
}

static int sample(struct cairn_prof *prof, struct cairn_err *err)
{
	struct cairn_prof_counts counts = {0};
	int r = cairn_prof_start(prof, err);
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (r >= 0 && !counts.n_samples && clock_now_ns() < end) {
		r = cairn_prof_poll(prof, POLL_MS, err);
		cairn_prof_counts(prof, &counts);
	}
	return r < 0 ? r : counts.n_samples > 0;
}

int doctor_try_sampling(struct cairn_err *err)
{
	int pid = start_busy();
	struct cairn_prof_opts opts = {.size = sizeof(opts), .pids = &pid, .n_pids = 1};
	struct cairn_prof *prof = NULL;
	int r = pid < 0 ? -errno : cairn_prof_open(&opts, &prof, err);

	if (r >= 0)
		r = sample(prof, err);
	cairn_prof_close(prof);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return r;
}
