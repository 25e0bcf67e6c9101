/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codectl() in a process: what readers find, and what fork, exec, signals, threads and limits do to
 * it
 *
 * Each claim runs in a child of its own, so that it begins without a registry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/jit/codectl.h>

#include "codectl_view.h"

/* In children, whose exit status tells: cmocka's assertions jump. */
#define CHECK(expr)                                                                                \
	do {                                                                                       \
		if (!(expr)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expr);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

enum {
	SECONDS = 200
}; /* without any progress: far beyond what that takes, also on a machine that is busy */

static pid_t start_child(void (*f)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(SECONDS);
		f();
		_exit(0);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void in_child(void (*f)(void))
{
	assert_int_equal(wait_for(start_child(f)), 0);
}

static long add_elf(uint64_t lo, uint64_t hi)
{
	struct code_elf_info elf = {
		.elf_start = lo, .elf_end = hi, .text_start = lo, .text_end = hi};
	return codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static long add_named(uint64_t lo, uint64_t hi, const char *path)
{
	struct code_elf_info elf = {.elf_start = lo,
				    .elf_end = hi,
				    .text_start = lo,
				    .text_end = hi,
				    .pathname = (uintptr_t)path};
	return codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static long remove_range(uint64_t lo, uint64_t hi)
{
	struct code_unregister_info range = {lo, hi};
	return codectl(CODE_UNREGISTER, &range, sizeof(range), 0);
}

static struct view look(void)
{
	struct view v;
	CHECK(view_find(getpid(), &v));
	CHECK(view_read(&v));
	return v;
}

/* ---- what is registered ---- */

static void do_shows_all(void)
{
	char path[] = "/usr/lib/example.so", link[] = "example.debug";
	uint8_t id[20] = {1, 2, 3, [19] = 20};
	struct code_elf_info elf = {.elf_start = 0x100000,
				    .elf_end = 0x200000,
				    .text_start = 0x110000,
				    .text_end = 0x120000,
				    .sframe_start = 0x130000,
				    .sframe_end = 0x130100,
				    .pathname = (uintptr_t)path,
				    .build_id = (uintptr_t)id,
				    .build_id_len = sizeof(id),
				    .debug_link_pathname = (uintptr_t)link,
				    .debug_link_crc = 0xfeedf00d,
				    .unwind_start = 0x140000,
				    .unwind_end = 0x140080,
				    .unwind_kind = CODE_UNWIND_EH_FRAME_HDR};
	uint8_t got[20];
	CHECK(codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0) == 0);
	/* They are the registry's now. */
	memset(path, 'x', sizeof(path) - 1);
	memset(link, 'x', sizeof(link) - 1);
	memset(id, 0xff, sizeof(id));
	struct view v = look();
	const struct codectl_entry *e = view_at(&v, 0x11ffff);
	CHECK(v.head.self == v.at && v.head.version == CODECTL_REGISTRY_VERSION);
	CHECK(v.head.header_size == sizeof(v.head) && v.head.entry_stride == sizeof(*e));
	CHECK(e && e->option == CODE_REGISTER_ELF && e->since_ns && !e->reserved);
	CHECK(!strcmp(view_string(&v, e->info.elf.pathname), "/usr/lib/example.so"));
	CHECK(!strcmp(view_string(&v, e->info.elf.debug_link_pathname), "example.debug"));
	memcpy(got, (void *)(uintptr_t)e->info.elf.build_id, sizeof(got));
	CHECK(got[0] == 1 && got[2] == 3 && got[19] == 20);
	CHECK(e->info.elf.build_id >= v.at && e->info.elf.build_id + 20 <= v.at + v.head.size);
	CHECK(e->info.elf.debug_link_crc == 0xfeedf00d && e->info.elf.sframe_end == 0x130100);
	CHECK(e->info.elf.unwind_kind == CODE_UNWIND_EH_FRAME_HDR &&
	      e->info.elf.unwind_end == 0x140080);
	CHECK(!view_at(&v, 0x120000) && !view_at(&v, 0x10ffff));
}

static void readers_find_what_was_registered(void **state)
{
	in_child(do_shows_all);
}

static void do_key(void)
{
	CHECK(add_elf(0x1000, 0x3000) == 0);
	CHECK(remove_range(0x1000, 0x2000) == -ENOENT);
	CHECK(remove_range(0x2000, 0x3000) == -ENOENT);
	CHECK(remove_range(0x1000, 0x4000) == -ENOENT);
	CHECK(remove_range(0x5000, 0x6000) == -ENOENT);
	CHECK(remove_range(0x1000, 0x3000) == 0);
	CHECK(remove_range(0x1000, 0x3000) == -ENOENT);
	struct view v = look();
	CHECK(view_count(&v) == 0);
}

static void exactly_the_registered_range_is_removed(void **state)
{
	in_child(do_key);
}

static void do_overlap(void)
{
	struct code_jit_info jit = {
		.text_start = 0x2800, .text_end = 0x3800, .unwind_head = 0x8000};
	CHECK(add_elf(0x2000, 0x3000) == 0);
	CHECK(add_elf(0x2000, 0x3000) == -EEXIST);
	CHECK(add_elf(0x2fff, 0x4000) == -EEXIST);
	CHECK(add_elf(0x1000, 0x2001) == -EEXIST);
	CHECK(add_elf(0x2100, 0x2200) == -EEXIST);
	CHECK(add_elf(0x1000, 0x9000) == -EEXIST);
	CHECK(codectl(CODE_REGISTER_JIT, &jit, sizeof(jit), 0) == -EEXIST);
	CHECK(add_elf(0x3000, 0x4000) == 0);
	CHECK(add_elf(0x1000, 0x2000) == 0);
	CHECK(remove_range(0x2000, 0x3000) == 0);
	CHECK(codectl(CODE_REGISTER_JIT, &jit, 24, 0) == -EEXIST);
	CHECK(remove_range(0x3000, 0x4000) == 0);
	CHECK(codectl(CODE_REGISTER_JIT, &jit, 24, 0) == 0);
	struct view v = look();
	CHECK(view_count(&v) == 2 && view_at(&v, 0x3000)->option == CODE_REGISTER_JIT);
}

static void what_overlaps_is_refused_and_neighbours_are_not(void **state)
{
	in_child(do_overlap);
}

static void do_two_texts(void)
{
	struct code_elf_info elf = {
		.elf_start = 0x1000, .elf_end = 0x9000, .text_start = 0x2000, .text_end = 0x3000};
	CHECK(codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0) == 0);
	elf.text_start = 0x5000;
	elf.text_end = 0x6000;
	CHECK(codectl_rfc(CODE_RFC_REGISTER_ELF, &elf, CODE_ELF_INFO_RFC_SIZE, 0) == 0);
	struct view v = look();
	CHECK(view_at(&v, 0x2500) && view_at(&v, 0x5500) && !view_at(&v, 0x4000));
	CHECK(remove_range(0x2000, 0x3000) == 0);
	CHECK(view_read(&v) && !view_at(&v, 0x2500) && view_at(&v, 0x5500));
}

static void an_object_has_one_registration_for_each_range_of_code(void **state)
{
	in_child(do_two_texts);
}

static void do_errors(void)
{
	char *name = calloc(1, 5000);
	struct code_jit_info jit = {.text_start = 4096,
				    .text_end = UINT64_C(0x200000000),
				    .unwind_head = 8,
				    .extended = CODE_JIT_EXTENDED};
	CHECK(codectl(CODE_REGISTER_ELF, NULL, 80, 0) == -EFAULT);
	CHECK(codectl(CODE_REGISTER_ELF, NULL, 0, 0) == -EINVAL);
	CHECK(codectl(3, NULL, 0, 0) == -EINVAL);
	CHECK(codectl(CODE_REGISTER_JIT, &jit, sizeof(jit), 0) == -ERANGE);
	jit.text_end = 8192;
	CHECK(codectl(CODE_REGISTER_JIT, &jit, sizeof(jit), 1) == -EINVAL);
	memset(name, 'n', 4999);
	jit.name = (uintptr_t)name;
	CHECK(codectl(CODE_REGISTER_JIT, &jit, sizeof(jit), 0) == -ENAMETOOLONG);
	CHECK(add_named(4096, 8192, name) == -ENAMETOOLONG);
	name[4095] = 0;
	CHECK(codectl(CODE_REGISTER_JIT, &jit, sizeof(jit), 0) == 0);
	struct view v = look();
	CHECK(!strcmp(view_string(&v, view_at(&v, 4096)->info.jit.name), name));
}

static void what_makes_no_sense_is_refused(void **state)
{
	in_child(do_errors);
}

static void do_errno(void)
{
	errno = 4711;
	CHECK(add_elf(0x1000, 0x2000) == 0 && errno == 4711);
	CHECK(add_elf(0x1000, 0x2000) == -EEXIST && errno == 4711);
	CHECK(codectl(9, NULL, 0, 0) == -EINVAL && errno == 4711);
	CHECK(remove_range(0x1000, 0x2000) == 0 && errno == 4711);
}

static void errno_is_kept(void **state)
{
	in_child(do_errno);
}

/* ---- epochs and places ---- */

static void do_epochs(void)
{
	uint64_t last = 0;
	struct view v = {0};
	for (int i = 0; i < 5000; i++) {
		CHECK(add_elf(0x1000, 0x2000) == 0);
		if (i == 0)
			v = look();
		CHECK(view_read(&v));
		const struct codectl_entry *e = view_at(&v, 0x1000);
		CHECK(e && e->epoch > last);
		last = e->epoch;
		CHECK(v.head.changes == (uint64_t)i * 2 + 1);
		CHECK(remove_range(0x1000, 0x2000) == 0);
	}
	CHECK(view_read(&v));
	/* Many came and went; the registry stayed short. */
	CHECK(v.n == CODECTL_MIN_REMOVED);
}

static void an_epoch_never_comes_back_and_places_do(void **state)
{
	in_child(do_epochs);
}

/* The removed entry with @epoch; NULL when its place was used again. */
static const struct codectl_entry *removed(const struct view *v, uint64_t epoch)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (!v->entries[i].epoch && v->entries[i].last_epoch == epoch)
			return &v->entries[i];
	return NULL;
}

static void do_fifo(void)
{
	/* Removed in another order than added: it is that order which counts. */
	enum { N = 100 };
	uint64_t epochs[N];
	for (uint64_t i = 0; i < N; i++)
		CHECK(add_named(i << 12, (i + 1) << 12, "first") == 0);
	struct view v = look();
	for (uint64_t i = 0; i < N; i++) {
		uint64_t at = (i * 37 % N) << 12;
		epochs[i] = view_at(&v, at)->epoch;
		CHECK(remove_range(at, at + 4096) == 0);
	}
	for (int i = 0; i < CODECTL_MIN_REMOVED - N; i++)
		CHECK(add_elf(1 << 28, 1 << 29) == 0 && remove_range(1 << 28, 1 << 29) == 0);
	CHECK(view_read(&v));
	for (uint64_t i = 0; i < N; i++) {
		const struct codectl_entry *e = removed(&v, epochs[i]);
		CHECK(e && e->until_ns >= e->since_ns &&
		      !strcmp(view_string(&v, e->info.elf.pathname), "first"));
	}
	for (uint64_t i = 0; i < N; i++) {
		CHECK(add_elf((i + 1) << 40, (i + 2) << 40) == 0 && view_read(&v));
		for (uint64_t k = 0; k < N; k++)
			CHECK(!removed(&v, epochs[k]) == (k <= i));
		CHECK(remove_range((i + 1) << 40, (i + 2) << 40) == 0);
	}
}

static void the_place_that_was_left_first_is_used_first(void **state)
{
	in_child(do_fifo);
}

static void do_full(void)
{
	uint64_t n = 0;
	long rc;
	while ((rc = add_elf(n << 12, (n + 1) << 12)) == 0)
		n++;
	CHECK(rc == -ENOSPC && n == 1 << 16);
	CHECK(add_elf(n << 12, (n + 1) << 12) == -ENOSPC);
	CHECK(add_elf(0, 1) == -EEXIST);
	/* One place, although fewer than CODECTL_MIN_REMOVED were left. */
	CHECK(remove_range(5 << 12, 6 << 12) == 0);
	CHECK(add_elf(5 << 12, 6 << 12) == 0);
	CHECK(add_elf(n << 12, (n + 1) << 12) == -ENOSPC);
	struct view v = look();
	CHECK(view_count(&v) == n);
	for (uint64_t i = 0; i < n; i++)
		CHECK(remove_range(i << 12, (i + 1) << 12) == 0);
	CHECK(view_read(&v) && view_count(&v) == 0);
}

static void a_full_registry_says_so(void **state)
{
	in_child(do_full);
}

static void do_strings_full(void)
{
	char name[4096];
	uint64_t n = 0;
	long rc;
	memset(name, 'n', sizeof(name));
	name[4095] = 0;
	for (int round = 0; round < 3; round++) {
		uint64_t had = n;
		for (n = 0; (rc = add_named(n << 12, (n + 1) << 12, name)) == 0; n++)
			;
		CHECK(rc == -ENOSPC && n > 1000 && (!round || n == had));
		/* Without strings there is room. */
		CHECK(add_elf(n << 12, (n + 1) << 12) == 0);
		for (uint64_t i = 0; i <= n; i++)
			CHECK(remove_range(i << 12, (i + 1) << 12) == 0);
	}
	struct view v = look();
	CHECK(view_count(&v) == 0);
}

static void room_for_strings_is_used_again(void **state)
{
	in_child(do_strings_full);
}

static void do_random(void)
{
	enum { N = 4096 };
	static uint8_t taken[N]; /* 1: a range begins, 2: it goes on */
	uint32_t random = 1;
	for (int i = 0; i < 200000; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t lo = (random >> 8) % N, n = 1 + (random >> 24) % 5;
		uint64_t at = (uint64_t)(lo + 1) << 12;
		if (taken[lo] == 1 && random >> 31) {
			uint32_t end = lo + 1;
			while (end < N && taken[end] == 2)
				end++;
			CHECK(remove_range(at, (uint64_t)(end + 1) << 12) == 0);
			memset(&taken[lo], 0, end - lo);
			continue;
		}
		bool is_free = lo + n <= N;
		for (uint32_t k = lo; is_free && k < lo + n; k++)
			is_free = !taken[k];
		if (lo + n > N)
			continue;
		CHECK(add_elf(at, at + ((uint64_t)n << 12)) == (is_free ? 0 : -EEXIST));
		if (is_free) {
			memset(&taken[lo], 2, n);
			taken[lo] = 1;
		}
	}
	struct view v = look();
	for (uint32_t k = 0; k < N; k++)
		CHECK(!view_at(&v, (uint64_t)(k + 1) << 12) == !taken[k]);
}

static void random_registrations_agree_with_a_map_of_pages(void **state)
{
	in_child(do_random);
}

/* ---- system calls and limits ---- */

/*
 * From here on every system call but exit_group kills. Not seccomp's strict mode: that forbids
 * reading the clock, too.
 */
static void forbid_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void do_without_calls(void)
{
	CHECK(add_elf(0x1000, 0x2000) == 0);
	forbid_system_calls();
	for (uint64_t i = 1; i < 3000; i++)
		if (add_named(i << 20, (i + 1) << 20, "/usr/lib/some/where/libexample.so.1") != 0 ||
		    (i % 3 == 0 && remove_range(i << 20, (i + 1) << 20) != 0))
			_exit(2);
}

static void do_call(void)
{
	forbid_system_calls();
	getppid();
}

static void only_the_first_registration_makes_system_calls(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	puts("a sanitizer makes system calls of its own");
	skip();
#endif
	in_child(do_without_calls);
	/* It does kill. */
	int status = wait_for(start_child(do_call));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static void do_no_file(void)
{
	struct rlimit limit = {0, 0};
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	/* Not SIGXFSZ. */
	CHECK(add_elf(0x1000, 0x2000) == -EFBIG);
	CHECK(add_elf(0x1000, 0x2000) == -EFBIG);
}

static void do_small(void)
{
	struct rlimit limit = {8 << 20, 8 << 20};
	uint64_t n = 0;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	while (add_elf(n << 12, (n + 1) << 12) == 0)
		n++;
	CHECK(n == 1 << 12);
}

static void limits_of_the_process_make_it_smaller_or_refuse_it(void **state)
{
	in_child(do_no_file);
	in_child(do_small);
}

/* ---- fork, exec ---- */

static void do_fork(void)
{
	CHECK(add_elf(0x1000, 0x2000) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(remove_range(0x1000, 0x2000) == 0);
		CHECK(add_elf(0x5000, 0x6000) == 0);
		struct view v = look();
		CHECK(!view_at(&v, 0x1000) && view_at(&v, 0x5000));
		_exit(0);
	}
	CHECK(wait_for(pid) == 0);
	struct view v = look();
	CHECK(view_at(&v, 0x1000) && !view_at(&v, 0x5000));
}

static void a_child_has_a_copy_that_goes_its_own_way(void **state)
{
	in_child(do_fork);
}

static volatile bool is_over;

static void *register_for_ever(void *arg)
{
	uint64_t base = (uintptr_t)arg << 32;
	for (uint64_t i = 0; !is_over; i++) {
		uint64_t lo = base + ((i * 31 % 1000) << 12);
		if (i % 2000 < 1000)
			add_named(lo, lo + 4096,
				  i % 3 ? "/usr/lib/a"
					: "/usr/lib/a/much/longer/name/of/another/class");
		else
			remove_range(lo, lo + 4096);
	}
	return NULL;
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* In a child whose other threads are gone, one of them in the middle of something. */
static void use_copy(void)
{
	struct view v = look();
	size_t n = view_count(&v);
	alarm(SECONDS);
	for (uint64_t i = 0; i < 50; i++)
		CHECK(add_named((i + 1) << 42, (i + 2) << 42, "/child") == 0);
	CHECK(view_read(&v));
	/*
	 * Each entry is whole: what its thread writes. A generation that was passing over is one
	 * entry again.
	 */
	for (uint32_t i = 0; i < v.n; i++) {
		const struct code_elf_info *elf = &v.entries[i].info.elf;
		if (!v.entries[i].epoch)
			continue;
		const char *path = view_string(&v, elf->pathname);
		CHECK(elf->text_end > elf->text_start && path && (path[0] == '/'));
		CHECK(!strcmp(path, "/child") == (elf->text_start >= UINT64_C(1) << 42));
		CHECK(add_elf(elf->text_start, elf->text_end) == -EEXIST);
	}
	CHECK(view_count(&v) >= n + 49 && view_count(&v) <= n + 51);
	for (uint64_t i = 0; i < 50; i++)
		CHECK(remove_range((i + 1) << 42, (i + 2) << 42) == 0);
	_exit(0);
}

static void do_fork_under_load(void)
{
	pthread_t threads[2];
	CHECK(add_named(0x1000, 0x2000, "/main") == 0);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, register_for_ever, (void *)(i + 1)) == 0);
	for (int i = 0; i < 60; i++) {
		alarm(SECONDS);
		pid_t pid = i % 2 ? raw_clone() : fork();
		if (pid == 0)
			use_copy();
		CHECK(wait_for(pid) == 0);
	}
	is_over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void a_fork_in_the_middle_of_anything_leaves_a_child_that_works(void **state)
{
	in_child(do_fork_under_load);
}

static void do_exec(void)
{
	CHECK(add_elf(0x1000, 0x2000) == 0);
	execlp("sh", "sh", "-c",
	       "! grep -q " CODECTL_REGISTRY_NAME
	       " /proc/$$/maps && ! ls -l /proc/$$/fd | grep -q memfd",
	       (char *)NULL);
	_exit(3);
}

static void exec_ends_it(void **state)
{
	in_child(do_exec);
}

/* ---- signals, threads ---- */

static volatile sig_atomic_t n_busy, n_done, n_wrong;

static void on_timer(int sig)
{
	long rc = add_elf(UINT64_C(1) << 50, UINT64_C(2) << 50);
	if (rc == -EBUSY)
		n_busy = n_busy + 1;
	else if (rc == 0 && remove_range(UINT64_C(1) << 50, UINT64_C(2) << 50) == 0)
		n_done = n_done + 1;
	else
		n_wrong = n_wrong + 1;
}

static void do_signals(void)
{
	struct sigaction action = {.sa_handler = on_timer};
	struct itimerval often = {{0, 100}, {0, 100}};
	struct view v;
	CHECK(add_elf(0x1000, 0x2000) == 0);
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	for (uint64_t i = 1; (n_busy < 20 || n_done < 20) && i < 100000000; i++)
		CHECK(add_elf(0x3000, 0x4000) == 0 && remove_range(0x3000, 0x4000) == 0);
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	v = look();
	CHECK(!n_wrong && n_busy && n_done && view_count(&v) == 1);
}

static void a_handler_that_interrupts_a_registration_is_told_so(void **state)
{
	in_child(do_signals);
}

static void *register_some(void *arg)
{
	uint64_t base = (uintptr_t)arg << 36;
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t lo = base + ((i * 31 % 1000) << 12);
		CHECK((i % 2000 < 1000 ? add_elf(lo, lo + 4096) : remove_range(lo, lo + 4096)) ==
		      0);
	}
	for (uint64_t i = 0; i < 100; i++)
		CHECK(add_elf(base + (i << 12), base + ((i + 1) << 12)) == 0);
	return NULL;
}

static void do_threads(void)
{
	/* The first calls, too, come at the same time. */
	pthread_t threads[6];
	for (uintptr_t i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[i], NULL, register_some, (void *)(i + 1)) == 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	struct view v = look();
	CHECK(view_count(&v) == 600);
}

static void threads_share_one_registry(void **state)
{
	in_child(do_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_find_what_was_registered),
		cmocka_unit_test(exactly_the_registered_range_is_removed),
		cmocka_unit_test(what_overlaps_is_refused_and_neighbours_are_not),
		cmocka_unit_test(an_object_has_one_registration_for_each_range_of_code),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(an_epoch_never_comes_back_and_places_do),
		cmocka_unit_test(the_place_that_was_left_first_is_used_first),
		cmocka_unit_test(a_full_registry_says_so),
		cmocka_unit_test(room_for_strings_is_used_again),
		cmocka_unit_test(random_registrations_agree_with_a_map_of_pages),
		cmocka_unit_test(only_the_first_registration_makes_system_calls),
		cmocka_unit_test(limits_of_the_process_make_it_smaller_or_refuse_it),
		cmocka_unit_test(a_child_has_a_copy_that_goes_its_own_way),
		cmocka_unit_test(a_fork_in_the_middle_of_anything_leaves_a_child_that_works),
		cmocka_unit_test(exec_ends_it),
		cmocka_unit_test(a_handler_that_interrupts_a_registration_is_told_so),
		cmocka_unit_test(threads_share_one_registry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
