/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process of a command
 *
 * Its thread waits for each answer, so a program is covered before the kernel attaches it. What was
 * attached is detached when the process says so, or its connection ends.
 */
#include "cover/command.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/err.h"

/* Read at once. */
enum { CHUNK = 65536 };

struct attached {
	uint32_t handle;
	struct covered covered;
	struct loaded_program program;
	struct target target;
	struct arena arena;
};

/* ---- one program ---- */

static void attached_free(struct attached *a)
{
	program_fini(&a->covered);
	loaded_close(&a->program);
	arena_fini(&a->arena);
	free(a);
}

static void report(const struct client *c, struct attached *a, const char *refused)
{
	if (c->run->command.covered)
		c->run->command.covered(c->run->command.ctx, (int)c->pid, &a->covered.pub, refused);
}

static void detach(const struct client *c, struct attached *a)
{
	program_count(&a->covered);
	if (c->run->command.detached && a->covered.section.target)
		c->run->command.detached(c->run->command.ctx, (int)c->pid, &a->covered.pub);
	attached_free(a);
}

static void fill(struct attached *a, const struct cairn_cover_request *r)
{
	struct covered *p = &a->covered;

	p->section = a->target.section;
	if (!p->section.target)
		p->section.target = a->target.shown;
	p->first = a->program.first;
	p->cookie = r->cookie;
	p->pid = r->pid > 0 ? r->pid : 0;
	p->pub.name = a->program.first.name;
	p->pub.section = a->target.shown;
	p->pub.is_attached = r->attached;
}

/* A reason that is known before its sites are. */
static int leave_out(struct attached *a, const char *why, const struct cairn_cover_opts *opts,
		     struct cairn_err *err)
{
	struct covered *p = &a->covered;

	snprintf(p->why, sizeof(p->why), "%s", why);
	p->pub.why = p->why;
	p->pub.target = p->section.target;
	if (opts->best_effort)
		return 0;
	return err_set(err, -ENOENT, "program %s, %s: calls would not be seen: %s", p->pub.name,
		       p->pub.section, why);
}

static int no_print(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static int cover(struct attached *a, const struct cairn_cover_opts *opts, struct cairn_err *err)
{
	struct covered *p = &a->covered;

	if (a->target.why)
		return leave_out(a, a->target.why, opts, err);
	/* Without its instructions it is right where the function has no other site. */
	p->missing = a->program.why;
	libbpf_print_fn_t before = libbpf_set_print(no_print);
	int e = program_cover(p, opts, err);
	libbpf_set_print(before);
	return e;
}

static int attach(struct client *c, const struct request *r, struct attached *a,
		  struct cairn_err *err)
{
	int e = loaded_open(&c->run->loaded, r->head.program, &a->program, err);

	e = e < 0 ? e : target_find(r, &a->program, c->pid, &a->arena, &a->target, err);
	if (e < 0 || a->target.is_of_no_function)
		return e;
	fill(a, &r->head);
	e = cover(a, c->run->opts, err);
	if (!e && !r->head.attached && !a->covered.pub.n_sites)
		e = err_set(err, -ENOENT, "program %s, %s: nothing can be attached: %s",
			    a->covered.pub.name, a->covered.pub.section,
			    a->covered.pub.why ? a->covered.pub.why : "it has no site");
	return e;
}

/* ---- requests ---- */

static int take_attach(struct client *c, const struct request *r, uint32_t *ret_handle)
{
	struct attached *a = calloc(1, sizeof(*a));
	struct cairn_err err = {0};

	if (!a)
		return -ENOMEM;
	arena_init(&a->arena);
	a->covered.lost_fd = a->program.first.fd = -1;
	int e = attach(c, r, a, &err);
	if (!e && a->target.is_of_no_function) {
		attached_free(a);
		return 0;
	}
	report(c, a, e < 0 ? err.msg : NULL);
	a->handle = ++c->last_handle;
	if (e < 0 || !VEC_ADD(&c->attached, a)) {
		attached_free(a);
		return e < 0 ? e : -ENOMEM;
	}
	*ret_handle = a->handle;
	return 0;
}

static int take_detach(struct client *c, uint32_t handle)
{
	for (size_t i = 0; i < c->attached.n; i++) {
		if (c->attached.p[i]->handle != handle)
			continue;
		detach(c, c->attached.p[i]);
		c->attached.p[i] = c->attached.p[--c->attached.n];
		return 0;
	}
	return -ENOENT;
}

/* Whether the kernel's function of this name was inlined somewhere. */
static int take_find(struct client *c, const struct request *r)
{
	char name[REQUEST_TEXT_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)r->n, (const char *)r->bytes);
	return program_has_sites(name, c->run->opts) ? 0 : -ENOENT;
}

static bool answer(struct client *c, int result, uint32_t value)
{
	const struct cairn_cover_answer a = {result, value};

	return send(c->fd, &a, sizeof(a), MSG_NOSIGNAL) == sizeof(a);
}

static bool take(struct client *c, const struct request *r)
{
	uint32_t handle = 0;
	int e = 0;

	switch (r->head.kind) {
	case CAIRN_COVER_LOADED:
		e = loaded_keep(&c->run->loaded, r, NULL);
		break;
	case CAIRN_COVER_FIND:
		e = take_find(c, r);
		break;
	case CAIRN_COVER_ATTACH:
		e = take_attach(c, r, &handle);
		break;
	case CAIRN_COVER_DETACH:
		e = take_detach(c, r->head.handle);
		break;
	}
	return answer(c, e, handle);
}

/* All that are there whole. */
static bool take_all(struct client *c)
{
	size_t at = 0;

	for (;;) {
		struct request r;
		int n = request_take(c->bytes.p + at, c->bytes.n - at, &r, NULL);
		if (n < 0 || (n && !take(c, &r)))
			return false;
		if (!n)
			break;
		at += (size_t)n;
	}
	memmove(c->bytes.p, c->bytes.p + at, c->bytes.n - at);
	c->bytes.n -= at;
	return true;
}

bool client_serve(struct client *c)
{
	uint8_t bytes[CHUNK];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	for (ssize_t i = 0; i < n; i++)
		if (!VEC_ADD(&c->bytes, bytes[i]))
			return false;
	return take_all(c);
}

void client_close(struct client *c)
{
	while (c->attached.n)
		detach(c, c->attached.p[--c->attached.n]);
	VEC_FREE(&c->attached);
	VEC_FREE(&c->bytes);
	close(c->fd);
	free(c);
}
