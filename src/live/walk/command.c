/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files are known by their mappings: /proc has a file's device as the kernel reports it, which
 * stat(2) may not. So a page of each is mapped here for a moment.
 */
#include "walk/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/needed.h"
#include "launch/script.h"

enum { MAX_SCRIPTS = 5 }; /* as the kernel follows */

struct pages {
	VEC(void *) p;
	size_t size; /* of each */
};

static int map_page(struct pages *pages, const char *path)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page = fd < 0 ? MAP_FAILED
			    : mmap(NULL, pages->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED)
		return 0;
	if (VEC_ADD(&pages->p, page))
		return 0;
	munmap(page, pages->size);
	return -ENOMEM;
}

static int map_all(struct pages *pages, const char *program, const struct needed *needed)
{
	int rc = map_page(pages, program);

	for (size_t i = 0; i < needed->paths.n && rc == 0; i++)
		rc = map_page(pages, needed->paths.p[i]);
	return rc;
}

static void unmap_all(struct pages *pages)
{
	for (size_t i = 0; i < pages->p.n; i++)
		munmap(pages->p.p[i], pages->size);
	VEC_FREE(&pages->p);
}

/* Also the vDSO, which all processes have. */
static bool is_wanted(const struct pages *pages, const struct code_mapping *m)
{
	bool is_found = strcmp(m->path, "[vdso]") == 0;

	for (size_t i = 0; i < pages->p.n && !is_found; i++)
		is_found = m->lo <= (uintptr_t)pages->p.p[i] && (uintptr_t)pages->p.p[i] < m->hi;
	return is_found;
}

static int number_all(struct walk_files *f, const struct pages *pages, struct cairn_err *err)
{
	struct code_maps maps;
	uint32_t number;
	int rc = code_maps_read(getpid(), &maps, err);

	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	for (size_t i = 0; i < maps.p.n && rc == 0; i++)
		if (is_wanted(pages, &maps.p.p[i]))
			rc = files_number(f, getpid(), 0, &maps.p.p[i], &number, err);
	code_maps_fini(&maps);
	return rc;
}

static int know_program(struct walk_files *f, const char *program, struct cairn_err *err)
{
	struct pages pages = {.size = (size_t)sysconf(_SC_PAGESIZE)};
	struct needed needed = {0};
	int rc = needed_list(program, &needed, err);

	if (rc == 0 && map_all(&pages, program, &needed) < 0)
		rc = err_nomem(err, "a program's files");
	rc = rc ? rc : number_all(f, &pages, err);
	unmap_all(&pages);
	needed_free(&needed);
	return rc;
}

/* Of a script the interpreter, which may be a script again, and what env(1) runs in its place. */
int command_know_files(struct walk_files *f, const char *program, struct cairn_err *err)
{
	struct script_line line = {.interpreter = ""};
	char by_env[PATH_MAX];
	int rc = 0;

	for (int i = 0; i < MAX_SCRIPTS && *program && script_next(program, &line); i++) {
		program = line.interpreter;
		if (script_of_env(&line, by_env, sizeof(by_env)))
			rc = rc ? rc : know_program(f, by_env, err);
	}
	return rc || !*program ? rc : know_program(f, program, err);
}
