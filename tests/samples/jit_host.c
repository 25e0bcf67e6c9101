/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JIT whose code keeps no frame pointer, and describes itself as KIND says
 *
 *	jit_host KIND HOW SECONDS [shared]: in memory of a memfd
 *	KIND  eh_frame (text-relative, as LuaJIT and PHP write it), debug_frame: in GDB's list;
 *	      jitdump
 *	HOW   still: all functions are made at the begin; grow: now and then they are made anew
 *	      elsewhere; reuse: at the same addresses, with frames of another size; race: reuse, as
 *	      fast as it can
 *
 * main() calls run(), which calls jit_0, ..., jit_7, burn(). Frames of made code are full of an
 * address of bait(), which is never called: a walk by rows of another generation gets there.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 8, SLOT = 512, AREA = 1 << 22, MAX_FRAME = 1024 };

struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const char *symfile;
	uint64_t size;
};
struct {
	uint32_t version, action;
	struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor = {1, 0, NULL, NULL};
__attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("");
}

static volatile unsigned long sink;
static unsigned long turns = 20000;
static FILE *dump;
static int is_debug;
static unsigned int random_state = 1;

__attribute__((noinline)) void burn(void)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i;
	__asm__ volatile("");
}

/* The address after the call. */
__attribute__((noinline)) uint64_t return_address(void)
{
	uint64_t ret = (uint64_t)(uintptr_t)__builtin_return_address(0);

	__asm__ volatile("" : "+r"(ret));
	return ret;
}

__attribute__((noinline)) uint64_t bait(void)
{
	uint64_t ret = return_address();

	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static unsigned int random_number(void)
{
	return random_state = random_state * 1103515245u + 12345u;
}

/* ---- bytes ---- */

struct bytes {
	uint8_t p[4096];
	size_t n;
};

static void put(struct bytes *b, const void *from, size_t n)
{
	if (n > sizeof(b->p) - b->n)
		abort();
	memcpy(b->p + b->n, from, n);
	b->n += n;
}

static void put_u8(struct bytes *b, unsigned int v)
{
	put(b, &(uint8_t){(uint8_t)v}, 1);
}

static void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put_u64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static void put_uleb(struct bytes *b, uint32_t v)
{
	for (; v >= 128; v >>= 7)
		put_u8(b, (v & 127) | 128);
	put_u8(b, v);
}

/* ---- code ---- */

/* Where the rule changes. */
struct changes {
	unsigned int after_push, after_sub, after_add, after_pop;
};

static void make_code(struct bytes *b, uint32_t frame, uint64_t callee, uint64_t lure,
		      struct changes *c)
{
	put_u8(b, 0x55); /* push %rbp */
	c->after_push = (unsigned int)b->n;
	put_u8(b, 0xbd); /* mov $n,%ebp */
	put_u32(b, random_number());
	put(b, "\x48\x81\xec", 3); /* sub $frame,%rsp */
	put_u32(b, frame);
	c->after_sub = (unsigned int)b->n;
	put(b, "\x48\xb8", 2); /* mov $lure,%rax */
	put_u64(b, lure);
	put_u8(b, 0xb9); /* mov $words,%ecx */
	put_u32(b, frame / 8);
	/* 1: mov %rax,-8(%rsp,%rcx,8); dec %ecx; jne 1b */
	put(b, "\x48\x89\x44\xcc\xf8\xff\xc9\x75\xf7", 9);
	put(b, "\x48\xb8", 2); /* mov $callee,%rax */
	put_u64(b, callee);
	put(b, "\xff\xd0", 2);     /* call *%rax */
	put(b, "\x48\x81\xc4", 3); /* add $frame,%rsp */
	put_u32(b, frame);
	c->after_add = (unsigned int)b->n;
	put_u8(b, 0x5d); /* pop %rbp */
	c->after_pop = (unsigned int)b->n;
	put_u8(b, 0xc3); /* ret */
}

/* ---- rows ---- */

static void pad(struct bytes *b, size_t from)
{
	while ((b->n - from) % 8 != 4)
		put_u8(b, 0);
}

static void set_u32(struct bytes *b, size_t at, size_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(b->p + at, &v, sizeof(v));
}

static void put_program(struct bytes *b, const struct changes *c, uint32_t frame)
{
	put_u8(b, 0x40 | c->after_push);
	put_u8(b, 0x0e); /* def_cfa_offset */
	put_uleb(b, 16);
	put_u8(b, 0x86); /* offset rbp, 2 */
	put_uleb(b, 2);
	put_u8(b, 0x40 | (c->after_sub - c->after_push));
	put_u8(b, 0x0e);
	put_uleb(b, 16 + frame);
	put_u8(b, 0x40 | (c->after_add - c->after_sub));
	put_u8(b, 0x0e);
	put_uleb(b, 16);
	put_u8(b, 0x40 | (c->after_pop - c->after_add));
	put_u8(b, 0x0e);
	put_uleb(b, 8);
	put_u8(b, 0xc6); /* restore rbp */
}

static void put_cie(struct bytes *b, unsigned int encoding)
{
	size_t from = b->n;

	put_u32(b, 0);
	put_u32(b, is_debug ? 0xffffffff : 0);
	put_u8(b, 1);
	put(b, is_debug ? "" : "zR", is_debug ? 1 : 3);
	put_u8(b, 1);    /* alignment of code */
	put_u8(b, 0x78); /* and of data: -8 */
	put_u8(b, 16);
	if (!is_debug) {
		put_u8(b, 1);
		put_u8(b, encoding);
	}
	put(b, "\x0c\x07\x08\x90\x01", 5); /* CFA rsp + 8; the return address at CFA - 8 */
	pad(b, from);
	set_u32(b, from, b->n - from - 4);
}

/* @at: as the encoding has the address. */
static void put_fde(struct bytes *b, uint64_t at, uint32_t size, const struct changes *c,
		    uint32_t frame)
{
	size_t from = b->n;

	put_u32(b, 0);
	put_u32(b, is_debug ? 0 : (uint32_t)(from + 4));
	if (is_debug) {
		put_u64(b, at);
		put_u64(b, size);
	} else {
		put_u32(b, (uint32_t)at);
		put_u32(b, size);
		put_u8(b, 0);
	}
	put_program(b, c, frame);
	pad(b, from);
	set_u32(b, from, b->n - from - 4);
}

/* ---- GDB's list ---- */

static const char section_names[] = "\0.text\0.eh_frame\0.debug_frame\0.symtab\0.strtab";

static void put_section(struct bytes *b, uint32_t name, uint32_t type, uint64_t flags, uint64_t at,
			uint64_t off, uint64_t size, uint32_t link)
{
	put_u32(b, name);
	put_u32(b, type);
	put_u64(b, flags);
	put_u64(b, at);
	put_u64(b, off);
	put_u64(b, size);
	put_u32(b, link);
	put_u32(b, 0);
	put_u64(b, 8);
	put_u64(b, type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0);
}

static void put_symfile(struct bytes *b, uint64_t at, uint32_t size, const struct bytes *frames,
			const char *name)
{
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_REL,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 6,
			   .e_shstrndx = 5};
	Elf64_Sym symbols[2] = {{0},
				{.st_name = sizeof(section_names),
				 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				 .st_shndx = 1,
				 .st_size = size}};
	size_t frames_at, symbols_at, names_at;

	put(b, &head, sizeof(head));
	frames_at = b->n;
	put(b, frames->p, frames->n);
	symbols_at = b->n;
	put(b, symbols, sizeof(symbols));
	names_at = b->n;
	put(b, section_names, sizeof(section_names));
	put(b, name, strlen(name) + 1);
	size_t names_size = b->n - names_at;
	head.e_shoff = b->n;
	memcpy(b->p, &head, sizeof(head));
	put_section(b, 0, SHT_NULL, 0, 0, 0, 0, 0);
	put_section(b, 1, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, at, 0, size, 0);
	put_section(b, is_debug ? 17 : 7, SHT_PROGBITS, 0, 0, frames_at, frames->n, 0);
	put_section(b, 0, SHT_NULL, 0, 0, 0, 0, 0);
	put_section(b, 30, SHT_SYMTAB, 0, 0, symbols_at, sizeof(symbols), 5);
	put_section(b, 38, SHT_STRTAB, 0, 0, names_at, names_size, 0);
}

static struct jit_code_entry *add_to_list(const struct bytes *file)
{
	struct jit_code_entry *e = malloc(sizeof(*e));
	char *copy = malloc(file->n);

	memcpy(copy, file->p, file->n);
	*e = (struct jit_code_entry){
		.next = __jit_debug_descriptor.first, .symfile = copy, .size = file->n};
	if (e->next)
		e->next->prev = e;
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = e;
	__jit_debug_descriptor.action = 1;
	__jit_debug_register_code();
	return e;
}

static void remove_from_list(struct jit_code_entry *e)
{
	if (!e)
		return;
	if (e->prev)
		e->prev->next = e->next;
	else
		__jit_debug_descriptor.first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	__jit_debug_descriptor.relevant = e;
	__jit_debug_descriptor.action = 2;
	__jit_debug_register_code();
	free((void *)(uintptr_t)e->symfile);
	free(e);
}

/* ---- jitdump ---- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static char dump_path[64];

static void remove_dump(void)
{
	unlink(dump_path);
}

static void open_dump(void)
{
	static const uint32_t head[] = {0x4a695444, 1, 40, EM_X86_64, 0};
	uint32_t pid = (uint32_t)getpid();
	uint64_t rest[2] = {now_ns(CLOCK_MONOTONIC), 0};

	snprintf(dump_path, sizeof(dump_path), "/tmp/jit-%d.dump", getpid());
	dump = fopen(dump_path, "w+");
	if (!dump)
		exit(77);
	fwrite(head, sizeof(head), 1, dump);
	fwrite(&pid, sizeof(pid), 1, dump);
	fwrite(rest, sizeof(rest), 1, dump);
	fflush(dump);
	/* By this it is found. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		exit(77);
	atexit(remove_dump);
}

static void put_record(struct bytes *b, uint32_t id, size_t size)
{
	put_u32(b, id);
	put_u32(b, (uint32_t)(16 + size));
	put_u64(b, now_ns(CLOCK_MONOTONIC));
}

static void write_to_dump(uint64_t at, const struct bytes *code, const struct bytes *frames,
			  const char *name, uint64_t number)
{
	/* .eh_frame_hdr without entries */
	static const uint8_t hdr[] = {1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 0, 0, 0, 0};
	struct bytes b = {.n = 0};

	put_record(&b, 4, 24 + frames->n + sizeof(hdr));
	put_u64(&b, frames->n + sizeof(hdr));
	put_u64(&b, sizeof(hdr));
	put_u64(&b, frames->n + sizeof(hdr));
	put(&b, frames->p, frames->n);
	put(&b, hdr, sizeof(hdr));
	put_record(&b, 0, 40 + strlen(name) + 1 + code->n);
	put_u32(&b, (uint32_t)getpid());
	put_u32(&b, (uint32_t)getpid());
	put_u64(&b, at);
	put_u64(&b, at);
	put_u64(&b, code->n);
	put_u64(&b, number);
	put(&b, name, strlen(name) + 1);
	put(&b, code->p, code->n);
	fwrite(b.p, b.n, 1, dump);
	fflush(dump);
}

/* ---- functions ---- */

static uint8_t *area;
static size_t area_used;
static struct jit_code_entry *entries[DEPTH];
static uint8_t *functions[DEPTH];

static void make(unsigned int slot, uint8_t *at)
{
	struct bytes code = {.n = 0}, frames = {.n = 0}, file = {.n = 0};
	uint64_t callee = slot + 1 < DEPTH ? (uint64_t)(uintptr_t)functions[slot + 1]
					   : (uint64_t)(uintptr_t)burn;
	uint32_t frame = 16 * (1 + (random_number() >> 16) % (MAX_FRAME / 16));
	struct changes c;
	static uint64_t number;
	char name[16];

	snprintf(name, sizeof(name), "jit_%u", slot);
	make_code(&code, frame, callee, bait(), &c);
	/* What was there is freed first, as a JIT does. */
	remove_from_list(entries[slot]);
	entries[slot] = NULL;
	memcpy(at, code.p, code.n);
	functions[slot] = at;
	put_cie(&frames, dump ? 0x1b : 0x23);
	if (dump) {
		/* From where the address is stored to the code before. */
		uint64_t place = (code.n + 7) / 8 * 8 + frames.n + 8;
		put_fde(&frames, -place, (uint32_t)code.n, &c, frame);
		put_u32(&frames, 0);
		write_to_dump((uint64_t)(uintptr_t)at, &code, &frames, name, ++number);
		return;
	}
	put_fde(&frames, is_debug ? (uint64_t)(uintptr_t)at : 0, (uint32_t)code.n, &c, frame);
	put_symfile(&file, (uint64_t)(uintptr_t)at, (uint32_t)code.n, &frames, name);
	entries[slot] = add_to_list(&file);
}

/* All of the chain, as each has the address of the next one in it. */
static void make_all(int is_new)
{
	for (unsigned int slot = DEPTH; slot-- > 0;) {
		uint8_t *at = functions[slot];
		if (is_new || !at) {
			if (area_used + SLOT > AREA)
				area_used = 0;
			at = area + area_used;
			area_used += SLOT;
		}
		make(slot, at);
	}
}

static uint8_t *memory(int is_shared)
{
	int how = is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = is_shared ? memfd_create("jit", 0) : -1;
	void *p;

	if (is_shared && ftruncate(fd, AREA))
		exit(77);
	p = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, how, fd, 0);
	if (p == MAP_FAILED)
		exit(77);
	return p;
}

__attribute__((noinline)) void run(void)
{
	((void (*)(void))functions[0])();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	uint64_t until, next, every;

	if (argc < 4)
		return 2;
	is_debug = !strcmp(argv[1], "debug_frame");
	if (!strcmp(argv[1], "jitdump"))
		open_dump();
	area = memory(argc > 4);
	make_all(1);
	every = !strcmp(argv[2], "race") ? 0 : 200000000;
	until = (uint64_t)(atof(argv[3]) * 1e9);
	next = !strcmp(argv[2], "still") ? UINT64_MAX : every;
	for (uint64_t now = 0; now < until; now = now_ns(CLOCK_PROCESS_CPUTIME_ID)) {
		if (now >= next) {
			make_all(!strcmp(argv[2], "grow"));
			next = now + every;
		}
		run();
	}
	return 0;
}
