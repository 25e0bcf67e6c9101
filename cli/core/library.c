/* SPDX-License-Identifier: BSD-2-Clause */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

void *library_load(const char *name, const struct library_symbol *symbols, size_t n)
{
	void *handle = dlopen(name, RTLD_NOW);

	for (size_t i = 0; handle && i < n; i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol) {
			dlclose(handle);
			return NULL;
		}
		/* ISO C has no cast from void * to a function; POSIX says that the bytes are the same. */
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
	return handle;
}
