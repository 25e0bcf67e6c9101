/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing
 *
 * A binary's debug file may have dwz's alternate file beside it. Both become a struct dw_file; only
 * the alternate's .debug_info is walked (dwz puts nothing else there). .dwo files are found later,
 * by the names in the units.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/impl.h"

static int open_files(struct dwarf *dw, unsigned int threads, struct cairn_err *err)
{
	struct elf *debug = binary_debug(dw->bin), *alt = binary_alt(dw->bin);
	dw_sections_make_ready(debug, threads);
	int rc = dw_file_init(&dw->file[0], dw, debug, false, err);
	if (rc >= 0)
		rc = dw_file_init(&dw->file[1], dw, alt, false, err);
	if (rc < 0)
		return rc;
	dw->file[1].tag = DW_OFF_ALT;
	if (alt)
		dw->file[0].alt = &dw->file[1];
	if (dw->file[0].sec[DW_SEC_INFO].n)
		return 0;
	return err_lines(err, -ENODATA, cairn_binary_search_log(dw->bin),
			 "%s: no DWARF debug information", cairn_binary_path(dw->bin));
}

int dwarf_open(const struct cairn_binary *bin, unsigned int threads, struct dwarf **ret,
	       struct cairn_err *err)
{
	struct dwarf *dw = calloc(1, sizeof(*dw));
	if (!dw)
		return err_nomem(err, "debug information");
	dw->bin = bin;
	dw->threads = threads;
	map_init(&dw->signatures);
	int rc = open_files(dw, threads, err);
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
		dw_positions_free(atomic_load(&dw->units[i].positions));
		dw_scope_list_free(atomic_load(&dw->units[i].scopes));
	}
	dw_tables_fini(&dw->tables);
	dw_tables_fini(&dw->split_tables);
	dw_split_fini(&dw->split);
	dw_file_fini(&dw->file[0]);
	dw_file_fini(&dw->file[1]);
	free(dw->units);
	map_fini(&dw->signatures);
	free(dw);
}

void dwarf_release(const struct dwarf *dw)
{
	enum { STRINGS = 1 << DW_SEC_STR | 1 << DW_SEC_LINE_STR };
	const struct dw_file *file = &dw->file[0];
	for (int id = 0; file->elf && id < DW_N_SECS; id++)
		if (!(STRINGS >> id & 1))
			elf_release(file->elf, file->sec[id].p, file->sec[id].n);
}

const struct cairn_binary *dwarf_binary(const struct dwarf *dw)
{
	return dw->bin;
}
