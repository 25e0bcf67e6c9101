/* SPDX-License-Identifier: BSD-2-Clause */
#include <cairn/serve.h>
#include <cairn/text.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cursor.h"

enum {
	LOOKED_AT = 32768, /* linkers put the program headers directly after the ELF header */
	HEADERS_MAX = 512, /* 28 KB; programs have about 13 */
};

#ifdef __aarch64__
static const uint16_t own_machine = EM_AARCH64;
#else
static const uint16_t own_machine = EM_X86_64;
#endif

struct program {
	uint16_t machine;
	bool has_interpreter;
};

static void read_headers(struct cursor *c, uint64_t at, uint16_t size, uint16_t n,
			 struct program *ret)
{
	cur_skip(c, at - cur_off(c));
	for (uint16_t i = 0; i < n && !c->failed; i++) {
		uint32_t type = cur_u32(c);
		ret->has_interpreter |= type == PT_INTERP;
		cur_skip(c, size - sizeof(type));
	}
}

static int read_program(struct cursor *c, struct program *ret, struct cairn_err *err)
{
	cur_skip(c, EI_NIDENT + 2); /* type */
	ret->machine = cur_u16(c);
	cur_skip(c, 12); /* version, entry */
	uint64_t at = cur_u64(c);
	cur_skip(c, 14); /* sections, flags, size of this header */
	uint16_t size = cur_u16(c), n = cur_u16(c);
	if (c->failed)
		return -EBADMSG;
	if (size < sizeof(Elf64_Phdr) || n > HEADERS_MAX || at < cur_off(c))
		return err_set(err, -EBADMSG, "program headers: %u of %s at offset %#llx", n,
			       cairn_counted(size, "byte").text, (unsigned long long)at);
	read_headers(c, at, size, n, ret);
	return c->failed ? -EBADMSG : 0;
}

int cairn_preload_look_at(const void *bytes, size_t n, enum cairn_preload_obstacle *ret,
			  struct cairn_err *err)
{
	const struct cursor_src src = {.file = "program", .section = "ELF header", .base = bytes};
	const uint8_t *ident = bytes;
	struct program program = {0};
	*ret = CAIRN_PRELOAD_NONE;
	if (n < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG))
		return 0;
	*ret = CAIRN_PRELOAD_FOREIGN;
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	struct cursor c = cursor_of(&src, bytes, n, false, err);
	int r = read_program(&c, &program, err);
	if (r < 0 || program.machine != own_machine)
		return r;
	*ret = program.has_interpreter ? CAIRN_PRELOAD_NONE : CAIRN_PRELOAD_STATIC;
	return 0;
}

static bool gains_privileges(int fd, const struct stat *st)
{
	if (st->st_mode & S_ISUID && st->st_uid != getuid())
		return true;
	if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getgid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static int look(int fd, enum cairn_preload_obstacle *ret, struct cairn_err *err)
{
	uint8_t bytes[LOOKED_AT];
	struct stat st;
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	if (n < 0 || fstat(fd, &st) < 0)
		return -errno;
	int r = cairn_preload_look_at(bytes, (size_t)n, ret, err);
	if (r == 0 && gains_privileges(fd, &st))
		*ret = CAIRN_PRELOAD_PRIVILEGED;
	return r;
}

int cairn_preload_look(const char *exe, enum cairn_preload_obstacle *ret, struct cairn_err *err)
{
	int fd = open(exe, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", exe, strerror(errno));
	int r = look(fd, ret, err);
	close(fd);
	return r;
}
