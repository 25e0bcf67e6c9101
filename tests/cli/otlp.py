# SPDX-License-Identifier: BSD-2-Clause
"""
OTLP's messages of profiles, read without any other implementation's help.

FIELDS has the published definitions, version 1.11.0 of
github.com/open-telemetry/opentelemetry-proto, all fields of each message that a request or an
answer of profiles may have; tests/truth/otlp_definitions.py compares it with them. A request is
decoded by it, and a field that is not there is an error.
"""

VERSION = "1.11.0"

# "type name number"; "*": repeated.
FIELDS = {
    "ExportProfilesServiceRequest":
    "ResourceProfiles* resource_profiles 1, "
    "ProfilesDictionary dictionary 2", "ExportProfilesServiceResponse":
    "ExportProfilesPartialSuccess partial_success 1", "ExportProfilesPartialSuccess":
    "int64 rejected_profiles 1, string error_message 2", "ProfilesDictionary":
    "Mapping* mapping_table 1, Location* location_table 2, Function* "
    "function_table 3, Link* link_table 4, "
    "string* string_table 5, KeyValueAndUnit* attribute_table 6, "
    "Stack* stack_table 7", "ResourceProfiles":
    "Resource resource 1, ScopeProfiles* scope_profiles 2, string schema_url 3", "ScopeProfiles":
    "InstrumentationScope scope 1, Profile* profiles 2, string schema_url 3", "Profile":
    "ValueType sample_type 1, Sample* samples 2, fixed64 time_unix_nano 3, uint64 "
    "duration_nano 4, ValueType period_type 5, "
    "int64 period 6, bytes profile_id 7, uint32 dropped_attributes_count 8, string "
    "original_payload_format 9, "
    "bytes original_payload 10, int32* attribute_indices 11", "Link":
    "bytes trace_id 1, bytes span_id 2", "ValueType":
    "int32 type_strindex 1, int32 unit_strindex 2", "Sample":
    "int32 stack_index 1, int32* attribute_indices 2, int32 link_index 3, int64* values "
    "4, fixed64* timestamps_unix_nano 5", "Mapping":
    "uint64 memory_start 1, uint64 memory_limit 2, uint64 file_offset 3, int32 "
    "filename_strindex 4, "
    "int32* attribute_indices 5", "Stack":
    "int32* location_indices 1", "Location":
    "int32 mapping_index 1, uint64 address 2, Line* lines 3, int32* attribute_indices 4", "Line":
    "int32 function_index 1, int64 line 2, int64 column 3", "Function":
    "int32 name_strindex 1, int32 system_name_strindex 2, int32 filename_strindex "
    "3, int64 start_line 4", "KeyValueAndUnit":
    "int32 key_strindex 1, AnyValue value 2, int32 unit_strindex 3", "Resource":
    "KeyValue* attributes 1, uint32 dropped_attributes_count 2, "
    "EntityRef* entity_refs 3", "InstrumentationScope":
    "string name 1, string version 2, KeyValue* attributes 3, uint32 "
    "dropped_attributes_count 4", "KeyValue":
    "string key 1, AnyValue value 2, int32 key_strindex 3", "KeyValueList":
    "KeyValue* values 1", "ArrayValue":
    "AnyValue* values 1", "EntityRef":
    "string schema_url 1, string type 2, string* id_keys 3, string* description_keys 4", "AnyValue":
    "string string_value 1, bool bool_value 2, int64 int_value 3, double double_value "
    "4, ArrayValue array_value 5, "
    "KeyValueList kvlist_value 6, bytes bytes_value 7, int32 string_value_strindex 8",
}
# Its fields are alternatives, of which an empty text is one, too.
ONE_OF = "AnyValue"
VARINTS = ("int32", "int64", "uint32", "uint64", "bool")


def fields_of(message):
    """number: (name, type, whether it is repeated)."""
    found = {}
    for text in FIELDS[message].split(", "):
        kind, name, number = text.split()
        found[int(number)] = (name, kind.rstrip("*"), kind.endswith("*"))
    return found


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def signed(kind, value):
    if kind in ("int32", "int64") and value >= 1 << 63:
        return value - (1 << 64)
    return bool(value) if kind == "bool" else value


def packed(kind, data):
    at, found = 0, []
    while at < len(data):
        if kind == "fixed64":
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
            assert at <= len(data), "a packed number is cut"
        else:
            value, at = varint(data, at)
        found.append(signed(kind, value))
    return found


def value_of(kind, wire, data, at):
    """A value and where it ends; a list for those that are packed."""
    if wire == 0:
        assert kind in VARINTS, kind
        value, at = varint(data, at)
        return signed(kind, value), at
    if wire == 1:
        assert kind in ("fixed64", "double"), kind
        return int.from_bytes(data[at:at + 8], "little"), at + 8
    assert wire == 2, f"wire type {wire}"
    n, at = varint(data, at)
    part, at = data[at:at + n], at + n
    assert at <= len(data), "a field is longer than its message"
    if kind in VARINTS or kind == "fixed64":
        return packed(kind, part), at
    if kind == "string":
        return part.decode("utf-8"), at
    return part if kind == "bytes" else decode(kind, part), at


def default(kind, many):
    if many:
        return []
    return {"string": "", "bytes": b"", "bool": False}.get(kind, None if kind in FIELDS else 0)


def decode(message, data):
    """A message as a dict with all its fields. What the definitions do not have is an error."""
    known, at = fields_of(message), 0
    found = {} if message == ONE_OF else {
        name: default(kind, many)
        for name, kind, many in known.values()
    }
    while at < len(data):
        key, at = varint(data, at)
        assert key >> 3 in known, f"{message} has no field {key >> 3}"
        name, kind, many = known[key >> 3]
        value, at = value_of(kind, key & 7, data, at)
        if many:
            found[name] += value if isinstance(value, list) else [value]
        else:
            found[name] = value
    return found


def any_value(value):
    """The value of an attribute; exactly one of its alternatives is there."""
    (_, found), = value.items()
    return found


def attributes(pairs):
    found = {pair["key"]: any_value(pair["value"]) for pair in pairs}
    assert len(found) == len(pairs), "an attribute is there twice"
    return found


class Request:
    """A request, with what it refers to."""

    def __init__(self, raw):
        self.message = decode("ExportProfilesServiceRequest", raw)
        self.tables = self.message["dictionary"]
        self.strings = self.tables["string_table"]
        resource, = self.message["resource_profiles"]
        self.scope, = resource["scope_profiles"]
        self.schemas = {resource["schema_url"], self.scope["schema_url"]}
        self.resource = attributes(resource["resource"]["attributes"])
        self.profiles = self.scope["profiles"]
        self.check_tables()

    def check_tables(self):
        """What the definitions demand of the dictionary: the first of each table is empty, nothing
        is there twice."""
        link = {"trace_id": bytes(16), "span_id": bytes(8)}
        for name, kind, _ in fields_of("ProfilesDictionary").values():
            table = self.tables[name]
            first = "" if kind == "string" else link if kind == "Link" else decode(kind, b"")
            assert table and table[0] == first, (name, table[:1])
            assert len({repr(item) for item in table}) == len(table), f"{name} has an item twice"

    def type(self, value_type):
        return self.strings[value_type["type_strindex"]], self.strings[value_type["unit_strindex"]]

    def attributes(self, indices):
        found = {}
        for at in indices:
            assert 0 < at < len(self.tables["attribute_table"]), at
            pair = self.tables["attribute_table"][at]
            key = self.strings[pair["key_strindex"]]
            assert key and key not in found, key
            found[key] = any_value(pair["value"])
        return found

    def frames(self, at):
        """The functions of a location as `cairn profile -o NAME.json` has them, the innermost
        first."""
        assert 0 < at < len(self.tables["location_table"]), at
        location = self.tables["location_table"][at]
        frames = [self.line(line) for line in location["lines"]] or [{"function": None}]
        for frame in frames[:-1]:
            frame["inlined"] = True
        self.put_address(location, frames[-1])
        return frames

    def line(self, line):
        function = self.tables["function_table"][line["function_index"]]
        name, linkage, file = (self.strings[function[key + "_strindex"]]
                               for key in ("name", "system_name", "filename"))
        frame = {"function": name}
        if linkage not in ("", name):
            frame["linkage"] = linkage
        if file:
            frame["file"] = file
        if line["line"]:
            frame["line"] = line["line"]
        return frame

    def put_address(self, location, frame):
        mapping = self.tables["mapping_table"][
            location["mapping_index"]] if location["mapping_index"] else None
        kind = self.attributes(location["attribute_indices"]).get("profile.frame.type")
        assert kind in (None, "native", "kernel", "jit"), kind
        if kind in ("kernel", "jit") and mapping:
            frame["code"] = kind
        if not mapping and not location["address"]:
            return
        frame["address"] = f"{location['address']:#x}"
        if mapping:
            frame["module"] = self.strings[mapping["filename_strindex"]]
            frame[
                "offset"] = f"{location['address'] - mapping['memory_start'] + mapping['file_offset']:#x}"

    def stack(self, at):
        return [
            frame for location in self.tables["stack_table"][at]["location_indices"]
            for frame in self.frames(location)
        ]

    def build_ids(self):
        """Of the files: the GNU ones."""
        found = {}
        for mapping in self.tables["mapping_table"][1:]:
            value = self.attributes(
                mapping["attribute_indices"]).get("process.executable.build_id.gnu")
            if value:
                found[self.strings[mapping["filename_strindex"]]] = value
        return found

    def samples(self, profile):
        """(stack, labels, value, times) of each sample; what has times and what has none of one
        identity are one."""
        found = {}
        for sample in profile["samples"]:
            assert sample["values"] and sample["link_index"] == 0, sample
            times = sample["timestamps_unix_nano"]
            assert len(times) in (0, len(sample["values"])), sample
            key = (sample["stack_index"], tuple(sorted(sample["attribute_indices"])))
            value, before = found.get(key, (0, []))
            found[key] = (value + sum(sample["values"]), before + times)
        return [(self.stack(stack), self.attributes(indices), value, times)
                for (stack, indices), (value, times) in found.items()]
