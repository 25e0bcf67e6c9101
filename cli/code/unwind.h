/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of `cairn unwind` share this: rules in words. */
#ifndef CLI_UNWIND_H
#define CLI_UNWIND_H

#include <stddef.h>
#include <stdio.h>

#include <cairn/unwind.h>

/* Longer than any rule in words. */
enum { UNWIND_TEXT_MAX = 1024 };

/* "rsp", "x29"; "r17" for a number without a name. @buf has 8 bytes. */
const char *unwind_reg_name(uint16_t machine, unsigned int reg, char *buf);

/* The location of the CFA: "rsp+16", "*(rbp-8)+8"; "-" when nothing is known. */
void unwind_cfa_text(uint16_t machine, const struct cairn_unwind_rule *rule, char *buf,
		     size_t size);

/*
 * One register's word: "cfa-16" saved there, "=cfa-16" the value, "*(rsp+40)", "rdx", "same",
 * "lost".
 */
void unwind_word_text(uint16_t machine, const struct cairn_unwind_rule *rule, uint32_t word,
		      char *buf, size_t size);

/* As readelf --sframe prints it. */
void unwind_sframe_text(FILE *out, const struct cairn_sframe *s);

#endif
