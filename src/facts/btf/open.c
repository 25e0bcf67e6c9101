/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening: reads the bytes of a blob from a file. */
#include "btf/any_elf.h"
#include "base/inputs.h"
#include "btf/btf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "elf/elf.h"

static struct cairn_btf *blob_new(const char *name, const struct cairn_btf *base)
{
	struct cairn_btf *btf = calloc(1, sizeof(*btf));
	if (!btf)
		return NULL;
	btf->base = base;
	btf->name = strdup(name);
	if (btf->name)
		return btf;
	free(btf);
	return NULL;
}

void cairn_btf_close(struct cairn_btf *btf)
{
	if (!btf)
		return;
	btf_names_free(btf->names);
	free(btf->records);
	free(btf->owned_words);
	if (btf->map)
		input_unmap(btf->map, btf->map_size);
	elf_unref(btf->elf);
	free(btf->name);
	free(btf);
}

const char *cairn_btf_shortened(const struct cairn_btf *btf)
{
	const char *name = NULL;
	for (; btf && !name; btf = cairn_btf_base(btf)) {
		if (btf->map)
			name = input_shortened(btf->map);
		else if (btf->elf)
			name = elf_shortened(btf->elf);
	}
	return name;
}

int btf_verdict(const struct cairn_btf *btf, int rc, void **made, struct cairn_err *err)
{
	if (rc != 0 && rc != -EBADMSG)
		return rc;
	int cut = input_check(cairn_btf_shortened(btf), err);
	if (cut < 0 && rc == 0 && made) {
		free(*made);
		*made = NULL;
	}
	return cut < 0 ? cut : rc;
}

int cairn_btf_open_mem(const void *bytes, size_t size, const char *name,
		       const struct cairn_btf_open_opts *user_opts, struct cairn_btf **ret,
		       struct cairn_err *err)
{
	struct cairn_btf_open_opts opts;
	int rc = opts_take(&opts, sizeof(opts), user_opts, err);
	if (rc < 0)
		return rc;
	struct cairn_btf *btf = blob_new(name, opts.base);
	if (!btf)
		return err_nomem(err, "BTF");
	rc = btf_parse(btf, bytes, size, opts.dialect, err);
	if (rc < 0) {
		cairn_btf_close(btf);
		return rc;
	}
	*ret = btf;
	return 0;
}

/* Upstream names the section of N ".BTF.inline" and that of v1 ".BTF.extra". */
static enum cairn_btf_dialect dialect_of_section(const char *section,
						 enum cairn_btf_dialect otherwise)
{
	if (!strcmp(section, ".BTF.inline"))
		return CAIRN_BTF_LOC_N;
	return strcmp(section, ".BTF.extra") ? otherwise : CAIRN_BTF_LOC_V1;
}

static const char *const usual[] = {".BTF", ".BTF.inline", ".BTF.extra", NULL};

static int find_section(struct elf *elf, const char *wanted, const struct elf_section **ret,
			struct cairn_err *err)
{
	const char *const named[] = {wanted, NULL};
	for (const char *const *name = wanted ? named : usual; *name; name++) {
		int rc = elf_section(elf, *name, ret, err);
		if (rc < 0 || *ret)
			return rc;
	}
	return err_set(err, -ENODATA, "%s: has no section %s", elf_path(elf),
		       wanted ? wanted : ".BTF");
}

/* A machine whose code is not read here: a BPF program, a file of another architecture. */
static int parse_other_elf(struct cairn_btf *btf, const struct cairn_btf_open_opts *opts, int fd,
			   struct cairn_err *err)
{
	const char *const named[] = {opts->section, NULL};
	const char *name;
	int rc = btf_read_any_elf(btf, fd, opts->section ? named : usual, &name, err);
	if (rc < 0)
		return rc;
	return btf_parse(btf, btf->map, btf->map_size, dialect_of_section(name, opts->dialect),
			 err);
}

static int parse_elf(struct cairn_btf *btf, const struct cairn_btf_open_opts *opts, int fd,
		     struct cairn_err *err)
{
	const struct elf_section *s = NULL;
	int rc = elf_open_fd(fd, btf->name, &btf->elf, err);
	if (rc == -EOPNOTSUPP)
		return parse_other_elf(btf, opts, fd, err);
	if (rc == 0)
		rc = find_section(btf->elf, opts->section, &s, err);
	if (rc < 0)
		return rc;
	if (!s->data)
		return err_set(err, -ENODATA, "%s: section %s has no bytes", btf->name, s->name);
	return btf_parse(btf, s->data, s->size, dialect_of_section(s->name, opts->dialect), err);
}

static int parse_raw(struct cairn_btf *btf, const struct cairn_btf_open_opts *opts, int fd,
		     size_t size, struct cairn_err *err)
{
	btf->map = input_map(fd, size, btf->name);
	if (!btf->map)
		return err_set(err, -errno, "%s: cannot map: %s", btf->name, strerror(errno));
	btf->map_size = size;
	return btf_parse(btf, btf->map, size, opts->dialect, err);
}

/*
 * Kernels before 6.16 cannot map the files in /sys/kernel/btf: they are read into anonymous memory.
 */
static int parse_unmappable(struct cairn_btf *btf, const struct cairn_btf_open_opts *opts, int fd,
			    size_t size, struct cairn_err *err)
{
	size_t n = 0;
	btf->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (btf->map == MAP_FAILED) {
		btf->map = NULL;
		return err_nomem(err, "BTF");
	}
	btf->map_size = size;
	while (n < size) {
		ssize_t r = pread(fd, (char *)btf->map + n, size - n, (off_t)n);
		if (r < 0 && errno != EINTR)
			return err_set(err, -errno, "%s: cannot read: %s", btf->name,
				       strerror(errno));
		if (r == 0)
			break;
		n += r > 0 ? (size_t)r : 0;
	}
	return btf_parse(btf, btf->map, n, opts->dialect, err);
}

static int parse_file(struct cairn_btf *btf, const struct cairn_btf_open_opts *opts, int fd,
		      struct cairn_err *err)
{
	char magic[4] = "";
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", btf->name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EOPNOTSUPP, "%s: not a file",
			       btf->name);
	if (st.st_size <= 0)
		return err_set(err, -EBADMSG, "%s: empty, not BTF", btf->name);
	if (pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    !memcmp(magic, "\177ELF", 4))
		return parse_elf(btf, opts, fd, err);
	if (opts->section)
		return err_set(err, -ENODATA, "%s: not an ELF file, has no section %s", btf->name,
			       opts->section);
	int rc = parse_raw(btf, opts, fd, (size_t)st.st_size, err);
	if (!btf->map)
		rc = parse_unmappable(btf, opts, fd, (size_t)st.st_size, err);
	return rc;
}

int cairn_btf_open(const char *path, const struct cairn_btf_open_opts *user_opts,
		   struct cairn_btf **ret, struct cairn_err *err)
{
	struct cairn_btf_open_opts opts;
	int rc = opts_take(&opts, sizeof(opts), user_opts, err);
	if (rc < 0)
		return rc;
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	struct cairn_btf *btf = blob_new(path, opts.base);
	if (!btf)
		return err_nomem(err, "BTF");
	rc = parse_file(btf, &opts, fd, err);
	if (rc < 0) {
		cairn_btf_close(btf);
		return rc;
	}
	*ret = btf;
	return 0;
}
