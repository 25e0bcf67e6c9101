/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a sidecar was made of the kernel or the module whose BTF the kernel shows
 *
 * It may have been made of another build that says it is the same, or by a tool that changed its
 * note: functions can be where they were and types not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "base/err.h"
#include "base/scope.h"
#include "kernel/kernel.h"

enum {
	CHUNK = 1 << 16,
	HEX = 2 * SHA256_DIGEST_SIZE + 1,
	MAX_BYTES = 1 << 28, /* a kernel has some 6 MB */
};

static int hash_file(int fd, struct cairn_sidecar_btf_hash *ret)
{
	SCOPE_FREE uint8_t *chunk = malloc(CHUNK);
	struct sha256_ctx c;
	ssize_t got = 1;
	if (!chunk)
		return -ENOMEM;
	sha256_init(&c);
	for (ret->n_bytes = 0; got > 0 && ret->n_bytes < MAX_BYTES; ret->n_bytes += (uint64_t)got) {
		got = read(fd, chunk, CHUNK);
		if (got < 0)
			return -errno;
		sha256_update(&c, (size_t)got, chunk);
	}
	sha256_digest(&c, sizeof(ret->sha256), ret->sha256);
	return 0;
}

static const char *hex(const struct cairn_sidecar_btf_hash *btf, char ret[static HEX])
{
	for (size_t i = 0; i < sizeof(btf->sha256); i++)
		snprintf(ret + 2 * i, 3, "%02x", btf->sha256[i]);
	return ret;
}

int kernel_compare_btf(const struct cairn_kernel *k, const struct cairn_sidecar *sidecar,
		       const char *path, struct cairn_err *err)
{
	struct cairn_sidecar_btf_hash wanted, runs;
	char a[HEX], b[HEX];
	if (!cairn_sidecar_kernel_btf(sidecar, &wanted))
		return 0;
	SCOPE_FREE char *file =
		kernel_path(k, "sys/kernel/btf/%s", k->module ? k->module : "vmlinux");
	if (!file)
		return err_nomem(err, "a path");
	SCOPE_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
	/* It has none to compare with. */
	if (fd < 0)
		return 0;
	int rc = hash_file(fd, &runs);
	if (rc == -ENOMEM)
		return err_nomem(err, "the hash of a kernel's BTF");
	if (rc < 0)
		return err_set(err, rc, "%s: %s", file, strerror(-rc));
	if (wanted.n_bytes == runs.n_bytes &&
	    !memcmp(wanted.sha256, runs.sha256, sizeof(runs.sha256)))
		return 0;
	return err_set(
		err, -ESTALE,
		"%s was made of another kernel: the SHA-256 of its BTF is %s, and that of %s "
		"is %s",
		path, hex(&wanted, a), file, hex(&runs, b));
}
