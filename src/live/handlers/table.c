/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a program
 *
 * libbpf does not tell a handler which object a program is of. Once it is loaded its instructions
 * name the maps that it uses, by their descriptors.
 *
 * Rows are put where no row of a living link is. A link that was destroyed does not call us; but the
 * kernel's number of it is gone then.
 */
#include "handlers/handlers.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "base/err.h"

#define TABLE_PREFIX "bpf_loc_table_"
#define TABLE_NAME   TABLE_PREFIX "2"
/* BPF_LOC_NEEDS_MARK of loc.bpf.h; the number is in the lowest byte. */
#define NEEDS_MARK   0x6c6f6300
#define NEEDS_MAX    12

struct used {
	uint32_t table, first, n;
	uint32_t link; /* 0: it is being made */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct used) all_used;
static uint64_t own_mark;

/* ---- the program ---- */

static bool is_map(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg == BPF_PSEUDO_MAP_FD;
}

static int look_at_map(int fd, struct loc_table *ret, struct cairn_err *err)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) ||
	    strncmp(info.name, TABLE_PREFIX, strlen(TABLE_PREFIX)))
		return 0;
	if (strcmp(info.name, TABLE_NAME) || info.value_size != sizeof(struct cairn_loc_entry))
		return err_set(err, -EPROTO,
			       "the program was built with a loc.bpf.h that this libcairn does "
			       "not know (its table is %s); build it again",
			       info.name);
	*ret = (struct loc_table){.fd = fd, .id = info.id, .max_entries = info.max_entries};
	return 0;
}

int table_find(const struct bpf_program *prog, struct loc_table *ret, struct cairn_err *err)
{
	const struct bpf_insn *insns = bpf_program__insns(prog);
	size_t n = insns ? bpf_program__insn_cnt(prog) : 0;
	int e = 0;

	*ret = (struct loc_table){.fd = -1};
	for (size_t i = 0; i < n && !e && ret->fd < 0; i++)
		if (is_map(&insns[i]))
			e = look_at_map(insns[i].imm, ret, err);
	return e;
}

uint32_t table_needs(const struct bpf_program *prog)
{
	const struct bpf_insn *insns = bpf_program__insns(prog);
	size_t n = insns ? bpf_program__insn_cnt(prog) : 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t number = (uint32_t)insns[i].imm - NEEDS_MARK;
		if ((insns[i].code & ~BPF_ALU64) == (BPF_MOV | BPF_K) && !insns[i].dst_reg &&
		    number <= NEEDS_MAX)
			return number;
	}
	return 0;
}

/* ---- room ---- */

static bool is_gone(uint32_t link)
{
	int fd = link ? bpf_link_get_fd_by_id(link) : -EBUSY;

	if (fd >= 0)
		close(fd);
	/* Without the permission to look, it is taken to be there. */
	return fd == -ENOENT;
}

static void forget_gone(void)
{
	size_t n = 0;

	for (size_t i = 0; i < all_used.n; i++)
		if (!is_gone(all_used.p[i].link))
			all_used.p[n++] = all_used.p[i];
	all_used.n = n;
}

/* The first range in use that overlaps [@first, @first + @n); NULL: it is free. */
static const struct used *overlapping(uint32_t table, uint32_t first, uint32_t n)
{
	for (size_t i = 0; i < all_used.n; i++) {
		const struct used *u = &all_used.p[i];
		if (u->table == table && u->first < first + n && first < u->first + u->n)
			return u;
	}
	return NULL;
}

static int find_room(const struct loc_table *table, uint32_t n, uint32_t *ret,
		     struct cairn_err *err)
{
	const struct used *u;
	uint64_t first = 1;

	/* A cookie has no room for an index beyond. */
	uint32_t end =
		table->max_entries < CAIRN_LOC_TABLE_MAX ? table->max_entries : CAIRN_LOC_TABLE_MAX;

	while (first + n <= end) {
		u = overlapping(table->id, (uint32_t)first, n);
		if (!u) {
			*ret = (uint32_t)first;
			return 0;
		}
		first = (uint64_t)u->first + u->n;
	}
	return err_set(err, -ENOSPC,
		       "%" PRIu32 " more entries are needed, and the program's table has %" PRIu32
		       "; define BPF_LOC_TABLE_ENTRIES before #include <cairn/loc.bpf.h>, or call "
		       "bpf_map__set_max_entries() on " TABLE_NAME " before loading",
		       n, end);
}

/* Two processes that share a table would write into each other's rows. */
static int claim(const struct loc_table *table, struct cairn_err *err)
{
	struct cairn_loc_entry head = {0};
	uint32_t zero = 0;

	while (!own_mark)
		if (getrandom(&own_mark, sizeof(own_mark), 0) != sizeof(own_mark))
			own_mark = (uint64_t)getpid();
	if (bpf_map_lookup_elem(table->fd, &zero, &head))
		return err_set(err, -errno, "reading the program's table: %s", strerror(errno));
	if (head.imm == own_mark)
		return 0;
	if (head.imm)
		return err_set(err, -EBUSY,
			       "another process attached programs of the same " TABLE_NAME);
	head.imm = own_mark;
	if (bpf_map_update_elem(table->fd, &zero, &head, 0))
		return err_set(err, -errno, "filling the program's table: %s", strerror(errno));
	return 0;
}

static int write_all(const struct loc_table *table, const struct cairn_loc_entry *entries,
		     uint32_t n, uint32_t first, struct cairn_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = first + i;
		if (bpf_map_update_elem(table->fd, &at, &entries[i], 0))
			return err_set(err, -errno, "filling the program's table: %s",
				       strerror(errno));
	}
	return 0;
}

int table_put(const struct loc_table *table, const struct cairn_loc_entry *entries, uint32_t n,
	      uint32_t *ret_first, struct cairn_err *err)
{
	pthread_mutex_lock(&lock);
	forget_gone();
	int e = claim(table, err);
	e = e ? e : find_room(table, n, ret_first, err);
	if (!e &&
	    !VEC_ADD(&all_used, ((struct used){.table = table->id, .first = *ret_first, .n = n})))
		e = err_nomem(err, "rows of arguments");
	pthread_mutex_unlock(&lock);
	if (e)
		return e;
	e = write_all(table, entries, n, *ret_first, err);
	if (e)
		table_drop(table, *ret_first);
	return e;
}

static size_t find_used(const struct loc_table *table, uint32_t first)
{
	size_t i = 0;

	while (i < all_used.n && (all_used.p[i].table != table->id || all_used.p[i].first != first))
		i++;
	return i;
}

void table_own(const struct loc_table *table, uint32_t first, uint32_t link_id)
{
	pthread_mutex_lock(&lock);
	size_t i = find_used(table, first);
	if (i < all_used.n)
		all_used.p[i].link = link_id;
	pthread_mutex_unlock(&lock);
}

void table_drop(const struct loc_table *table, uint32_t first)
{
	pthread_mutex_lock(&lock);
	size_t i = find_used(table, first);
	if (i < all_used.n)
		all_used.p[i] = all_used.p[--all_used.n];
	pthread_mutex_unlock(&lock);
}
