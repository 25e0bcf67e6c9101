/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .BTF.inline.link
 *
 * A kernel whose sites are in a module (CONFIG_DEBUG_INFO_BTF_INLINE=m) says in this section which
 * module, and which bytes its .BTF.inline has:
 *
 *	offset  bytes
 *	0       56     name of the module, ends in NUL; 60 bytes in a kernel of 32 bits
 *	56      32     SHA-256 of its .BTF.inline
 *	88      4      bytes of its .BTF.inline
 *
 * So a file with sites beside such a kernel is compared with that, and needs no other proof.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <nettle/sha2.h>

#include "base/cursor.h"
#include "base/err.h"
#include "btf/btf.h"
#include "btfsites/btfsites.h"
#include "elf/elf.h"

enum {
	NAME_BYTES = 56,
	HASH_BYTES = SHA256_DIGEST_SIZE,
	LINK_BYTES = NAME_BYTES + HASH_BYTES + 4,
	HEX = 2 * HASH_BYTES + 1,
};

static int wrong_form(const struct btf_sites *s, uint64_t size, struct cairn_err *err)
{
	return err_set(err, -EBADMSG,
		       "%s: " LINK_SECTION ": expected %d bytes that begin with the name of a "
		       "module, found %llu",
		       cairn_binary_path(s->sites.bin), LINK_BYTES, (unsigned long long)size);
}

int btfsites_link_read(const struct btf_sites *s, struct btf_link *ret, struct cairn_err *err)
{
	const struct elf_section *section;
	int rc = elf_section(binary_main(s->sites.bin), LINK_SECTION, &section, err);
	if (rc < 0 || !section || !section->data)
		return rc < 0 ? rc : 0;
	if (section->size != LINK_BYTES || !section->data[0] ||
	    !memchr(section->data, 0, NAME_BYTES))
		return wrong_form(s, section->size, err);
	struct cursor c = cursor_of(&section->src, section->data, section->size, false, NULL);
	ret->module = (const char *)section->data;
	ret->sha256 = section->data + NAME_BYTES;
	cur_skip(&c, NAME_BYTES + HASH_BYTES);
	ret->n_bytes = cur_u32(&c);
	return 1;
}

static const char *hex(const uint8_t *hash, char ret[static HEX])
{
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", hash[i]);
	return ret;
}

int btfsites_link_check(const struct btf_sites *s, struct cairn_err *err)
{
	uint8_t hash[HASH_BYTES];
	char a[HEX], b[HEX];
	struct btf_link link;
	struct sha256_ctx c;
	int rc = btfsites_link_read(s, &link, err);
	if (rc <= 0)
		return rc;
	sha256_init(&c);
	sha256_update(&c, s->inlined->raw_size, s->inlined->raw);
	sha256_digest(&c, sizeof(hash), hash);
	if (link.n_bytes == s->inlined->raw_size && !memcmp(hash, link.sha256, sizeof(hash)))
		return 0;
	return err_set(err, -ESTALE,
		       "%s is not what " LINK_SECTION " of %s names, which is of module %s: its "
		       "SHA-256 is %s, and that of the module's is %s",
		       s->path, cairn_binary_path(s->sites.bin), link.module, hex(hash, a),
		       hex(link.sha256, b));
}
