/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of Go programs without call frame information. Within this module only. */
#ifndef CFI_GO_ROWS_H
#define CFI_GO_ROWS_H

#include "cfi/rule.h"
#include "elf/elf.h"

/*
 * go_rows_merge - add rows by .gopclntab for code of a Go program that is undescribed, and for
 * functions that .gopclntab marks as not called
 *
 * @runs, @rules  all of the existing ones, sorted; replaced
 * @ret_bytes     the bytes of code that gain a description are added
 * Returns 0, also if the file is no Go program; -ENOMEM.
 */
int go_rows_merge(const struct elf *e, struct rule_runs *runs, struct rule_set *rules,
		  uint64_t *ret_bytes);

#endif
