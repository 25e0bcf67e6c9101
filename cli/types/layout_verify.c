/* SPDX-License-Identifier: BSD-2-Clause */
/* Compilers as witnesses: text that compiles only when its claims are true. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler.h"
#include "layout.h"
#include "say.h"

/* 1: it agrees; 0: it is not there; -1: it does not, which was reported. */
static int ask(const char *compiler, const char *option, int text)
{
	static const char *const words[] = {"-x", "c", "-std=gnu11", "-w", "-fsyntax-only"};
	struct compiler_words w = {0};

	compiler_command(&w, compiler);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		compiler_word(&w, "", words[i]);
	if (option)
		compiler_word(&w, "", option);
	compiler_word(&w, "", "-");
	struct compiler_answer a = compiler_run(&w, text, true);
	compiler_words_free(&w);
	if (a.status && a.status != 127) {
		fail(STATUS_NO, "%s does not agree with the layout:", compiler);
		say_lines(stderr, a.output ? a.output : "");
	}
	free(a.output);
	return !a.status ? 1 : a.status == 127 ? 0 : -1;
}

int layout_verify(const char *text, const struct cairn_abi *abi, char *ret, size_t size)
{
	const char *names[] = {compiler_of_user("gcc"), "clang"};
	bool own = !abi || !strcmp(abi->name, "x86-64"), i386 = abi && !strcmp(abi->name, "i386");
	int fd = compiler_input(text, strlen(text)), agreed = 0;
	char target[64];

	snprintf(target, sizeof(target), "--target=%s", abi ? abi->triple : "");
	if (fd < 0)
		return fail(STATUS_NOT_HERE, "cannot pass text to a compiler: %s", strerror(-fd));
	ret[0] = 0;
	for (int i = own || i386 ? 0 : 1; i < 2 && agreed >= 0; i++) {
		int one = ask(names[i], i ? own ? NULL : target : i386 ? "-m32" : NULL, fd);
		size_t n = strlen(ret);

		if (one > 0 && !(i && !strcmp(names[0], names[1])))
			snprintf(ret + n, size - n, "%s%s%s%s", n ? ", " : "", names[i],
				 own ? "" : " for ", own ? "" : abi->name);
		agreed = one < 0 ? -1 : agreed + one;
	}
	close(fd);
	if (agreed < 0)
		return STATUS_NO;
	return agreed ? STATUS_YES
		      : fail(STATUS_NOT_HERE,
			     "no compiler for %s is installed to verify with: install %s",
			     abi ? abi->name : "x86-64", own || i386 ? "gcc or clang" : "clang");
}
