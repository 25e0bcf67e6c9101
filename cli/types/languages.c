/* SPDX-License-Identifier: BSD-2-Clause */
/* Languages as pahole's --lang names them: DWARF's names in lower case. */
#include <stdlib.h>
#include <string.h>

#include "languages.h"
#include "say.h"

static const struct {
	const char *name;
	uint16_t code;
} languages[] = {
	{"ada83", 0x03},
	{"ada95", 0x0d},
	{"ada2005", 0x2e},
	{"ada2012", 0x2f},
	{"asm", 0x8001},
	{"bliss", 0x25},
	{"c", 0x02},
	{"c89", 0x01},
	{"c99", 0x0c},
	{"c11", 0x1d},
	{"c17", 0x2c},
	{"c++", 0x04},
	{"c++03", 0x19},
	{"c++11", 0x1a},
	{"c++14", 0x21},
	{"c++17", 0x2a},
	{"c++20", 0x2b},
	{"cobol74", 0x05},
	{"cobol85", 0x06},
	{"crystal", 0x29},
	{"d", 0x13},
	{"dylan", 0x20},
	{"fortran03", 0x22},
	{"fortran08", 0x23},
	{"fortran18", 0x2d},
	{"fortran77", 0x07},
	{"fortran90", 0x08},
	{"fortran95", 0x0e},
	{"go", 0x16},
	{"haskell", 0x18},
	{"java", 0x0b},
	{"julia", 0x1f},
	{"kotlin", 0x26},
	{"modula2", 0x0a},
	{"modula3", 0x17},
	{"objc", 0x10},
	{"objc++", 0x11},
	{"ocaml", 0x1b},
	{"opencl", 0x15},
	{"pascal83", 0x09},
	{"pli", 0x0f},
	{"python", 0x14},
	{"renderscript", 0x24},
	{"rust", 0x1c},
	{"swift", 0x1e},
	{"upc", 0x12},
	{"zig", 0x27},
};

static bool find(const char *name, size_t len, uint16_t *ret)
{
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
		if (strlen(languages[i].name) != len || memcmp(languages[i].name, name, len))
			continue;
		*ret = languages[i].code;
		return true;
	}
	return false;
}

static int fail_unknown(const char *name, size_t len)
{
	fail(STATUS_USAGE, "no language is named '%.*s'; these are:", (int)len, name);
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		say(stderr, "%s%s", i ? " " : "", languages[i].name);
	say(stderr, "\n");
	return STATUS_USAGE;
}

int languages_parse(const char *list, struct languages *ret)
{
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");

		if (ret->n == LANGUAGES_MAX || !find(at, len, &ret->codes[ret->n]))
			return fail_unknown(at, len);
		ret->n++;
		at += len + (at[len] == ',');
	}
	return ret->n ? STATUS_YES : fail_unknown("", 0);
}
