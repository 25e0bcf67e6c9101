/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build-id note
 *
 * A note section is a row of notes. Name and description are each padded to 4 bytes:
 *
 *	OFFSET  SIZE  MEANING           bytes of a build-id note
 *	0       4     length of name    04 00 00 00
 *	4       4     length of desc    14 00 00 00
 *	8       4     type              03 00 00 00   NT_GNU_BUILD_ID
 *	12      4     name              47 4e 55 00   "GNU"
 *	16      20    desc              the build-id: any length, 20 with GNU ld's default (SHA-1)
 *
 * In sections of alignment 8 (.note.gnu.property) the padding is to 8. Sections are looked at
 * rather than PT_NOTE segments, because the latter's offsets are wrong in a separate debug file.
 */
#include "elf/note.h"

#include <elf.h>
#include <errno.h>

#include "elf/section_raw.h"

/*
 * Linkers write 8, 16 or 20 bytes, or the bytes of --build-id=0x...; file names of 255 set the
 * limit.
 */
#define MAX_BUILD_ID 120

static void skip_padding(struct cursor *c, uint64_t len, uint64_t align)
{
	uint64_t pad = (align - len % align) % align;
	if (pad <= cur_left(c)) /* the last note of a section may go without */
		cur_skip(c, pad);
}

/* True when a build-id was found; damage ends the search, as other notes are not our business. */
static bool search_notes(struct cursor c, uint64_t align, const uint8_t **ret, size_t *ret_len)
{
	while (cur_left(&c) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_len = cur_u32(&c);
		uint32_t desc_len = cur_u32(&c);
		uint32_t type = cur_u32(&c);
		const uint8_t *name = cur_bytes(&c, name_len);
		skip_padding(&c, sizeof(Elf64_Nhdr) + (uint64_t)name_len, align);
		const uint8_t *desc = cur_bytes(&c, desc_len);
		skip_padding(&c, desc_len, align);
		if (c.failed)
			return false;
		if (type != NT_GNU_BUILD_ID || name_len != 4 || memcmp(name, "GNU", 4))
			continue;
		if (!desc_len || desc_len > MAX_BUILD_ID)
			return false;
		*ret = desc;
		*ret_len = desc_len;
		return true;
	}
	return false;
}

bool elf_notes_build_id(const uint8_t *notes, size_t size, const uint8_t **ret, size_t *ret_len)
{
	const struct cursor_src src = {"notes", "notes", notes};
	return search_notes(cursor_of(&src, notes, size, false, NULL), 4, ret, ret_len);
}

int elf_find_build_id(struct elf *e, struct cairn_err *err)
{
	for (size_t i = 1; i < e->n_sections; i++) {
		const struct section *s = &e->sections[i];
		const uint8_t *bytes;
		if (s->file.type != SHT_NOTE || (s->file.flags & SHF_COMPRESSED))
			continue;
		int r = section_raw(e, i, &bytes, err);
		if (r < 0)
			return r;
		struct cursor_src src = {e->path, s->file.name, bytes};
		struct cursor c = cursor_of(&src, bytes, bytes ? s->file_size : 0, false, NULL);
		if (search_notes(c, s->align == 8 ? 8 : 4, &e->build_id, &e->build_id_len))
			return 0;
	}
	return 0;
}
