/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Zydis, loaded when the first instruction is decoded
 *
 * Most answers from a sidecar decode nothing, and relocating Zydis's tables takes longer than such
 * an answer. These functions replace the ones of Zydis that libcairn calls; in libcairn.so they are
 * the library's own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "cmd.h"

static struct {
	ZyanStatus (*init)(ZydisDecoder *, ZydisMachineMode, ZydisStackWidth);
	ZyanStatus (*decode)(const ZydisDecoder *, ZydisDecoderContext *, const void *, ZyanUSize,
			     ZydisDecodedInstruction *);
	ZyanStatus (*decode_full)(const ZydisDecoder *, const void *, ZyanUSize,
				  ZydisDecodedInstruction *, ZydisDecodedOperand *);
	ZydisRegisterClass (*class_of)(ZydisRegister);
	ZydisRegister (*enclosing)(ZydisMachineMode, ZydisRegister);
} zydis;

/* As if the program had not started, which it would not when it were linked. */
static void give_up(void)
{
	const char *why = dlerror();

	_exit(fail(STATUS_NOT_HERE,
		   "the decoder of instructions, which the package of Zydis has (Debian: "
		   "libzydis4.0): %s",
		   why ? why : "not found"));
}

static void load(void)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"ZydisDecoderInit", &zydis.init},
		{"ZydisDecoderDecodeInstruction", &zydis.decode},
		{"ZydisDecoderDecodeFull", &zydis.decode_full},
		{"ZydisRegisterGetClass", &zydis.class_of},
		{"ZydisRegisterGetLargestEnclosing", &zydis.enclosing},
	};
	char name[32];
	void *handle;

	/* Its ABI is that of a minor version. */
	snprintf(name, sizeof(name), "libZydis.so.%u.%u", ZYDIS_VERSION_MAJOR(ZYDIS_VERSION),
		 ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
	handle = dlopen(name, RTLD_NOW);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = handle ? dlsym(handle, symbols[i].name) : NULL;

		if (!symbol)
			give_up();
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
}

static void need(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

ZyanStatus ZydisDecoderInit(ZydisDecoder *decoder, ZydisMachineMode mode, ZydisStackWidth width)
{
	need();
	return zydis.init(decoder, mode, width);
}

/* Decoding needs a decoder, so it is loaded. */
ZyanStatus ZydisDecoderDecodeInstruction(const ZydisDecoder *decoder, ZydisDecoderContext *context,
					 const void *bytes, ZyanUSize n,
					 ZydisDecodedInstruction *ret)
{
	return zydis.decode(decoder, context, bytes, n, ret);
}

ZyanStatus ZydisDecoderDecodeFull(const ZydisDecoder *decoder, const void *bytes, ZyanUSize n,
				  ZydisDecodedInstruction *ret,
				  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
	return zydis.decode_full(decoder, bytes, n, ret, operands);
}

ZydisRegisterClass ZydisRegisterGetClass(ZydisRegister reg)
{
	need();
	return zydis.class_of(reg);
}

ZydisRegister ZydisRegisterGetLargestEnclosing(ZydisMachineMode mode, ZydisRegister reg)
{
	need();
	return zydis.enclosing(mode, reg);
}
