/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn decode: bytes to values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"

#define OFF(member) offsetof(struct decode_values, member)

static const struct opt opts[] = {
	{'f', "format", OPT_TEXT, "raw|hex|json", OFF(format),
	 "records one after the other, one per line in hexadecimal, or in JSON objects, one per "
	 "line"},
	{0, "field", OPT_TEXT, "NAME", OFF(field),
	 "member of the JSON objects that has the bytes; otherwise data"},
	{0, "ring", OPT_FLAG, NULL, OFF(ring),
	 "records of a ring buffer: as long as the type, which is usual"},
	{0, "perf", OPT_FLAG, NULL, OFF(perf),
	 "records of a perf buffer: up to 7 bytes longer than the type"},
	{0, "size", OPT_COUNT, "BYTES", OFF(record_size),
	 "distance of raw records; otherwise the type's size"},
	{'m', "map", OPT_TEXT, "MAP", OFF(map),
	 "the entries of a map of a loaded BPF program, by its number or name, instead of INPUT"},
	{0, "consume", OPT_FLAG, NULL, OFF(consume),
	 "take the entries out of the ring buffer, queue or stack; their own reader will not see "
	 "them"},
	{'d', "discriminate", OPT_LIST, "UNION=ARM[:MEMBER=VALUE]", OFF(choices),
	 "show only this arm of a union, when MEMBER beside the union has VALUE; =ARM for unions "
	 "without a name; may be repeated"},
	{0, "json", OPT_FLAG, NULL, OFF(json), "one JSON value per line"},
	{0, "hex", OPT_FLAG, NULL, OFF(hex), "integers in hexadecimal"},
	{0, "padding", OPT_FLAG, NULL, OFF(padding), "show the bytes that belong to no member"},
	{0, "raw", OPT_FLAG, NULL, OFF(raw),
	 "show strings and vectors of C++, Rust and Go as the structs that they are"},
	{'n', "max-elems", OPT_COUNT, "N", OFF(max_elems), "at most N elements of each array"},
	{0, "abi", OPT_TEXT, "ABI", OFF(file.abi),
	 "lay C declarations out for this ABI, and read its byte order"},
	LAYOUT_OPTS_FILE(OFF(file)),
	{0},
};

static const struct example examples[] = {
	{"cairn decode prog.bpf.o event records.bin",
	 "records of a file, by the types of a BPF program"},
	{"cairn decode event.h event --abi s390x --format hex --json <lines",
	 "written on another machine"},
	{"cairn decode --map counts", "the entries of a map, by its own BTF"},
	{"cairn decode --map events 'struct event' --json",
	 "the records in a ring buffer, without taking them out"},
	{"cairn decode pkt.h packet --discriminate 'l4=tcp:proto=6' --discriminate "
	 "'l4=udp:proto=17' dump",
	 "one arm of a union, chosen by another member"},
	{0},
};

static int decode_file(const struct decode_values *values, const struct cairn_source *source,
		       uint32_t id, const char *input)
{
	struct decode_sink sink = {.values = values};
	const struct cairn_types *types = cairn_source_types(source);
	int status = decode_plan(values, types, id, source, &sink.decode);

	if (status)
		return status;
	if (!cairn_types_size(types, id) && !cairn_decode_is_flexible(sink.decode)) {
		cairn_decode_free(sink.decode);
		return fail(STATUS_NO, "the type has no bytes");
	}
	decode_out_init(&sink.out);
	status = decode_input(&sink, input);
	decode_out_finish(&sink.out);
	cairn_decode_free(sink.decode);
	return status;
}

/* Structs of one name that are different, in units of a program; @list is not empty. */
static int only_one(const struct cairn_types *types, const struct cairn_source_list *list,
		    const char *pattern)
{
	for (size_t i = 1; i < list->n; i++)
		if (cairn_types_size(types, list->ids[i]) !=
			    cairn_types_size(types, list->ids[0]) ||
		    strpbrk(pattern, "*?["))
			return fail(STATUS_USAGE, "%zu types are named %s; name one", list->n,
				    pattern);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	const struct decode_values *values = v;
	struct layout_source source;
	struct cairn_source_list list = {0};
	const struct cairn_abi *abi = values->file.abi ? cairn_abi_find(values->file.abi) : NULL;

	if (values->ring && values->perf)
		return fail(STATUS_USAGE, "--ring and --perf are two kinds of buffers");
	if (values->consume && !values->map)
		return fail(STATUS_USAGE, "--consume is for --map");
	if (values->map)
		return decode_map(values, operands);
	if (operands->n < 2 || operands->n > 3)
		return fail(STATUS_USAGE, "name the file that has the types, and the type: cairn "
					  "decode FILE TYPE [INPUT]");
	if (values->file.abi && !abi)
		return fail(STATUS_USAGE, "no such ABI is known: %s", values->file.abi);
	int status = layout_open(operands->items[0], abi, &values->file, &source);
	if (!status)
		status = layout_select_value(source.source, operands->items[1], &list);
	if (!status)
		status = only_one(cairn_source_types(source.source), &list, operands->items[1]);
	if (!status)
		status = decode_file(values, source.source, list.ids[0],
				     operands->n > 2 ? operands->items[2] : "-");
	free(list.ids);
	layout_close(&source);
	return status;
}

const struct cmd cmd_decode = {
	.name = "decode",
	.summary = "bytes to values: records, maps and ring buffers of BPF programs",
	.operands = "[FILE] [TYPE] [INPUT]",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct decode_values),
	.run = run,
};
