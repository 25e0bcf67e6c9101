/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of Go programs without call frame information. Within this module only. */
#ifndef CFI_GO_ROWS_H
#define CFI_GO_ROWS_H

#include "cfi/rule.h"
#include "elf/elf.h"

/*
 * go_rows_merge - rows by .gopclntab where nothing else describes the code of a Go program, and
 * where that says that nobody called it
 *
 * @runs, @rules  of all that is described, sorted; replaced
 * @ret_bytes     of code that is described now and was not are added
 * Returns 0, also when the file is none of Go; -ENOMEM.
 */
int go_rows_merge(const struct elf *e, struct rule_runs *runs, struct rule_set *rules,
		  uint64_t *ret_bytes);

#endif
