#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Fetch the kernels that tests/kernels boots, by apt, without installing them; and what boots them.
#   scripts/kernels.sh [DIR]   default: ~/.cache/cairn-kernels. Each becomes DIR/VERSION/vmlinuz;
#                              of 6.1 there are its vmlinux (600 MB) and a module, too, with debug
#                              information.
set -eu
out=${1:-$HOME/.cache/cairn-kernels}
mkdir -p "$out"
for tool in qemu-system-x86_64 busybox cpio; do
	command -v $tool >/dev/null && continue
	packages="qemu-system-x86 busybox-static cpio"
	if [ "$(id -u)" -ne 0 ]; then
		echo "kernels: $tool is missing: apt-get install $packages" >&2
		exit 1
	fi
	apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $packages >/dev/null
done

# The newest package of a version that this system's sources have; nothing when there is none.
newest()
{
	apt-cache search --names-only \
		"^linux-image-$1[0-9.-]+(\+deb[0-9]+)?-cloud-amd64(-unsigned)?$" |
		cut -d' ' -f1 | sort -V | tail -n 1
}

# A package of apt's, in a folder of its own, which is printed.
fetched()
{
	work=$(mktemp -d)
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$1") >&2 || return 1
	echo "$work"
}

for version in 6.1 6.12 7; do
	[ -e "$out/$version/vmlinuz" ] && continue
	package=$(newest "$version\\.")
	[ -n "$package" ] || continue
	work=$(fetched "$package")
	dpkg-deb -x "$work"/*.deb "$work/tree"
	mkdir -p "$out/$version"
	mv "$work"/tree/boot/vmlinuz-* "$out/$version/vmlinuz"
	echo "${package%-unsigned}" >"$out/$version/package"
	rm -rf "$work"
done

# Modules are where a kernel's build has them, beside vmlinux.
loop=kernel/drivers/block/loop.ko
if [ -e "$out/6.1/package" ] && [ ! -e "$out/6.1/$loop" ]; then
	package=$(cat "$out/6.1/package")-dbg
	if work=$(fetched "$package") && dpkg-deb --fsys-tarfile "$work"/*.deb |
		tar -x -C "$work" --wildcards './usr/lib/debug/boot/vmlinux-*' "*/$loop"; then
		mv "$work"/usr/lib/debug/boot/vmlinux-* "$out/6.1/vmlinux"
		mkdir -p "$out/6.1/${loop%/*}"
		mv "$work"/usr/lib/debug/lib/modules/*/$loop "$out/6.1/$loop"
	else
		echo "kernels: no vmlinux, or no module, in $package" >&2
	fi
	rm -rf "$work"
fi
ls -d "$out"/*/vmlinuz
