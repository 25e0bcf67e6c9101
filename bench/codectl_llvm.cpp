/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's list as JITs made of LLVM fill it in: LLVM's own listener
 *
 * It is given the finished object file of a function, copies it, enters addresses, links the copy into the list, and later takes it
 * out again. That the object file was written at all is not counted: LLVM writes it in any case. It is loaded once; all
 * functions announce the same one.
 */
#include <cstdio>
#include <cstdlib>

#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

extern "C" {
#include "codectl_peers.h"
}

namespace {

struct Function {
	std::unique_ptr<llvm::MemoryBuffer> bytes;
	std::unique_ptr<llvm::object::ObjectFile> object;
	llvm::SectionMemoryManager memory;
	llvm::RuntimeDyld linker{memory, memory};
	std::unique_ptr<llvm::RuntimeDyld::LoadedObjectInfo> loaded;

	Function()
	    : bytes(llvm::cantFail(llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(CODECTL_FUNCTION)))),
	      object(llvm::cantFail(llvm::object::ObjectFile::createObjectFile(bytes->getMemBufferRef()))),
	      loaded(linker.loadObject(*object))
	{
		linker.resolveRelocations();
	}
};

Function *function;
llvm::JITEventListener *listener;

void open(size_t)
{
	if (function)
		return;
	function = new Function;
	listener = llvm::JITEventListener::createGDBRegistrationListener();
}

void publish(size_t i, const uint8_t *, const char *)
{
	listener->notifyObjectLoaded(i + 1, *function->object, *function->loaded);
}

void withdraw(size_t i)
{
	listener->notifyFreeingObject(i + 1);
}

void close()
{
}

} // namespace

const struct peer llvm_list = {"GDB's list, by LLVM", "name, how to unwind", open, publish, withdraw, close};
