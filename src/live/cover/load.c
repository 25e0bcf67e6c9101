/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/cover.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "trace/attach/link.h"

#define LOG_BYTES (1u << 24)

/* ---- the first program ---- */

/* Its licence decides which helpers it may call. */
static const char *licence_of(const struct cover_first *first)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(first->fd, &info, &size))
		return "";
	return info.gpl_compatible ? "GPL" : "Proprietary";
}

/* ---- callbacks: the kernel wants to know where functions begin ---- */

static int make_types(struct btf **ret, int *ret_function)
{
	struct btf *btf = btf__new_empty();
	int proto = btf ? btf__add_func_proto(btf, 0) : -ENOMEM;

	*ret = btf;
	*ret_function = proto < 0 ? proto : btf__add_func(btf, "covered", BTF_FUNC_STATIC, proto);
	if (*ret_function < 0)
		return *ret_function;
	return btf__load_into_kernel(btf);
}

static int load_with_functions(const struct cover_first *first, const struct cover_built *built,
			       struct bpf_prog_load_opts *opts)
{
	VEC(struct bpf_func_info) infos = {0};
	struct btf *btf = NULL;
	int function = 0, e = make_types(&btf, &function);

	for (size_t i = 0; i < built->functions.n && e >= 0; i++)
		if (!VEC_ADD(&infos,
			     ((struct bpf_func_info){built->functions.p[i], (__u32)function})))
			e = -ENOMEM;
	opts->prog_btf_fd = btf ? (__u32)btf__fd(btf) : 0;
	opts->func_info = infos.p;
	opts->func_info_cnt = (__u32)infos.n;
	opts->func_info_rec_size = sizeof(*infos.p);
	if (e >= 0)
		e = bpf_prog_load(BPF_PROG_TYPE_KPROBE, first->name, licence_of(first),
				  built->code.insns.p, built->code.insns.n, opts);
	VEC_FREE(&infos);
	btf__free(btf);
	return e;
}

static int load(const struct cover_first *first, const struct cover_built *built,
		struct bpf_prog_load_opts *opts)
{
	if (built->functions.n)
		return load_with_functions(first, built, opts);
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, first->name, licence_of(first),
			     built->code.insns.p, built->code.insns.n, opts);
}

/* ---- the second ---- */

/* The last line that is no count. */
static void last_line(char *log, char *ret, size_t n)
{
	char *end = log + strlen(log), *line = log;

	for (; end > log; end = line) {
		while (end > log && end[-1] == '\n')
			*--end = '\0';
		line = strrchr(log, '\n');
		line = line ? line + 1 : log;
		if (strncmp(line, "processed ", 10) || line == log)
			break;
	}
	snprintf(ret, n, "%s", line);
}

int load_program(const struct cover_first *first, const struct cover_built *built, bool of_kernel,
		 char *ret_why, size_t n_why)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = 0);
	char *log;
	int fd;

	if (!of_kernel && link_multi_is_known())
		opts.expected_attach_type = LINK_UPROBE_MULTI;
	*ret_why = '\0';
	fd = load(first, built, &opts);
	if (fd >= 0 || fd == -EPERM)
		return fd;
	/* Once more, for the reason. */
	log = calloc(1, LOG_BYTES);
	if (!log)
		return -ENOMEM;
	opts.log_buf = log;
	opts.log_size = LOG_BYTES;
	opts.log_level = 1;
	fd = load(first, built, &opts);
	if (fd < 0)
		last_line(log, ret_why, n_why);
	free(log);
	return fd;
}

bool load_can_link(void)
{
	/* Both came with Linux 5.15. */
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) != 0;
}

int load_counter(void)
{
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "cairn_lost", 4, 8, 1, NULL);
}
