/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening an ELF file
 *
 * The file is mapped, never read: opening a vmlinux of 590 MB touches its header, its section
 * headers and its build-id note. libelf decodes the headers. Before it may, header() checks the
 * counts and offsets that libelf would size its tables by, because a count of 2^40 sections must
 * give a sentence and not an allocation; so every message can also name the offset.
 *
 * The checks, and when they are made:
 *
 *	at open    ELF header, section headers, names, loaded sections and segments
 *	at use     everything else: debug sections, symbol tables, relocations
 *
 * so that a damaged section which is never read does no harm.
 *
 * All tables are made at open and the libelf handle is closed again: libelf handles are not for
 * several threads, our tables are read-only.
 */
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/text.h>

#include "elf/compress.h"
#include "base/inputs.h"
#include "elf/elf_impl.h"
#include "elf/guard.h"
#include "elf/note.h"
#include "elf/relocate.h"
#include "elf/section_raw.h"
#include "elf/segments.h"

/*
 * More than the largest relocatable files have (about 1,000,000 with one section per function and
 * link-time optimisation); our table of that many sections takes 1 GB.
 */
#define MAX_SECTIONS (4u << 20)

/* The fields of the ELF header that say where the other headers are. */
struct header {
	uint16_t type, machine;
	uint64_t phoff, shoff;
	uint16_t phentsize, shentsize;
	uint64_t phnum, shnum;
};

static int not_elf(const struct elf *e, struct cairn_err *err)
{
	static const struct {
		size_t off, n;
		const char *magic, *what;
	} kinds[] = {
		{0, 6,
		 "\xfd"
		 "7zXZ\0",
		 "compressed with xz; decompress it first"},
		{0, 2, "\x1f\x8b", "compressed with gzip; decompress it first"},
		{0, 4, "\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"},
		{0, 8, "!<arch>\n", "an archive; extract its members first"},
		{0, 2, "#!", "a script; name its interpreter instead"},
		{0x202, 4, "HdrS", "a kernel boot image; the vmlinux it was made from is needed"},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (e->size >= kinds[i].off + kinds[i].n &&
		    !memcmp(e->bytes + kinds[i].off, kinds[i].magic, kinds[i].n))
			return err_set(err, -EBADMSG, "%s: not an ELF file but %s", e->path,
				       kinds[i].what);
	return err_set(err, -EBADMSG, "%s: not an ELF file (does not begin with 7f 45 4c 46)",
		       e->path);
}

static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_386:
		return "32-bit x86";
	case EM_ARM:
		return "32-bit Arm";
	case EM_AARCH64:
		return "arm64";
	case EM_PPC64:
		return "ppc64";
	case EM_S390:
		return "s390";
	case EM_RISCV:
		return "RISC-V";
	case EM_MIPS:
		return "MIPS";
	case EM_LOONGARCH:
		return "LoongArch";
	case EM_SPARCV9:
		return "sparc64";
	case EM_BPF:
		return "BPF";
	default:
		return "an unknown architecture";
	}
}

static int check_kind(const struct elf *e, const struct header *h, struct cairn_err *err)
{
	const uint8_t *ident = e->bytes;
	if (ident[EI_CLASS] == ELFCLASS32)
		return err_set(err, -EOPNOTSUPP,
			       "%s: a 32-bit ELF file; only x86-64 and arm64 are supported",
			       e->path);
	if (ident[EI_DATA] == ELFDATA2MSB)
		return err_set(err, -EOPNOTSUPP,
			       "%s: a big-endian ELF file; only x86-64 and arm64 are supported",
			       e->path);
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -EBADMSG,
			       "%s: ELF header+0x4: class %u, data %u; expected 2, 1", e->path,
			       ident[EI_CLASS], ident[EI_DATA]);
	if (ident[EI_VERSION] != EV_CURRENT)
		return err_set(err, -EBADMSG, "%s: ELF header+0x6: version %u; expected 1", e->path,
			       ident[EI_VERSION]);
	if (h->machine != EM_X86_64 && h->machine != EM_AARCH64 &&
	    !(e->for_types && h->machine == EM_BPF))
		return err_set(err, -EOPNOTSUPP,
			       "%s: for %s (machine %u); only x86-64 and arm64 are supported",
			       e->path, machine_name(h->machine), h->machine);
	if (h->type == ET_CORE)
		return err_set(err, -EOPNOTSUPP, "%s: a core file, not a binary", e->path);
	if (h->type != ET_REL && h->type != ET_EXEC && h->type != ET_DYN)
		return err_set(err, -EBADMSG,
			       "%s: ELF header+0x10: type %u; expected 1 (relocatable), 2 "
			       "(executable) or 3 (shared object)",
			       e->path, h->type);
	return 0;
}

/* A table of @n headers of @size bytes at @off must lie in the file. */
static int check_table(const struct elf *e, const char *what, uint64_t off, uint64_t n,
		       unsigned int size, unsigned int expected_size, struct cairn_err *err)
{
	if (!n)
		return 0;
	if (size != expected_size)
		return err_set(err, -EBADMSG, "%s: %s headers are of %s; expected %u", e->path,
			       what, cairn_counted(size, "byte").text, expected_size);
	if (off > e->size || n > (e->size - off) / expected_size)
		return err_set(err, -EBADMSG,
			       "%s: %" PRIu64 " %s headers at offset 0x%" PRIx64
			       " end after the end of the file, 0x%zx; is it truncated?",
			       e->path, n, what, off, e->size);
	return 0;
}

/* Counts that do not fit the header are in section header 0: sh_size and sh_info. */
static int extended_counts(const struct elf *e, struct header *h, struct cairn_err *err)
{
	if (!h->shoff) {
		h->shnum = 0;
		return 0;
	}
	if (h->shnum && h->phnum != PN_XNUM)
		return 0;
	int r = check_table(e, "section", h->shoff, 1, h->shentsize, sizeof(Elf64_Shdr), err);
	if (r < 0)
		return r;
	struct cursor_src src = {e->path, "section header 0", e->bytes + h->shoff};
	struct cursor c = cursor_of(&src, src.base, sizeof(Elf64_Shdr), false, err);
	cur_skip(&c, offsetof(Elf64_Shdr, sh_size));
	uint64_t size = cur_u64(&c);
	cur_skip(&c, sizeof(Elf64_Word));
	uint32_t info = cur_u32(&c);
	if (!h->shnum)
		h->shnum = size;
	if (h->phnum == PN_XNUM)
		h->phnum = info;
	return 0;
}

static int header(struct elf *e, struct header *ret, struct cairn_err *err)
{
	if (e->size < SELFMAG || memcmp(e->bytes, ELFMAG, SELFMAG))
		return not_elf(e, err);
	struct cursor_src src = {e->path, "ELF header", e->bytes};
	struct cursor c = cursor_of(&src, e->bytes, e->size, false, err);
	struct header h = {0};
	cur_skip(&c, EI_NIDENT);
	h.type = cur_u16(&c);
	h.machine = cur_u16(&c);
	cur_skip(&c, 4 + 8); /* e_version, e_entry */
	h.phoff = cur_u64(&c);
	h.shoff = cur_u64(&c);
	cur_skip(&c, 4 + 2); /* e_flags, e_ehsize */
	h.phentsize = cur_u16(&c);
	h.phnum = cur_u16(&c);
	h.shentsize = cur_u16(&c);
	h.shnum = cur_u16(&c);
	cur_u16(&c); /* e_shstrndx */
	if (c.failed)
		return -EBADMSG;
	int r = check_kind(e, &h, err);
	if (r < 0)
		return r;
	if ((r = extended_counts(e, &h, err)) < 0)
		return r;
	if ((r = check_table(e, "section", h.shoff, h.shnum, h.shentsize, sizeof(Elf64_Shdr),
			     err)) < 0)
		return r;
	if ((r = check_table(e, "program", h.phoff, h.phnum, h.phentsize, sizeof(Elf64_Phdr),
			     err)) < 0)
		return r;
	if (h.shnum > MAX_SECTIONS)
		return err_set(err, -ERANGE, "%s: %" PRIu64 " sections; the limit is %u", e->path,
			       h.shnum, MAX_SECTIONS);
	*ret = h;
	return 0;
}

static int libelf_failed(const struct elf *e, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: %s", e->path, what, elf_errmsg(-1));
}

/* The names of all sections end in the table, because its last byte is NUL. */
static int section_names(struct elf *e, Elf *lib, const uint64_t *name_offs, struct cairn_err *err)
{
	size_t strndx;
	if (elf_getshdrstrndx(lib, &strndx) < 0)
		return libelf_failed(e, "section of the section names", err);
	const uint8_t *names = NULL;
	uint64_t size = 0;
	if (strndx != SHN_UNDEF) {
		if (!section_is(e, strndx, SHT_STRTAB))
			return err_set(err, -EBADMSG,
				       "%s: ELF header+0x3e: section names are in section %zu, "
				       "which is not a string table",
				       e->path, strndx);
		int r = section_raw(e, strndx, &names, err);
		if (r < 0)
			return r;
		size = e->sections[strndx].file_size;
	}
	if (size && names[size - 1])
		return err_set(err, -EBADMSG, "%s: section %zu (section names): no NUL at its end",
			       e->path, strndx);
	for (size_t i = 0; i < e->n_sections; i++) {
		if (size && name_offs[i] >= size)
			return err_set(err, -EBADMSG,
				       "%s: section %zu: its name is at 0x%" PRIx64
				       " of a table of 0x%" PRIx64 " bytes",
				       e->path, i, name_offs[i], size);
		const char *name = size ? (const char *)names + name_offs[i] : "";
		e->sections[i].file.name = name;
		e->sections[i].file.src = (struct cursor_src){e->path, name, NULL};
	}
	return 0;
}

static int read_sections(struct elf *e, Elf *lib, size_t n, struct cairn_err *err)
{
	if (!n)
		return 0;
	e->sections = arena_array(&e->arena, n, sizeof(*e->sections));
	uint64_t *name_offs = arena_array(&e->arena, n, sizeof(*name_offs));
	if (!e->sections || !name_offs)
		return err_nomem(err, "section headers");
	e->n_sections = n;
	for (size_t i = 0; i < n; i++) {
		GElf_Shdr sh;
		Elf_Scn *scn = elf_getscn(lib, i);
		if (!scn || !gelf_getshdr(scn, &sh))
			return libelf_failed(e, "section headers", err);
		struct section *s = &e->sections[i];
		name_offs[i] = sh.sh_name;
		s->file.type = sh.sh_type;
		s->file.flags = sh.sh_flags;
		s->file.addr.v = sh.sh_addr;
		s->file.foff.v = sh.sh_offset;
		s->file.size = s->file_size = sh.sh_size;
		s->entsize = sh.sh_entsize;
		s->align = sh.sh_addralign;
		s->link = sh.sh_link;
		s->info = sh.sh_info;
		s->first_rela = s->next_rela = NO_SECTION;
	}
	/* Section 0 only carries extended counts; its size is no size. */
	e->sections[0].file.type = SHT_NULL;
	e->sections[0].file.flags = 0;
	e->sections[0].file.size = e->sections[0].file_size = 0;
	uint32_t symtab = section_of_type(e, SHT_SYMTAB);
	e->has_symtab = symtab != NO_SECTION && e->sections[symtab].file_size;
	return section_names(e, lib, name_offs, err);
}

/* Chain relocation sections to the section they change. Backwards, so that chains run forwards. */
static int link_relocations(struct elf *e, struct cairn_err *err)
{
	if (e->type != ET_REL)
		return 0; /* vmlinux keeps its .rela sections, and they are already applied */
	for (size_t i = e->n_sections; i-- > 0;) {
		struct section *s = &e->sections[i];
		if (s->file.type != SHT_RELA && s->file.type != SHT_REL)
			continue;
		if (s->info >= e->n_sections)
			return err_set(err, -EBADMSG,
				       "%s: %s: relocates section %u, and there are only %zu",
				       e->path, s->file.name, s->info, e->n_sections);
		struct section *target = &e->sections[s->info];
		s->next_rela = target->first_rela;
		target->first_rela = i;
	}
	return 0;
}

static int read_segments(struct elf *e, Elf *lib, size_t n, struct cairn_err *err)
{
	struct segment_header *loads = arena_array(&e->arena, n, sizeof(*loads));
	e->loads = arena_array(&e->arena, n, sizeof(*e->loads));
	if (!loads || !e->loads)
		return err_nomem(err, "program headers");
	size_t n_loads = 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(lib, i, &ph))
			return libelf_failed(e, "program headers", err);
		if (ph.p_type == PT_TLS)
			e->thread_block =
				(struct elf_thread_block){ph.p_vaddr, ph.p_memsz, ph.p_align};
		if (ph.p_type != PT_LOAD)
			continue;
		e->loads[e->n_loads++] =
			(struct elf_load){ph.p_vaddr, ph.p_memsz, ph.p_flags, ph.p_offset,
					  e->debug_only ? 0 : ph.p_filesz};
		if (!ph.p_filesz)
			continue;
		loads[n_loads++] = (struct segment_header){ph.p_vaddr, ph.p_offset, ph.p_filesz};
	}
	return elf_set_segments(e, loads, n_loads, err);
}

/* A file that lost its checksums still has the section that makes it a sidecar. */
static bool is_sidecar(const struct elf *e)
{
	for (size_t i = 0; i < e->n_sections; i++)
		if (!strcmp(e->sections[i].file.name, SIDECAR_HEADER))
			return true;
	return false;
}

/* objcopy --only-keep-debug keeps the headers of the code and makes it SHT_NOBITS. */
static bool has_code_without_bytes(const struct elf *e)
{
	bool any = false;
	for (size_t i = 0; i < e->n_sections; i++) {
		if (!(e->sections[i].file.flags & SHF_EXECINSTR))
			continue;
		if (e->sections[i].file.type != SHT_NOBITS)
			return false;
		any = true;
	}
	return any;
}

/* For a relocatable file: sections of code, at their assigned addresses. */
static int load_sections(struct elf *e, struct cairn_err *err)
{
	e->loads = arena_array(&e->arena, e->n_by_addr, sizeof(*e->loads));
	if (!e->loads)
		return err_nomem(err, "sections of code");
	for (size_t i = 0; i < e->n_by_addr; i++) {
		const struct section *s = &e->sections[e->by_addr[i]];
		if (s->file.flags & SHF_EXECINSTR)
			e->loads[e->n_loads++] = (struct elf_load){
				s->file.addr.v, s->file_size, PF_R | PF_X, s->file.foff.v,
				s->file.type == SHT_NOBITS ? 0 : s->file_size};
	}
	return 0;
}

static int read_headers(struct elf *e, Elf *lib, const struct header *h, struct cairn_err *err)
{
	int r = read_sections(e, lib, h->shnum, err);
	if (r < 0)
		return r;
	e->debug_only = has_code_without_bytes(e);
	e->lacks_checksums = !e->guard && is_sidecar(e);
	e->phoff = h->phoff;
	e->ph_size = h->phnum * sizeof(Elf64_Phdr);
	if ((r = link_relocations(e, err)) < 0)
		return r;
	if (e->type == ET_REL && (r = elf_lay_out(e, err)) < 0)
		return r;
	if ((r = elf_index_sections(e, err)) < 0)
		return r;
	if (e->type == ET_REL && (r = load_sections(e, err)) < 0)
		return r;
	if (e->type != ET_REL && (r = read_segments(e, lib, h->phnum, err)) < 0)
		return r;
	return elf_find_build_id(e, err);
}

/*
 * Bytes that need neither decompression nor relocation nor a look at checksums are ready from the
 * start.
 */
static void borrow_sections(struct elf *e)
{
	if (e->guard || e->lacks_checksums)
		return;
	for (size_t i = 0; i < e->n_sections; i++) {
		struct section *s = &e->sections[i];
		const uint8_t *bytes;
		if (section_raw(e, i, &bytes, NULL) < 0 || section_is_compressed(e, i) ||
		    section_needs_relocation(e, i))
			continue;
		s->file.data = s->file.src.base = bytes;
		s->ready = s->file;
		s->is_ready = true;
	}
}

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

static int parse(struct elf *e, struct cairn_err *err)
{
	struct header h = {0};
	int r = guard_open(e->bytes, e->size, e->path, &e->guard, err);
	if (r == 0)
		r = header(e, &h, err);
	if (r < 0)
		return r;
	if (e->guard && !guard_check(e->guard, e->bytes + h.shoff, h.shnum * sizeof(Elf64_Shdr)))
		return guard_verdict(e->guard, e->path, err);
	e->type = h.type;
	e->machine = h.machine;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, init_libelf);
	/* libelf wants a pointer to non-const and writes nothing in a handle that only reads. */
	Elf *lib = elf_memory((char *)(uintptr_t)e->bytes, e->size);
	if (!lib)
		return libelf_failed(e, "ELF header", err);
	r = read_headers(e, lib, &h, err);
	elf_end(lib);
	if (r == 0)
		borrow_sections(e);
	return r;
}

/* @st is of the file that the bytes are mapped from, NULL: they are the caller's. */
static int open_bytes(const void *bytes, size_t size, const struct stat *st, const char *name,
		      bool for_types, struct elf **ret, struct cairn_err *err)
{
	struct elf *e = calloc(1, sizeof(*e));
	if (!e) {
		if (st)
			input_unmap(bytes, size);
		return err_nomem(err, "an ELF file");
	}
	arena_init(&e->arena);
	arena_init(&e->names);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->no_longer_busy, NULL);
	e->n_owners = 1;
	e->bytes = bytes;
	e->size = size;
	e->mapped = st;
	e->for_types = for_types;
	if (st)
		e->origin = (struct elf_origin){st->st_dev, st->st_ino, st->st_uid,
						true,       size,       st->st_ctim};
	e->path = arena_strdup(&e->arena, name);
	int r = e->path ? parse(e, err) : err_nomem(err, "a path");
	if (r < 0) {
		elf_unref(e);
		return r;
	}
	*ret = e;
	return 0;
}

int elf_open_mem(const void *bytes, size_t size, const char *name, struct elf **ret,
		 struct cairn_err *err)
{
	return open_bytes(bytes, size, NULL, name, false, ret, err);
}

static int open_fd(int fd, const char *name, bool for_types, struct elf **ret,
		   struct cairn_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int code = -errno;
		return err_set(err, code, "%s: %s", name, strerror(-code));
	}
	if (S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "%s: a directory, not an ELF file", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "%s: not a regular file", name);
	if (!st.st_size)
		return err_set(err, -EBADMSG, "%s: not an ELF file: it is empty", name);
	void *bytes = input_map(fd, (size_t)st.st_size, name);
	if (!bytes) {
		int code = -errno;
		return err_set(err, code, "%s: cannot map %jd bytes: %s", name,
			       (intmax_t)st.st_size, strerror(-code));
	}
	return open_bytes(bytes, st.st_size, &st, name, for_types, ret, err);
}

int elf_open_fd(int fd, const char *name, struct elf **ret, struct cairn_err *err)
{
	return open_fd(fd, name, false, ret, err);
}

int elf_open_fd_for_types(int fd, const char *name, struct elf **ret, struct cairn_err *err)
{
	return open_fd(fd, name, true, ret, err);
}

const uint8_t *elf_whole(const struct elf *e, size_t *ret_size)
{
	*ret_size = e->size;
	return e->bytes;
}

void elf_release(const struct elf *e, const uint8_t *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p & -page;
	uintptr_t to = ((uintptr_t)p + n + page - 1) & -page, start = (uintptr_t)e->bytes;
	if (!e->mapped || !n || (uintptr_t)p < start || (uintptr_t)p + n > start + e->size)
		return;
	madvise((void *)from, to - from, MADV_DONTNEED);
}

struct elf *elf_ref(struct elf *e)
{
	atomic_fetch_add_explicit(&e->n_owners, 1, memory_order_relaxed);
	return e;
}

void elf_unref(struct elf *e)
{
	if (!e || atomic_fetch_sub_explicit(&e->n_owners, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < e->n_sections; i++)
		free(e->sections[i].bytes);
	free(e->symbols);
	guard_close(e->guard);
	arena_fini(&e->names);
	arena_fini(&e->arena);
	pthread_cond_destroy(&e->no_longer_busy);
	pthread_mutex_destroy(&e->lock);
	if (e->mapped)
		input_unmap(e->bytes, e->size);
	free(e);
}

const char *elf_shortened(const struct elf *e)
{
	return e->mapped ? input_shortened(e->bytes) : NULL;
}

const char *elf_path(const struct elf *e)
{
	return e->path;
}

struct guard *elf_guard(const struct elf *e)
{
	return e->guard;
}

const struct elf_origin *elf_origin(const struct elf *e)
{
	return &e->origin;
}

bool elf_is_relocatable(const struct elf *e)
{
	return e->type == ET_REL;
}

uint16_t elf_machine(const struct elf *e)
{
	return e->machine;
}

int elf_need_x86_64(const struct elf *e, const char *what, struct cairn_err *err)
{
	if (e->machine == EM_X86_64)
		return 0;
	return err_set(err, -EOPNOTSUPP, "%s: for %s; %s of x86-64 only", e->path,
		       machine_name(e->machine), what);
}

const uint8_t *elf_build_id(const struct elf *e, size_t *ret_len)
{
	*ret_len = e->build_id_len;
	return e->build_id;
}
