/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes and the words that traces of profiles and of events share. */
#include "export/ctf_write.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

void ctf_put_u8(uint8_t value, FILE *out)
{
	fwrite(&value, 1, sizeof(value), out);
}

void ctf_put_u32(uint32_t value, FILE *out)
{
	fwrite(&value, 1, sizeof(value), out);
}

void ctf_put_u64(uint64_t value, FILE *out)
{
	fwrite(&value, 1, sizeof(value), out);
}

void ctf_put_text(const char *text, FILE *out)
{
	size_t n = strlen(text), len;
	uint32_t c;

	for (size_t at = 0; at < n; at += len ? len : 1) {
		len = utf8_length((const uint8_t *)text + at, n - at, &c);
		fwrite(len ? text + at : "\xef\xbf\xbd", 1, len ? len : 3, out);
	}
	ctf_put_u8(0, out);
}

void ctf_put_types(const char *more, FILE *out)
{
	fprintf(out,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
		"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
		"typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
		"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
		"typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
		"%s\n"
		"trace {\n"
		"\tmajor = 1;\n"
		"\tminor = 8;\n"
		"\tbyte_order = le;\n"
		"\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n"
		"};\n\n",
		more);
}

void ctf_put_clock(const char *description, int64_t start_ns, FILE *out)
{
	fprintf(out,
		"clock {\n"
		"\tname = cairn;\n"
		"\tdescription = \"%s\";\n"
		"\tfreq = 1000000000;\n"
		"\toffset_s = %" PRId64 ";\n"
		"\toffset = %" PRId64 ";\n"
		"\tabsolute = TRUE;\n"
		"};\n\n",
		description, start_ns / 1000000000, start_ns % 1000000000);
}

void ctf_put_stream(const char *of_packet, const char *of_event, FILE *out)
{
	fprintf(out,
		"typealias integer {\n"
		"\tsize = 64; align = 8; signed = false; map = clock.cairn.value;\n"
		"} := time_t;\n\n"
		"stream {\n"
		"\tid = 0;\n"
		"\tpacket.context := struct {\n"
		"\t\ttime_t timestamp_begin;\n"
		"\t\ttime_t timestamp_end;\n"
		"\t\tuint64_t content_size;\n"
		"\t\tuint64_t packet_size;\n"
		"%s"
		"\t};\n"
		"\tevent.header := struct { uint32_t id; time_t timestamp; };\n"
		"\tevent.context := struct { int32_t _vpid; int32_t _vtid; %s };\n"
		"};\n\n",
		of_packet, of_event);
}
