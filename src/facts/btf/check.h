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
 * not check.
 */
#define BTF_LINUX_FIELDS        CAIRN_BTF_LINUX(6, 2)
#define BTF_LINUX_TREES         CAIRN_BTF_LINUX(6, 3)
#define BTF_LINUX_COUNTS        CAIRN_BTF_LINUX(6, 4)
#define BTF_LINUX_OWNED_NODES   CAIRN_BTF_LINUX(6, 6)
#define BTF_LINUX_NESTED_FIELDS CAIRN_BTF_LINUX(6, 11)
#define BTF_LINUX_SECTION_NAMES CAIRN_BTF_LINUX(6, 12)
#define BTF_LINUX_KPTRS         CAIRN_BTF_LINUX(6, 12)
#define BTF_LINUX_ATTRIBUTES    CAIRN_BTF_LINUX(6, 15)
#define BTF_LINUX_RES_LOCKS     CAIRN_BTF_LINUX(6, 15)
#define BTF_LINUX_UNIQUE_FIELDS CAIRN_BTF_LINUX(6, 19)
#define BTF_LINUX_LAYOUT        CAIRN_BTF_LINUX(7, 1)
#define BTF_LINUX_WIDE_VLEN     CAIRN_BTF_LINUX(7, 2)
#define BTF_LINUX_TAG_ORDER     CAIRN_BTF_LINUX(7, 2)

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
