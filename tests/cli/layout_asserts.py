# SPDX-License-Identifier: BSD-2-Clause
"""What a BTF dump in C must compile to, from another tool's records: sizes and offsets as
_Static_asserts.

    lines, n_structs = layout_asserts(records_of(text))     # of "bpftool -j btf dump file FILE"
"""

import json

MODIFIERS = ("CONST", "VOLATILE", "RESTRICT", "TYPE_TAG")
KEYWORDS = {"STRUCT": "struct", "UNION": "union"}


def records_of(text):
    return {record["id"]: record for record in json.loads(text)["types"]}


def unqualified(records, number):
    while records.get(number, {}).get("kind") in MODIFIERS:
        number = records[number]["type_id"]
    return records.get(number)


def places(records, record, path, start):
    """(path, byte offset) of the members that have one, those of nameless members too."""
    for member in record["members"]:
        name, offset = member["name"], start + member["bits_offset"]
        inner = unqualified(records, member["type_id"])
        nameless = inner and inner["kind"] in KEYWORDS and inner["name"] == "(anon)"
        if member.get("bitfield_size"):
            continue
        if name != "(anon)":
            yield path + name, offset // 8
        if nameless:
            yield from places(records, inner, path if name == "(anon)" else path + name + ".",
                              offset)


def layout_asserts(records):
    """Lines of C, and the number of structs they are about. Types that share a name are left out:
    the dump renames them."""
    tags = {}
    for record in records.values():
        if record["kind"] in ("STRUCT", "UNION", "ENUM", "ENUM64") and record["name"] != "(anon)":
            tags.setdefault(record["name"], []).append(record)
    lines, structs = ["#define AT(type, member, at) _Static_assert(__builtin_offsetof(type, "
                      "member) == (at), #member)"], 0
    for name, same in tags.items():
        record = same[0]
        if len(same) > 1:
            continue
        word = KEYWORDS.get(record["kind"], "enum")
        lines.append(f'_Static_assert(sizeof({word} {name}) == {record["size"]}, "{word} {name}");')
        if word == "enum":
            continue
        structs += 1
        lines += [
            f"AT({word} {name}, {path}, {at});" for path, at in places(records, record, "", 0)
        ]
    return lines, structs
