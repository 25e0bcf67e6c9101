/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of 276 bytes to JSON, per second and core
 *
 *	bench_decode [EVENTS]
 *
 * struct event { u32 pid; char filename[256]; char comm[16]; }, with file names as they are: 10 to
 * 60 bytes, and with some that fill their array. User time of this process; best of 5 rounds.
 * bench/decode.py compares with bpftool on a map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cairn/decode.h>
#include <cairn/source.h>

enum { ROUNDS = 5, KINDS = 1024, EVENT_BYTES = 276 };

static const char source[] =
	"struct event { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };";

static double user_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6;
}

static int count_bytes(void *ctx, const char *text, size_t n)
{
	*(uint64_t *)ctx += n;
	return 0;
}

/* A file name of @n bytes in each event. */
static void make_events(uint8_t (*events)[EVENT_BYTES], unsigned int shortest, unsigned int longest)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		uint32_t pid = (uint32_t)random() % 4194304;
		unsigned int n = shortest + (unsigned int)random() % (longest - shortest + 1);

		memset(events[i], 0, EVENT_BYTES);
		memcpy(events[i], &pid, sizeof(pid));
		for (unsigned int k = 0; k < n; k++)
			events[i][4 + k] = (uint8_t) "/usr/lib/x86_64-linux-gnu_"[random() % 26];
		strcpy((char *)events[i] + 260, "systemd-journal");
	}
}

static double best_rate(const struct cairn_decode *d, uint8_t (*events)[EVENT_BYTES],
			unsigned long n, uint64_t *ret_bytes)
{
	static char buf[1 << 16];
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t bytes = 0;
		struct cairn_text_out out = {
			.buf = buf, .size = sizeof(buf), .flush = count_bytes, .ctx = &bytes};
		double start = user_seconds();
		for (unsigned long i = 0; i < n; i++) {
			cairn_decode_run(d, events[i % KINDS], EVENT_BYTES, &out);
			cairn_text_put(&out, "\n", 1);
		}
		double rate = (double)n / (user_seconds() - start);
		best = rate > best ? rate : best;
		*ret_bytes = bytes + out.n;
	}
	return best;
}

int main(int argc, char **argv)
{
	static uint8_t events[KINDS][EVENT_BYTES];
	static const struct {
		const char *what;
		unsigned int shortest, longest;
	} cases[] = {{"names of 10 to 60 bytes", 10, 60}, {"names of 255 bytes", 255, 255}};
	struct cairn_value_opts opts = {.size = sizeof(opts), .style = CAIRN_VALUE_JSON};
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000000;
	struct cairn_err err = {0};
	struct cairn_source_list found = {0};
	struct cairn_source *types;
	struct cairn_decode *d;

	if (cairn_source_parse(source, strlen(source), "event.h", cairn_abi_find("bpf"), &types,
			       &err) < 0 ||
	    cairn_source_select(types, "struct event", &found, &err) != 1 ||
	    cairn_decode_new(cairn_source_types(types), found.ids[0], &opts, &d, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes;
		make_events(events, cases[i].shortest, cases[i].longest);
		double rate = best_rate(d, events, n, &bytes);
		printf("struct event of 276 bytes to JSON, %s: %.2f million per second and core "
		       "(%.0f MB/s out)\n",
		       cases[i].what, rate / 1e6, (double)bytes / (double)n * rate / 1e6);
	}
	cairn_decode_free(d);
	free(found.ids);
	cairn_source_close(types);
	return 0;
}
