/* SPDX-License-Identifier: BSD-2-Clause */
/* The sidecar: made from trees built by hand and from real programs, asked, damaged, found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>
#include <cairn/sidecar.h>

#include "elf/guard.h"
#include "alloc_fail.h"
#include "dwarf_seeds.h"
#include "space.h"
#include "elf/elf.h"
#include "sidecar/format.h"

/* A sidecar of a seed, in memory. */
static struct cairn_sidecar_image packed_seed(unsigned int i)
{
	struct cairn_sidecar_image image;
	struct cairn_binary *bin;
	struct db *d = dwarf_seed(i);
	size_t size;
	const uint8_t *bytes = db_finish(d, &size);
	assert_int_equal(binary_open_mem(bytes, size, "seed", &bin, NULL), 0);
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .sites = true};
	assert_int_equal(cairn_sidecar_make(bin, &opts, &image, NULL), 0);
	cairn_binary_close(bin);
	db_free(d);
	return image;
}

static const char SOURCE[] = "#include <stdlib.h>\n"
			     "static inline __attribute__((always_inline)) int inner(int x)\n"
			     "{\n"
			     "	return abs(x) * 3 + rand();\n"
			     "}\n"
			     "static inline __attribute__((always_inline)) int middle(int x)\n"
			     "{\n"
			     "	x += 7;\n"
			     "	return inner(x) ^ x;\n"
			     "}\n"
			     "__attribute__((noinline)) int outer(int x)\n"
			     "{\n"
			     "	if (x > 3)\n"
			     "		return middle(x);\n"
			     "	return middle(x + 9) - inner(2);\n"
			     "}\n"
			     "int main(int argc, char **argv)\n"
			     "{\n"
			     "	return outer(argc) & 1;\n"
			     "}\n";

/* Compiles SOURCE with a build-id; false without the compiler. */
static bool compile(const char *cc, const char *options)
{
	workspace_write(&space, "prog.c", SOURCE);
	return workspace_try(&space, "%s -g -O2 %s -Wl,--build-id -o prog prog.c", cc, options);
}

static struct cairn_binary *open_prog(void)
{
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	assert_int_equal(cairn_binary_open(workspace_path(&space, "prog"), NULL, &bin, &err), 0);
	return bin;
}

static struct cairn_sidecar *sidecar_of(const struct cairn_binary *bin)
{
	struct cairn_sidecar_image image;
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	assert_int_equal(cairn_sidecar_make(bin, NULL, &image, &err), 0);
	assert_int_equal(cairn_sidecar_open_image(&image, "made", &sidecar, &err), 0);
	assert_null(image.bytes);
	return sidecar;
}

/* ---- answers ---- */

/* addr2line -i -f, of one address: the frames as "function file:line" joined by "|". */
static void oracle(uint64_t at, char *buf, size_t size)
{
	char command[512], function[256], site[512];
	snprintf(command, sizeof(command), "addr2line -i -f -e %s 0x%llx",
		 workspace_path(&space, "prog"), (unsigned long long)at);
	FILE *out = popen(command, "r");
	assert_non_null(out);
	buf[0] = 0;
	while (fgets(function, sizeof(function), out) && fgets(site, sizeof(site), out)) {
		char *line = strrchr(site, ':');
		function[strcspn(function, "\n")] = 0;
		size_t n = strlen(buf);
		snprintf(buf + n, size - n, "%s%s:%d", n ? "|" : "", function,
			 line ? atoi(line + 1) : 0);
	}
	pclose(out);
}

static void answer(const struct cairn_sidecar *sidecar, uint64_t at, char *buf, size_t size)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	size_t n =
		cairn_sidecar_frames(sidecar, (struct cairn_vaddr){at}, frames, CAIRN_FRAMES_MAX);
	buf[0] = 0;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(buf);
		snprintf(buf + len, size - len, "%s%s:%u", len ? "|" : "", frames[i].function,
			 frames[i].line);
	}
}

static void compare_with_addr2line(const char *cc)
{
	char ours[1024], theirs[1024];
	if (!compile(cc, ""))
		skip();
	if (!workspace_try(&space, "addr2line --version"))
		skip();
	struct cairn_binary *bin = open_prog();
	struct cairn_sidecar *sidecar = sidecar_of(bin);
	uint32_t number;
	struct cairn_vaddr start = {0};
	const char *name;
	unsigned int compared = 0, inlined = 0;
	assert_int_equal(cairn_sidecar_find(sidecar, "outer", &number, 1), 1);
	for (uint64_t at = 0x1000; at < 0x2000; at++) {
		if (!cairn_sidecar_symbol_of(sidecar, (struct cairn_vaddr){at}, &name, &start) ||
		    strcmp(name, "outer"))
			continue;
		answer(sidecar, at, ours, sizeof(ours));
		oracle(at, theirs, sizeof(theirs));
		assert_string_equal(ours, theirs);
		compared++;
		inlined += strchr(ours, '|') != NULL;
	}
	assert_true(compared > 20 && inlined > 10);
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);
}

static void frames_of_gccs_code_are_those_of_addr2line(void **state)
{
	compare_with_addr2line("gcc");
}

static void frames_of_clangs_code_are_those_of_addr2line(void **state)
{
	compare_with_addr2line("clang");
}

static void a_function_is_found_by_its_name_with_its_declaration(void **state)
{
	struct cairn_sidecar_function f;
	uint32_t number;
	if (!compile("gcc", ""))
		skip();
	struct cairn_binary *bin = open_prog();
	struct cairn_sidecar *sidecar = sidecar_of(bin);
	assert_int_equal(cairn_sidecar_find(sidecar, "middle", &number, 1), 1);
	assert_true(cairn_sidecar_function(sidecar, number, &f));
	assert_string_equal(f.name, "middle");
	assert_int_equal(f.line, 6);
	assert_non_null(strstr(f.file, "prog.c"));
	assert_int_equal(cairn_sidecar_find(sidecar, "middl", &number, 1), 0);
	assert_false(cairn_sidecar_function(sidecar, 0, &f));
	assert_false(cairn_sidecar_function(sidecar, UINT32_MAX, &f));
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);
}

static void an_address_outside_all_code_has_no_frames(void **state)
{
	struct cairn_frame frames[4];
	struct cairn_sidecar_image image = packed_seed(0);
	struct cairn_sidecar *sidecar;
	assert_int_equal(cairn_sidecar_open_image(&image, "seed", &sidecar, NULL), 0);
	const uint64_t outside[] = {0, 0xfff, 0x100000, UINT64_MAX};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
			cairn_sidecar_frames(sidecar, (struct cairn_vaddr){outside[i]}, frames, 4),
			0);
	cairn_sidecar_close(sidecar);
}

static void a_lookup_allocates_nothing(void **state)
{
	struct cairn_frame frames[4];
	struct cairn_sidecar_image image = packed_seed(0);
	struct cairn_sidecar *sidecar;
	uint32_t number;
	assert_int_equal(cairn_sidecar_open_image(&image, "seed", &sidecar, NULL), 0);
	alloc_fail_at(1);
	for (uint64_t at = 0x1000; at < 0x1200; at++)
		cairn_sidecar_frames(sidecar, (struct cairn_vaddr){at}, frames, 4);
	size_t n = cairn_sidecar_find(sidecar, "add", &number, 1);
	assert_false(alloc_fail_end());
	assert_int_equal(n, 1);
	cairn_sidecar_close(sidecar);
}

/* ---- making ---- */

static void the_bytes_do_not_depend_on_threads(void **state)
{
	struct cairn_sidecar_image one, many;
	if (!compile("gcc", "-static") && !compile("gcc", ""))
		skip();
	struct cairn_binary *bin = open_prog();
	for (unsigned int threads = 2; threads <= 8; threads *= 2) {
		struct cairn_sidecar_make_opts opts = {
			.size = sizeof(opts), .threads = 1, .sites = true};
		assert_int_equal(cairn_sidecar_make(bin, &opts, &one, NULL), 0);
		opts.threads = threads;
		assert_int_equal(cairn_sidecar_make(bin, &opts, &many, NULL), 0);
		assert_int_equal(one.size, many.size);
		assert_memory_equal(one.bytes, many.bytes, one.size);
		cairn_sidecar_image_free(&one);
		cairn_sidecar_image_free(&many);
	}
	cairn_binary_close(bin);
}

static void what_is_made_passes_the_check(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct cairn_sidecar_image image = packed_seed(i);
		struct cairn_sidecar *sidecar;
		struct cairn_err err = {0};
		assert_int_equal(cairn_sidecar_open_image(&image, "seed", &sidecar, &err), 0);
		assert_int_equal(cairn_sidecar_check(sidecar, &err), 0);
		cairn_sidecar_close(sidecar);
	}
}

static void no_memory_is_an_error_wherever_it_happens(void **state)
{
	struct db *d = dwarf_seed(0);
	size_t size;
	const uint8_t *bytes = db_finish(d, &size);
	struct cairn_binary *bin;
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .threads = 1, .sites = true};
	unsigned int n = 1;
	assert_int_equal(binary_open_mem(bytes, size, "seed", &bin, NULL), 0);
	for (;; n++) {
		struct cairn_sidecar_image image;
		struct cairn_sidecar *sidecar;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_sidecar_make(bin, &opts, &image, &err);
		if (!rc && (rc = cairn_sidecar_open_image(&image, "seed", &sidecar, &err)) == 0)
			cairn_sidecar_close(sidecar);
		if (!alloc_fail_end())
			break;
		cairn_sidecar_image_free(&image);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	assert_true(n > 20);
	cairn_binary_close(bin);
	db_free(d);
}

/* ---- damage ---- */

static int ignore(void *ctx, const struct cairn_function *f)
{
	return 0;
}

/*
 * Opens and asks; what it answers does not matter, that it ends does. Returns what open or check
 * said.
 */
static int use(const void *bytes, size_t size, struct cairn_err *err)
{
	struct cairn_frame frames[4];
	struct cairn_sidecar *sidecar;
	uint32_t number;
	int rc = cairn_sidecar_open_mem(bytes, size, "damaged", NULL, &sidecar, err);
	if (rc < 0)
		return rc;
	for (uint64_t at = 0x1000; at < 0x1200; at += 3)
		cairn_sidecar_frames(sidecar, (struct cairn_vaddr){at}, frames, 4);
	cairn_sidecar_find(sidecar, "add", &number, 1);
	struct cairn_function_list list;
	struct cairn_sites *sites;
	if (!cairn_sidecar_sites(sidecar, NULL, &sites, NULL)) {
		cairn_sites_find(sites, "add", &list, NULL);
		cairn_sites_visit(sites, ignore, NULL, NULL);
		cairn_sites_close(sites);
	}
	rc = cairn_sidecar_check(sidecar, err);
	cairn_sidecar_close(sidecar);
	return rc;
}

static void a_sidecar_cut_at_any_byte_is_refused_with_a_reason(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	for (size_t n = 0; n < image.size; n++) {
		struct cairn_err err = {0};
		void *cut = malloc(n ? n : 1);
		memcpy(cut, image.bytes, n);
		assert_true(use(cut, n, &err) < 0);
		assert_non_null(strstr(err.msg, "damaged"));
		free(cut);
	}
	cairn_sidecar_image_free(&image);
}

static void no_flipped_bit_passes_the_check(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	for (size_t i = 0; i < image.size * 8; i++) {
		uint8_t *byte = (uint8_t *)image.bytes + i / 8;
		struct cairn_err err = {0};
		*byte ^= 1u << i % 8;
		assert_int_not_equal(use(image.bytes, image.size, &err), 0);
		assert_true(err.msg[0]);
		*byte ^= 1u << i % 8;
	}
	cairn_sidecar_image_free(&image);
}

/*
 * What an answer says when a byte of what it is from was changed: nothing, or that it is damaged.
 */
static void a_damaged_byte_changes_no_answer_without_a_word(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	struct cairn_sidecar *sidecar;
	struct cairn_frame frames[4];
	char right[256 * 8], told[64];
	assert_int_equal(cairn_sidecar_open_mem(image.bytes, image.size, "p", NULL, &sidecar, NULL),
			 0);
	char *to = right;
	for (uint64_t at = 0x1000; at < 0x1100; at += 8, to += 64)
		answer(sidecar, at, to, 64);
	cairn_sidecar_close(sidecar);
	for (size_t i = 0; i < image.size; i++) {
		uint8_t *byte = (uint8_t *)image.bytes + i;
		*byte ^= 0x5a;
		if (!cairn_sidecar_open_mem(image.bytes, image.size, "p", NULL, &sidecar, NULL)) {
			char *from = right;
			for (uint64_t at = 0x1000; at < 0x1100; at += 8, from += 64) {
				answer(sidecar, at, told, sizeof(told));
				assert_true(!strncmp(told, from, 64) ||
					    cairn_sidecar_trouble(sidecar, NULL) == -EBADMSG);
			}
			cairn_sidecar_frames(sidecar, (struct cairn_vaddr){0x1000}, frames, 4);
			cairn_sidecar_close(sidecar);
		}
		*byte ^= 0x5a;
	}
	cairn_sidecar_image_free(&image);
}

static void a_flipped_bit_with_its_checksum_never_leads_out_of_the_file(void **state)
{
	struct cairn_sidecar_image image = packed_seed(1);
	unsigned int refused = 0;
	for (size_t i = 0; i < image.size * 8; i++) {
		uint8_t *byte = (uint8_t *)image.bytes + i / 8;
		struct cairn_err err = {0};
		*byte ^= 1u << i % 8;
		guard_seal(image.bytes, image.size);
		int rc = use(image.bytes, image.size, &err);
		assert_true(!rc || err.msg[0]);
		refused += rc < 0;
		*byte ^= 1u << i % 8;
		guard_seal(image.bytes, image.size);
	}
	assert_true(refused > 100);
	cairn_sidecar_image_free(&image);
}

/* A sidecar whose header says another version. */
static void sections_that_share_bytes_are_refused_by_their_names(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	const Elf64_Ehdr *h = image.bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)((char *)image.bytes + h->e_shoff);
	struct cairn_err err = {0};
	struct cairn_sidecar *sidecar;
	assert_true(h->e_shnum > 4);
	for (unsigned int i = 1; i < h->e_shnum; i++) {
		Elf64_Shdr was = sections[i];
		if (was.sh_type == SHT_NOBITS || !was.sh_size)
			continue;
		for (unsigned int k = 0; k < i; k++) {
			if (k && (sections[k].sh_type == SHT_NOBITS || !sections[k].sh_size))
				continue;
			/* The last byte of what is in front, or of the ELF header. */
			sections[i].sh_offset = k ? sections[k].sh_offset + sections[k].sh_size - 1
						  : sizeof(*h) - 1;
			/*
			 * The names of sections have to end with a NUL, which they need not do
			 * elsewhere.
			 */
			guard_seal(image.bytes, image.size);
			int rc = cairn_sidecar_open_mem(image.bytes, image.size, "lies", NULL,
							&sidecar, &err);
			assert_int_equal(rc, -EBADMSG);
			if (i != h->e_shstrndx)
				assert_non_null(strstr(err.msg, ", inside "));
		}
		sections[i] = was;
	}
	guard_seal(image.bytes, image.size);
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "again", NULL, &sidecar, &err), 0);
	cairn_sidecar_close(sidecar);
	cairn_sidecar_image_free(&image);
}

static void a_newer_version_is_refused_with_both_versions(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	uint8_t *at = memmem(image.bytes, image.size, "cairnpk", 8);
	char newer[32], known[32];
	assert_non_null(at);
	snprintf(known, sizeof(known), "knows version %u", at[8]);
	snprintf(newer, sizeof(newer), "version %u", ++at[8]);
	guard_seal(image.bytes, image.size);
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "new", NULL, &sidecar, &err),
		-EOPNOTSUPP);
	assert_non_null(strstr(err.msg, newer));
	assert_non_null(strstr(err.msg, known));
	cairn_sidecar_image_free(&image);
}

/* Version 4 had a header of 48 bytes. */
static void an_older_version_with_a_smaller_header_is_refused_by_its_version(void **state)
{
	struct cairn_sidecar_image image = packed_seed(0);
	const Elf64_Ehdr *h = image.bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)((char *)image.bytes + h->e_shoff);
	const char *names = (const char *)image.bytes + sections[h->e_shstrndx].sh_offset;
	struct cairn_sidecar *sidecar;
	uint8_t *header = NULL;
	for (unsigned int i = 1; i < h->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, ".cairn"))
			continue;
		header = (uint8_t *)image.bytes + sections[i].sh_offset;
		sections[i].sh_size = 48;
	}
	assert_non_null(header);
	for (uint8_t version = 1; version <= SIDECAR_VERSION + 1; version++) {
		struct cairn_err err = {0};
		char said[32];
		snprintf(said, sizeof(said), ": version %u of the format", version);
		header[8] = version;
		guard_seal(image.bytes, image.size);
		int rc = cairn_sidecar_open_mem(image.bytes, image.size, "old", NULL, &sidecar,
						&err);
		assert_int_equal(rc, version == SIDECAR_VERSION ? -EBADMSG : -EOPNOTSUPP);
		assert_int_equal(!strstr(err.msg, said), version == SIDECAR_VERSION);
		assert_int_equal(!strstr(err.msg, "make it again"), version >= SIDECAR_VERSION);
	}
	/* A byte that the checksums do not know is damage, whatever version it makes. */
	struct cairn_err err = {0};
	header[8] = 4;
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "bad", NULL, &sidecar, &err),
		-EBADMSG);
	cairn_sidecar_image_free(&image);
}

static void another_build_id_is_refused_with_both_ids(void **state)
{
	struct cairn_sidecar *sidecar;
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	if (!compile("gcc", ""))
		skip();
	struct cairn_binary *bin = open_prog();
	assert_int_equal(cairn_sidecar_make(bin, NULL, &image, &err), 0);
	const uint8_t other[] = {0xab, 0xcd};
	struct cairn_sidecar_opts opts = {
		.size = sizeof(opts), .build_id = other, .build_id_len = 2};
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "p", &opts, &sidecar, &err),
		-ESTALE);
	assert_non_null(strstr(err.msg, "expected abcd"));
	opts.build_id = cairn_binary_build_id(bin, &opts.build_id_len);
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "p", &opts, &sidecar, &err), 0);
	cairn_sidecar_close(sidecar);
	cairn_sidecar_image_free(&image);
	cairn_binary_close(bin);
}

/* ---- finding ---- */

static struct cairn_sidecar_search search_in(const char *cache, bool may_make)
{
	return (struct cairn_sidecar_search){.size = sizeof(struct cairn_sidecar_search),
					     .cache_dir = cache,
					     .may_make = may_make};
}

static void what_was_made_once_is_kept_and_used_for_the_stripped_program(void **state)
{
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	char cache[256];
	uint32_t number;
	if (!compile("gcc", ""))
		skip();
	snprintf(cache, sizeof(cache), "%s", workspace_path(&space, "cache/deep"));
	struct cairn_sidecar_search search = search_in(cache, true);
	struct cairn_binary *bin = open_prog();
	assert_int_equal(cairn_sidecar_for(bin, &search, &sidecar, &err), 0);
	assert_string_equal(search.note, "");
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);

	workspace_run(&space, "strip prog");
	bin = open_prog();
	assert_false(cairn_binary_has_dwarf(bin));
	search = search_in(cache, false);
	assert_int_equal(cairn_sidecar_for(bin, &search, &sidecar, &err), 0);
	assert_int_equal(cairn_sidecar_find(sidecar, "inner", &number, 1), 1);
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);
}

static void without_permission_to_make_one_there_is_none(void **state)
{
	struct cairn_sidecar *sidecar;
	if (!compile("gcc", ""))
		skip();
	struct cairn_binary *bin = open_prog();
	struct cairn_sidecar_search search = search_in(NULL, false);
	assert_int_equal(cairn_sidecar_for(bin, &search, &sidecar, NULL), -ENOENT);
	cairn_binary_close(bin);
}

static void a_sidecar_of_another_build_beside_the_program_is_told_and_not_used(void **state)
{
	struct cairn_sidecar *sidecar;
	struct cairn_sidecar_image image = packed_seed(0);
	struct cairn_err err = {0};
	if (!compile("gcc", ""))
		skip();
	assert_int_equal(cairn_file_write(workspace_path(&space, "prog.cairn"), image.bytes,
					  image.size, &err),
			 0);
	cairn_sidecar_image_free(&image);
	struct cairn_binary *bin = open_prog();
	struct cairn_sidecar_search search = search_in(NULL, false);
	assert_int_equal(cairn_sidecar_for(bin, &search, &sidecar, &err), -ENOENT);
	assert_non_null(strstr(search.note, "prog.cairn"));
	cairn_binary_close(bin);
	workspace_run(&space, "rm prog.cairn");
}

static void write_trusted(const char *name, mode_t mode)
{
	struct cairn_sidecar_image image = packed_seed(0);
	assert_int_equal(
		cairn_file_write(workspace_path(&space, name), image.bytes, image.size, NULL), 0);
	assert_int_equal(chmod(workspace_path(&space, name), mode), 0);
	cairn_sidecar_image_free(&image);
}

static int open_trusted(const char *name, struct cairn_err *err)
{
	struct cairn_sidecar_opts opts = {.size = sizeof(opts), .must_be_trusted = true};
	struct cairn_sidecar *sidecar;
	int rc = cairn_sidecar_open(workspace_path(&space, name), &opts, &sidecar, err);
	if (!rc)
		cairn_sidecar_close(sidecar);
	return rc;
}

static void what_others_could_have_written_is_not_trusted(void **state)
{
	struct cairn_err err = {0};
	write_trusted("good.cairn", 0644);
	assert_int_equal(open_trusted("good.cairn", &err), 0);
	write_trusted("open.cairn", 0646);
	assert_int_equal(open_trusted("open.cairn", &err), -EPERM);
	assert_non_null(strstr(err.msg, "open.cairn can be written by other users"));
	assert_int_equal(open_trusted("none.cairn", &err), -ENOENT);
	workspace_run(&space, "ln -sf good.cairn link.cairn");
	assert_int_equal(open_trusted("link.cairn", &err), -EPERM);
	workspace_run(&space,
		      "mkdir -p shared && chmod 777 shared && cp good.cairn shared/x.cairn");
	assert_int_equal(open_trusted("shared/x.cairn", &err), -EPERM);
	assert_non_null(strstr(err.msg, "shared can be written by other users"));
	workspace_run(&space, "chmod 1777 shared");
	assert_int_equal(open_trusted("shared/x.cairn", &err), 0);
	workspace_run(&space, "ln -sfn shared linked");
	assert_int_equal(open_trusted("linked/x.cairn", &err), -EPERM);
}

static void as_root_what_another_user_owns_is_not_trusted(void **state)
{
	struct cairn_err err = {0};
	if (geteuid())
		skip();
	write_trusted("theirs.cairn", 0644);
	assert_int_equal(chown(workspace_path(&space, "theirs.cairn"), 1234, 1234), 0);
	assert_int_equal(open_trusted("theirs.cairn", &err), -EPERM);
	assert_non_null(strstr(err.msg, "belongs to another user"));
	workspace_run(&space, "mkdir -p home && chmod 755 home && chown 1234 home && cp good.cairn "
			      "home/x.cairn && chown 0 home/x.cairn");
	assert_int_equal(open_trusted("home/x.cairn", &err), -EPERM);
	assert_non_null(strstr(err.msg, "home belongs to another user"));
}

static void pruning_removes_what_was_used_longest_ago_and_nothing_else(void **state)
{
	struct cairn_sidecar_pruned pruned;
	char dir[256];
	workspace_run(&space, "mkdir prune && cd prune && for f in a b c; do head -c 1000 "
			      "/dev/zero >$f.cairn; done && "
			      "touch -d 2020-01-01 b.cairn && touch -d 2021-01-01 a.cairn && echo "
			      "keep >other.txt");
	snprintf(dir, sizeof(dir), "%s", workspace_path(&space, "prune"));
	assert_int_equal(cairn_sidecar_prune(dir, 2500, &pruned, NULL), 0);
	assert_int_equal(pruned.n_removed, 1);
	assert_int_equal(pruned.kept_bytes, 2000);
	workspace_run(&space, "cd prune && test -e a.cairn && test -e c.cairn && test ! -e b.cairn "
			      "&& test -e other.txt");
	assert_int_equal(cairn_sidecar_prune("/no/such/directory", 0, &pruned, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_gccs_code_are_those_of_addr2line),
		cmocka_unit_test(frames_of_clangs_code_are_those_of_addr2line),
		cmocka_unit_test(a_function_is_found_by_its_name_with_its_declaration),
		cmocka_unit_test(an_address_outside_all_code_has_no_frames),
		cmocka_unit_test(a_lookup_allocates_nothing),
		cmocka_unit_test(the_bytes_do_not_depend_on_threads),
		cmocka_unit_test(what_is_made_passes_the_check),
		cmocka_unit_test(no_memory_is_an_error_wherever_it_happens),
		cmocka_unit_test(a_sidecar_cut_at_any_byte_is_refused_with_a_reason),
		cmocka_unit_test(no_flipped_bit_passes_the_check),
		cmocka_unit_test(a_damaged_byte_changes_no_answer_without_a_word),
		cmocka_unit_test(a_flipped_bit_with_its_checksum_never_leads_out_of_the_file),
		cmocka_unit_test(sections_that_share_bytes_are_refused_by_their_names),
		cmocka_unit_test(a_newer_version_is_refused_with_both_versions),
		cmocka_unit_test(an_older_version_with_a_smaller_header_is_refused_by_its_version),
		cmocka_unit_test(another_build_id_is_refused_with_both_ids),
		cmocka_unit_test(what_was_made_once_is_kept_and_used_for_the_stripped_program),
		cmocka_unit_test(without_permission_to_make_one_there_is_none),
		cmocka_unit_test(
			a_sidecar_of_another_build_beside_the_program_is_told_and_not_used),
		cmocka_unit_test(what_others_could_have_written_is_not_trusted),
		cmocka_unit_test(as_root_what_another_user_owns_is_not_trusted),
		cmocka_unit_test(pruning_removes_what_was_used_longest_ago_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, open_space, close_space);
}
