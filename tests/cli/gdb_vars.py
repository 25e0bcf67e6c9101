# SPDX-License-Identifier: BSD-2-Clause
"""For gdb -x: the integers of a function's scope at instructions, as gdb reads them there.

VARS_IN is a JSON file with the program, its arguments and the places; VARS_OUT gets [key, {name:
value}] for each hit, in their order. A value is null if it is no integer, and a text if gdb has
none.
"""

import json
import os

import gdb

INTEGERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM)
found = []


def read(symbol, frame):
    try:
        value = symbol.value(frame) if symbol.needs_frame else symbol.value()
        return int(value) if value.type.strip_typedefs().code in INTEGERS else None
    except gdb.error as error:
        return str(error)


class Place(gdb.Breakpoint):

    def __init__(self, place, base, hits):
        super().__init__(f"*{base + place['addr']:#x}", internal=True)
        self.place, self.left = place, hits

    def stop(self):
        """From the innermost block outwards to the function, without functions inlined in it."""
        self.left -= 1
        self.enabled = self.left > 0
        frame = gdb.newest_frame()
        values, block = {}, gdb.block_for_pc(frame.pc())
        while block:
            for symbol in block:
                if symbol.name in self.place["names"] and symbol.name not in values:
                    values[symbol.name] = read(symbol, frame)
            if block.function and str(block.function) == self.place["function"]:
                found.append([self.place["key"], values])
                return False
            if block.function:
                values = {}
            block = block.superblock
        return False


def base_of(path):
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as file:
        return min(int(line.split("-")[0], 16) for line in file if line.rstrip().endswith(path))


def run():
    with open(os.environ["VARS_IN"], encoding="utf-8") as file:
        task = json.load(file)
    gdb.execute("set pagination off")
    gdb.execute("set confirm off")
    gdb.execute("starti " + " ".join(task["args"]) + " > /dev/null")
    base = base_of(os.path.realpath(task["path"])) if task["pie"] else 0
    places = [Place(place, base, task["hits"]) for place in task["places"]]
    gdb.execute("continue")
    with open(os.environ["VARS_OUT"], "w", encoding="utf-8") as file:
        json.dump(found, file)
    return places


run()
