/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which code a sidecar describes
 *
 * A build-id is only the file's own claim. Another program, a patched one, or a user who wants root
 * to probe the wrong bytes can claim the same. So a sidecar also has the loader's view of the file
 * (address, size and permissions of each segment), and a hash of each page of executable segments.
 * The loader's view is the same in a file, in its stripped version and in its debug file; it is
 * compared when a sidecar is opened for a binary. A page is compared when a query reads an address
 * in it.
 *
 *	LOAD  0x0      0x5b8    r      as it is
 *	LOAD  0x1000   0x1a5    r-x    one page: 6b2f31...
 *	LOAD  0x2000   0x16c    r      as it is
 *
 * The hash is the first half of a SHA-256, over the address and the bytes, so that an attacker
 * cannot make other bytes that fit. A debug file has no code: its sidecar has no hashes, and is
 * called unbound.
 */
#ifndef SIDECAR_BINDING_H
#define SIDECAR_BINDING_H

#include <cairn/sidecar.h>

#include "elf/elf.h"
#include "sidecar/bytes.h"
#include "sidecar/format.h"

struct binding {
	const struct sidecar_load *loads;
	uint32_t n_loads;
	const uint8_t *hashes;
	uint32_t n_pages;
	bool is_bound;
	uint32_t names; /* elf_names_print() of the file that it was made of */
	/*
	 * The file whose pages are compared; NULL: there is no such file, or the sidecar is
	 * unbound.
	 */
	struct elf *code;
	uint8_t *state; /* of each page; only ever set, by any thread */
	uint64_t other; /* 1 + address of the first page that differs; 0: none was met */
};

/* Whether a file has the bytes of its code: a debug file has not. */
bool binding_has_code(const struct elf *e);

/* The section of a binary's sidecar. */
void encode_binding(const struct elf *e, struct bytes *ret);

/*
 * binding_read - read the section, whose checksum was checked
 *
 * @name  for errors
 * Returns 0; -EBADMSG.
 */
int binding_read(const struct elf_section *s, struct binding *ret, struct cairn_err *err);
void binding_fini(struct binding *b);

/*
 * binding_hold - compare the parts that a loader maps, and have pages compared from now on
 *
 * @e  stays open as long as @b
 * Returns 0; -ESTALE (err: the difference); -ENOMEM. Cost: no page is read.
 */
int binding_hold(struct binding *b, struct elf *e, const char *name, struct cairn_err *err);

/*
 * binding_covers - whether the code at an address is the one that is described
 *
 * True also where nothing can be compared. Cost: a page is hashed once, 4 microseconds. No
 * allocation. Threads: any. Signals: safe.
 */
bool binding_covers(struct binding *b, struct cairn_vaddr at);

/* 0; -ESTALE when a page differed that binding_covers() met (err: where). @name is shown. */
int binding_verdict(const struct binding *b, const char *name, struct cairn_err *err);

/*
 * binding_compare_all - compare all pages; as binding_verdict(). -ENODATA: there is nothing to
 * compare (err: why).
 */
int binding_compare_all(struct binding *b, const char *name, struct cairn_err *err);

#endif
