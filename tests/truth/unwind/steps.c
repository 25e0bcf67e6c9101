/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every instruction of a running program, unwound one frame and compared with what really happened
 *
 *	steps SEED WINDOWS STEPS FRESH FUNCTIONS INSTRUCTIONS COMMAND...
 *
 * The program runs; at random times it is single-stepped for STEPS instructions, WINDOWS times, or fewer when FUNCTIONS functions
 * and INSTRUCTIONS instructions have been seen. A window that shows no new function any more ends early: another time shows more. From its calls and returns, seen as changes of the
 * stack pointer, a shadow stack is kept:
 *
 *	call	rsp falls by 8 and the word there is the address behind the call: a frame begins, and its caller's registers
 *		are those before the call
 *	return	rsp is at or above the frame's CFA: it is over, and all above it too (longjmp, exceptions)
 *	signal	the handler begins: the frame outside of its trampoline is what was interrupted
 *
 *	move	libffi's calls put their return address elsewhere, and return from there with another stack pointer than their
 *		caller had: what the row says first has to be what happens
 *	longjmp	glibc's says that the caller of its last instructions is where it jumps to: remembered, and compared there
 *
 * At every instruction of a frame whose call was seen, the rule of the unwind table is applied to the registers. The result has to
 * be the caller's pc, stack pointer and callee-saved registers, those that the ABI lets the callee change and it has to
 * restore. Nothing of the unwinder is used to find out what is right.
 *
 * A function is where a call leads, by file and address in it, behind a procedure linkage table's entry; its first call may go on
 * to the dynamic linker, which binds it.
 *
 * A function that is called once in a second is not met at random times. So behind those windows, where FRESH says how many, the program
 * runs on until it calls one that was not seen before (a breakpoint at the beginning of each FDE), and is stepped from there. Only the main
 * thread is traced: this is for programs whose other threads do nothing new.
 *
 * Output: one line "counts ..." of totals, and a line "wrong ..." for each different place where a rule is.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/unwind.h>

enum { RBX = 3, RBP = 6, RSP = 7, MAX_DEPTH = 1 << 16, MAX_FILES = 256, MAX_MAPS = 4096, SEEN = 1 << 18, FRESH_STEPS = 300, NEW_MS = 4000 };

/* rbx, rbp, r12 to r15: psABI, figure 3.4 */
static const unsigned int kept[] = {RBX, RBP, 12, 13, 14, 15};
enum { N_KEPT = sizeof(kept) / sizeof(kept[0]) };

/* The beginning of a function that was not called yet. */
struct entry {
	uint64_t off; /* in the file */
	uint8_t byte; /* where there is a breakpoint: what was there */
	bool is_planted;
};

struct file {
	char path[512];
	struct entry *entries; /* by offset */
	size_t n_entries;
	struct cairn_binary *bin;
	struct cairn_unwind *table;
};

struct map {
	uint64_t lo, hi, off;
	struct file *file; /* NULL: no file */
};

/* A frame whose beginning was seen. */
struct frame {
	uint64_t ret_addr, cfa, saved[N_KEPT];
	bool is_moved;	 /* it has put its return address elsewhere: cfa is what the row says, and what its return is compared with */
	bool is_handler; /* entered by a signal: what was interrupted is compared, two steps out */
	struct cairn_regs interrupted;
};

struct run {
	pid_t pid;
	bool is_stopped; /* it was seized running */
	struct file files[MAX_FILES];
	size_t n_files;
	struct map maps[MAX_MAPS];
	size_t n_maps;
	struct frame *frames;
	size_t depth;
	uint64_t n_steps, n_unknown, n_right, n_undescribed, n_wrong, n_functions, n_signals, n_bound, n_jumps, n_epilogues, n_fresh;
	uint64_t new_at_step; /* when the last new function was seen */
	bool is_called;	      /* the last call has not arrived behind its entry of a linkage table yet */
	const struct file *linked_from; /* whose entry it is in; NULL: in none */
	struct cairn_regs promise; /* where longjmp is about to go */
	const struct file *promise_file;
	struct cairn_vaddr promised_at;
	int memory; /* /proc/PID/mem */
	uint64_t functions[SEEN], wrongs[SEEN]; /* sets by address */
};

static void die(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(2);
}

static bool read_target(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	const struct run *r = ctx;
	struct iovec here = {ret, n}, there = {(void *)(uintptr_t)at.v, n};
	return process_vm_readv(r->pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* ---- what is mapped ---- */

static struct file *file_of(struct run *r, const char *path)
{
	struct cairn_err err = {0};
	for (size_t i = 0; i < r->n_files; i++)
		if (strcmp(r->files[i].path, path) == 0)
			return &r->files[i];
	if (r->n_files == MAX_FILES)
		return NULL;
	struct file *f = &r->files[r->n_files++];
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (cairn_binary_open(path, NULL, &f->bin, &err) < 0 || cairn_unwind_make(f->bin, 0, &f->table, &err) < 0)
		fprintf(stderr, "steps: %s\n", err.msg);
	return f;
}

static void read_maps(struct run *r)
{
	char name[64], line[1024], path[512], perms[8];
	snprintf(name, sizeof(name), "/proc/%d/maps", r->pid);
	FILE *f = fopen(name, "r");
	if (!f)
		die(name);
	r->n_maps = 0;
	while (fgets(line, sizeof(line), f) && r->n_maps < MAX_MAPS) {
		struct map *m = &r->maps[r->n_maps];
		path[0] = 0;
		int n = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]", &m->lo, &m->hi, perms, &m->off,
			       path);
		if (n < 4 || perms[2] != 'x')
			continue;
		m->file = path[0] == '/' ? file_of(r, path) : NULL;
		r->n_maps++;
	}
	fclose(f);
}

static const struct map *map_of(const struct run *r, uint64_t at)
{
	for (size_t i = 0; i < r->n_maps; i++)
		if (at >= r->maps[i].lo && at < r->maps[i].hi)
			return &r->maps[i];
	return NULL;
}

/* The rule for an address, and its file; NULL where no file or table is. */
static const struct cairn_unwind_rule *rule_at(struct run *r, uint64_t at, const struct file **ret_file,
					       struct cairn_vaddr *ret_at)
{
	const struct map *m = map_of(r, at);
	if (!m) {
		read_maps(r);
		m = map_of(r, at);
	}
	*ret_file = m ? m->file : NULL;
	if (!*ret_file || !(*ret_file)->table ||
	    !cairn_binary_vaddr((*ret_file)->bin, (struct cairn_foff){at - m->lo + m->off}, ret_at))
		return NULL;
	return cairn_unwind_find((*ret_file)->table, *ret_at);
}

/* True when @key was not in the set. */
static bool add_to_set(uint64_t *set, uint64_t key)
{
	for (uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 46;; h = (h + 1) % SEEN) {
		if (set[h] == key)
			return false;
		if (!set[h]) {
			set[h] = key;
			return true;
		}
	}
}

static bool is_in_set(const uint64_t *set, uint64_t key)
{
	for (uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 46; set[h]; h = (h + 1) % SEEN)
		if (set[h] == key)
			return true;
	return false;
}

/* ---- functions that were not called yet ---- */

static int by_off(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* .eh_frame_hdr: version 1, then encodings; pairs of 4 bytes relative to the section, as linkers write it. */
static void read_entries(struct file *f, const uint8_t *bytes, const Elf64_Phdr *ph)
{
	const uint8_t *hdr = bytes + ph->p_offset;
	struct cairn_foff off;
	uint32_t n;
	memcpy(&n, hdr + 8, sizeof(n));
	if (hdr[0] != 1 || hdr[2] != 3 || hdr[3] != 0x3b)
		return;
	f->entries = calloc(n + 1, sizeof(*f->entries));
	for (uint32_t i = 0; f->entries && i < n; i++) {
		int32_t at;
		memcpy(&at, hdr + 12 + i * 8, sizeof(at));
		if (cairn_binary_foff(f->bin, (struct cairn_vaddr){ph->p_vaddr + (uint64_t)(int64_t)at}, &off))
			f->entries[f->n_entries++].off = off.v;
	}
	qsort(f->entries, f->n_entries, sizeof(*f->entries), by_off);
}

static void find_entries(struct file *f)
{
	struct stat st;
	int fd = open(f->path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || !f->bin || f->entries)
		return;
	const uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return;
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)bytes;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(bytes + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			read_entries(f, bytes, &ph[i]);
	munmap((void *)(uintptr_t)bytes, (size_t)st.st_size);
}

static uint64_t key_of(const struct run *r, const struct map *m, uint64_t at)
{
	return m && m->file ? (uint64_t)(m->file - r->files + 1) << 48 | (at - m->lo + m->off) : at;
}

static void plant_map(struct run *r, const struct map *m)
{
	static const uint8_t int3 = 0xcc;
	find_entries(m->file);
	for (size_t i = 0; i < m->file->n_entries; i++) {
		struct entry *e = &m->file->entries[i];
		uint64_t at = m->lo + e->off - m->off;
		if (e->is_planted || e->off < m->off || at >= m->hi || is_in_set(r->functions, key_of(r, m, at)))
			continue;
		e->is_planted = pread(r->memory, &e->byte, 1, (off_t)at) == 1 && pwrite(r->memory, &int3, 1, (off_t)at) == 1;
	}
}

/* Where there is no function yet that has been seen: breakpoints. */
static void plant(struct run *r)
{
	read_maps(r);
	for (size_t i = 0; i < r->n_maps; i++)
		if (r->maps[i].file)
			plant_map(r, &r->maps[i]);
}

/* Takes the breakpoint at @at away; false when there was none. */
static bool unplant(struct run *r, uint64_t at)
{
	const struct map *m = map_of(r, at);
	if (!m || !m->file || !m->file->n_entries)
		return false;
	struct entry key = {.off = at - m->lo + m->off};
	struct entry *e = bsearch(&key, m->file->entries, m->file->n_entries, sizeof(key), by_off);
	if (!e || !e->is_planted)
		return false;
	e->is_planted = false;
	return pwrite(r->memory, &e->byte, 1, (off_t)at) == 1;
}

/* ---- stepping ---- */

static void take_regs(struct run *r, struct cairn_regs *ret)
{
	struct user_regs_struct u;
	if (ptrace(PTRACE_GETREGS, r->pid, NULL, &u) < 0)
		die("registers");
	const uint64_t regs[16] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp,
				   u.r8,  u.r9,	 u.r10, u.r11, u.r12, u.r13, u.r14, u.r15};
	memcpy(ret->r, regs, sizeof(regs));
	ret->known = 0xffff;
	ret->pc.v = u.rip;
}

static void save(struct frame *f, const struct cairn_regs *regs)
{
	for (size_t i = 0; i < N_KEPT; i++)
		f->saved[i] = regs->r[kept[i]];
}

static struct frame *push(struct run *r, uint64_t ret_addr, uint64_t cfa)
{
	if (r->depth == MAX_DEPTH)
		r->depth = 0;
	struct frame *f = &r->frames[r->depth++];
	*f = (struct frame){.ret_addr = ret_addr, .cfa = cfa};
	return f;
}

/* An entry of a procedure linkage table: it jumps by a word, or pushes a number and jumps to the first entry. */
static bool is_link(const struct run *r, uint64_t at)
{
	uint8_t p[16];
	size_t i = 0;
	if (!read_target((void *)(uintptr_t)r, (struct cairn_addr){at}, p, sizeof(p)))
		return false;
	if (!memcmp(p, "\xf3\x0f\x1e\xfa", 4))
		i = 4; /* endbr64 */
	if (p[i] == 0x68)
		return true;
	if (p[i] == 0xff && p[i + 1] == 0x35)
		return true; /* the first entry */
	i += p[i] == 0xf2; /* bnd */
	/* What follows the number. */
	if (r->linked_from && p[i] == 0xe9)
		return true;
	return p[i] == 0xff && p[i + 1] == 0x25;
}

/* The function that was called last, as soon as it is seen. */
static void note_function(struct run *r, uint64_t pc)
{
	const struct map *m = map_of(r, pc);
	const struct file *file = m ? m->file : NULL;
	if (is_link(r, pc)) {
		r->linked_from = file;
		return;
	}
	r->n_bound += r->linked_from && r->linked_from != file && file && strstr(file->path, "/ld-");
	r->is_called = false;
	r->linked_from = NULL;
	if (add_to_set(r->functions, key_of(r, m, pc))) {
		r->n_functions++;
		r->new_at_step = r->n_steps;
	}
}

static void wrong(struct run *r, const struct file *file, struct cairn_vaddr at, const struct frame *f, const char *what);

static void end_frame(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	const struct frame *f = &r->frames[--r->depth];
	const struct file *file;
	struct cairn_vaddr at;
	if (!f->is_moved || (now->pc.v == f->ret_addr && now->r[RSP] == f->cfa))
		return;
	rule_at(r, before->pc.v, &file, &at);
	wrong(r, file, at, f, "the return from a frame that was moved");
}

/* What one instruction did to the stack. */
static void follow(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	uint64_t sp = now->r[RSP], word;
	/* Entries of a linkage table go on by a jump, but for the number that they push. */
	if (r->is_called && (sp == before->r[RSP] || r->linked_from))
		note_function(r, now->pc.v);
	r->is_called &= r->linked_from != NULL;
	while (r->depth && r->frames[r->depth - 1].cfa <= sp)
		end_frame(r, before, now);
	/* Another stack (coroutines): nothing is known of it. */
	if (r->depth && r->frames[r->depth - 1].cfa - sp > 64 << 20)
		r->depth = 0;
	if (sp != before->r[RSP] - 8 || !read_target(r, (struct cairn_addr){sp}, &word, sizeof(word)) ||
	    word - before->pc.v < 2 || word - before->pc.v > 8 || now->pc.v == word)
		return;
	save(push(r, word, sp + 8), before);
	r->is_called = true;
	note_function(r, now->pc.v);
}

static bool is_as_it_was(const struct frame *f, const struct cairn_regs *caller, const char **what)
{
	*what = "pc";
	if (caller->pc.v != f->ret_addr)
		return false;
	*what = "sp";
	if (caller->r[RSP] != f->cfa)
		return false;
	*what = "a callee-saved register";
	for (size_t i = 0; i < N_KEPT; i++)
		if (caller->known & 1u << kept[i] && caller->r[kept[i]] != f->saved[i])
			return false;
	return true;
}

/* The trampoline's frame, and what it interrupted: every register. */
static bool is_interrupted_right(struct run *r, const struct frame *f, struct cairn_regs *caller, const char **what)
{
	const struct file *file;
	struct cairn_vaddr at;
	const struct cairn_unwind_rule *rule = rule_at(r, caller->pc.v - 1, &file, &at);
	*what = "the interrupted frame";
	if (!rule || cairn_unwind_step(rule, EM_X86_64, read_target, r, caller) != CAIRN_STEP_OK)
		return false;
	/* An interrupted system call is begun again, or has failed: the kernel sets rax, and steps back to the instruction. */
	const struct cairn_regs *was = &f->interrupted;
	bool in_syscall = (int64_t)was->r[0] <= -512 && (int64_t)was->r[0] >= -516;
	bool at_pc = caller->pc.v == was->pc.v || (in_syscall && caller->pc.v == was->pc.v - 2);
	return at_pc && (in_syscall || caller->r[0] == was->r[0]) &&
	       memcmp(caller->r + 1, was->r + 1, 15 * sizeof(caller->r[0])) == 0;
}

static void wrong(struct run *r, const struct file *file, struct cairn_vaddr at, const struct frame *f, const char *what)
{
	const char *symbol = "?";
	struct cairn_vaddr start = at;
	r->n_wrong++;
	if (!add_to_set(r->wrongs, at.v + (uint64_t)(uintptr_t)file))
		return;
	cairn_binary_symbol_of(file->bin, at, &symbol, &start);
	printf("wrong %s %#" PRIx64 " %s+%#" PRIx64 " %s (depth %zu, return address %#" PRIx64 ")\n", file->path, at.v, symbol,
	       at.v - start.v, what, r->depth, f->ret_addr);
}

/* The code is about to leave its stack: a register has the stack pointer of the frame that it goes to. */
static bool is_jump(const struct cairn_unwind_rule *rule)
{
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(rule)[i]) == RSP &&
		    cairn_unwind_word_saved(cairn_unwind_words(rule)[i]) == CAIRN_UNWIND_IN_REG)
			return true;
	return false;
}

static void keep_promise(struct run *r, const struct cairn_regs *regs)
{
	static const struct frame none;
	r->n_jumps++;
	if (regs->pc.v == r->promise.pc.v && regs->r[RSP] == r->promise.r[RSP])
		r->n_right++;
	else
		wrong(r, r->promise_file, r->promised_at, &none, "the target of a jump off the stack");
	r->promise_file = NULL;
}

/*
 * docs/findings/gcc-realigned-epilogue.md: rbp has the caller's value again, and the row still says that things are in memory at rbp. All but
 * those is right.
 */
static bool is_realigned_epilogue(const struct cairn_unwind_rule *rule, const struct frame *f, const struct cairn_regs *regs,
				  const struct cairn_regs *caller)
{
	if (regs->r[RBP] != f->saved[1] || caller->pc.v != f->ret_addr || caller->r[RSP] != f->cfa)
		return false;
	uint32_t at_fp = 0;
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_saved(cairn_unwind_words(rule)[i]) == CAIRN_UNWIND_AT_FP)
			at_fp |= 1u << cairn_unwind_word_reg(cairn_unwind_words(rule)[i]);
	for (size_t i = 0; i < N_KEPT; i++)
		if (!(at_fp & 1u << kept[i]) && caller->r[kept[i]] != f->saved[i])
			return false;
	return at_fp & 1u << RBP;
}

/* The return address is where the row says. */
static bool is_move(struct run *r, const struct cairn_regs *caller)
{
	uint64_t word;
	return read_target(r, (struct cairn_addr){caller->r[RSP] - 8}, &word, sizeof(word)) && word == caller->pc.v;
}

static void check(struct run *r, const struct cairn_regs *regs)
{
	const struct file *file;
	struct cairn_vaddr at;
	struct cairn_regs caller = *regs;
	const char *what = "no step";
	r->n_steps++;
	const struct cairn_unwind_rule *here = r->promise_file ? rule_at(r, regs->pc.v, &file, &at) : NULL;
	if (here && !is_jump(here))
		keep_promise(r, regs);
	if (!r->depth) {
		r->n_unknown++;
		return;
	}
	const struct frame *f = &r->frames[r->depth - 1];
	const struct cairn_unwind_rule *rule = rule_at(r, regs->pc.v, &file, &at);
	if (!rule || rule->cfa == CAIRN_UNWIND_UNDESCRIBED) {
		r->n_undescribed++;
		return;
	}
	if (is_jump(rule)) {
		if (cairn_unwind_step(rule, EM_X86_64, read_target, r, &caller) == CAIRN_STEP_OK) {
			r->promise = caller;
			r->promise_file = file;
			r->promised_at = at;
		}
		return;
	}
	/* The frame of the trampoline itself, while it makes its system call: no call began it. */
	if (rule->flags & CAIRN_UNWIND_SIGNAL)
		return;
	bool is_right = cairn_unwind_step(rule, EM_X86_64, read_target, r, &caller) == CAIRN_STEP_OK &&
			is_as_it_was(f, &caller, &what) && (!f->is_handler || is_interrupted_right(r, f, &caller, &what));
	bool is_moved = !is_right && !f->is_moved && caller.pc.v == f->ret_addr && caller.r[RSP] != f->cfa &&
			caller.r[RSP] > regs->r[RSP] && is_move(r, &caller);
	if (is_moved) {
		r->frames[r->depth - 1].is_moved = true;
		r->frames[r->depth - 1].cfa = caller.r[RSP];
	}
	if (is_right || is_moved)
		r->n_right++;
	else if (is_realigned_epilogue(rule, f, regs, &caller))
		r->n_epilogues++;
	else
		wrong(r, file, at, f, what);
}

static void enter_handler(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	uint64_t word;
	if (!read_target(r, (struct cairn_addr){now->r[RSP]}, &word, sizeof(word)))
		return;
	struct frame *f = push(r, word, now->r[RSP] + 8);
	save(f, now);
	f->is_handler = true;
	f->interrupted = *before;
	r->n_signals++;
}

/* True while the program lives. */
static bool wait_stop(struct run *r, int *ret_signal)
{
	int status;
	if (waitpid(r->pid, &status, __WALL) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
		return false;
	*ret_signal = WSTOPSIG(status);
	if (*ret_signal == SIGTRAP || status >> 16)
		*ret_signal = 0;
	return true;
}

static bool step_once(struct run *r, struct cairn_regs *regs, int *signal)
{
	struct cairn_regs before = *regs;
	int delivered = *signal;
	unplant(r, regs->pc.v);
	if (ptrace(PTRACE_SINGLESTEP, r->pid, NULL, (void *)(intptr_t)delivered) < 0 || !wait_stop(r, signal))
		return false;
	take_regs(r, regs);
	/* A signal with a handler: the step ends at the handler's first instruction. */
	if (delivered && regs->r[RSP] != before.r[RSP])
		enter_handler(r, &before, regs);
	else
		follow(r, &before, regs);
	return true;
}

/* What is at @ret_addr - 2 to - 7 calls: e8 with an offset, or ff /2 with any operand. */
static bool is_behind_call(const struct run *r, uint64_t ret_addr)
{
	uint8_t p[7];
	if (!read_target((void *)(uintptr_t)r, (struct cairn_addr){ret_addr - sizeof(p)}, p, sizeof(p)))
		return false;
	if (p[2] == 0xe8)
		return true;
	for (size_t n = 2; n <= sizeof(p); n++)
		if (p[sizeof(p) - n] == 0xff && (p[sizeof(p) - n + 1] & 0x38) == 0x10)
			return true;
	return false;
}

/* The first instruction of a function that has just been called: what its caller has is known. */
static void begin_called(struct run *r, const struct cairn_regs *regs)
{
	uint64_t word;
	if (!read_target(r, (struct cairn_addr){regs->r[RSP]}, &word, sizeof(word)) || !map_of(r, word) || !is_behind_call(r, word))
		return;
	save(push(r, word, regs->r[RSP] + 8), regs);
	note_function(r, regs->pc.v);
}

static bool window(struct run *r, uint64_t n, bool is_at_entry)
{
	struct cairn_regs regs;
	int signal = 0;
	r->depth = 0;
	r->promise_file = NULL;
	r->is_called = false;
	r->linked_from = NULL;
	r->new_at_step = r->n_steps;
	read_maps(r);
	take_regs(r, &regs);
	if (is_at_entry)
		begin_called(r, &regs);
	for (uint64_t i = 0; i < n && (i < n / 3 || r->n_steps - r->new_at_step < n / 3); i++) {
		if (!step_once(r, &regs, &signal))
			return false;
		check(r, &regs);
	}
	return true;
}

/* Runs freely for a while; true when it is stopped again and lives. */
static bool run_free(struct run *r, uint64_t us)
{
	int signal;
	struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
	if (r->is_stopped && ptrace(PTRACE_CONT, r->pid, NULL, NULL) < 0)
		return false;
	r->is_stopped = true;
	nanosleep(&t, NULL);
	ptrace(PTRACE_INTERRUPT, r->pid, NULL, NULL);
	for (;;) {
		int status;
		if (waitpid(r->pid, &status, __WALL) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return true;
		/* A signal, or the stop at exec. */
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, r->pid, NULL, (void *)(intptr_t)signal) < 0)
			return false;
	}
}

/* Runs to a breakpoint; false: the program has ended, or calls nothing new any more. */
static bool run_to_new(struct run *r)
{
	int status, signal = 0;
	for (;;) {
		pid_t got = 0;
		if (ptrace(PTRACE_CONT, r->pid, NULL, (void *)(intptr_t)signal) < 0)
			return false;
		for (int i = 0; i < NEW_MS * 5 && got == 0; i++) {
			got = waitpid(r->pid, &status, __WALL | WNOHANG);
			if (got == 0)
				nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		}
		if (got <= 0 || WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (signal != SIGTRAP)
			continue;
		struct user_regs_struct u;
		if (ptrace(PTRACE_GETREGS, r->pid, NULL, &u) < 0)
			return false;
		if (unplant(r, u.rip - 1)) {
			u.rip--;
			return ptrace(PTRACE_SETREGS, r->pid, NULL, &u) == 0;
		}
		signal = 0;
	}
}

static void open_memory(struct run *r)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/mem", r->pid);
	r->memory = open(name, O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < r->n_files; i++)
		for (size_t k = 0; k < r->files[i].n_entries; k++)
			r->files[i].entries[k].is_planted = false;
}

/* The program stands still: up to @n windows where it calls something new. Returns whether it lives. */
static bool windows_at_new(struct run *r, uint64_t n, uint64_t n_steps, uint64_t n_functions, uint64_t n_instructions)
{
	open_memory(r);
	for (uint64_t i = 0; i < n && (r->n_functions < n_functions || r->n_steps < n_instructions); i++) {
		/* What has been loaded meanwhile. */
		if (i % 64 == 0)
			plant(r);
		if (!run_to_new(r)) {
			close(r->memory);
			return false;
		}
		r->n_fresh++;
		if (!window(r, n_steps, true)) {
			close(r->memory);
			return false;
		}
	}
	close(r->memory);
	return true;
}

static void start(struct run *r, char **command)
{
	int go[2];
	char byte = 0;
	if (pipe(go) < 0)
		die("pipe");
	r->is_stopped = false;
	r->pid = fork();
	if (r->pid == 0) {
		int null = open("/dev/null", O_RDWR);
		if (read(go[0], &byte, 1) != 1 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(126);
		execvp(command[0], command);
		_exit(127);
	}
	/* PTRACE_O_EXITKILL: nothing is left over when this program ends. */
	if (ptrace(PTRACE_SEIZE, r->pid, NULL, (void *)0x100000) < 0)
		die("seize");
	if (write(go[1], &byte, 1) != 1)
		die("pipe");
	close(go[0]);
	close(go[1]);
}

int main(int argc, char **argv)
{
	if (argc < 8)
		return 2;
	unsigned int seed = (unsigned int)atoi(argv[1]);
	uint64_t n_windows = strtoull(argv[2], NULL, 10), n_steps = strtoull(argv[3], NULL, 10), done = 0;
	uint64_t n_fresh = strtoull(argv[4], NULL, 10), n_functions = strtoull(argv[5], NULL, 10);
	uint64_t n_instructions = strtoull(argv[6], NULL, 10);
	struct run *r = calloc(1, sizeof(*r));
	r->frames = calloc(MAX_DEPTH, sizeof(*r->frames));
	bool is_enough = false;
	for (int tries = 0; !is_enough && done < n_windows && tries < 50; tries++) {
		start(r, argv + 7);
		/* Into the workload, beyond the start of the program. */
		bool lives = run_free(r, 20000 + (uint64_t)(rand_r(&seed) % 200000));
		while (lives && !is_enough && done < n_windows) {
			done++;
			lives = window(r, n_steps, false) && run_free(r, 500 + (uint64_t)(rand_r(&seed) % 50000));
			is_enough = r->n_functions >= n_functions && r->n_steps >= n_instructions;
		}
		if (lives && n_fresh)
			lives = windows_at_new(r, n_fresh, FRESH_STEPS, n_functions, n_instructions);
		if (lives)
			kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, __WALL);
	}
	printf("counts windows %" PRIu64 " steps %" PRIu64 " outside %" PRIu64 " right %" PRIu64 " undescribed %" PRIu64
	       " wrong %" PRIu64 " functions %" PRIu64 " bound %" PRIu64 " jumps %" PRIu64 " epilogues %" PRIu64 " fresh %" PRIu64 " signals %" PRIu64 "\n",
	       done, r->n_steps, r->n_unknown, r->n_right, r->n_undescribed, r->n_wrong, r->n_functions, r->n_bound,
	       r->n_jumps, r->n_epilogues, r->n_fresh, r->n_signals);
	return 0;
}
