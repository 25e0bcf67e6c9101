/* SPDX-License-Identifier: BSD-2-Clause */
/* Words for the sources of code descriptions. */
#include <cairn/code.h>

const char *cairn_code_source_text(enum cairn_code_source source)
{
	/* clang-format off */
	static const char *const texts[] = {
		[CAIRN_CODE_FILE] = "file",	    [CAIRN_CODE_VDSO] = "vdso",
		[CAIRN_CODE_ELF] = "elf",	    [CAIRN_CODE_JIT] = "jit",
		[CAIRN_CODE_GDB] = "gdb",	    [CAIRN_CODE_JITDUMP] = "jitdump",
		[CAIRN_CODE_PERF_MAP] = "perf-map", [CAIRN_CODE_ANONYMOUS] = "anonymous",
	};
	/* clang-format on */
	return texts[source];
}

const char *cairn_code_unwind_text(enum cairn_code_unwind unwind)
{
	/* clang-format off */
	static const char *const texts[] = {
		[CAIRN_CODE_UNWIND_NONE] = "none",	  [CAIRN_CODE_UNWIND_FILE] = "file",
		[CAIRN_CODE_UNWIND_ROWS] = "rows",	  [CAIRN_CODE_UNWIND_EH_FRAME] = "eh-frame",
		[CAIRN_CODE_UNWIND_FP] = "frame-pointer", [CAIRN_CODE_UNWIND_ASSUMED] = "assumed",
	};
	/* clang-format on */
	return texts[unwind];
}
