/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames in files: the functions and lines of the sidecar; without one, the symbol; without that
 * the file and the offset in it
 *
 * A sidecar that is missing is made when the first frame of its file is named. A frame's line may
 * be in a header that is included into the function's body, so that the function's own file is that
 * of its declaration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "elf/elf.h"
#include "prof/name_impl.h"
#include "trace/stacks/site_frames.h"

#define PAGE 4096u

/* Functions of one name in one file: static ones of many units, clones. More are not compared. */
#define SAME_NAME_MAX 64

/* ---- the file ---- */

static int make_in_memory(const struct cairn_binary *bin, struct cairn_sidecar **ret,
			  struct cairn_err *err)
{
	struct cairn_sidecar_image image;
	int rc = cairn_sidecar_make(bin, NULL, &image, err);

	if (rc < 0)
		return rc;
	rc = cairn_sidecar_open_image(&image, cairn_binary_path(bin), ret, err);
	cairn_sidecar_image_free(&image);
	return rc;
}

/* Whatever fails but memory: symbols name the file's frames. */
static int make_sidecar(struct naming *n, const struct walk_file *file, struct named_file *named)
{
	const struct prof_names_opts *opts = n->names->opts;
	struct cairn_err err = {0};
	int rc = 0;

	if (opts->make_sidecar)
		rc = opts->make_sidecar(opts->make_sidecar_ctx, file->bin, &named->made, &err);
	else if (cairn_binary_has_dwarf(file->bin))
		rc = make_in_memory(file->bin, &named->made, &err);
	named->sidecar = named->made;
	if (rc == -ENOMEM)
		return rc;
	return rc < 0 ? prof_names_add_note(n->names, err.msg) : 0;
}

/* Of what ran. */
static void read_build_id(const struct walk_file *file, struct named_file *named)
{
	const struct walk_identity *known = &file->identity;
	size_t len = known->n_build_id, n = 0;
	const uint8_t *id = len ? known->build_id : cairn_binary_build_id(file->bin, &len);

	for (size_t i = 0; i < len && n + 3 <= sizeof(named->build_id); i++)
		n += (size_t)sprintf(named->build_id + n, "%02x", id[i]);
}

/* Stacks end in such a file, or are assumed there. */
static int note_file(struct naming *n, const struct walk_file *file)
{
	char *text;
	int rc = asprintf(&text, "%s: %s", file->path, file->note);

	if (rc < 0)
		return -ENOMEM;
	rc = prof_names_add_note(n->names, text);
	free(text);
	return rc;
}

static int note_cut(struct naming *n, const struct walk_file *file)
{
	char *text;
	int rc = asprintf(&text, "%s: became shorter; its frames have no names", file->path);

	if (rc < 0)
		return -ENOMEM;
	rc = prof_names_add_note(n->names, text);
	free(text);
	return rc;
}

static int note_written(struct naming *n, const struct walk_file *file)
{
	char *text;
	int rc = asprintf(&text,
			  "%s: was written again while it was profiled; its frames of before "
			  "have no names",
			  file->path);

	if (rc < 0)
		return -ENOMEM;
	rc = prof_names_add_note(n->names, text);
	free(text);
	return rc;
}

/* Prepares the naming of a file's frames; 0 or -ENOMEM. */
static int make_ready(struct naming *n, const struct walk_file *file, struct named_file *named)
{
	const struct functions *functions;

	if (named->is_ready)
		return 0;
	named->is_ready = true;
	if (file->note[0] && note_file(n, file) < 0)
		return -ENOMEM;
	if (!file->bin)
		return 0;
	read_build_id(file, named);
	if (!files_is_as_it_ran(file)) {
		named->is_cut = true;
		return identity_is_shorter(&file->identity) ? note_cut(n, file)
							    : note_written(n, file);
	}
	named->sidecar = file->sidecar;
	int rc = named->sidecar ? 0 : make_sidecar(n, file, named);
	/* Symbols are the last that is read of it. A damaged table gives no names. */
	binary_functions(file->bin, &functions, NULL);
	named->is_cut = cairn_binary_shortened(file->bin) != NULL;
	if (rc == 0 && named->is_cut && !file->note[0])
		rc = note_cut(n, file);
	return rc;
}

void naming_files_fini(struct naming *n)
{
	for (size_t i = 0; n->named && i < n->n_files; i++) {
		cairn_sidecar_close(n->named[i].made);
		VEC_FREE(&n->named[i].functions);
		map_fini(&n->named[i].function_ids);
	}
	free(n->named);
}

/* ---- functions ---- */

static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The declaration of a frame's function, among those of its name. */
static bool find_declared(const struct cairn_sidecar *sidecar, const struct cairn_frame *f,
			  struct cairn_sidecar_function *ret)
{
	uint32_t numbers[SAME_NAME_MAX];
	size_t n = cairn_sidecar_find(sidecar, f->name, numbers, SAME_NAME_MAX);
	bool found = false;

	for (size_t i = 0; i < n && i < SAME_NAME_MAX; i++) {
		struct cairn_sidecar_function one;

		if (!cairn_sidecar_function(sidecar, numbers[i], &one))
			continue;
		if (n > 1 && !is_same(one.linkage, f->function) && !is_same(one.file, f->file))
			continue;
		*ret = one;
		if (is_same(one.linkage, f->function))
			return true;
		found = true;
	}
	return found;
}

static int add_function(struct naming *n, const struct cairn_sidecar *sidecar,
			const struct cairn_frame *f, uint32_t *ret, struct cairn_err *err)
{
	struct cairn_profile_function function = {
		.name = shown_function(n->names, f->function, f->name),
		.linkage_name = f->function,
		.file = f->file};
	struct cairn_sidecar_function declared;

	if (!function.name)
		return err_nomem(err, "a function's name");
	if (sidecar && f->name && find_declared(sidecar, f, &declared) && declared.file) {
		function.file = declared.file;
		function.line = declared.line;
	}
	return cairn_profile_add_function(n->p, &function, ret, err);
}

static uint64_t hash_of(const struct cairn_frame *f)
{
	const char *strings[3] = {f->function, f->name, f->file};

	return map_hash_bytes(strings, sizeof(strings));
}

/* The sidecar has each string once, so that a function is found by the addresses of its own. */
static int function_of(struct naming *n, struct named_file *named, const struct cairn_frame *f,
		       uint32_t *ret, struct cairn_err *err)
{
	uint64_t key = hash_of(f), i;
	int rc;

	for (; map_get(&named->function_ids, key, &i); key++) {
		const struct known_function *known = &named->functions.p[i];

		if (known->function == f->function && known->name == f->name &&
		    known->file == f->file) {
			*ret = known->id;
			return 0;
		}
	}
	rc = add_function(n, named->sidecar, f, ret, err);
	if (rc < 0)
		return rc;
	if (!VEC_ADD(&named->functions,
		     ((struct known_function){f->function, f->name, f->file, *ret})) ||
	    map_put(&named->function_ids, key, named->functions.n - 1) < 0)
		return err_nomem(err, "a function");
	return 0;
}

/* ---- locations ---- */

/* The part of the file that has the address, as if it were loaded where it was linked to. */
static int mapping_of(struct naming *n, const struct walk_file *file,
		      const struct named_file *named, uint64_t at, uint32_t *ret,
		      struct cairn_err *err)
{
	struct cairn_profile_mapping m = {.limit = WALK_AT_MASK,
					  .path = file->path,
					  .build_id = named->build_id,
					  .is_linked = true};
	const struct elf_load *loads;
	size_t n_loads = file->bin ? elf_loads(binary_main(file->bin), &loads) : 0;

	for (size_t i = 0; i < n_loads; i++)
		if (at >= loads[i].at && at - loads[i].at < loads[i].size) {
			uint64_t before = loads[i].at % PAGE;

			m.start = loads[i].at - before;
			m.limit = loads[i].at + loads[i].size;
			m.offset = loads[i].foff - (loads[i].foff < before ? 0 : before);
		}
	return cairn_profile_add_mapping(n->p, &m, ret, err);
}

static bool symbol_of(const struct walk_file *file, const struct cairn_sidecar *sidecar,
		      struct cairn_vaddr at, const char **ret, struct cairn_vaddr *ret_start)
{
	if (sidecar && cairn_sidecar_symbol_of(sidecar, at, ret, ret_start))
		return true;
	return file->bin && cairn_binary_symbol_of(file->bin, at, ret, ret_start);
}

/* From the sidecar, if it describes this code. *@ret_n is 0 where it names nothing. */
static int lines_of(struct naming *n, struct named_file *named, struct cairn_vaddr at,
		    const struct name_site *site, struct cairn_profile_line *ret, size_t *ret_n,
		    struct cairn_err *err)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	size_t n_frames = 0;
	int rc = 0;

	*ret_n = 0;
	if (named->sidecar && cairn_sidecar_covers(named->sidecar, at))
		n_frames = cairn_sidecar_frames(named->sidecar, at, frames, CAIRN_FRAMES_MAX);
	if (site)
		n_frames = site_frames(site->function, site->site, frames, n_frames);
	for (size_t i = 0; rc == 0 && i < n_frames; i++) {
		if (!frames[i].function && !frames[i].name)
			continue;
		rc = function_of(n, named, &frames[i], &ret[*ret_n].function, err);
		ret[(*ret_n)++].line = frames[i].line;
	}
	return rc;
}

static int location_at(struct naming *n, const struct walk_file *file, struct named_file *named,
		       struct cairn_vaddr at, const struct name_site *site, uint32_t *ret,
		       struct cairn_err *err)
{
	struct cairn_profile_line lines[CAIRN_FRAMES_MAX];
	struct cairn_profile_location l = {.address = at.v, .lines = lines};
	struct cairn_vaddr start;
	const char *symbol;
	int rc = make_ready(n, file, named);

	if (rc < 0)
		return err_nomem(err, "a sidecar");
	rc = mapping_of(n, file, named, at.v, &l.mapping, err);
	if (rc == 0 && !named->is_cut)
		rc = lines_of(n, named, at, site, lines, &l.n_lines, err);
	if (rc == 0 && !named->is_cut && symbol_of(file, named->sidecar, at, &symbol, &start))
		l.symbol = start.v;
	if (rc == 0 && !l.n_lines && l.symbol) {
		rc = add_plain_function(n, symbol, NULL, &lines[0].function, err);
		lines[0].line = 0;
		l.n_lines = 1;
	}
	return rc < 0 ? rc : cairn_profile_add_location(n->p, &l, ret, err);
}

int location_in_file(struct naming *n, uint64_t frame, const struct name_site *site, uint32_t *ret,
		     struct cairn_err *err)
{
	size_t number = (frame >> WALK_FILE_SHIFT) & WALK_FILE_MASK;
	struct walk_file *file = number < n->n_files ? n->files[number] : NULL;
	struct cairn_vaddr at = {frame & WALK_AT_MASK};
	struct cairn_profile_location l = {.address = at.v};

	/* The engine has no such file: the frame is not lost, but has an address only. */
	if (!file)
		return cairn_profile_add_location(n->p, &l, ret, err);
	at.v += file->base;
	/* A probe that was moved stands at a later instruction than its site. */
	if (site && at.v != site->probed.v)
		site = NULL;
	return location_at(n, file, &n->named[number], site ? site->site->at : at, site, ret, err);
}

/* An address of code in a file; false: it has none. */
static bool code_of(const struct cairn_binary *bin, uint64_t *ret)
{
	const struct elf_load *loads;
	size_t n = elf_loads(binary_main(bin), &loads);

	for (size_t i = 0; i < n; i++)
		if (loads[i].flags & PF_X) {
			*ret = loads[i].at;
			return true;
		}
	return false;
}

int map_program(struct naming *n, struct cairn_err *err)
{
	const char *program = n->names->opts->program;
	uint32_t id;
	uint64_t at;

	for (size_t i = 0; program && i < n->n_files; i++) {
		const struct walk_file *file = n->files[i];

		if (!file || !file->bin || strcmp(file->path, program) != 0 ||
		    !code_of(file->bin, &at))
			continue;
		if (make_ready(n, file, &n->named[i]) < 0)
			return err_nomem(err, "a sidecar");
		return mapping_of(n, file, &n->named[i], at, &id, err);
	}
	return 0;
}
