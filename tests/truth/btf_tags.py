#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""btf_decl_tag and btf_type_tag from Cairn and from the newest pahole, of what the newest GCC and
Clang write.

Whatever pahole says has to be said here, in the same words; what is said here and not by pahole has
to be in the source: GCC's tags of variables, Clang's of functions that were also inlined, and
variables of functions, which pahole leaves out.
"""
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

LAB = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
SID = os.path.join(LAB, 'sid')
INSIDE = '/srv/truth/tags'

SOURCE = r"""
#define D(x) __attribute__((btf_decl_tag(x)))
#define T(x) __attribute__((btf_type_tag(x)))
#define user T("user")
#define rcu T("rcu")
struct in { int v; };
union u { int a D("ua"); struct in rcu *p D("up") D("up2"); };
struct s {
	const char user *name; struct in rcu *const cp; volatile int user *one; char user *rcu *two; int user rcu *both;
	int (*fn)(const void user *, struct s rcu *) D("fn");
	struct { int x D("deep"); } in D("anon"); int bits : 3 D("bits");
};
typedef const int user *cip;
typedef struct s rcu *sp;
int before(int user *p) D("bf");
__attribute__((noinline)) int before(int user *p) { return *p; }
__attribute__((noinline)) int st(struct s *q D("q1") D("q2"), union u *w, cip c D("c"), sp z D("z"))
{ return q->in.x + w->a + *c + z->bits + q->both[1]; }
int arr[3] D("arr"); struct s gs D("gs1") D("gs2"); static int sv D("sv") = 3;
union u gu; cip gc; sp gz;
D("use") int use(int n D("n")) { static int loc D("loc"); loc += n; return st(&gs, &gu, gc, gz) + sv++ + loc + before(arr); }
int main(int c, char **v) { return use(c); }
"""

IN_SOURCE = set(re.findall(r'[DT]\("(\w+)"\)', SOURCE))


def chroot(*cmd):
    code, out, err = common.run(['chroot', SID, *cmd], 120)
    if code != 0:
        raise RuntimeError(f'{" ".join(cmd)}: {err[-800:]}')
    return out


class Blob:
    def __init__(self, path):
        self.types = {
            t['id']: t
            for t in json.loads(chroot('bpftool', '-j', 'btf', 'dump', 'file', path))['types']
        }

    def text(self, number):
        if not number:
            return 'void'
        t = self.types[number]
        kind, name = t['kind'], t.get('name', '').replace('(anon)', '')
        if kind in ('STRUCT', 'UNION'):
            return f'{kind} {name}' if name else f'{kind} {{{self.members(t)}}}'
        if kind == 'ARRAY':
            return f'{self.text(t["type_id"])}[{t["nr_elems"]}]'
        if kind == 'FUNC_PROTO':
            return f'({", ".join(self.text(p["type_id"]) for p in t["params"])}) -> {self.text(t["ret_type_id"])}'
        if kind in ('INT', 'FLOAT', 'FWD', 'ENUM', 'FUNC', 'VAR'):
            return name
        return f'{kind} {name}({self.text(t["type_id"])})'

    def members(self, t):
        return ', '.join(f'{m["name"]}: {self.text(m["type_id"])}' for m in t['members'])

    def facts(self):
        for t in self.types.values():
            if t['kind'] == 'DECL_TAG':
                yield 'tag', t['name'], self.text(t['type_id']), t['component_idx']
            elif t['kind'] in ('FUNC', 'VAR', 'TYPEDEF'):
                yield t['kind'], t['name'], self.text(t['type_id'])
            elif t['kind'] in ('STRUCT', 'UNION') and t['name'] != '(anon)':
                yield t['kind'], t['name'], self.members(t)


def compare(compiler, *flags):
    what = f'{compiler} {" ".join(flags)}'
    out = os.path.join(SID, INSIDE[1:], 'tagged.o')
    chroot(compiler, '-w', '-g', *flags, '-c', f'{INSIDE}/tagged.c', '-o', f'{INSIDE}/tagged.o')
    chroot('pahole', '-J', '--btf_features=default,decl_tag,type_tag,global_var',
           f'--btf_encode_detached={INSIDE}/pahole', f'{INSIDE}/tagged.o')
    code, _, err = common.run([
        common.CAIRN, 'btf', 'encode', out, '-o',
        os.path.join(os.path.dirname(out), 'cairn'), '--global-vars'
    ], 60)
    if code != 0:
        common.not_ok(f'{what}: cairn btf encode: {err[-500:]}')
        return
    ours, theirs = set(Blob(f'{INSIDE}/cairn').facts()), set(Blob(f'{INSIDE}/pahole').facts())
    missing = theirs - ours
    more = {f for f in ours - theirs if f[:2] != ('VAR', 'loc')}
    for fact in sorted(missing | more, key=str):
        print(f'  {"pahole" if fact in missing else "cairn"}: {fact}')
    n = sum(f[0] == 'tag' for f in ours)
    common.claim(f'{what}: what pahole says is said here ({len(theirs)} facts, {n} tags here)',
                 theirs and not missing)
    common.claim(f'{what}: {len(more)} tags more, of the source',
                 all(f[0] == 'tag' and f[1] in IN_SOURCE for f in more))
    # GCC has no tags of structs; of all else each tag is found at least once.
    found = {f[1]
             for f in ours
             if f[0] == 'tag'} | set(re.findall(r'TYPE_TAG (\w+)', ' '.join(map(str, ours))))
    common.claim(
        f'{what}: every tag of the source is there ({", ".join(sorted(IN_SOURCE - found)) or "none missing"})',
        IN_SOURCE <= found)


def main():
    if not os.access(os.path.join(SID, 'usr/bin/pahole'), os.X_OK) or os.geteuid() != 0:
        common.skip('tags against pahole', "needs root and the lab's peers")
        common.finish()
    folder = os.path.join(SID, INSIDE[1:])
    os.makedirs(folder, exist_ok=True)
    try:
        with open(os.path.join(folder, 'tagged.c'), 'w', encoding='utf-8') as file:
            file.write(SOURCE)
        for compiler in ('gcc', 'clang'):
            for flags in (('-O2',), ('-O0',), ('-O2', '-gdwarf-4')):
                compare(compiler, *flags)
    finally:
        shutil.rmtree(folder)
    common.finish()


main()
