/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a binary names: its debug file, by build-id and by link, its .dwo files, their
 * package, dwz's file
 *
 *	0   4   bytes of the binary, little-endian
 *	4   n   the binary
 *	    ... the other file, under each of the names that seeds have for one
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/sidecar.h>
#include <cairn/sites.h>

#include "workspace.h"

/* Each input is two files to analyse. */
const unsigned int fuzz_places_max = 60;

enum { FILE_BYTES_MAX = 1 << 16 };

/* Of the program's file no package is known: dpkg's hundreds of lists were read for each input. */
bool __wrap_package_of(const char *admin_dir, const char *path, char *buf, size_t size);
bool __wrap_package_of(const char *admin_dir, const char *path, char *buf, size_t size)
{
	return false;
}

#define BUILD_ID "ab0123456789abcdef0123456789abcdef012345"

/* One file with many names; the first is the one that is written. */
/* clang-format off */
static const char *const names[] = {
	"other", "a.dwo", "prog.dwp", "prog.debug", ".debug/prog.debug", "dir/prog.debug", "alt",
	"dir/.build-id/ab/0123456789abcdef0123456789abcdef012345.debug"};
/* clang-format on */

static struct workspace place;
static int prog = -1, other = -1;

static void clean_up(void)
{
	workspace_close(&place);
}

static void set_up(void)
{
	char from[128], to[256];
	workspace_open(&place);
	workspace_run(&place, "mkdir -p .debug dir/.build-id/ab");
	atexit(clean_up);
	prog = open(workspace_path(&place, "prog"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	other = open(workspace_path(&place, names[0]), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	snprintf(from, sizeof(from), "%s", workspace_path(&place, names[0]));
	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(to, sizeof(to), "%s", workspace_path(&place, names[i]));
		if (link(from, to) < 0)
			abort();
	}
	if (prog < 0 || other < 0)
		abort();
}

static void fill(int fd, const uint8_t *bytes, size_t n)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		abort();
}

static int visit(void *ctx, const struct cairn_function *f)
{
	return 0;
}

static void read_all(struct cairn_binary *bin)
{
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .threads = 1};
	struct cairn_sidecar_image image;
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	const char *which;
	if (!cairn_sidecar_make(bin, &opts, &image, &err))
		cairn_sidecar_image_free(&image);
	if (cairn_sites_open(bin, NULL, &sites, &err) < 0)
		return;
	cairn_sites_visit(sites, visit, NULL, &err);
	cairn_sites_missing(sites, &which);
	cairn_sites_close(sites);
}

/*
 * The other file as the one that is asked for, whatever a search would find; and seen from this
 * process's own root.
 */
static void open_with_other(void)
{
	char debug[128];
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	snprintf(debug, sizeof(debug), "%s", workspace_path(&place, names[0]));
	const struct cairn_binary_opts opts = {.size = sizeof(opts), .debug_file = debug};
	int rc = cairn_binary_open(workspace_path(&place, "prog"), &opts, &bin, &err);
	if (rc < 0 && (err.code != rc || !err.msg[0]))
		abort();
	if (rc == 0)
		cairn_binary_close(bin);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	uint32_t n;
	if (prog < 0)
		set_up();
	if (size < sizeof(n))
		return 0;
	memcpy(&n, bytes, sizeof(n));
	bytes += sizeof(n);
	size -= sizeof(n);
	n = n < size ? n : (uint32_t)size;
	fill(prog, bytes, n);
	fill(other, bytes + n, size - n);
	char dir[128];
	snprintf(dir, sizeof(dir), "%s", workspace_path(&place, "dir"));
	const char *dirs[] = {dir};
	struct cairn_binary_opts opts = {
		.size = sizeof(opts), .debug_dirs = dirs, .n_debug_dirs = 1};
	if (cairn_binary_open(workspace_path(&place, "prog"), &opts, &bin, &err) < 0)
		return 0;
	read_all(bin);
	cairn_binary_close(bin);
	open_with_other();
	return 0;
}

/* ---- seeds ---- */

static size_t read_file(const struct workspace *w, const char *name, uint8_t *to)
{
	FILE *in = fopen(workspace_path(w, name), "re");
	size_t n = in ? fread(to, 1, FILE_BYTES_MAX, in) : 0;
	if (in)
		fclose(in);
	return n < FILE_BYTES_MAX ? n : 0;
}

static void put_both(const struct workspace *w, const char *binary, const char *with,
		     void (*put)(const void *bytes, size_t size))
{
	uint8_t *bytes = malloc(sizeof(uint32_t) + 2 * FILE_BYTES_MAX);
	if (!bytes)
		abort();
	uint32_t n = (uint32_t)read_file(w, binary, bytes + sizeof(n));
	size_t more = read_file(w, with, bytes + sizeof(n) + n);
	memcpy(bytes, &n, sizeof(n));
	if (n)
		put(bytes, sizeof(n) + n + more);
	free(bytes);
}

static const char source[] =
	"struct s { int a; char b[4]; struct s *next; }; volatile int sink;\n"
	"static inline int add(struct s *p, int n) { sink = n; return p->a + n; }\n"
	"int walk(struct s *p) { int n = 0; for (; p; p = p->next) n += add(p, n); return n; }\n"
	"int again(struct s *p) { return add(p, 3) + walk(p); }\n";

#define LINK "-O2 -w -fPIC -nostdlib -shared -Wl,--build-id=0x" BUILD_ID " -o prog a.c"

/* clang-format off */
static const struct {
	const char *command, *with;
} seeds[] = {
	{"gcc -g " LINK " && objcopy --only-keep-debug prog other && strip prog", "other"},
	{"gcc -g " LINK " && objcopy --only-keep-debug prog prog.debug && strip prog && objcopy --add-gnu-debuglink=prog.debug prog &&"
	 " objcopy -R .note.gnu.build-id prog", "prog.debug"},
	{"gcc -gsplit-dwarf -gdwarf-5 -O2 -fPIC -c a.c && gcc -gsplit-dwarf -gdwarf-5 " LINK " && mv prog-a.dwo a.dwo", "a.dwo"},
	{"gcc -gsplit-dwarf -gdwarf-5 -O2 -fPIC -c a.c -o a.o && gcc -nostdlib -shared -o prog a.o", "a.dwo"},
	{"gcc -gsplit-dwarf -gdwarf-4 -O2 -fPIC -c a.c -o a.o && gcc -nostdlib -shared -o prog a.o", "a.dwo"},
	{"clang -gsplit-dwarf -gdwarf-5 -O2 -fPIC -c a.c -o a.o && gcc -nostdlib -shared -o prog a.o", "a.dwo"},
	{"gcc -gsplit-dwarf -gdwarf-5 -O2 -fPIC -c a.c -o a.o && gcc -nostdlib -shared -o prog a.o && (llvm-dwp a.dwo -o prog.dwp ||"
	 " llvm-dwp-14 a.dwo -o prog.dwp)", "prog.dwp"},
	{"gcc -gsplit-dwarf -gdwarf-4 -O2 -fPIC -c a.c -o a.o && gcc -nostdlib -shared -o prog a.o && dwp a.dwo -o prog.dwp", "prog.dwp"},
	{"gcc -g -w " LINK " && cp prog two && dwz -m alt prog two", "alt"},
	/*
	 * Of another build; of none; without debug information; as the file that has none itself.
	 */
	{"gcc -g " LINK " && cp prog other && objcopy -R .note.gnu.build-id prog && strip prog", "other"},
	{"gcc -g " LINK " && objcopy -R .note.gnu.build-id prog && cp prog other && strip prog", "other"},
	{"gcc -g -O1 -w -fPIC -nostdlib -shared -Wl,--build-id=0xcd0123 -o other a.c && gcc " LINK, "other"},
	{"gcc -g " LINK " && strip prog && cp prog other", "other"},
	/* Links that are no name, or no link; and one into the system's folder. */
	{"gcc -g " LINK " && strip prog && printf 'dir/x\\0\\0\\0abcd' > l && objcopy --add-section .gnu_debuglink=l prog", "l"},
	{"gcc -g " LINK " && strip prog && printf 'name' > l && objcopy --add-section .gnu_debuglink=l prog", "l"},
	{"gcc -g " LINK " && printf 'name' > l && objcopy --add-section .gnu_debugaltlink=l prog", "l"},
	{"gcc -g " LINK " && printf '/usr/lib/debug/.dwz/x\\0abcdefghijklmnopqrst' > l && objcopy --add-section .gnu_debugaltlink=l prog", "l"},
};
/* clang-format on */

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c", source);
	/* Where no compiler is. */
	put("\0\0\0\0\177ELF", 8);
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		if (workspace_try(&w, "%s", seeds[i].command))
			put_both(&w, "prog", seeds[i].with, put);
		workspace_try(&w, "rm -rf prog* other alt two *.o *.dwo");
	}
	workspace_close(&w);
}
