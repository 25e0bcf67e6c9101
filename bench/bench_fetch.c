/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table-driven fetching against BPF instructions generated per place
 *
 *	bench_fetch [CALLS]
 *
 * The kernel side of a hit can interpret a fetch program from a table, as it does, or each program
 * can be compiled to BPF instructions. This measures both for the same two probes, and what loading
 * costs for many different programs:
 *
 *	two integers        two registers to the record
 *	pointer chain       an integer, and p->next->x: three reads of memory
 *
 * The generated program is written by hand here as a generator would write it: no loop, no table,
 * the same identification, name, record and wake-up as bpf/trace.bpf.c. docs/fetch.md has the
 * figures and the decision.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cairn/trace.h>
#include <linux/bpf.h>

#include "target.h"
#include "trace/attach/link.h"

#define CALLS_DEFAULT 200000
#define ROUNDS        7
#define LOADS         200
#define SKIPPED       77
#define RECORD_BYTES  64

static const char source[] =
	TARGET_SOURCE("struct node { int x; struct node *next; };",
		      "void hit(int a, struct node *p) { sink = a; }",
		      "struct node two = { 2, 0 }, one = { 1, &two };", "hit(i, &one)");

/* ---- the generated program ---- */

#define INSN(c, d, s, o, i)                                                                        \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV(d, s)            INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOVI(d, i)           INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADDI(d, i)           INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define SHRI(d, i)           INSN(BPF_ALU64 | BPF_RSH | BPF_K, d, 0, 0, i)
#define LOAD(d, s, o)        INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE(size, d, s, o) INSN(BPF_STX | BPF_MEM | (size), d, s, o, 0)
#define CALL(f)              INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT()               INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

struct code {
	struct bpf_insn p[128];
	int n;
};

static void emit(struct code *c, struct bpf_insn insn)
{
	c->p[c->n++] = insn;
}

static void emit_map(struct code *c, int reg, int fd)
{
	emit(c, INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd));
	emit(c, INSN(0, 0, 0, 0, 0));
}

/*
 * r7 = *(r7 + off), through the stack; a fault leaves 0, as nothing checks it here: cheaper than
 * the real thing.
 */
static void emit_read(struct code *c, int off, int size)
{
	emit(c, MOV(BPF_REG_1, BPF_REG_10));
	emit(c, ADDI(BPF_REG_1, -8));
	emit(c, MOVI(BPF_REG_2, size));
	emit(c, MOV(BPF_REG_3, BPF_REG_7));
	emit(c, ADDI(BPF_REG_3, off));
	emit(c, CALL(BPF_FUNC_probe_read_user));
	emit(c, LOAD(BPF_REG_7, BPF_REG_10, -8));
}

/* Where the running kernel keeps a thread's name; -1 when its BTF does not tell. */
static int comm_offset(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT) : -1;
	int off = -1;

	if (id > 0) {
		const struct btf_type *t = btf__type_by_id(btf, (__u32)id);

		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), "comm"))
				off = (int)btf_member_bit_offset(t, i) / 8;
	}
	btf__free(btf);
	return off;
}

/* The name read from the task, as bpf/trace.bpf.c does; r8 is the record. */
static void emit_comm(struct code *c, int comm)
{
	emit(c, CALL(BPF_FUNC_get_current_task_btf));
	for (int word = 0; word < 16; word += 8) {
		emit(c, LOAD(BPF_REG_1, BPF_REG_0, comm + word));
		emit(c, STORE(BPF_DW, BPF_REG_8, BPF_REG_1, 24 + word));
	}
}

/* Offsets in the kernel's registers: rdi and rsi of struct pt_regs on x86-64. */
enum { PT_RSI = 13 * 8, PT_RDI = 14 * 8 };

static int generate(struct code *c, int ring, int comm, bool chain, int salt)
{
	c->n = 0;
	emit(c, MOV(BPF_REG_6, BPF_REG_1));
	emit(c, CALL(BPF_FUNC_get_current_pid_tgid));
	emit(c, MOV(BPF_REG_9, BPF_REG_0));
	emit(c, MOV(BPF_REG_1, BPF_REG_6));
	emit(c, CALL(BPF_FUNC_get_attach_cookie));
	emit(c, STORE(BPF_DW, BPF_REG_10, BPF_REG_0, -16));
	emit_map(c, BPF_REG_1, ring);
	emit(c, MOVI(BPF_REG_2, RECORD_BYTES));
	emit(c, MOVI(BPF_REG_3, 0));
	emit(c, CALL(BPF_FUNC_ringbuf_reserve));
	emit(c, INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 2, 0));
	emit(c, MOVI(BPF_REG_0, 0));
	emit(c, EXIT());
	emit(c, MOV(BPF_REG_8, BPF_REG_0));
	emit(c, CALL(BPF_FUNC_ktime_get_ns));
	emit(c, STORE(BPF_DW, BPF_REG_8, BPF_REG_0, 0));
	emit(c, STORE(BPF_DW, BPF_REG_8, BPF_REG_9, 8));
	emit(c, LOAD(BPF_REG_1, BPF_REG_10, -16));
	emit(c, STORE(BPF_W, BPF_REG_8, BPF_REG_1, 16));
	emit_comm(c, comm);
	emit(c, LOAD(BPF_REG_1, BPF_REG_6, PT_RDI));
	emit(c, STORE(BPF_W, BPF_REG_8, BPF_REG_1, 40));
	emit(c, LOAD(BPF_REG_7, BPF_REG_6, PT_RSI));
	if (chain) {
		emit_read(c, 8, 8);
		emit_read(c, 0, 4);
	}
	emit(c, STORE(BPF_DW, BPF_REG_8, BPF_REG_7, 48));
	emit(c, MOVI(BPF_REG_7, salt)); /* makes each program a different one */
	emit_map(c, BPF_REG_1, ring);
	emit(c, MOVI(BPF_REG_2, BPF_RB_AVAIL_DATA));
	emit(c, CALL(BPF_FUNC_ringbuf_query));
	emit(c, MOVI(BPF_REG_2, BPF_RB_NO_WAKEUP));
	emit(c, SHRI(BPF_REG_0, 20));
	emit(c, INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0));
	emit(c, MOVI(BPF_REG_2, BPF_RB_FORCE_WAKEUP));
	emit(c, MOV(BPF_REG_1, BPF_REG_8));
	emit(c, CALL(BPF_FUNC_ringbuf_submit));
	emit(c, MOVI(BPF_REG_0, 0));
	emit(c, EXIT());
	return c->n;
}

static int load(int ring, int comm, bool chain, int salt)
{
	struct code c;
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)LINK_UPROBE_MULTI);

	generate(&c, ring, comm, chain, salt);
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "generated", "Dual BSD/GPL", c.p, (size_t)c.n,
			     &opts);
}

/* ---- both, on the same function ---- */

static int ignore_record(void *ctx, void *data, size_t size)
{
	return 0;
}

static int ignore_event(void *ctx, const struct cairn_event *event)
{
	return 0;
}

/* A reader in its own process, as in use. */
static pid_t read_generated(int ring)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	struct ring_buffer *rb = ring_buffer__new(ring, ignore_record, NULL, NULL);
	while (rb) {
		ring_buffer__consume(rb);
		ring_buffer__poll(rb, 10);
	}
	_exit(1);
}

static double measure_generated(struct target *t, uint64_t offset, int comm, bool chain)
{
	int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, 8 << 20, NULL);
	int prog = load(ring, comm, chain, 0);
	uint64_t cookie = 0;
	const struct link_places place = {.offsets = &offset, .cookies = &cookie, .n = 1};
	int link = link_multi(prog, t->path, &place, t->pid);

	if (link < 0) {
		printf("generated: %s\n", strerror(-link));
		return 0;
	}
	pid_t reader = read_generated(ring);
	double ns = target_measure(t);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	close(link);
	close(prog);
	close(ring);
	return ns;
}

static double measure_table(struct target *t, bool chain, uint64_t *ret_offset)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = t->pid};
	struct cairn_err err = {0};
	struct cairn_trace *trace;

	if (cairn_trace_open(&opts, &trace, &err) < 0 ||
	    cairn_trace_add(trace, chain ? "hit(a, p->next->x)" : "hit(a, p)", &err) < 0 ||
	    cairn_trace_attach(trace, &err) < 0) {
		printf("table: %s\n", err.msg);
		return 0;
	}
	*ret_offset = cairn_trace_site(trace, 0)->off.v;
	pid_t reader = fork();
	if (!reader)
		for (;;)
			cairn_trace_poll(trace, 1000, ignore_event, NULL, NULL);
	double ns = target_measure(t);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	cairn_trace_close(trace);
	return ns;
}

static double loading_ms(int comm)
{
	struct timespec a, b;
	int fds[LOADS], ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, 1 << 20, NULL);

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < LOADS; i++)
		fds[i] = load(ring, comm, true, i);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (int i = 0; i < LOADS; i++)
		close(fds[i]);
	close(ring);
	return ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) /
	       LOADS;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"two integers", "pointer chain"};
	struct target t;
	char calls[20];

	if (geteuid()) {
		puts("tracing needs root");
		return SKIPPED;
	}
	int comm = comm_offset();
	if (comm < 0) {
		puts("the kernel has no BTF that tells where a thread's name is");
		return SKIPPED;
	}
	snprintf(calls, sizeof(calls), "%d", argc > 1 ? atoi(argv[1]) : CALLS_DEFAULT);
	/* The first answer also says that it has been exec'd. */
	if (target_start(&t, source, calls) < 0 || !target_measure(&t))
		return 1;
	for (int chain = 0; chain < 2; chain++) {
		double table = 1e9, generated = 1e9;
		uint64_t offset = 0;
		for (int i = 0; i < ROUNDS; i++) {
			double now = measure_table(&t, chain, &offset);
			table = now && now < table ? now : table;
			now = measure_generated(&t, offset, comm, chain);
			generated = now && now < generated ? now : generated;
		}
		printf("%s: table %.0f ns per hit, generated %.0f ns, difference %.0f ns\n",
		       names[chain], table, generated, table - generated);
	}
	printf("loading one generated program: %.2f ms\n", loading_ms(comm));
	target_end(&t);
	return 0;
}
