/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JIT with one template: functions that call one another and then back into this program;
 * docs/jit.md explains it
 *
 *	jit [SECONDS]	again and again: write eight functions, publish, call, and withdraw them; the addresses stay the same
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cairn/jit/jit.h>

enum { DEPTH = 8, SLOT = 64, GENERATION_MS = 20, CALLS = 10 };

static volatile unsigned long n_counted;

__attribute__((noinline)) static void call_back(void)
{
	for (int i = 0; i < 100000; i++)
		n_counted++;
}

static long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * A function with a frame of @room bytes. rbp is used for something else: nothing but the rows
 * leads out of it.
 */
static int write_function(struct cairn_jit *jit, uint8_t *start, uint8_t room, const void *callee,
			  const char *name)
{
	/* clang-format off */
	uint8_t code[] = {
		/*  0 */ 0x55,				/* push %rbp */
		/*  1 */ 0xbd, 1, 0, 0, 0,		/* mov $1,%ebp */
		/*  6 */ 0x48, 0x83, 0xec, room,	/* sub $room,%rsp */
		/*
		 * 10 */ 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, /* mov $callee,%rax; call
		 * *%rax
		 */
		/* 22 */ 0x48, 0x83, 0xc4, room,	/* add $room,%rsp */
		/* 26 */ 0x5d, 0xc3,			/* pop %rbp; ret */
	};
	/* clang-format on */
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	struct cairn_jit_frame frame;

	memcpy(code + 12, &callee, sizeof(callee));
	memcpy(start, code, sizeof(code));
	cairn_jit_begin(&frame, start);                     /* CFA = rsp + 8 */
	cairn_jit_cfa(&frame, start + 1, CAIRN_JIT_SP, 16); /* behind the push */
	cairn_jit_fp_saved(&frame, start + 1, -16);
	cairn_jit_cfa(&frame, start + 10, CAIRN_JIT_SP, 16 + room);
	cairn_jit_cfa(&frame, start + 26, CAIRN_JIT_SP, 16);
	cairn_jit_cfa(&frame, start + 27, CAIRN_JIT_SP, 8); /* behind the pop */
	cairn_jit_fp_restored(&frame, start + 27);
	return cairn_jit_publish(jit, &frame, start + sizeof(code), &info);
}

int main(int argc, char **argv)
{
	struct cairn_jit_opts opts = {sizeof(opts), "example", CAIRN_JIT_COPY_NAMES};
	uint8_t *area = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	struct cairn_jit *jit;

	if (area == MAP_FAILED || cairn_jit_open(area, 4096, &opts, &jit) < 0)
		return 1;
	for (int generation = 0; time(NULL) < end; generation++) {
		const void *callee = (const void *)call_back;
		for (int i = 0; i < DEPTH; i++) {
			char name[64];
			snprintf(name, sizeof(name), "level_%d_of_%d", i, generation);
			if (write_function(jit, area + i * SLOT,
					   (uint8_t)(16 * (1 + (i + generation) % 7)), callee,
					   name))
				return 1;
			callee = area + i * SLOT;
		}
		for (long until = now_ms() + GENERATION_MS; now_ms() < until;)
			for (int i = 0; i < CALLS; i++)
				((void (*)(void))callee)();
		cairn_jit_withdraw(jit, area, area + DEPTH * SLOT);
	}
	cairn_jit_close(jit);
	printf("%lu\n", n_counted);
	return 0;
}
