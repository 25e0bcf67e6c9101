/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a map, and the BTF that describes its types. */
#include "decode/bpfmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "base/near.h"
#include "base/scope.h"
#include "btf/types.h"
#include "source/spelling.h"
#include "types/build.h"

/* From kernels newer than the headers of this build. */
enum { MAP_CGRP_STORAGE = 32, MAP_ARENA = 33 };

/* A kernel has a few hundred; a number that never ends is broken. */
enum { OBJECTS_MAX = 1 << 20 };

/* No BTF of a program comes near. */
static const uint32_t BTF_MAX = 1u << 28;

static const struct kind {
	uint32_t kind;
	const char *name;
	enum bpfmap_how how;
	const char *refused;
} kinds[] = {
	{BPF_MAP_TYPE_HASH, "hash", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_ARRAY, "array", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_PERCPU_HASH, "percpu_hash", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_PERCPU_ARRAY, "percpu_array", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_LRU_HASH, "lru_hash", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_LRU_PERCPU_HASH, "lru_percpu_hash", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_LPM_TRIE, "lpm_trie", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_STACK_TRACE, "stack_trace", BPFMAP_KEYS, NULL},
	/* The values of these are numbers of programs, maps and devices. */
	{BPF_MAP_TYPE_PROG_ARRAY, "prog_array", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_ARRAY_OF_MAPS, "array_of_maps", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_HASH_OF_MAPS, "hash_of_maps", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_DEVMAP, "devmap", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_DEVMAP_HASH, "devmap_hash", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_CPUMAP, "cpumap", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_CGROUP_STORAGE, "cgroup_storage", BPFMAP_KEYS, NULL},
	{BPF_MAP_TYPE_QUEUE, "queue", BPFMAP_QUEUE, NULL},
	{BPF_MAP_TYPE_STACK, "stack", BPFMAP_QUEUE, NULL},
	{BPF_MAP_TYPE_RINGBUF, "ringbuf", BPFMAP_RING, NULL},
	{BPF_MAP_TYPE_PERF_EVENT_ARRAY, "perf_event_array", BPFMAP_NOT,
	 "its records are in buffers that only the process which opened them can map"},
	{BPF_MAP_TYPE_USER_RINGBUF, "user_ringbuf", BPFMAP_NOT,
	 "its records go from a process to the kernel"},
	{BPF_MAP_TYPE_BLOOM_FILTER, "bloom_filter", BPFMAP_NOT, "it keeps hashes, not the entries"},
	{BPF_MAP_TYPE_STRUCT_OPS, "struct_ops", BPFMAP_NOT,
	 "it holds a table of functions for the kernel"},
	{BPF_MAP_TYPE_SK_STORAGE, "sk_storage", BPFMAP_OWNERS, NULL},
	{BPF_MAP_TYPE_INODE_STORAGE, "inode_storage", BPFMAP_OWNERS, NULL},
	{BPF_MAP_TYPE_TASK_STORAGE, "task_storage", BPFMAP_OWNERS, NULL},
	{MAP_CGRP_STORAGE, "cgrp_storage", BPFMAP_OWNERS, NULL},
	{MAP_ARENA, "arena", BPFMAP_NOT, "it is memory without entries"},
};

/* ---- finding ---- */

static int map_info(int fd, struct bpf_map_info *ret)
{
	uint32_t size = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &size);
}

static int not_permitted(struct cairn_err *err, int rc, const char *what)
{
	if (rc == -EPERM || rc == -EACCES)
		return err_set(err, -EPERM,
			       "the kernel does not let this process see %s; run as root", what);
	return err_set(err, rc, "%s: %s", what, strerror(-rc));
}

/* The number of the only map of that name. */
static int find_by_name(const char *name, uint32_t *ret, struct cairn_err *err)
{
	char numbers[128] = "";
	uint32_t id = 0, found = 0;
	size_t n = 0;
	int rc = 0;

	for (int i = 0; i < OBJECTS_MAX && !(rc = bpf_map_get_next_id(id, &id)); i++) {
		struct bpf_map_info info;
		SCOPE_CLOSE int fd = bpf_map_get_fd_by_id(id);

		/* It may be gone by now. */
		if (fd < 0 || map_info(fd, &info) < 0 ||
		    strncmp(info.name, name, sizeof(info.name) - 1))
			continue;
		size_t len = strlen(numbers);
		snprintf(numbers + len, sizeof(numbers) - len, "%s%u", n++ ? ", " : "", id);
		found = id;
	}
	if (rc && rc != -ENOENT)
		return not_permitted(err, rc, "BPF maps");
	if (!n)
		return err_set(err, -ENOENT, "no BPF map is named %s", name);
	if (n > 1)
		return err_set(err, -ENOTUNIQ, "%zu BPF maps are named %s; give one's number: %s",
			       n, name, numbers);
	*ret = found;
	return 0;
}

static int find(const char *name, uint32_t *ret, struct cairn_err *err)
{
	char *end;
	unsigned long id = strtoul(name, &end, 10);

	if (!name[0] || *end || id > UINT32_MAX)
		return find_by_name(name, ret, err);
	*ret = (uint32_t)id;
	return 0;
}

/* ---- BTF ---- */

static int read_btf(int fd, void **ret, uint32_t *ret_size)
{
	struct bpf_btf_info info = {0};
	uint32_t size = sizeof(info);
	int rc = bpf_obj_get_info_by_fd(fd, &info, &size);

	if (rc < 0)
		return rc;
	uint32_t n = info.btf_size;
	void *bytes = n && n < BTF_MAX ? malloc(n) : NULL;
	if (!bytes)
		return n && n < BTF_MAX ? -ENOMEM : -EBADMSG;
	info = (struct bpf_btf_info){.btf = (uint64_t)(uintptr_t)bytes, .btf_size = n};
	size = sizeof(info);
	rc = bpf_obj_get_info_by_fd(fd, &info, &size);
	if (rc < 0) {
		free(bytes);
		return rc;
	}
	*ret = bytes;
	*ret_size = n;
	return 0;
}

/* The kernel's BTF of that number, read once. */
static int get_btf(struct cairn_bpfmap *map, uint32_t id, const struct bpfmap_btf **ret,
		   struct cairn_err *err)
{
	char name[32];
	uint32_t size = 0;

	for (size_t i = 0; i < map->btfs.n; i++) {
		*ret = &map->btfs.p[i];
		if (map->btfs.p[i].id == id)
			return map->btfs.p[i].types ? 0 : -EBADMSG;
	}
	struct bpfmap_btf *b = VEC_PUSH(&map->btfs);
	if (!b)
		return err_nomem(err, "BTF of a map");
	b->id = id;
	snprintf(name, sizeof(name), "BTF %u of the kernel", id);
	SCOPE_CLOSE int fd = bpf_btf_get_fd_by_id(id);
	int rc = fd < 0 ? fd : read_btf(fd, &b->bytes, &size);
	if (rc < 0)
		return not_permitted(err, rc, name);
	rc = cairn_btf_open_mem(b->bytes, size, name, NULL, &b->btf, err);
	/* Pointers of BPF are 8 bytes. */
	if (!rc)
		rc = btf_types(b->btf, 8, &b->types, err);
	*ret = b;
	return rc;
}

/* ---- opening ---- */

static void describe(struct cairn_bpfmap *map, const struct bpf_map_info *from)
{
	struct cairn_bpfmap_info *to = &map->info;

	*to = (struct cairn_bpfmap_info){.id = from->id,
					 .kind = from->type,
					 .kind_name = map->kind_text,
					 .key_size = from->key_size,
					 .value_size = from->value_size,
					 .max_entries = from->max_entries};
	memcpy(to->name, from->name, sizeof(to->name));
	map->flags = from->map_flags;
	map->how = BPFMAP_KEYS;
	snprintf(map->kind_text, sizeof(map->kind_text), "type %u", from->type);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].kind != from->type)
			continue;
		to->kind_name = kinds[i].name;
		to->refused = kinds[i].refused;
		map->how = kinds[i].how;
	}
	to->is_ring = map->how == BPFMAP_RING;
	to->has_owners = map->how == BPFMAP_OWNERS;
	to->is_percpu = from->type == BPF_MAP_TYPE_PERCPU_HASH ||
			from->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
			from->type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* A section's variables as a struct, so that the struct decoder decodes them. */
static int add_section(struct cairn_types *types, const struct cairn_btf *btf,
		       const struct cairn_btf_type *section, uint32_t *ret, struct cairn_err *err)
{
	struct cairn_type t = {.kind = CAIRN_T_STRUCT, .name = section->name, .size = section->ref};
	struct cairn_member *m = arena_array(types_arena(types), section->vlen, sizeof(*m));
	struct cairn_btf_type var;

	if (!m)
		return err_nomem(err, "the variables of a section");
	for (uint32_t i = 0; i < section->vlen; i++) {
		struct cairn_btf_secinfo in = cairn_btf_secinfo(section, i);

		/* A FUNC of .ksyms, or a damaged type, has no value. */
		if (!cairn_btf_type(btf, in.type, &var) || var.kind != CAIRN_BTF_VAR)
			continue;
		m[t.n_members++] = (struct cairn_member){
			.name = var.name, .type = var.ref, .bit_off = 8 * (uint64_t)in.offset};
	}
	t.members = m;
	*ret = types_reserve(types);
	if (!*ret)
		return err_nomem(err, "the variables of a section");
	types_set(types, *ret, &t);
	return 0;
}

static int open_types(struct cairn_bpfmap *map, const struct bpf_map_info *info,
		      struct cairn_err *err)
{
	const struct bpfmap_btf *btf;
	struct cairn_btf_type t;

	if (!info->btf_id || !info->btf_value_type_id)
		return 0;
	int rc = get_btf(map, info->btf_id, &btf, err);
	if (rc < 0)
		return rc;
	map->info.types = btf->types;
	map->info.key_type = info->btf_key_type_id;
	map->info.value_type = info->btf_value_type_id;
	map->info.is_section = cairn_btf_type(btf->btf, info->btf_value_type_id, &t) &&
			       t.kind == CAIRN_BTF_DATASEC;
	return map->info.is_section
		       ? add_section(btf->types, btf->btf, &t, &map->info.value_type, err)
		       : 0;
}

int cairn_bpfmap_open(const char *name, struct cairn_bpfmap **ret, struct cairn_err *err)
{
	struct bpf_map_info info;
	uint32_t id = 0;
	int rc = find(name, &id, err);

	if (rc < 0)
		return rc;
	struct cairn_bpfmap *map = calloc(1, sizeof(*map));
	if (!map)
		return err_nomem(err, "a BPF map");
	map->fd = bpf_map_get_fd_by_id(id);
	rc = map->fd < 0 ? map->fd : map_info(map->fd, &info);
	if (rc == -ENOENT)
		rc = err_set(err, rc, "there is no BPF map %u", id);
	else if (rc < 0)
		rc = not_permitted(err, rc, "BPF maps");
	if (!rc) {
		describe(map, &info);
		rc = open_types(map, &info, err);
	}
	if (rc < 0) {
		cairn_bpfmap_close(map);
		return rc;
	}
	*ret = map;
	return 0;
}

void cairn_bpfmap_close(struct cairn_bpfmap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->btfs.n; i++) {
		types_free(map->btfs.p[i].types);
		cairn_btf_close(map->btfs.p[i].btf);
		free(map->btfs.p[i].bytes);
	}
	VEC_FREE(&map->btfs);
	if (map->fd >= 0)
		close(map->fd);
	free(map);
}

void cairn_bpfmap_info(const struct cairn_bpfmap *map, struct cairn_bpfmap_info *ret)
{
	*ret = map->info;
}

/* ---- types of the programs ---- */

/* A number by any of its spellings, as cairn_source_select_value() finds it. */
static uint32_t find_number(const struct bpfmap_btf *btf, const char *name)
{
	struct cairn_btf_type t;

	for (uint32_t id = 1; cairn_btf_type(btf->btf, id, &t); id++)
		if ((t.kind == CAIRN_BTF_INT || t.kind == CAIRN_BTF_FLOAT) &&
		    spelled_alike(name, t.name))
			return id;
	return 0;
}

static uint32_t find_in(const struct bpfmap_btf *btf, const char *name)
{
	static const struct {
		const char *word;
		uint32_t kinds[2];
	} words[] = {
		{"struct ", {CAIRN_BTF_STRUCT}},
		{"union ", {CAIRN_BTF_UNION}},
		{"enum ", {CAIRN_BTF_ENUM, CAIRN_BTF_ENUM64}},
	};
	static const uint32_t any[] = {CAIRN_BTF_STRUCT, CAIRN_BTF_UNION, CAIRN_BTF_ENUM,
				       CAIRN_BTF_ENUM64, CAIRN_BTF_TYPEDEF};
	uint32_t id = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word);
		if (strncmp(name, words[i].word, n))
			continue;
		for (size_t k = 0; k < 2 && !id && words[i].kinds[k]; k++)
			id = cairn_btf_find(btf->btf, name + n, words[i].kinds[k], 0);
		return id;
	}
	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]) && !id; i++)
		id = cairn_btf_find(btf->btf, name, any[i], 0);
	return id ? id : find_number(btf, name);
}

/* Whether program @fd uses map @id; then *@ret is the number of its BTF, 0: it has none. */
static bool uses_map(int fd, uint32_t id, uint32_t *ret)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	bool used = false;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0 || !info.nr_map_ids)
		return false;
	uint32_t n = info.nr_map_ids, *ids = calloc(n, sizeof(*ids));
	if (!ids)
		return false;
	info = (struct bpf_prog_info){.nr_map_ids = n, .map_ids = (uint64_t)(uintptr_t)ids};
	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		info.nr_map_ids = 0;
	for (uint32_t i = 0; i < n && i < info.nr_map_ids; i++)
		used |= ids[i] == id;
	*ret = info.btf_id;
	free(ids);
	return used;
}

static int find_in_programs(struct cairn_bpfmap *map, const char *name,
			    const struct cairn_types **ret_types, uint32_t *ret_id,
			    struct cairn_err *err)
{
	unsigned int n_users = 0, n_btf = 0;
	uint32_t id = 0;
	int rc = 0;

	for (int i = 0; i < OBJECTS_MAX && !(rc = bpf_prog_get_next_id(id, &id)); i++) {
		const struct bpfmap_btf *btf;
		uint32_t btf_id;
		SCOPE_CLOSE int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0 || !uses_map(fd, map->info.id, &btf_id))
			continue;
		n_users++;
		if (!btf_id || get_btf(map, btf_id, &btf, err) < 0)
			continue;
		n_btf++;
		*ret_id = find_in(btf, name);
		*ret_types = btf->types;
		if (*ret_id)
			return 0;
	}
	if (rc && rc != -ENOENT)
		return not_permitted(err, rc, "BPF programs");
	return err_set(err, -ENOENT,
		       "no type %s: of the programs that are loaded, %u use%s map %u (%s), %u of "
		       "them with BTF. Compilers write BTF only of types that a global variable or "
		       "a parameter mentions; name a file that has the type before it",
		       name, n_users, n_users == 1 ? "s" : "", map->info.id, map->info.name, n_btf);
}

int cairn_bpfmap_find_type(struct cairn_bpfmap *map, const char *name,
			   const struct cairn_types **ret_types, uint32_t *ret_id,
			   struct cairn_err *err)
{
	if (map->info.types) {
		*ret_types = map->info.types;
		*ret_id = find_in(&map->btfs.p[0], name);
		if (*ret_id)
			return 0;
	}
	return find_in_programs(map, name, ret_types, ret_id, err);
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

size_t cairn_bpfmap_suggest(struct cairn_bpfmap *map, const char *name, const char **ret,
			    size_t max)
{
	const char *near[NEAR_MAX];
	size_t n = 0;

	for (size_t i = 0; i < map->btfs.n; i++) {
		const struct cairn_types *types = map->btfs.p[i].types;
		size_t found = types ? cairn_types_suggest(types, name, near, NEAR_MAX) : 0;

		for (size_t k = 0; k < found && n < max; k++)
			if (!has_name(ret, n, near[k]))
				ret[n++] = near[k];
	}
	return n;
}

int cairn_bpfmap_each(struct cairn_bpfmap *map, bool consume, bpfmap_entry_fn *on_entry, void *ctx,
		      struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	struct cairn_bpfmap_stats unused;

	stats = stats ? stats : &unused;
	*stats = (struct cairn_bpfmap_stats){0};
	switch (map->how) {
	case BPFMAP_RING:
		return consume ? bpfmap_consume_ring(map, on_entry, ctx, stats, err)
			       : bpfmap_peek_ring(map, on_entry, ctx, stats, err);
	case BPFMAP_QUEUE:
		return bpfmap_each_queued(map, consume, on_entry, ctx, stats, err);
	case BPFMAP_KEYS:
	case BPFMAP_OWNERS:
		if (!consume && map->how == BPFMAP_OWNERS)
			return bpfmap_each_owner(map, on_entry, ctx, stats, err);
		if (!consume)
			return bpfmap_each_key(map, on_entry, ctx, stats, err);
		return err_set(err, -EOPNOTSUPP,
			       "a %s is looked at, not consumed: its entries have %s",
			       map->info.kind_name, map->how == BPFMAP_OWNERS ? "owners" : "keys");
	case BPFMAP_NOT:
		break;
	}
	return err_set(err, -EOPNOTSUPP, "map %u is a %s: %s", map->info.id, map->info.kind_name,
		       map->info.refused);
}
