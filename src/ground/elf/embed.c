/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding sections to a copy
 *
 *	OFFSET  WHAT
 *	0       the file as it was, but for e_shoff and e_shnum in its header
 *	end     the bytes of each new section, at multiples of 8
 *	...     names of sections: the old ones, then those of the new
 *	...     table of sections: the old entries, then the new; the entry of the names points to
 *	        the new names
 *
 * Nothing moves, so that no address, offset or index in the file has to be found and changed. The
 * old names and table remain as dead bytes, as does a section that is replaced.
 *
 * With 65,280 sections and more, e_shnum is 0 and the first entry's sh_size has the number.
 */
#include <cairn/file.h>

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/cursor.h"
#include "base/inputs.h"
#include "base/scope.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "headers are copied as they are");

#define SECTION_ALIGN 8

struct image {
	struct cursor_src src;
	const uint8_t *bytes;
	size_t size;
	bool is_mapped;
	Elf64_Ehdr header;
	Elf64_Shdr *table; /* with room for the new ones */
	size_t n;
	uint32_t names; /* index of the section with the names */
	char *strings;  /* names, with room for the new ones */
	size_t strings_size;
};

static void image_fini(struct image *m)
{
	if (m->is_mapped)
		input_unmap(m->bytes, m->size);
	free(m->table);
	free(m->strings);
}

static struct cursor at(const struct image *m, uint64_t off, struct cairn_err *err)
{
	struct cursor c = cursor_of(&m->src, m->bytes, m->size, false, err);

	cur_skip(&c, off);
	return c;
}

static int map_file(struct image *m, const char *path, mode_t *mode, struct cairn_err *err)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return err_set(err, -EBADMSG, "%s: not an ELF file", path);
	void *bytes = input_map(fd, (size_t)st.st_size, path);

	if (!bytes)
		return err_set(err, -errno, "%s: cannot be mapped: %s", path, strerror(errno));
	m->bytes = bytes;
	m->size = (size_t)st.st_size;
	m->is_mapped = true;
	m->src = (struct cursor_src){.file = path, .section = "ELF file", .base = m->bytes};
	*mode = st.st_mode & 0777;
	return 0;
}

static int read_header(struct image *m, struct cairn_err *err)
{
	struct cursor c = at(m, 0, err);
	const uint8_t *bytes = cur_bytes(&c, sizeof(m->header));

	if (!bytes)
		return -EBADMSG;
	memcpy(&m->header, bytes, sizeof(m->header));
	const Elf64_Ehdr *h = &m->header;

	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return err_set(err, -EBADMSG, "%s: not an ELF file", m->src.file);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -EOPNOTSUPP, "%s: not a 64-bit little-endian ELF file",
			       m->src.file);
	if (!h->e_shoff || h->e_shentsize != sizeof(Elf64_Shdr))
		return err_set(err, -EOPNOTSUPP, "%s: has no table of sections to add to",
			       m->src.file);
	return 0;
}

static int read_table(struct image *m, size_t more, struct cairn_err *err)
{
	struct cursor c = at(m, m->header.e_shoff, err);
	struct cursor first = c;
	const uint8_t *bytes = cur_bytes(&first, sizeof(Elf64_Shdr));
	Elf64_Shdr zero;

	if (!bytes)
		return -EBADMSG;
	memcpy(&zero, bytes, sizeof(zero));
	uint64_t n = m->header.e_shnum ? m->header.e_shnum : zero.sh_size;

	if (!n || n > cur_left(&c) / sizeof(Elf64_Shdr))
		return err_set(err, -EBADMSG,
			       "%s: the table of sections at 0x%llx is outside the file",
			       m->src.file, (unsigned long long)m->header.e_shoff);
	m->table = calloc(n + more, sizeof(*m->table));
	if (!m->table)
		return err_nomem(err, "a table of sections");
	memcpy(m->table, cur_bytes(&c, n * sizeof(Elf64_Shdr)), n * sizeof(Elf64_Shdr));
	m->n = n;
	m->names = m->header.e_shstrndx == SHN_XINDEX ? zero.sh_link : m->header.e_shstrndx;
	if (m->names >= n)
		return err_set(err, -EBADMSG, "%s: no section has the names of sections",
			       m->src.file);
	return 0;
}

static int read_names(struct image *m, size_t more, struct cairn_err *err)
{
	const Elf64_Shdr *names = &m->table[m->names];
	struct cursor c = at(m, names->sh_offset, err);
	const uint8_t *bytes = cur_bytes(&c, names->sh_size);

	if (!bytes)
		return -EBADMSG;
	m->strings = malloc(names->sh_size + 1 + more);
	if (!m->strings)
		return err_nomem(err, "names of sections");
	memcpy(m->strings, bytes, names->sh_size);
	m->strings_size = names->sh_size;
	/* So that the last name has an end, whatever was there. */
	m->strings[m->strings_size++] = '\0';
	return 0;
}

static Elf64_Shdr *find_section(struct image *m, const char *name)
{
	for (size_t i = 1; i < m->n; i++)
		if (m->table[i].sh_name < m->strings_size &&
		    !strcmp(m->strings + m->table[i].sh_name, name))
			return &m->table[i];
	return NULL;
}

/* The entry that is to point to the new bytes. */
static int take_entry(struct image *m, const struct cairn_embed_section *s, Elf64_Shdr **ret,
		      struct cairn_err *err)
{
	Elf64_Shdr *entry = find_section(m, s->name);
	uint32_t name = (uint32_t)m->strings_size;
	size_t len = strlen(s->name) + 1;

	if (entry && (entry->sh_flags & SHF_ALLOC))
		return err_set(err, -EEXIST,
			       "%s: %s is part of a loaded segment, and cannot be replaced",
			       m->src.file, s->name);
	if (!entry) {
		entry = &m->table[m->n++];
		memcpy(m->strings + m->strings_size, s->name, len);
		m->strings_size += len;
	} else {
		name = entry->sh_name;
	}
	*entry = (Elf64_Shdr){.sh_name = name,
			      .sh_type = SHT_PROGBITS,
			      .sh_size = s->size,
			      .sh_addralign = SECTION_ALIGN};
	*ret = entry;
	return 0;
}

static uint64_t aligned(uint64_t off)
{
	return (off + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
}

/* Plans the positions of all new parts. */
static int plan(struct image *m, const struct cairn_embed_section *sections, size_t n,
		struct cairn_err *err)
{
	uint64_t end = m->size;

	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr *entry = NULL;
		int r = take_entry(m, &sections[i], &entry, err);

		if (r < 0)
			return r;
		entry->sh_offset = aligned(end);
		end = entry->sh_offset + sections[i].size;
	}
	m->table[m->names].sh_offset = end;
	m->table[m->names].sh_size = m->strings_size;
	m->header.e_shoff = aligned(end + m->strings_size);
	m->header.e_shnum = m->n < SHN_LORESERVE ? (Elf64_Half)m->n : 0;
	m->table[0].sh_size = m->n < SHN_LORESERVE ? 0 : m->n;
	return 0;
}

static int pad(struct atomic_file *f, uint64_t from, struct cairn_err *err)
{
	static const char zeros[SECTION_ALIGN];

	return atomic_file_write(f, zeros, aligned(from) - from, err);
}

static int write_all(struct atomic_file *f, const struct image *m,
		     const struct cairn_embed_section *sections, size_t n, struct cairn_err *err)
{
	uint64_t end = m->size;
	int r = atomic_file_write(f, &m->header, sizeof(m->header), err);

	if (r == 0)
		r = atomic_file_write(f, m->bytes + sizeof(m->header), m->size - sizeof(m->header),
				      err);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = pad(f, end, err);
		if (r == 0)
			r = atomic_file_write(f, sections[i].bytes, sections[i].size, err);
		end = aligned(end) + sections[i].size;
	}
	if (r == 0)
		r = atomic_file_write(f, m->strings, m->strings_size, err);
	if (r == 0)
		r = pad(f, end + m->strings_size, err);
	return r < 0 ? r : atomic_file_write(f, m->table, m->n * sizeof(*m->table), err);
}

static int embed(struct image *m, const char *out, mode_t mode,
		 const struct cairn_embed_section *sections, size_t n, struct cairn_err *err)
{
	struct atomic_file f;
	size_t names_size = 0;

	for (size_t i = 0; i < n; i++)
		names_size += strlen(sections[i].name) + 1;
	int r = read_header(m, err);
	if (r == 0)
		r = read_table(m, n, err);
	if (r == 0)
		r = read_names(m, names_size, err);
	if (r == 0)
		r = plan(m, sections, n, err);
	if (r == 0)
		r = atomic_file_open(&f, out, mode, err);
	if (r < 0)
		return r;
	r = write_all(&f, m, sections, n, err);
	if (r == 0)
		r = input_check(m->is_mapped ? input_shortened(m->bytes) : NULL, err);
	if (r == 0)
		return atomic_file_commit(&f, err);
	atomic_file_abort(&f);
	return r;
}

int cairn_embed(const char *path, const char *out, const struct cairn_embed_section *sections,
		size_t n, struct cairn_err *err)
{
	struct image m = {0};
	mode_t mode = 0;
	int r = map_file(&m, path, &mode, err);

	if (r == 0)
		r = embed(&m, out, mode, sections, n, err);
	image_fini(&m);
	return r;
}

/* The smallest file that sections can be added to: it has a table of sections, and their names. */
struct skeleton {
	Elf64_Ehdr header;
	char names[16];
	Elf64_Shdr table[2];
};

static struct skeleton skeleton_of(uint16_t machine)
{
	static const char names[] = "\0.shstrtab";
	struct skeleton s = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = machine,
			   .e_version = EV_CURRENT,
			   .e_shoff = offsetof(struct skeleton, table),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 2,
			   .e_shstrndx = 1},
		.table = {{0},
			  {.sh_name = 1,
			   .sh_type = SHT_STRTAB,
			   .sh_offset = offsetof(struct skeleton, names),
			   .sh_size = sizeof(names),
			   .sh_addralign = 1}},
	};
	memcpy(s.names, names, sizeof(names));
	return s;
}

int cairn_embed_alone(uint16_t machine, const char *out, const struct cairn_embed_section *sections,
		      size_t n, struct cairn_err *err)
{
	struct skeleton skeleton = skeleton_of(machine);
	struct image m = {.bytes = (const uint8_t *)&skeleton, .size = sizeof(skeleton)};

	m.src = (struct cursor_src){.file = out, .section = "ELF file", .base = m.bytes};
	int r = embed(&m, out, 0644, sections, n, err);
	image_fini(&m);
	return r;
}
