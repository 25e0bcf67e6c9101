/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/chunks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "walk/abi.h"

void chunks_init(struct chunks *c, const char *name, int fd, size_t element, size_t n_elements)
{
	*c = (struct chunks){.fd = fd,
			     .name = name,
			     .element = element,
			     .n_elements = n_elements,
			     .max_blocks = WALK_MAX_CHUNKS};
}

static size_t block_bytes(const struct chunks *c)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (c->element * c->n_elements + page - 1) / page * page;
}

void chunks_fini(struct chunks *c)
{
	for (size_t i = 0; i < c->blocks.n; i++)
		munmap(c->blocks.p[i], block_bytes(c));
	VEC_FREE(&c->blocks);
}

/* A map that is one of the array of maps from now on, which holds it; here it is mapped. */
static int block_in_kernel(const struct chunks *c, uint32_t number, void **ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, c->name, sizeof(uint32_t), (uint32_t)c->element,
				(uint32_t)c->n_elements, &opts);
	int e;

	if (fd < 0)
		return -errno;
	*ret = mmap(NULL, block_bytes(c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	e = *ret == MAP_FAILED || bpf_map_update_elem(c->fd, &number, &fd, BPF_ANY) ? -errno : 0;
	if (e && *ret != MAP_FAILED)
		munmap(*ret, block_bytes(c));
	close(fd);
	return e;
}

static int block_in_memory(const struct chunks *c, void **ret)
{
	*ret = mmap(NULL, block_bytes(c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	return *ret == MAP_FAILED ? -errno : 0;
}

int chunks_grow(struct chunks *c, struct cairn_err *err)
{
	uint32_t number = (uint32_t)c->blocks.n;
	void *block;

	if (number >= c->max_blocks)
		return err_set(err, -ENOSPC, "more than %zu blocks of %s", c->max_blocks, c->name);
	int e = c->fd < 0 ? block_in_memory(c, &block) : block_in_kernel(c, number, &block);
	if (e)
		return err_set(err, e, "a block of %s in the kernel: %s", c->name, strerror(-e));
	if (!VEC_ADD(&c->blocks, block)) {
		munmap(block, block_bytes(c));
		return err_nomem(err, "blocks of a table");
	}
	return (int)number;
}

void *chunks_at(const struct chunks *c, size_t i)
{
	return c->blocks.p[i / c->n_elements] + i % c->n_elements * c->element;
}

size_t chunks_bytes(const struct chunks *c)
{
	return c->blocks.n * block_bytes(c);
}
