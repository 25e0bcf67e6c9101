/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps of BPF programs that are loaded: their entries as bytes, with the types that the programs'
 * BTF gives them
 *
 *	struct cairn_bpfmap *map;
 *	struct cairn_bpfmap_info info;
 *	if (cairn_bpfmap_open("counts", &map, &err) < 0)
 *		return fail(err.msg);
 *	cairn_bpfmap_info(map, &info);		// info.value_type is an id in info.types
 *	cairn_bpfmap_each(map, false, on_entry, ctx, NULL, &err);
 *	cairn_bpfmap_close(map);
 *
 * Ring buffers are read without taking anything out: their pages are mapped for reading only, and
 * their reader never notices. The kernel wants CAP_SYS_ADMIN for all of this.
 */
#ifndef CAIRN_BPFMAP_H
#define CAIRN_BPFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_bpfmap;

struct cairn_bpfmap_info {
	uint32_t id;
	uint32_t kind;         /* enum bpf_map_type of linux/bpf.h */
	const char *kind_name; /* "hash"; "type 40" for one that is not known here */
	char name[16];
	uint32_t key_size, value_size; /* bytes */
	uint32_t max_entries;          /* of a ring buffer: bytes */
	bool is_ring, is_percpu;
	/*
	 * .data, .bss, .rodata, ...: one value, a struct with the section's name whose members are
	 * its variables.
	 */
	bool is_section;
	/*
	 * sk, inode, task and cgrp_storage: values are kept with an owner each, and there are no
	 * keys
	 */
	bool has_owners;
	/* Why its entries cannot be listed; NULL: they can. */
	const char *refused;
	/*
	 * The types of the map's own BTF, borrowed; NULL if it was made without BTF, and ids are 0
	 * then.
	 */
	const struct cairn_types *types;
	uint32_t key_type, value_type;
};

/*
 * cairn_bpfmap_open - a map by its number, or by its name if only one map has it
 *
 * Returns 0 with *@ret owned by the caller. -ENOENT: no such map. -ENOTUNIQ: several (err: their
 * numbers). -EPERM. -ENOMEM. -EBADMSG: its BTF is damaged. Or an error of bpf().
 */
int cairn_bpfmap_open(const char *name, struct cairn_bpfmap **ret, struct cairn_err *err);
void cairn_bpfmap_close(struct cairn_bpfmap *map);
void cairn_bpfmap_info(const struct cairn_bpfmap *map, struct cairn_bpfmap_info *ret);

/*
 * cairn_bpfmap_find_type - a struct, union, enum, typedef or number by name, in the map's BTF, then
 * in that of programs that use it
 *
 * Ring buffers have no types of their own, as the kernel allows them none.
 * @ret_types  borrowed until the map is closed
 * Returns 0. -ENOENT: no program that uses the map has such a type (err: how many use it, how many
 * have BTF). Others as above.
 */
int cairn_bpfmap_find_type(struct cairn_bpfmap *map, const char *name,
			   const struct cairn_types **ret_types, uint32_t *ret_id,
			   struct cairn_err *err);

/*
 * cairn_bpfmap_suggest - names near to one that cairn_bpfmap_find_type() did not find, as of
 * cairn_types_suggest()
 *
 * Names of the map's own BTF come first, then those of each program whose BTF was searched. @ret
 * is borrowed until the map is closed.
 */
size_t cairn_bpfmap_suggest(struct cairn_bpfmap *map, const char *name, const char **ret,
			    size_t max);

/* Whom a value of a storage map belongs to. */
struct cairn_bpfmap_owner {
	const char *kind; /* "task", "cgroup", "socket", "inode" */
	uint64_t id;      /* of a task its thread id, else the number of its inode */
	/* for a task its comm; for a socket the owner that has it open; else a path. Any bytes */
	const char *name;
};

struct cairn_bpfmap_entry {
	const struct cairn_bpfmap_owner *owner; /* NULL: the map has none */
	const uint8_t *key;                     /* NULL: the map has no keys */
	const uint8_t *value;                   /* all of these are valid during the call only */
	uint32_t n_value;                       /* bytes; for a per-CPU map those of one CPU */
	uint32_t n_cpus; /* per-CPU maps: how many values there are, @stride bytes apart; else 1 */
	uint32_t stride;
};

struct cairn_bpfmap_stats {
	uint64_t entries;
	uint64_t owners; /* tasks, cgroups, ... that were visited */
	/* For ring buffers: */
	uint64_t busy;      /* records still being written: not shown */
	uint64_t discarded; /* records that their program threw away: not shown */
	/*
	 * the number of times that the reader took records during the read: the records after those
	 * are shown
	 */
	uint64_t overtaken;
};

/*
 * cairn_bpfmap_each - every entry, once
 *
 * Values of a storage map are looked up at every task, at every cgroup, and at the sockets and
 * inodes that processes hold open. Values at other objects (a socket that is still closing, a
 * cached inode) are not seen.
 *
 * If a map changes meanwhile, the entries that were there all the time are shown, and perhaps
 * others. In a queue or stack, only the next entry can be seen without taking it.
 *
 * Ring buffers: records between the reader's position and the writer's. A record is copied, and
 * shown only if the reader's position has not passed it by then, as no writer touches it before
 * that. Otherwise reading continues at the reader's new position. The call does not wait for faster
 * writers: records written after the start are not shown.
 *
 * @consume   take the entries out: of ring buffers, queues and stacks. A ring's own reader then
 *            misses them for good
 * @on_entry  returns 0 to go on; any other result ends the call and is returned
 * @stats     may be NULL
 * Returns 0. -EOPNOTSUPP: maps of this kind cannot be listed, or not consumed (err says why).
 * -EBADMSG: positions or lengths of a ring that make no sense. -ENOMEM; errors of bpf() and mmap().
 * Cost: a system call per some thousand entries if the kernel supports that, else two per entry.
 */
int cairn_bpfmap_each(struct cairn_bpfmap *map, bool consume,
		      int (*on_entry)(void *ctx, const struct cairn_bpfmap_entry *entry), void *ctx,
		      struct cairn_bpfmap_stats *stats, struct cairn_err *err);

CAIRN_END_DECLS
#endif
