/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's interface for JITs: __jit_debug_register_code(), before the program's own
 *
 * A JIT puts a symbol file into a list, names it in __jit_debug_descriptor, and calls this
 * function, where GDB has a breakpoint. The call comes here if it goes through a PLT; Debian's
 * libLLVM binds it internally, and readers follow its list from outside. The registry adds a
 * generation: so freed code and new code at the same address are told apart.
 *
 * Each section of code becomes a region, with the symbol file's functions as names and its
 * .eh_frame to unwind. Names are in the symbol file, which stays while it is in the list.
 */
#include <stddef.h>
#include <sys/mman.h>

#include <cairn/jit/codectl.h>

#include "hooks.h"
#include "next.h"
#include "symfile.h"

struct gdb_entry {
	struct gdb_entry *next, *prev;
	const void *symfile;
	uint64_t n_bytes;
};

struct gdb_descriptor {
	uint32_t version, action;
	struct gdb_entry *relevant, *first;
};

enum { REGISTER = 1, UNREGISTER = 2, FUNCTIONS_MAX = 1 << 16 };

static struct next register_code = {.name = "__jit_debug_register_code"},
		   descriptor = {.name = "__jit_debug_descriptor"};

/* One section of code that is registered; its symbols follow. They are unmapped when it goes. */
struct region {
	struct region *next;
	const void *symfile;
	size_t n_bytes; /* of this mapping */
	struct code_unregister_info text;
	struct code_jit_table symbols;
};

/*
 * The unregistering call searches it. GDB's interface is for one thread at a time, which all JITs
 * ensure with a lock of theirs.
 */
static struct region *regions;

/*
 * Room for the functions is used twice: for the found ones, and after them for the reported ones.
 */
static struct region *make_region(const struct symfile *s, const struct code_unregister_info *text)
{
	size_t n = symfile_functions(s, text->text_start, text->text_end, NULL, FUNCTIONS_MAX);
	size_t n_bytes = sizeof(struct region) +
			 n * (sizeof(struct code_jit_symbol) + sizeof(struct symfile_function));
	struct region *r =
		mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	struct code_jit_symbol *symbols = (struct code_jit_symbol *)(r + 1);
	struct symfile_function *functions = (struct symfile_function *)(symbols + n);
	n = symfile_functions(s, text->text_start, text->text_end, functions, n);
	for (size_t i = 0; i < n; i++)
		symbols[i] = (struct code_jit_symbol){
			.size = (uint32_t)(functions[i].hi - functions[i].lo),
			.ip_off = (uint32_t)(functions[i].lo - text->text_start),
			.name = (uintptr_t)functions[i].name,
		};
	*r = (struct region){
		.symfile = s->at,
		.n_bytes = n_bytes,
		.text = *text,
		.symbols = {.reserved_len = n * sizeof(*symbols),
			    .used_len = n * sizeof(*symbols),
			    .stride = sizeof(*symbols),
			    .size = sizeof(*symbols)},
	};
	return r;
}

static void add_section(const struct symfile *s, const Elf64_Shdr *section)
{
	struct code_unregister_info text = {section->sh_addr, section->sh_addr + section->sh_size};
	struct region *r = make_region(s, &text);
	if (!r)
		return;
	struct code_jit_info info = {
		.text_start = text.text_start,
		.text_end = text.text_end,
		.extended = CODE_JIT_EXTENDED,
		.symbols_head = r->symbols.used_len ? (uintptr_t)&r->symbols : 0,
	};
	if (symfile_cfi(s, text.text_start, text.text_end, &info.unwind_start, &info.unwind_end))
		info.unwind_kind = CODE_UNWIND_EH_FRAME;
	if (codectl(CODE_REGISTER_JIT, &info, sizeof(info), 0) < 0) {
		munmap(r, r->n_bytes);
		return;
	}
	r->next = regions;
	regions = r;
}

static void add_symfile(const struct gdb_entry *e)
{
	struct symfile s;
	const Elf64_Shdr *section;
	unsigned i = 0;
	if (symfile_open(e->symfile, e->n_bytes, &s))
		while ((section = symfile_code(&s, &i)))
			add_section(&s, section);
}

static void remove_symfile(const struct gdb_entry *e)
{
	for (struct region **at = &regions; *at;) {
		struct region *r = *at;
		if (r->symfile != e->symfile) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		codectl(CODE_UNREGISTER, &r->text, sizeof(r->text), 0);
		munmap(r, r->n_bytes);
	}
}

EXPORTED void __jit_debug_register_code(void)
{
	const void *caller = __builtin_return_address(0);
	void (*next)(void) = next_function(&register_code, caller);
	const struct gdb_descriptor *d = next_function(&descriptor, caller);
	const struct gdb_entry *e = d ? d->relevant : NULL;
	if (e && d->action == REGISTER)
		add_symfile(e);
	if (e && d->action == UNREGISTER)
		remove_symfile(e);
	if (next)
		next();
}

void gdb_jit_forget(void)
{
	next_forget(&register_code);
	next_forget(&descriptor);
}
