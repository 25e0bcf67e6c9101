#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh CAIRN: `cairn sites` and `cairn trace` on Debian's libc and on examples/server.c.
set -eu
cairn=$1
examples=$(dirname "$cairn")/examples
libc=/lib/x86_64-linux-gnu/libc.so.6
socket=$(mktemp -u /tmp/cairn-demo.XXXXXX)
server=

stop_server()
{
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	server=
}
trap stop_server EXIT INT TERM

say()
{
	printf '\n== %s\n' "$*"
}

# Shows the command as one would type it, then runs it.
show()
{
	printf '\n$'
	for word in "$@"; do
		case $word in
		"$cairn") printf ' cairn' ;;
		*[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '\n'
	"$@"
}

say "glibc inlines its thread cache into malloc and free. Where did tcache_get and tcache_put go?"
if "$cairn" sites $libc tcache_get >/dev/null 2>&1; then
	show "$cairn" sites $libc tcache_get tcache_put
else
	"$cairn" sites $libc tcache_get || :
	echo "(no debug information for libc: the rest of this part is left out)"
	libc=
fi

may_trace=yes
if ! "$cairn" doctor --json | grep '"what":".*uprobe' | grep -q '"ok":true'; then
	say "Tracing is not possible here. What works, and what would help:"
	"$cairn" doctor || :
	may_trace=
fi

if [ -n "$may_trace" ] && [ -n "$libc" ]; then
	say "Every call of them that ls makes, though there are no such functions any more. Three events of each:"
	events=$(mktemp)
	show "$cairn" trace -o "$events" -c 'ls /usr' "$libc:tcache_get" "$libc:tcache_put"
	for function in tcache_get tcache_put; do
		grep -m 3 " $function " "$events" || :
	done
	rm -f "$events"
fi

say "A small server of ours: all its functions were inlined into main."
show "$cairn" sites "$examples/server" parse store

if [ -n "$may_trace" ]; then
	"$examples/server" "$socket" &
	server=$!
	sleep 0.3
	"$examples/client" "$socket" 20 &
	client=$!

	say "While a client talks to it: requests as structs, by their types in the debug information"
	show "$cairn" trace -p "$server" -n 6 'parse(line)' 'store(slot, *request)'

	say "Expressions, and a condition that the kernel decides"
	show "$cairn" trace -p "$server" -n 4 --json \
		'answer(request->key, request->priority, request->verb) if request->priority > 2'

	kill "$client" 2>/dev/null || :
	wait "$client" 2>/dev/null || :
	stop_server
fi

say "More: cairn --help, docs/, and examples/"
