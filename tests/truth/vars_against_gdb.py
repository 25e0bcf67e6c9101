#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines and the variables in scope there: nginx, git, zstd, ninja (C++) and a program around Rust's
crate regex.

    vars_against_gdb.py [NAME...]     only these programs

1. Lines, drawn from those of which a row of the line table begins a statement, as LLVM reads it:
   each has places, and each place that `cairn sites --lines` has is such a row.
2. Variables. gdb stops at places of lines and reads each variable in scope. The location that
   `cairn sites --vars` has of it is evaluated on the same registers and memory (vars_in_gdb.py).
   Both values must be equal unless gdb is shown to be wrong: against_gdb.py tells how. What only
   one of both has is counted by the reason.
3. Events. The integers that were seen there are traced in another run of the programs that do the
   same each time, and compared in the order of the hits."""
import collections
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'calls')]
import common  # noqa: E402
import sources  # noqa: E402
import tracers  # noqa: E402

PLACES = 12000  # of a program, for gdb
HITS = 8  # of each
VALUES = 45000  # of each program
VALUES_ALL = 100000
LIVE_LINES = 150  # with one run of the program for 50 of them
NAMES = 12  # of a line, at most
SECONDS = 150
SPECS = 4000  # of one command
SHOWN = 12
LINES = 5000  # of a program, drawn
DRAWN = 25  # lines without a place

NGINX = '''daemon off; master_process off; pid nginx.pid; error_log error.log info;
events { worker_connections 64; }
http {
  access_log access.log;
  types { text/html html; text/css css; application/javascript js; }
  server { listen 127.0.0.1:%d; server_name a.example *.b.example;
    location / { root .; index index.html; }
    location ~* never { return 404; }
    location /old { return 301 /new; }
    location = /exact { return 200 "yes $arg_n $remote_addr"; }
    location /list/ { alias ./; autoindex on; }
  }
}
'''


class Subject:
    is_repeatable = True
    is_c = True
    files = ''  # a pattern of those whose lines are looked at
    server = None  # called while gdb runs the program

    def __init__(self, name, program, args, stdin=os.devnull, cwd=None):
        self.name, self.program, self.args, self.stdin, self.cwd = name, program, args, stdin, cwd


# ---- the programs and what they do ----


def text_of_words(path, lines=3000):
    """The same each time."""
    make = random.Random(5)
    with open(path, 'w', encoding='ascii') as file:
        for _ in range(lines):
            file.write(' '.join(f'w{make.randrange(400)}' for _ in range(make.randrange(1, 9))))
            file.write('\n')
    return path


def repository(git, folder):
    """Thirty commits over twelve files, with a fixed date."""
    path = os.path.join(folder, 'repository')
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    env = {**os.environ, 'HOME': folder, 'GIT_CONFIG_NOSYSTEM': '1'}
    make = random.Random(9)

    def call(*words, date=0):
        stamp = f'@{1600000000 + date} +0000'
        subprocess.run([git, '-c', 'user.name=a', '-c', 'user.email=a@b', '-C', path, *words],
                       check=True,
                       stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL,
                       timeout=60,
                       env={
                           **env, 'GIT_AUTHOR_DATE': stamp,
                           'GIT_COMMITTER_DATE': stamp
                       })

    call('init', '-q')
    lines = {f'd{i % 3}/f{i}.c': [f'int v{j};' for j in range(40)] for i in range(12)}
    for commit in range(30):
        name = make.choice(sorted(lines))
        for _ in range(5):
            lines[name][make.randrange(len(lines[name]))] = f'int n{make.randrange(10**6)};'
        for file, text in lines.items():
            os.makedirs(os.path.dirname(os.path.join(path, file)), exist_ok=True)
            with open(os.path.join(path, file), 'w', encoding='ascii') as out:
                out.write('\n'.join(text) + '\n')
        call('add', '.', date=commit)
        call('commit', '-q', '-m', f'change {commit}\n\nof {name}', date=commit)
    return path


def git_subject(folder):
    git = sources.git()
    path = repository(git, folder)
    return Subject('git', git, [
        '--no-pager', '-C', path, 'log', '-p', '--stat', '-M', '--graph', '--since=2001-01-01',
        '--grep=change', '--', 'd1', 'd2'
    ])


def zstd_subject(folder):
    words = text_of_words(os.path.join(folder, 'words'))
    return Subject('zstd', sources.zstd(), ['--single-thread', '-q', '-f', '-k', '-7', words])


def graph_of_files(folder):
    """200 edges of which nothing is made yet; ninja -n tells what it would do."""
    path = os.path.join(folder, 'ninja')
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, 'build.ninja'), 'w', encoding='ascii') as file:
        file.write('v = 3\nrule cc\n  command = gcc -c $in -o $out $flags\n'
                   '  description = CC $out\n  depfile = $out.d\n  deps = gcc\n')
        for i in range(200):
            file.write(f'build o{i}: cc s{i} | h{i % 7}' + (f' o{i - 3}' if i > 3 else '') +
                       f'\n  flags = -O$v -D{i}\n')
        file.write('default ' + ' '.join(f'o{i}' for i in range(0, 200, 3)) + '\n')
    for i in range(200):
        for name in (f's{i}', f'h{i}'):
            with open(os.path.join(path, name), 'w', encoding='ascii'):
                pass
    return path


def ninja_subject(folder):
    subject = Subject('ninja (C++)', sources.ninja(), ['-n', '-v', '-C', graph_of_files(folder)])
    subject.is_c = False
    # A line of the C++ library has places in a hundred functions, of which few are called.
    subject.files = '^src/'
    return subject


def rust_subject(folder):
    # An expression is compiled for each line: 500,000 calls, with those that were inlined.
    words = text_of_words(os.path.join(folder, 'few-words'), 3)
    subject = Subject('regex (Rust)',
                      sources.rust_regex(('-O', )), ['w1+2', 'w(3|4)5*', '[0-9]{3}', 'w3?9.w'],
                      stdin=words)
    subject.is_c = False
    subject.files = '^(src|ast|hir|literal|teddy|memmem|packed|memchr)/'  # mostly of the crates
    return subject


def ask(port, done):
    """Requests until gdb has seen enough."""
    number = 0
    while not done.is_set():
        number += 1
        path = [
            '/', '/index.html', '/none', '/old/x', f'/exact?n={number}', '/list/', '/d%41?q',
            '/a.css'
        ][number % 8]
        try:
            http_ = http.client.HTTPConnection('127.0.0.1', port, timeout=20)
            http_.request('GET',
                          path,
                          headers={
                              'Host': f'x{number}.b.example',
                              'Cookie': 'a=b',
                              'If-Modified-Since': 'Sat, 28 Nov 2020 00:00:00 GMT'
                          })
            http_.getresponse().read()
            http_.close()
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)


def nginx_subject(folder):
    path = os.path.join(folder, 'nginx')
    os.makedirs(os.path.join(path, 'logs'), exist_ok=True)
    port = 18000 + os.getpid() % 2000
    for name, text in (('nginx.conf', NGINX % port), ('index.html', 'hello\n' * 50),
                       ('a.css', 'a { b: c }\n')):
        with open(os.path.join(path, name), 'w', encoding='ascii') as file:
            file.write(text)
    subject = Subject('nginx', sources.nginx(),
                      ['-p', path, '-c', os.path.join(path, 'nginx.conf')])
    subject.is_repeatable = False
    subject.server = lambda done: ask(port, done)
    return subject


SUBJECTS = {
    'nginx': nginx_subject,
    'git': git_subject,
    'zstd': zstd_subject,
    'ninja': ninja_subject,
    'rust': rust_subject
}

# ---- lines ----


class Reader:
    """The rows of LLVM's --debug-line."""

    def __init__(self):
        self.names, self.folders, self.number, self.found = {}, {}, 0, collections.defaultdict(set)
        self.name = None

    def header(self, line):
        if line.startswith('Line table prologue'):
            self.names, self.folders = {}, {}
        folder = re.match(r'include_directories\[\s*(\d+)\] = "(.*)"', line)
        if folder:
            self.folders[int(folder[1])] = folder[2]
        entry = re.match(r'file_names\[\s*(\d+)\]:', line)
        if entry:
            self.number = int(entry[1])
        name = re.match(r'\s+name: "(.*)"', line)
        if name:
            self.name = name[1]
        index = re.match(r'\s+dir_index: (\d+)', line)
        if index:
            whole = os.path.join(self.folders.get(int(index[1]), ''), self.name)
            self.names[self.number] = '/'.join(whole.split('/')[-2:])

    def row(self, line):
        row = re.match(r'0x(\w+)\s+(\d+)\s+\d+\s+(\d+)\s+\d+\s+\d+(?:\s+\d+)?(.*)', line)
        if row and 'is_stmt' in row[4] and 'end_sequence' not in row[4] and row[2] != '0':
            self.found[self.names.get(int(row[3]), ''), int(row[2])].add(int(row[1], 16))


def statements(path):
    """{(end of the file's path, line): {address}} of the rows that begin a statement."""
    reader = Reader()
    with subprocess.Popen(['llvm-dwarfdump', '--debug-line', path],
                          stdout=subprocess.PIPE,
                          text=True,
                          errors='replace') as process:
        for line in process.stdout:
            if line.startswith('0x'):
                reader.row(line)
            else:
                reader.header(line)
    code = code_of(path)
    # What the linker has dropped begins at 0 or 1.
    found = {
        row: {at
              for at in those if any(lo <= at < hi for lo, hi in code)}
        for row, those in reader.found.items()
    }
    return {row: those for row, those in found.items() if those}


def code_of(path):
    """Ranges of the sections with code."""
    sections = re.findall(r'^ +\[ *\d+\] \S+ +\S+ +(\w+) \w+ (\w+) \w+ +\w*X',
                          common.run(['readelf', '-SW', path])[1], re.M)
    return [(int(at, 16), int(at, 16) + int(size, 16)) for at, size in sections]


def asked(path, option, specs):
    """What `cairn sites OPTION` has of lines: [object]."""
    found = []
    for i in range(0, len(specs), SPECS):
        _, out, _ = common.run(
            [common.CAIRN, 'sites', path, '--json', '--no-demangle', option, *specs[i:i + SPECS]],
            600)
        found += [o for o in common.json_lines(out) if 'addr' in o]
    return found


def is_in_function(path, at):
    """Not in assembler, and not in a function that GCC has found to be the same as another one: it
    describes only one of them."""
    return 'DW_TAG_subprogram' in common.run(['llvm-dwarfdump', f'--lookup={at:#x}', path])[1]


def check_lines(subject, rows):
    """Returns the places."""
    rows = {row: at for row, at in rows.items() if re.search(subject.files, row[0])}
    drawn = random.Random(2).sample(sorted(rows), min(len(rows), LINES))
    rows = {row: rows[row] for row in drawn}
    specs = [f'{file}:{line}' for file, line in drawn]
    places = asked(subject.program, '--lines', specs)
    base = {(os.path.basename(file), line, at)
            for (file, line), those in rows.items() for at in those}
    ours = {(os.path.basename(p['file']), p['line'], int(p['addr'], 16)) for p in places}
    lines = {(file, line) for file, line, _ in base}
    none = lines - {(file, line) for file, line, _ in ours}
    lost = [
        row for row in random.Random(8).sample(sorted(none), min(len(none), DRAWN)) if any(
            is_in_function(subject.program, at) for file, line, at in base if (file, line) == row)
    ]
    print(
        f'{subject.name}: {len(lines)} lines, drawn, with {len(base)} rows that begin a statement; '
        f'{len(ours)} places of {len(lines) - len(none)} lines')
    for row in sorted(ours - base)[:SHOWN] + lost[:SHOWN]:
        print(f'{subject.name}: {row}')
    common.claim(f'lines of {subject.name}: each place is a row that begins a statement',
                 bool(ours) and ours <= base)
    common.claim(
        f'lines of {subject.name}: each line with such a row has a place, unless no function '
        f'has its code ({len(none)}, of which {DRAWN} are looked up)', not lost)
    return places


# ---- variables ----


class Serving:
    """What the program needs while it runs, if it needs something."""

    def __init__(self, subject):
        self.done = threading.Event()
        if subject.server:
            threading.Thread(target=subject.server, args=(self.done, ), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done.set()


def counts_of(subject, folder):
    """{function: hits of its entry and its copies} of one run; if it serves, of some seconds."""
    out = os.path.join(folder, 'counts.json')
    stop = ['timeout', '-s', 'INT', '25'] if subject.server else []
    with open(subject.stdin, 'rb') as stdin, Serving(subject):
        subprocess.run([
            *stop, common.CAIRN, 'trace', '--no-cache', '--json', '--best-effort', '--count',
            '--max-slowdown', 'off', '-o', out, '-c', ' '.join([subject.program, *subject.args
                                                                ]), '*'
        ],
                       stdin=stdin,
                       stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL,
                       check=False,
                       timeout=300)
    with open(out, encoding='utf-8') as file:
        tables = [o for o in common.json_lines(file.read()) if 'rows' in o]
    found = collections.Counter()
    for row in (row for table in tables for row in table['rows']):
        found[row['function']] += row['count']
    return found


def last_name(name):
    return (re.findall(r'\w+', re.sub(r'<.*|\(.*', '', name or '')) or [name])[-1]


def places_for_gdb(subject, folder, of_lines):
    """Of some lines, drawn, of functions that are called: all their places. In C++ and Rust many
    functions have one name: there of the lines that were asked for."""
    called = sorted(name for name, n in counts_of(subject, folder).items() if n)
    if subject.is_c:
        spec = function_spec
        places = asked(subject.program, '--lines', called)
    else:
        spec, names = spec_of, {last_name(name) for name in called}
        places = [p for p in of_lines if last_name(p['function']) in names]
    lines = collections.Counter(spec(p) for p in places)
    specs, total, chosen = sorted(lines), 0, []
    random.Random(3).shuffle(specs)
    for one_of in specs:
        total += lines[one_of]
        if total > PLACES:
            break
        chosen.append(one_of)
    places, seen = [], set()
    for place in asked(subject.program, '--vars', chosen):
        key = place['addr'], place['line'], place['function']
        if not place['hazard'] and place['function'] and key not in seen:
            seen.add(key)
            places.append(place)
    return places


def function_spec(place):
    return f'{place["function"]}:{place["line"]}'


def spec_of(place):
    return f'{"/".join(place["file"].split("/")[-2:])}:{place["line"]}'


def symbols_of(path):
    """{name: [address]}"""
    found = collections.defaultdict(list)
    for fields in map(str.split, common.run(['nm', path])[1].splitlines()):
        if len(fields) == 3:
            found[fields[2].split('@')[0]].append(int(fields[0], 16))
    return found


def read_in_gdb(subject, folder, places):
    label = re.sub(r'\W+', '-', subject.name)
    job = {
        'program':
        subject.program,
        'args':
        subject.args,
        'entry':
        tracers.entry_address(subject.program),
        'output':
        os.path.join(folder, label + '.out'),
        'hits':
        HITS,
        'values':
        VALUES,
        'seconds':
        SECONDS,
        'symbols':
        symbols_of(subject.program),
        'places': [{
            'id': i,
            'at': int(p['addr'], 16),
            'function': p['function'],
            'depth': len(p['chain']),
            'vars': {v['name']: v['loc'] or [v['unavailable']]
                     for v in reversed(p['vars'])}
        } for i, p in enumerate(places)]
    }
    path = os.path.join(folder, label + '.job')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(job, file)
    with Serving(subject):
        run_gdb(subject, path, folder)
    with open(job['output'], encoding='utf-8') as file:
        return json.load(file)


def run_gdb(subject, job, folder):
    script = os.path.join(HERE, 'vars_in_gdb.py')
    with open(subject.stdin, 'rb') as stdin, open(os.path.join(folder, 'gdb.log'), 'wb') as log:
        subprocess.run(['gdb', '-nx', '-batch', '-x', script],
                       stdin=stdin,
                       stdout=log,
                       stderr=log,
                       check=False,
                       timeout=6 * SECONDS,
                       env={
                           **os.environ, 'VARS_JOB': job
                       })
    with open(log.name, encoding='utf-8', errors='replace') as file:
        text = file.read()[-20000:]
    if 'Traceback' in text or 'Python Exception' in text:
        raise RuntimeError(f'gdb: {text[-1500:]}')


class Excuses:
    """Differences that are gdb's."""

    def __init__(self, program, different):
        """One pass of LLVM over the variables of these names."""
        self.views, self.pieces = set(), collections.defaultdict(set)
        names = sorted({d[2] for d in different})
        if not names:
            return
        _, out, _ = common.run(['llvm-dwarfdump', *(f'--name={n}' for n in names), program], 600)
        for block in re.split(r'\n\n', out):
            name = re.search(r'DW_AT_name\s+\("(.*)"\)', block)
            for lo, hi, text in re.findall(r'\[0x([0-9a-f]+), 0x([0-9a-f]+)\): (.*)', block):
                self.entry(name and name[1], int(lo, 16), int(hi, 16), text)

    def entry(self, name, lo, hi, text):
        if lo == hi:
            self.views.add(lo)
        pieces = re.findall(r'DW_OP_piece 0x([0-9a-f]+)', text)
        if pieces:
            self.pieces[name].add(sum(int(p, 16) for p in pieces))

    def of(self, place, name, at, size):
        if at in self.views:
            return 'gdb does not know location views'
        if any(bytes_ < size for bytes_ in self.pieces[name]):
            return 'described in part, which gdb fills with zeros'
        return None


def report(subject, told, places):
    """Returns how many values are equal."""
    excuses = Excuses(subject.program, told['different'])
    excused, wrong = collections.Counter(), []
    for place, function, name, at, text, ours, theirs, size in told['different']:
        why = excuses.of(place, name, at, size)
        excused[why] += 1
        if not why:
            wrong.append(f'{function}: {name} at {at:#x} ({places[place]["file"]}:'
                         f'{places[place]["line"]}): cairn {text} = {ours}, gdb {theirs}')
    del excused[None]
    only_gdb, only_cairn = (sum(told[key].values()) for key in ('only_gdb', 'only_cairn'))
    both = told['equal'] + len(told['different']) + only_gdb
    print(f'{subject.name}: {told["stops"]} stops at {len(told["lines"])} places; {told["equal"]} '
          f'values equal {told["kinds"]}, {len(wrong)} different, gdb wrong {dict(excused)}; '
          f'of what gdb has we have {1 - only_gdb / max(both, 1):.3f}; {told["several"]} texts '
          'name one of several symbols')
    print(f'{subject.name}: only gdb, by our reason: {told["only_gdb"]}')
    print(f'{subject.name}: only we, {only_cairn}, by gdb\'s words: {told["only_cairn"]}')
    print(f'{subject.name}: neither {told["neither"]}; unreadable to both {told["unreadable"]}; '
          f'function not found {told["functions_unknown"]}')
    print(f'{subject.name}: not listed: {sum(told["not_listed"].values())}: '
          f'{list(told["not_listed"])[:SHOWN]}')
    for reason, lines in told['examples'].items():
        for line in lines[:2]:
            print(f'{subject.name}: {reason}: {line[:220]}')
    for line in sorted(set(wrong))[:SHOWN] + [str(f)[:300] for f in told['failed'][:SHOWN]]:
        print(f'{subject.name}: {line}')
    common.claim(f'variables of {subject.name}: no difference in {told["equal"]} values', not wrong
                 and told['equal'] > 0)
    common.claim(f'variables of {subject.name}: every location could be evaluated',
                 not told['failed'])
    return told['equal']


# ---- events ----


def lines_without(places):
    """{name of a file's variable: lines with a place that another file's function has inlined, where
    the name is none}. A probe of all places of the line cannot have it."""
    of_files, everywhere = collections.defaultdict(set), {}
    for place in places:
        names, spec = {v['name'] for v in place['vars']}, spec_of(place)
        everywhere[spec] = everywhere.get(spec, names) & names
        for v in place['vars']:
            if v['kind'] == 'global':
                of_files[v['name']].add(spec)
    return collections.defaultdict(
        set, {
            name: {spec
                   for spec in specs if name not in everywhere[spec]}
            for name, specs in of_files.items()
        })


def live(subject, folder, told, places):
    """The integers at lines of another run, traced."""
    if not subject.is_repeatable:
        return common.skip(f'events of {subject.name}', 'it does not do the same each time')
    values, names = collections.defaultdict(list), collections.defaultdict(set)
    others = lines_without(places)
    for key, seen in told['integers'].items():
        number, name = key.split(' ', 1)
        place = places[int(number)]
        # What clocks say is not the same in another run.
        if re.fullmatch(r'\w+', name) and not re.search('(?i)time|cpu|clock', name) and \
                spec_of(place) not in others[name]:
            line = spec_of(place)
            names[line].add(name)
            values[place['addr'], os.path.basename(line), name] = seen
    lines = random.Random(4).sample(sorted(names), min(LIVE_LINES, len(names)))
    equal, wrong = 0, []
    for i in range(0, len(lines), 50):
        for key, ours in events(subject, folder, {line: names[line]
                                                  for line in lines[i:i + 50]}).items():
            for mine, seen in zip(ours, values.get(key, [])):
                # An enumerator is a name in events.
                if isinstance(mine, str) or seen is None:
                    continue
                equal += mine == seen
                if mine != seen:
                    wrong.append((key, mine, seen))
    for line in wrong[:SHOWN]:
        print(f'{subject.name}: event {line[0]}: traced {line[1]}, in gdb {line[2]}')
    print(f'{subject.name}: {equal} integers of events as in gdb, {len(wrong)} others')
    return common.claim(f'events of {subject.name}: no difference in {equal} integers', not wrong
                        and equal > 0)


def events(subject, folder, names):
    """{(address, line, name): [value]}"""
    out = os.path.join(folder, 'events.json')
    if os.path.exists(out):
        os.unlink(out)
    probes = [
        f'{subject.program}:{line}({",".join(sorted(of)[:NAMES])})' for line, of in names.items()
    ]
    with open(subject.stdin, 'rb') as stdin:
        done = subprocess.run([
            'setarch', '-R', common.CAIRN, 'trace', '--no-sidecar', '--no-cache', '--best-effort',
            '--no-move', '--max-slowdown', 'off', '--json', '--ring', '65536', '-o', out, '-c',
            ' '.join([subject.program, *subject.args]), *probes
        ],
                              stdin=stdin,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE,
                              check=False,
                              timeout=600)
    if done.returncode not in (0, 1):
        raise RuntimeError(f'cairn trace: {done.stderr.decode()[:500]}')
    found = collections.defaultdict(list)
    with open(out, encoding='utf-8') as file:
        for line in file:
            event = json.loads(line)
            if 'args' not in event:
                continue
            for name, value in event['args'].items():
                found[event['address'], os.path.basename(event['function']), name].append(value)
    return found


def one(name, folder):
    subject = SUBJECTS[name](folder)
    rows = statements(subject.program)
    places = places_for_gdb(subject, folder, check_lines(subject, rows))
    told = read_in_gdb(subject, folder, places)
    equal = report(subject, told, places)
    reason = common.may_trace()
    if reason:
        common.skip(f'events of {subject.name}', reason)
    else:
        live(subject, folder, told, places)
    return equal


def main():
    missing = common.have('gdb', 'gcc', 'g++', 'nm', 'llvm-dwarfdump', 'setarch')
    if missing or not os.access(common.CAIRN, os.X_OK):
        common.skip('vars', 'not installed: ' + ' '.join(missing or ['cairn is not built']))
        return common.finish()
    folder, equal = common.lab('vars'), 0
    chosen = sys.argv[1:] or list(SUBJECTS)
    for name in chosen:
        try:
            equal += one(name, folder)
        except sources.Unavailable as error:
            common.skip(f'variables of {name}', str(error))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print(error)
            common.not_ok(f'variables of {name}')
    if len(chosen) == len(SUBJECTS):
        common.claim(f'variables: {VALUES_ALL} values were compared ({equal})', equal >= VALUES_ALL)
    return common.finish()


if __name__ == '__main__':
    main()
