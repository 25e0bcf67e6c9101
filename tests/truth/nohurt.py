#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs compute the same with every site traced as without, also where a probe set blindly
corrupts them.

First the controls: a plain user probe on a 5-byte nop in a red-zone leaf does corrupt it, and one
on a lock prefix never fires. Where a kernel does not do that the claim would prove nothing and is
skipped. Then the same sites through Cairn, then functions of the C library under sort and awk, all
sites at once. (calls.py checks the same of every generated program.)
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

ROUNDS = 20000
LIBC = '/lib/x86_64-linux-gnu/libc.so.6'
BUILDS = [('gcc', 'gcc', ['-O2', '-g']), ('gcc-no-pie', 'gcc', ['-O2', '-g', '-fno-pie',
                                                                '-no-pie']),
          ('clang', 'clang', ['-O2', '-g']),
          # Every function begins with a 5-byte nop.
          ('gcc-nop-entry', 'gcc', [
              '-O2', '-g', '-fno-pie', '-no-pie', '-pg', '-mfentry', '-mnop-mcount'
          ])]


def foff(path, at):
    """File offset of a link-time address, from readelf's program headers."""
    _, out, _ = common.run(['readelf', '-lW', path])
    for line in out.splitlines():
        found = re.match(r'\s*LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)', line)
        if found:
            off, vaddr, size = (int(x, 16) for x in found.groups())
            if vaddr <= at < vaddr + size:
                return off + at - vaddr
    raise RuntimeError(f'{path}: {at:#x} is in no segment')


def results(text):
    """{function: (calls, wrong)} and the checksum"""
    rows = dict(re.findall(r'^(\w+) (-?\d+ ?-?\d*)$', text, re.M))
    return rows.get('checksum'), {k: int(v.split()[1]) for k, v in rows.items() if k != 'checksum'}


def control(name, folder, program, expected):
    """A blind probe at each hazardous site. True when the harm is real here."""
    plain = common.compile_c([os.path.join(HERE, 'nohurt', 'plain_uprobe.c')],
                             os.path.join(folder, 'plain_uprobe'), ['-O2'])
    ats = {row[4]: row[2] for row in common.dies(program) if row[0] == 'inlined' and row[3]}
    _, out, err = common.run([plain, hex(foff(program, ats['nop_here'])), program, str(ROUNDS)])
    checksum, wrong = results(out)
    harm = checksum != expected
    if harm:
        common.ok(
            f'nohurt {name}: control: a blind probe on the 5-byte nop makes {wrong["red_zone"]} of {ROUNDS} results wrong'
        )
    else:
        common.skip(f'nohurt {name}: control', 'the 5-byte nop is not rewritten here, or nothing '
                                               'lies in the red zone: ' + err.strip()[-100:])
    _, _, err = common.run([plain, hex(foff(program, ats['locked_here'])), program, str(ROUNDS)])
    if 'hits 0' in err:
        common.ok(f'nohurt {name}: control: a blind probe on a lock prefix is never hit')
    else:
        common.skip(f'nohurt {name}: control of the lock prefix',
                    'this kernel: ' + err.strip()[-100:])


def hazards(name, program):
    for function, word in (('nop_here', 'nop5'), ('locked_here', 'lock')):
        rows = common.cairn_sites(program, function)
        common.claim(
            f'nohurt {name}: sites names the hazard of {function}',
            any(word in str(row.get('hazard')).replace('-', '').replace('_', '') for row in rows))


def trace(folder, program, functions, args, *options):
    """(exit code, stdout of the program, events by function, stderr)"""
    events = os.path.join(folder, 'events')
    if os.path.exists(events):
        os.unlink(events)
    code, out, err = common.run([
        common.CAIRN, 'trace', '--json', *options, '-o', events, '-c', f'{program} {args}',
        *functions
    ], 240)
    counts = {}
    if os.path.exists(events):
        with open(events, encoding='utf-8') as file:
            for row in common.json_lines(file.read()):
                if 'args' in row:
                    counts[row['function']] = counts.get(row['function'], 0) + 1
    return code, out, counts, err


def traced(name, folder, program, expected):
    code, _, counts, err = trace(folder, program, ['locked_here'], ROUNDS)
    n = counts.get('locked_here', 0)
    common.claim(
        f'nohurt {name}: a site with a lock prefix is refused or counted, never silently lost ({n} events, exit {code})',
        (code != 0 and n == 0 and 'lock' in err) or (code == 0 and n == ROUNDS))
    code, out, counts, err = trace(folder, program, ['nop_here'], ROUNDS)
    n = counts.get('nop_here', 0)
    common.claim(
        f'nohurt {name}: a 5-byte nop in a red zone is refused or moved ({n} events, exit {code})',
        (code != 0 and n == 0) or (code == 0 and n == ROUNDS and results(out)[0] == expected))
    everything = ['red_zone', 'nop_here', 'counted', 'locked_here', 'entered', 'main']
    code, out, counts, err = trace(folder, program, everything, ROUNDS, '--best-effort')
    common.claim(f'nohurt {name}: all functions traced, the checksum is the same', code == 0
                 and results(out)[0] == expected)
    lost = re.search(r'[^0-9]0 (?:events )?lost|lost[ :=]*0', err)
    if lost or counts.get('entered') == ROUNDS:
        common.claim(f'nohurt {name}: entry and events are as many as calls ({counts})',
                     counts.get('entered') == counts.get('red_zone') == ROUNDS)
    else:
        common.skip(f'nohurt {name}: number of events', f'events were lost: {err.strip()[-200:]}')


def libc_functions():
    """Functions of malloc and stdio with inlined copies, by the DIEs of libc's debug file."""
    build_id = re.search(r'Build ID: (\w\w)(\w+)', common.run(['readelf', '-n', LIBC])[1])
    debug = build_id and f'/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug'
    if not debug or not os.path.exists(debug):
        return None
    names = {}
    for kind, _, _, has_code, name, file, _, _ in common.dies(debug):
        # Under mtrace-like functions everything would be traced twice; arenas, tcache and buffers
        # are the hot ones.
        if has_code and kind == 'inlined' and file.split('/')[-1] in ('malloc.c', 'arena.c',
                                                                      'genops.c', 'fileops.c',
                                                                      'iofwrite.c'):
            names[name] = names.get(name, 0) + 1
    return sorted(names, key=names.get, reverse=True)[:40]


def library(folder):
    functions = libc_functions()
    if not functions:
        common.skip('nohurt libc', 'libc6-dbg is not installed, or is not of this libc')
        return
    words = os.path.join(folder, 'words')
    with open(words, 'w', encoding='ascii') as file:
        file.writelines(f'{(i * 7919) % 10007} word{i % 37}\n' for i in range(10000))
    for label, command in (('sort', f'/usr/bin/sort -n -k1 {words}'),
                           ('awk',
                            "/usr/bin/awk -f " + os.path.join(folder, 'sum.awk') + ' ' + words)):
        with open(os.path.join(folder, 'sum.awk'), 'w', encoding='ascii') as file:
            file.write(
                '{ n[$2] += $1; t[$2] = t[$2] substr($2, 1, 2) } END { for (k in n) s += n[k] * length(t[k]); print s }\n'
            )
        expected = common.run(command.split())[1]
        events = os.path.join(folder, 'events')
        code, out, err = common.run([
            common.CAIRN, 'trace', '--json', '--best-effort', '-o', events, '-c', command,
            *[f'{LIBC}:{f}()' for f in functions]
        ], 240)
        with open(events, 'rb') as file:
            n = sum(1 for _ in file)
        common.claim(
            f'nohurt libc: {label} prints the same with {len(functions)} functions of libc traced ({n} lines of events)',
            code == 0 and out == expected and n > 1000)
        if code != 0:
            print(err[-1000:])


def main():
    reason = common.may_trace()
    missing = common.have('gcc', 'clang', 'readelf')
    if reason or missing or common.dw_program('dies') is None:
        common.skip('nohurt', reason or 'not installed: ' + ' '.join(missing or ['libdw-dev']))
        return common.finish()
    folder = common.lab('nohurt')
    for name, compiler, flags in BUILDS:
        program = os.path.join(folder, 'leaf.' + name)
        common.compile_c([os.path.join(HERE, 'nohurt', 'leaf.c')], program, flags, compiler)
        expected, _ = results(common.run([program, str(ROUNDS)])[1])
        control(name, folder, program, expected)
        try:
            hazards(name, program)
            traced(name, folder, program, expected)
        except RuntimeError as error:
            print(error)
            common.not_ok(f'nohurt {name}')
    library(folder)
    return common.finish()


if __name__ == '__main__':
    main()
