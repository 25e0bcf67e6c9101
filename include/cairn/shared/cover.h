/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program's BPF calls tell `cairn run --cover-inlined -- COMMAND`
 *
 * A library that is preloaded into the program connects to the socket whose abstract name is in the
 * environment, and first receives an answer with the types of perf events: result is that of
 * kprobes, value that of uprobes. Then it sends requests, and waits for the answer to each:
 *
 *	struct cairn_cover_request	size counts this and what follows
 *	text, or instructions of BPF
 *
 * All numbers are of the machine's byte order.
 */
#ifndef CAIRN_SHARED_COVER_H
#define CAIRN_SHARED_COVER_H

#include <stdint.h>

/* The environment's variable with the socket's name, without its first byte, which is 0. */
#define CAIRN_COVER_VARIABLE "CAIRN_COVER_SOCKET"

enum cairn_cover_kind {
	/* A program was loaded: its instructions follow, with numbers of maps for descriptors. */
	CAIRN_COVER_LOADED = 1,
	/* Has the kernel's function of this name sites? result: 0, or -ENOENT. */
	CAIRN_COVER_FIND = 2,
	/* A program is about to be attached to what the text names; value: a handle. */
	CAIRN_COVER_ATTACH = 3,
	/* It was detached. */
	CAIRN_COVER_DETACH = 4,
};

/* The means by which it is attached. */
enum cairn_cover_probe {
	CAIRN_COVER_KPROBE = 1, /* text: the function; none: the address is at */
	CAIRN_COVER_UPROBE = 2, /* text: the file; at: the offset in it */
	CAIRN_COVER_KPROBE_RETURN = 3,
	CAIRN_COVER_UPROBE_RETURN = 4,
	CAIRN_COVER_SEVERAL = 5,    /* one link for several functions */
	CAIRN_COVER_TRACEPOINT = 6, /* an event that tracefs has made */
	CAIRN_COVER_FENTRY = 7,     /* no text: the program has it */
};

/* Why a program's instructions cannot be loaded by another process. */
enum cairn_cover_obstacle {
	CAIRN_COVER_LOADABLE = 0,
	CAIRN_COVER_TOO_LONG = 1,
	CAIRN_COVER_OF_MODULE = 2, /* it names the data or functions of a module */
	CAIRN_COVER_UNREAD = 3,    /* its memory or its maps could not be read */
};

struct cairn_cover_request {
	uint32_t kind, size;
	uint32_t program;  /* its number, bpf_prog_info.id */
	uint32_t handle;   /* of CAIRN_COVER_DETACH */
	uint32_t probe;    /* of CAIRN_COVER_ATTACH */
	uint32_t attached; /* of CAIRN_COVER_ATTACH; 0: the function has no code of that name */
	uint32_t obstacle; /* of CAIRN_COVER_LOADED */
	int32_t pid;       /* of CAIRN_COVER_ATTACH; this process's hits alone; 0 or -1: all */
	uint64_t cookie;
	uint64_t at; /* in bytes, within a function or a file */
};

struct cairn_cover_answer {
	int32_t result; /* 0 or a negative errno */
	uint32_t value;
};

/* No request is larger. */
#define CAIRN_COVER_REQUEST_MAX (sizeof(struct cairn_cover_request) + 32768u * 8u)

#endif
