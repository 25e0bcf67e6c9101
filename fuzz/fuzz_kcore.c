/* SPDX-License-Identifier: BSD-2-Clause */
/* The program headers of /proc/kcore, and memory by address. */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kcore.h"

/* Each part at its ends and beyond, against the file itself. */
static void read_around(const struct kcore *k, const struct kcore_segment *s, const uint8_t *bytes,
			size_t size)
{
	const uint64_t at[] = {s->at - 1, s->at, s->at + s->n_bytes - 5, s->at + s->n_bytes - 4};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		uint8_t code[5];
		if (!kcore_read(k, at[i], code, sizeof(code)) || k->n > 1)
			continue;
		uint64_t off = s->off + (at[i] - s->at);
		assert(off < size && size - off >= sizeof(code));
		assert(!memcmp(code, bytes + off, sizeof(code)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct kcore k;
	int fd = memfd_create("kcore", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	kcore_open(&k, fd);
	assert(k.n <= KCORE_SEGMENTS_MAX);
	for (size_t i = 0; i < k.n; i++)
		read_around(&k, &k.segments[i], bytes, size);
	close(fd);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr parts[3];
		uint8_t memory[64];
	} core = {.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 3},
		  .parts = {{.p_type = PT_NOTE},
			    {.p_type = PT_LOAD,
			     .p_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr),
			     .p_vaddr = 0xffffffff81000000,
			     .p_filesz = 64},
			    {.p_type = PT_LOAD,
			     .p_offset = UINT64_MAX - 32,
			     .p_vaddr = UINT64_MAX - 64,
			     .p_filesz = UINT64_MAX}},
		  .memory = "the text of the kernel"};

	put(&core, sizeof(core));
	core.head.e_phnum = 2;
	put(&core, sizeof(core));
}
