/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sidecar as an unmodified debuginfod serves it
 *
 * debuginfod(8) finds files by their build-id, and serves one executable and one debug file for
 * each build-id. A sidecar under the id of its binary is not found, or hides the real debug file.
 * So it travels inside its own debug file, whose id is derived from the real one and which no other
 * tool requests:
 *
 *	.note.gnu.build-id  93ac61ec...28a40 636169726e 01: the real id, "cairn", format version
 *	.debug_cairn        the sidecar, whole: an ELF file in a section; its note has the real id
 *
 * The name of the section makes the file a debug file in the eyes of debuginfod. A server may have
 * sidecars of several versions of the format; readers ask for theirs.
 */
#include "sidecar/wrap.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include <cairn/sidecar.h>

#include "sidecar/elf_out.h"
#include "sidecar/sidecar_impl.h"

static const uint8_t suffix[] = WRAP_ID_SUFFIX;

size_t cairn_sidecar_served_id(const uint8_t *build_id, size_t len, uint8_t *ret)
{
	if (!len || len > CAIRN_SIDECAR_SERVED_ID_MAX - sizeof(suffix))
		return 0;
	memcpy(ret, build_id, len);
	memcpy(ret + len, suffix, sizeof(suffix));
	return len + sizeof(suffix);
}

static size_t make_note(const uint8_t *id, size_t len, uint8_t *ret)
{
	Elf64_Nhdr h = {.n_namesz = sizeof(ELF_NOTE_GNU),
			.n_descsz = (Elf64_Word)len,
			.n_type = NT_GNU_BUILD_ID};
	memset(ret, 0, SIDECAR_NOTE_MAX);
	memcpy(ret, &h, sizeof(h));
	memcpy(ret + sizeof(h), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU));
	memcpy(ret + sizeof(h) + sizeof(ELF_NOTE_GNU), id, len);
	return (sizeof(h) + sizeof(ELF_NOTE_GNU) + len + 3) & ~(size_t)3;
}

/*
 * Length of the id of a sidecar's wrapper in @ret; negative: as cairn_sidecar_open_mem(), or
 * -EINVAL.
 */
static int derive_id(const void *bytes, size_t size, const char *name, uint8_t *ret,
		     struct cairn_err *err)
{
	struct cairn_sidecar *sidecar;
	size_t len;
	int rc = cairn_sidecar_open_mem(bytes, size, name, NULL, &sidecar, err);
	if (rc < 0)
		return rc;
	const uint8_t *real = cairn_sidecar_build_id(sidecar, &len);
	len = cairn_sidecar_served_id(real, len, ret);
	cairn_sidecar_close(sidecar);
	return len ? (int)len
		   : err_set(err, -EINVAL, "%s: no build-id that a server could know it by", name);
}

int cairn_sidecar_wrap(const void *bytes, size_t size, const char *name, void **ret,
		       size_t *ret_size, struct cairn_err *err)
{
	uint8_t id[CAIRN_SIDECAR_SERVED_ID_MAX], note[SIDECAR_NOTE_MAX], *file;
	int len = derive_id(bytes, size, name, id, err);
	if (len < 0)
		return len;
	struct out_section sections[] = {
		{".note.gnu.build-id", SHT_NOTE, note, make_note(id, (size_t)len, note)},
		{WRAP_SECTION, SHT_PROGBITS, bytes, size},
	};
	int rc = elf_out_make(sections, sizeof(sections) / sizeof(sections[0]), &file, ret_size,
			      err);
	if (rc >= 0)
		*ret = file;
	return rc;
}
