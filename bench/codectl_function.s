# SPDX-License-Identifier: BSD-2-Clause
# What LLVM hands its listeners for a function of three rows: an object file with its code, symbol and CFI.
	.text
	.globl function_1
	.type function_1,@function
function_1:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.skip 61, 0x90
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size function_1, .-function_1
	.section .note.GNU-stack,"",@progbits
