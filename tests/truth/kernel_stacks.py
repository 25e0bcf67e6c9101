# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of kernel functions: what is done in the guest, and what is claimed of it.

The oracles: tracefs has the kernel's frames of each hit, addr2line their functions and inlined
calls, and the program of the guest its own depth.
"""
import collections
import json
import os
import re
import subprocess

import common

DEPTH = 12
# The program that calls the kernel; its comm is "descend".
PROGRAM = f"""
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
static char block[512];
static int null;
__attribute__((noinline)) int ask(void)
{{
	struct stat st;
	int n = (int)write(null, block, 100);
	int fd = open("/bin/descend", O_RDONLY);
	n += (int)read(fd, block, sizeof(block)) + stat("/", &st) + close(fd);
	__asm__ volatile("" : "+r"(n));
	return n;
}}
__attribute__((noinline)) int descend(int depth)
{{
	int n = depth > 1 ? descend(depth - 1) : ask();
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}}
int main(void)
{{
	null = open("/dev/null", O_WRONLY);
	/* Its unwind table is made meanwhile. */
	sleep(2);
	for (int i = 0; i < 40; i++)
		descend({DEPTH});
	return 0;
}}
"""
CALLERS = ('vfs_write ksys_write vfs_read ksys_read path_openat do_sys_openat2 vfs_statx '
           'do_filp_open link_path_walk filp_close __fput do_dentry_open').split()
MAX_SITES = 40
# What a thread of the kernel does once a second.
WORK = 'vmstat_shepherd'
ENTRIES = re.compile(r'entry_|asm_|ret_from_fork|secondary_startup|x86_64_start|common_startup'
                     r'|x64_sys_call')
INIT = """
# Stacks.
: >$T/trace
rm -f /tmp/said
# Before there are other probes: their breakpoints hide the code.
cairn trace -k --stack --json -o /tmp/stacks.json $K $(cat /stack-functions) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
text=$(grep ' _text$' /proc/kallsyms)
slide=$((0x${text%% *} - 0xffffffff81000000))
while read name at; do
	printf 'p:k/%s 0x%x\\n' $name $((0x$at + slide)) >>$T/kprobe_events
done </stack-events
echo stacktrace >$T/trace_options
echo sym-addr >$T/trace_options
echo 1 >$T/events/k/enable
descend
sleep 1
kill -INT $pid; wait $pid
echo "stacks $?"
grep -E 'lost|stack|attached' /tmp/said | head -5
echo 0 >$T/events/k/enable
grep -h -A 40 ' descend-' $T/trace >/tmp/trace
echo nostacktrace >$T/trace_options
: >$T/kprobe_events
: >$T/trace
send stacks /tmp/stacks.json
send stacks-trace /tmp/trace
cairn trace -k --stack=3 --json -o /tmp/three.json $K -c /bin/descend vfs_write 2>/dev/null
send three /tmp/three.json
rm -f /tmp/said
cairn trace -k --count --by '$stack' --json $K $(cat /functions) >/tmp/by.json 2>/tmp/said & pid=$!
wait_for attached /tmp/said
work 1
kill -INT $pid; wait $pid
grep -E 'stack' /tmp/said | head -5
send by-stack /tmp/by.json
rm -f /tmp/said
cairn trace -k --stack --json -o /tmp/thread.json $K WORK 2>/tmp/said & pid=$!
wait_for attached /tmp/said
sleep 3
kill -INT $pid; wait $pid
send thread /tmp/thread.json
cairn trace -k --count --by '$caller' $K -c /bin/descend vfs_write file_start_write 2>/dev/null >/tmp/callers
send callers /tmp/callers
left stacks
""".replace('WORK', WORK)


def choose(functions):
    """Inlined copies in what the program calls, one function each; {name: site}."""
    chosen = {}
    for name, sites in sorted(functions.items()):
        here = [s for s in sites if s['kind'] == 'inlined' and s['symbol'] in CALLERS]
        if len(sites) == 1 and here and here[0]['shared'] == 1 and len(chosen) < MAX_SITES:
            chosen[name] = here[0]
    return chosen


def files(folder, functions):
    """{path there: path here}."""
    program = os.path.join(folder, 'descend')
    with open(program + '.c', 'w', encoding='ascii') as file:
        file.write(PROGRAM)
    subprocess.run(['gcc', '-g', '-O2', '-static', '-o', program, program + '.c'], check=True)
    sites = choose(functions)
    with open(os.path.join(folder, 'stack-functions'), 'w', encoding='ascii') as file:
        file.write(' '.join(sites) + '\n')
    with open(os.path.join(folder, 'stack-events'), 'w', encoding='ascii') as file:
        for i, site in enumerate(sites.values()):
            file.write(f"k{i} {int(site['addr'], 16):x}\n")
    return {
        '/bin/descend': program,
        **{'/' + n: os.path.join(folder, n)
           for n in ('stack-functions', 'stack-events')}
    }


def kernel_part(stack):
    return [f for f in stack['frames'] if (f['path'] or '').startswith('[')
            and f['path'] not in ('[vdso]', '[vvar]')]


def name_of(frame):
    return [f['function'] or f['name'] for f in frame['functions']]


def traced(text):
    """{event: [addresses of each hit]}, as tracefs has them: a line of the hit, and one of the same
    task that its stack follows. Lines of the other processor may be between both."""
    found, last, stack = collections.defaultdict(list), {}, None
    for line in text.splitlines():
        hit = re.search(r' descend-(\d+) .*: (k\d+): ', line)
        begin = re.search(r'(\S+)-(\d+) .*<stack trace>', line)
        frame = re.match(r'\s*=> .*<([0-9a-f]{16})>', line)
        if hit:
            last[hit.group(1)] = hit.group(2)
        if begin and begin.group(1) == 'descend' and begin.group(2) in last:
            stack = []
            found[last.pop(begin.group(2))].append(stack)
        elif frame and stack is not None:
            stack.append(int(frame.group(1), 16))
        elif not frame:
            stack = None
    return found


def check_frames(version, events, trace, sites):
    """The kernel's frames, of each hit at each site, in order."""
    ours, wrong, n = collections.defaultdict(list), [], 0
    for event in events:
        ours[event['function']].append([int(f['pc'], 16) for f in kernel_part(event['stack'])])
    for i, name in enumerate(sites):
        theirs = trace.get(f'k{i}', [])
        n += len(theirs)
        if [f[1:] for f in theirs] != [f[1:] for f in ours[name]]:
            wrong.append((name, len(theirs), len(ours[name]), theirs[:1], ours[name][:1]))
    common.claim(f'{version}: frames of the kernel are those of tracefs ({n} hits at '
                 f'{len(trace)} sites, differ: {wrong[:2]})', n > 100 and not wrong)


def addr2line(vmlinux, addresses):
    """{address: [functions, the innermost first]}."""
    r = subprocess.run(['addr2line', '-e', vmlinux, '-f', '-i', '-a'],
                       input='\n'.join(hex(a) for a in addresses), capture_output=True, text=True,
                       check=True)
    found, now = {}, None
    for line in r.stdout.splitlines():
        if re.fullmatch(r'0x[0-9a-f]{16}', line):
            now = found.setdefault(int(line, 16), [])
        elif now is not None and not re.search(r':(\d+|\?)( \(.*\))?$', line):
            now.append(line)
    return found


def plain(name):
    """Without a clone's suffix; the labels of entry code have names of their own."""
    return re.sub('_after_hwframe$', '', name).split('.')[0]


def check_names(version, events, vmlinux):
    names = {}
    for event in events:
        for frame in kernel_part(event['stack'])[1:]:
            if 'vaddr' in frame:
                names[int(frame['vaddr'], 16)] = name_of(frame)
    theirs = addr2line(vmlinux, sorted(names))
    wrong = [(hex(a), n, theirs.get(a)) for a, n in names.items()
             if [plain(w) for w in n] != [plain(w) for w in theirs.get(a, [])]]
    inlined = sum(len(n) > 1 for n in names.values())
    common.claim(f'{version}: with the functions that addr2line has there ({len(names)} addresses, '
                 f'{inlined} with inlined calls, wrong: {wrong[:3]})',
                 len(names) > 12 and inlined > 3 and not wrong)


def check_user(version, events):
    wrong = []
    for event in events:
        stack = event['stack']
        user = stack['frames'][len(kernel_part(stack)):]
        words = [w for f in user for w in name_of(f)]
        deep = [w for w in words if w == 'descend']
        if 'main' in words and (len(deep) != (DEPTH if 'ask' in words else 0)
                                or stack['end'] != 'outermost'):
            wrong.append((words, stack['end']))
    whole = sum(e['stack']['end'] == 'outermost' for e in events)
    common.claim(f'{version}: after them those of the program ({whole} of {len(events)} whole, '
                 f'wrong: {wrong[:2]})', whole > 0.8 * len(events) > 80 and not wrong)


def check_keys(version, rows):
    """Of all sites: a kernel's part ends where the kernel was entered, or the stack says that not."""
    n, wrong, ends = 0, [], collections.Counter()
    for row in rows:
        stack = row['by']['$stack']
        kernel = kernel_part(stack)
        n += row['count']
        ends[stack['end']] += row['count']
        words = name_of(kernel[-1]) if kernel else ['']
        is_cut = len(kernel) == len(stack['frames']) and stack['end'] in (
            'not-taken', 'lost-register', 'limit', 'undescribed')
        if (not kernel or not ENTRIES.match(words[-1] or '')) and not is_cut:
            wrong.append((row['function'], words, stack['end']))
    common.claim(f'{version}: stacks as keys end where the kernel was entered ({len(rows)} rows, '
                 f'{n} hits, {dict(ends)}, wrong: {wrong[:3]})', n > 1000 and not wrong)


def check_rest(version, three, thread, callers):
    ends = {e['stack']['end'] for e in three}
    common.claim(f'{version}: as many frames as are wanted ({len(three)} events, {ends})',
                 three and all(len(e['stack']['frames']) == 3 for e in three)
                 and ends == {'limit'})
    last = {name_of(e['stack']['frames'][-1])[-1] for e in thread if e['stack']['frames']}
    common.claim(f'{version}: a thread of the kernel has no more ({len(thread)} events, {last})',
                 thread and all(ENTRIES.match(n or '') for n in last)
                 and all(e['stack']['end'] == 'outermost' for e in thread))
    common.claim(f'{version}: callers are the functions around ({callers.split()[:12]})',
                 'ksys_write' in callers and 'vfs_write' in callers)


def check(version, text, sent, functions, vmlinux):
    def events_of(name):
        rows = [json.loads(line) for line in sent(text, name).splitlines()]
        return [row for row in rows if 'stack' in row]

    def is_of_program(event):
        return event['tid'] in program

    sites = choose(functions)
    # Before it was executed it had another name, also in tracefs, which shows the last one.
    events = events_of('stacks')
    program = {event['tid'] for event in events if event['comm'] == 'descend'}
    events = list(filter(is_of_program, events))
    check_frames(version, events, traced(sent(text, 'stacks-trace')), sites)
    check_names(version, events, vmlinux)
    check_user(version, events)
    rows = [row for line in sent(text, 'by-stack').splitlines()
            for row in json.loads(line).get('rows', [])]
    check_keys(version, rows)
    check_rest(version, events_of('three'), events_of('thread'), sent(text, 'callers'))
