/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the DWARF of a stripped binary is found, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "alloc_fail.h"
#include "elf/debug_files.h"
#include "elf/package.h"
#include "elf_builder.h"
#include "workspace.h"

static const uint8_t code[64] = {0x55, 0x48, 0x89, 0xe5, 0xc3};
static const char info[100] = "stands for DWARF";
static const uint8_t id[20] = {0xab, 0xcd, 0xef, 1,  2,  3,  4,  5,  6,  7,
			       8,    9,    10,   11, 12, 13, 14, 15, 16, 17};
static const uint8_t other_id[20] = {0xab, 0xcd, 0xef, 99};
#define ID_PATH "dbg/.build-id/ab/cdef0102030405060708090a0b0c0d0e0f1011.debug"

/* What a test asks the two files to be. */
struct plan {
	const uint8_t *id; /* NULL: no build-id */
	const char *link;  /* debug link; NULL for none */
	uint32_t crc;
	const char *alt; /* alternate file; NULL for none */
	const uint8_t *alt_id;
	bool dwarf;
};

static void write_elf(const char *path, const struct plan *plan)
{
	struct elf_builder *b = eb_new(ET_DYN);
	size_t size;
	eb_section(b, (struct eb_section){.name = ".text",
					  .flags = SHF_ALLOC | SHF_EXECINSTR,
					  .addr = 0x1000,
					  EB_BYTES(code)});
	if (plan->dwarf)
		eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(info)});
	if (plan->id)
		eb_build_id(b, plan->id, sizeof(id));
	if (plan->link)
		eb_debug_link(b, plan->link, plan->crc);
	if (plan->alt)
		eb_alt_link(b, plan->alt, plan->alt_id, sizeof(id));
	eb_finish(b, &size);
	eb_write(b, path);
	eb_free(b);
}

/* The CRC that a debug link to this file has to carry. */
static uint32_t crc_of(const char *path)
{
	static uint8_t bytes[1 << 16];
	FILE *f = fopen(path, "rbe");
	assert_non_null(f);
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	return crc32(0, bytes, n);
}

static int try_open(const struct workspace *w, const char *name, const char *debug_file,
		    struct cairn_binary **ret, struct cairn_err *err)
{
	const char *dir = workspace_path(w, "dbg");
	struct cairn_binary_opts opts = {.size = sizeof(opts),
					 .debug_dirs = &dir,
					 .n_debug_dirs = 1,
					 .debug_file = debug_file};
	return cairn_binary_open(workspace_path(w, name), &opts, ret, err);
}

static struct cairn_binary *must_open(const struct workspace *w, const char *name)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	if (try_open(w, name, NULL, &bin, &err) < 0)
		fail_msg("%s", err.msg);
	return bin;
}

static void assert_debug_is(const struct cairn_binary *bin, const char *path)
{
	if (!cairn_binary_has_dwarf(bin) || strcmp(cairn_binary_debug_path(bin), path))
		fail_msg("not %s; %s", path, cairn_binary_search_log(bin));
	assert_non_null(binary_debug(bin));
}

static void assert_no_debug(const struct cairn_binary *bin, const char *words)
{
	assert_false(cairn_binary_has_dwarf(bin));
	assert_null(cairn_binary_debug_path(bin));
	assert_null(binary_debug(bin));
	if (!strstr(cairn_binary_search_log(bin), words))
		fail_msg("no '%s' in: %s", words, cairn_binary_search_log(bin));
}

static int setup(void **state)
{
	struct workspace *w = malloc(sizeof(*w));
	workspace_open(w);
	workspace_run(w, "mkdir -p dbg/.build-id/ab bin/.debug");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	workspace_close(*state);
	free(*state);
	return 0;
}

static void dwarf_in_the_file_itself_comes_first(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id, .dwarf = true});
	write_elf(workspace_path(w, ID_PATH), &(struct plan){.id = id, .dwarf = true});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_debug_is(bin, workspace_path(w, "bin/prog"));
	assert_ptr_equal(binary_debug(bin), binary_main(bin));
	cairn_binary_close(bin);
}

static void build_id_leads_to_the_debug_file(void **state)
{
	struct workspace *w = *state;
	size_t n;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id});
	write_elf(workspace_path(w, ID_PATH), &(struct plan){.id = id, .dwarf = true});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_debug_is(bin, workspace_path(w, ID_PATH));
	assert_memory_equal(cairn_binary_build_id(bin, &n), id, sizeof(id));
	assert_int_equal(n, sizeof(id));
	cairn_binary_close(bin);
}

static void debug_file_of_another_build_is_refused(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id});
	write_elf(workspace_path(w, ID_PATH), &(struct plan){.id = other_id, .dwarf = true});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "refused: its build-id is abcdef63");
	cairn_binary_close(bin);
	write_elf(workspace_path(w, ID_PATH), &(struct plan){.dwarf = true});
	bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "refused: it has no build-id");
	cairn_binary_close(bin);
}

static void file_without_dwarf_is_passed_over(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id});
	write_elf(workspace_path(w, ID_PATH), &(struct plan){.id = id});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "has no .debug_info");
	cairn_binary_close(bin);
}

/* A debug link is followed to each of its places. */
static void check_link_place(struct workspace *w, const char *place)
{
	struct plan debug = {.id = id, .dwarf = true};
	write_elf(workspace_path(w, place), &debug);
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){
			  .id = id, .link = "prog.debug", .crc = crc_of(workspace_path(w, place))});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_debug_is(bin, workspace_path(w, place));
	cairn_binary_close(bin);
	unlink(workspace_path(w, place));
}

static void debug_link_leads_to_each_of_its_places(void **state)
{
	struct workspace *w = *state;
	char under[PATH_MAX];
	check_link_place(w, "bin/prog.debug");
	check_link_place(w, "bin/.debug/prog.debug");
	workspace_run(w, "mkdir -p dbg%s/bin", w->dir);
	snprintf(under, sizeof(under), "dbg%s/bin/prog.debug", w->dir);
	check_link_place(w, under);
}

static void debug_link_with_another_crc_is_refused(void **state)
{
	struct workspace *w = *state;
	const char *debug = workspace_path(w, "bin/prog.debug");
	write_elf(debug, &(struct plan){.id = id, .dwarf = true});
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){.id = id, .link = "prog.debug", .crc = crc_of(debug) ^ 1});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "the debug link says");
	cairn_binary_close(bin);
}

static void debug_link_with_the_right_crc_and_another_build_id_is_refused(void **state)
{
	struct workspace *w = *state;
	const char *debug = workspace_path(w, "bin/prog.debug");
	write_elf(debug, &(struct plan){.id = other_id, .dwarf = true});
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){.id = id, .link = "prog.debug", .crc = crc_of(debug)});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "refused: its build-id");
	cairn_binary_close(bin);
}

static void crc_alone_serves_when_there_are_no_build_ids(void **state)
{
	struct workspace *w = *state;
	const char *debug = workspace_path(w, "bin/prog.debug");
	write_elf(debug, &(struct plan){.dwarf = true});
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){.link = "prog.debug", .crc = crc_of(debug)});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_debug_is(bin, debug);
	cairn_binary_close(bin);
}

static void debug_link_out_of_its_directory_is_refused(void **state)
{
	struct workspace *w = *state;
	static const char *const names[] = {"../bin/prog.debug", "/etc/passwd", ""};
	for (size_t i = 0; i < 3; i++) {
		write_elf(workspace_path(w, "bin/prog"),
			  &(struct plan){.id = id, .link = names[i]});
		struct cairn_binary *bin = must_open(w, "bin/prog");
		assert_no_debug(bin, ".gnu_debuglink: not a file name");
		cairn_binary_close(bin);
	}
}

/* A link section cut at every length, at the end of the file or not. */
static void links_cut_at_any_byte_are_told_and_not_followed(void **state)
{
	struct workspace *w = *state;
	for (int alt = 0; alt < 2; alt++) {
		for (size_t n = 0;; n++) {
			struct elf_builder *b = eb_new(ET_DYN);
			uint32_t i = alt ? eb_alt_link(b, "shared", id, sizeof(id))
					 : eb_debug_link(b, "prog.debug", 1);
			if (alt)
				eb_section(b, (struct eb_section){.name = ".debug_info",
								  EB_BYTES(info)});
			size_t size;
			eb_finish(b, &size);
			bool whole = n == eb_header(b, i)->sh_size;
			eb_header(b, i)->sh_size = n;
			eb_write(b, workspace_path(w, "bin/prog"));
			eb_free(b);
			struct cairn_binary *bin = must_open(w, "bin/prog");
			assert_int_equal(cairn_binary_has_dwarf(bin), alt);
			assert_null(binary_alt(bin));
			/* An alternate link ends where its section ends: any build-id of a byte or
			 * more is one. */
			const char *words =
				alt ? (n > sizeof("shared") ? ".build-id/ab/" : ".gnu_debugaltlink")
				    : (whole ? "bin/prog.debug: No such file" : ".gnu_debuglink");
			if (n > 0 && n != sizeof("shared") + 1 &&
			    !strstr(cairn_binary_search_log(bin), words))
				fail_msg("%zu bytes: no '%s' in: %s", n, words,
					 cairn_binary_search_log(bin));
			cairn_binary_close(bin);
			if (whole)
				break;
		}
	}
}

static void links_that_form_a_ring_end(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/a"), &(struct plan){.link = "b"});
	write_elf(workspace_path(w, "bin/b"), &(struct plan){.link = "a"});
	struct cairn_binary *bin = must_open(w, "bin/a");
	assert_no_debug(bin, "bin/b: has no .debug_info");
	cairn_binary_close(bin);
	write_elf(workspace_path(w, "bin/a"), &(struct plan){.link = "a"});
	bin = must_open(w, "bin/a");
	assert_no_debug(bin, "bin/.debug/a: No such file");
	cairn_binary_close(bin);
	/* An alternate file that names itself is opened once. */
	write_elf(workspace_path(w, "bin/a"),
		  &(struct plan){.id = id, .dwarf = true, .alt = "a", .alt_id = id});
	bin = must_open(w, "bin/a");
	assert_true(cairn_binary_has_dwarf(bin));
	cairn_binary_close(bin);
}

static void odd_files_at_the_place_are_passed_over(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id, .link = "prog.debug"});
	assert_int_equal(mkfifo(workspace_path(w, ID_PATH), 0600), 0);
	assert_int_equal(mkdir(workspace_path(w, "bin/prog.debug"), 0700), 0);
	workspace_write(w, "bin/.debug/prog.debug",
			"\x7f"
			"ELF then nothing");
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_no_debug(bin, "not a regular file");
	assert_non_null(strstr(cairn_binary_search_log(bin), "a directory"));
	assert_non_null(strstr(cairn_binary_search_log(bin), "ELF header"));
	cairn_binary_close(bin);
}

static void named_debug_file_is_used_or_refused_with_the_reason(void **state)
{
	struct workspace *w = *state;
	struct cairn_err err = {0};
	struct cairn_binary *bin = NULL;
	char named[PATH_MAX];
	snprintf(named, sizeof(named), "%s", workspace_path(w, "named"));
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id, .dwarf = true});
	assert_int_equal(try_open(w, "bin/prog", named, &bin, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "named"));
	write_elf(named, &(struct plan){.id = other_id, .dwarf = true});
	assert_int_equal(try_open(w, "bin/prog", named, &bin, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "its build-id is abcdef63"));
	write_elf(named, &(struct plan){.id = id});
	assert_int_equal(try_open(w, "bin/prog", named, &bin, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "has no .debug_info"));
	assert_null(bin);
	/* Without a build-id the caller's word counts. */
	write_elf(named, &(struct plan){.dwarf = true});
	assert_int_equal(try_open(w, "bin/prog", named, &bin, &err), 0);
	assert_debug_is(bin, named);
	cairn_binary_close(bin);
}

static void check_alt(struct workspace *w, const char *link, const char *place)
{
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){.id = id, .dwarf = true, .alt = link, .alt_id = other_id});
	write_elf(workspace_path(w, place), &(struct plan){.id = other_id, .dwarf = true});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	if (!binary_alt(bin))
		fail_msg("%s", cairn_binary_search_log(bin));
	assert_string_equal(elf_path(binary_alt(bin)), workspace_path(w, place));
	cairn_binary_close(bin);
	unlink(workspace_path(w, place));
}

static void alternate_file_is_found_by_build_id_and_by_name(void **state)
{
	struct workspace *w = *state;
	const char *absolute = workspace_path(w, "bin/shared");
	check_alt(w, "nowhere", "dbg/.build-id/ab/cdef6300000000000000000000000000000000.debug");
	check_alt(w, absolute, "bin/shared");
	/* A path for the system's debug directory also counts in the others. */
	workspace_run(w, "mkdir -p dbg/.dwz");
	check_alt(w, "/usr/lib/debug/.dwz/cairn-test-shared", "dbg/.dwz/cairn-test-shared");
}

static void relative_alternate_file_is_beside_the_debug_file(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"), &(struct plan){.id = id});
	write_elf(
		workspace_path(w, ID_PATH),
		&(struct plan){.id = id, .dwarf = true, .alt = "../../shared", .alt_id = other_id});
	write_elf(workspace_path(w, "dbg/shared"), &(struct plan){.id = other_id, .dwarf = true});
	struct cairn_binary *bin = must_open(w, "bin/prog");
	assert_non_null(binary_alt(bin));
	cairn_binary_close(bin);
	/* The wrong one is refused, and told. */
	write_elf(workspace_path(w, "dbg/shared"), &(struct plan){.id = id, .dwarf = true});
	bin = must_open(w, "bin/prog");
	assert_true(cairn_binary_has_dwarf(bin));
	assert_null(binary_alt(bin));
	assert_non_null(strstr(cairn_binary_search_log(bin), "shared: refused: its build-id"));
	cairn_binary_close(bin);
}

static void options_of_a_newer_caller_are_refused_when_set(void **state)
{
	struct workspace *w = *state;
	struct {
		struct cairn_binary_opts known;
		uint64_t newer;
	} opts = {.known.size = sizeof(opts)};
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	const char *path = workspace_path(w, "bin/prog");
	write_elf(path, &(struct plan){.id = id});
	assert_int_equal(cairn_binary_open(path, &opts.known, &bin, &err), 0);
	cairn_binary_close(bin);
	opts.newer = 1;
	assert_int_equal(cairn_binary_open(path, &opts.known, &bin, &err), -EINVAL);
	opts.known.size = 0;
	assert_int_equal(cairn_binary_open(path, &opts.known, &bin, &err), -EINVAL);
}

static void every_failed_allocation_in_the_search_is_reported(void **state)
{
	struct workspace *w = *state;
	write_elf(workspace_path(w, "bin/prog"),
		  &(struct plan){.id = id, .link = "prog.debug", .crc = 1});
	write_elf(workspace_path(w, "bin/prog.debug"), &(struct plan){.id = id, .dwarf = true});
	unsigned int n;
	for (n = 1;; n++) {
		struct cairn_err err = {0};
		struct cairn_binary *bin;
		alloc_fail_at(n);
		int r = try_open(w, "bin/prog", NULL, &bin, &err);
		if (!alloc_fail_end()) {
			assert_int_equal(r, 0);
			cairn_binary_close(bin);
			break;
		}
		assert_int_equal(r, -ENOMEM);
	}
	assert_true(n > 10);
}

/* Debian's package lists, as dpkg writes them. */
static void package_of_a_file_is_read_from_the_lists(void **state)
{
	struct workspace *w = *state;
	char name[64];
	workspace_run(w, "mkdir info");
	workspace_write(w, "info/libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n");
	workspace_write(w, "info/coreutils.list", "/bin/ls\n/usr/bin/sort");
	workspace_write(w, "info/other.md5sums", "/usr/bin/other\n");
	const char *dir = workspace_path(w, "info");
	assert_true(package_of(dir, "/usr/lib/x86_64-linux-gnu/libc.so.6", name, sizeof(name)));
	assert_string_equal(name, "libc6");
	assert_true(package_of(dir, "/usr/bin/ls", name, sizeof(name)));
	assert_string_equal(name, "coreutils");
	assert_true(package_of(dir, "/usr/bin/sort", name, sizeof(name)));
	assert_false(package_of(dir, "/usr/bin/sor", name, sizeof(name)));
	assert_false(package_of(dir, "/usr/bin/other", name, sizeof(name)));
	assert_false(package_of(workspace_path(w, "none"), "/bin/ls", name, sizeof(name)));
}

static void debug_package_has_the_name_that_debian_gives_it(void **state)
{
	char name[64];
	debug_package_of("libc6", name, sizeof(name));
	assert_string_equal(name, "libc6-dbg");
	debug_package_of("linux-image-6.1.0-56-cloud-amd64", name, sizeof(name));
	assert_string_equal(name, "linux-image-6.1.0-56-cloud-amd64-dbg");
	debug_package_of("openjdk-17-jre-headless", name, sizeof(name));
	assert_string_equal(name, "openjdk-17-dbg");
	debug_package_of("coreutils", name, sizeof(name));
	assert_string_equal(name, "coreutils-dbgsym");
}

/* With the tools that distributions use */

static const char program[] =
	"#include <unistd.h>\nint add(int a) { return a + 1; }\n"
	"int main(void) { write(1, \"up\\n\", 3); pause(); return add(1); }\n";

static bool build_stripped(struct workspace *w, const char *cc)
{
	workspace_write(w, "prog.c", program);
	if (!workspace_try(w, "%s -g -O1 -Wl,--build-id -static -o bin/prog prog.c", cc))
		return false;
	workspace_run(w, "objcopy --only-keep-debug bin/prog bin/prog.debug");
	workspace_run(w, "objcopy --strip-all --add-gnu-debuglink=bin/prog.debug bin/prog");
	return true;
}

static void debug_file_made_by_objcopy_is_found_and_gives_symbols(void **state)
{
	struct workspace *w = *state;
	static const char *const compilers[] = {"gcc", "clang"};
	for (size_t i = 0; i < 2; i++) {
		if (!build_stripped(w, compilers[i])) {
			print_message("no %s\n", compilers[i]);
			continue;
		}
		struct cairn_binary *bin = must_open(w, "bin/prog");
		assert_debug_is(bin, workspace_path(w, "bin/prog.debug"));
		const struct elf_symbol *symbols;
		size_t n, adds = 0;
		assert_int_equal(elf_symbols(binary_debug(bin), &symbols, &n, NULL), 0);
		for (size_t j = 0; j < n; j++) {
			const char *name;
			struct cairn_vaddr start;
			struct cairn_foff off;
			if (strcmp(symbols[j].name, "add"))
				continue;
			adds++;
			assert_true(cairn_binary_symbol_of(bin, symbols[j].at, &name, &start));
			assert_string_equal(name, "add");
			assert_true(cairn_binary_foff(bin, symbols[j].at, &off));
		}
		assert_int_equal(adds, 1);
		cairn_binary_close(bin);
		workspace_run(w, "printf x >> bin/prog.debug");
		bin = must_open(w, "bin/prog");
		assert_no_debug(bin, "refused: its CRC");
		cairn_binary_close(bin);
	}
}

static void alternate_file_made_by_dwz_is_found(void **state)
{
	struct workspace *w = *state;
	workspace_write(w, "one.c",
			"struct s { int a, b, c; char *d; long e; }; struct s s; int main(void) { "
			"return s.a; }\n");
	if (!workspace_try(w, "for i in 1 2; do gcc -g -O1 -Wl,--build-id -o bin/d$i one.c; done; "
			      "dwz -m bin/shared -M shared bin/d1 bin/d2 && test -s bin/shared")) {
		print_message("no gcc or dwz\n");
		skip();
	}
	struct cairn_binary *bin = must_open(w, "bin/d1");
	if (!binary_alt(bin))
		fail_msg("%s", cairn_binary_search_log(bin));
	const struct elf_section *s;
	assert_int_equal(elf_section(binary_alt(bin), ".debug_info", &s, NULL), 0);
	assert_non_null(s);
	cairn_binary_close(bin);
}

/* A running copy of bin/prog, in a root directory of its own when @root is set; its pid. */
static pid_t start_program(const struct workspace *w, const char *root)
{
	int ends[2];
	char up[3];
	const char *path = workspace_path(w, "bin/prog");
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], 1);
		if (root && (chroot(root) || chdir("/")))
			_exit(126);
		execl(root ? "/bin/prog" : path, "prog", NULL);
		_exit(127);
	}
	close(ends[1]);
	ssize_t n = read(ends[0], up, sizeof(up));
	close(ends[0]);
	assert_int_equal(n, sizeof(up));
	return pid;
}

static void stop_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void deleted_executable_of_a_process_is_opened(void **state)
{
	struct workspace *w = *state;
	if (!build_stripped(w, "gcc")) {
		print_message("no gcc\n");
		skip();
	}
	pid_t pid = start_program(w, NULL);
	unlink(workspace_path(w, "bin/prog"));
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int r = cairn_binary_open_pid(pid, NULL, &bin, &err);
	stop_program(pid);
	if (r < 0)
		fail_msg("%s", err.msg);
	assert_debug_is(bin, workspace_path(w, "bin/prog.debug"));
	cairn_binary_close(bin);
}

static void debug_file_under_the_root_of_a_process_is_found(void **state)
{
	struct workspace *w = *state;
	if (geteuid() || !build_stripped(w, "gcc")) {
		print_message("needs root, for chroot, and gcc\n");
		skip();
	}
	/* An absolute link in that root means a path in that root. */
	workspace_run(w, "mkdir -p usr/lib/debug/bin hidden && mv bin/prog.debug hidden/real && "
			 "ln -s /hidden/real usr/lib/debug/bin/prog.debug");
	pid_t pid = start_program(w, w->dir);
	char expected[PATH_MAX];
	snprintf(expected, sizeof(expected), "/proc/%d/root/usr/lib/debug/bin/prog.debug", pid);
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int r = cairn_binary_open_pid(pid, NULL, &bin, &err);
	stop_program(pid);
	if (r < 0)
		fail_msg("%s", err.msg);
	assert_debug_is(bin, expected);
	cairn_binary_close(bin);
}

static void process_that_is_not_there_or_has_no_executable(void **state)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	/* A zombie has no executable; reaped, it is no process. */
	siginfo_t si;
	waitid(P_PID, pid, &si, WEXITED | WNOWAIT);
	assert_int_equal(cairn_binary_open_pid(pid, NULL, &bin, &err), -ENOENT);
	waitpid(pid, NULL, 0);
	assert_int_equal(cairn_binary_open_pid(pid, NULL, &bin, &err), -ESRCH);
	assert_int_equal(cairn_binary_open_pid(-1, NULL, &bin, &err), -ESRCH);
}

static void kernel_module_is_found_by_its_path(void **state)
{
	struct workspace *w = *state;
	workspace_write(
		w, "m.c",
		"int add(int a) { return a + 1; }\n__attribute__((section(\".init.text\"))) int "
		"go(int a) { return add(a); }\n");
	if (!workspace_try(w,
			   "gcc -g -O1 -c -o m.o m.c && ld -r --build-id -o full.ko m.o && "
			   "mkdir -p lib/modules dbg%s/lib/modules && "
			   "cp full.ko dbg%s/lib/modules/m.ko && "
			   "objcopy --strip-debug full.ko lib/modules/m.ko",
			   w->dir, w->dir)) {
		print_message("no gcc or ld\n");
		skip();
	}
	struct cairn_binary *bin = must_open(w, "lib/modules/m.ko");
	assert_true(cairn_binary_has_dwarf(bin));
	assert_true(cairn_binary_is_relocatable(bin));
	cairn_binary_close(bin);
	/* The same build-id does not help when the sections are others: addresses would be wrong.
	 */
	workspace_run(w,
		      "objcopy --add-section .more=m.c --set-section-flags .more=alloc "
		      "dbg%s/lib/modules/m.ko",
		      w->dir);
	bin = must_open(w, "lib/modules/m.ko");
	assert_no_debug(bin, "refused: its sections are not those of the binary");
	cairn_binary_close(bin);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(dwarf_in_the_file_itself_comes_first),
		CLAIM(build_id_leads_to_the_debug_file),
		CLAIM(debug_file_of_another_build_is_refused),
		CLAIM(file_without_dwarf_is_passed_over),
		CLAIM(debug_link_leads_to_each_of_its_places),
		CLAIM(debug_link_with_another_crc_is_refused),
		CLAIM(debug_link_with_the_right_crc_and_another_build_id_is_refused),
		CLAIM(crc_alone_serves_when_there_are_no_build_ids),
		CLAIM(debug_link_out_of_its_directory_is_refused),
		CLAIM(links_cut_at_any_byte_are_told_and_not_followed),
		CLAIM(links_that_form_a_ring_end),
		CLAIM(odd_files_at_the_place_are_passed_over),
		CLAIM(named_debug_file_is_used_or_refused_with_the_reason),
		CLAIM(alternate_file_is_found_by_build_id_and_by_name),
		CLAIM(relative_alternate_file_is_beside_the_debug_file),
		CLAIM(options_of_a_newer_caller_are_refused_when_set),
		CLAIM(every_failed_allocation_in_the_search_is_reported),
		CLAIM(package_of_a_file_is_read_from_the_lists),
		cmocka_unit_test(debug_package_has_the_name_that_debian_gives_it),
		CLAIM(debug_file_made_by_objcopy_is_found_and_gives_symbols),
		CLAIM(alternate_file_made_by_dwz_is_found),
		CLAIM(deleted_executable_of_a_process_is_opened),
		CLAIM(debug_file_under_the_root_of_a_process_is_found),
		cmocka_unit_test(process_that_is_not_there_or_has_no_executable),
		CLAIM(kernel_module_is_found_by_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
