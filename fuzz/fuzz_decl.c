/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C declarations: the first byte chooses the ABI, the rest is the text. What is accepted is
 * printed.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <cairn/layout.h>

#include "decl/decl.h"
#include "fuzz.h"

static void print_all(const struct cairn_types *types)
{
	struct cairn_layout_opts opts = {
		.size = sizeof(opts), .expand = true, .infer_aligned = true};
	struct cairn_layout *layout;
	FILE *out = fopen("/dev/null", "w");

	if (out && !cairn_layout_new(types, &opts, &layout, NULL)) {
		for (uint32_t id = 1; id < cairn_types_n_types(types) && id < 64; id++)
			cairn_layout_print(layout, id, out);
		cairn_layout_free(layout);
	}
	if (out)
		fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_err err = {0};
	struct decl *decl;
	size_t n_abis = 0;

	if (!size || size > 1 << 16)
		return 0;
	while (cairn_abi_at(n_abis))
		n_abis++;
	int rc = decl_parse((const char *)bytes + 1, size - 1, "fuzz.h",
			    cairn_abi_at(bytes[0] % n_abis), &decl, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc)
		return 0;
	print_all(decl_types(decl));
	decl_free(decl);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	static const char *const seeds[] = {
		"\1struct s { char a; int b : 3, : 0; struct { long l[4]; }; double d[]; } __attribute__((packed, aligned(4)));",
		"\2#pragma pack(push, 2)\nunion u { int i; float _Complex c; _Atomic long a; };\n#pragma pack(pop)\n",
		"\3typedef int v __attribute__((vector_size(16))); struct s { v x; const char *(*f[2])(int, ...); };",
		"\4enum e { A = 1 << 3, B = sizeof(long) ? 'x' : -1 }; struct s { enum e e : 4; char c[A + B % 7]; };",
		"\5struct s { int x; char y; }; char z[(unsigned long)&((struct s *)0)->y + __builtin_offsetof(struct s, y)];",
		"\6static inline int f(void) { return 1; } __asm__(\"nop\"); _Static_assert(1, \"\"); typeof(f) *g;",
		"\7int n; char a[sizeof(n / 0 + n % (unsigned)n)]; struct s { char b[1 ? 2 : n / 0]; };",
		"\21struct __attribute__((ms_struct)) s { char a; short b : 9; int c : 3; };",
		"\2typedef float _Float32; typedef __float128 _Float128; struct s { _Complex int a; _Float64x b; _Decimal64 c; } x;",
		"\0struct s { _BitInt(17) a : 9; unsigned _BitInt(200) b; char c[sizeof(70000uwb + 3wb)]; } __attribute__((ms_struct));",
		"\1char a[sizeof(\"\\n\\x41\\101\\u00e9\" L\"\303\251\" u8\"z\")], b[L'\\U0001f600' == '\\'' ? 1 : sizeof(1.5df)];",
		"\3typedef _Complex float c __attribute__((mode(TC))); typedef int w __attribute__((mode(word))); struct s { c x; w y; };",
		"\22struct s { __int64 a; void *__ptr32 p; int (__cdecl *f)(void); struct t { int b; }; }; __declspec(align(8)) struct u { int c; };",
		"\1int t[] = {[2 ... 9] = 1, f(2), 5}, u[][2] = {{1}, [7] = {2}}; struct s { char c[sizeof(t) + sizeof(u) + sizeof((int[]){1})]; };",
		"\21typedef long long low __attribute__((aligned(2))); struct s { char c; low x; low y[3]; const low z : 4; };",
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put(seeds[i], strlen(seeds[i]));
}
