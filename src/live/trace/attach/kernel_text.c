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

#include <fcntl.h>
#include <string.h>

#include "base/scope.h"
#include "elf/elf.h"
#include "kernel/kcore.h"

enum {
	ENDBR_BYTES = 4,
	READ_BYTES = ENDBR_BYTES + 1,
	BREAKPOINT = 0xcc,
	JUMP = 0xe9, /* what an optimised probe of others is */
};

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

	if (kcore_read(k, site->pub.running, code, sizeof(code)) &&
	    probed_byte(code) != BREAKPOINT && probed_byte(code) != JUMP)
		return kernel_text_moves_stack(code);
	return !read_file(f, site->pub.at, code) || kernel_text_moves_stack(code);
}

void kernel_text_look(struct cairn_trace *t)
{
	SCOPE_CLOSE int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	struct kcore k;

	kcore_open(&k, fd);
	for (size_t i = 0; i < t->sites.n; i++) {
		struct trace_site *site = t->sites.p[i];
		if (!site->pub.refused)
			site->moves_stack =
				moves_stack(&k, t->probes.p[site->pub.probe]->file, site);
	}
}
