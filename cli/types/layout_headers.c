/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of another machine, where none are installed
 *
 * <stdint.h> and <linux/types.h> are the same text everywhere, but they include the machine's
 * files: bits/ and asm/. Those of another ABI are seldom installed, and clang --target=... does not
 * search this machine's. So the directories of both are searched last, after Clang's own, and a
 * note reports that this machine's were read.
 *
 * The headers of x86-64, i386 and x32 are one set of files, in which #if tells which one it is, and
 * BPF programs are compiled with those of the machine that runs them. Only the lists of functions
 * that a libc lacks (gnu/stubs-32.h) are missing there. They do not matter here, so there is an
 * empty one. For other machines, sizes of long are corrected; structs that these headers declare by
 * #if of the machine (struct stat, ucontext_t) stay as they are here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler.h"
#include "layout_headers.h"

#define HERE "/usr/include/x86_64-linux-gnu"

/* The folders first. */
static const struct {
	const char *name, *text; /* NULL: a folder */
	bool for_others;         /* not for machines that HERE serves */
} files[] = {
	{"gnu", NULL, false},
	{"gnu/stubs.h", "", false},
	{"gnu/stubs-32.h", "", false},
	{"gnu/stubs-x32.h", "", false},
	{"bits", NULL, true},
	{"bits/wordsize.h",
	 "#ifdef __LP64__\n#define __WORDSIZE 64\n#else\n#define __WORDSIZE 32\n#define "
	 "__WORDSIZE32_SIZE_ULONG 0\n"
	 "#define __WORDSIZE32_PTRDIFF_LONG 0\n#endif\n#define __WORDSIZE_TIME64_COMPAT32 0\n",
	 true},
	{"asm", NULL, true},
	{"asm/bitsperlong.h",
	 "#ifdef __LP64__\n#define __BITS_PER_LONG 64\n#else\n#define __BITS_PER_LONG 32\n#endif\n"
	 "#include <asm-generic/bitsperlong.h>\n",
	 true},
};

enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static bool is_x86(const struct cairn_abi *abi)
{
	return !strcmp(abi->name, "i386") || !strcmp(abi->name, "x32") ||
	       !strcmp(abi->name, "x86-64");
}

static bool is_bpf(const struct cairn_abi *abi)
{
	return !strcmp(abi->name, "bpf") || !strcmp(abi->name, "bpfeb");
}

static int write_one(const char *folder, size_t i)
{
	char path[64];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
	if (!files[i].text)
		return mkdir(path, 0700);
	out = fopen(path, "wxe");
	if (!out)
		return -1;
	fputs(files[i].text, out);
	return fclose(out);
}

int layout_headers_open(struct layout_headers *h, const struct cairn_abi *abi)
{
	*h = (struct layout_headers){.abi = abi};
	/* Windows has no headers in common with these. */
	if (!strcmp(abi->name, "x86-64") || abi->ms)
		return STATUS_YES;
	strcpy(h->folder, "/tmp/cairn-headers-XXXXXX");
	if (!mkdtemp(h->folder)) {
		h->folder[0] = 0;
		return fail(STATUS_NOT_HERE, "cannot write /tmp: %m");
	}
	for (size_t i = 0; i < N_FILES; i++)
		if ((!files[i].for_others || !(is_x86(abi) || is_bpf(abi))) &&
		    write_one(h->folder, i) < 0)
			return fail(STATUS_NOT_HERE, "cannot write %s: %m", h->folder);
	return STATUS_YES;
}

void layout_headers_close(struct layout_headers *h)
{
	char path[64];

	if (!h->folder[0])
		return;
	for (size_t i = N_FILES; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", h->folder, files[i].name);
		if (files[i].text)
			unlink(path);
		else
			rmdir(path);
	}
	rmdir(h->folder);
	h->folder[0] = 0;
}

void layout_headers_words(const struct layout_headers *h, struct compiler_words *w)
{
	char own[128];

	if (!h->folder[0])
		return;
	/* The directory in which distributions install headers to compile for another machine. */
	snprintf(own, sizeof(own), "/usr/%s/include", h->abi->triple);
	if (!access(own, R_OK))
		compiler_word(w, "-idirafter", own);
	compiler_word(w, "-idirafter", h->folder);
	compiler_word(w, "-idirafter", HERE);
}

void layout_headers_tell(const struct layout_headers *h, const char *path, const char *text,
			 size_t size)
{
	const char *why = "as none of its own are installed: declarations that differ between "
			  "machines are as on x86-64";

	if (!h->folder[0] || !memmem(text, size, HERE "/", sizeof(HERE)))
		return;
	if (is_x86(h->abi))
		why = "which serve that ABI, too";
	else if (is_bpf(h->abi))
		why = "which BPF programs for this machine are compiled with";
	fail(STATUS_YES, "note: for %s, %s includes headers of this machine (%s), %s", h->abi->name,
	     path, HERE, why);
}
