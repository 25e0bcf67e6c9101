# SPDX-License-Identifier: BSD-2-Clause
# The words people type. Meson and Ninja do the work; `meson setup build` by hand is just as good.
#
#   make           build the program: build/cairn; and examples/event.bpf.o, for examples/
#   make deps      install the Debian packages that are missing (not as root: print the command)
#   make demo      install, build, and show what Cairn is for on real programs, in some seconds
#   make check     install, build, and run the tests: unit, command line, live
#   make check-truth    the long comparisons: with gdb, with what generated programs log themselves
#   make check-kernels  cairn profile, sites --running and trace -k in kernels that QEMU boots
#   make bench     install and run every benchmark;  make bench-NAME  one
#   make fuzz      every fuzz target for FUZZ_SECONDS each, from its seeds
#   make fuzz-coverage  the lines of src/ that the targets reach, by directory, and by file where a
#                       share is promised
#   make install   DESTDIR and PREFIX as usual
#   make clean
#
# SAN=1 builds in build-san with AddressSanitizer and UndefinedBehaviorSanitizer: make SAN=1 check.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
MESON ?= meson
NINJA ?= ninja

ifeq ($(SAN),1)
BUILD ?= build-san
# What is undefined is trapped, and AddressSanitizer says where. With texts of their own the checks
# have 24 MB of data, in which each process then looks for lost memory: half as much time again.
SETUP = -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize-undefined-trap-on-error
# Half of the time goes into memory that is touched for the first time: less is kept from being used
# again. No verb has the exit code of a report.
export ASAN_OPTIONS ?= handle_sigill=1:exitcode=99:quarantine_size_mb=16:strict_string_checks=1$\
	:detect_stack_use_after_return=1
# What is claimed of the sources (suite compile) is claimed once.
CHECKED = unit cli live
else
BUILD ?= build
CHECKED = unit compile cli live
endif

RUN = python3 tests/run.py --build $(BUILD)

.PHONY: all deps demo check check-truth check-kernels bench bench-peers fuzz fuzz-coverage \
	install clean
all: $(BUILD)/build.ninja
	@$(NINJA) -C $(BUILD) --quiet
	@[ ! -e $(BUILD)/examples/event.bpf.o ] || \
		ln -sf $(abspath $(BUILD))/examples/event.bpf.o examples/event.bpf.o

$(BUILD)/build.ninja:
	@scripts/deps.sh --have-build || exit 1; \
	$(MESON) setup $(BUILD) --prefix=$(PREFIX) $(SETUP)

deps:
	@scripts/deps.sh

demo: deps
	@$(MAKE) --no-print-directory all
	@scripts/demo.sh $(abspath $(BUILD))/cairn

check: deps
	@$(MAKE) --no-print-directory all
	@$(RUN) $(CHECKED)

check-truth:
	@scripts/deps.sh --truth
	@$(MAKE) --no-print-directory all
	@$(RUN) truth

check-kernels: deps
	@scripts/kernels.sh
	@$(MAKE) --no-print-directory all
	@$(RUN) kernels

# A build that was set up before the peers' libraries were there looks for them once more.
bench-peers:
	@scripts/deps.sh --bench
	@[ ! -f $(BUILD)/build.ninja ] || \
		{ [ -f $(BUILD)/bench/libdw_walk ] && [ -f $(BUILD)/bench/bench_libunwind ] && \
			grep -q WITH_LLVM $(BUILD)/build.ninja; } || \
		$(MESON) setup --reconfigure $(BUILD) >/dev/null
	@$(MAKE) --no-print-directory all

bench: bench-peers
	@$(RUN) bench

bench-%: bench-peers
	@$(RUN) bench --only $*

fuzz: deps
	@[ -f build-fuzz/build.ninja ] || CC=clang $(MESON) setup build-fuzz -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false
	@$(NINJA) -C build-fuzz --quiet
	@python3 tests/run.py --build build-fuzz --seconds $(FUZZ_SECONDS) fuzz

fuzz-coverage: deps
	@python3 fuzz/coverage.py

# The folder may have been set up for another prefix.
install: all
	@$(MESON) configure $(BUILD) --prefix=$(PREFIX)
	@$(NINJA) -C $(BUILD) --quiet install
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

clean:
	rm -rf build build-san build-fuzz build-cov
