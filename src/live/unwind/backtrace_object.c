/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loaded objects, and how to know one again
 *
 * dl_iterate_phdr() takes the loader's lock, so a handler must not call it; _dl_find_object()
 * (glibc 2.35) takes none. It gives the range of an object and its .eh_frame_hdr; the program
 * headers at the range's beginning give the rest.
 *
 * Tables and cached rules are kept between walks. They are kept for a slot, and a slot is for one
 * content:
 *
 *	dlopen(a.so)  at 0x7f00, build-id 11..        slot 3: [0x7f00, 0x8f00), 11..; its rules are
 *	                                              cached
 *	dlclose()
 *	dlopen(b.so)  at 0x7f00, build-id 22..        same range, same link_map (malloc() gave the
 *	                                              memory again)
 *	walk          slot 3 says 11.., memory 22..: it is not slot 3; the next free slot becomes
 *	              b.so's
 *
 * Nothing that the loader publishes tells b.so from a.so: address, size, .eh_frame_hdr and link_map
 * may all be equal. Its count of loads (dlpi_adds) needs the lock. A rule stays right if the
 * content is equal. The build-id, a hash over the content, is in the first page of every object
 * that the usual toolchains make: 20 bytes to compare. This is done once per object in each walk,
 * since an object with a frame on the stack cannot be unloaded meanwhile. The program itself, libc,
 * the loader, the vDSO and the object with this code stay as long as there are walks and need no
 * comparison. An object that can be unloaded and has no build-id gets no slot: it is read again in
 * each walk.
 *
 * Slots are an open hash table by address. One is taken by an atomic exchange of its state and
 * never given back, so that a reader needs no lock and no writer waits. A slot that another thread
 * is just filling is passed over: at worst an object gets two. When all are taken, further objects
 * are read anew as well.
 *
 * One case is not survived: an overwritten return address that leads into a library which another
 * thread unloads at that moment.
 */
#include "unwind/backtrace_object.h"

#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "insn/call.h"

enum backtrace_slot_state { SLOT_FREE, SLOT_BUSY, SLOT_READY };

enum {
	PAGE = 4096,
	MAX_PHDRS = 64, /* the largest seen has 15 */
};

static struct backtrace_slot slots[SELF_N_SLOTS];

/*
 * Bound when this object is loaded: the resolver of lazy binding is not for handlers. Compilers
 * without the attribute rely on the library's being linked with -z now.
 */
#if __has_attribute(noplt)
__attribute__((noplt))
#endif
extern int
_dl_find_object(void *address, struct dl_find_object *ret);

struct backtrace_slot *backtrace_slot_at(unsigned int slot)
{
	return &slots[slot];
}

/* ---- the parts of an object ---- */

static bool holds(const struct backtrace_object *o, uint64_t at)
{
	return at >= o->lo && at < o->hi;
}

static bool is_permanent(const struct backtrace_object *o)
{
	return holds(o, getauxval(AT_PHDR)) || holds(o, getauxval(AT_BASE)) ||
	       holds(o, getauxval(AT_SYSINFO_EHDR)) ||
	       holds(o, (uint64_t)(uintptr_t)gnu_get_libc_version()) ||
	       holds(o, (uint64_t)(uintptr_t)slots);
}

/* The build-id among the notes [note, note + size), all of them in the object's first page. */
static void find_build_id(struct backtrace_object *o, const uint8_t *note, uint64_t size)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)note;
		uint64_t name = (n->n_namesz + UINT64_C(3)) & ~UINT64_C(3),
			 desc = (n->n_descsz + UINT64_C(3)) & ~UINT64_C(3);
		uint64_t all = sizeof(*n) + name + desc;
		if (all > size)
			return;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
		    memcmp(n + 1, "GNU", 4) == 0 && n->n_descsz &&
		    n->n_descsz <= SELF_BUILD_ID_MAX) {
			o->build_id = note + sizeof(*n) + name;
			o->build_id_size = (uint8_t)n->n_descsz;
			return;
		}
		note += all;
		size -= all;
	}
}

static void read_phdr(struct backtrace_object *o, const Elf64_Phdr *p)
{
	uint64_t lo = o->bias + p->p_vaddr, hi = lo + p->p_memsz,
		 hdr = (uint64_t)(uintptr_t)o->eh.hdr;
	bool is_inside = lo >= o->lo && hi <= o->hi && lo <= hi;
	if (!is_inside || !(p->p_flags & PF_R))
		return;
	if (p->p_type == PT_LOAD && p->p_flags & PF_X && o->text_lo == o->text_hi) {
		o->text_lo = lo;
		o->text_hi = hi;
	}
	if (p->p_type == PT_LOAD && hdr >= lo && hdr < hi) {
		o->eh.lo = (const uint8_t *)(uintptr_t)lo;
		o->eh.hi = (const uint8_t *)(uintptr_t)hi;
	}
	if (p->p_type == PT_NOTE && !o->build_id && hi - o->lo <= PAGE && lo % 4 == 0)
		find_build_id(o, (const uint8_t *)(uintptr_t)lo, p->p_memsz);
}

/*
 * The loader knows it, too, but its struct link_map is freed when the object is unloaded: an
 * address of an overwritten stack may be in one that another thread unloads.
 */
static void find_bias(struct backtrace_object *o, const Elf64_Phdr *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD) {
			o->bias = o->lo - (p[i].p_vaddr & -(uint64_t)PAGE);
			return;
		}
}

/*
 * The headers must be in the first page, as they are whenever the first segment begins with the
 * file.
 */
static void read_headers(struct backtrace_object *o)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)(uintptr_t)o->lo;
	if (o->hi - o->lo < PAGE || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
	    e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum > MAX_PHDRS || e->e_phoff % 8 ||
	    e->e_phoff > PAGE || e->e_phoff + e->e_phnum * sizeof(Elf64_Phdr) > PAGE)
		return;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(uintptr_t)(o->lo + e->e_phoff);
	find_bias(o, p, e->e_phnum);
	for (unsigned int i = 0; i < e->e_phnum; i++)
		read_phdr(o, &p[i]);
}

bool backtrace_object_at(uint64_t at, struct backtrace_object *ret)
{
	struct dl_find_object found;
	if (_dl_find_object((void *)(uintptr_t)at, &found) != 0)
		return false;
	*ret = (struct backtrace_object){.lo = (uint64_t)(uintptr_t)found.dlfo_map_start,
					 .hi = (uint64_t)(uintptr_t)found.dlfo_map_end,
					 .eh = {.hdr = found.dlfo_eh_frame, .machine = EM_X86_64}};
	read_headers(ret);
	if (!ret->eh.lo)
		ret->eh.hdr = NULL;
	ret->is_permanent = is_permanent(ret);
	return true;
}

/* ---- slots ---- */

static bool is_same(const struct backtrace_slot *s, uint64_t lo, uint64_t hi, const void *hdr)
{
	const struct backtrace_object *o = &s->object;
	if (o->lo != lo || o->hi != hi || (const void *)o->eh.hdr != hdr)
		return false;
	return o->is_permanent || memcmp(o->build_id, s->build_id, o->build_id_size) == 0;
}

bool backtrace_slot_holds(unsigned int slot, uint64_t at)
{
	struct dl_find_object found;
	const struct backtrace_slot *s = &slots[slot];
	if (s->object.is_permanent)
		return true;
	return _dl_find_object((void *)(uintptr_t)at, &found) == 0 &&
	       is_same(s, (uint64_t)(uintptr_t)found.dlfo_map_start,
		       (uint64_t)(uintptr_t)found.dlfo_map_end, found.dlfo_eh_frame);
}

static bool take(struct backtrace_slot *s, const struct backtrace_object *o)
{
	uint32_t free = SLOT_FREE;
	if (!__atomic_compare_exchange_n(&s->state, &free, SLOT_BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	s->object = *o;
	if (o->build_id)
		memcpy(s->build_id, o->build_id, o->build_id_size);
	__atomic_store_n(&s->state, SLOT_READY, __ATOMIC_RELEASE);
	return true;
}

int backtrace_slot_of(const struct backtrace_object *o)
{
	if (!o->eh.hdr || (!o->is_permanent && !o->build_id))
		return -1;
	unsigned int at = (unsigned int)((o->lo / PAGE * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
	for (unsigned int i = 0; i < SELF_N_SLOTS; i++) {
		struct backtrace_slot *s = &slots[(at + i) % SELF_N_SLOTS];
		uint32_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
		if ((state == SLOT_FREE && take(s, o)) ||
		    (state == SLOT_READY && is_same(s, o->lo, o->hi, o->eh.hdr)))
			return (int)(s - slots);
	}
	return -1;
}

bool backtrace_object_calls(const struct backtrace_object *o, uint64_t pc)
{
	return pc >= o->text_lo + INSN_CALL_LONGEST && pc <= o->text_hi &&
	       insn_ends_with_call((const uint8_t *)(uintptr_t)pc);
}

#endif
