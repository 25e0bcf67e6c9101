/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of C++ that differ in how their template arguments are spelled are one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sites/spelling.h"

static const char *spelled(const char *name)
{
	static char buf[4][512];
	static unsigned int next;
	char *to = buf[next++ % 4];

	assert_true(spelling_of(name, to, 512));
	return to;
}

static void assert_one(const char *a, const char *b)
{
	assert_string_equal(spelled(a), spelled(b));
}

static void assert_two(const char *a, const char *b)
{
	assert_string_not_equal(spelled(a), spelled(b));
}

static void integer_types_are_one_in_any_order_of_their_words(void **state)
{
	assert_one("box<long unsigned int>::at", "box<unsigned long>::at");
	assert_one("f<long long int, short int, long int>", "f<long long,short,long>");
	assert_one("f<short unsigned int, unsigned int>", "f<unsigned short, unsigned>");
	assert_one("f<signed char, int>", "f<signed char,signed int>");
	assert_string_equal(spelled("f<long unsigned int, long double>"),
			    "f<unsigned long,long double>");
	assert_two("f<signed char>", "f<char>");
	assert_two("f<long>", "f<long long>");
	assert_two("f<long>", "f<unsigned long>");
	assert_two("f<int>", "f<integer>");
	assert_two("f<long int>", "f<long double>");
}

static void qualifiers_stand_on_either_side_of_what_they_qualify(void **state)
{
	assert_one("f<const char*>", "f<char const *>");
	assert_one("f<const volatile int&>", "f<int volatile const&>");
	assert_one("f<std::vector<const int*> const&>", "f<const std::vector<int const *>&>");
	assert_two("f<char* const>", "f<const char*>");
	assert_one("f<const char* const*>", "f<char const* const *>");
	assert_two("f<char const* const*>", "f<char const**>");
}

static void blanks_suffixes_of_numbers_and_names_of_lambdas_do_not_count(void **state)
{
	assert_one("std::array<std::vector<int> , 3ul>::at", "std::array<std::vector<int>,3>::at");
	assert_one("g<main()::<lambda(const long int&)> >", "g<main()::{lambda(long const&)#1}>");
	assert_one("h<void (*)(int, const char*)>", "h<void(*)(int,char const*)>");
	assert_two("std::array<int, 3>", "std::array<int, 30>");
}

static void what_is_outside_of_arguments_stays(void **state)
{
	const char *const names[] = {"unsigned long int",
				     "ns::operator<",
				     "ns::operator<<",
				     "ns::operator<=>",
				     "box::operator long int",
				     "",
				     "a >> b"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_string_equal(spelled(names[i]), names[i]);
	assert_one("ns::operator<< <long int>", "ns::operator<< <long>");
	assert_one("a<long int>::operator< <const int>", "a<long>::operator< <int const>");
}

static void damaged_and_endless_names_end(void **state)
{
	char name[64], buf[64], *all = malloc(100001);
	const char letters[] = "<>(){},# *&:a1constlong ";
	uint32_t x = 1;

	assert_false(
		spelling_of("f<an argument that has no room in so few bytes, as many as there are>",
			    buf, sizeof(buf)));
	memset(all, '<', 100000);
	all[100000] = '\0';
	char *out = malloc(200000);
	assert_false(spelling_of(all, out, 200000));
	for (int i = 0; i < 20000; i++) {
		size_t n = x % 60;
		for (size_t k = 0; k < n; k++) {
			x = x * 1664525 + 1013904223;
			name[k] = letters[(x >> 8) % (sizeof(letters) - 1)];
		}
		name[n] = '\0';
		spelling_of(name, out, 1 + (x >> 4) % 200);
	}
	free(out);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integer_types_are_one_in_any_order_of_their_words),
		cmocka_unit_test(qualifiers_stand_on_either_side_of_what_they_qualify),
		cmocka_unit_test(blanks_suffixes_of_numbers_and_names_of_lambdas_do_not_count),
		cmocka_unit_test(what_is_outside_of_arguments_stays),
		cmocka_unit_test(damaged_and_endless_names_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
