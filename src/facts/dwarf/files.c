/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sections of a file: of a debug file, of dwz's alternate file, of a .dwo file or a package of
 * them
 *
 * In a file that was not linked (.o, .dwo) each type unit has a section of its own, so that a
 * linker could drop all copies but one:
 *
 *	.debug_info.dwo    type unit of ns::box<long>
 *	.debug_info.dwo    type unit of std::pair<int, int>
 *	.debug_info.dwo    the compile unit
 *
 * They are joined one after the other, as a linker would do it. No content in them refers to
 * another one by offset.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/impl.h"

/* clang-format off */
static const char *const section_names[DW_N_SECS] = {
	[DW_SEC_INFO] = ".debug_info",	       [DW_SEC_TYPES] = ".debug_types",
	[DW_SEC_ABBREV] = ".debug_abbrev",     [DW_SEC_STR] = ".debug_str",
	[DW_SEC_LINE_STR] = ".debug_line_str", [DW_SEC_STR_OFFSETS] = ".debug_str_offsets",
	[DW_SEC_ADDR] = ".debug_addr",	       [DW_SEC_RANGES] = ".debug_ranges",
	[DW_SEC_RNGLISTS] = ".debug_rnglists", [DW_SEC_LOC] = ".debug_loc",
	[DW_SEC_LOCLISTS] = ".debug_loclists", [DW_SEC_LINE] = ".debug_line",
};
/* clang-format on */

static const char *const split_names[DW_N_SECS] = {
	[DW_SEC_INFO] = ".debug_info.dwo",
	[DW_SEC_TYPES] = ".debug_types.dwo",
	[DW_SEC_ABBREV] = ".debug_abbrev.dwo",
	[DW_SEC_STR] = ".debug_str.dwo",
	[DW_SEC_STR_OFFSETS] = ".debug_str_offsets.dwo",
	[DW_SEC_RNGLISTS] = ".debug_rnglists.dwo",
	[DW_SEC_LOC] = ".debug_loc.dwo",
	[DW_SEC_LOCLISTS] = ".debug_loclists.dwo",
	[DW_SEC_LINE] = ".debug_line.dwo",
};

/* How many sections of that name have bytes; and how many bytes, when @to is there copied to it. */
static int join(struct elf *e, const char *name, uint8_t *to, size_t *ret_n, uint64_t *ret_size,
		struct cairn_err *err)
{
	*ret_n = *ret_size = 0;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (strcmp(s->name, name))
			continue;
		int rc = elf_section_bytes(e, i, &s, err);
		if (rc < 0)
			return rc;
		if (!s->data)
			continue;
		if (to)
			memcpy(to + *ret_size, s->data, s->size);
		*ret_size += s->size;
		++*ret_n;
	}
	return 0;
}

/* Units of a file that was not linked; leaves @s alone when they are in one section. */
static int join_units(struct dw_file *file, enum dw_sec id, const char *name, struct cairn_err *err)
{
	struct dw_section *s = &file->sec[id];
	size_t n;
	uint64_t size;
	int rc = join(file->elf, name, NULL, &n, &size, err);
	if (rc < 0 || n < 2)
		return rc;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return err_nomem(err, "type units");
	file->joined[id == DW_SEC_TYPES] = bytes;
	rc = join(file->elf, name, bytes, &n, &size, err);
	*s = (struct dw_section){.p = bytes, .n = size, .src = s->src};
	s->src.base = bytes;
	return rc;
}

static int find_section(struct dw_file *file, enum dw_sec id, struct cairn_err *err)
{
	static const uint8_t nothing[1];
	struct dw_section *s = &file->sec[id];
	const struct elf_section *found = NULL;
	const char *name = file->is_split ? split_names[id] : section_names[id];
	/* Linked with the binary, and the .dwo file refers to it. */
	if (!name) {
		*s = file->dw->file[0].sec[id];
		return 0;
	}
	int rc = file->elf ? elf_section(file->elf, name, &found, err) : 0;
	if (rc < 0)
		return rc;
	if (!found || !found->data) {
		s->p = nothing;
		s->src = (struct cursor_src){.file = file->path, .section = name, .base = nothing};
		return 0;
	}
	*s = (struct dw_section){.p = found->data, .n = found->size, .src = found->src};
	s->ends_in_nul = s->n && s->p[s->n - 1] == 0;
	bool units = id == DW_SEC_INFO || id == DW_SEC_TYPES;
	return units && elf_is_relocatable(file->elf) ? join_units(file, id, name, err) : 0;
}

int dw_file_init(struct dw_file *file, const struct dwarf *dw, struct elf *elf, bool is_split,
		 struct cairn_err *err)
{
	*file = (struct dw_file){.dw = dw,
				 .elf = elf,
				 .path = elf ? elf_path(elf) : "alternate debug file",
				 .is_split = is_split};
	/* The addresses of a .dwo file were linked with the skeletons. */
	file->relocatable = is_split ? dw->file[0].relocatable : elf && elf_is_relocatable(elf);
	for (int id = 0; id < DW_N_SECS; id++) {
		int rc = find_section(file, (enum dw_sec)id, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int make_ready(void *arg, size_t id, unsigned int worker, struct cairn_err *err)
{
	const struct elf_section *found;
	/* Whoever needs it meets the error again, in the order of sections. */
	elf_section(arg, section_names[id], &found, NULL);
	return 0;
}

void dw_sections_make_ready(struct elf *elf, unsigned int threads)
{
	if (elf)
		pool_run(DW_N_SECS, threads, make_ready, elf, NULL);
}

void dw_file_fini(struct dw_file *file)
{
	free(file->joined[0]);
	free(file->joined[1]);
}
