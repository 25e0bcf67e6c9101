/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The mapping of an address of the running process, where nobody has reported it yet
 *
 * A process of a few milliseconds is over before the reports of its mappings have made their way.
 * So the program looks into the kernel's own tree of mappings. The kernel's functions for that take
 * its lock, which an interrupt may not; the tree is one of RCU, and a program runs as a reader.
 * What is found is of this moment, and nothing of it is kept.
 *
 * From <linux/maple_tree.h>, since 6.1: a pointer to a node has the node's type in bits 3 to 6. A
 * node has 256 bytes: its parent, pivots (the last address of each slot), and slots. A leaf's slots
 * are mappings. The last slot ends where the node does, and has no pivot; the number of slots is in
 * a byte at the end, unless all are used.
 */
#ifndef WALK_LEARN_BPF_H
#define WALK_LEARN_BPF_H

#include <bpf/bpf_core_read.h>

#include "walk.bpf.h"

#define LEARN_CORE __attribute__((preserve_access_index))

struct super_block {
	__u32 s_dev;
} LEARN_CORE;

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} LEARN_CORE;

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
	__s64 i_mtime_sec;
	__u32 i_mtime_nsec;
} LEARN_CORE;

struct inode___6_7 {
	struct timespec64 __i_mtime; /* before 6.11 */
} LEARN_CORE;

struct inode___6_1 {
	struct timespec64 i_mtime; /* before 6.7 */
} LEARN_CORE;

struct file {
	struct inode *f_inode;
} LEARN_CORE;

struct maple_tree {
	void *ma_root;
} LEARN_CORE;

/* Another name, as a program may have its own view of it. */
struct mm_struct___walk {
	struct maple_tree mm_mt;
	struct {
		void *vdso;
	} context;
} LEARN_CORE;

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
	struct mm_struct___walk *vm_mm;
} LEARN_CORE;

#define VM_EXEC_FLAG 4
#define PAGE_BITS    12

enum {
	NODE_LEAF = 1,
	NODE_RANGE = 2,
	NODE_ARANGE = 3,
	/* In words. */
	PIVOTS_AT = 1,
	RANGE_SLOTS_AT = 16,
	ARANGE_SLOTS_AT = 10,
	RANGE_META_AT = 31,
	ARANGE_META_AT = 30,
	RANGE_LAST = 15, /* number of the last slot */
	ARANGE_LAST = 9,
	MAX_TREE_DEPTH = 10,
	/* The price of a search, in reads. */
	LEARN_READS = 16,
};

/* Files by device and inode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALK_MAX_INODES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct walk_inode);
	__type(value, struct walk_inode_file);
} inodes SEC(".maps");

static __always_inline __u64 node_word(const struct walk *w, __u32 i)
{
	return w->window[i & (WINDOW_WORDS - 1)];
}

/* The number of the last slot of the node in w->window. */
static __always_inline __u32 last_slot(const struct walk *w, __u32 type)
{
	__u64 last;

	if (type == NODE_ARANGE)
		return node_word(w, ARANGE_META_AT) & 15;
	last = node_word(w, PIVOTS_AT + RANGE_LAST - 1);
	if (!last)
		return node_word(w, RANGE_META_AT) & 15;
	return last == w->tree_max ? RANGE_LAST - 1 : RANGE_LAST;
}

/* w->tree becomes what the slot for @at of the node in w->window leads to. */
__noinline int choose_slot(struct walk *w, __u64 at, __u32 type)
{
	__u32 i, last;

	if (!w)
		return 0;
	last = last_slot(w, type);
	for (i = 0; i < RANGE_LAST; i++) {
		/*
		 * So that the compiler keeps the mask, by which 6.1 sees that it stays in the node.
		 */
		__asm__ volatile("" : "+r"(i));
		if (i >= last || node_word(w, PIVOTS_AT + i) >= at)
			break;
	}
	if (i < last)
		w->tree_max = node_word(w, PIVOTS_AT + i);
	w->tree = node_word(w, (type == NODE_ARANGE ? ARANGE_SLOTS_AT : RANGE_SLOTS_AT) + i);
	return 1;
}

/* One node down. Returns 1 when w->tree is a mapping, or nothing; negative: it cannot be read. */
__noinline int descend(struct walk *w, __u64 at)
{
	__u64 node;
	__u32 type;

	if (!w)
		return -1;
	node = w->tree & ~255ULL;
	type = (__u32)(w->tree >> 3) & 15;
	if (type < NODE_LEAF || type > NODE_ARANGE ||
	    bpf_probe_read_kernel(w->window, WINDOW_BYTES, (void *)node))
		return -1;
	/* A node that was replaced meanwhile is its own parent. */
	if ((node_word(w, 0) & ~255ULL) == node)
		return -1;
	choose_slot(w, at, type);
	return type == NODE_LEAF;
}

/* The mapping in the tree; NULL: none was found. */
static __always_inline struct vm_area_struct *mapping_at(struct walk *w,
							 struct mm_struct___walk *mm, __u64 at)
{
	int found = 0;

	w->tree = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	w->tree_max = ~0ULL;
	/* Two bits tell a node from a single mapping. */
	if ((w->tree & 3) != 2)
		return NULL;
	for (int i = 0; i < MAX_TREE_DEPTH && !found; i++)
		found = descend(w, at);
	return found == 1 ? (void *)w->tree : NULL;
}

static __always_inline __u64 written_s(struct inode *inode)
{
	struct inode___6_7 *second = (void *)inode;
	struct inode___6_1 *first = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec))
		return (__u64)BPF_CORE_READ(inode, i_mtime_sec);
	if (bpf_core_field_exists(second->__i_mtime))
		return (__u64)BPF_CORE_READ(second, __i_mtime.tv_sec);
	if (bpf_core_field_exists(first->i_mtime))
		return (__u64)BPF_CORE_READ(first, i_mtime.tv_sec);
	return 0;
}

static __always_inline __u64 written_ns(struct inode *inode)
{
	struct inode___6_7 *second = (void *)inode;
	struct inode___6_1 *first = (void *)inode;

	if (bpf_core_field_exists(inode->i_mtime_sec))
		return BPF_CORE_READ(inode, i_mtime_nsec);
	if (bpf_core_field_exists(second->__i_mtime))
		return (__u64)BPF_CORE_READ(second, __i_mtime.tv_nsec);
	if (bpf_core_field_exists(first->i_mtime))
		return (__u64)BPF_CORE_READ(first, i_mtime.tv_nsec);
	return 0;
}

/*
 * Whether the inode has the content that was opened: it may have been written, or used again. A
 * function of its own, as the reads take a stack's room; so are the next ones.
 */
__noinline int has_content(const struct walk_inode_file *f, __u64 file)
{
	struct inode *inode = file ? BPF_CORE_READ((struct file *)file, f_inode) : NULL;

	if (!f)
		return 0;
	if (!inode)
		return 1;
	return (__u64)BPF_CORE_READ(inode, i_size) == f->size && written_s(inode) == f->written_s &&
	       written_ns(inode) == f->written_ns;
}

/* The segment of a mapping of a file that is known. */
static __always_inline int use_file(struct walk *w, const struct walk_inode_file *f, __u64 off)
{
	for (int i = 0; i < WALK_INODE_LOADS; i++) {
		if (off < f->loads[i].from || off >= f->loads[i].to)
			continue;
		w->segment.at = f->loads[i].at + off;
		w->segment.first_page = f->first_page;
		w->segment.n_pages = f->n_pages;
		return 1;
	}
	return 0;
}

/* w->segment gets the bounds of the mapping; whether it has @at, and is of code of @mm. */
__noinline int use_bounds(struct walk *w, __u64 mm, __u64 at_vma, __u64 at)
{
	struct vm_area_struct *vma = (void *)at_vma;

	if (!w)
		return 0;
	w->segment.lo = BPF_CORE_READ(vma, vm_start);
	w->segment.hi = BPF_CORE_READ(vma, vm_end);
	/* Memory of a mapping is used again, by others, too. */
	return at >= w->segment.lo && at < w->segment.hi &&
	       BPF_CORE_READ(vma, vm_flags) & VM_EXEC_FLAG &&
	       (__u64)BPF_CORE_READ(vma, vm_mm) == mm;
}

/*
 * w->segment leads to what is known of the file, at @off of it. 6.1 takes no key of a map from the
 * memory that a function is given.
 */
__noinline int use_known(struct walk *w, __u64 at_file, __u64 off)
{
	struct file *file = (void *)at_file;
	struct walk_inode key = {};
	struct walk_inode_file *f;

	if (!w)
		return 0;
	if (file) {
		key.dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
		key.ino = BPF_CORE_READ(file, f_inode, i_ino);
	}
	f = bpf_map_lookup_elem(&inodes, &key);
	return f && has_content(f, at_file) && use_file(w, f, off);
}

/* Without the lock another thread may have changed it between two reads. */
__noinline int is_as_before(struct walk *w, __u64 mm, __u64 at_vma, __u64 pgoff, __u64 file)
{
	struct vm_area_struct *vma = (void *)at_vma;

	return w && BPF_CORE_READ(vma, vm_start) == w->segment.lo &&
	       BPF_CORE_READ(vma, vm_pgoff) == pgoff &&
	       (__u64)BPF_CORE_READ(vma, vm_file) == file && (__u64)BPF_CORE_READ(vma, vm_mm) == mm;
}

static __always_inline int use_mapping(struct walk *w, struct mm_struct___walk *mm,
				       struct vm_area_struct *vma, __u64 at)
{
	__u64 file, pgoff;

	if (!use_bounds(w, (__u64)mm, (__u64)vma, at))
		return 0;
	file = (__u64)BPF_CORE_READ(vma, vm_file);
	/* Memory that is no file's: new code of a JIT. */
	if (!file && w->segment.lo != (__u64)BPF_CORE_READ(mm, context.vdso)) {
		w->segment.at = 0;
		w->segment.first_page = WALK_NO_PAGES;
		return 1;
	}
	pgoff = BPF_CORE_READ(vma, vm_pgoff);
	return use_known(w, file, pgoff << PAGE_BITS) &&
	       is_as_before(w, (__u64)mm, (__u64)vma, pgoff, file);
}

__noinline int learn_segment(struct walk *w, __u64 at)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct vm_area_struct *vma;
	struct mm_struct___walk *mm;

	if (!w || w->n_reads >= WALK_MAX_READS ||
	    !bpf_core_field_exists(struct mm_struct___walk, mm_mt))
		return 0;
	w->n_reads += LEARN_READS;
	w->window_n = 0;
	w->is_learned = 1;
	mm = (void *)BPF_CORE_READ(task, mm);
	vma = mm ? mapping_at(w, mm, at) : NULL;
	if (vma && use_mapping(w, mm, vma, at))
		return 1;
	w->segment.lo = w->segment.hi = 0;
	return 0;
}

#endif
