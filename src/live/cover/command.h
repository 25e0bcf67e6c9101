/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs that a command attaches, each of its processes on its own connection
 *
 *	COMMAND                          here
 *	bpf(BPF_PROG_LOAD)      ──────►  loaded.c   its instructions, by its number
 *	perf_event_open(kprobe) ──────►  target.c   the function's sites, if the kernel has no body
 *	bpf(BPF_LINK_CREATE)    ──────►  client.c   program_cover() before the kernel is called
 *	close(link)             ──────►             program_fini()
 */
#ifndef COVER_COMMAND_H
#define COVER_COMMAND_H

#include <sys/types.h>

#include <cairn/shared/cover.h>

#include "base/arena.h"
#include "cover/cover.h"

/* ---- request.c ---- */

enum { REQUEST_TEXT_MAX = 4096 };

struct request {
	struct cairn_cover_request head;
	const uint8_t *bytes; /* after it: instructions, or a text without its end */
	size_t n;
};

/*
 * request_take - the first request of @n bytes
 *
 * Returns its size; 0: it is not there whole; -EBADMSG.
 */
int request_take(const uint8_t *bytes, size_t n, struct request *ret, struct cairn_err *err);

/* ---- loaded.c ---- */

struct loaded_insns {
	uint32_t number; /* of the program */
	uint32_t attach_type;
	enum cairn_cover_obstacle obstacle;
	struct bpf_insn *insns;
	size_t n;
};

struct loaded {
	VEC(struct loaded_insns) programs;
};

/* Returns 0 or -ENOMEM. Forgets those of programs that are no more, from time to time. */
int loaded_keep(struct loaded *l, const struct request *r, struct cairn_err *err);
void loaded_fini(struct loaded *l);

/* A program to be attached. */
struct loaded_program {
	struct cover_first first; /* its name, instructions and descriptor are of this struct */
	uint32_t type, attach_type;
	uint32_t of_btf, function; /* of fentry: numbers of types, and of one of them */
	bool is_idle;              /* nothing comes of its running */
	const char *why;           /* its instructions cannot be used; NULL */
	char name[16];
	struct bpf_insn *insns;
	VEC(int) maps;
};

/*
 * loaded_open - the program of this number, with descriptors of this process
 *
 * Returns 0, also with @ret->why; -ENOMEM, -EPERM, and the errors of bpf(2). loaded_close() in all
 * cases.
 */
int loaded_open(const struct loaded *l, uint32_t number, struct loaded_program *ret,
		struct cairn_err *err);
void loaded_close(struct loaded_program *p);

/* ---- target.c ---- */

struct target {
	struct section section; /* its target is of the arena */
	const char *shown;      /* "kprobe/vfs_read" */
	bool is_of_no_function; /* an instruction within one, or a program that is not ours to judge */
	const char *why;        /* the function is not known; NULL */
};

/*
 * target_find - the function that a program is about to be attached to
 *
 * @pid  the process, whose files @r is about
 * Returns 0 or -ENOMEM.
 */
int target_find(const struct request *r, const struct loaded_program *program, pid_t pid,
		struct arena *arena, struct target *ret, struct cairn_err *err);

/* ---- client.c ---- */

struct cover_run {
	const struct cairn_cover_opts *opts;
	struct cairn_cover_command command;
	struct loaded loaded;
};

struct attached;

struct client {
	struct cover_run *run;
	int fd;
	pid_t pid;
	VEC(uint8_t) bytes;
	VEC(struct attached *) attached;
	uint32_t last_handle;
};

/* Reads what has come and answers it. False: the connection has ended, or is of no use. */
bool client_serve(struct client *c);
/* Detaches what it attached. */
void client_close(struct client *c);

#endif
