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
 *	64      section headers: none, the sections of code (without bytes), .note.gnu.build-id,
 *	        .symtab, .strtab, .shstrtab
 *	...     the note, the symbols, their names, the sections' names
 *
 * A section of a module ends where the next one begins. Sections of the kernel that have no symbols
 * at their ends have a size that holds any.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "elf/elf.h"
#include "kernel/kernel.h"

enum {
	ALIGN = 8,
	UNKNOWN_SIZE = 1 << 21,
	/* A kernel has 200,000 of some 20 bytes. */
	MAX_SYMBOLS = 1 << 22,
	MAX_NAMES = 1 << 28,
};

struct code {
	const char *name;
	uint64_t at, size;
};

struct making {
	const struct cairn_kernel *kernel;
	VEC(struct code) code;
	VEC(Elf64_Sym) symbols;
	VEC(char) names;
	uint64_t text_end, init_start, init_end;
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

static int add_symbol(void *ctx, const struct kallsym *s)
{
	struct making *m = ctx;
	size_t len = strlen(s->name) + 1;
	bool is_global = s->type < 'a';
	if (!kallsym_is_code(s) || !kallsyms_is_own(m->kernel, s))
		return 0;
	see_bound(m, s);
	if (m->symbols.n >= MAX_SYMBOLS || m->names.n + len > MAX_NAMES)
		return -ERANGE;
	/* The section is any: readers look at the address. */
	Elf64_Sym symbol = {.st_name = (uint32_t)m->names.n,
			    .st_info = ELF64_ST_INFO(is_global ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
			    .st_shndx = 1,
			    .st_value = s->at};
	return VEC_ADD(&m->symbols, symbol) && VEC_APPEND(&m->names, s->name, len) ? 0 : -ENOMEM;
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

static bool add_sections(struct making *m)
{
	bool ok = add_header(m, "", (Elf64_Shdr){0});
	for (size_t i = 0; i < m->code.n && ok; i++)
		ok = add_header(m, m->code.p[i].name,
				(Elf64_Shdr){.sh_type = SHT_NOBITS,
					     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					     .sh_addr = m->code.p[i].at,
					     .sh_size = m->code.p[i].size});
	return ok && add_note(m);
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
	bool ok = (m->kernel->module ? add_module_code(m) : add_kernel_code(m)) &&
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
