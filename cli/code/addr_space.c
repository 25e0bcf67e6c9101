/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file or code that an address belongs to
 *
 * In a file an address has the meaning that its symbols and debug information give. In a process it
 * belongs to a mapping:
 *
 *	7f10a2c28000-7f10a2d7d000 r-xp 00028000 fe:01 1234   /usr/lib/x86_64-linux-gnu/libc.so.6
 *	0x7f10a2c5d3f0 - 0x7f10a2c28000 + 0x28000 = offset 0x5d3f0 of that file
 *
 * A file is opened at the first address in it, as the process sees it (through /proc/PID/root), or
 * by its mapping when it was deleted or replaced since. If no file is mapped, the sources of code
 * made at run time answer: a registry, GDB's list, map files, in their state at the first such
 * address.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cairn/btf/sites.h>

#include "addr.h"
#include "cmd.h"
#include "say.h"

/*
 * The search for the sections of an object file: the library lays them out from a page's beginning
 * on.
 */
enum { FIRST_SECTION_STEP = 0x1000, FIRST_SECTION_MAX = 1 << 20 };

/* A file with code. */
struct module {
	char *path;
	dev_t dev;
	ino_t ino;
	bool tried;
	struct cairn_binary *bin;
	struct cairn_sidecar *sidecar;
	struct cairn_sidecar *refused; /* the previous sidecar, whose answers are still in use */
	struct cairn_sites *btf;       /* of a file without debug information; NULL: it has none */
};

struct mapping {
	uint64_t lo, hi, off;
	size_t module;
};

struct addr_space {
	int pid; /* 0: a file */
	const struct cairn_binary_opts *opts;
	const struct sidecar_wish *wish;
	struct module *modules;
	size_t n_modules;
	struct mapping *mappings;
	size_t n_mappings;
	struct cairn_code *code; /* NULL: no address has needed it, or it is not available */
	bool tried_code;
	bool has_trouble; /* an answer is missing, as a sidecar could not be believed */
};

static void *grow(void *p, size_t n, size_t size)
{
	/* Doubling at powers of two; the count alone gives the room. */
	if (n & (n - 1))
		return p;
	return realloc(p, (n ? 2 * n : 1) * size);
}

/* ---- the mappings of a process ---- */

static int add_module(struct addr_space *space, const char *path, dev_t dev, ino_t ino, size_t *ret)
{
	struct module *grown;

	for (*ret = 0; *ret < space->n_modules; ++*ret)
		if (space->modules[*ret].dev == dev && space->modules[*ret].ino == ino)
			return 0;
	grown = grow(space->modules, space->n_modules, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	space->modules = grown;
	grown[space->n_modules] = (struct module){.path = strdup(path), .dev = dev, .ino = ino};
	return grown[space->n_modules++].path ? 0 : -ENOMEM;
}

static int add_mapping(struct addr_space *space, const char *line)
{
	unsigned int major, minor;
	unsigned long ino;
	char perms[5];
	int at = 0;
	struct mapping m, *grown;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %lu %n", &m.lo, &m.hi,
		   perms, &m.off, &major, &minor, &ino, &at) < 7 ||
	    !ino || !at || line[at] != '/' || perms[2] != 'x')
		return 0;
	if (add_module(space, line + at, makedev(major, minor), ino, &m.module) < 0)
		return -ENOMEM;
	grown = grow(space->mappings, space->n_mappings, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	space->mappings = grown;
	grown[space->n_mappings++] = m;
	return 0;
}

static int read_mappings(struct addr_space *space)
{
	char name[64], *line = NULL;
	size_t room = 0;
	ssize_t n;
	int r = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/maps", space->pid);
	file = fopen(name, "r");
	if (!file)
		return fail(errno == ENOENT ? STATUS_NO : STATUS_NOT_HERE, "%s: %m", name);
	while (r >= 0 && (n = getline(&line, &room, file)) > 0) {
		line[n - 1] = 0;
		r = add_mapping(space, line);
	}
	free(line);
	fclose(file);
	return r < 0 ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;
}

static const struct mapping *mapping_of(const struct addr_space *space, uint64_t addr)
{
	size_t lo = 0, hi = space->n_mappings;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (space->mappings[mid].hi <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < space->n_mappings && space->mappings[lo].lo <= addr ? &space->mappings[lo]
									: NULL;
}

/* ---- files ---- */

/* For a file without debug information. */
static void open_btf(const struct addr_space *space, struct module *m)
{
	struct cairn_err err = {0};
	int r;

	if (cairn_binary_has_dwarf(m->bin))
		return;
	r = sidecar_btf_sites(m->bin, space->wish, &m->btf, &err);
	if (r < 0 && r != -ENODATA)
		fail_told(STATUS_YES, &err);
}

static int open_module(struct addr_space *space, struct module *m, const char *path)
{
	struct cairn_err err = {0};
	int r = cairn_binary_open(path, space->opts, &m->bin, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	open_btf(space, m);
	return m->btf ? sidecar_if_any(m->bin, space->wish, &m->sidecar)
		      : sidecar_for(m->bin, space->wish, &m->sidecar);
}

/* The file of a mapping, which may not be the one that now has its name. */
static void open_mapped(struct addr_space *space, const struct mapping *mapping, struct module *m)
{
	char path[4200];
	struct stat st;

	m->tried = true;
	snprintf(path, sizeof(path), "/proc/%d/root%s", space->pid, m->path);
	if (stat(path, &st) < 0 || st.st_ino != m->ino)
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, space->pid,
			 mapping->lo, mapping->hi);
	open_module(space, m, path);
}

static bool is_pid(const char *word)
{
	for (const char *at = word; *at; at++)
		if (!isdigit((unsigned char)*at))
			return false;
	return *word && strlen(word) < 10 && access(word, F_OK);
}

static int open_file(struct addr_space *space, const char *word)
{
	struct cairn_err err = {0};
	size_t number;
	int r;

	if (add_module(space, word, 0, 0, &number) < 0)
		return fail(STATUS_NOT_HERE, "no memory");
	if (!sidecar_is_named(word))
		return open_module(space, &space->modules[number], word);
	r = cairn_sidecar_open(word, NULL, &space->modules[number].sidecar, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	sidecar_say_unbound(space->modules[number].sidecar);
	return STATUS_YES;
}

int addr_space_open(const char *word, const struct cairn_binary_opts *opts,
		    const struct sidecar_wish *wish, struct addr_space **ret)
{
	struct addr_space *space = calloc(1, sizeof(*space));
	int status;

	if (!space)
		return fail(STATUS_NOT_HERE, "no memory");
	space->opts = opts;
	space->wish = wish;
	space->pid = is_pid(word) ? atoi(word) : 0;
	status = space->pid ? read_mappings(space) : open_file(space, word);
	if (status)
		addr_space_close(space);
	else
		*ret = space;
	return status;
}

int addr_space_status(const struct addr_space *space)
{
	return space->has_trouble ? STATUS_DAMAGED : STATUS_YES;
}

void addr_space_tell_object(const struct addr_space *space)
{
	const struct cairn_binary *bin = space->pid ? NULL : space->modules[0].bin;
	const char *section;
	uint64_t off, at = 0;

	if (!bin || !cairn_binary_is_relocatable(bin))
		return;
	while (at < FIRST_SECTION_MAX &&
	       !cairn_binary_section_of(bin, (struct cairn_vaddr){at}, &section, &off))
		at += FIRST_SECTION_STEP;
	if (at < FIRST_SECTION_MAX)
		say(stderr,
		    "%s: an object file has no addresses before it is linked: its sections are "
		    "laid out here one after the other, %s from 0x%" PRIx64 " on\n",
		    space->modules[0].path, section, at);
}

void addr_space_close(struct addr_space *space)
{
	for (size_t i = 0; i < space->n_modules; i++) {
		cairn_sidecar_close(space->modules[i].sidecar);
		cairn_sidecar_close(space->modules[i].refused);
		cairn_sites_close(space->modules[i].btf);
		cairn_binary_close(space->modules[i].bin);
		free(space->modules[i].path);
	}
	cairn_code_close(space->code);
	free(space->modules);
	free(space->mappings);
	free(space);
}

/* ---- asking ---- */

static void open_code(struct addr_space *space)
{
	struct cairn_err err = {0};
	int r = cairn_code_open_pid(space->pid, NULL, &space->code, &err);

	space->tried_code = true;
	if (r < 0) {
		space->code = NULL;
		fail_err(r, &err, STATUS_NOT_HERE);
	}
	for (size_t i = 0; space->code && cairn_code_note(space->code, i); i++)
		say(stderr, "%s\n", cairn_code_note(space->code, i));
}

/* Code made at run time. */
static void ask_code(struct addr_space *space, struct cairn_addr at, struct cairn_frame *frames,
		     struct addr_answer *ret)
{
	struct cairn_err err = {0};
	int n;

	if (!space->tried_code)
		open_code(space);
	if (!space->code)
		return;
	ret->code = cairn_code_find(space->code, at, 0);
	n = cairn_code_frames(space->code, at, frames, CAIRN_FRAMES_MAX, NULL, &err);
	if (n < 0)
		fail_err(n, &err, STATUS_NOT_HERE);
	ret->n = n > 0 ? (size_t)n : 0;
}

/*
 * The answer is from a sidecar that turned out to be damaged: a line of it may be missing, or all
 * of it. Earlier answers are kept.
 */
static void ask_another(struct addr_space *space, struct module *m, struct cairn_vaddr at,
			struct cairn_frame *frames, struct addr_answer *ret)
{
	if (!cairn_sidecar_trouble(m->sidecar, NULL) || m->refused)
		return;
	m->refused = m->sidecar;
	space->has_trouble |= !m->bin || !cairn_binary_has_dwarf(m->bin);
	m->sidecar = sidecar_another(m->bin, space->wish, m->sidecar);
	ret->n = m->sidecar ? cairn_sidecar_frames(m->sidecar, at, frames, CAIRN_FRAMES_MAX) : 0;
}

/* BTF has where copies begin, and nothing of what comes after. */
static void ask_btf(struct addr_space *space, struct module *m, struct cairn_vaddr at,
		    struct addr_answer *ret)
{
	struct cairn_err err = {0};
	int n;

	if (ret->n && ret->frames[0].file)
		return;
	n = m->btf ? cairn_btf_sites_at(m->btf, at, ret->begin, ADDR_BEGIN_MAX, &err) : 0;
	if (n >= 0) {
		ret->n_begin = (size_t)n;
		return;
	}
	fail_told(STATUS_YES, &err);
	cairn_sites_close(m->btf);
	m->btf = NULL;
	space->has_trouble = true;
}

void addr_space_ask(struct addr_space *space, uint64_t addr, bool back, struct cairn_frame *frames,
		    struct addr_answer *ret)
{
	struct cairn_vaddr at = {addr - back};
	struct module *m = space->modules;

	*ret = (struct addr_answer){.addr = addr, .vaddr = at.v, .frames = frames};
	if (space->pid) {
		const struct mapping *mapping = mapping_of(space, at.v);

		if (!mapping) {
			ask_code(space, (struct cairn_addr){at.v}, frames, ret);
			return;
		}
		m = &space->modules[mapping->module];
		ret->path = m->path;
		if (!m->tried)
			open_mapped(space, mapping, m);
		if ((!m->sidecar && !m->btf) ||
		    !cairn_binary_vaddr(
			    m->bin, (struct cairn_foff){at.v - mapping->lo + mapping->off}, &at))
			return;
		ret->vaddr = at.v;
	}
	ret->n = m->sidecar ? cairn_sidecar_frames(m->sidecar, at, frames, CAIRN_FRAMES_MAX) : 0;
	if (m->sidecar)
		ask_another(space, m, at, frames, ret);
	if (!back)
		ask_btf(space, m, at, ret);
}
