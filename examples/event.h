/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What event.bpf.c writes into its ring buffer. Event.java, event.rs, event.go and event.py read
 * it, each with declarations of its own; `cairn layout --check examples/event.bpf.o --against
 * examples/Event.java` tells whether they agree.
 */
#ifndef EVENT_H
#define EVENT_H

enum kind { KIND_OPEN, KIND_READ = 2, KIND_CLOSE };

struct event {
	unsigned int e_pid;
	char e_filename[256];
	char e_comm[16];
};

struct position {
	unsigned long long offset;
	unsigned char whence;
};

/* As it should not be: 11 bytes of 32 are holes. */
struct padded_event {
	char c;
	long l;
	int i;
	void *x;
};

struct access {
	struct event event;
	enum kind kind;
	struct position at;
	_Bool failed;
	int error;
	unsigned long long when_ns;
};

#endif
