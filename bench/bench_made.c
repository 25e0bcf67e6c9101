/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that seems to be deep in code made at run time, and does nothing; profile.py samples it
 *
 *	bench_made DEPTH	frames of a JIT with a row for each function
 *	bench_made costly	the frames that cost the walk most: each has another address, and its
 *				row is behind 31 tables of a million rows that do not have it
 *
 * The stack is made up: return addresses, 8 bytes apart. The code at the start of the region stays
 * where it is, or moves the stack pointer, so that no sample finds what another one had.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cairn/jit/codectl.h>

enum {
	TEXT_SIZE = 1 << 20,
	FUNCTION = 16,
	N_FUNCTIONS = TEXT_SIZE / FUNCTION,
	N_WORDS = 1 << 20,
	N_DECOYS = 31,
	N_ROWS = 1 << 20,
};

static void *memory(size_t size, int protection)
{
	void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static struct code_jit_table *new_table(size_t n)
{
	size_t size = n * sizeof(struct code_jit_unwind_fre);
	struct code_jit_table *t = memory(sizeof(*t) + size, PROT_READ | PROT_WRITE);

	t->reserved_len = size;
	t->stride = t->size = sizeof(struct code_jit_unwind_fre);
	return t;
}

static void add_row(struct code_jit_table *t, uint32_t at, uint32_t size, uint8_t info)
{
	struct code_jit_unwind_fre row = {.size = size, .ip_off = at, .cfa_off = 8, .info = info};

	memcpy((char *)(t + 1) + t->used_len, &row, sizeof(row));
	t->used_len += sizeof(row);
}

/* A row for each function; the last one has no caller. */
static struct code_jit_table *honest_table(void)
{
	struct code_jit_table *t = new_table(N_FUNCTIONS);

	for (uint32_t i = 0; i < N_FUNCTIONS; i++)
		add_row(t, i * FUNCTION, FUNCTION, i == N_FUNCTIONS - 1 ? CODE_ROW_OUTERMOST : 0);
	return t;
}

/*
 * Tables of rows without a size, whose heads follow each other: each takes the heads after it and
 * the empty memory behind them for its rows.
 */
static struct code_jit_table *costly_tables(void)
{
	size_t rows = (size_t)N_ROWS * sizeof(struct code_jit_unwind_fre), size = rows + 4096;
	struct code_jit_table *t = memory(size, PROT_READ | PROT_WRITE), *last = new_table(1);
	volatile char *bytes = (char *)t;

	/* The walk does not wait for pages. */
	for (size_t i = 0; i < size; i += 4096)
		(void)bytes[i];
	for (int i = 0; i < N_DECOYS; i++)
		t[i] = (struct code_jit_table){
			.reserved_len = rows,
			.used_len = rows,
			.next = (uintptr_t)(i < N_DECOYS - 1 ? &t[i + 1] : last),
			.stride = sizeof(struct code_jit_unwind_fre),
			.size = sizeof(struct code_jit_unwind_fre),
		};
	add_row(last, 0, TEXT_SIZE, 0);
	return t;
}

static void register_code(const uint8_t *text, const struct code_jit_table *rows)
{
	struct code_jit_info info = {
		.text_start = (uintptr_t)text,
		.text_end = (uintptr_t)text + TEXT_SIZE,
		.unwind_head = (uintptr_t)rows,
		.extended = CODE_JIT_EXTENDED,
	};

	if (codectl(CODE_REGISTER_JIT, &info, sizeof(info), 0)) {
		perror("codectl");
		exit(1);
	}
}

static void run(const uint8_t *text, const uint64_t *stack)
{
	__asm__ volatile("mov %0, %%rdi\n\tmov %1, %%rax\n\tmov %0, %%rsp\n\tjmp *%%rax"
			 :
			 : "r"(stack), "r"(text)
			 : "rax", "rdi", "memory");
	__builtin_unreachable();
}

int main(int argc, char **argv)
{
	/* jmp . */
	static const uint8_t stay[] = {0xeb, 0xfe};
	/* 1: mov $N_WORDS/2,%ecx; mov %rdi,%rsp; 2: add $8,%rsp; dec %ecx; jnz 2b; jmp 1b */
	static const uint8_t move[] = {0xb9, 0,    0,    8,    0,    0x48, 0x89, 0xfc, 0x48,
				       0x83, 0xc4, 0x08, 0xff, 0xc9, 0x75, 0xf8, 0xeb, 0xee};
	bool is_costly = argc == 2 && !strcmp(argv[1], "costly");
	int depth = is_costly || argc != 2 ? 0 : atoi(argv[1]);
	uint8_t *text = memory(TEXT_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
	uint64_t *stack = memory(N_WORDS * sizeof(*stack), PROT_READ | PROT_WRITE);

	if (!is_costly && (depth < 2 || depth > 1000)) {
		fprintf(stderr, "usage: bench_made DEPTH | costly\n");
		return 2;
	}
	memcpy(text, is_costly ? move : stay, is_costly ? sizeof(move) : sizeof(stay));
	/* Return addresses in the middle of functions, far from each other. */
	for (uint32_t i = 0; i < N_WORDS; i++)
		stack[i] = (uintptr_t)text + 64 + (i * 7919u * FUNCTION) % (TEXT_SIZE - 128) + 8;
	if (!is_costly)
		stack[depth - 2] = (uintptr_t)text + TEXT_SIZE - 8;
	register_code(text, is_costly ? costly_tables() : honest_table());
	run(text, stack);
}
