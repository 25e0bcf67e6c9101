/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/cover.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "launch/permission.h"

#define SAID_MAX 400

/* A program of the object. */
struct member {
	struct covered covered;
	struct bpf_program *program;
	const char *given; /* its target, of opts.targets; NULL */
	struct bpf_link *link;
};

struct cairn_cover {
	struct cairn_cover_opts opts;
	struct bpf_object *object;
	VEC(struct member) programs;
};

/* ---- what libbpf says ---- */

static __thread char last_words[SAID_MAX];

static int keep_last_words(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		vsnprintf(last_words, sizeof(last_words), format, args);
	return 0;
}

static libbpf_print_fn_t listen(void)
{
	last_words[0] = '\0';
	return libbpf_set_print(keep_last_words);
}

static int explain(int e, const char *what, struct cairn_err *err)
{
	last_words[strcspn(last_words, "\n")] = '\0';
	if (e == -EPERM)
		return permission_error(err, what);
	return err_set(err, e, "%s: %s", what, *last_words ? last_words : strerror(-e));
}

/* ---- opening ---- */

static const char *given_target(const struct cairn_cover *c, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < c->opts.n_targets; i++) {
		const char *text = c->opts.targets[i];
		if (!strncmp(text, name, n) && text[n] == '=' && text[n + 1])
			return text + n + 1;
	}
	return NULL;
}

/* Each target is of a program that has none. */
static int check_targets(const struct cairn_cover *c, struct cairn_err *err)
{
	for (size_t i = 0; i < c->opts.n_targets; i++) {
		const char *text = c->opts.targets[i];
		bool is_used = false;
		for (size_t k = 0; k < c->programs.n; k++) {
			const struct member *m = &c->programs.p[k];
			const char *given = m->given;
			is_used |= given && given > text && given <= text + strlen(text) &&
				   m->covered.section.target == given;
		}
		if (!is_used)
			return err_set(err, -EINVAL,
				       "%s: no program of this name has a SEC() without a target, "
				       "such as SEC(\"kprobe\")",
				       text);
	}
	return 0;
}

static void fill_member(const struct cairn_cover *c, struct member *m, struct bpf_program *program)
{
	struct covered *p = &m->covered;

	m->program = program;
	p->lost_fd = -1;
	p->pub.name = bpf_program__name(program);
	p->pub.section = bpf_program__section_name(program);
	m->given = given_target(c, p->pub.name);
	p->section = section_of(p->pub.section, m->given);
	p->first = (struct cover_first){.name = p->pub.name,
					.insns = bpf_program__insns(program),
					.n = bpf_program__insn_cnt(program),
					.fd = bpf_program__fd(program)};
}

static int add_programs(struct cairn_cover *c, struct cairn_err *err)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, c->object)
	{
		struct member *m = bpf_program__fd(program) >= 0 ? VEC_PUSH(&c->programs) : NULL;
		if (bpf_program__fd(program) < 0) /* it is not loaded by itself: SEC("?...") */
			continue;
		if (!m)
			return err_nomem(err, "programs");
		fill_member(c, m, program);
	}
	return check_targets(c, err);
}

static int open_object(struct cairn_cover *c, const char *path)
{
	c->object = bpf_object__open_file(path, NULL);
	if (c->object)
		return bpf_object__load(c->object);
	return errno == ENOENT || errno == EACCES || errno == ENOMEM ? -errno : -EBADMSG;
}

static int load(struct cairn_cover *c, const char *path, struct cairn_err *err)
{
	libbpf_print_fn_t before = listen();
	int e = open_object(c, path);

	libbpf_set_print(before);
	return e ? explain(e, path, err) : add_programs(c, err);
}

int cairn_cover_open(const char *path, const struct cairn_cover_opts *opts,
		     struct cairn_cover **ret, struct cairn_err *err)
{
	struct cairn_cover *c = calloc(1, sizeof(*c));
	int e = c ? opts_take(&c->opts, sizeof(c->opts), opts, err) : err_nomem(err, "an object");

	e = e < 0 ? e : load(c, path, err);
	if (e < 0)
		cairn_cover_close(c);
	else
		*ret = c;
	return e;
}

void cairn_cover_close(struct cairn_cover *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->programs.n; i++) {
		program_fini(&c->programs.p[i].covered);
		bpf_link__destroy(c->programs.p[i].link);
	}
	VEC_FREE(&c->programs);
	bpf_object__close(c->object);
	free(c);
}

/* ---- attaching ---- */

static struct bpf_link *attach_to(const struct member *m, const char *target)
{
	bool is_return = m->covered.section.kind == SECTION_RETURN;
	const char *colon = strrchr(target, ':');
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = is_return);

	if (m->covered.section.of_kernel)
		return bpf_program__attach_kprobe(m->program, is_return, target);
	SCOPE_FREE char *path = colon ? strndup(target, (size_t)(colon - target)) : NULL;
	opts.func_name = colon ? colon + 1 : NULL;
	errno = EINVAL;
	return path ? bpf_program__attach_uprobe_opts(m->program, -1, path, 0, &opts) : NULL;
}

/* A function without a symbol of its name has other sites, or is none. */
static int attach_first(struct member *m, struct cairn_err *err)
{
	struct covered *p = &m->covered;
	const char *target = p->section.target;
	int e;

	m->link = target && target == m->given ? attach_to(m, target)
					       : bpf_program__attach(m->program);
	e = m->link ? 0 : -errno;
	p->pub.is_attached = !e;
	/* A program whose SEC() names no function is left to its own tool. */
	if (e && !target)
		return e == -EOPNOTSUPP ? 0 : explain(e, p->pub.section, err);
	/* A place that the kernel does not probe is not the command line's fault. */
	e = e == -EINVAL ? -EOPNOTSUPP : e;
	return e && e != -ENOENT && e != -EADDRNOTAVAIL ? explain(e, p->pub.section, err) : 0;
}

static int attach_one(struct cairn_cover *c, struct member *m, struct cairn_err *err)
{
	struct covered *p = &m->covered;
	libbpf_print_fn_t before = listen();
	int e = attach_first(m, err);

	e = e ? e : program_cover(p, &c->opts, err);
	if (!e && !m->link && !p->pub.n_sites && !p->pub.why && p->pub.target)
		e = explain(-ENOENT, p->pub.section, err);
	libbpf_set_print(before);
	return e;
}

int cairn_cover_attach(struct cairn_cover *c, struct cairn_err *err)
{
	int e = 0;

	for (size_t i = 0; i < c->programs.n && !e; i++)
		e = attach_one(c, &c->programs.p[i], err);
	return e;
}

uint32_t cairn_cover_n_programs(const struct cairn_cover *c)
{
	return (uint32_t)c->programs.n;
}

const struct cairn_covered *cairn_cover_program(const struct cairn_cover *c, uint32_t i)
{
	return &c->programs.p[i].covered.pub;
}

void cairn_cover_count(struct cairn_cover *c)
{
	for (size_t i = 0; i < c->programs.n; i++)
		program_count(&c->programs.p[i].covered);
}

/* ---- maps ---- */

int cairn_cover_pin(struct cairn_cover *c, const char *dir, struct cairn_err *err)
{
	libbpf_print_fn_t before = listen();
	int e = bpf_object__pin_maps(c->object, dir);

	libbpf_set_print(before);
	return e ? explain(e, dir, err) : 0;
}

void cairn_cover_unpin(struct cairn_cover *c, const char *dir)
{
	libbpf_print_fn_t before = listen();

	bpf_object__unpin_maps(c->object, dir);
	libbpf_set_print(before);
}
