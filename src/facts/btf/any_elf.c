/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF in ELF files of other machines
 *
 * src/ground/elf knows machines whose code is read here. BTF is the same on all of them, and BPF
 * programs are a machine of their own. So if src/ground/elf declines, libelf finds the section, of
 * either class and byte order. The bytes are copied: the file does not stay open.
 */
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "btf/any_elf.h"

static Elf_Scn *find(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings) < 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		const char *found = gelf_getshdr(scn, &header)
					    ? elf_strptr(elf, strings, header.sh_name)
					    : NULL;

		if (found && !strcmp(found, name))
			return scn;
	}
	return NULL;
}

/* Anonymous memory, so that the blob's owner frees its bytes in one way only. */
static int copy(struct cairn_btf *btf, const Elf_Data *data, struct cairn_err *err)
{
	void *map = mmap(NULL, data->d_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		return err_nomem(err, "BTF");
	memcpy(map, data->d_buf, data->d_size);
	btf->map = map;
	btf->map_size = data->d_size;
	return 0;
}

int btf_read_any_elf(struct cairn_btf *btf, int fd, const char *const *names, const char **ret_name,
		     struct cairn_err *err)
{
	Elf_Scn *scn = NULL;
	int rc = -ENODATA;

	elf_version(EV_CURRENT);
	/* The numbers of libelf's errors are not public. */
	errno = 0;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		bool no_memory = !elf && errno == ENOMEM;

		elf_end(elf);
		return no_memory ? err_nomem(err, "an ELF file")
				 : err_set(err, -EBADMSG, "%s: a damaged ELF file", btf->name);
	}
	for (*ret_name = *names; *ret_name && !(scn = find(elf, *ret_name)); *ret_name = *++names)
		;
	const Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	if (data && data->d_buf && data->d_size)
		rc = copy(btf, data, err);
	else if (!data && errno == ENOMEM)
		rc = err_nomem(err, "BTF");
	else
		err_set(err, -ENODATA, "%s: has no BTF", btf->name);
	elf_end(elf);
	return rc;
}
