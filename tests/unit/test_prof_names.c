/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for what was sampled: samples written by hand, of real files, and a kernel's symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "prof/name_impl.h"
#include "trace/stacks/site_frames.h"
#include "workspace.h"

static struct workspace space;

/* put() is inlined into work(), which is in a header's macro in part. */
static const char SOURCE[] = "extern char in_put[], in_work[];\n"
			     "static inline __attribute__((always_inline)) int put(int x)\n"
			     "{\n"
			     "	__asm__ volatile(\".globl in_put\\nin_put: nop\");\n"
			     "	return x * 3;\n"
			     "}\n"
			     "__attribute__((noinline)) int work(int x)\n"
			     "{\n"
			     "	int r = put(x);\n"
			     "#include \"part.h\"\n"
			     "	return r;\n"
			     "}\n"
			     "int main(void) { return work(1); }\n";
static const char PART[] = "__asm__ volatile(\".globl in_work\\nin_work: nop\");\n";

static int open_space(void **state)
{
	workspace_open(&space);
	workspace_write(&space, "sample.c", SOURCE);
	workspace_write(&space, "part.h", PART);
	workspace_run(&space, "gcc -O2 -g -o sample sample.c && strip -o stripped sample && "
			      "objcopy --strip-debug sample plain");
	workspace_write(&space, "kallsyms",
			"ffffffff81000000 T _stext\n"
			"ffffffff81000000 T startup_64\n"
			"ffffffff81000100 t do_syscall_64\n"
			"ffffffff81000180 D jiffies\n"
			"ffffffff81000200 T bpf_trace_run4\n"
			"ffffffff81000300 T other\n"
			"ffffffffc0001000 t ext4_read\t[ext4]\n"
			"ffffffffc0002000 t bpf_prog_x\t[bpf]\n"
			"garbage\n");
	workspace_write(&space, "hidden",
			"0000000000000000 T _stext\n0000000000000000 t do_syscall_64\n");
	return 0;
}

static int close_space(void **state)
{
	workspace_close(&space);
	return 0;
}

/* ---- samples by hand ---- */

/* Frames are the innermost first; the first @n_kernel are the kernel's. */
static void add(struct prof_samples *s, int pid, uint8_t end, uint16_t n_kernel, uint16_t n,
		const uint64_t *frames)
{
	struct prof_stack stack = {
		.hash = s->stacks.n + 1, .first = s->frames.n, .n = n, .n_kernel = n_kernel};
	struct prof_count count = {.stack = (uint32_t)s->stacks.n,
				   .pid = (uint32_t)pid,
				   .tid = (uint32_t)pid + 1,
				   .comm = "worker",
				   .n = 3,
				   .weight = 3};

	stack.end = end;
	for (size_t i = 0; i < n; i++)
		assert_true(VEC_ADD(&s->frames, frames[i]));
	assert_true(VEC_ADD(&s->stacks, stack));
	assert_true(VEC_ADD(&s->counts, count));
}

static const struct prof_values values = {
	.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
	.n_types = 2,
	.each = 1000,
	.run = {.time_ns = 7, .each = {"cpu", "nanoseconds"}, .period = 1000}};

/* The folded stacks, by samples. */
static char *fold(const struct prof_names_opts *opts, const struct prof_samples *s,
		  struct walk_file *const *files, size_t n_files)
{
	struct cairn_profile_bytes bytes;
	struct prof_names *names;
	struct cairn_profile *p;
	char *text;

	assert_int_equal(prof_names_new(opts, &names, NULL), 0);
	assert_int_equal(prof_names_profile(names, s, files, n_files, &values, &p, NULL), 0);
	prof_names_free(names);
	assert_int_equal(cairn_profile_folded(p, 0, &bytes, NULL), 0);
	cairn_profile_close(p);
	text = strndup(bytes.bytes, bytes.size);
	free(bytes.bytes);
	return text;
}

static void expect_folded(const struct prof_names_opts *opts, struct prof_samples *s,
			  struct walk_file *const *files, size_t n_files, const char *expected)
{
	char *text = fold(opts, s, files, n_files);

	assert_string_equal(text, expected);
	free(text);
	samples_fini(s);
}

static struct walk_file open_file(const char *name)
{
	struct walk_file f = {.path = (char *)workspace_path(&space, name)};

	assert_int_equal(cairn_binary_open(f.path, NULL, &f.bin, NULL), 0);
	return f;
}

/* Link-time address of a label, from the file that has symbols. */
static uint64_t address_of(const char *label)
{
	unsigned long long at = 0;
	char command[200], line[64];
	FILE *out;

	snprintf(command, sizeof(command), "nm %s | grep ' %s$'", workspace_path(&space, "sample"),
		 label);
	out = popen(command, "r");
	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	pclose(out);
	at = strtoull(line, NULL, 16);
	assert_true(at);
	return at;
}

static uint64_t in_file(uint64_t number, uint64_t at)
{
	return number << WALK_FILE_SHIFT | at;
}

/* ---- claims ---- */

static void a_frame_in_a_file_has_its_inlined_calls_and_lines(void **state)
{
	struct walk_file file = open_file("sample");
	struct prof_names_opts opts = {0};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;

	file.base = 0x100;
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 2,
	    (uint64_t[]){in_file(0, address_of("in_put") - 0x100),
			 in_file(0, address_of("in_work") - 0x100) | WALK_ASSUMED});
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(
		prof_names_profile(names, &s, &(struct walk_file *){&file}, 1, &values, &p, NULL),
		0);
	assert_null(prof_names_note(names, 0));
	prof_names_free(names);

	struct cairn_profile_sample sample = cairn_profile_sample(p, 0);
	const struct cairn_profile_location *l = cairn_profile_location(p, sample.stack[0]);
	const struct cairn_profile_function *put, *work;

	assert_int_equal(sample.n_stack, 2);
	assert_int_equal(sample.values[0], 3);
	assert_int_equal(sample.values[1], 3000);
	assert_int_equal(l->address, address_of("in_put"));
	assert_int_equal(l->n_lines, 2);
	put = cairn_profile_function(p, l->lines[0].function);
	work = cairn_profile_function(p, l->lines[1].function);
	assert_string_equal(put->name, "put");
	assert_int_equal(put->line, 2);
	assert_int_equal(l->lines[0].line, 4);
	assert_string_equal(work->name, "work");
	assert_int_equal(l->lines[1].line, 9);
	/* The line is in the header, the function is not. */
	l = cairn_profile_location(p, sample.stack[1]);
	assert_int_equal(l->n_lines, 1);
	assert_ptr_equal(cairn_profile_function(p, l->lines[0].function), work);
	assert_non_null(strstr(work->file, "sample.c"));
	assert_int_equal(l->lines[0].line, 1);

	/* As if the file were loaded where it was linked to. */
	const struct cairn_profile_mapping *m = cairn_profile_mapping(p, l->mapping);
	struct cairn_foff off;

	assert_true(m->start <= l->address && l->address < m->limit);
	assert_true(cairn_binary_foff(file.bin, (struct cairn_vaddr){l->address}, &off));
	assert_int_equal(l->address - m->start + m->offset, off.v);
	assert_string_equal(m->path, file.path);
	assert_true(strlen(m->build_id) == 40);
	cairn_profile_close(p);
	samples_fini(&s);
	cairn_binary_close(file.bin);
}

static void without_debug_information_a_frame_has_the_symbol_or_the_files_offset(void **state)
{
	struct walk_file files[] = {
		open_file("plain"), open_file("stripped"), {.path = (char *)"/gone/x"}};
	struct walk_file *list[] = {NULL, &files[0], &files[1], &files[2]};
	struct prof_names_opts opts = {0};
	struct prof_samples s = {0};
	uint64_t at = address_of("in_work");
	struct cairn_foff off;
	char expected[200];

	assert_true(cairn_binary_foff(files[1].bin, (struct cairn_vaddr){at}, &off));
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){in_file(1, address_of("work"))});
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){in_file(2, at)});
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){in_file(3, 0x1234)});
	/* The engine has no such files. */
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 2,
	    (uint64_t[]){in_file(0, 0x5678), in_file(77, 0x9abc)});
	snprintf(expected, sizeof(expected),
		 "0x9abc;0x5678 3\nstripped+0x%llx 3\nwork 3\nx+0x1234 3\n",
		 (unsigned long long)off.v);
	expect_folded(&opts, &s, list, 4, expected);
	cairn_binary_close(files[0].bin);
	cairn_binary_close(files[1].bin);
}

static void frames_of_the_kernel_have_its_symbols(void **state)
{
	struct prof_names_opts opts = {.kallsyms = workspace_path(&space, "kallsyms")};
	struct prof_samples s = {0};

	add(&s, 5, CAIRN_PROF_NO_USER, 3, 3,
	    (uint64_t[]){0xffffffff81000010, 0xffffffffc0001004, 0xffffffff81000110});
	add(&s, 5, CAIRN_PROF_NO_USER, 1, 1, (uint64_t[]){0xffffffff90000000});
	add(&s, 5, CAIRN_PROF_NO_USER, 1, 1, (uint64_t[]){0xffffffff80000000});
	expect_folded(&opts, &s, NULL, 0,
		      "[kernel.kallsyms]+0xffffffff80000000_[k] 3\n"
		      "[kernel.kallsyms]+0xffffffff90000000_[k] 3\n"
		      "do_syscall_64_[k];ext4_read_[k];_stext_[k] 3\n");
}

static void the_way_from_a_tracepoint_to_its_program_is_left_out(void **state)
{
	struct prof_names_opts opts = {.kallsyms = workspace_path(&space, "kallsyms")};
	struct prof_values off_cpu = prof_values_of(CAIRN_PROF_OFF_CPU, 0);
	uint64_t program = 0xffffffffc0002000, run = 0xffffffff81000200, real = 0xffffffff81000110;
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;
	struct cairn_profile_bytes bytes;

	/* Only the innermost ones: a program that blocks is as any other code. */
	add(&s, 5, CAIRN_PROF_NO_USER, 4, 4, (uint64_t[]){program, run, real, program});
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(prof_names_profile(names, &s, NULL, 0, &off_cpu, &p, NULL), 0);
	assert_int_equal(cairn_profile_folded(p, 1, &bytes, NULL), 0);
	assert_int_equal(bytes.size, strlen("bpf_prog_x_[k];do_syscall_64_[k] 3\n"));
	assert_memory_equal(bytes.bytes, "bpf_prog_x_[k];do_syscall_64_[k] 3\n", bytes.size);
	free(bytes.bytes);
	cairn_profile_close(p);
	/* Elsewhere they are what was sampled. */
	assert_int_equal(prof_names_profile(names, &s, NULL, 0, &values, &p, NULL), 0);
	assert_int_equal(cairn_profile_sample(p, 0).n_stack, 4);
	cairn_profile_close(p);
	prof_names_free(names);
	samples_fini(&s);
}

static void values_are_those_of_the_event(void **state)
{
	struct prof_values v = prof_values_of(CAIRN_PROF_CPU, 99);

	assert_int_equal(v.n_types, 2);
	assert_int_equal(v.each, 10101010);
	assert_string_equal(v.types[1].unit, "nanoseconds");
	v = prof_values_of(CAIRN_PROF_PAGE_FAULTS, 0);
	assert_int_equal(v.n_types, 1);
	assert_int_equal(v.each, 1);
	assert_string_equal(v.run.each.type, "page-faults");
	v = prof_values_of(CAIRN_PROF_OFF_CPU, 0);
	assert_int_equal(v.each, 1);
	assert_string_equal(v.types[1].type, "off-cpu");
}

static void hidden_addresses_of_the_kernel_are_noted_once(void **state)
{
	const char *missing = workspace_path(&space, "no-such-file");
	const char *paths[] = {workspace_path(&space, "hidden"), missing};

	for (size_t i = 0; i < 2; i++) {
		struct prof_names_opts opts = {.kallsyms = paths[i]};
		struct prof_samples s = {0};
		struct prof_names *names;
		struct cairn_profile *p;
		const struct cairn_profile_location *l;

		add(&s, 5, CAIRN_PROF_NO_USER, 2, 2,
		    (uint64_t[]){0xffffffff81000010, 0xffffffff81000020});
		assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
		assert_int_equal(prof_names_profile(names, &s, NULL, 0, &values, &p, NULL), 0);
		assert_non_null(strstr(prof_names_note(names, 0), "kptr_restrict"));
		assert_null(prof_names_note(names, 1));
		l = cairn_profile_location(p, 0);
		assert_int_equal(l->n_lines, 0);
		assert_string_equal(cairn_profile_mapping(p, l->mapping)->path, "[kernel]");
		cairn_profile_close(p);
		prof_names_free(names);
		samples_fini(&s);
	}
}

static void a_stack_that_is_cut_begins_with_the_reason(void **state)
{
	struct walk_file file = open_file("plain");
	struct prof_names_opts opts = {.kallsyms = workspace_path(&space, "kallsyms")};
	uint64_t work = in_file(0, address_of("work")), kernel = 0xffffffff81000110;
	struct prof_samples s = {0};

	add(&s, 5, CAIRN_PROF_UNREADABLE, 1, 2, (uint64_t[]){kernel, work});
	add(&s, 5, CAIRN_PROF_ASSUMED, 0, 1, (uint64_t[]){work | WALK_ASSUMED});
	add(&s, 5, CAIRN_PROF_NO_PROCESS, 0, 0, NULL);
	expect_folded(&opts, &s, &(struct walk_file *){&file}, 1,
		      "[cut: no-process] 3\n"
		      "[cut: unreadable];work;do_syscall_64_[k] 3\n"
		      "work 3\n");
	cairn_binary_close(file.bin);
}

/* The text of a label; NULL: the sample has none of the key. */
static const char *label(const struct cairn_profile_sample *s, const char *key)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (!strcmp(s->labels[i].key, key))
			return s->labels[i].text;
	return NULL;
}

static void a_sample_has_its_thread_and_the_end_of_its_stack(void **state)
{
	struct walk_file file = open_file("plain");
	struct prof_names_opts opts = {0};
	uint64_t work = in_file(0, address_of("work"));
	static const struct {
		uint8_t end;
		const char *id;
	} ends[] = {{CAIRN_PROF_COMPLETE, NULL},
		    {CAIRN_PROF_NO_USER, NULL},
		    {CAIRN_PROF_ASSUMED, "assumed"},
		    {CAIRN_PROF_LOST, "lost"},
		    {CAIRN_PROF_READS, "reads"}};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;

	for (size_t i = 0; i < 5; i++)
		add(&s, (int)(10 * i + 10), ends[i].end, 0, 1, &work);
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(
		prof_names_profile(names, &s, &(struct walk_file *){&file}, 1, &values, &p, NULL),
		0);
	assert_int_equal(cairn_profile_n_samples(p), 5);
	for (size_t i = 0; i < 5; i++) {
		struct cairn_profile_sample one = cairn_profile_sample(p, i);

		assert_string_equal(label(&one, "thread"), "worker");
		assert_int_equal(one.labels[0].number, 10 * i + 10);
		assert_int_equal(one.labels[1].number, 10 * i + 11);
		if (ends[i].id)
			assert_string_equal(label(&one, "end"), ends[i].id);
		else
			assert_null(label(&one, "end"));
	}
	for (int end = 0; end < CAIRN_PROF_N_ENDS; end++)
		assert_non_null(cairn_prof_end_id((enum cairn_prof_end)end));
	cairn_profile_close(p);
	prof_names_free(names);
	samples_fini(&s);
	cairn_binary_close(file.bin);
}

/* Executable memory with a name in the process's perf map; other addresses have none. */
static uint8_t *make_code(char *map_path, size_t size)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *map;

	assert_true(code != MAP_FAILED);
	snprintf(map_path, size, "/tmp/perf-%d.map", (int)getpid());
	map = fopen(map_path, "w");
	assert_non_null(map);
	fprintf(map, "%llx 40 jit;ted\x1b\n", (unsigned long long)(uintptr_t)code);
	fclose(map);
	return code;
}

static void code_made_at_run_time_has_the_names_of_its_process(void **state)
{
	struct prof_names_opts opts = {0};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;
	struct cairn_profile_bytes bytes;
	char map_path[64], expected[300];
	uint8_t *code = make_code(map_path, sizeof(map_path));
	unsigned long long at = (uintptr_t)code;

	/* The same addresses in a process that is none have no names. */
	add(&s, getpid(), CAIRN_PROF_COMPLETE, 0, 2,
	    (uint64_t[]){WALK_RAW | WALK_ASSUMED | (at + 8), WALK_RAW | (at + 0x80)});
	add(&s, 0x7ffffff0, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){WALK_RAW | (at + 8)});
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(prof_names_of_process(names, &s, getpid(), NULL), 0);
	/* A name that was found stays, whatever becomes of the code. */
	unlink(map_path);
	munmap(code, 4096);
	assert_int_equal(prof_names_profile(names, &s, NULL, 0, &values, &p, NULL), 0);
	assert_non_null(strstr(prof_names_note(names, 0), "1 process had ended"));
	prof_names_free(names);
	assert_int_equal(cairn_profile_folded(p, 0, &bytes, NULL), 0);
	snprintf(expected, sizeof(expected),
		 "[anon]+0x%llx_[j] 3\nperf-%d.map+0x%llx_[j];jit:ted?_[j] 3\n", at + 8, getpid(),
		 at + 0x80);
	assert_int_equal(bytes.size, strlen(expected));
	assert_memory_equal(bytes.bytes, expected, bytes.size);
	free(bytes.bytes);
	cairn_profile_close(p);
	samples_fini(&s);
}

static void the_mapping_of_the_program_comes_first(void **state)
{
	struct walk_file files[] = {open_file("plain"), open_file("sample")};
	struct walk_file *list[] = {&files[0], &files[1]};
	struct prof_names_opts opts = {.program = workspace_path(&space, "sample")};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;

	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 2,
	    (uint64_t[]){in_file(0, address_of("work")), in_file(1, address_of("work"))});
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(prof_names_profile(names, &s, list, 2, &values, &p, NULL), 0);
	assert_string_equal(cairn_profile_mapping(p, 1)->path, files[1].path);
	assert_string_equal(cairn_profile_mapping(p, 2)->path, files[0].path);
	assert_null(cairn_profile_mapping(p, 3));
	cairn_profile_close(p);
	prof_names_free(names);
	samples_fini(&s);
	cairn_binary_close(files[0].bin);
	cairn_binary_close(files[1].bin);
}

/* What the engine knows by now: nothing at the first call. */
static unsigned int n_asked;

static uint64_t frame_of(void *ctx, int pid, uint64_t at)
{
	n_asked++;
	return n_asked > 1 && pid == 5 && at == 0x5000 ? *(uint64_t *)ctx : 0;
}

static void an_address_whose_file_is_known_later_is_a_frame_of_it(void **state)
{
	struct walk_file file = open_file("plain");
	uint64_t work = in_file(0, address_of("work"));
	struct prof_names_opts opts = {.frame_of = frame_of, .frame_of_ctx = &work};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;
	const struct cairn_profile_location *l;

	add(&s, 5, CAIRN_PROF_NO_PROCESS, 0, 1, (uint64_t[]){WALK_RAW | 0x5000});
	n_asked = 0;
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(prof_names_of_new_addresses(names, &s, NULL), 0);
	assert_int_equal(n_asked, 1);
	assert_int_equal(prof_names_of_new_addresses(names, &s, NULL), 0);
	assert_int_equal(n_asked, 2);
	assert_int_equal(
		prof_names_profile(names, &s, &(struct walk_file *){&file}, 1, &values, &p, NULL),
		0);
	assert_int_equal(n_asked, 2);
	l = cairn_profile_location(p, cairn_profile_sample(p, 0).stack[0]);
	assert_string_equal(cairn_profile_function(p, l->lines[0].function)->name, "work");
	cairn_profile_close(p);
	prof_names_free(names);
	samples_fini(&s);
	cairn_binary_close(file.bin);
}

static size_t show_loud(const char *linkage, const char *name, char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%s/%s!%0300d", linkage ? linkage : "-",
				name ? name : "-", 0);
}

static void names_are_shown_as_the_caller_wants(void **state)
{
	struct walk_file file = open_file("plain");
	struct prof_names_opts opts = {.show_name = show_loud};
	struct prof_samples s = {0};
	char *text;

	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){in_file(0, address_of("work"))});
	text = fold(&opts, &s, &(struct walk_file *){&file}, 1);
	assert_int_equal(strncmp(text, "work/-!0000", 11), 0);
	assert_int_equal(strlen(text), 7 + 300 + 3);
	free(text);
	samples_fini(&s);
	cairn_binary_close(file.bin);
}

static int n_made;

static int make_one(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		    struct cairn_err *err)
{
	n_made++;
	if (ctx)
		return cairn_sidecar_open(ctx, NULL, ret, err);
	return 0;
}

static void a_sidecar_is_asked_for_once_and_its_failure_noted(void **state)
{
	struct walk_file file = open_file("plain");
	struct prof_names_opts opts = {.make_sidecar = make_one,
				       .make_sidecar_ctx = (void *)"/no/such/sidecar"};
	uint64_t work = address_of("work");
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;

	strcpy(file.note, "the file has no table");
	add(&s, 5, CAIRN_PROF_COMPLETE, 0, 2, (uint64_t[]){in_file(0, work), in_file(0, work + 1)});
	n_made = 0;
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(
		prof_names_profile(names, &s, &(struct walk_file *){&file}, 1, &values, &p, NULL),
		0);
	assert_int_equal(n_made, 1);
	assert_non_null(strstr(prof_names_note(names, 0), "the file has no table"));
	assert_non_null(strstr(prof_names_note(names, 1), "/no/such/sidecar"));
	assert_null(prof_names_note(names, 2));
	cairn_profile_close(p);
	prof_names_free(names);
	samples_fini(&s);
	cairn_binary_close(file.bin);
}

static void a_sum_that_is_too_large_is_refused(void **state)
{
	struct prof_names_opts opts = {0};
	struct prof_samples s = {0};
	struct prof_names *names;
	struct cairn_profile *p;
	struct cairn_err err;

	add(&s, 5, CAIRN_PROF_NO_PROCESS, 0, 0, NULL);
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	s.counts.p[0].weight = UINT64_MAX / 1000;
	assert_int_equal(prof_names_profile(names, &s, NULL, 0, &values, &p, &err), -ERANGE);
	assert_null(p);
	prof_names_free(names);
	samples_fini(&s);
}

/* ---- sites of probes ---- */

static const struct cairn_inlined_call to_container = {
	.function = "wrapper", .call_file = "a.c", .call_line = 7};

static size_t frames_of_site(const char *const *around, size_t n, struct cairn_frame *frames)
{
	static const struct cairn_function wrapper = {
		.name = "ns::wrapper", .decl_file = "a.h", .decl_line = 3};
	static const struct cairn_site inlined = {.kind = CAIRN_SITE_INLINED,
						  .n_chain = 1,
						  .chain = &to_container,
						  .container = "caller",
						  .symbol = "caller.cold"};

	for (size_t i = 0; i < n; i++)
		frames[i] = (struct cairn_frame){.name = around[i], .line = (uint32_t)i + 20};
	return site_frames(&wrapper, &inlined, frames, n);
}

static void a_stack_of_a_hit_ends_at_the_probed_function(void **state)
{
	static const char *const names[] = {"within", "wrapper", "caller"};
	struct cairn_frame frames[CAIRN_FRAMES_MAX];

	assert_int_equal(frames_of_site(names, 3, frames), 2);
	assert_string_equal(frames[0].name, "wrapper");
	assert_string_equal(frames[1].name, "caller");
	assert_true(frames[0].line == 21 && frames[1].line == 22);
	assert_int_equal(frames_of_site(names + 1, 2, frames), 2);
	assert_string_equal(frames[0].name, "wrapper");
}

/* Its chain of calls is known by the site itself. */
static void a_site_whose_address_is_of_other_code_is_named_all_the_same(void **state)
{
	static const char *const other[] = {"another", "caller"};
	struct cairn_frame frames[CAIRN_FRAMES_MAX];

	for (size_t n = 0; n <= 2; n++) {
		assert_int_equal(frames_of_site(other, n, frames), 2);
		assert_true(!strcmp(frames[0].name, "ns::wrapper") && frames[0].line == 3);
		assert_true(!strcmp(frames[1].name, "caller") && frames[1].line == 7);
		assert_string_equal(frames[1].function, "caller.cold");
	}
}

/* One of each kind of frame, with all that can be allocated. */
static int profile_all(struct walk_file *file, const struct prof_samples *s)
{
	struct prof_names_opts opts = {.kallsyms = workspace_path(&space, "kallsyms")};
	struct prof_names *names;
	struct cairn_profile *p;
	int rc = prof_names_new(&opts, &names, NULL);

	if (rc == 0)
		rc = prof_names_profile(names, s, &file, 1, &values, &p, NULL);
	if (rc == 0)
		cairn_profile_close(p);
	prof_names_free(names);
	return rc;
}

static void a_profile_has_the_moments_of_its_samples(void **state)
{
	static const struct prof_moment moments[] = {
		{1, 4, 5000, 1}, {0, 2, 4000, 2}, {1, UINT32_MAX, 3900, 1}, {0, 2, 9000, 1}};
	struct prof_values at_4000 = values;
	struct prof_samples s = {.n_without_moment = 2};
	struct prof_names_opts opts = {0};
	struct prof_names *names;
	struct cairn_profile *p;

	at_4000.started_ns = 4000;
	for (uint64_t i = 0; i < 2; i++)
		add(&s, 7, CAIRN_PROF_COMPLETE, 0, 1, (uint64_t[]){in_file(3, i)});
	for (size_t i = 0; i < 4; i++)
		assert_true(VEC_ADD(&s.moments, moments[i]));
	assert_int_equal(prof_names_new(&opts, &names, NULL), 0);
	assert_int_equal(prof_names_profile(names, &s, NULL, 0, &at_4000, &p, NULL), 0);
	assert_string_equal(
		prof_names_note(names, 0),
		"2 samples after the first 8388608 are in the profile without their times");
	prof_names_free(names);
	assert_int_equal(cairn_profile_n_moments(p), 4);
	for (size_t i = 0; i < 4; i++) {
		struct cairn_profile_moment m = cairn_profile_moment(p, i);
		const struct prof_moment *k = &moments[(size_t[]){1, 3, 0, 2}[i]];

		assert_true(m.sample == k->count && m.cpu == k->cpu);
		assert_int_equal(m.time_ns, (int64_t)k->time_ns - 4000);
		assert_true(m.values[0] == 1 && m.values[1] == (int64_t)k->weight * 1000);
	}
	cairn_profile_close(p);
	samples_fini(&s);
}

static void each_failing_allocation_is_reported(void **state)
{
	struct walk_file file = open_file("sample");
	struct prof_samples s = {0};
	struct cairn_sidecar_image image;
	char map_path[64];
	uint8_t *code = make_code(map_path, sizeof(map_path));
	unsigned int n = 0;
	bool failed;
	int rc;

	/* Making a sidecar has a claim of its own. */
	assert_int_equal(cairn_sidecar_make(file.bin, NULL, &image, NULL), 0);
	assert_int_equal(cairn_sidecar_open_image(&image, "sample", &file.sidecar, NULL), 0);
	add(&s, getpid(), CAIRN_PROF_LOST, 1, 3,
	    (uint64_t[]){0xffffffff81000010, in_file(0, address_of("in_put")),
			 WALK_RAW | ((uintptr_t)code + 8)});
	do {
		alloc_fail_at(++n);
		rc = profile_all(&file, &s);
		failed = alloc_fail_end();
		/* The description of another process's code may do without a part of it. */
		assert_true(failed ? rc == -ENOMEM || rc == 0 : rc == 0);
	} while (failed);
	assert_true(n > 30);
	unlink(map_path);
	munmap(code, 4096);
	samples_fini(&s);
	cairn_sidecar_close(file.sidecar);
	cairn_binary_close(file.bin);
}

int main(void)
{
	const struct CMUnitTest claims[] = {
		cmocka_unit_test(a_frame_in_a_file_has_its_inlined_calls_and_lines),
		cmocka_unit_test(
			without_debug_information_a_frame_has_the_symbol_or_the_files_offset),
		cmocka_unit_test(frames_of_the_kernel_have_its_symbols),
		cmocka_unit_test(the_way_from_a_tracepoint_to_its_program_is_left_out),
		cmocka_unit_test(values_are_those_of_the_event),
		cmocka_unit_test(hidden_addresses_of_the_kernel_are_noted_once),
		cmocka_unit_test(a_stack_that_is_cut_begins_with_the_reason),
		cmocka_unit_test(a_sample_has_its_thread_and_the_end_of_its_stack),
		cmocka_unit_test(code_made_at_run_time_has_the_names_of_its_process),
		cmocka_unit_test(the_mapping_of_the_program_comes_first),
		cmocka_unit_test(an_address_whose_file_is_known_later_is_a_frame_of_it),
		cmocka_unit_test(names_are_shown_as_the_caller_wants),
		cmocka_unit_test(a_sidecar_is_asked_for_once_and_its_failure_noted),
		cmocka_unit_test(a_sum_that_is_too_large_is_refused),
		cmocka_unit_test(a_stack_of_a_hit_ends_at_the_probed_function),
		cmocka_unit_test(a_site_whose_address_is_of_other_code_is_named_all_the_same),
		cmocka_unit_test(a_profile_has_the_moments_of_its_samples),
		cmocka_unit_test(each_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(claims, open_space, close_space);
}
