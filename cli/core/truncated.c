/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inputs are mapped, because most of a large one is never read. If another program truncates one
 * meanwhile, only a signal reports it, at any point and in any thread. So there is no way back, and
 * the program ends here. Files that are being written have no name yet, and links and probes end
 * with the process.
 */
#include "truncated.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cairn/file.h>

#include "cmd.h"

/* For a verb that opens files that nobody named: one of them does not end it. */
static bool is_survived;
/* The first input of which something was missing then. */
static _Atomic(const char *) survived;

/* In one piece, so that output of another process does not come between. */
static void report(const char *name)
{
	static const char before[] = "cairn: ",
			  after[] = ": became shorter, or could not be read, while it was being "
				    "read; run this again when it is complete\n";
	const struct iovec parts[] = {{(void *)before, sizeof(before) - 1},
				      {(void *)name, strlen(name)},
				      {(void *)after, sizeof(after) - 1}};

	(void)!writev(STDERR_FILENO, parts, 3);
}

/* The page reads as zeros from now on, as the missing part of a file's last page does. */
static bool fill_page(const void *at)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)at / page * page);
	int e = errno;
	bool done = mmap(start, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		    MAP_FAILED;

	errno = e;
	return done;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	const char *name = info->si_code > 0 ? cairn_input_at(info->si_addr) : NULL;

	if (!name) {
		/*
		 * Not ours to explain: it happens again, or was sent, and ends the program as ever.
		 */
		signal(number, SIG_DFL);
		if (info->si_code <= 0)
			raise(number);
		return;
	}
	if (is_survived && fill_page(info->si_addr)) {
		if (!survived)
			survived = name;
		return;
	}
	/* Several threads may come here at once. The first of them ends all. */
	while (atomic_flag_test_and_set(&told))
		pause();
	report(name);
	_exit(STATUS_DAMAGED);
}

int truncated_status(int status)
{
	const char *name = cairn_inputs_shortened();

	if (is_survived && survived)
		fprintf(stderr,
			"cairn: %s: became shorter while it was being read; what it is to name has "
			"no "
			"name\n",
			survived);
	if (!name || status == STATUS_DAMAGED || is_survived)
		return status;
	report(name);
	return STATUS_DAMAGED;
}

int check_inputs(struct cairn_err *err)
{
	const char *name = cairn_inputs_shortened();

	if (!name)
		return 0;
	err->code = -EBADMSG;
	snprintf(err->msg, sizeof(err->msg),
		 "%s: became shorter while it was being read; run this again when it is complete",
		 name);
	return err->code;
}

int write_whole_answers(const struct cairn_file *files, size_t n, struct cairn_err *err)
{
	int r = check_inputs(err);

	return r < 0 ? r : cairn_file_write_together(files, n, err);
}

int write_whole_answer(const char *path, const void *bytes, size_t size, struct cairn_err *err)
{
	return write_whole_answers(&(struct cairn_file){path, bytes, size}, 1, err);
}

void truncated_is_survived(void)
{
	is_survived = true;
}

void truncated_is_told(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
