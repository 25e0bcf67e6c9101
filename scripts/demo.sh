#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh CAIRN: what Cairn is for, in seven commands, on examples/ and on files of this machine.
set -eu
cd "$(dirname "$0")/.."
cairn=$(realpath --relative-base=. "$1")
examples=$(dirname "$cairn")/examples
libc=/lib/x86_64-linux-gnu/libc.so.6
folder=$(mktemp -d)
started=

stop()
{
	for pid in $started; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :
	done
	started=
}
trap 'stop; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

say()
{
	printf '\n== %s\n' "$*"
}

left_out()
{
	printf '   (left out: %s)\n' "$*"
}

failed()
{
	left_out "it ended with exit status $?, for the reason above"
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

# Shows the command as one would type it.
typed()
{
	printf '\n$'
	for word in "$@"; do
		case $word in
		"$cairn") printf ' cairn' ;;
		'|') printf ' |' ;;
		*[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '\n'
}

# Shows the command, and then what it prints. A failure is said, and the demo goes on.
show()
{
	typed "$@"
	"$@" 2>&1 || failed
}

may_trace()
{
	"$cairn" doctor --json | grep '"what":".*uprobe' | grep -q '"ok":true'
}

# Without the privileges of a tracer: what is missing, as `cairn doctor` has it, and what to type.
say_what_is_missing()
{
	left_out "this user, or this kernel, may not set uprobes. What works here, and what helps:"
	"$cairn" doctor 2>&1 | sed 's/^/    /' || :
}

show_sites()
{
	say "sites: glibc inlines tcache_get into malloc. Each address is where it went;" \
		"the line below is the location of its argument there."
	if "$cairn" sites $libc tcache_get >/dev/null 2>&1; then
		show "$cairn" sites $libc tcache_get
	else
		left_out "$libc has no debug information here: apt-get install libc6-dbg." \
			"One of our programs instead:"
		show "$cairn" sites "$examples/server" parse
	fi
}

show_trace()
{
	say "trace: the compiler inlined the only call of put, and computes idx later." \
		"The argument was (1000 - 17) >> 4, which is 61."
	if may_trace; then
		show "$cairn" trace -c "$examples/put" put
	else
		say_what_is_missing
	fi
}

show_typed_trace()
{
	say "trace: a server that runs, and a client. The struct is shown by its type;" \
		"the kernel decides the condition."
	may_trace || { left_out "as above"; return; }
	"$examples/server" "$folder/socket" &
	started="$started $!"
	server=$!
	sleep 0.3
	"$examples/client" "$folder/socket" 20 &
	started="$started $!"
	show "$cairn" trace -p "$server" -n 2 'store(*request) if request->priority > 2'
	stop
}

show_stack()
{
	say "stack: frames 1 to 8 are machine code that the program made at run time and" \
		"registered. It keeps no frame pointer, and no file describes it."
	[ -x "$examples/jit" ] || { left_out "the example makes code for x86-64 only"; return; }
	"$examples/jit" 20 &
	started="$started $!"
	jit=$!
	sleep 0.3
	show "$cairn" stack "$jit"
	stop
}

show_layout()
{
	say "layout: a struct as pahole prints it, computed from a header. 11 of its 32 bytes are holes."
	show "$cairn" layout examples/event.h padded_event
}

show_decode()
{
	say "decode: the first 64 bytes of the program /bin/true, as the struct that <elf.h> has for them."
	head -c 64 /bin/true >"$folder/header"
	typed head -c 64 /bin/true '|' "$cairn" decode /usr/include/elf.h Elf64_Ehdr
	"$cairn" decode /usr/include/elf.h Elf64_Ehdr "$folder/header" 2>&1 || failed
}

show_btf()
{
	say "btf: the types of a user program in the kernel's format. bpftool, which cannot read" \
		"DWARF, prints one of them."
	show "$cairn" btf encode "$examples/server" -o "$folder/server.btf"
	have bpftool || { left_out "bpftool is not installed: apt-get install bpftool"; return; }
	typed bpftool btf dump file "$folder/server.btf" format c '|' \
		sed -n '/^struct request {/,/^}/p'
	bpftool btf dump file "$folder/server.btf" format c | sed -n '/^struct request {/,/^}/p'
}

for part in sites trace typed_trace stack layout decode btf; do
	show_$part
done
say "More: docs/tutorial.md finds a defect in 15 minutes; docs/cookbook.md has a command for" \
	"each task; cairn --help."
