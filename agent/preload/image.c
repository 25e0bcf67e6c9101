/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Most of it is in the program headers, which are mapped. The debug link is not: it is a section
 * without an address, so its file is opened. A file that was replaced since it was loaded, or a
 * name that means another file by now, would give the link of something else; so its ELF header has
 * to be the one in memory, and its build-id too.
 */
#include "image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef PT_GNU_SFRAME
#define PT_GNU_SFRAME 0x6474e554
#endif

enum {
	SECTIONS_MAX = 4096, /* looked at; the debug link is in the last ones of a few dozen */
	SECTIONS_AT_ONCE = 32,
};

static const void *pointer(uint64_t at)
{
	return (const void *)(uintptr_t)at;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- in memory ---- */

/* @align: of names and descriptions; that of the segment, where a property note is in it. */
static void find_build_id(struct image *image, uint64_t at, uint64_t end, uint64_t align)
{
	while (end - at >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = pointer(at);
		uint64_t name = at + sizeof(*note),
			 text = at + round_up(sizeof(*note) + note->n_namesz, align);
		uint64_t next = text + round_up(note->n_descsz, align);
		if (next > end)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(pointer(name), "GNU", 4)) {
			image->build_id = text;
			image->build_id_bytes = note->n_descsz;
			return;
		}
		at = next;
	}
}

static void take_header(struct image *image, const ElfW(Phdr) *h)
{
	uint64_t lo = image->base + h->p_vaddr, hi = lo + h->p_memsz;
	switch (h->p_type) {
	case PT_LOAD:
		image->lo = lo < image->lo ? lo : image->lo;
		image->hi = hi > image->hi ? hi : image->hi;
		break;
	case PT_NOTE:
		if (!image->build_id)
			find_build_id(image, lo, hi, h->p_align == 8 ? 8 : 4);
		break;
	case PT_GNU_EH_FRAME:
		image->eh_frame_hdr = lo;
		image->eh_frame_hdr_end = hi;
		break;
	case PT_GNU_SFRAME:
		image->sframe = lo;
		image->sframe_end = hi;
		break;
	default:
		break;
	}
}

bool image_of(const struct dl_phdr_info *info, struct image *ret)
{
	struct image image = {.base = info->dlpi_addr,
			      .lo = UINT64_MAX,
			      .headers = info->dlpi_phdr,
			      .n_headers = info->dlpi_phnum};
	for (size_t i = 0; i < image.n_headers; i++)
		take_header(&image, &image.headers[i]);
	*ret = image;
	return image.lo < image.hi;
}

/* ---- in the file ---- */

static bool read_at(int fd, void *to, size_t n, uint64_t off)
{
	return pread(fd, to, n, (off_t)off) == (ssize_t)n;
}

/* The address at which the byte at @off of the file is mapped; 0: none. */
static uint64_t address_of(const struct image *image, uint64_t off, size_t n)
{
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *h = &image->headers[i];
		if (h->p_type == PT_LOAD && off >= h->p_offset &&
		    off + n <= h->p_offset + h->p_filesz)
			return image->base + h->p_vaddr + (off - h->p_offset);
	}
	return 0;
}

/* The file's bytes at the build-id's offset equal those in memory. */
static bool has_build_id(const struct image *image, int fd)
{
	uint8_t bytes[64];
	size_t n = image->build_id_bytes < sizeof(bytes) ? image->build_id_bytes : sizeof(bytes);
	for (size_t i = 0; image->build_id && i < image->n_headers; i++) {
		const ElfW(Phdr) *h = &image->headers[i];
		uint64_t lo = image->base + h->p_vaddr;
		if (h->p_type == PT_NOTE && image->build_id >= lo &&
		    image->build_id + n <= lo + h->p_filesz)
			return read_at(fd, bytes, n, h->p_offset + (image->build_id - lo)) &&
			       !memcmp(bytes, pointer(image->build_id), n);
	}
	return true;
}

static bool is_loaded_file(const struct image *image, int fd, const ElfW(Ehdr) *file)
{
	uint64_t at = address_of(image, 0, sizeof(*file));
	return at && !memcmp(pointer(at), file, sizeof(*file)) && has_build_id(image, fd);
}

/* Name, NUL, filled up to a multiple of 4, then the checksum. */
static void take_debug_link(int fd, const ElfW(Shdr) *s, struct image_file *ret)
{
	char bytes[IMAGE_LINK_MAX + 8];
	if (s->sh_size < 8 || s->sh_size > sizeof(bytes) ||
	    !read_at(fd, bytes, s->sh_size, s->sh_offset))
		return;
	size_t n = strnlen(bytes, s->sh_size), crc = round_up(n + 1, 4);
	if (!n || n >= IMAGE_LINK_MAX || crc + 4 > s->sh_size)
		return;
	memcpy(ret->debug_link, bytes, n + 1);
	memcpy(&ret->debug_link_crc, bytes + crc, 4);
}

static void find_debug_link(int fd, const ElfW(Ehdr) *file, struct image_file *ret)
{
	static const char wanted[] = ".gnu_debuglink";
	ElfW(Shdr) names, sections[SECTIONS_AT_ONCE];
	char name[sizeof(wanted)];
	size_t n = file->e_shnum < SECTIONS_MAX ? file->e_shnum : SECTIONS_MAX;
	if (file->e_shentsize != sizeof(names) || file->e_shstrndx >= file->e_shnum ||
	    !read_at(fd, &names, sizeof(names), file->e_shoff + file->e_shstrndx * sizeof(names)))
		return;
	for (size_t i = 0; i < n; i++) {
		size_t in_part = i % SECTIONS_AT_ONCE, left = n - i;
		if (!in_part && !read_at(fd, sections,
					 (left < SECTIONS_AT_ONCE ? left : SECTIONS_AT_ONCE) *
						 sizeof(*sections),
					 file->e_shoff + i * sizeof(*sections)))
			return;
		const ElfW(Shdr) *s = &sections[in_part];
		if (s->sh_type != SHT_PROGBITS || s->sh_flags & SHF_ALLOC ||
		    s->sh_size > IMAGE_LINK_MAX + 8)
			continue;
		if (read_at(fd, name, sizeof(name), names.sh_offset + s->sh_name) &&
		    !memcmp(name, wanted, sizeof(name)))
			return take_debug_link(fd, s, ret);
	}
}

/* False when it has none, as the vDSO. */
static bool find_path(const struct image *image, const char *name, char *ret)
{
	if (image->lo <= getauxval(AT_SYSINFO_EHDR) && getauxval(AT_SYSINFO_EHDR) < image->hi)
		return false;
	if (!*name) {
		ssize_t n = readlink("/proc/self/exe", ret, IMAGE_PATH_MAX - 1);
		ret[n < 0 ? 0 : n] = 0;
		return n > 0;
	}
	size_t n = 0, n_name = strlen(name);
	if (*name != '/') {
		if (!getcwd(ret, IMAGE_PATH_MAX - 1))
			return false;
		n = strlen(ret);
		ret[n++] = '/';
	}
	if (n + n_name >= IMAGE_PATH_MAX)
		return false;
	memcpy(ret + n, name, n_name + 1);
	return true;
}

void image_file(const struct image *image, const char *name, struct image_file *ret)
{
	ElfW(Ehdr) file;
	ret->path[0] = ret->debug_link[0] = 0;
	ret->debug_link_crc = 0;
	if (!find_path(image, name, ret->path)) {
		ret->path[0] = 0;
		return;
	}
	int fd = open(ret->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return; /* the file was deleted: the name is unchanged */
	if (read_at(fd, &file, sizeof(file), 0) && is_loaded_file(image, fd, &file))
		find_debug_link(fd, &file, ret);
	else
		ret->path[0] = 0;
	close(fd);
}
