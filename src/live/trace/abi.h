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
 *	file[21..31]  temporaries of a condition
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
 *	7      1     jump: operations to leave out, when memory cannot be read or a jump is taken
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
#define FETCH_FILE    32
#define FETCH_FILE_IP 16
#define FETCH_SLOT    17
#define FETCH_TEMP    21
#define FETCH_TEMPS   11

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
	FETCH_STREQ, /* acc = whether the string at acc is that of the next two operations */
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
	__u8 weight; /* enum trace_weight */
	__u8 pad[6];
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

/* Per probe and processor. */
struct trace_counts_entry {
	__u64 lost;
	__u64 filtered;
	__u64 undecided;
};

enum trace_filter {
	TRACE_FILTER_NONE,   /* every process */
	TRACE_FILTER_TGID,   /* one */
	TRACE_FILTER_FAMILY, /* those in the map */
};

/* Sizes of records; one BPF program each. The smallest that holds the probe's values is used. */
#define TRACE_CLASSES(X) X(64) X(128) X(256) X(512) X(1024) X(2048) X(4096)
#define TRACE_N_CLASSES  7

#endif
