/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/kcore.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"

static size_t read_at(int fd, void *to, size_t n, uint64_t off)
{
	ssize_t got = fd < 0 || off > INT64_MAX ? -1 : pread(fd, to, n, (off_t)off);

	return got > 0 ? (size_t)got : 0;
}

/* Whether it is a part of memory. */
static bool read_segment(struct cursor *c, struct kcore_segment *ret)
{
	uint32_t type = cur_u32(c);

	cur_skip(c, 4); /* p_flags */
	ret->off = cur_u64(c);
	ret->at = cur_u64(c);
	cur_skip(c, 8); /* p_paddr */
	ret->n_bytes = cur_u64(c);
	cur_skip(c, 16); /* p_memsz, p_align */
	return !c->failed && type == PT_LOAD;
}

static void read_segments(struct kcore *k, uint64_t off, uint16_t n)
{
	uint8_t bytes[KCORE_SEGMENTS_MAX * sizeof(Elf64_Phdr)];
	size_t wanted = n < KCORE_SEGMENTS_MAX ? n : KCORE_SEGMENTS_MAX;
	size_t size = read_at(k->fd, bytes, wanted * sizeof(Elf64_Phdr), off);
	struct cursor_src src = {"/proc/kcore", "program headers", bytes};
	struct cursor c = cursor_of(&src, bytes, size, false, NULL);

	while (cur_left(&c) >= sizeof(Elf64_Phdr))
		k->n += read_segment(&c, &k->segments[k->n]);
}

void kcore_open(struct kcore *k, int fd)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];
	struct cursor_src src = {"/proc/kcore", "header", bytes};

	k->fd = fd;
	k->n = 0;
	if (read_at(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) ||
	    memcmp(bytes, ELFMAG, SELFMAG) || bytes[EI_CLASS] != ELFCLASS64 ||
	    bytes[EI_DATA] != ELFDATA2LSB)
		return;
	struct cursor c = cursor_of(&src, bytes, sizeof(bytes), false, NULL);
	cur_skip(&c, offsetof(Elf64_Ehdr, e_phoff));
	uint64_t off = cur_u64(&c);
	cur_skip(&c, offsetof(Elf64_Ehdr, e_phentsize) - offsetof(Elf64_Ehdr, e_shoff));
	if (cur_u16(&c) == sizeof(Elf64_Phdr))
		read_segments(k, off, cur_u16(&c));
}

bool kcore_read(const struct kcore *k, uint64_t at, void *ret, size_t n)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct kcore_segment *s = &k->segments[i];
		uint64_t off = at - s->at;

		if (off < s->n_bytes && n <= s->n_bytes - off)
			return s->off <= UINT64_MAX - off &&
			       read_at(k->fd, ret, n, s->off + off) == n;
	}
	return false;
}
