/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A BPF map of a made-up kernel
 *
 *	0   24  struct head: what the kernel says of the map
 *	24  n   its BTF
 *	    ... answers: each call of the kernel takes a byte that decides how it ends, and what it copies
 *
 * The functions of libbpf that cairn calls are replaced here, so no privilege is needed. They write
 * as many bytes as the kernel would. The owners of storage are those of this process: /proc has no
 * other, and its descriptors are real.
 */
#include "fuzz.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cairn/bpfmap.h>
#include <cairn/btf.h>

#include "workspace.h"

/* Owners of storage are looked for in /proc, for each input. */
const unsigned int fuzz_places_max = 120;

enum { RING_MAX = 1 << 16, CPUS = 3, IDS = 4, MAP_ID = 7, BTF_ID = 3 };

struct head {
	uint8_t kind, consume, key_size, cpus;
	uint16_t value_size, n_btf;
	uint32_t max_entries, flags;
	uint8_t btf_id, key_type, value_type, id;
	uint32_t reserved;
};
_Static_assert(sizeof(struct head) == 24, "as the comment says");

/* The kernel. */
static struct {
	struct head head;
	const uint8_t *btf, *answers;
	size_t n_answers;
	uint32_t n_calls;
	int map, other; /* descriptors, of which copies are handed out */
	struct workspace place;
} kernel = {.map = -1};

static uint8_t next_answer(void)
{
	if (!kernel.n_answers)
		return 0xff;
	kernel.n_answers--;
	return *kernel.answers++;
}

static void copy_answer(void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = kernel.n_answers ? next_answer() : (uint8_t)i;
}

/* Nothing goes on for ever. */
static int how_it_ends(void)
{
	static const int ends[] = {0,       0,       0,       0,      0,       0,
				   0,       0,       -ENOENT, -EPERM, -ENOSPC, -EINVAL,
				   -EFAULT, -ENOENT, -ENOENT, -ENOENT};
	return kernel.n_calls++ > 4096 ? -ENOENT : ends[next_answer() & 15];
}

static uint32_t value_bytes(void)
{
	bool is_percpu = kernel.head.kind == BPF_MAP_TYPE_PERCPU_HASH ||
			 kernel.head.kind == BPF_MAP_TYPE_PERCPU_ARRAY ||
			 kernel.head.kind == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	return is_percpu ? ((kernel.head.value_size + 7u) & ~7u) * (kernel.head.cpus % CPUS + 1)
			 : kernel.head.value_size;
}

/* ---- what libbpf would ask the kernel ---- */

#define WRAPPED(type, name, ...)                                                                   \
	type __wrap_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__)

static int copy_of(int fd)
{
	int rc = how_it_ends();
	return rc ? rc : fcntl(fd, F_DUPFD_CLOEXEC, fd == kernel.map ? 100 : 200);
}

WRAPPED(int, bpf_map_get_next_id, uint32_t start, uint32_t *next)
{
	*next = start + 1;
	return start < IDS ? 0 : -ENOENT;
}

WRAPPED(int, bpf_prog_get_next_id, uint32_t start, uint32_t *next)
{
	return __wrap_bpf_map_get_next_id(start, next);
}

WRAPPED(int, bpf_map_get_fd_by_id, uint32_t id)
{
	return copy_of(kernel.map);
}

WRAPPED(int, bpf_btf_get_fd_by_id, uint32_t id)
{
	return copy_of(kernel.other);
}

WRAPPED(int, bpf_prog_get_fd_by_id, uint32_t id)
{
	return copy_of(kernel.other);
}

static void report_map(struct bpf_map_info *info)
{
	const struct head *h = &kernel.head;
	*info = (struct bpf_map_info){.id = MAP_ID,
				      .type = h->kind,
				      .key_size = h->key_size,
				      .value_size = h->value_size,
				      .max_entries = h->max_entries,
				      .map_flags = h->flags,
				      .name = "made_up",
				      .btf_id = h->btf_id,
				      .btf_key_type_id = h->key_type,
				      .btf_value_type_id = h->value_type};
}

static void report_btf(struct bpf_btf_info *info)
{
	uint32_t room = info->btf ? info->btf_size : 0;
	info->btf_size = kernel.head.n_btf;
	if (room)
		memcpy((void *)(uintptr_t)info->btf, kernel.btf,
		       room < info->btf_size ? room : info->btf_size);
}

static void report_prog(struct bpf_prog_info *info)
{
	const uint32_t ids[] = {1, next_answer() & 1 ? MAP_ID : 2};
	uint32_t room = info->map_ids ? info->nr_map_ids : 0;
	if (room)
		memcpy((void *)(uintptr_t)info->map_ids, ids, room < 2 ? 4 * room : 8);
	info->nr_map_ids = next_answer() % 3;
	info->btf_id = next_answer() & 1 ? BTF_ID : 0;
}

/* Which of the three it is asked about is seen by the size of the struct. */
WRAPPED(int, bpf_obj_get_info_by_fd, int fd, void *info, uint32_t *size)
{
	int rc = how_it_ends();
	if (rc)
		return rc;
	if (*size == sizeof(struct bpf_map_info))
		report_map(info);
	else if (*size == sizeof(struct bpf_btf_info))
		report_btf(info);
	else
		report_prog(info);
	return 0;
}

WRAPPED(int, bpf_map_lookup_elem, int fd, const void *key, void *value)
{
	int rc = how_it_ends();
	if (!rc)
		copy_answer(value, value_bytes());
	return rc;
}

WRAPPED(int, bpf_map_lookup_and_delete_elem, int fd, const void *key, void *value)
{
	return __wrap_bpf_map_lookup_elem(fd, key, value);
}

WRAPPED(int, bpf_map_get_next_key, int fd, const void *key, void *next)
{
	int rc = how_it_ends();
	if (!rc)
		copy_answer(next, kernel.head.key_size);
	return rc;
}

WRAPPED(int, bpf_map_lookup_batch, int fd, void *from, void *to, void *keys, void *values,
	uint32_t *n, const struct bpf_map_batch_opts *opts)
{
	int rc = how_it_ends();
	uint32_t room = *n, some = next_answer();
	*n = some < room ? some : room;
	if (rc && rc != -ENOENT)
		return rc;
	copy_answer(keys, (size_t)*n * kernel.head.key_size);
	copy_answer(values, (size_t)*n * value_bytes());
	copy_answer(to, kernel.head.key_size > 4 ? kernel.head.key_size : 4);
	return rc;
}

WRAPPED(int, libbpf_num_possible_cpus, void)
{
	return kernel.head.cpus == 0xff ? -EINVAL : kernel.head.cpus % CPUS + 1;
}

static struct {
	ring_buffer_sample_fn on_sample;
	void *ctx;
} ring;

WRAPPED(struct ring_buffer *, ring_buffer__new, int fd, ring_buffer_sample_fn on_sample, void *ctx,
	const struct ring_buffer_opts *opts)
{
	ring.on_sample = on_sample;
	ring.ctx = ctx;
	errno = EINVAL;
	return next_answer() == 0xfe ? NULL : (struct ring_buffer *)(void *)&ring;
}

WRAPPED(int, ring_buffer__consume, struct ring_buffer *of)
{
	uint8_t record[256];
	for (uint32_t n = next_answer() % 8; n; n--) {
		size_t size = next_answer();
		copy_answer(record, size);
		int rc = ring.on_sample(ring.ctx, record, size);
		if (rc)
			return rc;
	}
	return how_it_ends();
}

WRAPPED(void, ring_buffer__free, struct ring_buffer *of)
{
}

DIR *__real_opendir(const char *path);
WRAPPED(DIR *, opendir, const char *path)
{
	return __real_opendir(strcmp(path, "/proc") == 0 ? workspace_path(&kernel.place, "proc")
							 : path);
}

/* ---- the target ---- */

static void clean_up(void)
{
	workspace_close(&kernel.place);
}

static void set_up(void)
{
	int sockets[2];
	workspace_open(&kernel.place);
	atexit(clean_up);
	workspace_run(&kernel.place, "mkdir -p proc/self proc/%d", (int)getpid());
	kernel.map = memfd_create("map", MFD_CLOEXEC);
	kernel.other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert(kernel.map >= 0 && kernel.other >= 0 &&
	       socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) == 0);
}

/* Its positions and records, which lie twice one after the other. */
static void fill_ring(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = kernel.head.max_entries;
	uint8_t *at, positions[16];
	if (kernel.head.kind != BPF_MAP_TYPE_RINGBUF || size > RING_MAX || kernel.head.consume)
		return;
	if (ftruncate(kernel.map, 0) < 0 || ftruncate(kernel.map, (off_t)(2 * page + 2 * size)) < 0)
		abort();
	at = mmap(NULL, 2 * page + 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, kernel.map, 0);
	assert(at != MAP_FAILED);
	copy_answer(positions, sizeof(positions));
	memcpy(at, positions, 8);
	memcpy(at + page, positions + 8, 8);
	for (size_t i = 0; i < size && kernel.n_answers; i++)
		at[2 * page + i] = at[2 * page + size + i] = next_answer();
	munmap(at, 2 * page + 2 * size);
}

static int look(void *ctx, const struct cairn_bpfmap_entry *e)
{
	const struct cairn_bpfmap_info *info = ctx;
	volatile uint8_t sum = 0;
	size_t n = e->n_cpus > 1 ? (size_t)e->stride * e->n_cpus : e->n_value;
	assert(info->is_ring || e->n_value == info->value_size);
	assert(!e->owner == !info->has_owners && (!e->owner || (e->owner->kind && e->owner->name)));
	for (size_t i = 0; i < n; i++)
		sum += e->value[i];
	for (size_t i = 0; e->key && i < info->key_size; i++)
		sum += e->key[i];
	return kernel.head.reserved == 1 && sum == 77;
}

static void ask(struct cairn_bpfmap *map)
{
	struct cairn_bpfmap_info info;
	struct cairn_bpfmap_stats stats;
	const struct cairn_types *types;
	struct cairn_err err = {0};
	uint32_t id;
	cairn_bpfmap_info(map, &info);
	int rc = cairn_bpfmap_find_type(map, kernel.head.id & 1 ? "struct s" : "s", &types, &id,
					&err);
	assert(rc < 0 || (types && id));
	/* The kernel does not make larger ones; nor does it fill memory that a test could have. */
	if (info.is_ring && info.max_entries > RING_MAX)
		return;
	fill_ring();
	rc = cairn_bpfmap_each(map, kernel.head.consume & 1, look, &info, &stats, &err);
	assert(rc >= 0 || (err.code == rc && err.msg[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_bpfmap *map;
	struct cairn_err err = {0};
	if (kernel.map < 0)
		set_up();
	if (size < sizeof(kernel.head))
		return 0;
	memcpy(&kernel.head, bytes, sizeof(kernel.head));
	if (kernel.head.n_btf > size - sizeof(kernel.head))
		kernel.head.n_btf = (uint16_t)(size - sizeof(kernel.head));
	kernel.head.max_entries &= (1 << 18) - 1;
	kernel.btf = bytes + sizeof(kernel.head);
	kernel.answers = kernel.btf + kernel.head.n_btf;
	kernel.n_answers = size - sizeof(kernel.head) - kernel.head.n_btf;
	kernel.n_calls = 0;
	int rc = cairn_bpfmap_open(kernel.head.id & 2 ? "made_up" : "7", &map, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc == 0) {
		ask(map);
		cairn_bpfmap_close(map);
	}
	return 0;
}

/* ---- seeds ---- */

static uint32_t add(struct cairn_btf_builder *b, uint32_t kind, const char *name, uint32_t ref,
		    const uint32_t *words, uint32_t n, uint32_t vlen)
{
	struct cairn_btf_type t = {.kind = kind, .vlen = vlen, .ref = ref};
	uint32_t id;
	if (cairn_btf_add_string(b, name, &t.name_off) < 0 ||
	    cairn_btf_add_record(b, &t, words, n, &id) < 0)
		abort();
	return id;
}

/* int, struct s, a variable and its section; *@ret_section is that one's number. */
static size_t make_btf(uint8_t *to, uint8_t *ret_struct, uint8_t *ret_section)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts)};
	struct cairn_btf_builder *b;
	void *blob;
	size_t n;
	if (cairn_btf_builder_new(&opts, &b, NULL) < 0)
		abort();
	uint32_t i = add(b, CAIRN_BTF_INT, "int", 4, (uint32_t[]){CAIRN_BTF_INT_SIGNED << 24 | 32},
			 1, 0);
	*ret_struct =
		(uint8_t)add(b, CAIRN_BTF_STRUCT, "s", 8, (uint32_t[]){0, i, 0, 0, i, 32}, 6, 2);
	uint32_t var = add(b, CAIRN_BTF_VAR, "counter", i, (uint32_t[]){1}, 1, 0);
	*ret_section = (uint8_t)add(b, CAIRN_BTF_DATASEC, ".bss", 8,
				    (uint32_t[]){var, 0, 4, i, 4, 4}, 6, 2);
	if (cairn_btf_finish(b, &blob, &n, NULL) < 0)
		abort();
	memcpy(to, blob, n);
	free(blob);
	cairn_btf_builder_free(b);
	return n;
}

static void put_map(struct head h, const uint8_t *answers, size_t n,
		    void (*put)(const void *bytes, size_t size))
{
	uint8_t bytes[2048];
	uint8_t *btf = bytes + sizeof(h), is_struct, is_section;
	h.n_btf = (uint16_t)make_btf(btf, &is_struct, &is_section);
	h.value_type = h.value_type ? is_section : is_struct;
	h.key_type = 1;
	memcpy(bytes, &h, sizeof(h));
	memcpy(btf + h.n_btf, answers, n);
	put(bytes, sizeof(h) + h.n_btf + n);
}

static void put_ring(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	struct {
		/* The map, twice what is known of it; then where the reader and the writer are. */
		uint8_t open[2], find[IDS];
		uint64_t positions[2];
		uint32_t records[16];
	} __attribute__((packed)) a = {
		.positions = {8, 72}, .records = {0, 0, 12, 0, 1, 2, 3, 0, 1u << 31 | 8, 0, 0, 0, 1u << 30 | 4, 0, 4}};
	/* clang-format on */
	memset(a.find, 8, sizeof(a.find));
	put_map((struct head){.kind = BPF_MAP_TYPE_RINGBUF, .max_entries = 4096},
		(const uint8_t *)&a, sizeof(a), put);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t kinds[] = {BPF_MAP_TYPE_HASH,
					BPF_MAP_TYPE_PERCPU_ARRAY,
					BPF_MAP_TYPE_ARRAY,
					BPF_MAP_TYPE_QUEUE,
					BPF_MAP_TYPE_RINGBUF,
					BPF_MAP_TYPE_TASK_STORAGE,
					BPF_MAP_TYPE_INODE_STORAGE,
					BPF_MAP_TYPE_SK_STORAGE,
					32,
					BPF_MAP_TYPE_BLOOM_FILTER,
					77};
	/*
	 * Most calls succeed; one by one where many at once are refused; a bucket with more than
	 * there is room for; damage.
	 */
	static const uint8_t answers[][48] = {
		{0},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 1, 2, 3, 4, 0, 5, 6, 7, 8},
		{0, 0, 0, 0, 10, 0, 10, 9, 0, 10, 1, 8, 0, 3, 1, 1, 1},
		{0, 0, 9, 0, 11, 12, 13, 0, 10, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1},
	};
	for (size_t i = 0; i < sizeof(kinds); i++)
		for (uint8_t k = 0; k < 4; k++)
			put_map((struct head){.kind = kinds[i],
					      .consume = i == 3 || i == 4 ? k & 1 : k == 3,
					      .key_size = 4,
					      .cpus = k == 2 ? 0xff : k,
					      .value_size = 8,
					      .max_entries = kinds[i] == BPF_MAP_TYPE_RINGBUF
								     ? 4096
								     : 16 << 8 * (k == 2),
					      .btf_id = k == 3 ? 0 : BTF_ID,
					      .value_type = k & 1,
					      .id = k},
				answers[k], sizeof(answers[k]), put);
	put_ring(put);
	/* One call after the other fails, in each way. */
	for (uint8_t at = 0; at < 16; at++)
		for (uint8_t how = 8; how < 12; how++) {
			uint8_t all[64] = {0};
			all[at] = how;
			all[at + 5] = at & 1 ? how : 0;
			put_map((struct head){.kind = at & 2 ? BPF_MAP_TYPE_QUEUE
							     : BPF_MAP_TYPE_HASH,
					      .key_size = 4,
					      .value_size = 8,
					      .max_entries = 9000,
					      .btf_id = BTF_ID,
					      .consume = at & 2 && how & 1},
				all, sizeof(all), put);
		}
}
