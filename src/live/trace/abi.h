/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The messages between the tracer and its BPF program
 *
 * Included by both sides; no other header is needed before it but the fixed-width types. Both sides
 * are always of one build, so nothing here is versioned.
 *
 * A fetch program is a straight line of operations over one accumulator and a register file:
 *
 *	file[0..15]   general registers by DWARF number: rax rdx rcx rbx rsi rdi rbp rsp r8 ...
 *	file[16]      rip: the address of the probed instruction
 *	file[17..20]  slots of a location (CAIRN_LOC_SAVE)
 *	file[21..31]  temporaries of an expression
 *	file[32..39]  numbers of the entry that the return needs (below)
 *
 * An operation, 16 bytes:
 *
 *	OFFSET SIZE  MEANING
 *	0      1     code
 *	1      1     reg: index into the file
 *	2      1     size: bytes, or for COPY, STRING and BYTES the binary logarithm of bytes
 *	3      1     flags: FETCH_F_*
 *	4      2     out: offset in the record, in bytes
 *	6      1     value: number of the value this is for; of a condition FETCH_NO_VALUE
 *	7      1     jump: operations to leave out, when memory cannot be read (of JZ and JNZ: when
 *	             the jump is taken)
 *	8      8     imm
 *
 * "int n at %rdi, char *s at *(%rsp+8), if n > 3" is
 *
 *	reg rdi; sext 4; gt imm 3; filter
 *	store-reg rdi size 4 out 40 value 0
 *	reg rsp; add imm 8; load 8 value 1; string 6 out 48 value 1
 *	end
 */
#ifndef TRACE_ABI_H
#define TRACE_ABI_H

/*
 * Longest fetch program. Real probes need 2 to 40; the verifier walks every iteration of the loop.
 */
#define FETCH_OPS_MAX 128
/* A profile's program has the file on its stack, and keeps nothing. */
#ifndef FETCH_FILE
#define FETCH_FILE 64
#endif
#define FETCH_FILE_IP  16
#define FETCH_SLOT     17
#define FETCH_TEMP     21
#define FETCH_TEMPS    11
#define FETCH_KEPT     32
#define FETCH_KEPT_MAX 8

/* One bit per value in the record's mask of faults. */
#define FETCH_VALUES_MAX 32
#define FETCH_NO_VALUE   0xff

/*
 * Longest string that a condition compares with, its NUL included; its bytes are the next two
 * operations.
 */
#define FETCH_STREQ_BYTES 32

enum fetch_code {
	FETCH_END,       /* submit the record */
	FETCH_FILTER,    /* of a condition: drop the hit when acc is 0, else begin the record */
	FETCH_STORE_REG, /* record[out] = low size bytes of file[reg]; leaves acc alone */
	FETCH_REG,       /* acc = file[reg] */
	FETCH_CONST,     /* acc = imm */
	FETCH_STORE,     /* record[out] = low size bytes of acc; size 1, 2, 4, 8 */
	FETCH_LOAD,      /* acc = the size bytes of memory at acc, zero-extended; size 1 to 8 */
	FETCH_COPY,      /* record[out] = the 1 << size bytes of memory at acc + imm; keeps acc */
	/* record[out] = u16 length, flag, up to 1 << size bytes of string at acc */
	FETCH_STRING,
	/* record[out] = the first file[reg] bytes of memory at acc, at most 1 << size */
	FETCH_BYTES,
	/*
	 * acc = whether the string at acc, or with FETCH_F_COMM the thread's name, is that of the
	 * next two operations
	 */
	FETCH_STREQ,
	FETCH_KNOWN, /* acc = what the kernel knows: imm is an enum fetch_known */
	FETCH_SAVE,  /* file[reg] = acc; reg from FETCH_SLOT on */
	FETCH_JZ,    /* leave jump operations out when acc is 0 */
	FETCH_JNZ,
	FETCH_SEXT, /* acc = its low size bytes, sign-extended; size 1 to 8 */
	FETCH_ZEXT,
	FETCH_NEG,
	FETCH_NOT, /* bitwise */
	/*
	 * acc = acc OP operand: imm, or file[reg] with FETCH_F_FILE; the other way round with
	 * FETCH_F_SWAP.
	 */
	FETCH_ADD,
	FETCH_SUB,
	FETCH_MUL,
	FETCH_AND,
	FETCH_OR,
	FETCH_XOR,
	FETCH_SHL, /* by 64 or more: 0 */
	FETCH_SHR,
	FETCH_SAR, /* by 64 or more: all sign bits */
	FETCH_DIV, /* signed; by 0: like memory that cannot be read */
	FETCH_MOD,
	FETCH_UDIV,
	FETCH_UMOD,
	FETCH_EQ,
	FETCH_NE,
	FETCH_LT, /* signed */
	FETCH_LE,
	FETCH_GT,
	FETCH_GE,
	FETCH_ULT,
	FETCH_ULE,
	FETCH_UGT,
	FETCH_UGE,
	FETCH_N_CODES
};

#define FETCH_F_FILE 1
#define FETCH_F_SWAP 2
#define FETCH_F_COMM 4

enum fetch_known {
	FETCH_PID,
	FETCH_TID,
	FETCH_CPU,
	FETCH_UID,
	FETCH_CGROUP,
	FETCH_GID,
	FETCH_THREAD_POINTER, /* has no name in expressions */
	FETCH_N_KNOWN
};

struct fetch_op {
	__u8 code;
	__u8 reg;
	__u8 size;
	__u8 flags;
	__u16 out;
	__u8 value;
	__u8 jump;
	__u64 imm;
};

/* If hits of the site have a number: the program after the condition, a condition itself. */
enum trace_weight {
	TRACE_WEIGHT_NONE,
	TRACE_WEIGHT_FETCHED,     /* what its accumulator ends with */
	TRACE_WEIGHT_UNAVAILABLE, /* at this site */
};

/*
 * The entry of the cookie's site: where its program is, in operations from the start of the table.
 */
struct trace_site_entry {
	__u32 op;
	__u32 probe;
	__u8 has_condition;
	__u8 weight : 4;     /* enum trace_weight */
	__u8 is_inlined : 1; /* its caller is around it */
	/* Of the kernel: its one byte of code moves the stack pointer, so the kernel cannot unwind. */
	__u8 moves_stack : 1;
	__u8 is_short : 1; /* of aggregates: the program is in the table of short ones, too */
	__u8 is_signed;    /* of aggregates: a bit per update whose number is signed */
	__u8 returns;      /* TRACE_RETURNS_*; 0: the hit is complete at once */
	union {
		__u32 return_op;
		__u32 short_at;
	};
};

/* A string in a record: this, then the bytes. The NUL is counted in it. */
#define TRACE_STRING_CUT 0x8000

struct trace_record {
	__u64 time_ns;
	__u32 pid, tid;
	__u32 site;
	__u32 faults; /* a bit per value whose memory could not be read */
	char comm[16];
	/* Values follow, where the fetch program put them. */
};

/*
 * Stacks. A hit's is at the end of its record, or in its key: the hashes of the frames and of why
 * they end. The stack itself was sent before.
 */
enum trace_stack_kind {
	TRACE_STACKS_NONE,
	TRACE_STACKS_WHOLE,
	TRACE_STACKS_CALLER, /* the second frame alone */
};

struct trace_stack_ref {
	__u64 id[2];      /* 0: there is none, as there was no room for it */
	__u32 generation; /* of the process's mappings that the walk used */
	__u32 pad;
};

#define TRACE_EXACT_MAX  8
#define TRACE_SEEN_SLOTS 16384

/* The record of a stack; its frames follow (walk/abi.h). No event has the time 0. */
struct trace_stack {
	__u64 mark; /* 0 */
	__u64 id[2];
	__u64 time_ns;
	__u32 pid, generation;
	__u16 n;
	__u8 end; /* enum walk_end */
	__u8 n_exact;
	__u16 exact[TRACE_EXACT_MAX]; /* of the frames after the kernel's */
	__u8 n_kernel;                /* the first frames are of the kernel */
	__u8 reserved[3];
};

/*
 * The first frame of a hit in the kernel: where it is tells its site, by number. The frames of the
 * kernel after it are return addresses.
 */
#define TRACE_SITE_FRAME(site) (1ULL << 63 | (site))

/*
 * Calls. In a trace that shows calls each of them has two records, one of its entry and one of its
 * return; what is hit within it knows how deep that is. At the end of each record:
 */
enum trace_moment {
	TRACE_AT_HIT,   /* no call that is followed: an inlined copy, an instruction */
	TRACE_AT_ENTRY, /* of the record's values those that the entry has */
	TRACE_AT_RETURN,
};

struct trace_call_ref {
	__u64 entered_ns; /* of a return */
	__u32 depth;      /* calls of the thread that were in progress, and are followed */
	__u32 moment;     /* enum trace_moment */
};

/* Per probe and processor. */
struct trace_counts_entry {
	__u64 lost;
	__u64 filtered;
	__u64 undecided;
	__u64 failed; /* of aggregates: a map refused an update, though it had room */
	/* Of calls that are followed to their return: */
	__u64 entered;
	__u64 returned;
	__u64 unwound;  /* left otherwise: by longjmp() or an exception */
	__u64 too_deep; /* not followed: TRACE_DEPTH calls of the thread were in progress */
	__u64 apart;    /* not followed: on another stack, with calls in progress on the first */
	__u64 undrawn;  /* left out by sampling, before the condition */
	__u64 entries_lost; /* calls whose beginning found no room in the ring */
};

enum trace_filter {
	TRACE_FILTER_NONE,   /* every process */
	TRACE_FILTER_TGID,   /* one */
	TRACE_FILTER_FAMILY, /* those in the map */
	TRACE_FILTER_CHOSEN, /* by their cgroup or name */
};

/* Values of the map. */
enum trace_family { FAMILY_CHILD = 1, FAMILY_TRACED };

/* Hits of one processor that can be in progress: each may be preempted, or sleep. */
#define TRACE_RUNS 64

/* Sizes of records; one BPF program each. The smallest that holds the probe's values is used. */
#define TRACE_CLASSES(X) X(64) X(128) X(256) X(512) X(1024) X(2048) X(4096)
#define TRACE_N_CLASSES  7

/*
 * Returns: calls that are followed from their entry to their return
 *
 * The fetch program of the entry writes into a record that is kept. That of the return finishes it,
 * with this register file:
 *
 *	file[0], file[1]  rax, rdx
 *	file[7]           the stack pointer of the entry
 *	file[14]          the time of the entry
 *	file[16]          nanoseconds since the entry
 *	file[32..39]      what the entry's program left there
 *
 * A value that could not be read at the entry has its bit in faults. The bit FETCH_CONDITION_FAULT
 * stands for numbers that the condition needs.
 */
#define FETCH_FILE_SP         7
#define FETCH_RETURN_ENTERED  14
#define FETCH_RETURN_DURATION FETCH_FILE_IP
#define FETCH_CONDITION_FAULT 31

#define TRACE_RETURNS    1 /* the hit is the entry of a call that is followed */
#define TRACE_RETURNS_IF 2 /* the return's program begins with a condition */

/* Sizes of records, of TRACE_CLASSES, and of slots. */
#define TRACE_RETURN_CLASSES(X)           X(128) X(512) X(2048)
#define TRACE_AGGREGATE_RETURN_CLASSES(X) X(128) X(512)
#define TRACE_N_RETURN_CLASSES            3

/* Calls of a thread that are followed at a time. The kernel has 64 return probes of a thread. */
#define TRACE_DEPTH(size) ((size) > 512 ? 28 : 64)

/*
 * The same where the kernel has no memory of more than 8 KiB for a thread, but takes a map with larger
 * values (kmalloc_nolock(), Linux 7.2). 200 bytes are the kernel's own.
 */
#define TRACE_SMALL_BYTES       (8192 - 200)
#define TRACE_SMALL_DEPTH(size) ((size) > 512 ? 3 : (size) > 128 ? 13 : 36)

/* Calls of kernel functions that are followed at a time, of all threads; each in so many bytes. */
#define TRACE_KERNEL_CALLS(size) ((size) > 512 ? 4096 : 16384)
#define TRACE_KERNEL_CALL_BYTES  (2048 + 128)

/*
 * Aggregates: hits that are summed up in maps, and make no record
 *
 * The fetch program of a site writes into a slot instead of a record: first the numbers that are
 * summed up, 8 bytes each, then the key.
 *
 *	OFFSET        SIZE  MEANING
 *	0             8     number 0, extended to 64 bits
 *	8             8     number 1, and so on
 *	8 * numbers   4     probe
 *	              4     faults: a bit per value of the key whose memory could not be read
 *	              ...   $pid and the like, then values, where the plan put them
 *
 * Value i of the program is number i, and after the numbers the values of the key. The value of a
 * key in the map is an array of 64-bit cells: the hits, then the cells of each update.
 */
#define TRACE_AGGREGATE_CLASSES(X) X(64) X(128) X(256) X(512)
#define TRACE_N_AGGREGATE_CLASSES  4

#define TRACE_UPDATES_MAX 8
/* As TRACE_RUNS, of hits that are summed up. */
#define TRACE_SLOTS       8

/*
 * The first cell of an update counts the hits whose number could not be read. The others:
 *
 *	SUM    the sum of the numbers' low 32 bits, that of their high 32 bits (with their sign)
 *	MIN    the largest inverted number, so that 0 stands for none
 *	MAX    the largest number. Signed numbers have their sign inverted in both
 *	HIST   a bucket per power of two: n_below ones of negative numbers, from INT64_MIN on; one
 *	       of 0; then those of 1, 2 to 3, 4 to 7 and so on
 *	LHIST  below from, the steps from there, and above them
 *	QUANTILES  as MAX; then the buckets of quantile.h: those of negative numbers, if there are any,
 *	       from INT64_MIN on, and those of the others
 */
enum trace_update_kind {
	TRACE_UPDATE_NONE, /* the hits are enough */
	TRACE_UPDATE_SUM,
	TRACE_UPDATE_MIN,
	TRACE_UPDATE_MAX,
	TRACE_UPDATE_HIST,
	TRACE_UPDATE_LHIST,
	TRACE_UPDATE_QUANTILES,
};

struct trace_update {
	__u32 kind;
	__u32 number; /* which one */
	__u32 cell;   /* its first */
	__u32 n_buckets;
	__u32 n_below;
	__u32 pad;
	__s64 from;
	__u64 step;
};

/* Offsets in the slot of what the kernel knows; 0: the key does not have it. */
struct trace_aggregate_plan {
	__u32 n_numbers;
	__u32 n_key; /* bytes, a multiple of 8; 0: there is one row per probe */
	__u32 n_cells;
	__u32 n_probes;
	__u32 pid, tid, comm, cpu, cgroup, site, stack;
	__u32 n_values, has_known; /* of the key: values, and whether something of the above */
	struct trace_update updates[TRACE_UPDATES_MAX];
};

/*
 * Short programs. Where a condition, one number and a few values of a key are each computed from
 * one register and constants, the fetch program is also written as a struct trace_short. A hit then
 * needs neither slot nor interpreter: its key is on the stack. A value is
 *
 *	cut(cut(file[reg], before) OP imm, after) << shift
 *
 * and cut() extends the low bits of a number.
 */
#define TRACE_SHORT_SIGNED 0x80 /* in before and after; the rest is how many high bits go */

struct trace_short_value {
	__u8 reg; /* in the file, 0 to FETCH_FILE_IP */
	__u8 before, after;
	__u8 code; /* an operation with imm; FETCH_CONST: imm alone; FETCH_END: no operation */
	__u8 word; /* of the key, from 1 on */
	__u8 shift;
	__u8 reserved[2];
	__u64 imm;
};

#define TRACE_SHORT_VALUES 2
#define TRACE_SHORT_KEY    24 /* bytes, the header included */
/* Bytes of the header, which is left out of the maps if all sites have the same entry and program. */
#define TRACE_SHORT_HEADER 8

struct trace_short {
	struct trace_short_value condition, number, values[TRACE_SHORT_VALUES];
};

/* Odd while a hit uses it, so that a reader sees when a hit is over. */
struct trace_slot {
	__u64 turn;
	char record[];
};

#endif
