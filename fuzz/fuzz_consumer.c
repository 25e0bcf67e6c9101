/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations of other languages: the first byte chooses language and ABI, the rest is the text.
 */
#include <assert.h>
#include <string.h>

#include <cairn/layout/compare.h>

#include "consumer/consumer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const abis[] = {"x86-64", "i386", "s390x", "arm"};
	struct cairn_err err = {0};
	struct consumer *f;
	struct cairn_changes *changes;

	if (!size || size > 1 << 16)
		return 0;
	enum cairn_lang lang = (enum cairn_lang)(bytes[0] % CAIRN_LANG_N);
	const struct cairn_abi *abi = cairn_abi_find(abis[bytes[0] / CAIRN_LANG_N % 4]);
	int rc = consumer_parse((const char *)bytes + 1, size - 1, "fuzz", lang, abi, &f, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc)
		return 0;
	const struct cairn_types *types = consumer_types(f);
	for (uint32_t id = 1; id < cairn_types_n_types(types) && id < 64; id++) {
		/* Whatever it is, it equals itself. */
		rc = cairn_compare(types, id, types, id, NULL, &changes, NULL);
		assert(rc == 0 && !cairn_changes_n_changes(changes));
		cairn_changes_free(changes);
	}
	consumer_free(f);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	static const char *const seeds[] = {
		/* Java */
		"\4class P { static final int N = 4; @Type(name = \"e\") record E(@Unsigned int pid, @Size(N * 2) String s, "
		"@Size(2) int @Size(3) [][] m, Ptr<E> p) implements A<B> { void f() { \"}\"; } } }",
		"\0@Type enum K implements TypedEnum<K, Short> { A, @EnumMember(value = 3, name = \"B\") C(1) { int x; }; int y; }"
		"@Type static class U extends Union { K k; @Offset(4) long a, b; int f() throws X { return 1; } @Type record "
		"I(@InlineUnion(1) int a, @InlineUnion(1) Int128 b) {} }",
		/* Enumerators of one name */
		"\4@Type enum K { A, @EnumMember(value = 3, name = \"B\") A, @EnumMember(value = 4, name = \"B\") C }",
		/* Rust */
		"\1#![allow(x)] const N: usize = 0x10 >> 2; #[repr(C, packed(2))] pub struct S<'a> { a: u8, pub(crate) b: [[u16; N]; "
		"2], c: &'a str, d: Option<unsafe extern \"C\" fn(i32) -> u8>, e: core::mem::MaybeUninit<u32> }",
		"\5#[repr(u8)] enum E { A = 1, B(u32) } #[repr(C)] union U { a: E, b: T } #[repr(C, align(16))] struct T(u32, *const T); "
		"type A = T; fn f<T>() -> i32 { r#\"x\"#; /* /* */ */ 'a' as i32 }",
		/* Go */
		"\2package p\nconst (\n\tN = iota\n\tM = 1 << 3\n)\ntype (\n\tK uint8\n\tS struct {\n\t\t_ structs.HostLayout\n\t\tA, B "
		"K `x:\"y\"`\n\t\tC [M - 2]struct{ D int64 }\n\t\tT\n\t\t*U\n\t}\n)\ntype T struct{ m map[string]int; f func(a int) "
		"(b int) }\ntype G[T any] struct{ x T }\n",
		/* Python */
		"\3from ctypes import *\nN = 2\npid_t = c_int\nclass A(Structure):\n    _pack_ = 1\n    class B(Union):\n        _fields_ = "
		"[('x', c_int)]\n    _anonymous_ = ('u',)\n    _fields_ = [('u', B), ('p', pid_t * N * 3), ('b', c_uint16, 3), "
		"('c', POINTER(A))]\n",
		"\7import struct\nF = struct.Struct('<I2x3s0Q')\nclass C(BigEndianStructure): _fields_ = [('a', c_long)]\nclass "
		"D(Structure): pass\nD._fields_ = [(\"\"\"a\"\"\", C * 2)]\nFMT = '@nNP'\n",
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put(seeds[i], strlen(seeds[i] + 1) + 1);
}
