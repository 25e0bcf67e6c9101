/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * insn_uprobe() says what the running kernel does
 *
 * A file is filled with one instruction per 16-byte slot: every opcode of every map with a choice
 * of prefixes and operand forms. A uprobe_multi link is attached to all slots while nobody has the
 * file mapped, which succeeds for anything. Then the file is mapped executable into this process,
 * and the kernel puts its int3 where it can. A slot whose first byte became 0xcc can be probed; one
 * that stayed is a probe that was attached and never fires. A million slots take 3 s.
 *
 * A sample is attached once more, one by one and with the file mapped, where the kernel does report
 * an error: the error must come exactly for the slots that stayed.
 *
 * Slots that do not decode are not compared: the kernel's decoder accepts some of them, and we call
 * them not probeable on purpose.
 *
 * Needs root, x86-64 and uprobe_multi (Linux 6.6); exits with 77 and the reason otherwise. With an
 * argument, every disagreement is printed, not only the first 40.
 */
#include <stdbool.h>

#include "base/vec.h"
#include "insn/insn.h"
#include "live/code_file.h"
#include "live/uprobe_multi.h"

/* One that is attached alone, and refused or ended, takes 80 ms: the sample is small. */
enum { SLOT = 16, BATCH = 1 << 16, SHOWN = 40, SAMPLE = 80 };

struct slot {
	uint8_t bytes[SLOT];
};

static struct {
	struct slot *p;
	size_t n, cap;
} slots;

static bool show_all;

static int skip(const char *why)
{
	puts(why);
	return 77;
}

/* ---- cases ---- */

struct builder {
	struct slot s;
	size_t n;
};

static void put(struct builder *b, uint8_t byte)
{
	if (b->n < SLOT)
		b->s.bytes[b->n++] = byte;
}

static void put_all(struct builder *b, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(b, (uint8_t)bytes[i]);
}

/* Displacement and immediate bytes that are neither zero nor an opcode that matters. */
static void finish(struct builder *b)
{
	while (b->n < SLOT)
		put(b, 0x11);
	if (!VEC_ADD(&slots, b->s))
		abort();
}

struct bytes {
	const char *p;
	size_t n;
};
#define B(s)                                                                                       \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* (%rax), %rax, disp8(%rsp), disp32(%rip) with every reg field for the first two. */
static size_t modrms(bool all, uint8_t *ret)
{
	size_t n = 0;
	for (unsigned int reg = 0; reg < 8; reg++) {
		if (!all && reg != 0 && reg != 2)
			continue;
		ret[n++] = (uint8_t)(reg << 3);
		ret[n++] = (uint8_t)(0xc0 | reg << 3);
	}
	ret[n++] = 0x44;
	ret[n++] = 0x0d;
	return n;
}

static void with_modrms(const struct builder *base, bool all)
{
	uint8_t modrm[20];
	size_t n = modrms(all, modrm);
	for (size_t i = 0; i < n; i++) {
		struct builder b = *base;
		put(&b, modrm[i]);
		if (modrm[i] == 0x44)
			put(&b, 0x24);
		finish(&b);
	}
}

static void legacy_maps(struct bytes prefix, bool all)
{
	static const struct bytes escapes[] = {B(""), B("\x0f"), B("\x0f\x38"), B("\x0f\x3a")};
	for (size_t e = 0; e < COUNT(escapes); e++)
		for (unsigned int op = 0; op < 256; op++) {
			struct builder b = {0};
			put_all(&b, prefix.p, prefix.n);
			put_all(&b, escapes[e].p, escapes[e].n);
			put(&b, (uint8_t)op);
			with_modrms(&b, all);
		}
}

static void legacy_cases(void)
{
	/* clang-format off */
	static const struct bytes full[] = {
		B(""),	   B("\x66"),	  B("\xf2"),	 B("\xf3"),	B("\x48"),
		B("\x41"), B("\x66\x48"), B("\xf2\x48"), B("\xf3\x48"), B("\x4d"),
	};
	/* clang-format on */
	static const struct bytes some[] = {
		B("\xf0"),
		B("\x26"),
		B("\x2e"),
		B("\x36"),
		B("\x3e"),
		B("\x64"),
		B("\x65"),
		B("\x67"),
		B("\xf0\x48"),
		B("\x2e\x48"),
		B("\x66\xf0"),
		B("\x66\x2e"),
		B("\xf2\xf0"),
		B("\xf3\x3e"),
		B("\x66\xf3"),
		B("\x66\x66"),
		B("\x66\x2e\x66"),
		B("\x64\x48"),
		B("\x4f"),
		B("\x40"),
		B("\xf2\x3e"),
		B("\x67\x66"),
		B("\x66\x41"),
		B("\xf3\x41"),
		B("\x64\x67\x66\x48"),
	};
	for (size_t i = 0; i < COUNT(full); i++)
		legacy_maps(full[i], true);
	for (size_t i = 0; i < COUNT(some); i++)
		legacy_maps(some[i], false);
}

static void vex_cases(void)
{
	for (unsigned int lpp = 0; lpp < 8; lpp++)
		for (unsigned int vvvv = 0; vvvv < 2; vvvv++)
			for (unsigned int op = 0; op < 256; op++) {
				struct builder b = {0};
				put(&b, 0xc5);
				put(&b, (uint8_t)(0x80 | (vvvv ? 0x78 : 0x50) | lpp));
				put(&b, (uint8_t)op);
				with_modrms(&b, true);
			}
	for (unsigned int map = 1; map < 8; map++)
		for (unsigned int wlpp = 0; wlpp < 16; wlpp++)
			for (unsigned int vvvv = 0; vvvv < 2; vvvv++)
				for (unsigned int op = 0; op < 256; op++) {
					struct builder b = {0};
					put(&b, 0xc4);
					put(&b, (uint8_t)(0xe0 | map));
					put(&b, (uint8_t)((wlpp & 8) << 4 | (vvvv ? 0x78 : 0x50) |
							  (wlpp & 7)));
					put(&b, (uint8_t)op);
					with_modrms(&b, false);
				}
}

static void evex_cases(void)
{
	for (unsigned int map = 1; map < 7; map++)
		for (unsigned int wpp = 0; wpp < 8; wpp++)
			for (unsigned int ll = 0; ll < 3; ll++)
				for (unsigned int op = 0; op < 256; op++) {
					struct builder b = {0};
					put(&b, 0x62);
					put(&b, (uint8_t)(0xf0 | map));
					put(&b, (uint8_t)((wpp & 4) << 5 | 0x7c | (wpp & 3)));
					put(&b, (uint8_t)(0x08 | ll << 5 | (op & 1)));
					put(&b, (uint8_t)op);
					with_modrms(&b, false);
				}
}

static void xop_cases(void)
{
	for (unsigned int map = 8; map < 11; map++)
		for (unsigned int wlpp = 0; wlpp < 16; wlpp += 4)
			for (unsigned int op = 0; op < 256; op++) {
				struct builder b = {0};
				put(&b, 0x8f);
				put(&b, (uint8_t)(0xe0 | map));
				put(&b, (uint8_t)((wlpp & 8) << 4 | 0x78 | (wlpp & 7)));
				put(&b, (uint8_t)op);
				with_modrms(&b, false);
			}
}

/* Forms that the loops above do not make. */
static void single_cases(void)
{
	static const struct bytes cases[] = {
		B("\x0f\x1f\x00"),
		B("\x0f\x1f\x40\x00"),
		B("\x0f\x1f\x44\x00\x00"),
		B("\x66\x0f\x1f\x44\x00\x00"),
		B("\x0f\x1f\x80\x00\x00\x00\x00"),
		B("\x0f\x1f\x84\x00\x00\x00\x00\x00"),
		B("\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"),
		B("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"),
		B("\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"),
		B("\xe9\x00\x00\x00\x00"),
		B("\xeb\x00"),
		B("\x66\xe9\x00\x00\x00\x00"),
		B("\x66\xeb\x00"),
		B("\x66\xe8\x00\x00\x00\x00"),
		B("\x48\x8d\x40\x00"),
		B("\x48\x8d\x64\x24\x00"),
		B("\x48\x8d\x80\x00\x00\x00\x00"),
		B("\x3e\xff\xe0"),
		B("\xf2\xff\xe0"),
		B("\x2e\x74\x05"),
		B("\x3e\x75\x05"),
		B("\xf2\x74\x05"),
		B("\xf3\xc3"),
		B("\xf3\x0f\x1e\xfa"),
		B("\xf3\x0f\x1e\xfb"),
		B("\xcd\x03"),
		B("\xcd\x80"),
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct builder b = {0};
		put_all(&b, cases[i].p, cases[i].n);
		finish(&b);
	}
}

static int slot_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct slot));
}

static void drop_duplicates(void)
{
	qsort(slots.p, slots.n, sizeof(*slots.p), slot_order);
	size_t n = 0;
	for (size_t i = 0; i < slots.n; i++)
		if (!n || slot_order(&slots.p[i], &slots.p[n - 1]))
			slots.p[n++] = slots.p[i];
	slots.n = n;
}

/* ---- what the kernel did ---- */

static bool decodes(const struct slot *s)
{
	struct insn insn;
	return insn_decode(s->bytes, SLOT, 0, &insn);
}

/* A REX prefix that another prefix follows; we call it not probeable, the kernel misreads it. */
static bool has_stray_rex(const struct slot *s)
{
	size_t i = 0;
	while (i < SLOT && s->bytes[i] &&
	       strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", s->bytes[i]))
		i++;
	if (i + 1 >= SLOT || (s->bytes[i] & 0xf0) != 0x40)
		return false;
	uint8_t next = s->bytes[i + 1];
	return (next & 0xf0) == 0x40 ||
	       (next && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", next));
}

static bool we_say_probeable(const struct slot *s)
{
	switch (insn_uprobe(s->bytes, SLOT).hazard) {
	case CAIRN_HAZARD_NONE:
	case CAIRN_HAZARD_NOP5_RED_ZONE:
	case CAIRN_HAZARD_MISEMULATED:
	case CAIRN_HAZARD_SEES_STEP:
	case CAIRN_HAZARD_REPEATS:
		return true;
	default:
		return false;
	}
}

static void print_slot(const struct slot *s, bool kernel)
{
	struct insn insn = {.len = 0};
	insn_decode(s->bytes, SLOT, 0, &insn);
	printf("  kernel %s, we say %-15s:", kernel ? "probes" : "refuses",
	       cairn_hazard_id(insn_uprobe(s->bytes, SLOT).hazard));
	for (size_t i = 0; i < SLOT && i < insn.len; i++)
		printf(" %02x", s->bytes[i]);
	puts("");
}

struct verdicts {
	size_t compared, undecodable, kernel_takes_undecodable, probed, wrong;
};

static void compare(const uint8_t *mapped, size_t first, size_t n, bool *probed, struct verdicts *v)
{
	for (size_t i = 0; i < n; i++) {
		const struct slot *s = &slots.p[first + i];
		bool is_int3 = s->bytes[0] == 0xcc;
		bool kernel = !is_int3 && mapped[i * SLOT] == 0xcc;
		probed[first + i] = kernel;
		if (!decodes(s) || has_stray_rex(s)) {
			v->undecodable++;
			v->kernel_takes_undecodable += kernel;
			continue;
		}
		v->compared++;
		v->probed += kernel;
		if (kernel == we_say_probeable(s))
			continue;
		if (v->wrong++ < (show_all ? SIZE_MAX : SHOWN))
			print_slot(s, kernel);
	}
}

/* Attach to slots [first, first + n) with the file unmapped, map it, look. */
static bool run_batch(int prog, size_t first, size_t n, bool *probed, struct verdicts *v)
{
	struct code_file f = code_file_new(slots.p[first].bytes, n * SLOT);
	uint64_t *offs = calloc(n, sizeof(*offs));
	if (!offs)
		abort();
	for (size_t i = 0; i < n; i++)
		offs[i] = i * SLOT;
	int link = uprobe_multi_attach(prog, f.path, offs, n);
	if (link >= 0) {
		code_file_map(&f);
		compare(f.map, first, n, probed, v);
		close(link);
	} else {
		printf("attaching the batch at %zu: %s\n", first, strerror(-link));
	}
	code_file_free(&f);
	free(offs);
	return link >= 0;
}

/* ---- the same, one by one, with the file mapped ---- */

/* The next slot from @i on that may be in the sample. */
static size_t next_valid(size_t i)
{
	/* An int3 of the program's own cannot be told from an installed one. */
	while (i < slots.n && (!decodes(&slots.p[i]) || slots.p[i].bytes[0] == 0xcc))
		i++;
	return i;
}

static bool sample_agrees(const bool *probed)
{
	static uint8_t code[SAMPLE * SLOT];
	size_t slot[SAMPLE], n = 0, refused = 0, wrong = 0;
	for (size_t i = 0; i < SAMPLE; i++) {
		slot[n] = next_valid(i * (slots.n / SAMPLE));
		if (slot[n] < slots.n)
			memcpy(code + n * SLOT, slots.p[slot[n]].bytes, SLOT);
		n += slot[n] < slots.n;
	}
	struct code_file f = code_file_new(code, n * SLOT);
	code_file_map(&f);
	for (size_t i = 0; i < n; i++) {
		int fd = perf_uprobe(f.path, i * SLOT, 0);
		refused += fd < 0;
		if ((fd >= 0) != probed[slot[i]]) {
			printf("  attached when mapped: %s\n", fd < 0 ? strerror(-fd) : "ok");
			print_slot(&slots.p[slot[i]], probed[slot[i]]);
			wrong++;
		}
		if (fd >= 0)
			close(fd);
	}
	code_file_free(&f);
	printf("%zu attached one by one with the file mapped: %zu refused\n", n, refused);
	return wrong == 0 && refused > 0 && refused < n;
}

static void make_cases(void)
{
	legacy_cases();
	vex_cases();
	evex_cases();
	xop_cases();
	single_cases();
	drop_duplicates();
}

int main(int argc, char **argv)
{
	if (geteuid() != 0)
		return skip("uprobes need root");
	int prog = uprobe_multi_prog();
	if (prog < 0)
		return skip("the kernel does not load a uprobe_multi program");
	show_all = argc > 1;
	make_cases();
	bool *probed = calloc(slots.n, 1);
	struct verdicts v = {0};
	bool ok = probed != NULL;
	for (size_t i = 0; ok && i < slots.n; i += BATCH)
		ok = run_batch(prog, i, slots.n - i < BATCH ? slots.n - i : BATCH, probed, &v);
	printf("%zu encodings: %zu probed, %zu refused; %zu disagreements\n", v.compared, v.probed,
	       v.compared - v.probed, v.wrong);
	printf("%zu more are no valid instructions; the kernel probes %zu of them\n", v.undecodable,
	       v.kernel_takes_undecodable);
	bool rules_hold = ok && v.wrong == 0 && v.compared > 100000;
	printf("%s the_kernel_probes_exactly_what_we_say\n", rules_hold ? "ok" : "not ok");
	bool same = ok && sample_agrees(probed);
	printf("%s attach_errors_when_mapped_are_the_probes_that_never_fire\n",
	       same ? "ok" : "not ok");
	free(probed);
	VEC_FREE(&slots);
	return !(rules_hold && same);
}
