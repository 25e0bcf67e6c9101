/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of .eh_frame and .debug_frame
 *
 * Both sections are a list of entries. A CIE has what many functions share, an FDE covers one
 * function or a part of one. They were one format once and differ in small things:
 *
 *	                       .eh_frame                      .debug_frame
 *	length                 4 bytes; ffffffff: 8 more      the same
 *	a CIE is marked by     id 0, always 4 bytes           id ffffffff or 8 times ff
 *	an FDE's CIE pointer   4 bytes, distance back from    4 or 8 bytes, offset in the section
 *	                       the pointer field itself
 *	addresses              encoded as the CIE's "R" says  8 bytes
 *	length 0               terminator, crtend.o; linkers  (not used)
 *	                       may leave some in the middle
 *
 *	CIE: SIZE   MEANING
 *	1           version: 1 (.eh_frame), 3 (DWARF 3), 4 (DWARF 4 and 5)
 *	n           augmentation, a string: "zPLR", "zRS", ""
 *	8           only augmentation "eh" of GCC 2: a pointer without use
 *	1 1         only version 4: address size (8), segment selector size (0)
 *	uleb sleb   code and data alignment factor (1 and -8 on x86-64)
 *	1 or uleb   return address column (16; 30 on AArch64; another one is believed): a byte in
 *	            version 1
 *	uleb + n    only with "z": length of the augmentation data, and those, one item per letter:
 *	            R  1 byte: encoding of the FDEs' addresses
 *	            P  1 byte encoding + a pointer in it: personality routine
 *	            L  1 byte: encoding of the FDEs' language specific data
 *	            S, B, G  nothing: signal frame; flags of another architecture
 *	n           initial instructions
 *
 *	FDE: SIZE   MEANING
 *	n           first address
 *	n           number of bytes covered, in the same format, never relative
 *	uleb + n    only with "z": augmentation data (language specific data), skipped
 *	n           instructions
 *
 * A pointer encoding is a byte: low 4 bits the format, next 3 bits the base, bit 7 "the pointer is
 * at this address". Compilers use the field itself as the base. The base .text has a meaning if a
 * JIT made a file of one section of code. The bases GOT and function have none for an FDE on x86-64
 * and are refused.
 */
#include "cfi/frame_entry.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "cfi/convention.h"

enum pointer_format {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
};

enum pointer_base {
	PE_ABSOLUTE = 0x00,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_ALIGNED = 0x50,
	PE_BASE = 0x70,
};

enum {
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
	ADDRESS_SIZE = 8,
	LENGTH_64BIT = 0xffffffff,
	LENGTH_RESERVED = 0xfffffff0,
};

static struct cursor section_cursor(const struct frame_section *sec, uint64_t off,
				    struct cairn_err *err)
{
	const struct elf_section *s = sec->elf;
	uint64_t from = off < s->size ? off : s->size;
	return cursor_of(&s->src, s->data + from, s->size - from, false, err);
}

static int refuse(const struct cursor *c, const char *what, uint64_t value)
{
	return err_set(c->err, -EOPNOTSUPP, "%s: %s+0x%" PRIx64 ": %s 0x%" PRIx64 " is not known",
		       c->src->file, c->src->section, cur_off(c), what, value);
}

static int bad(const struct cursor *c, const char *what)
{
	return err_set(c->err, -EBADMSG, "%s: %s+0x%" PRIx64 ": %s", c->src->file, c->src->section,
		       cur_off(c), what);
}

/* The number as it is, without its base. */
static uint64_t read_format(struct cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SIGNED:
	case PE_SDATA8:
		return cur_u64(c);
	case PE_ULEB128:
		return cur_uleb(c);
	case PE_SLEB128:
		return (uint64_t)cur_sleb(c);
	case PE_UDATA2:
		return cur_u16(c);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)cur_u16(c);
	case PE_UDATA4:
		return cur_u32(c);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)cur_u32(c);
	default:
		cur_fail(c, "a pointer in an unknown format");
		return 0;
	}
}

static uint64_t field_address(const struct frame_section *sec, const struct cursor *c)
{
	return sec->elf->addr.v + (uint64_t)(c->pos - sec->elf->data);
}

/* Pointers of the "aligned" kind stand at the next multiple of 8. */
static void align(const struct frame_section *sec, struct cursor *c)
{
	cur_skip(c, -field_address(sec, c) % ADDRESS_SIZE);
}

uint64_t frame_read_address(const struct frame_section *sec, struct cursor *c, uint8_t encoding)
{
	switch (encoding & PE_BASE) {
	case PE_PCREL: {
		uint64_t field = field_address(sec, c);
		return field + read_format(c, encoding);
	}
	case PE_TEXTREL:
		return sec->text + read_format(c, encoding);
	case PE_ALIGNED:
		align(sec, c);
		return cur_u64(c);
	default:
		return read_format(c, encoding);
	}
}

static void skip_pointer(const struct frame_section *sec, struct cursor *c, uint8_t encoding)
{
	if (encoding != PE_OMIT)
		frame_read_address(sec, c, encoding);
}

static bool is_usable_encoding(const struct frame_section *sec, uint8_t encoding)
{
	uint8_t base = encoding & PE_BASE;
	return !(encoding & PE_INDIRECT) &&
	       (base == PE_ABSOLUTE || base == PE_PCREL || base == PE_ALIGNED ||
		(base == PE_TEXTREL && sec->has_text));
}

int frame_entry_at(const struct frame_section *sec, uint64_t off, struct frame_entry *ret,
		   struct cairn_err *err)
{
	struct cursor c = section_cursor(sec, off, err);
	struct frame_entry entry = {.off = off};
	bool is_64bit = false;
	uint64_t length = cur_u32(&c);
	if (length == LENGTH_64BIT) {
		is_64bit = true;
		length = cur_u64(&c);
	} else if (length >= LENGTH_RESERVED) {
		return bad(&c, "an entry's length is one of the reserved values");
	}
	entry.body = cur_sub(&c, length);
	if (c.failed)
		return -EBADMSG;
	entry.next = cur_off(&c);
	entry.is_terminator = length == 0;
	if (entry.is_terminator) {
		*ret = entry;
		return 0;
	}
	/*
	 * A body that is too short for its id is the entry's damage, not the chain's: no error
	 * here.
	 */
	entry.body.err = NULL;
	uint64_t id_at = cur_off(&entry.body);
	unsigned int id_size = is_64bit && !sec->is_eh ? 8 : 4;
	uint64_t id = cur_uint(&entry.body, id_size);
	uint64_t cie_id = sec->is_eh ? 0 : id_size == 8 ? UINT64_MAX : UINT32_MAX;
	entry.body.err = err;
	entry.is_cie = id == cie_id;
	entry.cie_off = sec->is_eh ? id_at - id : id;
	*ret = entry;
	return 0;
}

/* The data after "z", one item per letter. */
static int read_augmentation(const struct frame_section *sec, const char *letters, struct cursor *c,
			     struct frame_cie *cie)
{
	struct cursor data = cur_sub(c, cur_uleb(c));
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cur_u8(&data);
			break;
		case 'P':
			skip_pointer(sec, &data, cur_u8(&data));
			break;
		case 'L':
			cur_u8(&data);
			cie->has_lsda = true;
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
		case 'G':
			break;
		default:
			return refuse(&data, "augmentation letter", (uint8_t)*letters);
		}
	}
	return data.failed ? -EBADMSG : 0;
}

static int read_header_v4(struct cursor *c)
{
	uint8_t address_size = cur_u8(c), segment_size = cur_u8(c);
	if (c->failed)
		return -EBADMSG;
	if (address_size != ADDRESS_SIZE)
		return refuse(c, "address size", address_size);
	return segment_size ? refuse(c, "segment selector size", segment_size) : 0;
}

static int read_cie(const struct frame_section *sec, struct cursor *c, struct frame_cie *cie)
{
	uint8_t version = cur_u8(c);
	const char *augmentation = cur_str(c);
	if (c->failed)
		return -EBADMSG;
	if (version != 1 && version != 3 && version != 4)
		return refuse(c, "CIE version", version);
	if (strncmp(augmentation, "eh", 2) == 0) {
		cur_skip(c, ADDRESS_SIZE);
		augmentation += 2;
	}
	int rc = version == 4 ? read_header_v4(c) : 0;
	if (rc < 0)
		return rc;
	cie->code_align = cur_uleb(c);
	cie->data_align = cur_sleb(c);
	uint64_t column = version == 1 ? cur_u8(c) : cur_uleb(c);
	if (c->failed)
		return -EBADMSG;
	if (column >= CFI_N_REGS)
		return refuse(c, "return address column", column);
	cie->ra_column = (uint8_t)column;
	cie->has_augmentation_data = *augmentation == 'z';
	if (cie->has_augmentation_data)
		rc = read_augmentation(sec, augmentation + 1, c, cie);
	else if (*augmentation)
		return refuse(c, "augmentation that begins with", (uint8_t)*augmentation);
	if (rc < 0)
		return rc;
	if (!is_usable_encoding(sec, cie->pointer_encoding))
		return refuse(c, "encoding of FDE addresses", cie->pointer_encoding);
	cie->program = *c;
	return c->failed ? -EBADMSG : 0;
}

int frame_cie_at(const struct frame_section *sec, uint64_t off, struct frame_cie *ret,
		 struct cairn_err *err)
{
	struct frame_entry entry;
	int rc = frame_entry_at(sec, off, &entry, err);
	if (rc < 0)
		return rc;
	if (entry.is_terminator || !entry.is_cie || entry.body.failed)
		return bad(&entry.body, "an FDE's CIE pointer leads to something that is no CIE");
	struct frame_cie cie = {.pointer_encoding = PE_ABSPTR};
	rc = read_cie(sec, &entry.body, &cie);
	if (rc == 0)
		*ret = cie;
	return rc;
}

int frame_fde_of(const struct frame_section *sec, const struct frame_entry *entry,
		 const struct frame_cie *cie, struct frame_fde *ret, struct cairn_err *err)
{
	struct frame_fde fde = {.cie = *cie};
	struct cursor c = entry->body;
	c.err = err;
	fde.lo = frame_read_address(sec, &c, cie->pointer_encoding);
	uint64_t n = read_format(&c, cie->pointer_encoding);
	if (cie->has_augmentation_data)
		cur_skip(&c, cur_uleb(&c));
	if (c.failed)
		return -EBADMSG;
	if (__builtin_add_overflow(fde.lo, n, &fde.hi))
		return bad(&c, "an FDE covers more than the address space");
	fde.program = c;
	*ret = fde;
	return 0;
}
