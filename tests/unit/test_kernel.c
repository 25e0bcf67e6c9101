/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running kernel: addresses, symbols, the image made of them, and memory that is missing. A
 * folder stands for proc and sysfs; tests/cli/test_sites_running.py has the searches for files.
 */
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

#include <cairn/hazards.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "kernel/kernel.h"
#include "kernel/symbols.h"

#define TEXT  0xffffffff81000000
#define INIT  0xffffffff82000000
#define SLIDE 0x3e00000

static char root[64];

static void put(const char *name, const void *bytes, size_t n)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static void put_kallsyms(uint64_t slide)
{
	char text[1024];
	snprintf(text, sizeof(text),
		 "0000000000000000 A fixed_percpu_data\n%lx T _text\n%lx T first\nnonsense\n"
		 "%lx t second\n%lx T _etext\n%lx T _sinittext\n%lx t begin\n%lx T _einittext\n"
		 "ffffffffc0000000 t first\t[module]\n",
		 TEXT + slide, TEXT + slide, TEXT + 16 + slide, TEXT + 64 + slide, INIT + slide,
		 INIT + slide, INIT + 32 + slide);
	put_text("proc/kallsyms", text);
}

static void set_up_root(void)
{
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[8];
	} note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", "buildid"};
	snprintf(root, sizeof(root), "/tmp/cairn-kernel-XXXXXX");
	assert_non_null(mkdtemp(root));
	put_text("proc/sys/kernel/osrelease", "6.1.0-test\n");
	put("sys/kernel/notes", &note, sizeof(note));
	put_kallsyms(SLIDE);
}

static void remove_root(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

static const uint8_t code[64] = {0x66, 0x90, 0xc3};

/* The kernel's file; with a jump label at its first instruction. */
static uint8_t *kernel_file(const char *id, size_t *size)
{
	static const uint8_t jump[16] = {0, 0, 0, 0xfe};
	struct elf_builder *b = eb_new(ET_EXEC);
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = TEXT,
							  EB_BYTES(code)});
	uint32_t init = eb_section(b, (struct eb_section){.name = ".init.text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = INIT,
							  EB_BYTES(code)});
	uint32_t data = eb_section(b, (struct eb_section){.name = ".data",
							  .flags = SHF_ALLOC,
							  .addr = TEXT + 0x2000000,
							  EB_BYTES(jump)});
	eb_symbol(b, (struct eb_symbol){"first", text, TEXT, 16, STT_FUNC, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"second", text, TEXT + 16, 48, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"begin", init, INIT, 16, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"__start___jump_table", data, TEXT + 0x2000000, 0,
					STT_NOTYPE, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"__stop___jump_table", data, TEXT + 0x2000010, 0,
					STT_NOTYPE, STB_GLOBAL});
	eb_build_id(b, id, 8);
	const uint8_t *finished = eb_finish(b, size);
	uint8_t *bytes = malloc(*size);
	assert_non_null(bytes);
	memcpy(bytes, finished, *size);
	eb_free(b);
	return bytes;
}

static struct cairn_kernel_opts opts(void)
{
	return (struct cairn_kernel_opts){.size = sizeof(struct cairn_kernel_opts), .root = root};
}

static struct cairn_kernel *open_kernel(void)
{
	struct cairn_kernel_opts o = opts();
	struct cairn_kernel *k;
	assert_int_equal(cairn_kernel_open(&o, &k, NULL), 0);
	return k;
}

static void code_is_where_it_was_loaded_and_freed_code_is_nowhere(void **state)
{
	size_t size;
	uint64_t at;
	struct cairn_binary *bin;
	struct cairn_kernel *k = open_kernel();
	uint8_t *bytes = kernel_file("buildid", &size);
	assert_int_equal(binary_open_mem(bytes, size, "vmlinux", &bin, NULL), 0);
	assert_false(cairn_kernel_address(k, (struct cairn_vaddr){TEXT}, &at));
	assert_int_equal(cairn_kernel_bind(k, bin, NULL, true, NULL), 0);
	assert_true(cairn_kernel_address(k, (struct cairn_vaddr){TEXT + 17}, &at));
	assert_int_equal(at, TEXT + 17 + SLIDE);
	assert_false(cairn_kernel_address(k, (struct cairn_vaddr){TEXT + sizeof(code)}, &at));
	assert_false(cairn_kernel_address(k, (struct cairn_vaddr){INIT}, &at));
	struct cairn_vaddr link;
	assert_true(cairn_kernel_link_address(k, TEXT + 17 + SLIDE, &link));
	assert_int_equal(link.v, TEXT + 17);
	assert_false(cairn_kernel_link_address(k, TEXT + sizeof(code) + SLIDE, &link));
	assert_false(cairn_kernel_link_address(k, INIT + SLIDE, &link));
	struct cairn_vaddr data = {TEXT + 0x2000004};
	assert_true(cairn_kernel_data_address(k, data, &at));
	assert_int_equal(at, data.v + SLIDE);
	assert_false(cairn_kernel_data_address(k, (struct cairn_vaddr){TEXT}, &at));
	assert_string_equal(cairn_kernel_release(k), "6.1.0-test");
	cairn_binary_close(bin);
	cairn_kernel_close(k);
	free(bytes);
}

static void another_build_and_another_order_are_refused(void **state)
{
	size_t size;
	struct cairn_binary *bin;
	struct cairn_kernel *k = open_kernel();
	uint8_t *bytes = kernel_file("anotherb", &size);
	assert_int_equal(binary_open_mem(bytes, size, "vmlinux", &bin, NULL), 0);
	assert_int_equal(cairn_kernel_bind(k, bin, NULL, true, NULL), -ESTALE);
	cairn_binary_close(bin);
	free(bytes);
	bytes = kernel_file("buildid", &size);
	assert_int_equal(binary_open_mem(bytes, size, "vmlinux", &bin, NULL), 0);
	char text[256];
	snprintf(text, sizeof(text), "%lx T _text\n%lx t second\n%lx T first\n%lx t begin\n",
		 TEXT + SLIDE, TEXT + SLIDE, TEXT + 8 + SLIDE, TEXT + 40 + SLIDE);
	put_text("proc/kallsyms", text);
	assert_int_equal(cairn_kernel_bind(k, bin, NULL, true, NULL), -ESTALE);
	put_kallsyms(SLIDE);
	cairn_binary_close(bin);
	cairn_kernel_close(k);
	free(bytes);
}

static void hidden_addresses_are_refused(void **state)
{
	struct cairn_kernel_opts o = opts();
	struct cairn_kernel *k;
	put_text("proc/kallsyms", "0000000000000000 T _text\n");
	assert_int_equal(cairn_kernel_open(&o, &k, NULL), -EPERM);
	put_text("proc/kallsyms", "ffffffff81000000 T other\n");
	assert_int_equal(cairn_kernel_open(&o, &k, NULL), -EBADMSG);
	put_kallsyms(SLIDE);
	o.module = "../kernel";
	assert_int_equal(cairn_kernel_open(&o, &k, NULL), -EINVAL);
	o.module = "gone";
	assert_int_equal(cairn_kernel_open(&o, &k, NULL), -ENOENT);
}

static void an_image_has_symbols_and_sections_of_code(void **state)
{
	struct cairn_kernel *k = open_kernel();
	const struct cairn_binary *image;
	const char *name;
	struct cairn_vaddr start;
	uint64_t at, off;
	assert_int_equal(cairn_kernel_image(k, &image, NULL), 0);
	assert_int_equal(cairn_kernel_bind(k, image, NULL, true, NULL), 0);
	assert_true(cairn_binary_symbol_of(image, (struct cairn_vaddr){TEXT + 20 + SLIDE}, &name,
					   &start));
	assert_string_equal(name, "second");
	assert_true(cairn_binary_section_of(image, start, &name, &off));
	assert_string_equal(name, ".text");
	assert_int_equal(off, 16);
	assert_true(cairn_kernel_address(k, start, &at));
	assert_int_equal(at, start.v);
	assert_false(cairn_kernel_address(k, (struct cairn_vaddr){INIT + SLIDE}, &at));
	assert_int_equal(cairn_hazard_at(image, start, true), CAIRN_HAZARD_NOT_CHECKED);
	cairn_kernel_close(k);
}

static int count(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard)
{
	*(unsigned int *)ctx += hazard == CAIRN_HAZARD_JUMP_LABEL && at.v == TEXT;
	return 0;
}

/* Everything once; 0 or the first error. */
static int ask_all(struct cairn_binary *bin)
{
	struct cairn_kernel_opts o = opts();
	struct cairn_kernel *k = NULL;
	const struct cairn_binary *image;
	unsigned int n = 0;
	int rc = cairn_kernel_open(&o, &k, NULL);
	if (rc >= 0)
		rc = cairn_kernel_bind(k, bin, NULL, true, NULL);
	if (rc >= 0)
		rc = cairn_kernel_image(k, &image, NULL);
	if (rc >= 0)
		rc = cairn_hazards(bin, count, &n, NULL);
	if (rc >= 0)
		assert_int_equal(n, 1);
	cairn_kernel_close(k);
	return rc;
}

static void missing_memory_is_an_error(void **state)
{
	size_t size;
	uint8_t *bytes = kernel_file("buildid", &size);
	unsigned int n = 1;
	for (bool has_failed = true; has_failed; n++) {
		struct cairn_binary *bin;
		assert_int_equal(binary_open_mem(bytes, size, "vmlinux", &bin, NULL), 0);
		alloc_fail_at(n);
		int rc = ask_all(bin);
		has_failed = alloc_fail_end();
		if (has_failed)
			assert_int_equal(rc, -ENOMEM);
		else
			assert_int_equal(rc, 0);
		cairn_binary_close(bin);
	}
	assert_true(n > 20);
	free(bytes);
}

static struct cairn_kernel *opened(const char *module)
{
	const struct cairn_kernel_opts opts = {
		.size = sizeof(opts), .module = module, .root = root};
	struct cairn_kernel *k;
	struct cairn_err err = {0};

	if (cairn_kernel_open(&opts, &k, &err) < 0)
		fail_msg("%s", err.msg);
	return k;
}

static void what_the_kernel_allows_is_read(void **state)
{
	struct cairn_kernel *k = opened(NULL);

	assert_int_equal(cairn_kernel_kprobe_type(k), -EOPNOTSUPP);
	put_text("sys/bus/event_source/devices/kprobe/type", "nonsense\n");
	assert_int_equal(cairn_kernel_kprobe_type(k), -EOPNOTSUPP);
	put_text("sys/bus/event_source/devices/kprobe/type", "8\n");
	assert_int_equal(cairn_kernel_kprobe_type(k), 8);
	assert_false(cairn_kernel_is_locked(k));
	put_text("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_false(cairn_kernel_is_locked(k));
	put_text("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_true(cairn_kernel_is_locked(k));
	assert_true(cairn_kernel_is_there(k));
	cairn_kernel_close(k);
}

static void put_module(void)
{
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[8];
	} note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", "module1"};

	put("sys/module/sample/notes/.note.gnu.build-id", &note, sizeof(note));
	put_text("sys/module/sample/sections/.text", "0xffffffffc0000000\n");
}

static void move(const char *from, const char *to)
{
	char a[256], b[256];

	snprintf(a, sizeof(a), "%s/sys/module/%s", root, from);
	snprintf(b, sizeof(b), "%s/sys/module/%s", root, to);
	assert_int_equal(rename(a, b), 0);
}

static void a_module_that_was_loaded_again_is_another_one(void **state)
{
	put_module();
	struct cairn_kernel *k = opened("sample");

	assert_true(cairn_kernel_is_there(k));
	move("sample", "unloaded");
	assert_false(cairn_kernel_is_there(k));
	put_module();
	assert_false(cairn_kernel_is_there(k));
	cairn_kernel_close(k);
	k = opened("sample");
	assert_true(cairn_kernel_is_there(k));
	cairn_kernel_close(k);
}

static void code_is_found_by_its_symbol(void **state)
{
	struct kernel_code found;
	struct cairn_kernel *k = open_kernel();

	assert_int_equal(kernel_code_find(k, "first", &found, NULL), 1);
	assert_int_equal(found.at, TEXT + SLIDE);
	assert_int_equal(found.end, TEXT + 16 + SLIDE);
	assert_int_equal(kernel_code_find(k, "fir", &found, NULL), 0);
	assert_int_equal(kernel_code_find(k, "third", &found, NULL), 0);
	cairn_kernel_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_allows_is_read),
		cmocka_unit_test(code_is_found_by_its_symbol),
		cmocka_unit_test(a_module_that_was_loaded_again_is_another_one),
		cmocka_unit_test(code_is_where_it_was_loaded_and_freed_code_is_nowhere),
		cmocka_unit_test(another_build_and_another_order_are_refused),
		cmocka_unit_test(hidden_addresses_are_refused),
		cmocka_unit_test(an_image_has_symbols_and_sections_of_code),
		cmocka_unit_test(missing_memory_is_an_error),
	};
	set_up_root();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_root();
	return failed;
}
