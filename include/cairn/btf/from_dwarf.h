/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF generation (btfgen): makes BTF from DWARF
 *
 * One pass over the debug information of a binary gives three blobs:
 *
 *	main    types, functions that have code of their own, variables with their sections
 *	inline  split on main: every site of every function, inlined copies included, and the
 *	        locations of the arguments there (LOC_PARAM, LOC_PROTO, LOCSEC); functions that were
 *	        inlined everywhere
 *	vars    split on main, with CAIRN_BTFGEN_VARS_SPLIT: all global variables
 *
 *	struct cairn_btfgen d;
 *	if (cairn_btf_from_dwarf(bin, NULL, &d, &err) < 0)
 *		return fail(err.msg);
 *	write_file("k.btf", d.main.bytes, d.main.size);
 *	cairn_btfgen_free(&d);
 *
 * The sites and locations are those of sites.h: same address, same location, same absence. Facts
 * that a blob cannot express are left out and counted; nothing in it is a guess. The bytes depend
 * on the input and the options only, not on the number of threads.
 *
 * It writes no files, and it does not merge the blobs of several binaries.
 */
#ifndef CAIRN_BTF_FROM_DWARF_H
#define CAIRN_BTF_FROM_DWARF_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/btf.h>
#include <cairn/err.h>
#include <cairn/location.h>

CAIRN_BEGIN_DECLS

enum cairn_btfgen_vars {
	/*
	 * In a kernel or module the per-processor variables, in a program none: those that BPF
	 * programs can refer to.
	 */
	CAIRN_BTFGEN_VARS_PERCPU,
	CAIRN_BTFGEN_VARS_NONE,
	CAIRN_BTFGEN_VARS_ALL,   /* every variable with an address, in main */
	CAIRN_BTFGEN_VARS_SPLIT, /* PERCPU in main, all others in a blob of their own */
};

enum cairn_btfgen_stage {
	CAIRN_BTFGEN_TYPES, /* reading units */
	CAIRN_BTFGEN_SITES, /* evaluating functions */
	CAIRN_BTFGEN_WRITE,
};

struct cairn_btfgen_opts {
	size_t size;          /* sizeof(struct cairn_btfgen_opts) */
	unsigned int threads; /* 0: one per processor */
	/*
	 * The BTF that the running system has already, for a module that of its kernel: types equal
	 * to one of it are not written again, and main continues its ids. Must outlive the result's
	 * readers. NULL: none.
	 */
	const struct cairn_btf *base;
	enum cairn_btfgen_vars vars;
	enum cairn_btf_dialect dialect; /* of the inline blob; CAIRN_BTF_NO_LOC: do not make it */
	bool layout; /* write a layout section into main; the inline blob has one always */
	/*
	 * Use a parameter's value at a site as the argument even if the description does not show
	 * whether the function has changed it: as in cairn_sites_opts.
	 */
	bool assume_unmodified;
	/*
	 * Called from the calling thread, now and then, with done of total steps of a stage. A
	 * result other than 0 ends the work with -ECANCELED. May be NULL.
	 */
	int (*progress)(void *ctx, enum cairn_btfgen_stage stage, uint64_t done, uint64_t total);
	void *ctx;
	/*
	 * Only units of these languages (DW_LANG_*), or all but these; not used if n_langs is 0.
	 */
	const uint16_t *langs;
	size_t n_langs;
	bool exclude_langs;
};

/* The facts that BTF or the LOC kinds cannot express. */
enum cairn_btfgen_loss {
	CAIRN_LOSS_REFERENCE,      /* C++ references, written as pointers */
	CAIRN_LOSS_MEMBER_POINTER, /* pointers to members: opaque bytes */
	CAIRN_LOSS_COMPLEX,        /* complex and decimal numbers: opaque bytes */
	/* a member or a base class whose offset is not known: left out of its type */
	CAIRN_LOSS_UNPLACED,
	/* parts of an Ada or Pascal record that depend on a discriminant: left out */
	CAIRN_LOSS_VARIANT,
	/* a member farther into its struct than the format can say: left out */
	CAIRN_LOSS_FAR_MEMBER,
	/* a member that ends after its struct, as an unsized tail of Rust: left out */
	CAIRN_LOSS_BEYOND_MEMBER,
	CAIRN_LOSS_TYPE, /* types of a kind that BTF does not have: opaque bytes */
	/* 2^32 bytes or elements and more: written without their number, or an array in rows */
	CAIRN_LOSS_LARGE,
	/* arrays of types that are only declared, or too large: written as void */
	CAIRN_LOSS_ELEMENTS,
	/* values that are functions, with their captured variables (Go): written as pointers */
	CAIRN_LOSS_FUNC_VALUE,
	CAIRN_LOSS_TAG, /* tags of records that cannot have any in BTF, such as enums: left out */
	CAIRN_LOSS_FUNC_PROTO, /* functions of one name with several prototypes: not in main */
	/* functions whose code takes other parameters than the source: not in main */
	CAIRN_LOSS_FUNC_CHANGED,
	/* functions described without parameters and result (-g1, assemblers): not in main */
	CAIRN_LOSS_FUNC_SILENT,
	CAIRN_LOSS_VARIABLE,   /* variables without a fixed address: thread-local ones */
	CAIRN_LOSS_LOC_LONG,   /* arguments known, in more steps than the LOC kinds can say */
	CAIRN_LOSS_LOC_PIECES, /* arguments in several pieces that are not two registers */
	CAIRN_LOSS_LOC_BYTES,  /* constants longer than 8 bytes */
	CAIRN_LOSS_LOC_FAR, /* addresses below the object's first byte, or of a relocatable file */
	CAIRN_LOSS_SITE,    /* sites that lie in no section with code */
	CAIRN_N_LOSSES
};

/* "a member farther into its struct ...": for people. Static. */
const char *cairn_btfgen_loss_text(enum cairn_btfgen_loss loss);

struct cairn_btfgen_blob {
	void *bytes; /* NULL when there is nothing to say */
	size_t size;
};

struct cairn_btfgen {
	struct cairn_btfgen_blob main, inlined, vars;
	uint32_t n_types;     /* records of main */
	uint32_t n_functions; /* FUNC of main */
	/* FUNC of inlined: no code of their own, or not identified by name and prototype alone */
	uint32_t n_inlined_functions;
	uint32_t n_variables;
	uint64_t n_sites;     /* entries of all LOCSECs */
	uint64_t n_arguments; /* slots of all sites */
	uint64_t n_located;   /* those that have a location */
	/*
	 * The others by the reason why the argument is not available; a located one that BTF cannot
	 * say is a loss.
	 */
	uint64_t unavailable[CAIRN_N_UNAVAILABLE];
	uint64_t losses[CAIRN_N_LOSSES];
	/*
	 * .dwo files (split DWARF) that were not found, and of the first few which, as
	 * cairn_sites_missing(): nothing of them is here.
	 */
	size_t n_missing;
	char *missing;
	size_t n_left_out; /* units of other languages than the wanted ones */
};

/*
 * cairn_btf_from_dwarf - read a binary's DWARF into BTF
 *
 * @bin   borrowed for the call
 * @opts  NULL: percpu variables, dialect N, no base
 * @ret   the caller's: cairn_btfgen_free(). All zero after an error.
 * Returns 0, or negative:
 *   -ENODATA     the binary has no DWARF (err: where it was searched)
 *   -EBADMSG     damaged DWARF (err: section and offset)
 *   -EOPNOTSUPP  a form or version that is not known; langs, and units that refer to one another
 *                (dwz, -flto)
 *   -ERANGE      more types or strings than BTF can number
 *   -ECANCELED   progress returned it
 *   -EINVAL      @opts has something set that this version does not know
 *   -ENOMEM
 * Cost: one pass over all DIEs in parallel by unit. Memory: the distinct types and the sites, not
 * all types of all units. If units refer to each other's types (dwz, link-time optimisation, type
 * units), all of them. Threads: any.
 */
int cairn_btf_from_dwarf(const struct cairn_binary *bin, const struct cairn_btfgen_opts *opts,
			 struct cairn_btfgen *ret, struct cairn_err *err);

/* Takes NULL, and one that is all zero. */
void cairn_btfgen_free(struct cairn_btfgen *d);

CAIRN_END_DECLS
#endif
