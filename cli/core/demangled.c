/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names are untrusted bytes. libiberty bounds its recursion, but not its output: a name that
 * refers to its own parts doubles with each. It delivers its text in pieces and holds nothing on
 * the heap meanwhile, so a jump can leave it when there is too much.
 */
#include "demangled.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else /* Fedora */
#include <demangle.h>
#endif

/* Names of a stack, or of a batch of addresses, come again and again. */
#define SLOTS 1024

struct slot {
	char *linker_name, *shown;
};

struct piecewise {
	jmp_buf too_long;
	size_t n;
	char text[DEMANGLED_MAX];
};

static bool is_off;
static struct slot slots[SLOTS];
static struct piecewise out;

void demangle_never(void)
{
	is_off = true;
}

static void take_piece(const char *piece, size_t n, void *ctx)
{
	struct piecewise *to = ctx;

	if (n >= sizeof(to->text) - to->n)
		longjmp(to->too_long, 1);
	memcpy(to->text + to->n, piece, n);
	to->n += n;
}

/* Rust first: the names from its older compilers are also C++ names, with a hash at the end. */
static bool demangle(const char *name)
{
	if (setjmp(out.too_long))
		return false;
	out.n = 0;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, take_piece, &out))
		return true;
	out.n = 0;
	return cplus_demangle_v3_callback(name, DMGL_ANSI, take_piece, &out);
}

/*
 * ".isra.0", ".cold": without parameters libiberty leaves it out. Identifiers have no dots, but in
 * Rust's older names, which end with E.
 */
static const char *suffix_of(const char *name)
{
	const char *dot = strchr(name, '.'), *end = strstr(name, "E.");

	return dot && end ? end + 1 : dot;
}

static const char *make(const char *name)
{
	const char *suffix = suffix_of(name);
	char clone[64];

	if (!demangle(name))
		return NULL;
	if (suffix &&
	    (size_t)snprintf(clone, sizeof(clone), DEMANGLED_CLONE "%s]", suffix) < sizeof(clone) &&
	    strlen(clone) < sizeof(out.text) - out.n) {
		memcpy(out.text + out.n, clone, strlen(clone));
		out.n += strlen(clone);
	}
	out.text[out.n] = '\0';
	return out.text;
}

static struct slot *slot_of(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	return &slots[(hash ^ hash >> 16) % SLOTS];
}

static void keep(struct slot *slot, const char *name, const char *shown)
{
	free(slot->linker_name);
	free(slot->shown);
	slot->linker_name = strdup(name);
	slot->shown = strdup(shown);
}

const char *demangled(const char *linker_name)
{
	bool may_be = linker_name && !is_off && linker_name[0] == '_' &&
		      (linker_name[1] == 'Z' || linker_name[1] == 'R');

	if (!may_be)
		return linker_name;
	struct slot *slot = slot_of(linker_name);

	if (!slot->linker_name || !slot->shown || strcmp(slot->linker_name, linker_name)) {
		const char *shown = make(linker_name);

		keep(slot, linker_name, shown ? shown : linker_name);
	}
	return slot->shown ? slot->shown : linker_name;
}

/*
 * True if "a::b<int>::f<char>" is a name of "f<char>" or "f": the same identifier, at its begin or
 * after a "::".
 */
static bool is_name_of(const char *qualified, const char *source_name)
{
	/* operator<, operator<<: the text after it is no template argument. */
	bool is_less = !strncmp(source_name, "operator<", 9);
	size_t n = is_less ? strlen(source_name) : strcspn(source_name, "<");

	for (const char *at = qualified; at; at = strstr(at, "::")) {
		at += at == qualified ? 0 : 2;
		if (!strncmp(at, source_name, n) && (!at[n] || strchr("<( ", at[n])))
			return n;
	}
	return false;
}

const char *demangled_or(const char *linker_name, const char *source_name)
{
	const char *shown = demangled(linker_name);

	/* A symbol has no other name. */
	if (!source_name || !strcmp(source_name, linker_name ? linker_name : ""))
		return shown;
	return shown == linker_name || !is_name_of(shown, source_name) ? source_name : shown;
}

size_t shown_name(const char *linker_name, const char *source_name, char *buf, size_t size)
{
	const char *shown = demangled_or(linker_name, source_name);
	const char *clone = source_name ? strstr(shown, DEMANGLED_CLONE) : NULL;
	int n = snprintf(buf, size, "%.*s", (int)(clone ? (size_t)(clone - shown) : strlen(shown)),
			 shown);

	return n < 0 ? 0 : (size_t)n;
}
