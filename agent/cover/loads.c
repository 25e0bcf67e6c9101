/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is loaded, in a form in which another process can load it again
 *
 * Instructions name maps by descriptors of this process. They are replaced by the maps' numbers,
 * which mean the same everywhere:
 *
 *	r1 = map at descriptor 7	LD_IMM64, source 1, 7
 *	r1 = map 1234			LD_IMM64, source 1, 1234
 */
#include "cover.h"
#include "system.h"

#include <stdlib.h>

enum { INSNS_MAX = 32768 };

/* Alike in struct bpf_prog_info and struct bpf_map_info. */
struct first_of_info {
	uint32_t type, id;
};

static uint32_t number_of(int fd)
{
	struct first_of_info info = {0};
	union bpf_attr attr = {0};

	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	return system_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) ? 0 : info.id;
}

uint32_t loads_number(int fd)
{
	return number_of(fd);
}

/* The descriptor that an index into the program's table of descriptors means; negative: none. */
static int fd_at(uint64_t table, int32_t index)
{
	int fd;

	if (!table || index < 0)
		return -1;
	const int *at = (const int *)(uintptr_t)table + index;
	return system_read_memory(at, &fd, sizeof(fd)) == sizeof(fd) ? fd : -1;
}

static bool has_index(const struct bpf_insn *insn)
{
	return insn->src_reg == BPF_PSEUDO_MAP_IDX || insn->src_reg == BPF_PSEUDO_MAP_IDX_VALUE;
}

static uint32_t name_map(struct bpf_insn *insn, uint64_t table)
{
	int fd = has_index(insn) ? fd_at(table, insn->imm) : insn->imm;
	uint32_t number = fd < 0 ? 0 : number_of(fd);

	insn->src_reg = insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_IDX
				? BPF_PSEUDO_MAP_FD
				: BPF_PSEUDO_MAP_VALUE;
	insn->imm = (int32_t)number;
	return number ? CAIRN_COVER_LOADABLE : CAIRN_COVER_UNREAD;
}

/* For a load of 8 bytes, its second half is @insn[1]. */
static uint32_t name_in(struct bpf_insn *insn, uint64_t table)
{
	switch (insn->src_reg) {
	case BPF_PSEUDO_MAP_FD:
	case BPF_PSEUDO_MAP_VALUE:
	case BPF_PSEUDO_MAP_IDX:
	case BPF_PSEUDO_MAP_IDX_VALUE:
		return name_map(insn, table);
	case BPF_PSEUDO_BTF_ID: /* the second half: a descriptor of a module's types */
		return insn[1].imm ? CAIRN_COVER_OF_MODULE : CAIRN_COVER_LOADABLE;
	}
	return CAIRN_COVER_LOADABLE;
}

static bool is_call_of_module(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL &&
	       insn->off;
}

static uint32_t name_all(struct bpf_insn *insns, uint32_t n, uint64_t table)
{
	uint32_t obstacle = CAIRN_COVER_LOADABLE;

	for (uint32_t i = 0; i < n && !obstacle; i++) {
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && i + 1 < n) {
			obstacle = name_in(&insns[i], table);
			i++;
		} else if (is_call_of_module(&insns[i])) {
			obstacle = CAIRN_COVER_OF_MODULE;
		}
	}
	return obstacle;
}

static struct bpf_insn *read_insns(const union bpf_attr *attr, uint32_t *ret_obstacle)
{
	size_t n = attr->insn_cnt * sizeof(struct bpf_insn);
	struct bpf_insn *insns = attr->insn_cnt > INSNS_MAX ? NULL : malloc(n + 1);

	*ret_obstacle = attr->insn_cnt > INSNS_MAX ? CAIRN_COVER_TOO_LONG : CAIRN_COVER_UNREAD;
	if (!insns)
		return NULL;
	if (system_read_memory((const void *)(uintptr_t)attr->insns, insns, n) == (long)n) {
		*ret_obstacle = name_all(insns, attr->insn_cnt, attr->fd_array);
		return insns;
	}
	free(insns);
	return NULL;
}

void loads_report(const void *at, size_t size, int fd)
{
	struct cairn_cover_request request = {.kind = CAIRN_COVER_LOADED};
	union bpf_attr attr = {0};
	uint32_t nothing;
	size_t n = size < sizeof(attr) ? size : sizeof(attr);

	if (system_read_memory(at, &attr, n) != (long)n)
		return;
	if (attr.prog_type != BPF_PROG_TYPE_KPROBE && attr.prog_type != BPF_PROG_TYPE_TRACING)
		return;
	if (!cover_enter())
		return;
	struct bpf_insn *insns = read_insns(&attr, &request.obstacle);
	request.program = number_of(fd);
	request.at = attr.expected_attach_type;
	n = insns && !request.obstacle ? attr.insn_cnt * sizeof(*insns) : 0;
	if (request.program)
		cover_ask(&request, insns, n, &nothing);
	free(insns);
	cover_leave();
}
