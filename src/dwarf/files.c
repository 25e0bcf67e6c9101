/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of a file: of a debug file, of dwz's alternate file, of a .dwo file or a package of them. */
#include "dwarf/impl.h"

static const char *const section_names[DW_N_SECS] = {
	[DW_SEC_INFO] = ".debug_info",	       [DW_SEC_TYPES] = ".debug_types",
	[DW_SEC_ABBREV] = ".debug_abbrev",     [DW_SEC_STR] = ".debug_str",
	[DW_SEC_LINE_STR] = ".debug_line_str", [DW_SEC_STR_OFFSETS] = ".debug_str_offsets",
	[DW_SEC_ADDR] = ".debug_addr",	       [DW_SEC_RANGES] = ".debug_ranges",
	[DW_SEC_RNGLISTS] = ".debug_rnglists", [DW_SEC_LOC] = ".debug_loc",
	[DW_SEC_LOCLISTS] = ".debug_loclists", [DW_SEC_LINE] = ".debug_line",
};

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
	if (found && found->data) {
		*s = (struct dw_section){.p = found->data, .n = found->size, .src = found->src};
		s->ends_in_nul = s->n && s->p[s->n - 1] == 0;
		return 0;
	}
	s->p = nothing;
	s->src = (struct cursor_src){.file = file->path, .section = name, .base = nothing};
	return 0;
}

int dw_file_init(struct dw_file *file, const struct dwarf *dw, struct elf *elf, bool is_split,
		 struct cairn_err *err)
{
	*file = (struct dw_file){.dw = dw,
				 .elf = elf,
				 .path = elf ? elf_path(elf) : "alternate debug file",
				 .is_split = is_split};
	/* What a .dwo file has addresses of was linked with the skeletons. */
	file->relocatable = is_split ? dw->file[0].relocatable : elf && elf_is_relocatable(elf);
	for (int id = 0; id < DW_N_SECS; id++) {
		int rc = find_section(file, (enum dw_sec)id, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
