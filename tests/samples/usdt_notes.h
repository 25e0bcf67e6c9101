/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests and fuzzers: a file with notes of USDT probes. */
#ifndef SAMPLES_USDT_NOTES_H
#define SAMPLES_USDT_NOTES_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "elf_builder.h"

enum {
	USDT_TEXT = 0x1000,  /* 0x100 bytes of nops */
	USDT_DATA = 0x2000,  /* semaphores and variables, 0x100 bytes of the file */
	USDT_BASE = 0x3000,  /* .stapsdt.base, as the notes have it */
	USDT_BYTES = 0x4000, /* room for notes */
};

struct usdt_notes {
	uint8_t bytes[USDT_BYTES];
	size_t n;
};

static inline void usdt_put(struct usdt_notes *s, const void *bytes, size_t n)
{
	if (n <= USDT_BYTES - s->n) {
		memcpy(s->bytes + s->n, bytes, n);
		s->n += n;
	}
}

/* One note; @semaphore is 0 for none. */
static inline void usdt_note(struct usdt_notes *s, uint64_t at, uint64_t semaphore,
			     const char *provider, const char *name, const char *args)
{
	size_t n_texts = strlen(provider) + strlen(name) + strlen(args) + 3;
	uint32_t header[3] = {8, (uint32_t)(24 + n_texts), 3};
	uint64_t addresses[3] = {at, USDT_BASE, semaphore};
	usdt_put(s, header, sizeof(header));
	usdt_put(s, "stapsdt", 8);
	usdt_put(s, addresses, sizeof(addresses));
	usdt_put(s, provider, strlen(provider) + 1);
	usdt_put(s, name, strlen(name) + 1);
	usdt_put(s, args, strlen(args) + 1);
	usdt_put(s, "\0\0\0", (4 - n_texts % 4) % 4);
}

/* A program with the bytes as its notes, with .stapsdt.base at @base (0: it has none). */
static inline struct elf_builder *usdt_program(const void *notes, size_t n, uint64_t base)
{
	static const uint8_t one[1] = {0};
	static uint8_t code[0x100], data[0x100];
	struct elf_builder *b = eb_new(ET_DYN);
	memset(code, 0x90, sizeof(code));
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = USDT_TEXT,
							  EB_BYTES(code)});
	uint32_t probes = eb_section(b, (struct eb_section){.name = ".probes",
							    .flags = SHF_ALLOC | SHF_WRITE,
							    .addr = USDT_DATA,
							    EB_BYTES(data)});
	eb_load(b, text);
	eb_load(b, probes);
	if (base)
		eb_section(b, (struct eb_section){.name = ".stapsdt.base",
						  .flags = SHF_ALLOC,
						  .addr = base,
						  EB_BYTES(one)});
	eb_section(b, (struct eb_section){
			      .name = ".note.stapsdt", .type = SHT_NOTE, .data = notes, .size = n});
	eb_symbol(b, (struct eb_symbol){"serve", text, USDT_TEXT, 0x40, STT_FUNC, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"counter", probes, USDT_DATA + 0x10, 4, STT_OBJECT,
					STB_GLOBAL});
	eb_symbol(b,
		  (struct eb_symbol){"twice", probes, USDT_DATA + 0x20, 4, STT_OBJECT, STB_LOCAL});
	eb_symbol(b,
		  (struct eb_symbol){"twice", probes, USDT_DATA + 0x30, 4, STT_OBJECT, STB_LOCAL});
	return b;
}

#endif
