/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metadata of a trace: the events, in the language of CTF 1.8
 *
 * The filter debug-info of babeltrace2 wants the members ip and vpid in the context of all events,
 * vpid with 32 bits and a sign. A leading underscore is not part of a name.
 */
#include "export/ctf.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

static const char address[] =
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n";

static const struct {
	int id;
	const char *name, *fields;
} events[] = {
	{CTF_START, "lttng_ust_statedump:start", ""},
	{CTF_BIN_INFO, "lttng_ust_statedump:bin_info",
	 "address_t _baddr; uint64_t _memsz; string _path; uint8_t _is_pic;"
	 " uint8_t _has_build_id; uint8_t _has_debug_link;"},
	{CTF_BUILD_ID, "lttng_ust_statedump:build_id",
	 "address_t _baddr; uint64_t __build_id_length; uint8_t _build_id[__build_id_length];"},
	{CTF_END, "lttng_ust_statedump:end", ""},
	{CTF_FRAME, "cairn:frame",
	 "uint64_t _stack; uint32_t _depth; uint8_t _inlined;"
	 " enum : uint8_t { user, kernel, jit } _code; string _function; string _linkage;"
	 " string _file; uint32_t _line; string _module; address_t _offset;"},
	{CTF_SAMPLE, "cairn:sample",
	 "uint64_t _stack; int64_t _value; uint8_t _has_time; int32_t _cpu; string _thread;"
	 " string _end; uint32_t __callchain_length; address_t _callchain[__callchain_length];"},
};

/* Between quotes; what is not printable becomes "?". */
static void put_quoted(const char *text, FILE *out)
{
	size_t n = strlen(text), len;
	uint32_t c;

	fputc('"', out);
	for (size_t at = 0; at < n; at += len ? len : 1) {
		len = utf8_length((const uint8_t *)text + at, n - at, &c);
		if (!len || !utf8_is_safe(c))
			fputc('?', out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (int)c);
		else
			fwrite(text + at, 1, len, out);
	}
	fputc('"', out);
}

static void put_env(const char *key, const char *text, FILE *out)
{
	fprintf(out, "\t%s = ", key);
	put_quoted(text, out);
	fputs(";\n", out);
}

void ctf_put_metadata(const struct cairn_profile *p, size_t type, const char *title,
		      int64_t start_ns, FILE *out)
{
	const struct cairn_profile_type *t = cairn_profile_type(p, type);
	struct cairn_profile_run run = cairn_profile_run(p);

	ctf_put_types(address, out);
	fputs("env {\n", out);
	put_env("tracer_name", "cairn", out);
	put_env("title", title, out);
	put_env("value", t->type, out);
	put_env("unit", t->unit, out);
	put_env("period_of", run.each.type, out);
	fprintf(out, "\tduration_ns = %" PRId64 ";\n\tperiod = %" PRId64 ";\n};\n\n",
		run.duration_ns, run.period);
	ctf_put_clock("since 1970", start_ns > 0 ? start_ns : 0, out);
	ctf_put_stream("", "address_t _ip;", out);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		fprintf(out,
			"event {\n\tname = \"%s\";\n\tid = %d;\n\tstream_id = 0;\n"
			"\tfields := struct { %s };\n};\n\n",
			events[i].name, events[i].id, events[i].fields);
}
