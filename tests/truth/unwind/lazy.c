/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lazy binding, again and again: a library whose calls are bound when they are made first is
 * loaded, called and unloaded
 *
 *	lazy LIBRARY		the same source, compiled with -DLIBRARY -shared -Wl,-z,lazy
 *
 * Vector and floating-point arguments go through the dynamic linker's trampoline too, which keeps
 * them.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#ifdef LIBRARY

static volatile double sink;

double call_all(const char *text, double x, int n)
{
	char room[256], *end;
	sink += pow(x, 1.5) + sin(x) + fmod(x, 3) + ldexp(x, n % 9) + atan2(x, 2.0);
	snprintf(room, sizeof(room), "%s %d %f", text, n, x);
	sink += strtod(room, &end) + (double)strtol(text, &end, 10) + (double)strspn(room, "abc");
	sink += strcspn(room, "xyz") + strlen(strstr(room, " ")) + (double)atoi(text) + abs(n) +
		toupper(n & 127);
	sink += (double)(strchr(room, ' ') - room) + (double)(strrchr(room, ' ') - room) +
		strncmp(room, text, 3) + strcasecmp(room, text);
	void *p = malloc(64);
	p = realloc(p, 128);
	free(p);
	p = calloc(3, 9);
	free(p);
	sink += (double)getppid() + (double)time(NULL) + (double)clock() +
		(getenv("PATH") != NULL) + (double)wcslen(L"abc");
	return sink;
}

#else

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int n = 0; argc > 1; n++) {
		void *library = dlopen(argv[1], RTLD_LAZY);
		double (*call)(const char *, double, int) =
			library ? (double (*)(const char *, double, int))dlsym(library, "call_all")
				: NULL;
		if (!call)
			return 3;
		call("12 abc", n * 0.5, n);
		call("13 abc", n * 0.5, n);
		dlclose(library);
	}
	return 2;
}

#endif
