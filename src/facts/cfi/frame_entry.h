/* SPDX-License-Identifier: BSD-2-Clause */
/* CIEs and FDEs as bytes; the formats are in frame_entry.c. Within this module only. */
#ifndef CFI_FRAME_ENTRY_H
#define CFI_FRAME_ENTRY_H

#include "base/cursor.h"
#include "cfi/cfi.h"
#include "elf/elf.h"

struct frame_section {
	const struct elf_section *elf;
	bool is_eh;       /* .eh_frame; else .debug_frame */
	uint16_t machine; /* EM_* of the file */
	/*
	 * addresses may count from text: in the symbol files of JITs, which have one section of
	 * code
	 */
	bool has_text;
	uint64_t text;
};

/* The common part of one entry. */
struct frame_entry {
	uint64_t off;       /* of its length field in the section */
	uint64_t next;      /* of the following entry */
	struct cursor body; /* after the CIE id or CIE pointer */
	bool is_terminator; /* length 0: nothing else is set */
	bool is_cie;
	uint64_t cie_off; /* of an FDE's CIE */
};

struct frame_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t ra_column;        /* of the return address; nearly always the ABI's */
	uint8_t pointer_encoding; /* DW_EH_PE_*, for the addresses in its FDEs */
	bool has_augmentation_data;
	bool is_signal_frame;
	bool has_lsda; /* its FDEs have language specific data: landing pads */
	struct cursor program;
};

struct frame_fde {
	struct frame_cie cie;
	uint64_t lo, hi; /* link-time addresses [lo, hi); hi == lo when it covers nothing */
	struct cursor program;
};

/*
 * frame_entry_at - the entry at @off
 *
 * Returns 0; -EBADMSG when its length leads out of the section, so that no further entry can be
 * found.
 */
int frame_entry_at(const struct frame_section *sec, uint64_t off, struct frame_entry *ret,
		   struct cairn_err *err);

/*
 * frame_cie_at - the CIE at @off
 *
 * Returns 0; -EBADMSG; -EOPNOTSUPP for a version, an augmentation or a pointer encoding that is not
 * known.
 */
int frame_cie_at(const struct frame_section *sec, uint64_t off, struct frame_cie *ret,
		 struct cairn_err *err);

/* The FDE of @entry, whose CIE the caller has read already. Errors as above. */
int frame_fde_of(const struct frame_section *sec, const struct frame_entry *entry,
		 const struct frame_cie *cie, struct frame_fde *ret, struct cairn_err *err);

/*
 * An address as @encoding writes it (also DW_CFA_set_loc); sets the cursor failed when it cannot be
 * read.
 */
uint64_t frame_read_address(const struct frame_section *sec, struct cursor *c, uint8_t encoding);

#endif
