/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that a command has loaded
 *
 * Only numbers are kept, of the program and in its instructions of the maps: a descriptor would
 * keep the program and its maps when the command has closed them.
 */
#include "cover/command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "launch/permission.h"

/* After so many more, those that are gone are forgotten. */
enum { SWEEP = 64 };

static struct loaded_insns *find(const struct loaded *l, uint32_t number)
{
	for (size_t i = 0; i < l->programs.n; i++)
		if (l->programs.p[i].number == number)
			return &l->programs.p[i];
	return NULL;
}

static bool is_gone(uint32_t number)
{
	int fd = bpf_prog_get_fd_by_id(number);

	if (fd >= 0)
		close(fd);
	return fd == -ENOENT;
}

static void sweep(struct loaded *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->programs.n; i++) {
		if (is_gone(l->programs.p[i].number))
			free(l->programs.p[i].insns);
		else
			l->programs.p[n++] = l->programs.p[i];
	}
	l->programs.n = n;
}

int loaded_keep(struct loaded *l, const struct request *r, struct cairn_err *err)
{
	struct loaded_insns one = {.number = r->head.program,
				   .attach_type = (uint32_t)r->head.at,
				   .obstacle = r->head.obstacle,
				   .n = r->n / sizeof(*one.insns)};
	struct loaded_insns *before = find(l, one.number);

	one.insns = malloc(r->n + 1);
	if (!one.insns)
		return err_nomem(err, "a program's instructions");
	if (r->n)
		memcpy(one.insns, r->bytes, r->n);
	if (before) {
		free(before->insns);
		*before = one;
		return 0;
	}
	if (l->programs.n % SWEEP == SWEEP - 1)
		sweep(l);
	if (VEC_ADD(&l->programs, one))
		return 0;
	free(one.insns);
	return err_nomem(err, "a program's instructions");
}

void loaded_fini(struct loaded *l)
{
	while (l->programs.n)
		free(l->programs.p[--l->programs.n].insns);
	VEC_FREE(&l->programs);
}

/* ---- one ---- */

static const char *obstacle_text(enum cairn_cover_obstacle obstacle)
{
	switch (obstacle) {
	case CAIRN_COVER_LOADABLE:
		return NULL;
	case CAIRN_COVER_TOO_LONG:
		return "it is too long";
	case CAIRN_COVER_OF_MODULE:
		return "it names data or functions of a module";
	default:
		return "its instructions could not be read when it was loaded";
	}
}

/* The load of another program was not seen. */
#define NOT_SEEN "it was not loaded by this command, or not by the C library's syscall()"

static bool names_map(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW) &&
	       (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE);
}

/* Negative errno; the same map is opened once for each time that it is named. */
static int open_map(struct loaded_program *p, struct bpf_insn *insn)
{
	int fd = bpf_map_get_fd_by_id((uint32_t)insn->imm);

	if (fd < 0)
		return fd;
	if (!VEC_ADD(&p->maps, fd)) {
		close(fd);
		return -ENOMEM;
	}
	insn->imm = fd;
	return 0;
}

static int open_maps(struct loaded_program *p)
{
	int e = 0;

	for (size_t i = 0; i < p->first.n && !e; i++) {
		struct bpf_insn *insn = &p->insns[i];
		if (names_map(insn))
			e = open_map(p, insn);
		i += insn->code == (BPF_LD | BPF_IMM | BPF_DW);
	}
	return e;
}

/* Without a call or a store nothing comes of it: tools load such programs to learn what works. */
static bool does_something(const struct loaded_insns *from)
{
	for (size_t i = 0; i < from->n; i++) {
		uint8_t class = BPF_CLASS(from->insns[i].code);
		if (class == BPF_ST || class == BPF_STX ||
		    (class == BPF_JMP && BPF_OP(from->insns[i].code) == BPF_CALL))
			return true;
		i += from->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
	return false;
}

static int take_insns(struct loaded_program *p, const struct loaded_insns *from)
{
	p->why = from ? obstacle_text(from->obstacle) : NOT_SEEN;
	if (!from)
		return 0;
	p->attach_type = from->attach_type;
	if (p->why)
		return 0;
	p->is_idle = !does_something(from);
	p->insns = malloc(from->n * sizeof(*p->insns) + 1);
	if (!p->insns)
		return -ENOMEM;
	memcpy(p->insns, from->insns, from->n * sizeof(*p->insns));
	p->first.insns = p->insns;
	p->first.n = from->n;
	return open_maps(p);
}

static int look(struct loaded_program *p, uint32_t number)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	p->first.fd = bpf_prog_get_fd_by_id(number);
	if (p->first.fd < 0)
		return p->first.fd;
	if (bpf_obj_get_info_by_fd(p->first.fd, &info, &size))
		return -errno;
	memcpy(p->name, info.name, sizeof(p->name) - 1);
	p->first.name = p->name;
	p->type = info.type;
	p->of_btf = info.attach_btf_obj_id;
	p->function = info.attach_btf_id;
	return 0;
}

int loaded_open(const struct loaded *l, uint32_t number, struct loaded_program *ret,
		struct cairn_err *err)
{
	*ret = (struct loaded_program){.first = {.fd = -1}};
	int e = look(ret, number);

	e = e ? e : take_insns(ret, find(l, number));
	if (e == -EPERM)
		return permission_error(err, "opening a program of the command");
	return e ? err_set(err, e, "opening a program of the command: %s", strerror(-e)) : 0;
}

void loaded_close(struct loaded_program *p)
{
	while (p->maps.n)
		close(p->maps.p[--p->maps.n]);
	VEC_FREE(&p->maps);
	free(p->insns);
	if (p->first.fd >= 0)
		close(p->first.fd);
}
