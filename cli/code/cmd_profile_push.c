/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn profile push: profiles of files to a server, and what earlier pushes left. */
#include <stdlib.h>

#include "cmd.h"
#include "push.h"

struct push_values {
	struct push_wish wish;
	bool json;
};

static const struct opt opts[] = {
	PUSH_OPTS(struct push_values, wish),
	{0, "json", OPT_FLAG, NULL, offsetof(struct push_values, json),
	 "one JSON object per batch, then a summary"},
	{0},
};

static const struct example examples[] = {
	{"cairn profile push http://localhost:4040 cpu.pb.gz --label service_name=shop",
	 "to a Pyroscope"},
	{"cairn profile push http://localhost:7070 --as parca cpu.pb.gz", "to a Parca"},
	{"cairn profile push http://localhost:4318 --otlp cpu.pb.gz",
	 "to a collector of OpenTelemetry"},
	{"cairn profile push https://profiles.example.com heap.pb.gz --header @token",
	 "with a line \"Authorization: Bearer ...\" from the file token"},
	{"cairn profile push http://localhost:4040", "only what earlier pushes could not send"},
	{0},
};

static int add_file(struct push *p, const char *path)
{
	struct cairn_profile *profile;
	struct cairn_err err = {0};
	int r = cairn_profile_open(path, &profile, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	r = push_add(p, profile, path, NULL);
	cairn_profile_close(profile);
	return r;
}

/* A file that cannot be read costs the others nothing. */
static int add_and_send(struct push *p, const struct operands *operands)
{
	int status = STATUS_YES, sent;

	for (size_t i = 1; i < operands->n; i++) {
		int one = add_file(p, operands->items[i]);

		status = status == STATUS_YES ? one : status;
	}
	sent = push_send(p);
	push_report(p, stdout);
	return sent == STATUS_YES ? status : sent;
}

static int run(void *v, const struct operands *operands)
{
	struct push_values *values = v;
	struct push push;
	int status;

	values->wish.url = operands->items[0];
	status = push_open(&values->wish, &push);
	push.json = values->json;
	if (status == STATUS_YES)
		status = add_and_send(&push, operands);
	push_close(&push);
	return status;
}

const struct cmd cmd_profile_push = {
	.name = "profile push",
	.summary = "send profiles to Pyroscope, Parca or OTLP, and keep what they have not taken",
	.operands = "URL [FILE...]",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct push_values),
	.run = run,
};
