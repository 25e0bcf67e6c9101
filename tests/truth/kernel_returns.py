# SPDX-License-Identifier: BSD-2-Clause
"""Results and durations of kernel functions: what is done in the guest, and what is claimed of it.

The oracles: the program of the guest logs its own calls, with their results and the time around
each; tracefs has the result of each return.
"""
import collections
import json
import os
import re
import subprocess

import common

N_SLEEPERS = 40
NAP_NS = 3000000
# It says of each call: the function, the time before and after it, and the result.
PROGRAM = f"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
static char block[4096];
static struct {{ const char *of; long long from, to; long result; }} calls[1024];
static int n;
static long long now(void)
{{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}}
static void note(const char *function, long long from, long result)
{{
	calls[n].to = now();
	calls[n].of = function;
	calls[n].from = from;
	calls[n++].result = result;
}}
static void *sleep_once(void *x)
{{
	struct timespec t = {{0, 300000000}};
	nanosleep(&t, NULL);
	return x;
}}
static void many_sleep(void)
{{
	pthread_t threads[{N_SLEEPERS}];
	for (int i = 0; i < {N_SLEEPERS}; i++)
		pthread_create(&threads[i], NULL, sleep_once, NULL);
	for (int i = 0; i < {N_SLEEPERS}; i++)
		pthread_join(threads[i], NULL);
}}
static void nest(void)
{{
	struct epoll_event event = {{0}};
	int fds[4];
	for (int i = 0; i < 4; i++)
		fds[i] = epoll_create1(0);
	for (int i = 3; i-- > 0;)
		epoll_ctl(fds[i], EPOLL_CTL_ADD, fds[i + 1], &event);
}}
int main(int argc, char **argv)
{{
	int null = open("/dev/null", O_RDWR), self = open(argv[0], O_RDONLY);
	struct timespec nap = {{0, {NAP_NS}}};
	if (argc > 1)
		return many_sleep(), 0;
	for (int i = 0; i < 60; i++) {{
		long long from = now();
		note("vfs_write", from, write(null, block, i * 7 + 1));
		from = now();
		note("vfs_read", from, read(self, block, i * 3));
		if (i % 10)
			continue;
		from = now();
		note("hrtimer_nanosleep", from, nanosleep(&nap, NULL));
	}}
	nest();
	for (int i = 0; i < n; i++)
		printf("%s %lld %lld %ld\\n", calls[i].of, calls[i].from, calls[i].to,
		       calls[i].result);
	return 0;
}}
"""
NESTED = 'ep_loop_check_proc'
# The workload calls them. Those that are not there, or are inlined as well, are left out.
BODIES = f"""
vfs_read vfs_write ksys_read ksys_write do_sys_openat2 do_filp_open path_openat link_path_walk
walk_component lookup_fast filp_close pipe_read pipe_write do_pipe2 kernel_clone begin_new_exec
load_elf_binary do_wait do_dentry_open vfs_statx vfs_rename do_renameat2 do_unlinkat vfs_unlink
do_mkdirat vfs_mkdir do_rmdir vfs_rmdir do_mmap mprotect_fixup do_epoll_wait do_epoll_ctl
do_sys_poll eventfd_read timerfd_read hrtimer_nanosleep tcp_sendmsg_locked tcp_recvmsg_locked tcp_ack
tcp_v4_rcv tcp_connect tcp_v4_connect ip_rcv ip_output __ip_queue_xmit udp_sendmsg udp_recvmsg
unix_stream_sendmsg __sys_socket __sys_sendto __sys_recvfrom inet_bind __sys_connect __sys_bind
__sys_listen path_lookupat may_open do_truncate vfs_fsync_range ksys_pwrite64 ksys_pread64
bprm_execve do_madvise alloc_empty_file d_alloc __d_lookup __alloc_skb
""".split()
INIT = """
# Returns.
cairn trace -k --json -o /tmp/own.json $K -c /bin/calls 'vfs_write($ret, $duration, count)' \\
	'vfs_read($ret, $duration) if $ret >= 0 && count < 100000' \\
	'hrtimer_nanosleep($duration)' 'NESTED($ret, $duration)' \\
	'do_sys_openat2(str(filename), $ret)' >/tmp/log 2>/tmp/said
head -3 /tmp/said
send own /tmp/own.json
send log /tmp/log
cairn trace -k --count --by '$ret' --hist '$duration' --json -o /tmp/sums.json $K -c /bin/calls \\
	'vfs_read if $ret > 0' >/tmp/sums.log 2>/dev/null
send sums /tmp/sums.json
send sums-log /tmp/sums.log
cairn trace -k --json -o /tmp/sleepers.json $K -c '/bin/calls many' 'hrtimer_nanosleep($duration)' \\
	2>/tmp/said
grep -E 'not return|not report' /tmp/said
send sleepers /tmp/sleepers.json
for f in do_exit __switch_to; do
	cairn trace -k $K "$f(\\$duration)" >/tmp/said 2>&1
	echo "never $f $? $(head -1 /tmp/said)"
done
: >$T/trace
for f in $(cat /bodies); do echo "r100:r/$f $f rv=\\$retval:x64" >>$T/kprobe_events; done
echo 1 >$T/events/r/enable
rm -f /tmp/said
cairn trace -k --json -o /tmp/returns.json $K $(cat /returns) 2>/tmp/said & pid=$!
wait_for attached /tmp/said
work 3
kill -INT $pid; wait $pid
grep -E 'lost|attached|return' /tmp/said | tail -5
echo 0 >$T/events/r/enable
grep -h ' work-' $T/trace >/tmp/trace
: >$T/kprobe_events
send returns /tmp/returns.json
send returns-trace /tmp/trace
left returns
""".replace('NESTED', NESTED)


def choose(functions):
    """The bodies that have a result, each the only place of its function."""
    return [
        name for name in BODIES
        if [(s['kind'], s['symbol'], s['hazard'])
            for s in functions.get(name, ())] == [('out-of-line', name, None)]
    ]


def files(folder, functions):
    """{path there: path here}."""
    program = os.path.join(folder, 'calls')
    with open(program + '.c', 'w', encoding='ascii') as file:
        file.write(PROGRAM)
    subprocess.run(
        ['gcc', '-O2', '-static', '-pthread', '-o', program, program + '.c'],
        check=True)
    chosen = choose(functions)
    for name, words in (('bodies', chosen), ('returns',
                                             [f + '($ret)' for f in chosen])):
        with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
            file.write(' '.join(words) + '\n')
    return {
        '/bin/calls': program,
        **{'/' + n: os.path.join(folder, n)
           for n in ('bodies', 'returns')}
    }


def logged(text):
    """{function: [(from, to, result) of each call]}."""
    found = collections.defaultdict(list)
    for name, *numbers in re.findall(r'^(\w+) (\d+) (\d+) (-?\d+)$', text,
                                     re.M):
        found[name].append(tuple(map(int, numbers)))
    return found


def parse(text, name, sent):
    return [json.loads(line) for line in sent(text, name).splitlines()]


def check_own(version, text, sent):
    """Each call is within the time that the program saw around it, and has its result."""
    events, calls = parse(text, 'own', sent), logged(sent(text, 'log'))
    ours, wrong = collections.defaultdict(list), []
    for event in events:
        if 'args' in event:
            ours[event['function']].append((event['time_ns'], event['args']))
    n = 0
    for name, its in calls.items():
        # Others of these functions are those of the program's start and end.
        seen = [(end, a) for end, a in sorted(ours[name], key=lambda e: e[0])
                if its[0][0] <= end <= its[-1][1]]
        if len(seen) != len(its):
            wrong.append((name, len(seen), len(its)))
        for (end, args), (before, after, result) in zip(seen, its):
            n += 1
            if not before <= end - args['$duration'] <= end <= after or \
                    args.get('$ret', result) != result:
                wrong.append((name, end, args, before, after, result))
    naps = [a['$duration'] for _, a in ours['hrtimer_nanosleep']]
    common.claim(
        f'{version}: results and times are those of the program ({n} calls, wrong: '
        f'{wrong[:3]})', n > 100 and not wrong)
    common.claim(f'{version}: who sleeps is not back early ({naps[:3]})',
                 len(naps) >= 6 and min(naps) >= NAP_NS)
    opened = [
        a for _, a in ours['do_sys_openat2']
        if a['str(filename)'] == '/bin/calls'
    ]
    common.claim(
        f'{version}: a string of the program is read from its memory ({opened})',
        [a['$ret'] > 2 for a in opened] == [True])
    nested = [(end - a['$duration'], end) for end, a in ours[NESTED]]
    around = sum(a < b and d < c for a, c in nested for b, d in nested)
    common.claim(
        f'{version}: calls within calls of the same function are apart ({len(nested)}, '
        f'{around} within another)',
        len(nested) >= 6 and around >= 4)


def check_sums(version, text, sent):
    rows = next(t['rows'] for t in parse(text, 'sums', sent) if 'rows' in t)
    expected = collections.Counter(
        r for _, _, r in logged(sent(text, 'sums-log'))['vfs_read'] if r > 0)
    counted = collections.Counter(
        {row['by']['$ret']: row['count']
         for row in rows})
    hist = sum(b['count'] for row in rows for b in row['hist']['$duration'])
    common.claim(
        f'{version}: sums by the result are those of the program '
        f'({sum(counted.values())}, {sum(expected.values())}, {hist})',
        counted == expected and hist == sum(expected.values()) > 50)


def check_sleepers(version, text, sent):
    """More calls at a time than the kernel follows: none is told as another, and none is silent."""
    events = parse(text, 'sleepers', sent)
    durations = [e['args']['$duration'] for e in events if 'args' in e]
    summary = events[-1]
    others = summary['unfinished'] + summary['unwound']
    common.claim(
        f'{version}: {N_SLEEPERS} sleepers at a time are seen or counted ({len(durations)} seen, '
        f'{others} not, the kernel tells {summary["returns_missed"]})',
        len(durations) + others == N_SLEEPERS and min(durations) >= 300000000
        and (summary['missed_unknown'] or summary['returns_missed'] == others))


def is_same(value, register):
    """A value of 1 to 8 bytes, and the register that has it; in text it is an address."""
    if isinstance(value, str) and re.fullmatch('0x[0-9a-f]+', value):
        value = int(value, 16)
    if not isinstance(value, int):
        return None
    sizes = (8, 16, 32, 64) if isinstance(value, bool) else (32, 64)
    return any((int(value) - register) % (1 << n) == 0 for n in sizes)


def check_results(version, text, sent):
    events = parse(text, 'returns', sent)
    summary = events[-1]
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for event in sorted((e for e in events if 'args' in e),
                        key=lambda e: e['time_ns']):
        ours[event['function'], event['tid']].append(event['args'].get('$ret'))
    for tid, name, value in re.findall(
            r'^\s*work-(\d+)\s.*?: (\w+): \(.*\) rv=(0x[0-9a-f]+)$',
            sent(text, 'returns-trace'), re.M):
        theirs[name, int(tid)].append(int(value, 16))
    wrong, uneven, n, missing = [], [], 0, 0
    told = summary['lost'] + summary['missed'] + summary['returns_missed'] + \
        summary['unfinished'] + summary['unwound']
    for key, values in theirs.items():
        if len(values) != len(ours[key]):
            missing += abs(len(values) - len(ours[key]))
            uneven.append((key, len(ours[key]), len(values)))
            continue
        for mine, other in zip(ours[key], values):
            same = is_same(mine, other)
            n += same is not None
            if same is False:
                wrong.append((key, mine, hex(other)))
    functions = {name for name, _ in theirs}
    common.claim(
        f'{version}: results are those of tracefs ({n} of {len(functions)} functions, wrong: '
        f'{wrong[:3]})', n > 300 and len(functions) >= 30 and not wrong)
    common.claim(
        f'{version}: as many returns as tracefs has ({missing} missing of {told} that are '
        f'told, {uneven[:3]})', missing <= told)


def check(version, text, sent):
    check_own(version, text, sent)
    check_sums(version, text, sent)
    check_sleepers(version, text, sent)
    check_results(version, text, sent)
    never = re.findall(r'^never (\w+) (\d+) (.*)$', text, re.M)
    common.claim(
        f'{version}: functions that do not return are refused ({never})',
        [s for _, s, _ in never] == ['2', '2']
        and 'never returns' in never[0][2] and 'another stack' in never[1][2])
