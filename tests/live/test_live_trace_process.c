/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes: threads, children, exits, replaced files, patched code, killed tracers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/elf.h"
#include "trace/trace.h"
#include "trace_session.h"
#include "workspace.h"

static struct workspace ws;

/* Calls tick() on and on from as many threads as it is told; prints a line once it runs. */
static const char ticker_c[] =
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <unistd.h>\n"
	"volatile int sink;\n"
	"__attribute__((noinline, noipa)) void tick(long thread) { sink = thread; }\n"
	"static void *run(void *arg)\n"
	"{ for (;;) { tick((long)arg); usleep(2000); } }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	pthread_t t;\n"
	"	for (long i = 1; i < (argc > 1 ? atol(argv[1]) : 1); i++)\n"
	"		pthread_create(&t, NULL, run, (void *)i);\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	run(0);\n"
	"}\n";

/* Calls tick() n times in itself and n times in each of two children, one of which execs itself. */
static const char family_c[] =
	"#include <stdlib.h>\n"
	"#include <sys/wait.h>\n"
	"#include <unistd.h>\n"
	"volatile int sink;\n"
	"__attribute__((noinline, noipa)) void tick(int n) { sink = n; }\n"
	"static int ticks(void) { for (int i = 0; i < 5; i++) tick(i); return 0; }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	if (argc > 1) return ticks();\n"
	"	if (!fork()) _exit(ticks());\n"
	"	if (!fork()) { execl(argv[0], argv[0], \"child\", NULL); _exit(1); }\n"
	"	while (wait(NULL) > 0) ;\n"
	"	return ticks();\n"
	"}\n";

static void need_tracing(void)
{
	const char *missing = session_missing();

	if (!missing)
		return;
	print_message("%s\n", missing);
	skip();
}

static pid_t run_in_background(const char *program, const char *arg)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (!pid) {
		/* A test that fails leaves nobody behind, nor an open end of its output. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], 1);
		dup2(ready[1], 2);
		close(ready[0]);
		close(ready[1]);
		execl(program, program, arg, NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The first bytes of a function in a process's memory. */
static void code_of(pid_t pid, const char *program, uint8_t *ret, size_t n, uint64_t *ret_addr)
{
	char path[64], line[300], *name = realpath(program, NULL);
	unsigned long lo = 0, off = 0, offset = 0;
	struct cairn_trace *t;
	struct cairn_err err = {0};
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = pid};

	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, "tick()", &err), 0);
	offset = cairn_trace_site(t, 0)->off.v;
	cairn_trace_close(t);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, " r-xp ") && strstr(line, name) &&
		    sscanf(line, "%lx-%*x %*s %lx", &lo, &off) == 2)
			break;
	fclose(maps);
	free(name);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int mem = open(path, O_RDONLY);
	assert_int_equal(pread(mem, ret, n, (off_t)(lo + offset - off)), (ssize_t)n);
	close(mem);
	*ret_addr = lo + offset - off;
}

static void every_thread_of_a_process_is_traced(void **state)
{
	struct session s;

	need_tracing();
	pid_t pid = run_in_background(workspace_path(&ws, "ticker"), "3");
	session_run(&s, &(struct session_opts){.pid = pid, .enough = 200}, "tick(thread)");
	end(pid);
	int seen[3] = {0};
	for (size_t i = 0; i < s.n; i++)
		seen[atoi(s.events[i] + strlen("thread="))]++;
	for (int i = 0; i < 3; i++)
		assert_true(seen[i] > 10);
	session_free(&s);
}

static void only_the_process_that_was_named_is_traced(void **state)
{
	struct session s;

	need_tracing();
	pid_t one = run_in_background(workspace_path(&ws, "ticker"), "1");
	pid_t three = run_in_background(workspace_path(&ws, "ticker"), "3");
	session_run(&s, &(struct session_opts){.pid = one, .enough = 100}, "tick(thread)");
	end(one);
	end(three);
	for (size_t i = 0; i < s.n; i++)
		assert_string_equal(s.events[i], "thread=0");
	session_free(&s);
}

static void detaching_leaves_the_code_as_it_was(void **state)
{
	struct session s;
	uint8_t before[8], after[8];
	uint64_t addr;

	need_tracing();
	pid_t pid = run_in_background(workspace_path(&ws, "ticker"), "1");
	code_of(pid, workspace_path(&ws, "ticker"), before, sizeof(before), &addr);
	session_run(&s, &(struct session_opts){.pid = pid, .enough = 5}, "tick(thread)");
	code_of(pid, workspace_path(&ws, "ticker"), after, sizeof(after), &addr);
	end(pid);
	assert_memory_equal(before, after, sizeof(before));
	session_free(&s);
}

static void a_killed_tracer_leaves_nothing_attached(void **state)
{
	uint8_t before[8], during[8], after[8];
	uint64_t addr;
	int ready[2];
	char byte;

	need_tracing();
	pid_t pid = run_in_background(workspace_path(&ws, "ticker"), "1");
	code_of(pid, workspace_path(&ws, "ticker"), before, sizeof(before), &addr);
	assert_int_equal(pipe(ready), 0);
	pid_t tracer = fork();
	if (!tracer) {
		struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = pid};
		struct cairn_trace *t;
		if (cairn_trace_open(&opts, &t, NULL) < 0 ||
		    cairn_trace_add(t, "tick()", NULL) < 0 || cairn_trace_attach(t, NULL) != 1 ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	code_of(pid, workspace_path(&ws, "ticker"), during, sizeof(during), &addr);
	assert_memory_not_equal(before, during, sizeof(before));
	end(tracer);
	/* The links go with the last descriptor, a moment after the process. */
	for (int i = 0; i < 100; i++) {
		code_of(pid, workspace_path(&ws, "ticker"), after, sizeof(after), &addr);
		if (!memcmp(before, after, sizeof(before)))
			break;
		usleep(20000);
	}
	end(pid);
	assert_memory_equal(before, after, sizeof(before));
}

static void children_are_counted_and_followed_when_asked(void **state)
{
	struct session s;
	struct session_opts opts = {.program = workspace_path(&ws, "family")};

	need_tracing();
	session_run(&s, &opts, "tick(n)");
	assert_int_equal(s.n, 5);
	if (!s.stats.children_known) {
		session_free(&s);
		print_message("this kernel has no BTF to see forks with\n");
		skip();
	}
	assert_int_equal(s.stats.n_children, 2);
	assert_false(s.stats.children_followed);
	session_free(&s);
	opts.trace.follow_children = true;
	session_run(&s, &opts, "tick(n)");
	assert_int_equal(s.n, 15);
	assert_int_equal(s.stats.n_children, 2);
	assert_true(s.stats.children_followed);
	session_free(&s);
}

static void patched_code_is_noticed(void **state)
{
	struct session s;
	uint8_t code[8];
	uint64_t addr;

	need_tracing();
	pid_t pid = run_in_background(workspace_path(&ws, "ticker"), "1");
	code_of(pid, workspace_path(&ws, "ticker"), code, sizeof(code), &addr);
	/* A debugger's breakpoint, as gdb sets it. */
	assert_int_equal(ptrace(PTRACE_ATTACH, pid, 0, 0), 0);
	waitpid(pid, NULL, 0);
	long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)addr, 0);
	ptrace(PTRACE_POKETEXT, pid, (void *)addr, (word & ~0xffL) | 0xcc);
	session_run(&s, &(struct session_opts){.pid = pid, .enough = 1}, "tick(thread)");
	assert_int_equal(s.attached, -ESTALE);
	assert_non_null(strstr(s.err.msg, "a debugger"));
	session_free(&s);
	/* Other code altogether: a nop where there was something else. */
	ptrace(PTRACE_POKETEXT, pid, (void *)addr, (word & ~0xffffL) | 0x9090);
	session_run(&s, &(struct session_opts){.pid = pid, .enough = 1}, "tick(thread)");
	assert_int_equal(s.attached, -ESTALE);
	assert_non_null(strstr(s.err.msg, "differs from the file"));
	session_free(&s);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	end(pid);
}

static void a_process_that_runs_a_deleted_file_is_traced_by_what_it_runs(void **state)
{
	struct session s;

	need_tracing();
	workspace_run(&ws, "cp ticker moving");
	pid_t pid = run_in_background(workspace_path(&ws, "moving"), "1");
	workspace_run(&ws, "cp family new && mv new moving");
	session_run(&s, &(struct session_opts){.pid = pid, .enough = 5}, "tick(thread)");
	end(pid);
	assert_int_equal(s.attached, 1);
	assert_true(s.n >= 5);
	session_free(&s);
}

static void a_file_replaced_between_analysis_and_attaching_changes_nothing(void **state)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts)};
	struct cairn_trace *t;
	struct cairn_err err = {0};
	int n = 0;

	need_tracing();
	workspace_run(&ws, "cp ticker exchanged");
	opts.pid = run_in_background(workspace_path(&ws, "exchanged"), "1");
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, "tick", &err), 0);
	workspace_run(&ws, "cp family new && mv new exchanged");
	assert_int_equal(cairn_trace_attach(t, &err), 1);
	for (int i = 0; i < 100 && !n; i++)
		n = cairn_trace_poll(t, 20, NULL, NULL, &err);
	cairn_trace_close(t);
	end(opts.pid);
	assert_true(n > 0);
}

static void a_file_written_in_place_is_refused(void **state)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts)};
	struct cairn_trace *t;
	struct cairn_err err = {0};
	char probe[200];

	need_tracing();
	workspace_run(&ws, "cp ticker rewritten");
	snprintf(probe, sizeof(probe), "%s:tick", workspace_path(&ws, "rewritten"));
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, probe, &err), 0);
	workspace_run(&ws, "printf x >> rewritten");
	assert_int_equal(cairn_trace_attach(t, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "written to"));
	cairn_trace_close(t);
}

static void a_process_that_has_ended_is_told(void **state)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts)};
	struct cairn_trace *t;
	struct cairn_err err = {0};

	need_tracing();
	opts.pid = run_in_background(workspace_path(&ws, "ticker"), "1");
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, "tick", &err), 0);
	/* A zombie first, then gone. */
	kill(opts.pid, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)opts.pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(cairn_trace_attach(t, &err), -ESRCH);
	end(opts.pid);
	assert_int_equal(cairn_trace_attach(t, &err), -ESRCH);
	cairn_trace_close(t);
	assert_int_equal(cairn_trace_open(&opts, &t, &err), -ESRCH);
}

static void a_command_that_cannot_run_is_told_and_leaves_no_process(void **state)
{
	char *argv[] = {(char *)"nothing", NULL};
	struct cairn_trace_opts opts = {
		.size = sizeof(opts), .exe = workspace_path(&ws, "nothing"), .argv = argv};
	struct cairn_trace *t;
	struct cairn_err err = {0};
	char probe[200];

	need_tracing();
	snprintf(probe, sizeof(probe), "%s:tick", workspace_path(&ws, "ticker"));
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, probe, &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), 1);
	assert_int_equal(cairn_trace_start(t, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "nothing"));
	cairn_trace_close(t);
}

static void closing_before_the_start_ends_the_command(void **state)
{
	char *argv[] = {(char *)workspace_path(&ws, "ticker"), NULL};
	struct cairn_trace_opts opts = {.size = sizeof(opts), .exe = argv[0], .argv = argv};
	struct cairn_trace *t;
	struct cairn_err err = {0};

	need_tracing();
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, "tick", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), 1);
	int pid = cairn_trace_pid(t);
	assert_true(pid > 0);
	cairn_trace_close(t);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

/* Everything up to attaching is for everybody; then comes the command that would be permitted. */
/* Hand-made sites, one of them on a lock prefix and declared harmless: the kernel must say it. */
static void what_the_kernel_refuses_is_found_among_the_others(void **state)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .best_effort = true};
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
	struct cairn_err err = {0};
	struct trace_file *file;
	struct cairn_trace *t;
	static struct cairn_site eight[8];
	const char *path = workspace_path(&ws, "locks");
	const uint8_t *code;
	size_t n, at = 0;

	need_tracing();
	opts.pid = run_in_background(path, "1");
	assert_int_equal(cairn_binary_open(path, NULL, &bin, &err), 0);
	assert_int_equal(cairn_sites_open(bin, NULL, &sites, &err), 0);
	assert_int_equal(cairn_sites_find(sites, "tick", &found, &err), 1);
	struct cairn_function f = *found.p[0];
	assert_true(elf_code_at(binary_main(bin), f.sites[0].at, &code, &n));
	while (at < n && code[at] != 0xf0)
		at++;
	assert_true(at < 100);
	for (int i = 0; i < 8; i++)
		eight[i] = f.sites[0];
	session_make_copies(eight, 8);
	eight[5].at.v += at;
	eight[5].off.v += at;
	eight[5].hazard = CAIRN_HAZARD_NONE;
	f.sites = eight;
	f.n_sites = 8;
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(trace_add_file(t, path, path, bin, sites, &file, &err), 0);
	assert_int_equal(trace_add_function(t, file, &f, cairn_sites_types(sites), "tick()", &err),
			 0);
	assert_int_equal(cairn_trace_attach(t, &err), 7);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(cairn_trace_site(t, i)->refused != NULL, i == 5);
	assert_non_null(strstr(cairn_trace_site(t, 5)->refused, "refused by the kernel"));
	cairn_trace_close(t);
	end(opts.pid);
}

static void without_permission_the_command_is_named(void **state)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts)};
	char probe[200];
	int status;

	need_tracing();
	snprintf(probe, sizeof(probe), "%s:tick", workspace_path(&ws, "ticker"));
	workspace_run(&ws, "chmod 755 .");
	pid_t pid = fork();
	if (!pid) {
		struct cairn_err err = {0};
		struct cairn_trace *t;
		if (setgid(65534) || setuid(65534) || cairn_trace_open(&opts, &t, &err) < 0 ||
		    cairn_trace_add(t, probe, &err) != 0)
			_exit(2);
		int e = cairn_trace_attach(t, &err);
		cairn_trace_close(t);
		_exit(e == -EPERM && strstr(err.msg, "\nsudo ") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void every_process_is_traced_when_none_is_named(void **state)
{
	struct session s;
	char probe[200];

	need_tracing();
	pid_t one = run_in_background(workspace_path(&ws, "ticker"), "1");
	pid_t two = run_in_background(workspace_path(&ws, "ticker"), "2");
	snprintf(probe, sizeof(probe), "%s:tick(thread)", workspace_path(&ws, "ticker"));
	session_run(&s, &(struct session_opts){.enough = 100}, probe);
	end(one);
	end(two);
	int seen[2] = {0};
	for (size_t i = 0; i < s.n; i++)
		seen[atoi(s.events[i] + strlen("thread="))]++;
	assert_true(seen[0] > 10 && seen[1] > 10);
	session_free(&s);
}

static int build(void **state)
{
	workspace_open(&ws);
	workspace_write(&ws, "ticker.c", ticker_c);
	workspace_run(&ws, "gcc -g -O2 -pthread -o ticker ticker.c");
	workspace_run(
		&ws,
		"sed 's/sink = thread/__sync_fetch_and_add(\\&sink, thread)/' ticker.c > locks.c");
	workspace_run(&ws, "gcc -g -O2 -fpatchable-function-entry=1 -pthread -o locks locks.c");
	workspace_write(&ws, "family.c", family_c);
	workspace_run(&ws, "gcc -g -O2 -o family family.c");
	return 0;
}

static int clean(void **state)
{
	workspace_close(&ws);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_of_a_process_is_traced),
		cmocka_unit_test(only_the_process_that_was_named_is_traced),
		cmocka_unit_test(detaching_leaves_the_code_as_it_was),
		cmocka_unit_test(a_killed_tracer_leaves_nothing_attached),
		cmocka_unit_test(children_are_counted_and_followed_when_asked),
		cmocka_unit_test(patched_code_is_noticed),
		cmocka_unit_test(a_process_that_runs_a_deleted_file_is_traced_by_what_it_runs),
		cmocka_unit_test(a_file_replaced_between_analysis_and_attaching_changes_nothing),
		cmocka_unit_test(a_file_written_in_place_is_refused),
		cmocka_unit_test(a_process_that_has_ended_is_told),
		cmocka_unit_test(a_command_that_cannot_run_is_told_and_leaves_no_process),
		cmocka_unit_test(closing_before_the_start_ends_the_command),
		cmocka_unit_test(what_the_kernel_refuses_is_found_among_the_others),
		cmocka_unit_test(without_permission_the_command_is_named),
		cmocka_unit_test(every_process_is_traced_when_none_is_named),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
