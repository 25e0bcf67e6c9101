#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hits that sleep for a page while others come: each has its event, its part of a sum, or is
counted as lost.

Nothing is traced where the functions need larger stacks: the kernel can meet faults of its own."""

import collections
import json
import os
import re

import tracing
from claims import (BUILD, SOURCE, Skip, claim, claim_each, compile_c, expect, folder, main,
                    need, run)
from profiling import folded_lines

PAGES = 16
ROUNDS = 1000

# Threads whose strings are on pages of a file that are not mapped. The program counts its calls.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGES = 16, PAGE = 4096, MAX = 256 };
static int fd, rounds;
static long n_calls;
__attribute__((noinline)) void hit(long n, const char *s) { __asm__ volatile("" : : "r"(n), "r"(s) : "memory"); }
static void *thread(void *arg)
{
	char *pages = mmap(0, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	for (int i = 0; i < rounds; i++) {
		if (i % PAGES == 0)
			madvise(pages, PAGES * PAGE, MADV_DONTNEED);
		hit((long)arg * 1000003 + i, pages + PAGE * (i % PAGES));
		__atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED);
	}
	return 0;
}
int main(int argc, char **argv)
{
	static char text[PAGES * PAGE];
	int n = atoi(argv[1]);
	pthread_t threads[MAX];
	FILE *file = tmpfile();

	rounds = atoi(argv[2]);
	fd = fileno(file);
	for (int i = 0; i < PAGES; i++)
		sprintf(text + i * PAGE, "page %d", i);
	if (write(fd, text, sizeof(text)) != sizeof(text))
		return 1;
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], 0, thread, (void *)i);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], 0);
	fprintf(fopen(argv[3], "w"), "%ld", n_calls);
	return 0;
}
"""

# Threads of one processor whose strings are on pages that come only when each thread waits for its
# page or has gone on without: as many hits sleep at once as can.
WAITING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { PAGE = 4096, MAX = 1024 };
static char *pages;
static int fd, n_threads, n_done;
__attribute__((noinline)) void hit(long n, const char *s) { __asm__ volatile("" : : "r"(n), "r"(s) : "memory"); }
static void *thread(void *arg)
{
	hit((long)arg, pages + PAGE * (long)arg);
	__atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
	return 0;
}
static void bring(unsigned long at)
{
	static char text[PAGE] __attribute__((aligned(4096)));
	struct uffdio_copy copy = { at & -PAGE, (unsigned long)text, PAGE, 0, 0 };

	sprintf(text, "page %lu", (at - (unsigned long)pages) / PAGE);
	ioctl(fd, UFFDIO_COPY, &copy);
}
static void *pager(void *arg)
{
	static struct uffd_msg waits[2 * MAX];
	struct pollfd p = { fd, POLLIN, 0 };

	for (int n = 0;;) {
		poll(&p, 1, 10);
		while (n < 2 * MAX && read(fd, &waits[n], sizeof(waits[n])) == sizeof(waits[n]))
			n++;
		if (n + __atomic_load_n(&n_done, __ATOMIC_SEQ_CST) < n_threads)
			continue;
		/* The page after a string may be wanted, too: from now on there is no waiting. */
		n_threads = 0;
		while (n)
			bring(waits[--n].arg.pagefault.address);
	}
	return arg;
}
static void call(int n)
{
	pthread_t threads[MAX];

	n_done = 0;
	madvise(pages, PAGE * (MAX + 1), MADV_DONTNEED);
	n_threads = n;
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], 0, thread, (void *)i);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], 0);
}
int main(int argc, char **argv)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	cpu_set_t one;
	pthread_t other;

	fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	pages = mmap(0, PAGE * (MAX + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range = (struct uffdio_range){ (unsigned long)pages, PAGE * (MAX + 1) };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all))
		return 77;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_create(&other, 0, pager, 0);
	for (int i = 0; i < atoi(argv[2]); i++)
		call(atoi(argv[1]));
	return 0;
}
"""


def log_path():
    return os.path.join(folder(), "calls.log")


def command(threads):
    path = compile_c("sleepers", PROGRAM, flags=("-O2", "-g", "-pthread"))
    return f"{path} {threads} {ROUNDS} {log_path()}"


def waiting(threads, rounds):
    path = compile_c("waiting", WAITING, flags=("-O2", "-g", "-pthread"))
    if run(path, "0", "0").status == 77:
        raise Skip("userfaultfd is not there")
    return f"{path} {threads} {rounds}"


def number_of(what):
    """A number that the BPF program and ours share."""
    with open(os.path.join(SOURCE, "src/live/trace/abi.h"), encoding="utf-8") as file:
        return int(re.search(rf"#define {what} +(\d+)", file.read()).group(1))


def runs_of_a_processor():
    return number_of("TRACE_RUNS")


def depths():
    """Bytes of stack of each BPF function."""
    objdump = need("llvm-objdump")
    r = run(objdump,
            "-d",
            "--no-show-raw-insn",
            os.path.join(BUILD, "src", "trace.bpf.o"),
            check=True)
    deepest, frames = {}, set()
    for line in r.out.splitlines():
        begin = re.match(r"[0-9a-f]+ <(?!LBB)(.*)>:", line)
        if begin:
            name, frames = begin.group(1), set()
            deepest[name] = 0
            continue
        depth = re.search(r"r10 - (\d+)", line)
        moved = re.search(r"\b(r\d) (=|\+=) (\S+)$", line.strip())
        if depth:
            deepest[name] = max(deepest[name], int(depth.group(1)))
        if not moved:
            continue
        register, how, what = moved.groups()
        if how == "+=" and register in frames:
            deepest[name] = max(deepest[name], -int(what))
        (frames.add if (how, what) == ("=", "r10") else frames.discard)(register)
    return deepest


def expect_small_stacks():
    deepest = depths()
    # The kernel adds three words where it inlines bpf_loop().
    mine = {n: d for n, d in deepest.items() if re.match("hit|record|aggregate|work|take", n)}
    expect(len(mine) >= 24 and all(d < 64 - 24 for d in mine.values()), mine)
    # The kernel rounds up to a multiple of 16.
    expect(max(mine.values()) > 0 and all(d <= 48 for d in deepest.values()), deepest)


def trace(*words):
    expect_small_stacks()
    r = tracing.trace("--no-cache", "--json", *words)
    expect(r.status == 0, r)
    return [json.loads(line) for line in r.out.splitlines()]


def number_and_page(thread, i):
    """The arguments of a thread's call."""
    return thread * 1000003 + i, f"page {i % PAGES}"


def calls(threads):
    """What the program has called, and says so by its own count."""
    with open(log_path(), encoding="utf-8") as file:
        expect(int(file.read()) == threads * ROUNDS)
    return {number_and_page(thread, i) for thread in range(threads) for i in range(ROUNDS)}


@claim_each("hit", "hit if n >= 0", "hit if s != \"another\"")
def hits_that_sleep_while_others_come_have_their_events(probe):
    threads = 64
    *events, summary = trace("--ring", "65536", "-c", command(threads), probe)
    wanted = calls(threads)
    expect(len(events) + summary["lost"] + summary["missed"] == len(wanted), summary)
    found = {(event["args"]["n"], event["args"]["s"]) for event in events}
    expect(len(found) == len(events), "an event came twice")
    expect(found <= wanted, sorted(found - wanted, key=str)[:5])
    expect(len(found) > len(wanted) // 2, summary)


@claim
def hits_that_sleep_while_others_come_are_all_summed_up():
    threads = 32
    lines = trace("--every", "20ms", "--clear", "--sum", "n", "--by", "s", "-c", command(threads),
                  "hit if n >= 0")
    counts, sums = collections.Counter(), collections.Counter()
    for row in (row for line in lines for row in line.get("rows", ())):
        counts[row["by"]["s"]] += row["count"]
        sums[row["by"]["s"]] += row["sum"]["n"]
    wanted, lost = calls(threads), lines[-1]["lost"]
    expect(sum(counts.values()) + lost == len(wanted), counts, lines[-1])
    if lost:
        return  # more at a time than there are slots, and counted
    for page in {page for _, page in wanted}:
        of = [n for n, other in wanted if other == page]
        expect((counts[page], sums[page]) == (len(of), sum(of)), page, counts)


@claim
def as_many_hits_of_a_processor_sleep_as_there_is_room_for_and_the_others_are_lost():
    room = runs_of_a_processor()
    *events, summary = trace("-c", waiting(room + 36, 1), "hit")
    found = [(event["args"]["n"], event["args"]["s"]) for event in events]
    expect(len(found) == room and summary["lost"] == 36, len(found), summary)
    expect(len(set(found)) == room and all(s == f"page {n}" for n, s in found), found[:5])


@claim_each(1, 5)
def hits_by_stack_that_were_lost_are_told_by_the_profile(lost):
    expect_small_stacks()
    room, out = number_of("TRACE_SLOTS"), os.path.join(folder(), "lost.folded")
    r = tracing.trace("--no-cache", "--count", "--by", "$stack", "-o", out, "-c",
                      waiting(room + lost, 1), "hit if s != \"another\"")
    expect(r.status == 0 and f": {room} hits, {lost} lost" in r.err, r)
    with open(out, encoding="utf-8") as file:
        lines = file.read().splitlines()
    expect(lines[0] == f"# {lost} hit{'s' if lost > 1 else ''} lost", lines)
    expect(sum(n for _, n in folded_lines(lines)) == room, lines)


@claim
def hits_that_all_sleep_at_once_have_their_room_back_afterwards():
    room = runs_of_a_processor()
    *events, summary = trace("-c", waiting(room, 3), "hit if s != \"another\"")
    found = collections.Counter((event["args"]["n"], event["args"]["s"]) for event in events)
    expect(found == {(n, f"page {n}"): 3
                     for n in range(room)} and summary["lost"] == 0, summary, len(found))


@claim
def programs_that_sleep_need_no_stack_that_a_processors_hits_share():
    expect_small_stacks()


if __name__ == "__main__":
    main()
