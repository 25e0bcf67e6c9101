/* SPDX-License-Identifier: BSD-2-Clause */
/* Files, sections, addresses and symbols. Debug files are in test_debug_files.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const uint8_t code[64] = {0x55, 0x48, 0x89, 0xe5, 0xc3};
static const char text[4000] = "text that repeats, text that repeats, text that repeats";

static struct cairn_vaddr at(uint64_t v)
{
	return (struct cairn_vaddr){v};
}

static struct elf *finish_and_open(struct elf_builder *b)
{
	struct cairn_err err = {0};
	struct elf *e;
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	if (elf_open_mem(bytes, size, "built.so", &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static const struct elf_section *must_have(struct elf *e, const char *name)
{
	struct cairn_err err = {0};
	const struct elf_section *s;
	if (elf_section(e, name, &s, &err) < 0)
		fail_msg("%s", err.msg);
	assert_non_null(s);
	return s;
}

static struct cairn_binary *must_open(const char *path)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	if (cairn_binary_open(path, NULL, &bin, &err) < 0)
		fail_msg("%s", err.msg);
	return bin;
}

/* The error of opening these bytes holds all of these words. */
static void assert_refused(const void *bytes, size_t size, int code_expected, const char *words)
{
	struct cairn_err err = {0};
	struct elf *e;
	int r = elf_open_mem(bytes, size, "bad.so", &e, &err);
	if (r >= 0) {
		elf_unref(e);
		fail_msg("opened; expected an error with '%s'", words);
	}
	if (r != code_expected || !strstr(err.msg, words))
		fail_msg("%d '%s'; expected %d '%s'", r, err.msg, code_expected, words);
	assert_int_equal(err.code, r);
	assert_non_null(strstr(err.msg, "bad.so"));
}

/* Sections */

static void plain_section_is_borrowed_from_the_file(void **state)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t i = eb_section(b, (struct eb_section){.name = ".debug_str", EB_BYTES(text)});
	struct elf *e = finish_and_open(b);
	const struct elf_section *s = must_have(e, ".debug_str");
	assert_ptr_equal(s->data, eb_data(b, i));
	assert_int_equal(s->size, sizeof(text));
	assert_string_equal(s->src.file, "built.so");
	assert_string_equal(s->src.section, ".debug_str");
	assert_ptr_equal(s->src.base, s->data);
	elf_unref(e);
	eb_free(b);
}

static void missing_section_is_no_error(void **state)
{
	struct elf_builder *b = eb_new(ET_DYN);
	struct elf *e = finish_and_open(b);
	const struct elf_section *s = (const struct elf_section *)b;
	assert_int_equal(elf_section(e, ".debug_info", &s, NULL), 0);
	assert_null(s);
	assert_int_equal(elf_section_bytes(e, 1000, &s, NULL), -EINVAL);
	elf_unref(e);
	eb_free(b);
}

static void compressed_section_reads_as_what_was_compressed(void **state)
{
	static const struct {
		const char *name;
		enum eb_compression how;
	} cases[] = {
		{".debug_info", EB_ZLIB},
		{".debug_info", EB_ZSTD},
		{".zdebug_info", EB_ZDEBUG},
		{".zdebug_info", EB_PLAIN}, /* the name alone compresses nothing */
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_builder *b = eb_new(ET_DYN);
		eb_section(b, (struct eb_section){.name = cases[i].name,
						  .compression = cases[i].how,
						  EB_BYTES(text)});
		struct elf *e = finish_and_open(b);
		const struct elf_section *s = must_have(e, ".debug_info");
		assert_int_equal(s->size, sizeof(text));
		assert_memory_equal(s->data, text, sizeof(text));
		assert_ptr_equal(s, must_have(e, ".debug_info"));
		elf_unref(e);
		eb_free(b);
	}
}

static void of_several_sections_the_one_outside_groups_with_bytes_is_taken(void **state)
{
	struct elf_builder *b = eb_new(ET_REL);
	eb_section(b, (struct eb_section){.name = ".debug_info"});
	eb_section(b,
		   (struct eb_section){.name = ".debug_info", .flags = SHF_GROUP, EB_BYTES(code)});
	uint32_t third = eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(text)});
	struct elf *e = finish_and_open(b);
	assert_ptr_equal(must_have(e, ".debug_info")->data, eb_data(b, third));
	const struct elf_section *s;
	assert_int_equal(elf_section_bytes(e, 2, &s, NULL), 0);
	assert_ptr_equal(s->data, eb_data(b, 2));
	elf_unref(e);
	eb_free(b);
}

/* Damage one compressed section by @damage and return what reading it says. */
static int read_damaged(enum eb_compression how, void (*damage)(uint8_t *data, Elf64_Shdr *sh),
			struct cairn_err *err)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t i = eb_section(
		b, (struct eb_section){.name = ".debug_info", .compression = how, EB_BYTES(text)});
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	damage(eb_data(b, i), eb_header(b, i));
	struct elf *e;
	const struct elf_section *s;
	assert_int_equal(elf_open_mem(bytes, size, "built.so", &e, err), 0);
	int r = elf_section(e, ".debug_info", &s, err);
	elf_unref(e);
	eb_free(b);
	return r;
}

static void set_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void claim_2_to_63(uint8_t *data, Elf64_Shdr *sh)
{
	set_u64(data + 8, 1ull << 63);
}

static void claim_4_gib(uint8_t *data, Elf64_Shdr *sh)
{
	set_u64(data + 8, 4ull << 30);
}

static void claim_one_more(uint8_t *data, Elf64_Shdr *sh)
{
	set_u64(data + 8, sizeof(text) + 1);
}

static void claim_one_less(uint8_t *data, Elf64_Shdr *sh)
{
	set_u64(data + 8, sizeof(text) - 1);
}

static void unknown_type(uint8_t *data, Elf64_Shdr *sh)
{
	data[0] = 77;
}

static void half_of_it(uint8_t *data, Elf64_Shdr *sh)
{
	sh->sh_size -= 10;
}

static void no_room_for_the_header(uint8_t *data, Elf64_Shdr *sh)
{
	sh->sh_size = 23;
}

static void damaged_compression_is_refused_with_the_reason(void **state)
{
	static const struct {
		void (*damage)(uint8_t *data, Elf64_Shdr *sh);
		int code;
		const char *words;
	} cases[] = {
		{claim_2_to_63, -ERANGE, "0x8000000000000000"},
		{claim_4_gib, -ERANGE, "attack"},
		{claim_one_more, -EBADMSG, "cannot decompress"},
		{claim_one_less, -EBADMSG, "cannot decompress"},
		{unknown_type, -EOPNOTSUPP, "compression type 77"},
		{half_of_it, -EBADMSG, "cannot decompress"},
		{no_room_for_the_header, -EBADMSG, ".debug_info+0x10"},
	};
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct cairn_err err = {0};
		int r = read_damaged(i % 2 ? EB_ZSTD : EB_ZLIB, cases[i / 2].damage, &err);
		if (r != cases[i / 2].code || !strstr(err.msg, cases[i / 2].words) ||
		    !strstr(err.msg, "built.so: .debug_info"))
			fail_msg("case %zu: %d %s", i, r, err.msg);
	}
}

/* The same sections, uncompressed and compressed by objcopy. */
static void compare_compressed(const struct workspace *w, const char *how)
{
	static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_str",
					    ".debug_line"};
	if (!workspace_try(w, "objcopy --compress-debug-sections=%s sample %s", how, how)) {
		print_message("objcopy does not know %s: not compared\n", how);
		return;
	}
	struct cairn_binary *plain = must_open(workspace_path(w, "sample"));
	struct cairn_binary *packed = must_open(workspace_path(w, how));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct elf_section *x = must_have(binary_main(plain), names[i]);
		const struct elf_section *y = must_have(binary_main(packed), names[i]);
		assert_int_equal(x->size, y->size);
		assert_memory_equal(x->data, y->data, x->size);
	}
	cairn_binary_close(plain);
	cairn_binary_close(packed);
}

static const char sample_c[] =
	"struct s { int a; char *b; };\n"
	"static int zero, table[40];\n"
	"__thread int per_thread = 3;\n"
	"extern int outside;\n"
	"__attribute__((noinline)) static int helper(struct s *s, int n) { return table[n] + s->a; "
	"}\n"
	"static inline int twice(int n) { return n * 2 + zero; }\n"
	"int work(struct s *s, int n) { return helper(s, n) + twice(n) + per_thread; }\n"
	"__attribute__((cold)) int seldom(int n) { zero = n; return n; }\n"
#define SAMPLE_MAIN                                                                                \
	"int main(int argc, char **argv) { struct s s = {argc, *argv}; return work(&s, argc) + "   \
	"seldom(1); }\n"
	SAMPLE_MAIN;

static void sections_compressed_by_objcopy_read_the_same(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"};
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "sample.c", sample_c);
	for (size_t i = 0; i < ARRAY_SIZE(compilers); i++) {
		if (!workspace_try(&w, "%s -g -O2 -o sample sample.c", compilers[i])) {
			print_message("no %s: not compared\n", compilers[i]);
			continue;
		}
		compare_compressed(&w, "zlib-gabi");
		compare_compressed(&w, "zlib-gnu");
		compare_compressed(&w, "zstd");
	}
	workspace_close(&w);
}

/* Kinds of files */

static void other_kinds_of_files_are_refused_by_name(void **state)
{
	static const struct {
		size_t off;
		uint8_t value;
		int code;
		const char *words;
	} cases[] = {
		{EI_CLASS, ELFCLASS32, -EOPNOTSUPP, "32-bit"},
		{EI_CLASS, 9, -EBADMSG, "class 9"},
		{EI_DATA, ELFDATA2MSB, -EOPNOTSUPP, "big-endian"},
		{EI_VERSION, 2, -EBADMSG, "version 2"},
		{offsetof(Elf64_Ehdr, e_machine), EM_RISCV, -EOPNOTSUPP, "RISC-V"},
		{offsetof(Elf64_Ehdr, e_machine), EM_RISCV, -EOPNOTSUPP, "RISC-V"},
		{offsetof(Elf64_Ehdr, e_machine), 199, -EOPNOTSUPP, "machine 199"},
		{offsetof(Elf64_Ehdr, e_type), ET_CORE, -EOPNOTSUPP, "core file"},
		{offsetof(Elf64_Ehdr, e_type), 9, -EBADMSG, "type 9"},
		{0, 'x', -EBADMSG, "not an ELF file"},
	};
	struct elf_builder *b = eb_new(ET_DYN);
	size_t size;
	uint8_t *bytes = eb_finish(b, &size);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t was[2] = {bytes[cases[i].off], bytes[cases[i].off + 1]};
		bytes[cases[i].off] = cases[i].value;
		if (cases[i].off >= EI_NIDENT)
			bytes[cases[i].off + 1] = 0;
		assert_refused(bytes, size, cases[i].code, cases[i].words);
		memcpy(bytes + cases[i].off, was, 2);
	}
	assert_refused("\xfd"
		       "7zXZ\0",
		       6, -EBADMSG, "compressed with xz");
	assert_refused("\x1f\x8b\x08", 3, -EBADMSG, "compressed with gzip");
	assert_refused("#!/bin/sh\n", 10, -EBADMSG, "a script");
	assert_refused("!<arch>\nx", 9, -EBADMSG, "an archive");
	assert_refused("", 0, -EBADMSG, "not an ELF file");
	eb_free(b);
}

static int open_code(const char *path)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int r = cairn_binary_open(path, NULL, &bin, &err);
	if (r == 0)
		cairn_binary_close(bin);
	else
		assert_non_null(strstr(err.msg, path));
	return r;
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state)
{
	struct workspace w;
	workspace_open(&w);
	assert_int_equal(mkfifo(workspace_path(&w, "fifo"), 0600), 0);
	workspace_write(&w, "empty", "");
	assert_int_equal(open_code(workspace_path(&w, "fifo")), -EBADMSG);
	assert_int_equal(open_code(workspace_path(&w, "empty")), -EBADMSG);
	assert_int_equal(open_code(workspace_path(&w, "missing")), -ENOENT);
	assert_int_equal(open_code("/"), -EISDIR);
	assert_int_equal(open_code("/dev/null"), -EBADMSG);
	workspace_close(&w);
}

static struct elf_builder *whole_file(size_t *ret_size, uint8_t **ret)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x1000,
						       EB_BYTES(code)});
	eb_load(b, t);
	eb_section(b, (struct eb_section){
			      .name = ".debug_info", .compression = EB_ZLIB, EB_BYTES(text)});
	eb_symbol(b, (struct eb_symbol){"f", t, 0x1000, 16, STT_FUNC, STB_GLOBAL});
	eb_build_id(b, "\x12\x34\x56\x78", 4);
	*ret = eb_finish(b, ret_size);
	return b;
}

/* Everything there is to ask; every error must name the file. */
static int ask_everything(const uint8_t *bytes, size_t size)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int r = binary_open_mem(bytes, size, "cut.so", &bin, &err);
	if (r < 0) {
		assert_int_equal(err.code, r);
		assert_non_null(strstr(err.msg, "cut.so"));
		return r;
	}
	const struct elf_section *s;
	const struct elf_symbol *symbols;
	size_t n;
	for (size_t i = 0; i < elf_n_sections(binary_main(bin)) && r == 0; i++)
		r = elf_section_bytes(binary_main(bin), i, &s, &err);
	if (r == 0)
		r = elf_symbols(binary_main(bin), &symbols, &n, &err);
	if (r < 0)
		assert_non_null(strstr(err.msg, "cut.so"));
	cairn_binary_close(bin);
	return r;
}

static void file_cut_at_any_byte_is_refused(void **state)
{
	size_t size;
	uint8_t *bytes;
	struct elf_builder *b = whole_file(&size, &bytes);
	assert_int_equal(ask_everything(bytes, size), 0);
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n ? n : 1);
		memcpy(copy, bytes, n);
		/* The section headers are last, so that no shorter file is whole. */
		assert_int_equal(ask_everything(copy, n), -EBADMSG);
		free(copy);
	}
	eb_free(b);
}

static void any_flipped_bit_gives_an_answer_or_an_error(void **state)
{
	size_t size;
	uint8_t *bytes;
	struct elf_builder *b = whole_file(&size, &bytes);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bytes[bit / 8] ^= 1u << bit % 8;
		ask_everything(bytes, size);
		bytes[bit / 8] ^= 1u << bit % 8;
	}
	assert_int_equal(ask_everything(bytes, size), 0);
	eb_free(b);
}

static void absurd_numbers_in_headers_are_refused_with_their_place(void **state)
{
	static const struct {
		size_t off, width;
		uint64_t value;
		const char *words;
	} cases[] = {
		{offsetof(Elf64_Ehdr, e_shoff), 8, 1ull << 63,
		 "section headers at offset 0x8000000000000000"},
		{offsetof(Elf64_Ehdr, e_shoff), 8, UINT64_MAX, "section headers at offset"},
		{offsetof(Elf64_Ehdr, e_phoff), 8, 1ull << 63, "program headers at offset"},
		{offsetof(Elf64_Ehdr, e_shnum), 2, 0xfeff, "65279 section headers"},
		{offsetof(Elf64_Ehdr, e_phnum), 2, 0xfffe, "65534 program headers"},
		{offsetof(Elf64_Ehdr, e_shentsize), 2, 63, "headers are of 63 bytes"},
		{offsetof(Elf64_Ehdr, e_phentsize), 2, 0, "headers are of 0 bytes"},
		{offsetof(Elf64_Ehdr, e_shstrndx), 2, 1, "not a string table"},
		{offsetof(Elf64_Ehdr, e_shstrndx), 2, 500, "section names"},
		{sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset), 8, 1ull << 63,
		 "offset 0x8000000000000000"},
		{sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), 8, 1ull << 63,
		 "0x8000000000000000 bytes"},
		{sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr), 8, UINT64_MAX - 4,
		 "leaves the address space"},
	};
	size_t size;
	uint8_t *bytes;
	struct elf_builder *b = whole_file(&size, &bytes);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t was[8];
		memcpy(was, bytes + cases[i].off, 8);
		memcpy(bytes + cases[i].off, &cases[i].value, cases[i].width);
		assert_refused(bytes, size, -EBADMSG, cases[i].words);
		memcpy(bytes + cases[i].off, was, 8);
	}
	eb_free(b);
}

static void section_outside_the_file_is_refused_when_it_is_read(void **state)
{
	static const struct {
		uint64_t off, size;
	} cases[] = {
		{1ull << 63, 8}, {64, 1ull << 63}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX - 7, 8}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_builder *b = eb_new(ET_DYN);
		uint32_t s =
			eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(text)});
		size_t size;
		const uint8_t *bytes = eb_finish(b, &size);
		eb_header(b, s)->sh_offset = cases[i].off;
		eb_header(b, s)->sh_size = cases[i].size;
		struct cairn_err err = {0};
		struct elf *e;
		const struct elf_section *section;
		assert_int_equal(elf_open_mem(bytes, size, "built.so", &e, &err), 0);
		assert_int_equal(elf_section(e, ".debug_info", &section, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "built.so: .debug_info"));
		assert_non_null(strstr(err.msg, "after the end of the file"));
		elf_unref(e);
		eb_free(b);
	}
}

/* Addresses */

static void file_offset_and_address_convert_both_ways(void **state)
{
	struct elf_builder *b = eb_new(ET_EXEC);
	uint32_t data = eb_section(b, (struct eb_section){.name = ".data",
							  .flags = SHF_ALLOC | SHF_WRITE,
							  .addr = 0x600000,
							  EB_BYTES(text)});
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x401000,
						       EB_BYTES(code)});
	uint32_t bss = eb_section(b, (struct eb_section){.name = ".bss",
							 .type = SHT_NOBITS,
							 .flags = SHF_ALLOC | SHF_WRITE,
							 .addr = 0x700000,
							 .size = 64});
	eb_load(b, data);
	eb_load(b, t);
	eb_load(b, bss);
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	struct cairn_binary *bin;
	assert_int_equal(binary_open_mem(bytes, size, "built", &bin, NULL), 0);
	for (uint64_t i = 0; i < sizeof(code); i++) {
		struct cairn_foff off;
		struct cairn_vaddr back;
		assert_true(cairn_binary_foff(bin, at(0x401000 + i), &off));
		assert_int_equal(off.v, eb_data(b, t) + i - bytes);
		assert_true(cairn_binary_vaddr(bin, off, &back));
		assert_int_equal(back.v, 0x401000 + i);
	}
	struct cairn_foff off;
	struct cairn_vaddr back;
	assert_false(cairn_binary_foff(bin, at(0x401000 + sizeof(code)), &off));
	assert_false(cairn_binary_foff(bin, at(0x400fff), &off));
	assert_false(cairn_binary_foff(bin, at(0x700000), &off));
	assert_false(cairn_binary_foff(bin, at(0), &off));
	assert_false(cairn_binary_foff(bin, at(UINT64_MAX), &off));
	assert_false(cairn_binary_vaddr(bin, (struct cairn_foff){size}, &back));
	assert_false(cairn_binary_vaddr(bin, (struct cairn_foff){0}, &back));
	cairn_binary_close(bin);
	eb_free(b);
}

static void section_and_code_at_an_address(void **state)
{
	struct elf_builder *b = eb_new(ET_EXEC);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x1000,
						       EB_BYTES(code)});
	eb_section(b, (struct eb_section){.name = ".tbss",
					  .type = SHT_NOBITS,
					  .flags = SHF_ALLOC | SHF_TLS,
					  .addr = 0x1000 + sizeof(code),
					  .size = 100});
	eb_section(b, (struct eb_section){.name = ".data",
					  .flags = SHF_ALLOC,
					  .addr = 0x1000 + sizeof(code),
					  EB_BYTES(text)});
	size_t size, len;
	const uint8_t *bytes = eb_finish(b, &size), *p;
	struct cairn_binary *bin;
	const char *name;
	uint64_t off;
	assert_int_equal(binary_open_mem(bytes, size, "built", &bin, NULL), 0);
	assert_true(cairn_binary_section_of(bin, at(0x1004), &name, &off));
	assert_string_equal(name, ".text");
	assert_int_equal(off, 4);
	assert_true(cairn_binary_section_of(bin, at(0x1000 + sizeof(code)), &name, &off));
	assert_string_equal(name, ".data");
	assert_false(cairn_binary_section_of(bin, at(0xfff), &name, &off));
	assert_true(elf_code_at(binary_main(bin), at(0x1004), &p, &len));
	assert_ptr_equal(p, eb_data(b, t) + 4);
	assert_int_equal(len, sizeof(code) - 4);
	assert_false(elf_code_at(binary_main(bin), at(0x1000 + sizeof(code)), &p, &len));
	cairn_binary_close(bin);
	eb_free(b);
}

static int find_base(struct dl_phdr_info *info, size_t size, void *ctx)
{
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1; /* the first is the program */
}

static void own_process_has_the_bytes_that_the_file_has(void **state)
{
	uint64_t base = 0;
	dl_iterate_phdr(find_base, &base);
	struct cairn_binary *bin;
	assert_int_equal(cairn_binary_open_pid(getpid(), NULL, &bin, NULL), 0);
	uint64_t here = (uint64_t)(uintptr_t)own_process_has_the_bytes_that_the_file_has - base;
	const char *name;
	struct cairn_vaddr start;
	struct cairn_foff off;
	assert_true(cairn_binary_symbol_of(bin, at(here + 5), &name, &start));
	assert_string_equal(name, "own_process_has_the_bytes_that_the_file_has");
	assert_int_equal(start.v, here);
	assert_true(cairn_binary_foff(bin, at(here), &off));
	uint8_t from_file[64];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, from_file, 64, off.v), 64);
	close(fd);
	assert_memory_equal(from_file, (void *)(uintptr_t)(base + here), 64);
	const uint8_t *p;
	size_t len;
	assert_true(elf_code_at(binary_main(bin), at(here), &p, &len));
	assert_true(len >= 64);
	assert_memory_equal(p, from_file, 64);
	cairn_binary_close(bin);
}

static void debug_only_file_maps_no_addresses(void **state)
{
	struct elf_builder *b = eb_new(ET_DYN);
	eb_section(b, (struct eb_section){.name = ".text",
					  .type = SHT_NOBITS,
					  .flags = SHF_ALLOC | SHF_EXECINSTR,
					  .addr = 0x1000,
					  .size = 64});
	uint32_t wrong = eb_section(
		b, (struct eb_section){.name = ".debug_info", .addr = 0x1000, EB_BYTES(text)});
	eb_load(b, wrong); /* program headers are those of the stripped file and lie */
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	struct cairn_binary *bin;
	struct cairn_foff off;
	assert_int_equal(binary_open_mem(bytes, size, "built", &bin, NULL), 0);
	assert_false(cairn_binary_foff(bin, at(0x1000), &off));
	cairn_binary_close(bin);
	eb_free(b);
}

/* Relocatable files */

static void relocatable_file_is_laid_out_by_alignment_and_never_at_zero(void **state)
{
	struct elf_builder *b = eb_new(ET_REL);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .align = 16,
						       .data = code,
						       .size = 33});
	uint32_t init = eb_section(b, (struct eb_section){.name = ".init.text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .align = 64,
							  EB_BYTES(code)});
	eb_section(b, (struct eb_section){.name = ".debug_str", EB_BYTES(text)});
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	struct cairn_binary *bin;
	struct cairn_foff off;
	assert_int_equal(binary_open_mem(bytes, size, "built.o", &bin, NULL), 0);
	assert_true(cairn_binary_is_relocatable(bin));
	uint64_t text_addr = elf_section_at(binary_main(bin), t)->addr.v;
	uint64_t init_addr = elf_section_at(binary_main(bin), init)->addr.v;
	assert_true(text_addr > 0);
	assert_int_equal(init_addr % 64, 0);
	assert_true(init_addr >= text_addr + 33 && init_addr < text_addr + 33 + 64);
	assert_int_equal(must_have(binary_main(bin), ".debug_str")->addr.v, 0);
	assert_true(cairn_binary_foff(bin, at(init_addr + 3), &off));
	assert_int_equal(off.v, eb_data(b, init) + 3 - bytes);
	cairn_binary_close(bin);
	eb_free(b);
}

static void every_relocation_type_gives_the_value_of_its_formula(void **state)
{
	static const struct {
		uint32_t type;
		unsigned int width;
		int64_t addend;
		/* With S the symbol's address, Z its size, P the place: */
		int s, z, minus_p, tls;
	} cases[] = {
		{R_X86_64_64, 8, 5, 1, 0, 0, 0},       {R_X86_64_32, 4, 5, 1, 0, 0, 0},
		{R_X86_64_32S, 4, -5, 1, 0, 0, 0},     {R_X86_64_PC32, 4, -4, 1, 0, 1, 0},
		{R_X86_64_PLT32, 4, -4, 1, 0, 1, 0},   {R_X86_64_PC64, 8, -4, 1, 0, 1, 0},
		{R_X86_64_DTPOFF64, 8, 2, 0, 0, 0, 1}, {R_X86_64_DTPOFF32, 4, 2, 0, 0, 0, 1},
		{R_X86_64_TPOFF32, 4, 2, 0, 0, 0, 1},  {R_X86_64_SIZE64, 8, 1, 0, 1, 0, 0},
		{R_X86_64_SIZE32, 4, 1, 0, 1, 0, 0},   {R_X86_64_16, 2, 5, 1, 0, 0, 0},
		{R_X86_64_PC16, 2, 5, 1, 0, 1, 0},     {R_X86_64_NONE, 8, 5, 0, 0, 0, 0},
	};
	enum { VALUE = 0x20, SIZE = 0x77 };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_builder *b = eb_new(ET_REL);
		uint32_t data = eb_section(
			b,
			(struct eb_section){.name = ".data", .flags = SHF_ALLOC, EB_BYTES(code)});
		uint32_t eh = eb_section(b, (struct eb_section){.name = ".eh_frame",
								.flags = SHF_ALLOC,
								.data = text + 100,
								.size = 64});
		uint32_t sym = eb_symbol(
			b, (struct eb_symbol){"v", data, VALUE, SIZE, STT_OBJECT, STB_LOCAL});
		eb_rela(b, eh, 16, cases[i].type, sym, cases[i].addend);
		struct elf *e = finish_and_open(b);
		const struct elf_section *s = must_have(e, ".eh_frame");
		uint64_t want = 0, got = 0;
		want += cases[i].s ? elf_section_at(e, data)->addr.v + VALUE : 0;
		want += cases[i].z ? SIZE : 0;
		want += cases[i].tls ? VALUE : 0;
		want -= cases[i].minus_p ? s->addr.v + 16 : 0;
		want += cases[i].type == R_X86_64_NONE ? 0 : cases[i].addend;
		memcpy(&got, s->data + 16, 8);
		/* Exactly its width is written: the zeros after stay. */
		assert_int_equal(got, cases[i].width == 8
					      ? want
					      : want & ((1ull << 8 * cases[i].width) - 1));
		elf_unref(e);
		eb_free(b);
	}
}

static void code_and_files_with_relocations_applied_are_not_relocated(void **state)
{
	for (int type = ET_REL; type <= ET_EXEC; type++) {
		struct elf_builder *b = eb_new(type);
		uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
							       .flags = SHF_ALLOC | SHF_EXECINSTR,
							       .addr = 0x1000,
							       EB_BYTES(code)});
		uint32_t info =
			eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(text)});
		uint32_t sym = eb_symbol(b, (struct eb_symbol){"v", t, 8, 8, STT_FUNC, STB_LOCAL});
		eb_rela(b, type == ET_REL ? t : info, 0, R_X86_64_64, sym, 99);
		struct elf *e = finish_and_open(b);
		assert_ptr_equal(must_have(e, ".text")->data, eb_data(b, t));
		assert_ptr_equal(must_have(e, ".debug_info")->data, eb_data(b, info));
		elf_unref(e);
		eb_free(b);
	}
}

static void bad_relocations_are_refused_with_their_place(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t type, symbol;
		int64_t addend;
		int code;
		const char *words;
	} cases[] = {
		{sizeof(text) - 7, R_X86_64_64, 1, 0, -EBADMSG,
		 ".debug_info+0xf99: relocation after"},
		{UINT64_MAX, R_X86_64_64, 1, 0, -EBADMSG, "relocation after the section's end"},
		{0, R_X86_64_64, 2000000, 0, -EBADMSG, "symbol 2000000; there are 2"},
		{4, R_X86_64_32, 1, 1ll << 40, -EBADMSG, ".debug_info+0x4: relocated value"},
		{4, R_X86_64_32S, 1, 1ll << 31, -EBADMSG, "does not fit 4 bytes"},
		{8, R_X86_64_COPY, 1, 0, -EOPNOTSUPP, ".debug_info+0x8: relocation type 5"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_builder *b = eb_new(ET_REL);
		uint32_t info =
			eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(text)});
		eb_symbol(b, (struct eb_symbol){"v", info, 8, 8, STT_OBJECT, STB_LOCAL});
		eb_rela(b, info, cases[i].off, cases[i].type, cases[i].symbol, cases[i].addend);
		struct elf *e = finish_and_open(b);
		struct cairn_err err = {0};
		const struct elf_section *s;
		int r = elf_section(e, ".debug_info", &s, &err);
		if (r != cases[i].code || !strstr(err.msg, cases[i].words))
			fail_msg("case %zu: %d %s", i, r, err.msg);
		elf_unref(e);
		eb_free(b);
	}
}

/* A linker script that puts each allocated section where we put it, and merges no debug section. */
static void write_linker_script(const struct workspace *w, struct elf *e)
{
	FILE *f = fopen(workspace_path(w, "layout.ld"), "we");
	assert_non_null(f);
	fputs("SECTIONS {\n", f);
	for (size_t i = 1; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (s->flags & SHF_ALLOC && s->size)
			fprintf(f, "%s 0x%jx : { *(%s) }\n", s->name, (uintmax_t)s->addr.v,
				s->name);
		else if (!strncmp(s->name, ".debug_", 7))
			fprintf(f, "%s 0 : { *(%s) }\n", s->name, s->name);
	}
	fputs("}\n", f);
	fclose(f);
}

static void compare_with_linked(const struct workspace *w)
{
	/* clang-format off */
	static const char *const names[] = {
		".debug_info",	  ".debug_line", ".debug_loclists",   ".debug_rnglists",
		".debug_aranges", ".debug_addr", ".debug_str_offsets"};
	/* clang-format on */
	struct cairn_binary *object = must_open(workspace_path(w, "sample.o"));
	write_linker_script(w, binary_main(object));
	workspace_run(w, "objcopy --set-section-flags .debug_str=readonly "
			 "--set-section-flags .debug_line_str=readonly sample.o unmerged.o");
	workspace_run(w,
		      "ld -T layout.ld -e 0 --unresolved-symbols=ignore-all -o linked unmerged.o "
		      "2>/dev/null");
	struct cairn_binary *linked = must_open(workspace_path(w, "linked"));
	size_t compared = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct elf_section *x, *y;
		assert_int_equal(elf_section(binary_main(object), names[i], &x, NULL), 0);
		if (!x)
			continue;
		y = must_have(binary_main(linked), names[i]);
		assert_int_equal(x->size, y->size);
		for (uint64_t j = 0; j < x->size; j++)
			if (x->data[j] != y->data[j])
				fail_msg("%s+0x%jx: %02x, ld says %02x", names[i], (uintmax_t)j,
					 x->data[j], y->data[j]);
		compared++;
	}
	assert_true(compared >= 2);
	cairn_binary_close(object);
	cairn_binary_close(linked);
}

static void debug_sections_of_an_object_are_what_the_linker_makes_of_them(void **state)
{
	static const char *const compilers[] = {
		"gcc -gdwarf-5 -O2", "gcc -gdwarf-4 -O2 -ffunction-sections -fdata-sections",
		"clang -gdwarf-5 -O2", "clang -gdwarf-4 -O2 -ffunction-sections"};
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "sample.c", sample_c);
	for (size_t i = 0; i < ARRAY_SIZE(compilers); i++)
		if (workspace_try(&w, "%s -c -o sample.o sample.c", compilers[i]))
			compare_with_linked(&w);
		else
			print_message("no %s: not compared\n", compilers[i]);
	workspace_close(&w);
}

static void more_sections_than_the_header_can_count(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "many.s",
			".altmacro\n.macro one n\n.section .text.f\\n, \"ax\"\nf\\n: .4byte \\n\n"
			".type f\\n, @function\n.size f\\n, 4\n.endm\n"
			".set i, 0\n.rept 66000\none %i\n.set i, i + 1\n.endr\n"
			".section .debug_info\n.quad f65999\n");
	if (!workspace_try(&w, "as -o many.o many.s")) {
		workspace_close(&w);
		print_message("no assembler\n");
		skip();
	}
	struct cairn_binary *bin = must_open(workspace_path(&w, "many.o"));
	const struct elf_section *info = must_have(binary_main(bin), ".debug_info");
	assert_true(elf_n_sections(binary_main(bin)) > 66000);
	struct cairn_vaddr f, start;
	const char *name;
	memcpy(&f.v, info->data, 8);
	assert_true(cairn_binary_symbol_of(bin, f, &name, &start));
	assert_string_equal(name, "f65999");
	const uint8_t *p;
	size_t len;
	assert_true(elf_code_at(binary_main(bin), f, &p, &len));
	uint32_t number;
	assert_int_equal(len, sizeof(number));
	memcpy(&number, p, sizeof(number));
	assert_int_equal(number, 65999);
	cairn_binary_close(bin);
	workspace_close(&w);
}

/* Symbols */

static void symbols_come_by_address_without_their_version(void **state)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x1000,
						       EB_BYTES(code)});
	eb_symbol(b, (struct eb_symbol){"file.c", SHN_ABS, 0, 0, STT_FILE, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"", t, 0x1000, 0, STT_SECTION, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"later", t, 0x1010, 4, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"undefined", 0, 0, 0, STT_FUNC, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"memcpy@@GLIBC_2.14", t, 0x1000, 4, STT_FUNC, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"memcpy@GLIBC_2.2.5", t, 0x1020, 4, STT_FUNC, STB_WEAK});
	struct elf *e = finish_and_open(b);
	const struct elf_symbol *s;
	size_t n;
	assert_int_equal(elf_symbols(e, &s, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(s[0].name, "memcpy");
	assert_int_equal(s[0].binding, STB_GLOBAL);
	assert_string_equal(s[1].name, "later");
	assert_int_equal(s[1].at.v, 0x1010);
	assert_int_equal(s[1].size, 4);
	assert_string_equal(s[2].name, "memcpy");
	/* What was forgotten is read again, names that are copies too. */
	elf_forget_symbols(e);
	assert_int_equal(elf_symbols(e, &s, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(s[0].name, "memcpy");
	assert_string_equal(s[1].name, "later");
	/* Another owner may have them. */
	struct elf *other = elf_ref(e);
	elf_forget_symbols(e);
	assert_string_equal(s[2].name, "memcpy");
	elf_unref(other);
	elf_unref(e);
	eb_free(b);
}

static void dynamic_symbols_serve_where_there_are_no_others(void **state)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x1000,
						       EB_BYTES(code)});
	eb_symbols_in(b, ".dynsym");
	eb_symbol(b, (struct eb_symbol){"f", t, 0x1000, 4, STT_FUNC, STB_GLOBAL});
	struct elf *e = finish_and_open(b);
	const struct elf_symbol *s;
	size_t n;
	assert_int_equal(elf_symbols(e, &s, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(s[0].name, "f");
	elf_unref(e);
	eb_free(b);
}

struct span {
	uint64_t lo, size;
	uint8_t binding;
	char name[16];
};

/* What holds an address by itself. */
static const struct span *held_at(const struct span *p, size_t n, uint64_t x)
{
	const struct span *best = NULL;
	static const int rank[] = {[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
	for (size_t i = 0; i < n; i++) {
		uint64_t size = p[i].size ? p[i].size : 1;
		if (x < p[i].lo || x - p[i].lo >= size)
			continue;
		if (!best || p[i].lo > best->lo) {
			best = &p[i];
			continue;
		}
		if (p[i].lo < best->lo || (!p[i].size && best->size))
			continue;
		if (p[i].size && !best->size) {
			best = &p[i];
			continue;
		}
		int d = rank[p[i].binding] - rank[best->binding];
		if (!d)
			d = (int)strlen(p[i].name) - (int)strlen(best->name);
		if (!d)
			d = strcmp(p[i].name, best->name);
		if (d < 0)
			best = &p[i];
	}
	return best;
}

/*
 * The rule of binary.h in its own words, one symbol after the other; a gap is that of what comes
 * before it without a size.
 */
static const struct span *expected_at(const struct span *p, size_t n, uint64_t x)
{
	const struct span *best = held_at(p, n, x);
	if (x < 0x1000 || x >= 0x1100)
		return best;
	for (uint64_t y = x; !best && y-- > 0x1000;) {
		const struct span *before = held_at(p, n, y);
		if (before && before->size)
			return NULL;
		best = before;
	}
	return best;
}

static void check_spans(const struct span *p, size_t n)
{
	static const uint8_t bytes_of_text[256];
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = 0x1000,
						       EB_BYTES(bytes_of_text)});
	for (size_t i = 0; i < n; i++)
		eb_symbol(b, (struct eb_symbol){p[i].name, t, p[i].lo, p[i].size, STT_FUNC,
						p[i].binding});
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	struct cairn_binary *bin;
	assert_int_equal(binary_open_mem(bytes, size, "built", &bin, NULL), 0);
	for (uint64_t x = 0xff0; x < 0x1110; x++) {
		const struct span *want = expected_at(p, n, x);
		const char *name = NULL;
		struct cairn_vaddr start = {0};
		bool found = cairn_binary_symbol_of(bin, at(x), &name, &start);
		if (found != !!want || (want && (strcmp(name, want->name) || start.v != want->lo)))
			fail_msg("at 0x%jx: '%s', expected '%s'", (uintmax_t)x,
				 found ? name : "none", want ? want->name : "none");
	}
	cairn_binary_close(bin);
	eb_free(b);
}

static void symbol_of_agrees_with_a_plain_search_on_random_nested_symbols(void **state)
{
	uint32_t seed = 1;
	for (int round = 0; round < 300; round++) {
		struct span p[24];
		size_t n = round % ARRAY_SIZE(p);
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			p[i].lo = 0x1000 + (seed >> 8) % 200;
			p[i].size = (seed >> 16) % 5 ? (seed >> 20) % 60 : 0;
			p[i].binding = (seed >> 27) % 3;
			/* Names of one to three letters, some of them the same. */
			snprintf(p[i].name, sizeof(p[i].name), "%.*s%c", (int)(seed >> 29) % 3,
				 "zz", 'a' + (int)(seed >> 11) % 26);
		}
		check_spans(p, n);
	}
}

static void symbol_that_wraps_around_the_address_space_is_harmless(void **state)
{
	struct span p[] = {{0x1000, UINT64_MAX, STB_GLOBAL, "all"},
			   {0x1010, 1ull << 63, STB_GLOBAL, "half"}};
	check_spans(p, ARRAY_SIZE(p));
}

static void functions_of_a_real_file_are_those_that_nm_lists(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "sample.c", sample_c);
	if (!workspace_try(&w,
			   "gcc -g -O2 -o sample sample.c -Wl,--unresolved-symbols=ignore-all && "
			   "nm --defined-only sample | grep ' [TtW] ' > list")) {
		workspace_close(&w);
		print_message("no gcc or nm\n");
		skip();
	}
	struct cairn_binary *bin = must_open(workspace_path(&w, "sample"));
	FILE *f = fopen(workspace_path(&w, "list"), "re");
	unsigned long long addr;
	char kind, listed[256];
	int n = 0;
	assert_non_null(f);
	while (fscanf(f, "%llx %c %255s", &addr, &kind, listed) == 3) {
		static const char *const ours[] = {"helper", "work", "seldom", "main", "_start"};
		for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
			const char *name;
			struct cairn_vaddr start;
			if (strcmp(listed, ours[i]))
				continue;
			assert_true(cairn_binary_symbol_of(bin, at(addr), &name, &start));
			assert_string_equal(name, listed);
			assert_int_equal(start.v, addr);
			n++;
		}
	}
	fclose(f);
	assert_true(n >= 4);
	cairn_binary_close(bin);
	workspace_close(&w);
}

static void damaged_symbol_tables_are_refused_with_their_place(void **state)
{
	enum { SYMBOL = 1 };
	for (int kind = 0; kind < 4; kind++) {
		static const char *const words[] = {"its name is at", "is in section 999",
						    "not a string table", "no NUL at its end"};
		struct elf_builder *b = eb_new(ET_DYN);
		uint32_t t = eb_section(b, (struct eb_section){.name = ".data", EB_BYTES(code)});
		eb_symbol(b, (struct eb_symbol){"f", kind == 1 ? 999 : t, 0x1000, 4, STT_FUNC,
						STB_GLOBAL});
		size_t size, n;
		uint8_t *bytes = eb_finish(b, &size);
		if (kind == 0)
			((Elf64_Sym *)eb_data(b, t + 1))[SYMBOL].st_name = 1000;
		if (kind == 2)
			eb_header(b, t + 1)->sh_link = t;
		if (kind == 3)
			eb_data(b, t + 2)[2] = 'x';
		struct cairn_err err = {0};
		const struct elf_symbol *s;
		struct elf *e;
		assert_int_equal(elf_open_mem(bytes, size, "built.so", &e, &err), 0);
		assert_int_equal(elf_symbols(e, &s, &n, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, words[kind]));
		assert_non_null(strstr(err.msg, "built.so"));
		elf_unref(e);
		eb_free(b);
	}
}

/* Memory and threads */

static struct elf_builder *file_with_everything(size_t *ret_size, const uint8_t **ret)
{
	struct elf_builder *b = eb_new(ET_REL);
	uint32_t t = eb_section(b, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       EB_BYTES(code)});
	uint32_t info = eb_section(
		b,
		(struct eb_section){.name = ".debug_info", .compression = EB_ZSTD, EB_BYTES(text)});
	uint32_t line = eb_section(
		b,
		(struct eb_section){.name = ".debug_line", .compression = EB_ZLIB, EB_BYTES(text)});
	uint32_t f = eb_symbol(b, (struct eb_symbol){"f@V", t, 8, 8, STT_FUNC, STB_LOCAL});
	eb_rela(b, info, 8, R_X86_64_64, f, 0);
	eb_rela(b, line, 8, R_X86_64_64, f, 0);
	*ret = eb_finish(b, ret_size);
	return b;
}

static int use_everything(const uint8_t *bytes, size_t size, struct cairn_err *err)
{
	struct cairn_binary *bin;
	const struct elf_section *s;
	const struct elf_symbol *symbols;
	size_t n;
	int r = binary_open_mem(bytes, size, "built.o", &bin, err);
	if (r < 0)
		return r;
	r = elf_section(binary_main(bin), ".debug_info", &s, err);
	if (r == 0)
		r = elf_section(binary_main(bin), ".debug_line", &s, err);
	if (r == 0)
		r = elf_symbols(binary_main(bin), &symbols, &n, err);
	cairn_binary_close(bin);
	return r;
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state)
{
	size_t size;
	const uint8_t *bytes;
	struct elf_builder *b = file_with_everything(&size, &bytes);
	unsigned int n;
	for (n = 1;; n++) {
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int r = use_everything(bytes, size, &err);
		if (!alloc_fail_end()) {
			assert_int_equal(r, 0);
			break;
		}
		assert_int_equal(r, -ENOMEM);
		assert_non_null(strstr(err.msg, "out of memory"));
	}
	assert_true(n > 8);
	eb_free(b);
}

static void failed_use_may_be_tried_again(void **state)
{
	size_t size;
	const uint8_t *bytes;
	struct elf_builder *b = file_with_everything(&size, &bytes);
	struct elf *e;
	const struct elf_section *s;
	assert_int_equal(elf_open_mem(bytes, size, "built.o", &e, NULL), 0);
	alloc_fail_at(1);
	assert_int_equal(elf_section(e, ".debug_info", &s, NULL), -ENOMEM);
	assert_true(alloc_fail_end());
	assert_int_equal(elf_section(e, ".debug_info", &s, NULL), 0);
	elf_unref(e);
	eb_free(b);
}

struct user {
	struct cairn_binary *bin;
	pthread_barrier_t *start;
	const struct elf_section *info, *line;
	const struct elf_symbol *symbols;
	const char *name;
};

static void *first_use(void *ctx)
{
	struct user *u = ctx;
	size_t n;
	struct cairn_vaddr start, f = {0x1008};
	pthread_barrier_wait(u->start);
	elf_section(binary_main(u->bin), ".debug_info", &u->info, NULL);
	elf_section(binary_main(u->bin), ".debug_line", &u->line, NULL);
	elf_symbols(binary_main(u->bin), &u->symbols, &n, NULL);
	cairn_binary_symbol_of(u->bin, f, &u->name, &start);
	return NULL;
}

static void many_threads_may_be_the_first_user(void **state)
{
	enum { THREADS = 8, ROUNDS = 50 };
	size_t size;
	const uint8_t *bytes;
	struct elf_builder *b = file_with_everything(&size, &bytes);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_t start;
		pthread_t threads[THREADS];
		struct user users[THREADS] = {0};
		struct cairn_binary *bin;
		assert_int_equal(binary_open_mem(bytes, size, "built.o", &bin, NULL), 0);
		pthread_barrier_init(&start, NULL, THREADS);
		for (int i = 0; i < THREADS; i++) {
			users[i] = (struct user){.bin = bin, .start = &start};
			assert_int_equal(pthread_create(&threads[i], NULL, first_use, &users[i]),
					 0);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			assert_non_null(users[i].info);
			assert_non_null(users[i].info->data);
			assert_ptr_equal(users[i].info, users[0].info);
			assert_ptr_equal(users[i].line, users[0].line);
			assert_ptr_equal(users[i].symbols, users[0].symbols);
			assert_string_equal(users[i].name, "f");
		}
		pthread_barrier_destroy(&start);
		cairn_binary_close(bin);
	}
	eb_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_section_is_borrowed_from_the_file),
		cmocka_unit_test(missing_section_is_no_error),
		cmocka_unit_test(compressed_section_reads_as_what_was_compressed),
		cmocka_unit_test(of_several_sections_the_one_outside_groups_with_bytes_is_taken),
		cmocka_unit_test(damaged_compression_is_refused_with_the_reason),
		cmocka_unit_test(sections_compressed_by_objcopy_read_the_same),
		cmocka_unit_test(other_kinds_of_files_are_refused_by_name),
		cmocka_unit_test(what_is_no_regular_file_is_refused_without_waiting),
		cmocka_unit_test(file_cut_at_any_byte_is_refused),
		cmocka_unit_test(any_flipped_bit_gives_an_answer_or_an_error),
		cmocka_unit_test(absurd_numbers_in_headers_are_refused_with_their_place),
		cmocka_unit_test(section_outside_the_file_is_refused_when_it_is_read),
		cmocka_unit_test(file_offset_and_address_convert_both_ways),
		cmocka_unit_test(section_and_code_at_an_address),
		cmocka_unit_test(own_process_has_the_bytes_that_the_file_has),
		cmocka_unit_test(debug_only_file_maps_no_addresses),
		cmocka_unit_test(relocatable_file_is_laid_out_by_alignment_and_never_at_zero),
		cmocka_unit_test(every_relocation_type_gives_the_value_of_its_formula),
		cmocka_unit_test(code_and_files_with_relocations_applied_are_not_relocated),
		cmocka_unit_test(bad_relocations_are_refused_with_their_place),
		cmocka_unit_test(debug_sections_of_an_object_are_what_the_linker_makes_of_them),
		cmocka_unit_test(more_sections_than_the_header_can_count),
		cmocka_unit_test(symbols_come_by_address_without_their_version),
		cmocka_unit_test(dynamic_symbols_serve_where_there_are_no_others),
		cmocka_unit_test(symbol_of_agrees_with_a_plain_search_on_random_nested_symbols),
		cmocka_unit_test(symbol_that_wraps_around_the_address_space_is_harmless),
		cmocka_unit_test(functions_of_a_real_file_are_those_that_nm_lists),
		cmocka_unit_test(damaged_symbol_tables_are_refused_with_their_place),
		cmocka_unit_test(every_failed_allocation_is_reported_and_leaks_nothing),
		cmocka_unit_test(failed_use_may_be_tried_again),
		cmocka_unit_test(many_threads_may_be_the_first_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
