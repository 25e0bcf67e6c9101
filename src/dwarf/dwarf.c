/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening: which sections there are, in which file
 *
 * A binary's debug file may have dwz's alternate file beside it. Both become a struct dw_file; only the
 * alternate's .debug_info is walked (dwz puts nothing else there).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/impl.h"

static const char *const section_names[DW_N_SECS] = {
	[DW_SEC_INFO] = ".debug_info",	       [DW_SEC_TYPES] = ".debug_types",
	[DW_SEC_ABBREV] = ".debug_abbrev",     [DW_SEC_STR] = ".debug_str",
	[DW_SEC_LINE_STR] = ".debug_line_str", [DW_SEC_STR_OFFSETS] = ".debug_str_offsets",
	[DW_SEC_ADDR] = ".debug_addr",	       [DW_SEC_RANGES] = ".debug_ranges",
	[DW_SEC_RNGLISTS] = ".debug_rnglists", [DW_SEC_LOC] = ".debug_loc",
	[DW_SEC_LOCLISTS] = ".debug_loclists", [DW_SEC_LINE] = ".debug_line",
};

static int find_section(struct dw_file *file, enum dw_sec id, struct cairn_err *err)
{
	static const uint8_t nothing[1];
	struct dw_section *s = &file->sec[id];
	const struct elf_section *found = NULL;
	int rc = file->elf ? elf_section(file->elf, section_names[id], &found, err) : 0;
	if (rc < 0)
		return rc;
	if (found && found->data) {
		*s = (struct dw_section){.p = found->data, .n = found->size, .src = found->src};
		s->ends_in_nul = s->n && s->p[s->n - 1] == 0;
		return 0;
	}
	s->p = nothing;
	s->src = (struct cursor_src){
		.file = file->path, .section = section_names[id], .base = nothing};
	return 0;
}

static int file_init(struct dwarf *dw, struct dw_file *file, struct elf *elf, dw_off tag,
		     struct cairn_err *err)
{
	file->dw = dw;
	file->elf = elf;
	file->path = elf ? elf_path(elf) : "alternate debug file";
	file->tag = tag;
	file->relocatable = elf && elf_is_relocatable(elf);
	for (int id = 0; id < DW_N_SECS; id++) {
		int rc = find_section(file, (enum dw_sec)id, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int open_files(struct dwarf *dw, struct cairn_err *err)
{
	struct elf *debug = binary_debug(dw->bin), *alt = binary_alt(dw->bin);
	int rc = file_init(dw, &dw->file[0], debug, 0, err);
	if (rc >= 0)
		rc = file_init(dw, &dw->file[1], alt, DW_OFF_ALT, err);
	if (rc < 0)
		return rc;
	if (alt)
		dw->file[0].alt = &dw->file[1];
	if (dw->file[0].sec[DW_SEC_INFO].n)
		return 0;
	return err_set(err, -ENODATA, "%s: no DWARF debug information\n%s",
		       cairn_binary_path(dw->bin), cairn_binary_search_log(dw->bin));
}

int dwarf_open(const struct cairn_binary *bin, unsigned int threads, struct dwarf **ret,
	       struct cairn_err *err)
{
	struct dwarf *dw = calloc(1, sizeof(*dw));
	if (!dw)
		return err_nomem(err, "debug information");
	dw->bin = bin;
	map_init(&dw->signatures);
	int rc = open_files(dw, err);
	if (rc >= 0)
		rc = dw_units_read(dw, threads, err);
	if (rc < 0) {
		dwarf_close(dw);
		return rc;
	}
	*ret = dw;
	return 0;
}

void dwarf_close(struct dwarf *dw)
{
	if (!dw)
		return;
	for (size_t i = 0; i < dw->n_units; i++) {
		dw_files_free(atomic_load(&dw->units[i].files));
		dw_rows_free(atomic_load(&dw->units[i].rows));
	}
	for (size_t i = 0; i < dw->n_tables; i++)
		dw_abbrevs_fini(&dw->tables[i]);
	free(dw->tables);
	free(dw->units);
	map_fini(&dw->signatures);
	free(dw);
}

const struct cairn_binary *dwarf_binary(const struct dwarf *dw)
{
	return dw->bin;
}
