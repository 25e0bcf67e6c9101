/* SPDX-License-Identifier: BSD-2-Clause */
/* Values by their form; the essay is in forms.c. */
#ifndef DWARF_FORMS_H
#define DWARF_FORMS_H

#include "dwarf/impl.h"

struct dw_form_size {
	uint8_t fixed;
	uint8_t then; /* DW_THEN_END: it is @fixed bytes long */
};
struct dw_form_size dw_form_size(uint16_t form, uint8_t addr_size, uint8_t offset_size,
				 uint8_t ref_addr_size);
int dw_form_read(const struct dw_unit *u, struct cursor *c, const struct dw_spec *spec,
		 struct dw_value *ret);
void dw_form_skip(const struct dw_unit *u, struct cursor *c, uint16_t form);
/* String at @off of a string section of @file; NULL and an error when it is not inside. */
const char *dw_section_str(const struct dw_file *file, enum dw_sec sec, uint64_t off,
			   struct cairn_err *err);

#endif
