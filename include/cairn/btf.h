/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF: read, build, check, transform
 *
 * BTF describes types and functions. With the LOC kinds it also describes the sites of inlined
 * copies and the locations of their arguments. A blob is a header, records of 32-bit words, perhaps
 * a layout section that gives the size of each kind's record, and strings. A *split* blob continues
 * the ids and the string offsets of its base; chains may be of any depth.
 *
 *	struct cairn_btf *btf;
 *	struct cairn_btf_type t;
 *	if (cairn_btf_open("vmlinux", NULL, &btf, &err) < 0)
 *		return fail(err.msg);
 *	for (uint32_t id = cairn_btf_start_id(btf); id < cairn_btf_end_id(btf); id++)
 *		if (cairn_btf_type(btf, id, &t) && t.kind == CAIRN_BTF_STRUCT)
 *			puts(t.name);
 *	cairn_btf_close(btf);
 *
 * Words are seen in this machine's byte order, whatever the input's. Records of unknown kinds are
 * carried through if a layout section anywhere in the chain gives their size.
 *
 * Sources: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux 7.1 (kinds 0 to 19,
 * layout section, 24-bit vlen); the LOC kinds as in docs/formats/btf-loc.md.
 */
#ifndef CAIRN_BTF_H
#define CAIRN_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_btf;

enum cairn_btf_kind {
	CAIRN_BTF_VOID, /* id 0, never stored */
	CAIRN_BTF_INT,
	CAIRN_BTF_PTR,
	CAIRN_BTF_ARRAY,
	CAIRN_BTF_STRUCT,
	CAIRN_BTF_UNION,
	CAIRN_BTF_ENUM,
	CAIRN_BTF_FWD,
	CAIRN_BTF_TYPEDEF,
	CAIRN_BTF_VOLATILE,
	CAIRN_BTF_CONST,
	CAIRN_BTF_RESTRICT,
	CAIRN_BTF_FUNC, /* vlen is the linkage, not a count */
	CAIRN_BTF_FUNC_PROTO,
	CAIRN_BTF_VAR,
	CAIRN_BTF_DATASEC,
	CAIRN_BTF_FLOAT,
	CAIRN_BTF_DECL_TAG,
	CAIRN_BTF_TYPE_TAG,
	CAIRN_BTF_ENUM64,
	CAIRN_BTF_LOC_PARAM,
	CAIRN_BTF_LOC_PROTO,
	CAIRN_BTF_LOCSEC,
	CAIRN_BTF_N_KINDS
};

/* The layout of the kinds 20 to 22: nothing in the header shows it. */
enum cairn_btf_dialect {
	CAIRN_BTF_NO_LOC, /* there are none */
	CAIRN_BTF_LOC_N,  /* LOC_PARAM 12+4+4*vlen, LOCSEC 12+12*vlen: the one that is written */
	CAIRN_BTF_LOC_V1, /* LOC_PARAM 20, LOCSEC 12+16*vlen: the RFC of October 2025 */
};

enum cairn_btf_linkage { CAIRN_BTF_STATIC, CAIRN_BTF_GLOBAL, CAIRN_BTF_EXTERN };

/* One record. Everything is borrowed from the blob. */
struct cairn_btf_type {
	uint32_t id;
	uint32_t kind; /* enum cairn_btf_kind, or a number this version does not know */
	bool kflag;
	uint32_t vlen;
	uint32_t name_off;
	const char *name; /* "" when it has none */
	uint32_t ref; /* third word: the size, or the id of another type, depending on the kind */
	const uint32_t *words; /* the words after the first three */
	uint32_t n_words;
};

/* Bits of the word that follows an INT. */
enum { CAIRN_BTF_INT_SIGNED = 1, CAIRN_BTF_INT_CHAR = 2, CAIRN_BTF_INT_BOOL = 4 };
#define CAIRN_BTF_INT_ENCODING(word) (((word) >> 24) & 0xf)
#define CAIRN_BTF_INT_OFFSET(word)   (((word) >> 16) & 0xff)
#define CAIRN_BTF_INT_BITS(word)     ((word)&0xff)

/* Flags of LOC_PARAM in the N dialect, and the register number that stands for the frame base. */
enum {
	CAIRN_BTF_LOC_SIGNED = 0x01,
	CAIRN_BTF_LOC_CONST = 0x02,
	/*
	 * With CONST: relative to the object's base address, the run-time address of its lowest
	 * loaded section (SHF_ALLOC, but not .data..percpu). It is the load bias plus that
	 * section's sh_addr.
	 */
	CAIRN_BTF_LOC_ADDR = 0x04,
	CAIRN_BTF_LOC_REG = 0x08,
	CAIRN_BTF_LOC_DEREF = 0x10,
	CAIRN_BTF_LOC_OFFSET = 0x20,
};
#define CAIRN_BTF_LOC_FBREG UINT32_MAX

/* Elements, by value: member of STRUCT and UNION, parameter of FUNC_PROTO, and so on. */
struct cairn_btf_member {
	uint32_t name_off, type;
	uint32_t bit_off;
	uint32_t bit_size; /* 0: not a bit-field */
};
struct cairn_btf_enumerator {
	uint32_t name_off;
	int64_t value; /* zero-extended when the enum is not signed */
};
struct cairn_btf_param {
	uint32_t name_off, type; /* both 0 for the last: "..." */
};
struct cairn_btf_secinfo {
	uint32_t type, offset, size;
};
/* One site of LOCSEC. In v1, which has no func, name_off and func_proto are set instead. */
struct cairn_btf_loc {
	uint32_t func;
	uint32_t loc_proto;
	uint32_t offset; /* from the start of the section; v1: from the start of .text */
	uint32_t name_off, func_proto;
};
/* The content of a LOC_PARAM, of either dialect. */
struct cairn_btf_loc_param {
	uint32_t flags;  /* CAIRN_BTF_LOC_*; neither CONST nor REG: no location */
	uint32_t size;   /* bytes of the value */
	uint32_t n_regs; /* 0, 1, or 2: the low part first */
	uint32_t reg[2];
	int64_t offset; /* of OFFSET */
	int64_t value;  /* of CONST, extended by its sign when SIGNED */
	bool continues; /* v1: the next slot is the rest of the same parameter */
};

/* ---- reading ---- */

struct cairn_btf_open_opts {
	size_t size;                  /* sizeof(struct cairn_btf_open_opts) */
	const struct cairn_btf *base; /* must outlive the result; NULL: not split */
	/*
	 * Section of an ELF file; NULL: ".BTF", or ".BTF.inline", ".BTF.extra" when that is the
	 * only one.
	 */
	const char *section;
	/* of LOC kinds, if the input itself does not show it; NO_LOC: find out */
	enum cairn_btf_dialect dialect;
};

/*
 * cairn_btf_open - read BTF from a file: raw (/sys/kernel/btf/...) or a section of an ELF file
 *
 * Header, record sizes and the ends of strings are checked. References are not: cairn_btf_check()
 * does that, and every accessor here tolerates any id and offset.
 *
 * The dialect follows from the layout section, from the name of the section, else from the records
 * themselves (N's LOC_PARAM has 1 to 3 values, v1's has vlen 0).
 * Returns 0. -ENOENT: no such file. -ENODATA: an ELF file without such a section. -EBADMSG: damaged
 * (err: the record, its offset, the damage), or not the base that the blob was split from.
 * -EOPNOTSUPP: an unknown version, or an unknown kind whose size no layout section gives. -ERANGE:
 * more than 2 GiB. -ENOMEM.
 * Cost: one pass over the records; 4 bytes per record. Threads: any number of them may read a blob.
 */
int cairn_btf_open(const char *path, const struct cairn_btf_open_opts *opts, struct cairn_btf **ret,
		   struct cairn_err *err);

/*
 * The same from memory, which is copied when it is of the other byte order, else must outlive the
 * result.
 */
int cairn_btf_open_mem(const void *bytes, size_t size, const char *name,
		       const struct cairn_btf_open_opts *opts, struct cairn_btf **ret,
		       struct cairn_err *err);
void cairn_btf_close(struct cairn_btf *btf);

/*
 * The file of @btf, or of a base, that became shorter while it was open; NULL: none. Answers that
 * were made of it are not reliable. Functions that make bytes or text check it themselves at their
 * end and return -EBADMSG; after accessors the caller does. Borrowed. Cost: a stat(2) for each.
 * Threads: any.
 */
const char *cairn_btf_shortened(const struct cairn_btf *btf);

const struct cairn_btf *cairn_btf_base(const struct cairn_btf *btf);
enum cairn_btf_dialect cairn_btf_dialect(const struct cairn_btf *btf);
bool cairn_btf_is_big_endian(const struct cairn_btf *btf);
bool cairn_btf_has_layout(const struct cairn_btf *btf);

/* Own ids are [start, end); those below start are the base's. */
uint32_t cairn_btf_start_id(const struct cairn_btf *btf);
uint32_t cairn_btf_end_id(const struct cairn_btf *btf);

/*
 * The record of an id in @btf or its bases. False for 0 and for ids that are not there. O(depth of
 * the chain).
 */
bool cairn_btf_type(const struct cairn_btf *btf, uint32_t id, struct cairn_btf_type *ret);

/* A string by offset; NULL when it is in no string section of the chain. */
const char *cairn_btf_string(const struct cairn_btf *btf, uint32_t off);

/*
 * cairn_btf_find - ids of a name and kind, first @btf's own, then its bases'
 *
 * @kind  CAIRN_BTF_VOID for any kind
 * @from  0, or the last result, for the next one
 * Returns the id, 0 when there is no more.
 * Cost: the first call sorts the names (and may fail for want of memory: then a search goes through
 * all records).
 */
uint32_t cairn_btf_find(const struct cairn_btf *btf, const char *name, uint32_t kind,
			uint32_t from);

/* Elements of a record of the right kind; @i below vlen. */
struct cairn_btf_member cairn_btf_member(const struct cairn_btf_type *t, uint32_t i);
struct cairn_btf_enumerator cairn_btf_enumerator(const struct cairn_btf_type *t, uint32_t i);
struct cairn_btf_param cairn_btf_param(const struct cairn_btf_type *t, uint32_t i);
struct cairn_btf_secinfo cairn_btf_secinfo(const struct cairn_btf_type *t, uint32_t i);
struct cairn_btf_loc cairn_btf_loc(const struct cairn_btf *btf, const struct cairn_btf_type *t,
				   uint32_t i);
struct cairn_btf_loc_param cairn_btf_loc_param(const struct cairn_btf *btf,
					       const struct cairn_btf_type *t);

/* ---- checking ---- */

/*
 * cairn_btf_check - check every rule of the format: references to ids that exist and are of the
 * right kind, names where they must be, no loops of types, vlen, flags and sizes that agree
 *
 * @report  called for each broken rule with the record's id, its offset in the blob in bytes, and
 *          text; id 0: the blob. May be NULL.
 * Loops, and members that leave their struct, are checked when all other rules hold.
 * Returns the number of broken rules, 0 if it is sound. -EBADMSG: its file, or a base's, became
 * shorter, and reports are of no account; cairn_btf_shortened() names it. -ENOMEM.
 */
int cairn_btf_check(const struct cairn_btf *btf,
		    void (*report)(void *ctx, uint32_t id, uint64_t off, const char *text),
		    void *ctx);

/* A version of Linux, as cairn_btf_check_for_kernel() takes it: CAIRN_BTF_LINUX(6, 18). */
#define CAIRN_BTF_LINUX(major, minor) ((uint32_t)(major) << 8 | (minor))
#define CAIRN_BTF_LINUX_OLDEST        CAIRN_BTF_LINUX(6, 1) /* whose rules are known */

/*
 * The same, and the rules that a kernel adds to the format (BPF_BTF_LOAD). Names are C identifiers,
 * and parameters of functions have one. Members are in the order of their offsets, and variables do
 * not overlap. No kind is above 19, and the kernel's limits are kept.
 *
 * @version  the kernel's version, CAIRN_BTF_LINUX_OLDEST or later; 0: the rules that all of them
 *           share. By version: section names that are no identifiers 6.12, attributes (tags with
 *           kflag) 6.15, the layout section 7.1, more than 65,535 elements and type tags after
 *           qualifiers 7.2. 7.2 takes one lock and one reference count for each record, nested
 *           structs included; 6.18 does not count nested ones. The versions between these two were
 *           not tried, and are checked as 7.2 is.
 * Not checked: which struct may own which in lists and trees, and whether the kernel has a
 * destructor for the struct that a kptr points to.
 */
int cairn_btf_check_for_kernel(const struct cairn_btf *btf, uint32_t version,
			       void (*report)(void *ctx, uint32_t id, uint64_t off,
					      const char *text),
			       void *ctx);

/* ---- building ---- */

struct cairn_btf_builder;

struct cairn_btf_build_opts {
	size_t size;
	const struct cairn_btf *base;   /* must outlive the builder and be its readers' base */
	enum cairn_btf_dialect dialect; /* of LOC kinds; NO_LOC: adding one is -EINVAL */
	bool big_endian;
	bool layout; /* write a layout section */
};

/* @opts may be NULL. 0; -EINVAL: options that are not known here; -ENOMEM. */
int cairn_btf_builder_new(const struct cairn_btf_build_opts *opts, struct cairn_btf_builder **ret,
			  struct cairn_err *err);
void cairn_btf_builder_free(struct cairn_btf_builder *b);

/*
 * cairn_btf_add_string - the offset of a string, the same for equal strings; a string of the base
 * is found there
 * Returns the offset in *@ret; 0, or -ENOMEM, -ERANGE (more than 2 GiB of strings).
 */
int cairn_btf_add_string(struct cairn_btf_builder *b, const char *s, uint32_t *ret);

/*
 * cairn_btf_add_record - a record, complete
 *
 * @t       kind, kflag, vlen, name_off, ref are used
 * @words   the words after the first three, @n_words as its kind and vlen demand; copied. NULL:
 *          zeros, to be filled in through cairn_btf_record_words()
 * Returns its id in *@ret; 0; -EINVAL (the number of words is wrong for the kind); -ENOMEM,
 * -ERANGE. References may be to ids that are added later. All typed functions that add records
 * (btf/build.h) end here.
 */
int cairn_btf_add_record(struct cairn_btf_builder *b, const struct cairn_btf_type *t,
			 const uint32_t *words, uint32_t n_words, uint32_t *ret);

/*
 * The words after the first three of a record of this builder, to be changed in place; NULL: no
 * such id. Valid until the next record is added.
 */
uint32_t *cairn_btf_record_words(struct cairn_btf_builder *b, uint32_t id);

/*
 * cairn_btf_finish - the bytes of the blob
 *
 * @ret  owned by the caller, free(); in the builder's byte order
 * Returns 0, -EBADMSG (a file of the base became shorter), -ENOMEM, -ERANGE. The builder may be
 * used further. Same records and strings, same bytes.
 */
int cairn_btf_finish(struct cairn_btf_builder *b, void **ret, size_t *ret_size,
		     struct cairn_err *err);

/*
 * ---- transforming: each reads one blob and gives the bytes of another ----
 *
 * Each returns -EBADMSG, and nothing to free, if a file of its input or of a base became shorter
 * meanwhile.
 */

/*
 * cairn_btf_dedup - merge equal types
 *
 * Structs that refer to one another in circles are compared as graphs. A forward declaration is
 * resolved to the only definition of its name. A struct that has a declaration where an equal
 * struct has the definition is replaced by the latter. LOC_PARAM, LOC_PROTO and FUNC_PROTO are
 * compared by their full content; VAR, DATASEC and LOCSEC are objects, and never merged. Types
 * equal to one of the base are replaced by it. Idempotent, deterministic. Records of unknown kinds
 * stay untouched, and all strings then stay at their offsets.
 *
 * @map  NULL, or an array of end_id - start_id words: the new id of each own type
 * Returns 0 with *@ret owned by the caller. -EBADMSG: a broken reference, named. -EOPNOTSUPP: LOC
 * records of two dialects, or a record of an unknown kind with a word that may be an id which moves
 * (named). -ENOMEM, -ERANGE.
 * Cost: O(references * log(records)) at worst.
 */
int cairn_btf_dedup(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		    struct cairn_err *err);

/*
 * cairn_btf_merge - the records of @n blobs as one blob, and equal types as one
 *
 * @in  complete, or split from the same base; the first gives the byte order
 * Variables and sections stay those of each blob: nothing is linked.
 * Returns 0 with *@ret owned by the caller. -EINVAL: none, or different bases. -EOPNOTSUPP: LOC
 * records of two dialects, or records of kinds that are not known. Other errors and cost as of
 * cairn_btf_dedup().
 */
int cairn_btf_merge(const struct cairn_btf *const *in, size_t n, void **ret, size_t *ret_size,
		    struct cairn_err *err);

/*
 * cairn_btf_sort - own records in the order of their names as bytes, then by kind, then as they
 * were
 *
 * Those without a name come first: so the kernel and libbpf can find a name by bisection. LOCSECs
 * are sorted again by (func, offset, loc_proto), those of v1 by offset. @map and errors as above.
 */
int cairn_btf_sort(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		   struct cairn_err *err);

/*
 * cairn_btf_split_loc - split one additive blob into a main blob and one with the location data
 *
 * Reachability decides. The split blob gets the LOC kinds, the FUNCs that @keep_func refuses, and
 * the FUNC_PROTOs, of those that are reachable from LOC records only. All other records stay in the
 * main blob. @keep_func returns whether a FUNC has code of its own (a symbol). Only the main blob
 * gets a layout section: readers of the split blob find it there. Records of unknown kinds stay in
 * the main blob, untouched.
 * Returns 0, both owned by the caller; *@ret_loc is NULL if there is nothing to split off. Errors
 * as above.
 */
int cairn_btf_split_loc(const struct cairn_btf *btf, bool (*keep_func)(void *ctx, const char *name),
			void *ctx, void **ret_main, size_t *ret_main_size, void **ret_loc,
			size_t *ret_loc_size, struct cairn_err *err);

/*
 * cairn_btf_distil_base - the smallest base that a split blob needs (.BTF.base), and the split blob
 * on it
 *
 * The base has only INT, FLOAT, FWD, and the sizes of structs, unions and enums with a name, as
 * libbpf's btf__relocate() and the kernel expect them. An ENUM64 is an ENUM of 8 bytes there. All
 * other types that the split refers to move into it. A base that is split itself becomes one blob.
 * Returns 0, both owned by the caller. -EINVAL: @split has no base. -EOPNOTSUPP: records of unknown
 * kinds. Other errors as above.
 */
int cairn_btf_distil_base(const struct cairn_btf *split, void **ret_base, size_t *ret_base_size,
			  void **ret_split, size_t *ret_split_size, struct cairn_err *err);

struct cairn_btf_convert_opts {
	size_t size;
	/*
	 * The base of the result: the base converted with the same options, or the base as it is.
	 */
	const struct cairn_btf *base;
	enum cairn_btf_dialect dialect; /* of the result; NO_LOC: LOC kinds are dropped */
	bool layout;
	bool big_endian;
	/*
	 * For libbpf 1.1 and kernels of its time: no vlen above 65,535, no ENUM64, tags as they
	 * knew them, no kinds above 19.
	 */
	bool downgrade;
	/*
	 * Make BTF that BPF_BTF_LOAD accepts. It has no LOC kinds, no unknown ones and no layout
	 * section. Names are C identifiers ("std::pair<int>" becomes "std.pair_int_"), members are
	 * in the order of their offsets, and parameters of functions have names. No function has
	 * values of types that are only declared.
	 */
	bool kernel;
};

/* The facts that were lost or rewritten; all 0: none. */
struct cairn_btf_losses {
	/* dropped, or without a form in the dialect */
	uint32_t loc_params, loc_protos, locsecs, locs;
	uint32_t enum64s, unknown_kinds, wide_vlens, tags;
	/*
	 * For the kernel: names rewritten, structs whose members were sorted, parameters that were
	 * given a name.
	 */
	uint32_t names, member_orders, params;
	/* left out: with a parameter or result that is only declared, or of another file */
	uint32_t functions;
	/* left out: of another file, without a size, or overlapping another one */
	uint32_t variables;
	uint32_t sections; /* left out: without a size before the object is linked */
	uint32_t floats;   /* members at odd offsets, written as bytes */
};

/*
 * cairn_btf_convert - the same content in another dialect, byte order, with or without layout
 * section, or for old readers
 *
 * If the wanted form is that of the input, the result is its bytes. v1 does not separate addresses
 * from numbers. So a constant of 8 bytes for a pointer, unless it is 0, has no location in N
 * afterwards. In v1 a number of 8 bytes for a pointer, unless it is 0, and an address for any other
 * parameter have none.
 * @losses  may be NULL
 * Returns 0 with *@ret owned by the caller, free(). -EINVAL: the base of the result is not the
 * converted base. -EOPNOTSUPP: with kernel, a record that cannot be rewritten so that a kernel
 * accepts it (err: the record), for example one of a damaged input. -ENOMEM, -ERANGE.
 */
int cairn_btf_convert(const struct cairn_btf *btf, const struct cairn_btf_convert_opts *opts,
		      struct cairn_btf_losses *losses, void **ret, size_t *ret_size,
		      struct cairn_err *err);

/* ---- text ---- */

enum cairn_btf_format {
	CAIRN_BTF_RAW,    /* as "bpftool btf dump", text */
	CAIRN_BTF_PRETTY, /* the same with locations as people write them: *(u64 *)(rsp + 16) */
	CAIRN_BTF_C,      /* declarations that compile, in an order that compiles */
};

/*
 * cairn_btf_dump - own records (of a split blob in C: with what they need of the bases)
 *
 * @ids, @n_ids  only these, and in C what they need; NULL: all
 * @machine      EM_* whose register names PRETTY uses, and whose rules the layout in C follows; 0:
 *               that of the ELF file the blob came from, else x86-64
 * Returns 0, -EBADMSG (a reference that C cannot express; RAW shows anything), -ENOMEM, or what
 * @out failed with.
 */
int cairn_btf_dump(const struct cairn_btf *btf, enum cairn_btf_format format, const uint32_t *ids,
		   size_t n_ids, int machine, FILE *out, struct cairn_err *err);

/*
 * The same, and how many names in C had to be made into identifiers: "std::pair<int>", keywords. 0
 * in other formats.
 */
int cairn_btf_dump_renaming(const struct cairn_btf *btf, enum cairn_btf_format format,
			    const uint32_t *ids, size_t n_ids, int machine, FILE *out,
			    uint32_t *ret_renamed, struct cairn_err *err);

/* EM_* of the ELF file that the blob came from; 0: it came from none. */
int cairn_btf_machine(const struct cairn_btf *btf);

/* "STRUCT" and so on; "UNKNOWN" for a kind that this version does not know. Static. */
const char *cairn_btf_kind_name(uint32_t kind);

/*
 * cairn_btf_loc_text - a location as PRETTY has it: "rdi", "*(u64 *)(rsp + 16)", "{rdi, rsi}",
 * "42", "base + 0x1230"
 *
 * @buf  cut at its end; "(unavailable)" when there is no location
 */
void cairn_btf_loc_text(const struct cairn_btf_loc_param *p, int machine, char *buf, size_t size);

/*
 * Types of any source as BTF: built (cairn/layout/builder.h), from declarations, from DWARF
 *
 *	cairn_btf_builder_new(NULL, &btf, &err);
 *	cairn_btf_add_types(btf, types, &event, 1, NULL, &err);
 *	cairn_btf_finish(btf, &bytes, &size, &err);	// then write or cairn_btf_dump() it
 */

/*
 * cairn_btf_add_types - add types, with all types that they refer to
 *
 * A type without a BTF kind becomes one of its size: references are pointers, vectors arrays,
 * _Atomic is dropped, complex numbers of more than 16 bytes are structs without members. Base
 * classes are members of their class's name. Structs that are only declared, or were not read, are
 * forward declarations.
 *
 * @b        a builder; records are added after the existing ones
 * @ret_ids  NULL, or @n ids in the BTF
 * Returns 0. -EINVAL: an offset of a bit-field or a number of members beyond the range of BTF, or
 * an offset that is not known (cairn_member.dynamic).
 * -ENOMEM, -ERANGE.
 * Cost: O(types reached). Records that were added before a failure stay. Threads: one at a time per
 * builder.
 */
int cairn_btf_add_types(struct cairn_btf_builder *b, const struct cairn_types *types,
			const uint32_t *ids, size_t n, uint32_t *ret_ids, struct cairn_err *err);

CAIRN_END_DECLS
#endif
