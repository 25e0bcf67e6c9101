/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's rules over an instruction that is decoded already; within this module only. */
#ifndef INSN_UPROBE_H
#define INSN_UPROBE_H

#include "insn/insn.h"
#include "insn/zydis.h"

/* As insn_uprobe(); @bytes are those that @zi was decoded from. */
struct insn_uprobe uprobe_judge(const ZydisDecodedInstruction *zi, const uint8_t *bytes);

#endif
