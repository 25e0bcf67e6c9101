/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the check: check.c goes over the records, check_kind.c has the rules of each,
 * check_graph.c those of many.
 */
#ifndef BTF_CHECK_H
#define BTF_CHECK_H

#include "btf/btf.h"

struct btf_check {
	const struct cairn_btf *btf;
	bool kernel;      /* the rules of BPF_BTF_LOAD too */
	uint32_t version; /* of Linux; 0: of all versions */
	void (*report)(void *ctx, uint32_t id, uint64_t off, const char *text);
	void *ctx;
	uint32_t n_broken;
	uint64_t *bytes; /* size of each type, by id; only while check_graph.c runs */
	uint32_t pointer_bytes;
};

/* Bytes of a kernel's names, without NUL (KSYM_NAME_LEN). */
#define BTF_KERNEL_NAME_MAX 511

/*
 * Whether the kernel takes it as the name of a type, a member, a function: letters, digits, '_' and
 * '.'.
 */
bool btf_is_kernel_name(const char *name);

/*
 * Since when kernels accept records that older ones refuse, or refuse records that older ones did
 * not check: the commit that did it. Its first release was read in the sources of 6.1 to 6.6, 6.8 to
 * 6.14, 6.17, 7.0 to 7.3 (of 6.3, 6.4, 6.6, 6.11, 6.13 and 7.1 a stable one), of which 7.3 checks
 * what 7.2 does. 6.15 was not to be had: it follows from the dates of the commits, and from 6.14
 * and 6.17.
 *
 *	FIELDS         locks and lists: 6.1 has none at loading, 6.2 has
 *	TREES          9c395c1b99bd, February 2023. Ubuntu's 6.2 has them, too: taken over
 *	COUNTS         d54730b50bae, April 2023; the same release wants one where a struct has nodes
 *	               of both kinds
 *	OWNED_NODES    c3c510ce431c, July 2023
 *	SECTION_NAMES  bd70a8fb7ca4, March 2024: any printable character. 6.8 does not take it,
 *	               6.9 and 6.10 take even more: they do not look at the first one
 *	ELEVEN_FIELDS  d56b63cf0c0f, April 2024: bpf_wq made room for one more
 *	NESTED_FIELDS  994796c0256c and 64e8ee814819, May 2024: arrays and structs in structs
 *	KPTRS          7a851ecb1806, August 2024
 *	UPTRS          the tag "uptr", October 2024: 6.12 does not know it, 6.13 does
 *	RES_LOCKS      0de2046137f9, March 2025
 *	ATTRIBUTES     53ee0d66d7a6, January 2025
 *	LAYOUT         626e88c070ee, March 2026
 *	WIDE_VLEN      f7a6b9eaff3e, April 2026
 *	TAG_ORDER      7.1 is strict, 7.2 is not
 *	UNIQUE_FIELDS  f08619f06046 and 61e655391cb1, July 2026. Stable releases took them over:
 *	               6.12.117 counts reference counts in a struct already
 */
#define BTF_LINUX_FIELDS        CAIRN_BTF_LINUX(6, 2)
#define BTF_LINUX_TREES         CAIRN_BTF_LINUX(6, 3)
#define BTF_LINUX_COUNTS        CAIRN_BTF_LINUX(6, 4)
#define BTF_LINUX_OWNED_NODES   CAIRN_BTF_LINUX(6, 6)
#define BTF_LINUX_SECTION_NAMES CAIRN_BTF_LINUX(6, 9)
#define BTF_LINUX_ELEVEN_FIELDS CAIRN_BTF_LINUX(6, 10)
#define BTF_LINUX_NESTED_FIELDS CAIRN_BTF_LINUX(6, 11)
#define BTF_LINUX_KPTRS         CAIRN_BTF_LINUX(6, 12)
#define BTF_LINUX_UPTRS         CAIRN_BTF_LINUX(6, 13)
#define BTF_LINUX_ATTRIBUTES    CAIRN_BTF_LINUX(6, 15)
#define BTF_LINUX_RES_LOCKS     CAIRN_BTF_LINUX(6, 15)
#define BTF_LINUX_LAYOUT        CAIRN_BTF_LINUX(7, 1)
#define BTF_LINUX_WIDE_VLEN     CAIRN_BTF_LINUX(7, 2)
#define BTF_LINUX_TAG_ORDER     CAIRN_BTF_LINUX(7, 2)
#define BTF_LINUX_UNIQUE_FIELDS CAIRN_BTF_LINUX(7, 2)
#define BTF_LINUX_OWNER_LEVELS  CAIRN_BTF_LINUX(7, 2)

/* Is it one of a kernel's rules, and of one before @since? */
static inline bool btf_kernel_before(const struct btf_check *c, uint32_t since)
{
	return c->kernel && c->version < since;
}

/* Is it a rule that only kernels from some version on have, and of an older one? */
static inline bool btf_kernel_lacks(const struct btf_check *c, uint32_t since)
{
	return !c->kernel || (c->version && c->version < since);
}

/* A broken rule of the record @id. */
__attribute__((format(printf, 3, 4))) void btf_broken(struct btf_check *c, uint32_t id,
						      const char *fmt, ...);

/*
 * True if @id (0: void) is of one of the kinds of @mask, a bit per kind. If not, a rule of @t is
 * broken; @what is the name of the reference.
 */
bool btf_check_ref(struct btf_check *c, const struct cairn_btf_type *t, const char *what,
		   uint32_t id, uint64_t mask);

/* All rules for one record and the kinds of the records that it refers to. */
void btf_check_record(struct btf_check *c, const struct cairn_btf_type *t);
void btf_check_loc_record(struct btf_check *c, const struct cairn_btf_type *t);

/* Structs of which the kernel keeps records; after the records were found sound. 0 or -ENOMEM. */
int btf_check_fields(struct btf_check *c);

/* No loops, and members inside their structs. 0 or -ENOMEM. */
int btf_check_graph(struct btf_check *c);

/* The size of a type that has none: void, a function, a forward declaration. */
#define BTF_NO_SIZE UINT64_MAX

#define KIND(k) (1ull << CAIRN_BTF_##k)

/*
 * The kinds that a value can have; the kinds that a pointer, a qualifier or a typedef can refer to.
 */
#define KINDS_VALUE                                                                                \
	(KIND(INT) | KIND(PTR) | KIND(ARRAY) | KIND(STRUCT) | KIND(UNION) | KIND(ENUM) |           \
	 KIND(TYPEDEF) | KIND(VOLATILE) | KIND(CONST) | KIND(RESTRICT) | KIND(FLOAT) |             \
	 KIND(TYPE_TAG) | KIND(ENUM64))
#define KINDS_TYPE (KINDS_VALUE | KIND(VOID) | KIND(FWD) | KIND(FUNC_PROTO))

#endif
