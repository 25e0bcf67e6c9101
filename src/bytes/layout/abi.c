/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ABIs as data
 *
 * Rows begin with the values that a family shares and override the differences. Surprising rows
 * have the reason beside them. tests/truth/layout_against_clang.py compares all rows with Clang's
 * and GCC's own layouts.
 *
 * To add an ABI: a row here, its triple in that test, its machine in cairn_abi_of_elf(),
 * docs/json.md and man/layout.roff where they list the names.
 */
#include <cairn/layout.h>

#include <elf.h>
#include <string.h>

#ifndef EM_BPF
#define EM_BPF 247
#endif

#define COMMON                                                                                     \
	.scalars[CAIRN_C_BOOL] = {1, 1}, .scalars[CAIRN_C_CHAR] = {1, 1},                          \
	.scalars[CAIRN_C_SHORT] = {2, 2}, .scalars[CAIRN_C_INT] = {4, 4},                          \
	.scalars[CAIRN_C_FLOAT16] = {2, 2}, .scalars[CAIRN_C_FLOAT] = {4, 4}, .bare_aligned = 16,  \
	.vector_align_max = 1 << 28, .wchar_size = 4, .atomic_max = 8, .bit_int_align = 8,         \
	.bit_int_max = 128

#define LP64                                                                                       \
	COMMON, .scalars[CAIRN_C_LONG] = {8, 8}, .scalars[CAIRN_C_LLONG] = {8, 8},                 \
		.scalars[CAIRN_C_INT128] = {16, 16}, .scalars[CAIRN_C_PTR] = {8, 8},               \
		.scalars[CAIRN_C_DOUBLE] = {8, 8}, .scalars[CAIRN_C_LDOUBLE] = {16, 16}

#define ILP32                                                                                      \
	COMMON, .scalars[CAIRN_C_LONG] = {4, 4}, .scalars[CAIRN_C_LLONG] = {8, 8},                 \
		.scalars[CAIRN_C_PTR] = {4, 4}, .scalars[CAIRN_C_DOUBLE] = {8, 8},                 \
		.scalars[CAIRN_C_LDOUBLE] = {8, 8}

/*
 * Types that GCC, Clang, or both have beyond the standard. Whether they have 16-bit floats depends
 * on their version and options.
 */
#define QUAD     .scalars[CAIRN_C_FLOAT128] = {16, 16}, .scalars[CAIRN_C_FLOAT64X] = {16, 16}
#define GNU_QUAD QUAD, .scalars[CAIRN_C_GNU_FLOAT128] = {16, 16}
#define DECIMAL                                                                                    \
	.scalars[CAIRN_C_DECIMAL32] = {4, 4}, .scalars[CAIRN_C_DECIMAL64] = {8, 8},                \
	.scalars[CAIRN_C_DECIMAL128] = {16, 16}
/* Clang's limit for x86; elsewhere it is 128. */
#define LONG_BIT_INT .bit_int_max = 8388608

#define WINDOWS LONG_BIT_INT, .ms = true, .wchar_size = 2, .wchar_unsigned = true, .empty_size = 4

#pragma GCC diagnostic push
/* A row overrides its family's values. */
#pragma GCC diagnostic ignored "-Woverride-init"

static const struct cairn_abi abis[] = {
	{"x86-64", "x86_64-linux-gnu", LP64, GNU_QUAD, DECIMAL, LONG_BIT_INT, .atomic_max = 16,
	 .va_list_size = 24, .va_list_array = true},
	{"x32", "x86_64-linux-gnux32", ILP32, GNU_QUAD, DECIMAL, LONG_BIT_INT,
	 .scalars[CAIRN_C_INT128] = {16, 16}, .scalars[CAIRN_C_LDOUBLE] = {16, 16},
	 .atomic_max = 16, .va_list_size = 16, .va_list_array = true},
	/* long long and double are aligned to 4 in a struct, though not when they are _Atomic. */
	{"i386", "i686-linux-gnu", ILP32, GNU_QUAD, DECIMAL, LONG_BIT_INT,
	 .scalars[CAIRN_C_LLONG] = {8, 4}, .scalars[CAIRN_C_DOUBLE] = {8, 4},
	 .scalars[CAIRN_C_LDOUBLE] = {12, 4}, .scalars[CAIRN_C_FLOAT64X] = {12, 4},
	 .bit_int_align = 4},
	/*
	 * GCC has decimals here from version 13 on, by the AAPCS64; Clang aligns _BitInt by it from
	 * 18 on.
	 */
	{"aarch64", "aarch64-linux-gnu", LP64, QUAD, DECIMAL, .bit_int_align = 16,
	 .char_unsigned = true, .wchar_unsigned = true, .unnamed_counts = true,
	 .vector_align_max = 16, .atomic_max = 16, .va_list_size = 32},
	{"aarch64be", "aarch64_be-linux-gnu", LP64, QUAD, DECIMAL, .bit_int_align = 16,
	 .big_endian = true, .char_unsigned = true, .wchar_unsigned = true, .unnamed_counts = true,
	 .vector_align_max = 16, .atomic_max = 16, .va_list_size = 32},
	/* No type of the AAPCS is aligned to more than 8. */
	{"arm", "arm-linux-gnueabihf", ILP32, .char_unsigned = true, .wchar_unsigned = true,
	 .unnamed_counts = true, .vector_align_max = 8, .bare_aligned = 8, .va_list_size = 4},
	{"riscv64", "riscv64-linux-gnu", LP64, QUAD, .char_unsigned = true, .atomic_max = 16},
	{"riscv32", "riscv32-linux-gnu", ILP32, QUAD, .scalars[CAIRN_C_LDOUBLE] = {16, 16},
	 .char_unsigned = true, .atomic_max = 16},
	/* Nothing is aligned to more than 8; Clang before 18 used 16 for __int128. */
	{"s390x", "s390x-linux-gnu", LP64, DECIMAL, .big_endian = true, .char_unsigned = true,
	 .bare_aligned = 8, .scalars[CAIRN_C_LDOUBLE] = {16, 8}, .scalars[CAIRN_C_INT128] = {16, 8},
	 .scalars[CAIRN_C_FLOAT128] = {16, 8}, .scalars[CAIRN_C_FLOAT64X] = {16, 8},
	 .scalars[CAIRN_C_DECIMAL128] = {16, 8}, .atomic_max = 16, .va_list_size = 32,
	 .va_list_array = true},
	{"ppc64le", "powerpc64le-linux-gnu", LP64, GNU_QUAD, DECIMAL,
	 .scalars[CAIRN_C_IBM128] = {16, 16}, .char_unsigned = true},
	{"ppc64", "powerpc64-linux-gnu", LP64, DECIMAL, .scalars[CAIRN_C_IBM128] = {16, 16},
	 .big_endian = true, .char_unsigned = true},
	{"mips", "mips-linux-gnu", ILP32, .big_endian = true},
	{"mipsel", "mipsel-linux-gnu", ILP32},
	{"mips64", "mips64-linux-gnuabi64", LP64, QUAD, .big_endian = true},
	{"mips64el", "mips64el-linux-gnuabi64", LP64, QUAD},
	/* long double is double. */
	{"bpf", "bpfel", LP64, .scalars[CAIRN_C_LDOUBLE] = {8, 8}, .bit_int_max = 0},
	{"bpfeb", "bpfeb", LP64, .scalars[CAIRN_C_LDOUBLE] = {8, 8}, .bit_int_max = 0,
	 .big_endian = true},
	{"windows-x64", "x86_64-pc-windows-msvc", LP64, .scalars[CAIRN_C_LONG] = {4, 4},
	 .scalars[CAIRN_C_LDOUBLE] = {8, 8}, .atomic_max = 16, WINDOWS},
	{"windows-x86", "i686-pc-windows-msvc", ILP32, WINDOWS},
};

#pragma GCC diagnostic pop

/* Names that people and other tools use for the same. */
/* clang-format off */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{"x86_64", "x86-64"},	{"amd64", "x86-64"},	    {"i686", "i386"},
	{"x86", "i386"},	{"arm64", "aarch64"},	    {"armhf", "arm"},
	{"armel", "arm"},	{"riscv", "riscv64"},	    {"bpfel", "bpf"},
	{"powerpc64", "ppc64"}, {"powerpc64le", "ppc64le"}, {"aarch64_be", "aarch64be"},
};
/* clang-format on */

const struct cairn_abi *cairn_abi_at(size_t i)
{
	return i < sizeof(abis) / sizeof(abis[0]) ? &abis[i] : NULL;
}

const struct cairn_abi *cairn_abi_find(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(name, aliases[i].alias))
			name = aliases[i].name;
	for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++)
		if (!strcmp(name, abis[i].name) || !strcmp(name, abis[i].triple))
			return &abis[i];
	return NULL;
}

static const char *name_of_elf(unsigned int machine, bool is_64, bool big_endian, uint32_t flags)
{
	switch (machine) {
	case EM_X86_64:
		return is_64 ? "x86-64" : "x32";
	case EM_386:
		return "i386";
	case EM_AARCH64:
		return big_endian ? "aarch64be" : is_64 ? "aarch64" : "";
	case EM_ARM:
		return "arm";
	case EM_RISCV:
		return is_64 ? "riscv64" : "riscv32";
	case EM_S390:
		return is_64 ? "s390x" : "";
	case EM_PPC64:
		return big_endian ? "ppc64" : "ppc64le";
	case EM_MIPS:
		/*
		 * n32 has 32-bit pointers and 64-bit long long registers; it is not among the ABIs.
		 */
		if (!is_64 && flags & EF_MIPS_ABI2)
			return "";
		if (is_64)
			return big_endian ? "mips64" : "mips64el";
		return big_endian ? "mips" : "mipsel";
	case EM_BPF:
		return big_endian ? "bpfeb" : "bpf";
	default:
		return "";
	}
}

const struct cairn_abi *cairn_abi_of_elf(unsigned int machine, bool is_64, bool big_endian,
					 uint32_t flags)
{
	return cairn_abi_find(name_of_elf(machine, is_64, big_endian, flags));
}
