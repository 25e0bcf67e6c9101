/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of the arguments of an fentry program
 *
 * Its context is an array with 8 bytes for each argument, and the verifier knows which of them are
 * pointers to which structs. At an inlined copy the values are numbers; bpf_rdonly_cast() makes such
 * a pointer of a number, which may be read as the program reads it:
 *
 *	r1 = *(u64 *)(fp - 8)		// req, wherever it was
 *	r2 = 1234			// struct request among the kernel's types
 *	call bpf_rdonly_cast
 *	*(u64 *)(fp - 8) = r0
 */
#include "cover/cover.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/err.h"

/* MAX_BPF_FUNC_ARGS */
enum { ARGS_MAX = 12 };

static const struct btf_type *resolved(const struct btf *btf, uint32_t *id)
{
	const struct btf_type *t = btf__type_by_id(btf, *id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t))) {
		*id = t->type;
		t = btf__type_by_id(btf, *id);
	}
	return t;
}

/* 0: it is a number to the verifier. */
static uint32_t pointed_struct(const struct btf *btf, const struct btf_type *pointer)
{
	uint32_t id = pointer->type;
	const struct btf_type *t = resolved(btf, &id);

	return t && btf_is_composite(t) ? id : 0;
}

static void place(const struct btf *btf, const struct btf_type *proto, struct cover_params *ret)
{
	const struct btf_param *params = btf_params(proto);

	for (unsigned int i = 0; i < btf_vlen(proto) && i < ARGS_MAX; i++) {
		uint32_t id = params[i].type;
		const struct btf_type *t = resolved(btf, &id);
		/* Of more than 8 bytes it takes two places. */
		if (!t || btf_is_composite(t)) {
			for (; i < WORDS; i++)
				ret->of_word[i] = PARAM_UNKNOWN;
			return;
		}
		ret->of_word[i] = (int8_t)i;
		ret->structs[i] = btf_is_ptr(t) ? pointed_struct(btf, t) : 0;
	}
}

static const struct btf_type *proto_of(const struct btf *btf, uint32_t function)
{
	const struct btf_type *t = btf__type_by_id(btf, function);

	t = t && btf_is_func(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? t : NULL;
}

static void find(const struct btf *btf, uint32_t function, const struct cairn_function *f,
		 struct cover_params *ret)
{
	const struct btf_type *proto = proto_of(btf, function);
	int cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC);

	if (!proto || btf_vlen(proto) != f->n_params) {
		ret->why = "the kernel's types say something else about its arguments";
		return;
	}
	ret->cast = cast > 0 ? (uint32_t)cast : 0;
	place(btf, proto, ret);
}

bool typed_module(uint32_t number, char *ret, size_t n)
{
	struct bpf_btf_info info = {.name = (uintptr_t)ret, .name_len = (__u32)n};
	__u32 size = sizeof(info);
	int fd = bpf_btf_get_fd_by_id(number);

	memset(ret, 0, n);
	if (fd < 0)
		return false;
	int e = bpf_obj_get_info_by_fd(fd, &info, &size);
	close(fd);
	if (!strcmp(ret, "vmlinux"))
		*ret = '\0';
	return !e;
}

int typed_find(int program, const struct cairn_function *f, struct cover_params *ret,
	       struct cairn_err *err)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	char module[64];

	*ret = (struct cover_params){.is_array = true};
	memset(ret->of_word, NO_PARAM, sizeof(ret->of_word));
	if (bpf_obj_get_info_by_fd(program, &info, &size))
		return err_set(err, -errno, "a program of the kernel: %s", strerror(errno));
	if (!typed_module(info.attach_btf_obj_id, module, sizeof(module)) || *module) {
		ret->why = "the types of its arguments are those of a module";
		return 0;
	}
	struct btf *btf = btf__load_vmlinux_btf();
	if (!btf)
		return err_set(err, -errno, "the types of the kernel: %s", strerror(errno));
	find(btf, info.attach_btf_id, f, ret);
	btf__free(btf);
	return 0;
}
