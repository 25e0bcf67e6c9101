/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions from which the kernel cannot walk a stack
 *
 * At a kprobe the kernel unwinds from the byte after the breakpoint. Of an instruction of one byte
 * that is the next one. If the instruction moves the stack pointer, the row of the next one is
 * wrong while it has not run, and the kernel takes another word for the return address. So the code
 * that runs is read before probes are set.
 */
#include "trace/attach/kernel_text.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/vec.h"
#include "elf/elf.h"

enum {
	ENDBR_BYTES = 4,
	READ_BYTES = ENDBR_BYTES + 1,
	SEGMENTS_MAX = 256, /* a kernel has some ten */
	BREAKPOINT = 0xcc,
	JUMP = 0xe9, /* what an optimised probe of others is */
};

struct kcore {
	int fd;
	size_t n;
	Elf64_Phdr segments[SEGMENTS_MAX];
};

/* One that cannot be read has no code. */
static void open_kcore(struct kcore *k, int fd)
{
	Elf64_Ehdr header;
	size_t n;

	k->fd = fd;
	k->n = 0;
	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phentsize != sizeof(Elf64_Phdr))
		return;
	n = header.e_phnum < SEGMENTS_MAX ? header.e_phnum : SEGMENTS_MAX;
	ssize_t got = pread(fd, k->segments, n * sizeof(Elf64_Phdr), (off_t)header.e_phoff);
	k->n = got > 0 ? (size_t)got / sizeof(Elf64_Phdr) : 0;
}

static bool read_kcore(const struct kcore *k, uint64_t at, uint8_t *ret)
{
	for (size_t i = 0; i < k->n; i++) {
		const Elf64_Phdr *s = &k->segments[i];
		uint64_t off = at - s->p_vaddr;
		if (s->p_type == PT_LOAD && off < s->p_filesz && READ_BYTES <= s->p_filesz - off)
			return pread(k->fd, ret, READ_BYTES, (off_t)(s->p_offset + off)) ==
			       READ_BYTES;
	}
	return false;
}

static bool read_file(const struct trace_file *f, struct cairn_vaddr at, uint8_t *ret)
{
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(binary_main(f->bin), at, &code, &n) || n < READ_BYTES)
		return false;
	memcpy(ret, code, READ_BYTES);
	return true;
}

/* Where the probe is: the kernel puts that of a function behind ENDBR. */
static uint8_t probed_byte(const uint8_t *code)
{
	static const uint8_t endbr[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};

	return memcmp(code, endbr, sizeof(endbr)) ? code[0] : code[ENDBR_BYTES];
}

bool kernel_text_moves_stack(const uint8_t *code)
{
	uint8_t byte = probed_byte(code);

	/* push and pop of a register; pushf, popf, ret, leave, lret, iret */
	if (byte >= 0x50 && byte <= 0x5f)
		return true;
	return byte == 0x9c || byte == 0x9d || byte == 0xc3 || byte == 0xc9 || byte == 0xcb ||
	       byte == 0xcf;
}

/* Code that a probe of others has replaced is that of the file. */
static bool moves_stack(const struct kcore *k, const struct trace_file *f,
			const struct trace_site *site)
{
	uint8_t code[READ_BYTES];

	if (read_kcore(k, site->pub.running, code) && probed_byte(code) != BREAKPOINT &&
	    probed_byte(code) != JUMP)
		return kernel_text_moves_stack(code);
	return !read_file(f, site->pub.at, code) || kernel_text_moves_stack(code);
}

void kernel_text_look(struct cairn_trace *t)
{
	SCOPE_CLOSE int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	struct kcore k;

	open_kcore(&k, fd);
	for (size_t i = 0; i < t->sites.n; i++) {
		struct trace_site *site = t->sites.p[i];
		if (!site->pub.refused)
			site->moves_stack =
				moves_stack(&k, t->probes.p[site->pub.probe]->file, site);
	}
}
