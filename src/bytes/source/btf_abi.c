/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/btf_abi.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/scope.h"

/* ---- ELF ---- */

const struct cairn_abi *abi_of_elf_file(const char *path)
{
	uint8_t header[sizeof(Elf64_Ehdr)] = {0};
	struct cursor_src src = {path, "ELF header", header};
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : pread(fd, header, sizeof(header), 0);

	if (n < (ssize_t)sizeof(Elf32_Ehdr) || memcmp(header, ELFMAG, SELFMAG))
		return NULL;
	bool is_64 = header[EI_CLASS] == ELFCLASS64, big = header[EI_DATA] == ELFDATA2MSB;
	struct cursor c = cursor_of(&src, header, (size_t)n, big, NULL);
	cur_skip(&c, offsetof(Elf64_Ehdr, e_machine));
	uint16_t machine = cur_u16(&c);
	size_t flags_at = is_64 ? offsetof(Elf64_Ehdr, e_flags) : offsetof(Elf32_Ehdr, e_flags);
	cur_skip(&c, flags_at - cur_off(&c));
	uint32_t flags = cur_u32(&c);
	return c.failed ? NULL : cairn_abi_of_elf(machine, is_64, big, flags);
}

/* ---- pointers ---- */

static bool is_long(const struct cairn_btf_type *t)
{
	static const char *const names[] = {"long", "long int", "unsigned long",
					    "long unsigned int"};

	for (size_t i = 0; t->kind == CAIRN_BTF_INT && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(t->name, names[i]))
			return t->ref == 4 || t->ref == 8;
	return false;
}

/* 4 when a pointer is followed at that distance by something, or by the end of the struct. */
static bool has_narrow_pointer(const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	struct cairn_btf_type of;

	if (t->kind != CAIRN_BTF_STRUCT)
		return false;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(t, i);
		uint64_t next =
			i + 1 < t->vlen ? cairn_btf_member(t, i + 1).bit_off : 8 * (uint64_t)t->ref;

		if (!m.bit_size && next == m.bit_off + UINT64_C(32) &&
		    cairn_btf_type(btf, m.type, &of) && of.kind == CAIRN_BTF_PTR)
			return true;
	}
	return false;
}

uint8_t btf_pointer_size(const struct cairn_btf *btf)
{
	struct cairn_btf_type t;

	for (uint32_t id = 1; id < cairn_btf_end_id(btf); id++)
		if (cairn_btf_type(btf, id, &t) && is_long(&t))
			return (uint8_t)t.ref;
	for (uint32_t id = 1; id < cairn_btf_end_id(btf); id++)
		if (cairn_btf_type(btf, id, &t) && has_narrow_pointer(btf, &t))
			return 4;
	return 8;
}
