# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that QEMU boots, with this build's program in its file system."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

import common

# Of a guest. More guests at once than the machine has processors for end later than one by one.
PROCESSORS = 2
AT_ONCE = max(1, (os.cpu_count() or 1) // PROCESSORS)
SECONDS = 1800  # against hangs only: beside other work a guest takes three times as long

BEGIN = """#!/bin/busybox sh
export PATH=/bin HOME=/tmp
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t tmpfs none /tmp
"""
END = "\n/bin/busybox poweroff -f\n"
# What scripts that probe a guest begin with: `send` prints a file, `wait_for TEXT FILE [PID]` waits
# while the process, or $pid, is there, and `left` counts the probes of the kernel.
SETUP = r"""
/bin/busybox --install -s /bin
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
ifconfig lo 127.0.0.1 up
echo "kernel $(uname -r)"
echo 1 >/sys/kernel/rcu_expedited
T=/sys/kernel/tracing
send() { echo "begin $1"; gzip -c "$2" | base64; echo "end $1"; }
wait_for()
{
	while ! grep -qs "$1" "$2"; do
		kill -0 ${3:-$pid} || { tail -3 "$2"; return; }
		sleep 1
	done
}
left() { echo "left $1 $(wc -l </sys/kernel/debug/kprobes/list) $(wc -l <$T/enabled_functions)"; }
"""


def version(kernel):
    """Of a bzImage: '6.1'. Its header says where the words are."""
    with open(kernel, 'rb') as file:
        head = file.read(0x10000)
    at = int.from_bytes(head[0x20e:0x210], 'little') + 0x200
    return '.'.join(head[at:at + 32].decode('ascii', 'replace').split('.')[:2])


def pairs():
    """[(vmlinuz, vmlinux)] of one build of each version."""
    found = [(k, os.path.join(os.path.dirname(k), 'vmlinux')) for k in sorted(
        glob.glob(os.path.expanduser('~/.cache/cairn-kernels/*/vmlinuz')))]
    lab = os.environ.get('CAIRN_LAB') or os.path.expanduser(
        '~/.cache/cairn-lab')
    for vmlinux in glob.glob(
            os.path.join(lab, 'x/*-dbg/usr/lib/debug/boot/vmlinux-*')):
        name = os.path.basename(vmlinux).removeprefix('vmlinux-')
        found += [
            (k, vmlinux)
            for k in glob.glob(os.path.join(lab, 'x/*/boot/vmlinuz-' + name))
        ]
    found += [(k, os.path.join(os.path.dirname(k), 'vmlinux'))
              for k in glob.glob(os.path.join(lab, 'kernels/*/vmlinuz'))]
    chosen = {}
    for kernel, vmlinux in found:
        if os.path.exists(vmlinux):
            chosen.setdefault(version(kernel), (kernel, vmlinux))
    return list(chosen.values())


def module(vmlinux, name):
    """[the file of a module of the same build, with its debug information]; []: there is none."""
    at = os.path.dirname(os.path.realpath(vmlinux))
    return [
        path for folder in (at, os.path.join(at, '../lib/modules/*'))
        for path in glob.glob(
            os.path.join(folder, f'kernel/drivers/*/{name}.ko'))
    ][:1]


def add(folder, path, name):
    """A program and the libraries that it needs."""
    shutil.copy(path, os.path.join(folder, 'bin', name))
    listed = subprocess.run(['ldd', path],
                            capture_output=True,
                            text=True,
                            check=False).stdout
    for library in re.findall(r'(/\S+) \(0x', listed):
        # Those of a build are where every program looks: its folder may be hidden there.
        is_of_system = library.startswith(('/lib', '/usr/lib'))
        there = folder + (library if is_of_system else '/lib/' +
                          os.path.basename(library))
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(os.path.realpath(library), there)


def boot(kernel, script, files, programs=None, megabytes=1536):
    """What a script prints in it. @files: path there -> path here; @programs: name in /bin -> path
    here; @megabytes of memory."""
    with tempfile.TemporaryDirectory() as folder, \
            tempfile.NamedTemporaryFile(suffix='.cpio.gz') as archive:
        os.makedirs(os.path.join(folder, 'bin'))
        bare = os.path.join(folder, 'cairn')
        subprocess.run(['strip', '-o', bare, common.CAIRN], check=True)
        add(folder, bare, 'cairn')
        os.remove(bare)
        for name, path in (programs or {}).items():
            add(folder, path, name)
        shutil.copy(
            shutil.which('busybox') or '/bin/busybox', folder + '/bin/busybox')
        for there, here in files.items():
            os.makedirs(os.path.dirname(folder + there), exist_ok=True)
            shutil.copy(here, folder + there)
        with open(os.path.join(folder, 'init'), 'w', encoding='utf-8') as file:
            file.write(BEGIN + script + END)
        os.chmod(os.path.join(folder, 'init'), 0o755)
        subprocess.run(
            f'find . | cpio -o -H newc 2>/dev/null | gzip -1 >{archive.name}',
            shell=True,
            cwd=folder,
            check=True)
        words = [
            'qemu-system-x86_64', '-accel', 'tcg,thread=multi', '-cpu', 'max',
            '-smp',
            str(PROCESSORS), '-m',
            str(megabytes), '-nographic', '-no-reboot', '-kernel', kernel,
            '-initrd', archive.name, '-append',
            'console=ttyS0 quiet panic=-1 noapic no_timer_check'
        ]
        try:
            out = subprocess.run(words,
                                 stdin=subprocess.DEVNULL,
                                 capture_output=True,
                                 timeout=SECONDS,
                                 check=False).stdout
        except subprocess.TimeoutExpired as e:
            said = (e.stdout or b'').decode('utf-8', 'replace')[-1000:]
            raise RuntimeError(
                f'the guest did not end in {SECONDS} s. The last that it said:\n{said}'
            ) from e
    return out.decode('utf-8', 'replace').replace('\r', '')


def begin(check, pair, path):
    """A process that checks a kernel, and writes to a file what it finds."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    with open(path, 'wb') as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    try:
        check(*pair)
        code = 0
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


def take(pid, path):
    """Prints what such a process wrote, and counts its claims."""
    _, status = os.waitpid(pid, 0)
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            print(line, end='')
            word = next((w for w in common.COUNTS if line.startswith(w + ' ')), None)
            if word:
                common.COUNTS[word] += 1
    if status:
        common.not_ok(f'the comparison ended early, with status {status}')


def each(of, check, *tools):
    """ check(kernel, vmlinux) for each, and the end of the script; or its skip, of claims of that
    name, where kernels or tools are not there."""
    if not pairs() or common.have('qemu-system-x86_64', 'cpio', *tools):
        needed = ', '.join(('QEMU', *tools))
        common.skip(
            of, f'no kernel with a vmlinux, or not all of {needed}: '
            'scripts/kernels.sh fetches the kernels')
        common.finish()
    with tempfile.TemporaryDirectory() as folder:
        todo = [(pair, os.path.join(folder, str(i)))
                for i, pair in enumerate(pairs())]
        for i in range(0, len(todo), AT_ONCE):
            begun = [(begin(check, pair, path), path)
                     for pair, path in todo[i:i + AT_ONCE]]
            for pid, path in begun:
                take(pid, path)
    common.finish()
