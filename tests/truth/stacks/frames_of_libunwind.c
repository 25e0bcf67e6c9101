/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For each line "attach PID" or "core PROGRAM CORE" of standard input: one line "frames " and JSON
 * {"tid": [pc, ...]}, by libunwind
 *
 * Processes by libunwind-ptrace; a thread that was stopped by a signal stays so, by PTRACE_SEIZE.
 * Of cores registers and memory are handed to libunwind here: its own libunwind-coredump finds no
 * rows for code that is not in a file's first segment.
 */
#define UNW_REMOTE_ONLY
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <libunwind-ptrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THREADS = 256, MAX_FRAMES = 200000 };

static const char *between = "";

static void walk(int tid, unw_addr_space_t space, void *arg)
{
	unw_cursor_t cursor;
	unw_word_t pc;
	printf("%s\"%d\": [", between, tid);
	between = ", ";
	if (unw_init_remote(&cursor, space, arg) == 0) {
		int n = 0;
		do {
			if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0)
				break;
			printf("%s%lu", n ? ", " : "", (unsigned long)pc);
		} while (++n < MAX_FRAMES && unw_step(&cursor) > 0);
	}
	printf("]");
}

static int seize_all(int pid, int *tids)
{
	char path[64];
	int n = 0, status;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && n < MAX_THREADS && (e = readdir(dir)) != NULL;) {
		int tid = atoi(e->d_name);
		if (tid && ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 &&
		    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
			tids[n++] = tid;
	}
	if (dir)
		closedir(dir);
	for (int i = 0; i < n; i++)
		waitpid(tids[i], &status, __WALL);
	return n;
}

static void of_process(int pid)
{
	int tids[MAX_THREADS], n = seize_all(pid, tids);
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	for (int i = 0; i < n; i++) {
		void *arg = _UPT_create(tids[i]);
		walk(tids[i], space, arg);
		_UPT_destroy(arg);
	}
	unw_destroy_addr_space(space);
	for (int i = 0; i < n; i++)
		ptrace(PTRACE_DETACH, tids[i], NULL, NULL);
}

/* ---- cores ---- */

/*
 * A core with everything that was mapped (coredump_filter 0x7f), which is what the search for rows
 * reads.
 */
struct core {
	const char *bytes;
	size_t size;
	const Elf64_Ehdr *eh;
	const Elf64_Phdr *ph;
	uint64_t vdso;
	const uint64_t *files; /* of NT_FILE: from, to, offset */
	uint64_t n_files;
	const struct elf_prstatus *threads[MAX_THREADS];
	int n_threads;
	const struct elf_prstatus *now;
};

/* NULL: it is not there. */
static const void *memory_at(const struct core *c, uint64_t at, uint64_t n)
{
	for (int i = 0; i < c->eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &c->ph[i];
		if (ph->p_type == PT_LOAD && at >= ph->p_vaddr &&
		    at - ph->p_vaddr + n <= ph->p_filesz)
			return c->bytes + ph->p_offset + (at - ph->p_vaddr);
	}
	return NULL;
}

static void read_notes(struct core *c, const char *p, const char *end)
{
	while (end - p >= (long)sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)p;
		const char *desc = p + sizeof(*note) + ((note->n_namesz + 3) & ~3u);
		if (note->n_type == NT_PRSTATUS && c->n_threads < MAX_THREADS)
			c->threads[c->n_threads++] = (const struct elf_prstatus *)desc;
		if (note->n_type == NT_FILE) {
			c->n_files = *(const uint64_t *)desc;
			c->files = (const uint64_t *)desc + 2;
		}
		for (const uint64_t *aux = (const uint64_t *)desc;
		     note->n_type == NT_AUXV && aux[0]; aux += 2)
			if (aux[0] == AT_SYSINFO_EHDR)
				c->vdso = aux[1];
		p = desc + ((note->n_descsz + 3) & ~3u);
	}
}

/* Where the ELF header is of what is mapped at @at; 0. */
static uint64_t base_of(const struct core *c, uint64_t at)
{
	uint64_t first = 0;
	for (uint64_t i = 0; i < c->n_files; i++) {
		const uint64_t *f = c->files + i * 3;
		if (f[2] == 0)
			first = f[0];
		if (at >= f[0] && at < f[1])
			return first;
	}
	return at >= c->vdso && at < c->vdso + 8192 ? c->vdso : 0;
}

/* .eh_frame_hdr with a table of pairs of 4 bytes, as linkers write it. */
static bool find_table(const struct core *c, uint64_t base, unw_word_t ip, unw_dyn_info_t *ret)
{
	const Elf64_Ehdr *eh = memory_at(c, base, sizeof(*eh));
	const Elf64_Phdr *ph =
		eh ? memory_at(c, base + eh->e_phoff, eh->e_phnum * sizeof(*ph)) : NULL;
	uint64_t bias = 0;
	for (int i = 0; ph && i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && !ph[i].p_offset)
			bias = base - ph[i].p_vaddr;
	for (int i = 0; ph && i < eh->e_phnum; i++) {
		uint64_t at = bias + ph[i].p_vaddr;
		const uint8_t *head = ph[i].p_type == PT_GNU_EH_FRAME ? memory_at(c, at, 12) : NULL;
		if (!head || head[0] != 1 || head[2] != 3 || head[3] != 0x3b)
			continue;
		*ret = (unw_dyn_info_t){
			.start_ip = ip, .end_ip = ip + 1, .format = UNW_INFO_FORMAT_REMOTE_TABLE};
		ret->u.rti.segbase = at;
		ret->u.rti.table_data = at + 12;
		ret->u.rti.table_len = *(const uint32_t *)(head + 8) * 8 / sizeof(unw_word_t);
		return true;
	}
	return false;
}

int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *,
				       unw_proc_info_t *, int, void *);

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *ret, int need,
			  void *arg)
{
	unw_dyn_info_t table;
	uint64_t base = base_of(arg, ip);
	if (!base || !find_table(arg, base, ip, &table))
		return -UNW_ENOINFO;
	return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, ret, need, arg);
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	(void)space;
	(void)arg;
	free(info->unwind_info);
	info->unwind_info = NULL;
}

static int no_dyn_info(unw_addr_space_t space, unw_word_t *ret, void *arg)
{
	(void)space;
	(void)ret;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t at, unw_word_t *ret, int write, void *arg)
{
	(void)space;
	const void *p = write ? NULL : memory_at(arg, at, sizeof(*ret));
	if (!p)
		return -UNW_EINVAL;
	memcpy(ret, p, sizeof(*ret));
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *ret, int write,
		      void *arg)
{
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip in struct user_regs_struct */
	static const int user[17] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
	(void)space;
	const struct core *c = arg;
	if (write || reg < 0 || reg > 16)
		return -UNW_EBADREG;
	*ret = c->now->pr_reg[user[reg]];
	return 0;
}

static int no_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *ret, int write,
		    void *arg)
{
	(void)space;
	(void)reg;
	(void)ret;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static void of_core(const char *path)
{
	static unw_accessors_t how = {.find_proc_info = find_proc_info,
				      .put_unwind_info = put_unwind_info,
				      .get_dyn_info_list_addr = no_dyn_info,
				      .access_mem = access_mem,
				      .access_reg = access_reg,
				      .access_fpreg = no_fpreg};
	struct core c = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	c.size = (size_t)st.st_size;
	c.bytes = mmap(NULL, c.size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (c.bytes == MAP_FAILED)
		return;
	c.eh = (const Elf64_Ehdr *)c.bytes;
	c.ph = (const Elf64_Phdr *)(c.bytes + c.eh->e_phoff);
	for (int i = 0; i < c.eh->e_phnum; i++)
		if (c.ph[i].p_type == PT_NOTE)
			read_notes(&c, c.bytes + c.ph[i].p_offset,
				   c.bytes + c.ph[i].p_offset + c.ph[i].p_filesz);
	unw_addr_space_t space = unw_create_addr_space(&how, 0);
	for (int i = 0; i < c.n_threads; i++) {
		c.now = c.threads[i];
		walk(c.now->pr_pid, space, &c);
	}
	unw_destroy_addr_space(space);
	munmap((void *)(uintptr_t)c.bytes, c.size);
}

int main(void)
{
	char line[4096], first[16], second[2048], third[2048];
	while (fgets(line, sizeof(line), stdin)) {
		int n = sscanf(line, "%15s %2047s %2047s", first, second, third);
		between = "";
		printf("frames {");
		if (n == 2 && !strcmp(first, "attach"))
			of_process(atoi(second));
		if (n == 3 && !strcmp(first, "core"))
			of_core(third);
		printf("}\n");
		fflush(stdout);
	}
	return 0;
}
