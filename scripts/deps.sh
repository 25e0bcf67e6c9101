#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Install the packages that Cairn needs and that are missing: on Debian, and with the names of Ubuntu
# and Fedora. The latter two are written from their public lists of packages and are not tested.
#
#   scripts/deps.sh               install (root), or print the command; fails only when the build
#                                 needs them
#   scripts/deps.sh --truth       the same, and the runtimes that the long comparisons look into
#   scripts/deps.sh --bench       as without a word, and what the benchmarks are measured beside
#   scripts/deps.sh --have-build  install nothing: fail, with the command, if the build cannot work
#
# Why each is needed: docs/architecture.md, "What it stands on".
set -u

# Without dpkg-dev, Meson does not know where Debian has libraries, and installs them where its
# loader does not look.
build="gcc dpkg-dev meson ninja-build pkg-config libc6-dev libelf-dev zlib1g-dev libzstd-dev
       nettle-dev libdeflate-dev libzydis-dev libzycore-dev libbpf-dev libprotobuf-c-dev
       protobuf-c-compiler libiberty-dev bpftool clang libcmocka-dev"
# Other people's tools, for a second opinion; a test without its tool is skipped and says so.
tests="libc6-dbg musl-tools luajit libunwind-14 libunwind-dev libdw-dev binutils gdb bpftrace
       dwarves linux-perf g++ lld llvm zstd dwz groff-base clang-format debuginfod strace zsh
       fish golang-go node-typescript mypy gnat libcurl4 python3-protobuf openssl babeltrace2"
# Compiler, C library, emulator and debugger of AArch64 for stacks of its cores.
arm="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user gdb-multiarch"
# Runtimes with JITs, of 600 MB.
truth="$arm elfutils valgrind postgresql-15 libgccjit-12-dev nodejs openjdk-17-jdk-headless
       luajit php8.2-cli php8.2-opcache ruby linux-perf gdb guile-3.0 chezscheme racket
       mono-runtime mono-mcs pypy3 libfmt-dev libstdc++6-12-dbg llvm-dev sqlite3 redis-server
       redis-tools nginx-light wrk ripgrep git"
# eu-stack, a browser, and libraries that some programs of bench/ are linked with.
bench="elfutils llvm-dev chromium"
[ "${1:-}" = --truth ] && tests="$tests $truth"
[ "${1:-}" = --bench ] && tests="$tests $bench"

missing()
{
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
			printf '%s ' "$package"
	done
}

# Fedora's names, not tested. libiberty and its header are in binutils-devel; zlib-ng-compat-devel
# provides zlib-devel. Archives are in packages of their own there, or nowhere; Meson takes the
# shared library of those that it does not find.
fedora="gcc meson ninja-build pkgconf-pkg-config glibc-devel elfutils-libelf-devel zlib-devel
        libzstd-devel nettle-devel libdeflate-devel zydis-devel zycore-c-devel libbpf-devel
        protobuf-c-devel protobuf-c-compiler binutils-devel bpftool clang libcmocka-devel"
if ! command -v dpkg-query >/dev/null 2>&1; then
	if command -v dnf >/dev/null 2>&1; then
		echo "deps: the build needs these packages (not tested): sudo dnf install" $fedora >&2
	else
		echo "deps: not a Debian system; the build needs what these packages hold:" $build >&2
	fi
	exit 0
fi

# Ubuntu before 25.10 has perf and bpftool in the tools of its kernels, where both start under that
# kernel only; not tested.
case $(. /etc/os-release && echo "$ID ${VERSION_ID:-}") in
"ubuntu 2"[0-4].* | "ubuntu 25.04")
	build=$(echo "$build" | sed 's/bpftool/linux-tools-generic/')
	tests=$(echo "$tests" | sed 's/linux-perf/linux-tools-generic/')
	;;
esac

need=$(missing $build)
if [ "${1:-}" = --have-build ]; then
	[ -z "$need" ] && exit 0
	echo "deps: the build needs packages that are missing. Install them with: sudo make deps" >&2
	exit 1
fi

# libc++-dev and libunwind-dev exclude each other as packages. The tests want both: libc++'s headers
# are only unpacked.
libcxx=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cairn-deps/libc++
unpack_libcxx()
{
	[ -e "$libcxx/.done" ] && return 0
	packages=$(apt-cache depends libc++-dev libc++abi-dev 2>/dev/null |
		sed -n 's/.*Depends: \(libc++.*-dev\)$/\1/p')
	[ -n "$packages" ] && mkdir -p "$libcxx" || return 0
	(cd "$libcxx" && apt-get download -q -o APT::Sandbox::User=root $packages >/dev/null 2>&1 &&
		for deb in *.deb; do dpkg-deb -x "$deb" . || exit 1; done && rm -f ./*.deb && touch .done) ||
		echo "deps: libc++ cannot be unpacked; tests that need it are skipped" >&2
}

want=$need$(missing $tests)
if [ -z "$want" ]; then
	unpack_libcxx
	exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
	install="sudo apt-get install --no-install-recommends"
	echo "deps: missing packages; install them with: $install $want" >&2
	[ -z "$need" ]
	exit
fi

echo "deps: installing $want"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install()
{
	apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1
}
# The lists of a fresh machine may be empty or old: refresh them when the first try fails.
install $want && unpack_libcxx && exit 0
apt-get update -q >>"$log" 2>&1
install $want && unpack_libcxx && exit 0
# One test tool that this release lacks must not keep the others from being installed.
if [ -n "$need" ] && ! install $need; then
	cat "$log" >&2
	exit 1
fi
for package in $(missing $tests); do
	install "$package" || echo "deps: $package cannot be installed; tests that need it are skipped" >&2
done
unpack_libcxx
exit 0
