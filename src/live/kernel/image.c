/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file made of symbols and addresses
 *
 * BTF has sites as offsets in sections, and names. The kernel shows where sections begin, and where
 * symbols are, but no file with both. So one is made in memory, at the addresses of the running
 * kernel:
 *
 *	OFFSET  WHAT
 *	0       header
 *	64      bytes of sections: code, tables, the note, symbols and names
 *	...     section headers: none, the sections of code, tables that say where no kprobe may be,
 *	        .comment, the mark, .note.gnu.build-id, .symtab, .strtab, .shstrtab
 *
 * A section of a module ends where the next one begins. Sections of the kernel that have no symbols
 * at their ends have a size that holds any.
 *
 * The code is that of /proc/kcore, where it can be read: it runs, so it has been patched since it
 * was linked, and may have breakpoints of others. The mark (ELF_RUNNING_SECTION) says so. A section
 * whose code cannot be read has none. Of the tables those are here that a kernel keeps after it has
 * started: the others' questions are answered by the kernel alone, when a probe is set.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "elf/elf.h"
#include "kernel/kcore.h"
#include "kernel/kernel.h"
#include "kernel/symbols.h"

enum {
	ALIGN = 8,
	UNKNOWN_SIZE = 1 << 21,
	/* A kernel has 200,000 of some 20 bytes. */
	MAX_SYMBOLS = 1 << 22,
	MAX_NAMES = 1 << 28,
	MAX_CODE = 1 << 28,
};

struct code {
	const char *name;
	uint64_t at, size;
};

/* Symbols of the linker script around code or a table (insn/kernel_code.h). */
struct bound {
	const char *start, *stop;
	const char *section; /* NULL: it is code, in a section of its own name or another */
};

static const struct bound bounds[] = {
	{"__noinstr_text_start", "__noinstr_text_end", NULL},
	{"__kprobes_text_start", "__kprobes_text_end", NULL},
	{"__entry_text_start", "__entry_text_end", NULL},
	{"__start___jump_table", "__stop___jump_table", "__jump_table"},
	{"__start_static_call_sites", "__stop_static_call_sites", ".static_call_sites"},
};

enum { N_BOUNDS = sizeof(bounds) / sizeof(*bounds) };

struct making {
	const struct cairn_kernel *kernel;
	struct kcore core;
	VEC(struct code) code;
	struct {
		uint64_t start, stop;
	} bounds[N_BOUNDS];
	VEC(Elf64_Sym) symbols;
	VEC(char) names;
	uint64_t text_end, init_start, init_end;
	bool has_memory; /* some of it could be read */
	VEC(Elf64_Shdr) headers;
	VEC(char) header_names;
	struct kernel_bytes *out;
};

static void making_fini(struct making *m)
{
	VEC_FREE(&m->code);
	VEC_FREE(&m->symbols);
	VEC_FREE(&m->names);
	VEC_FREE(&m->headers);
	VEC_FREE(&m->header_names);
}

/* ---- symbols ---- */

static void see_bound(struct making *m, const struct kallsym *s)
{
	if (!strcmp(s->name, "_etext"))
		m->text_end = s->at;
	else if (!strcmp(s->name, "_sinittext"))
		m->init_start = s->at;
	else if (!strcmp(s->name, "_einittext"))
		m->init_end = s->at;
}

/* Whether it is one of the linker script's, which have no type. */
static bool see_linker_symbol(struct making *m, const struct kallsym *s)
{
	if (s->module || s->name[0] != '_' || s->name[1] != '_')
		return false;
	for (size_t i = 0; i < N_BOUNDS; i++) {
		if (!strcmp(s->name, bounds[i].start))
			m->bounds[i].start = s->at;
		else if (!strcmp(s->name, bounds[i].stop))
			m->bounds[i].stop = s->at;
		else
			continue;
		return true;
	}
	return false;
}

static int put_symbol(struct making *m, const struct kallsym *s, uint8_t info)
{
	size_t len = strlen(s->name) + 1;
	if (m->symbols.n >= MAX_SYMBOLS || m->names.n + len > MAX_NAMES)
		return -ERANGE;
	/* The section is any: readers look at the address. */
	Elf64_Sym symbol = {
		.st_name = (uint32_t)m->names.n, .st_info = info, .st_shndx = 1, .st_value = s->at};
	return VEC_ADD(&m->symbols, symbol) && VEC_APPEND(&m->names, s->name, len) ? 0 : -ENOMEM;
}

static int add_symbol(void *ctx, const struct kallsym *s)
{
	struct making *m = ctx;
	bool is_global = s->type < 'a';
	if (!kallsyms_is_own(m->kernel, s))
		return 0;
	if (see_linker_symbol(m, s))
		return put_symbol(m, s, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE));
	if (!kallsym_is_code(s))
		return 0;
	see_bound(m, s);
	return put_symbol(m, s, ELF64_ST_INFO(is_global ? STB_GLOBAL : STB_LOCAL, STT_FUNC));
}

/* ---- sections of code ---- */

static bool add_code(struct making *m, const char *name, uint64_t at, uint64_t end)
{
	struct code code = {name, at, end > at ? end - at : UNKNOWN_SIZE};
	return VEC_ADD(&m->code, code);
}

/* A kernel that has started has freed its .init and .exit; their sites are still read. */
static bool add_kernel_code(struct making *m)
{
	uint64_t text = m->kernel->text;
	uint64_t init = m->init_start ? m->init_start : m->text_end + UNKNOWN_SIZE;
	uint64_t exit = m->init_end > init ? m->init_end : init + UNKNOWN_SIZE;
	return add_code(m, ".text", text, m->text_end) && add_code(m, ".init.text", init, exit) &&
	       add_code(m, ".exit.text", exit, 0);
}

static bool is_code_name(const char *name)
{
	return strstr(name, "text") != NULL;
}

static bool add_module_code(struct making *m)
{
	const struct cairn_kernel *k = m->kernel;
	bool ok = true;
	for (size_t i = 0; i < k->sections.n && ok; i++) {
		uint64_t next = i + 1 < k->sections.n ? k->sections.p[i + 1].at : 0;
		if (is_code_name(k->sections.p[i].name))
			ok = add_code(m, k->sections.p[i].name, k->sections.p[i].at, next);
	}
	return ok;
}

/* ---- the file ---- */

static bool add_header(struct making *m, const char *name, Elf64_Shdr header)
{
	header.sh_name = (uint32_t)m->header_names.n;
	return VEC_ADD(&m->headers, header) && VEC_APPEND(&m->header_names, name, strlen(name) + 1);
}

/* Appends bytes, at a multiple of 8, and the section that has them. */
static bool add_bytes(struct making *m, const char *name, Elf64_Shdr header, const void *bytes,
		      size_t n)
{
	static const uint8_t zeros[ALIGN];
	size_t pad = (ALIGN - m->out->v.n % ALIGN) % ALIGN;
	header.sh_offset = m->out->v.n + pad;
	header.sh_size = n;
	header.sh_addralign = header.sh_type == SHT_NOTE ? 4 : ALIGN;
	return add_header(m, name, header) && VEC_APPEND(&m->out->v, zeros, pad) &&
	       VEC_APPEND(&m->out->v, (const uint8_t *)bytes, n);
}

static bool add_note(struct making *m)
{
	const struct cairn_kernel *k = m->kernel;
	const Elf64_Nhdr head = {4, (uint32_t)k->build_id_len, NT_GNU_BUILD_ID};
	VEC(uint8_t) note = {0};
	bool ok = VEC_APPEND(&note, (const uint8_t *)&head, sizeof(head)) &&
		  VEC_APPEND(&note, (const uint8_t *)"GNU", 4) &&
		  VEC_APPEND(&note, (const uint8_t *)k->build_id, k->build_id_len) &&
		  add_bytes(m, ".note.gnu.build-id", (Elf64_Shdr){.sh_type = SHT_NOTE}, note.p,
			    note.n);
	VEC_FREE(&note);
	return ok;
}

/* A section at an address, with what is in memory there, if that can be read. */
static bool add_memory(struct making *m, const char *name, uint64_t flags, uint64_t at, uint64_t n,
		       bool is_there)
{
	Elf64_Shdr header = {
		.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | flags, .sh_addr = at, .sh_size = n};
	bool has_room = is_there && n < MAX_CODE;
	SCOPE_FREE uint8_t *bytes = has_room ? malloc(n + 1) : NULL;
	if (has_room && !bytes)
		return false;
	if (!has_room || !kcore_read(&m->core, at, bytes, n))
		return add_header(m, name, header);
	m->has_memory = true;
	header.sh_type = SHT_PROGBITS;
	return add_bytes(m, name, header, bytes, n);
}

static bool add_code_sections(struct making *m)
{
	bool ok = true;
	for (size_t i = 0; i < m->code.n && ok; i++) {
		const struct code *c = &m->code.p[i];
		bool is_there = !kernel_is_gone(m->kernel, c->name) && c->size != UNKNOWN_SIZE;
		ok = add_memory(m, c->name, SHF_EXECINSTR, c->at, c->size, is_there);
	}
	return ok;
}

static bool add_tables(struct making *m)
{
	bool ok = true;
	for (size_t i = 0; i < N_BOUNDS && ok; i++) {
		uint64_t start = m->bounds[i].start, stop = m->bounds[i].stop;
		if (bounds[i].section && start && stop > start)
			ok = add_memory(m, bounds[i].section, 0, start, stop - start, true);
	}
	return ok;
}

/* As the compiler writes it: readers ask whether all code is GCC's. */
static bool add_comment(struct making *m)
{
	static const char comment[] = "GCC: (the compiler that /proc/version names)";
	const Elf64_Shdr header = {.sh_type = SHT_PROGBITS};
	int is_gcc = kernel_is_of_gcc(m->kernel);
	return !is_gcc ||
	       (is_gcc > 0 && add_bytes(m, ".comment", header, comment, sizeof(comment)));
}

static bool add_mark(struct making *m)
{
	const Elf64_Shdr header = {.sh_type = SHT_PROGBITS};
	return !m->has_memory || add_bytes(m, ELF_RUNNING_SECTION, header, "", 1);
}

static bool add_sections(struct making *m)
{
	return add_header(m, "", (Elf64_Shdr){0}) && add_code_sections(m) && add_tables(m) &&
	       add_comment(m) && add_mark(m) && add_note(m);
}

static bool add_symbols(struct making *m)
{
	Elf64_Shdr symtab = {.sh_type = SHT_SYMTAB,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_link = (uint32_t)m->headers.n + 1};
	const Elf64_Shdr strings = {.sh_type = SHT_STRTAB};
	return add_bytes(m, ".symtab", symtab, m->symbols.p,
			 m->symbols.n * sizeof(*m->symbols.p)) &&
	       add_bytes(m, ".strtab", strings, m->names.p, m->names.n) &&
	       add_header(m, ".shstrtab", strings);
}

/* The last section has the names of all, its own included. */
static bool finish(struct making *m)
{
	Elf64_Shdr *last = &m->headers.p[m->headers.n - 1];
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = (uint16_t)m->headers.n,
			   .e_shstrndx = (uint16_t)(m->headers.n - 1)};
	last->sh_offset = m->out->v.n;
	last->sh_size = m->header_names.n;
	if (!VEC_APPEND(&m->out->v, (const uint8_t *)m->header_names.p, m->header_names.n))
		return false;
	static const uint8_t zeros[ALIGN];
	if (!VEC_APPEND(&m->out->v, zeros, (ALIGN - m->out->v.n % ALIGN) % ALIGN))
		return false;
	head.e_shoff = m->out->v.n;
	memcpy(m->out->v.p, &head, sizeof(head));
	return VEC_APPEND(&m->out->v, (const uint8_t *)m->headers.p,
			  m->headers.n * sizeof(Elf64_Shdr));
}

static int write_image(struct making *m, struct cairn_err *err)
{
	static const uint8_t head[sizeof(Elf64_Ehdr)];
	SCOPE_FREE char *path = kernel_path(m->kernel, "proc/kcore");
	SCOPE_CLOSE int core = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	kcore_open(&m->core, core);
	bool ok = path && (m->kernel->module ? add_module_code(m) : add_kernel_code(m)) &&
		  VEC_APPEND(&m->out->v, head, sizeof(head)) && add_sections(m) && add_symbols(m) &&
		  finish(m);
	return ok ? 0 : err_nomem(err, "the symbols of a kernel");
}

static int read_symbols(struct making *m, struct cairn_err *err)
{
	const Elf64_Sym none = {0};
	int rc = VEC_ADD(&m->symbols, none) && VEC_ADD(&m->names, '\0')
			 ? kallsyms_read(m->kernel, add_symbol, m, err)
			 : err_nomem(err, "the symbols of a kernel");
	if (rc >= 0 && !m->kernel->module && !m->text_end)
		rc = err_set(err, -EBADMSG, "%s/proc/kallsyms has no _etext", m->kernel->root);
	return rc;
}

int cairn_kernel_image(struct cairn_kernel *k, const struct cairn_binary **ret,
		       struct cairn_err *err)
{
	struct making m = {.kernel = k, .out = &k->image_bytes};
	int rc = k->image ? 0 : read_symbols(&m, err);
	if (!k->image && rc >= 0) {
		k->image_bytes.v.n = 0;
		rc = write_image(&m, err);
	}
	making_fini(&m);
	if (!k->image && rc >= 0)
		rc = binary_open_mem(k->image_bytes.v.p, k->image_bytes.v.n, kernel_name(k),
				     &k->image, err);
	*ret = rc < 0 ? NULL : k->image;
	return rc < 0 ? rc : 0;
}
