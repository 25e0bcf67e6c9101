/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables, links and sections of BPF programs, when there is no memory, and on kernels that do not have
 * what they need. These want the kernel's BPF, and root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "alloc_fail.h"
#include "handlers/handlers.h"

enum { ENTRIES = 64, LINKS = 5 };

static bool has_no_cookies;

int __real_libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper,
				   const void *opts);
int __wrap_libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper,
				   const void *opts);
int __wrap_libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper,
				   const void *opts)
{
	if (has_no_cookies && helper == BPF_FUNC_get_attach_cookie)
		return 0;
	return __real_libbpf_probe_bpf_helper(type, helper, opts);
}

static unsigned int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct loc_table make_table(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bpf_loc_table_2", 4,
				sizeof(struct cairn_loc_entry), ENTRIES, NULL);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	if (fd < 0)
		skip(); /* not permitted */
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	return (struct loc_table){.fd = fd, .id = info.id, .max_entries = ENTRIES};
}

static void rows_are_put_or_there_is_no_memory(void **state)
{
	(void)state;
	const struct loc_table table = make_table();
	struct cairn_loc_entry rows[ENTRIES - 1] = {0};
	uint32_t first = 0;
	bool failed = true;

	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int e = table_put(&table, rows, 3, &first, NULL);
		failed = alloc_fail_end();
		assert_int_equal(e, failed ? -ENOMEM : 0);
	}
	/* What failed has no room. */
	assert_int_equal(first, 1);
	table_drop(&table, first);
	assert_int_equal(table_put(&table, rows, ENTRIES - 1, &first, NULL), 0);
	assert_int_equal(table_put(&table, rows, 1, &first, NULL), -ENOSPC);
	table_drop(&table, 1);
	close(table.fd);
}

static void a_link_holds_all_or_there_is_no_memory(void **state)
{
	(void)state;
	struct loc_table table = make_table(); /* it skips */
	struct trace_links l = {.n = LINKS};
	unsigned int before;
	bool failed = true;

	close(table.fd);
	for (int i = 0; i < LINKS; i++)
		assert_true(VEC_ADD(&l.fds, eventfd(0, EFD_CLOEXEC)));
	before = count_descriptors();
	for (unsigned int n = 1; failed; n++) {
		struct bpf_link *link = NULL;
		uint32_t id;
		alloc_fail_at(n);
		int e = link_bundle(&l, &link, &id, NULL);
		failed = alloc_fail_end();
		assert_true(failed ? e < 0 && !link : !e && link);
		bpf_link__destroy(link);
		assert_int_equal(count_descriptors(), before);
	}
	while (l.fds.n)
		close(l.fds.p[--l.fds.n]);
	links_fini(&l);
}

static void sections_are_registered_or_there_is_no_memory(void **state)
{
	(void)state;
	bool failed = true;

	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int e = cairn_loc_register(NULL, NULL);
		failed = alloc_fail_end();
		assert_int_equal(e, failed ? -ENOMEM : 0);
	}
	cairn_loc_unregister();
	/* All of them were taken back. */
	assert_int_equal(cairn_loc_register(NULL, NULL), 0);
	cairn_loc_unregister();
}

/* ---- kernels ---- */

static char said[400];

static int note(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !strstr(said, "cairn: "))
		vsnprintf(said, sizeof(said), format, args);
	return 0;
}

/* A program of SEC("uloc"), by hand. */
static void a_kernel_without_cookies_is_told(void **state)
{
	(void)state;
	char text[200];

	has_no_cookies = true;
	assert_int_equal(handlers_check_kernel(text, sizeof(text)), -EOPNOTSUPP);
	assert_non_null(strstr(text, "Linux 5.15"));
	has_no_cookies = false;
	assert_int_equal(handlers_check_kernel(text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_put_or_there_is_no_memory),
		cmocka_unit_test(a_link_holds_all_or_there_is_no_memory),
		cmocka_unit_test(sections_are_registered_or_there_is_no_memory),
		cmocka_unit_test(a_kernel_without_cookies_is_told),
	};

	libbpf_set_print(note);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
