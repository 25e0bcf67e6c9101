#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OTLP's messages, against the published definitions of the version that is pinned.

    otlp_definitions.py [DIR]      DIR: a tree of opentelemetry-proto of that version; otherwise it is downloaded by git

The fields of src/live/export/otlp.proto have to be fields of the definitions, of the same name,
number and type. Those of tests/cli/otlp.py, by which the tests decode, have to be all of them. A
request that `cairn profile push --otlp` sends is decoded by Google's protobuf with the definitions
themselves: it has no unknown field, and is the same to the tests' decoder.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, 'tests', 'cli')]
import common  # noqa: E402
import otlp  # noqa: E402
import receiver  # noqa: E402

SERVICE = 'opentelemetry/proto/collector/profiles/v1development/profiles_service.proto'
URL = 'https://github.com/open-telemetry/opentelemetry-proto'
# Of google/rpc/status.proto, which is not among the definitions.
ELSEWHERE = {'Status'}


class Missing(Exception):
    pass


def definitions(folder):
    if len(sys.argv) > 1:
        return sys.argv[1]
    where = os.path.join(folder, 'definitions')
    code, _, err = common.run(
        ['git', 'clone', '-q', '--depth', '1', '--branch', 'v' + otlp.VERSION, URL, where], 120)
    if code:
        raise Missing(f'the definitions cannot be downloaded: {err.strip()[-200:]}')
    return where


def descriptors(folder, top, path):
    """protoc-c's parse of a file and of what it imports."""
    out = os.path.join(folder, 'set')
    code, _, err = common.run([
        'protoc-c', f'--descriptor_set_out={out}', '--include_imports', f'--proto_path={top}', path
    ])
    if code:
        raise Missing(f'protoc-c: {err.strip()[-300:]}')
    with open(out, 'rb') as file:
        return descriptor_pb2.FileDescriptorSet.FromString(file.read())


def fields_in(files):
    """{message: {number: (name, type, repeated)}}, without the packages."""
    kinds = {
        number: name[5:].lower()
        for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
    }
    found = {}
    for file in files.file:
        for message in file.message_type:
            found[message.name] = {
                f.number: (f.name, f.type_name.rsplit('.', 1)[-1] if f.type_name else kinds[f.type],
                           f.label == f.LABEL_REPEATED)
                for f in message.field
            }
    return found


def compare_ours(published, ours):
    wrong = []
    for message, fields in ours.items():
        if message in ELSEWHERE:
            continue
        for number, field in fields.items():
            if published.get(message, {}).get(number) != field:
                wrong.append((message, number, field, published.get(message, {}).get(number)))
    common.claim('the_fields_of_otlp_proto_are_published_ones', not wrong and len(ours) > 15)
    for line in wrong:
        print('   ', *line)


def compare_tests(published):
    wrong = [(name, otlp.fields_of(name), published.get(name))
             for name in otlp.FIELDS
             if otlp.fields_of(name) != published.get(name)]
    common.claim('the_tests_decode_by_all_published_fields', not wrong)
    for line in wrong:
        print('   ', *line)


def pushed(folder):
    """What a push sends of a few stacks; as the receiver gets it, inflated."""
    path = os.path.join(folder, 'a.folded')
    with open(path, 'w', encoding='ascii') as file:
        file.writelines(f'main;f{i % 7};g{i % 11}_[i];h{i % 5}_[k] {i + 1}\n' for i in range(1000))
    with receiver.Receiver() as server:
        code, _, err = common.run([
            common.CAIRN, 'profile', 'push', server.url, '--otlp', '--spool',
            os.path.join(folder, 'spool'), path
        ])
    if code or len(server.taken) != 1:
        raise Missing(f'cairn profile push: {err.strip()[-300:]}')
    return server.taken[0].raw


def has_unknown(message):
    if len(message.UnknownFields()):
        return True
    return any(has_unknown(one) for field, value in message.ListFields() if field.message_type
               for one in (value if field.label == field.LABEL_REPEATED else [value]))


def plain(message):
    """As tests/cli/otlp.py decodes it: all fields, of a oneof the one that is there."""
    if message.DESCRIPTOR.name == otlp.ONE_OF:
        which = message.WhichOneof('value')
        return {which: getattr(message, which)}
    found = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        many = field.label == field.LABEL_REPEATED
        if not field.message_type:
            found[field.name] = list(value) if many else value
        elif many:
            found[field.name] = [plain(one) for one in value]
        else:
            found[field.name] = plain(value) if message.HasField(field.name) else None
    return found


def decode_by(files, raw):
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    name = 'opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest'
    return message_factory.MessageFactory(pool).GetPrototype(
        pool.FindMessageTypeByName(name)).FromString(raw)


def check_request(files, folder):
    raw = pushed(folder)
    request = decode_by(files, raw)
    common.claim('a_request_has_published_fields_only', not has_unknown(request)
                 and request.ByteSize() == len(raw))
    common.claim(
        'a_request_is_the_same_to_the_tests_decoder',
        plain(request) == otlp.decode('ExportProfilesServiceRequest', raw)
        and len(request.dictionary.stack_table) > 300)


def main():
    with tempfile.TemporaryDirectory() as folder:
        try:
            files = descriptors(folder, definitions(folder), SERVICE)
            published = fields_in(files)
            ours = fields_in(descriptors(folder, os.path.join(TOP, 'src/live/export'),
                                         'otlp.proto'))
            compare_ours(published, ours)
            compare_tests(published)
            check_request(files, folder)
        except (Missing, OSError, subprocess.SubprocessError) as reason:
            common.skip('otlp_definitions', str(reason))
    common.finish()


try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    # Debian's package is for Debian's own interpreter.
    if os.path.exists('/usr/bin/python3') and not os.path.samefile('/usr/bin/python3',
                                                                   sys.executable):
        os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])
    common.skip('otlp_definitions', 'python3-protobuf is not installed')
    common.finish()
if __name__ == '__main__':
    main()
