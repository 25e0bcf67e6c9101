/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gccjit SECONDS: six functions that GCC makes at run time, each calling the one before twice, the
 * first a function here.
 */
#include <libgccjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 6 };

static volatile unsigned long n_counted;

__attribute__((noinline)) static long call_back(long x)
{
	for (int i = 0; i < 2000; i++)
		n_counted += (unsigned long)x;
	return x;
}

static gcc_jit_rvalue *call(gcc_jit_context *c, gcc_jit_function *callee, gcc_jit_rvalue *pointer,
			    gcc_jit_rvalue *arg)
{
	return callee ? gcc_jit_context_new_call(c, NULL, callee, 1, &arg)
		      : gcc_jit_context_new_call_through_ptr(c, NULL, pointer, 1, &arg);
}

static gcc_jit_function *make(gcc_jit_context *c, int level, gcc_jit_function *callee)
{
	char name[32];
	gcc_jit_type *type = gcc_jit_context_get_type(c, GCC_JIT_TYPE_LONG);
	gcc_jit_type *pointer = gcc_jit_context_new_function_ptr_type(c, NULL, type, 1, &type, 0);
	gcc_jit_rvalue *back = gcc_jit_context_new_rvalue_from_ptr(c, pointer, (void *)call_back);
	gcc_jit_param *param = gcc_jit_context_new_param(c, NULL, type, "x");
	gcc_jit_rvalue *x = gcc_jit_param_as_rvalue(param);

	snprintf(name, sizeof(name), "level_%d", level);
	gcc_jit_function *f = gcc_jit_context_new_function(c, NULL, GCC_JIT_FUNCTION_EXPORTED, type,
							   name, 1, &param, 0);
	gcc_jit_block *block = gcc_jit_function_new_block(f, NULL);
	gcc_jit_lvalue *sum = gcc_jit_function_new_local(f, NULL, type, "sum");

	gcc_jit_block_add_assignment(block, NULL, sum, call(c, callee, back, x));
	gcc_jit_rvalue *so_far = gcc_jit_lvalue_as_rvalue(sum);
	gcc_jit_rvalue *twice = call(c, callee, back, so_far);
	gcc_jit_block_end_with_return(block, NULL,
				      gcc_jit_context_new_binary_op(c, NULL, GCC_JIT_BINARY_OP_PLUS,
								    type, twice, so_far));
	return f;
}

int main(int argc, char **argv)
{
	gcc_jit_context *c = gcc_jit_context_acquire();
	gcc_jit_function *f = NULL;
	time_t stop = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	gcc_jit_context_set_int_option(c, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 2);
	gcc_jit_context_add_command_line_option(c, "-fno-inline");
	for (int level = 0; level < DEPTH; level++)
		f = make(c, level, f);
	gcc_jit_result *result = gcc_jit_context_compile(c);
	long (*code)(long) = (long (*)(long))gcc_jit_result_get_code(result, "level_5");
	if (!code)
		return 1;
	while (time(NULL) < stop)
		code(1);
	printf("%lu\n", n_counted);
	return 0;
}
