#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Fetch the kernels that tests/kernels boots, by apt, without installing them; and what boots them.
#   scripts/kernels.sh [DIR]   default: ~/.cache/cairn-kernels. Each becomes DIR/VERSION/vmlinuz;
#                              of 6.1 there is its vmlinux with debug information, too (600 MB).
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

for version in 6.1 6.12 7; do
	[ -e "$out/$version/vmlinuz" ] && continue
	package=$(newest "$version\\.")
	[ -n "$package" ] || continue
	work=$(mktemp -d)
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$package" &&
		dpkg-deb -x ./*.deb tree)
	mkdir -p "$out/$version"
	mv "$work"/tree/boot/vmlinuz-* "$out/$version/vmlinuz"
	rm -rf "$work"
	[ "$version" = 6.1 ] || continue
	work=$(mktemp -d)
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "${package%-unsigned}-dbg" &&
		dpkg-deb --fsys-tarfile ./*.deb |
		tar -x --wildcards --strip-components=5 './usr/lib/debug/boot/vmlinux-*' &&
		mv vmlinux-* "$out/$version/vmlinux") || echo "kernels: no vmlinux of $package" >&2
	rm -rf "$work"
done
ls -d "$out"/*/vmlinuz
