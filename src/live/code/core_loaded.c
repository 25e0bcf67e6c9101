/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a core that does not name them
 *
 * The kernel and gcore write NT_FILE. QEMU's cores of the programs that it emulates have none, and
 * no read-only files. The mapped files are found as debuggers find them:
 *
 *	NT_AUXV		AT_EXECFN: the program's name; AT_PHDR: where its program headers are
 *	program		PT_DYNAMIC, in it DT_DEBUG: struct r_debug
 *	r_debug		+8: the first struct link_map
 *	link_map	+0 bias  +8 name  +16 dynamic section  +24 the next one
 *
 * A name does not show which version of a file was mapped. If the core has the first page, the
 * build-id decides. Otherwise the dynamic section does. The loader writes to it, so each core has
 * it, and it has the addresses and sizes of all tables of its file:
 *
 *	file	DT_STRTAB 0x4a8		DT_STRSZ 0x8f		DT_RELA 0x5b0
 *	memory	DT_STRTAB 0x55000004a8	DT_STRSZ 0x8f		DT_RELA 0x55000005b0
 *
 * Each value has to be the file's, or the file's plus the bias; DT_DEBUG is the loader's. A file
 * with any other value is not taken.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "code/core.h"
#include "elf/elf.h"

enum {
	MAX_LOADED = 4096, /* libraries of a process; the largest programs have a thousand */
	MAX_NAME = 4096,   /* PATH_MAX */
	MAX_DYNAMIC = 512, /* entries of a dynamic section; files have thirty */
	PAGE = 4096,
};

/* An open file and where it may have been mapped. */
struct candidate {
	struct cairn_binary *bin;
	const char *path;
	const uint8_t *bytes; /* of the file */
	size_t n;
	uint64_t bias;
	Elf64_Ehdr eh;
};

/* The facts that the program's file gives about the rest. */
struct program {
	uint64_t dynamic; /* where its dynamic section is; 0: it has none */
	/*
	 * its name for the dynamic loader; the loader has the same string in read-only memory; NULL
	 */
	char *loader;
};

struct link {
	uint64_t bias, name, dynamic, next;
};

static bool has(const struct candidate *f, uint64_t off, uint64_t n)
{
	return off <= f->n && n <= f->n - off;
}

static bool read_header(struct candidate *f, uint64_t i, Elf64_Phdr *ret)
{
	if (f->eh.e_phentsize != sizeof(*ret) || i >= f->eh.e_phnum || f->eh.e_phoff > f->n ||
	    !has(f, f->eh.e_phoff + i * sizeof(*ret), sizeof(*ret)))
		return false;
	memcpy(ret, f->bytes + f->eh.e_phoff + i * sizeof(*ret), sizeof(*ret));
	return true;
}

static bool find_header(struct candidate *f, uint32_t type, Elf64_Phdr *ret)
{
	for (uint64_t i = 0; read_header(f, i, ret); i++)
		if (ret->p_type == type)
			return true;
	return false;
}

/* A string of the process, the caller's; NULL when it is not there, or there is no memory. */
static char *read_string(const struct core *core, uint64_t at)
{
	char name[MAX_NAME];
	for (size_t n = 0; n < sizeof(name) && core_read(core, at + n, &name[n], 1); n++)
		if (!name[n])
			return strdup(name);
	return NULL;
}

/* ---- whether it is that file ---- */

static bool is_dynamic_section(const struct core *core, struct candidate *f)
{
	Elf64_Phdr ph;
	if (!find_header(f, PT_DYNAMIC, &ph) || !has(f, ph.p_offset, ph.p_filesz))
		return false;
	uint64_t n = ph.p_filesz / sizeof(Elf64_Dyn);
	for (uint64_t i = 0; i < n && i < MAX_DYNAMIC; i++) {
		Elf64_Dyn here, there;
		memcpy(&here, f->bytes + ph.p_offset + i * sizeof(here), sizeof(here));
		if (!core_read(core, f->bias + ph.p_vaddr + i * sizeof(there), &there,
			       sizeof(there)) ||
		    here.d_tag != there.d_tag)
			return false;
		if (here.d_tag == DT_NULL)
			return true;
		if (here.d_tag != DT_DEBUG && here.d_un.d_val != there.d_un.d_val &&
		    here.d_un.d_val + f->bias != there.d_un.d_val)
			return false;
	}
	return false;
}

static bool is_that_file(const struct core *core, struct candidate *f)
{
	struct core_build_id id = {.n = 0};
	Elf64_Phdr ph;
	size_t n;
	if (elf_machine(binary_main(f->bin)) != core->machine)
		return false;
	if (find_header(f, PT_LOAD, &ph) && !ph.p_offset &&
	    core_build_id_at(core, f->bias + ph.p_vaddr, &id)) {
		const uint8_t *own = cairn_binary_build_id(f->bin, &n);
		return n == id.n && !memcmp(own, id.bytes, n);
	}
	return is_dynamic_section(core, f);
}

/* ---- adding it ---- */

/* Its segments, as the loader maps them. */
static int add_segments(struct core *core, struct candidate *f, struct cairn_err *err)
{
	Elf64_Phdr ph;
	/* The program's may be relative to where it was started, which is ours then. */
	char *path = realpath(f->path, NULL);
	if (!path || !VEC_ADD(&core->names, path)) {
		free(path);
		return err_nomem(err, "the files of a core file");
	}
	for (uint64_t i = 0; read_header(f, i, &ph); i++) {
		uint64_t lo = f->bias + ph.p_vaddr, skip = lo % PAGE;
		struct core_file file = {.lo = lo - skip,
					 .hi = (lo + ph.p_filesz + PAGE - 1) / PAGE * PAGE,
					 .off = ph.p_offset - skip,
					 .path = path,
					 .is_known = true};
		if (ph.p_type != PT_LOAD || !ph.p_filesz || ph.p_offset < skip ||
		    file.lo >= file.hi)
			continue;
		if (!VEC_ADD(&core->files, file))
			return err_nomem(err, "the files of a core file");
	}
	return 0;
}

static int open_candidate(struct core *core, const struct core_search *search, const char *root,
			  const char *name, char path[static 2 * MAX_NAME], struct candidate *ret)
{
	struct cairn_binary_opts how = {.size = sizeof(how),
					.debug_dirs = search->debug_dirs,
					.n_debug_dirs = search->n_debug_dirs};
	struct cairn_err err = {0};
	snprintf(path, (size_t)2 * MAX_NAME, "%s%s", root, name);
	*ret = (struct candidate){.path = path};
	int rc = cairn_binary_open(path, &how, &ret->bin, &err);
	if (rc < 0) {
		snprintf(core->note, sizeof(core->note), "%s", err.msg);
		return rc == -ENOMEM ? rc : 0;
	}
	ret->bytes = elf_whole(binary_main(ret->bin), &ret->n);
	memcpy(&ret->eh, ret->bytes, sizeof(ret->eh));
	return 1;
}

/* The program's load address: AT_PHDR is the address of its headers. */
static bool place_program(const struct core *core, struct candidate *f)
{
	Elf64_Phdr ph;
	for (uint64_t i = 0; read_header(f, i, &ph); i++)
		if (ph.p_type == PT_LOAD && ph.p_offset <= f->eh.e_phoff &&
		    f->eh.e_phoff - ph.p_offset < ph.p_filesz) {
			f->bias = core->phdr - (f->eh.e_phoff - ph.p_offset) - ph.p_vaddr;
			return true;
		}
	return false;
}

static void read_program(struct candidate *f, struct program *ret)
{
	Elf64_Phdr ph;
	if (find_header(f, PT_DYNAMIC, &ph))
		ret->dynamic = f->bias + ph.p_vaddr;
	if (find_header(f, PT_INTERP, &ph) && has(f, ph.p_offset, ph.p_filesz) &&
	    ph.p_filesz < MAX_NAME)
		ret->loader = strndup((const char *)f->bytes + ph.p_offset, ph.p_filesz);
}

/*
 * One file by its name: below the sysroot, or without it; the program is often elsewhere than its
 * libraries.
 * @program  NULL: a library, whose @bias is known; else set
 */
static int add_file(struct core *core, const struct core_search *search, const char *name,
		    uint64_t bias, struct program *program, struct cairn_err *err)
{
	const char *const roots[] = {search->sysroot ? search->sysroot : "", ""};
	char path[2 * MAX_NAME];
	for (size_t i = 0; i < (search->sysroot ? 2 : 1); i++) {
		struct candidate f;
		int rc = open_candidate(core, search, roots[i], name, path, &f);
		if (rc < 0)
			return err_nomem(err, "a file of a core file");
		if (!rc)
			continue;
		f.bias = bias;
		bool is_that = (!program || place_program(core, &f)) && is_that_file(core, &f);
		if (is_that && program)
			read_program(&f, program);
		if (!is_that)
			snprintf(core->note, sizeof(core->note),
				 "%.200s: not the file that was mapped, or the core has nothing of "
				 "it",
				 path);
		rc = is_that ? add_segments(core, &f, err) : 0;
		cairn_binary_close(f.bin);
		if (rc < 0 || is_that) {
			core->note[0] = 0;
			return rc;
		}
	}
	return 0;
}

/* ---- the program, as the user names it ---- */

/* Whether the core says that it was another one. */
static const char *contradiction(const struct core *core, struct candidate *f)
{
	struct core_build_id id = {.n = 0};
	Elf64_Phdr ph, dynamic;
	uint64_t tag;
	size_t n;
	const uint8_t *own = cairn_binary_build_id(f->bin, &n);
	if (elf_machine(binary_main(f->bin)) != core->machine)
		return "of another architecture";
	if ((core->phnum && core->phnum != f->eh.e_phnum) ||
	    (core->entry && core->entry != f->bias + f->eh.e_entry))
		return "not the program of the core, which begins elsewhere";
	if (find_header(f, PT_LOAD, &ph) && !ph.p_offset &&
	    core_build_id_at(core, f->bias + ph.p_vaddr, &id) &&
	    (n != id.n || memcmp(own, id.bytes, n)))
		return "not the program of the core: its build-id is another one";
	if (find_header(f, PT_DYNAMIC, &dynamic) &&
	    core_read(core, f->bias + dynamic.p_vaddr, &tag, sizeof(tag)) &&
	    !is_dynamic_section(core, f))
		return "not the program of the core: its dynamic section is another one";
	return NULL;
}

/* A program that is not position-independent is where it says. */
static bool place_named(const struct core *core, struct candidate *f)
{
	if (core->phdr)
		return place_program(core, f);
	return f->eh.e_type == ET_EXEC;
}

/* The core's names for these addresses mean this file, so they are dropped. */
static void drop_files(struct core *core, struct candidate *f)
{
	Elf64_Phdr ph;
	for (uint64_t i = 0; read_header(f, i, &ph); i++) {
		uint64_t lo = f->bias + ph.p_vaddr, hi = lo + ph.p_memsz;
		size_t n = 0;
		if (ph.p_type != PT_LOAD)
			continue;
		for (size_t k = 0; k < core->files.n; k++)
			if (core->files.p[k].hi <= lo || core->files.p[k].lo >= hi)
				core->files.p[n++] = core->files.p[k];
		core->files.n = n;
	}
}

/* 1: it was taken; 0: not, and core->note says why; -ENOMEM. */
static int add_named(struct core *core, const struct core_search *search, struct program *program,
		     struct cairn_err *err)
{
	char path[2 * MAX_NAME];
	struct candidate f;
	int rc = open_candidate(core, search, "", search->program, path, &f);
	if (rc != 1)
		return rc < 0 ? err_nomem(err, "the program of a core file") : 0;
	const char *why = place_named(core, &f) ? contradiction(core, &f)
						: "the core does not record its address";
	if (why) {
		snprintf(core->note, sizeof(core->note), "%.200s: %s", search->program, why);
	} else {
		read_program(&f, program);
		drop_files(core, &f);
		rc = add_segments(core, &f, err);
		rc = rc < 0 ? rc : 1;
	}
	cairn_binary_close(f.bin);
	return why ? 0 : rc;
}

/* ---- the loader's list ---- */

static uint64_t first_link(const struct core *core, uint64_t dynamic)
{
	Elf64_Dyn d;
	uint64_t link = 0;
	for (uint64_t i = 0; dynamic && i < MAX_DYNAMIC &&
			     core_read(core, dynamic + i * sizeof(d), &d, sizeof(d)) && d.d_tag;
	     i++)
		if (d.d_tag == DT_DEBUG && core_read(core, d.d_un.d_ptr + 8, &link, sizeof(link)))
			return link;
	return 0;
}

static int add_libraries(struct core *core, const struct core_search *search,
			 const struct program *program, struct cairn_err *err)
{
	struct link link;
	uint64_t at = first_link(core, program->dynamic);
	int rc = 0;
	for (size_t i = 0;
	     rc == 0 && at && i < MAX_LOADED && core_read(core, at, &link, sizeof(link));
	     i++, at = link.next) {
		char *name = read_string(core, link.name);
		if (!name && program->loader)
			name = strdup(program->loader);
		/* The program and the vDSO have no name of a file here. */
		if (name && name[0] == '/')
			rc = add_file(core, search, name, link.bias, NULL, err);
		free(name);
	}
	return rc;
}

int core_add_loaded(struct core *core, const struct core_search *search, struct cairn_err *err)
{
	struct program program = {0};
	bool has_files = core->files.n;
	int rc = search->program ? add_named(core, search, &program, err) : 0;
	char *name = rc == 0 && !has_files && core->phdr && core->execfn && !core->note[0]
			     ? read_string(core, core->execfn)
			     : NULL;
	if (name && name[0])
		rc = add_file(core, search, name, 0, &program, err);
	else if (name)
		snprintf(core->note, sizeof(core->note), "the core has no name of its program");
	if (rc >= 0 && !has_files)
		rc = add_libraries(core, search, &program, err);
	free(program.loader);
	free(name);
	return rc < 0 ? rc : 0;
}

int core_open_all(const char *path, struct core_search *search, struct core **ret,
		  struct code_space **ret_space, struct cairn_err *err)
{
	int rc = core_open(path, ret, err);
	search->core = *ret;
	if (rc == 0)
		rc = core_add_loaded(*ret, search, err);
	return rc < 0 ? rc : code_space_open_core(search, ret_space, err);
}
