#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""200 random structs: Cairn decodes each through a pointer, and every field must equal what the
program itself printed."""
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'structs')]
import common   # noqa: E402
import compare  # noqa: E402
import gen      # noqa: E402

STRUCTS = 200
PER_PROGRAM = 40
ROUNDS = 3


def make_program(folder, index):
    rng = random.Random(1000 + index)
    generator = gen.Generator(rng)
    structs = [(f's{index}_{i}', *generator.struct(f's{index}_{i}')) for i in range(PER_PROGRAM)]
    source = os.path.join(folder, f'structs{index}.c')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(gen.program(structs, 77 + index))
    return source, structs


def decoded_value(row):
    for name, value in row['args'].items():
        if name.replace(' ', '') in ('*p', '(*p)'):
            return value
    return None


def traced_values(program, output, structs, folder):
    events = os.path.join(folder, 'events')
    if os.path.exists(events):
        os.unlink(events)
    probes = [f'see_{tag}(round, *p)' for tag, _, _ in structs]
    cmd = [common.CAIRN, 'trace', '--json', '-o', events, '-c', f'{program} {output}', *probes]
    code, _, err = common.run(cmd, 120)
    if code != 0:
        raise RuntimeError(f'cairn trace: exit code {code}: {err[-1000:]}')
    values = {}
    with open(events, encoding='utf-8') as file:
        for row in common.json_lines(file.read()):
            if 'args' in row:
                values.setdefault(row['function'], []).append(decoded_value(row))
    return values


def check_build(name, program, structs, folder):
    output = os.path.join(folder, 'fields')
    values = traced_values(program, output, structs, folder)
    with open(output, encoding='utf-8') as file:
        printed = [json.loads(line) for line in file]
    by_tag = {}
    for row in printed:
        by_tag.setdefault(row['struct'], []).append(row)
    equal, wrong = 0, []
    for tag, _, desc in structs:
        seen = values.get(f'see_{tag}', [])
        if len(seen) != ROUNDS:
            wrong.append((tag, f'{ROUNDS} events', len(seen)))
            continue
        for row, value in zip(by_tag[tag], seen):
            for path, expected, got in compare.differences(desc, row['fields'], value):
                if expected is None and got is None:
                    equal += 1
                else:
                    wrong.append((tag + path, expected, got))
    for path, expected, got in wrong[:10]:
        print(f'{name}: {path}: printed {expected!r}, decoded {got!r}')
    return common.claim(f'structs {name}: {equal} fields of {len(structs)} structs equal', not wrong
                        and equal > 0)


def main():
    reason = common.may_trace()
    missing = common.have('gcc', 'clang')
    if missing or (reason and '--compile-only' not in sys.argv):
        common.skip('structs', reason or 'not installed: ' + ' '.join(missing))
        return common.finish()
    folder = common.lab('structs')
    for index in range(STRUCTS // PER_PROGRAM):
        source, structs = make_program(folder, index)
        for compiler, flags in (('gcc', ['-O2', '-g']), ('clang', ['-O2', '-g'])):
            program = os.path.join(folder, f'structs{index}.{compiler}')
            common.compile_c([source], program, flags + ['-w', '-fno-strict-aliasing'], compiler)
            if reason:
                code, _, err = common.run([program, os.path.join(folder, 'fields')])
                with open(os.path.join(folder, 'fields'), encoding='utf-8') as file:
                    rows = [json.loads(line) for line in file]
                print(program, code, len(rows), max(r['size'] for r in rows), err)
                continue
            try:
                check_build(f'{compiler} {index}', program, structs, folder)
            except RuntimeError as error:
                print(error)
                common.not_ok(f'structs {compiler} {index}')
    return common.finish()


if __name__ == '__main__':
    main()
