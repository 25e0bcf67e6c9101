# SPDX-License-Identifier: BSD-2-Clause
"""Evaluates the locations that `cairn sites` prints: "%rdi", "*(%rsp+0x18)", "%rdi+(%rsi*%rdx)",
"const 16", "&symbol", "{%rdi, %rsi}".

All binary operators have one precedence and are read from left to right; parentheses say otherwise.
Arithmetic is on 64 bits, wrapping.

    evaluate(text, size, machine) -> bytes

machine has register(name), memory(address, size) -> bytes, symbol(name or link-time address) ->
address. Raises Unknown for a text it cannot read.
"""
import re

MASK = 2 ** 64 - 1
TOKEN = re.compile(
    r'\s*(\*\([us]\d+ \*\)\(|\*\(|\([us]\d+\)\(|>>s|<<|>>|==|!=|<=|>=|[-+*&|^<>()~]|%\w+|0x[0-9a-f]+|\d+|[A-Za-z_.$@][\w.$@:<>]*)'
)

OPERATOR = re.compile(r'\s*(>>s|<<|>>|==|!=|<=|>=|[-+*&|^<>])')


class Unknown(Exception):
    pass


def signed(value, bits=64):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


BINARY = {
    '+': lambda a, b: a + b, '-': lambda a, b: a - b, '*': lambda a, b: a * b, '&':
    lambda a, b: a & b, '|': lambda a, b: a | b, '^': lambda a, b: a ^ b, '<<': lambda a, b: a << b
    if b < 64 else 0, '>>': lambda a, b: a >> b if b < 64 else 0, '>>s':
    lambda a, b: signed(a) >> min(b, 63), '==': lambda a, b: a == b, '!=': lambda a, b: a != b, '<':
    lambda a, b: signed(a) < signed(b), '<=': lambda a, b: signed(a) <= signed(b), '>':
    lambda a, b: signed(a) > signed(b), '>=': lambda a, b: signed(a) >= signed(b),
}


class Parser:
    def __init__(self, text, machine):
        self.text, self.at, self.machine = text, 0, machine

    def take(self, expected=None):
        found = TOKEN.match(self.text, self.at)
        if not found or (expected and found.group(1) != expected):
            raise Unknown(f'{self.text!r} at {self.at}')
        self.at = found.end()
        return found.group(1)

    def expression(self):
        value = self.operand()
        while True:
            # Here a "*(" is a product, not a load.
            found = OPERATOR.match(self.text, self.at)
            if not found:
                return value
            self.at = found.end()
            value = int(BINARY[found.group(1)](value, self.operand())) & MASK

    def closed(self):
        value = self.expression()
        self.take(')')
        return value

    def load(self, size):
        return int.from_bytes(self.machine.memory(self.closed(), size), 'little')

    def operand(self):
        token = self.take()
        if token[0] == '%':
            return self.machine.register(token[1:]) & MASK
        if token[0].isdigit():
            return int(token, 0) & MASK
        if token == '-':
            return -self.operand() & MASK
        if token == '~':
            return ~self.operand() & MASK
        if token == '(':
            return self.closed()
        if token == '*(':
            return self.load(8)
        if token.startswith('*('):
            return self.load(int(re.search(r'\d+', token).group()) // 8)
        if token.startswith('('):
            bits = int(re.search(r'\d+', token).group())
            value = self.closed()
            return (signed(value, bits) if token[1] == 's' else value & ((1 << bits) - 1)) & MASK
        if token == '&':
            name = self.take()
            return self.machine.symbol(int(name, 16) if name.startswith('0x') else name) & MASK
        raise Unknown(f'{self.text!r}: {token}')


def one_piece(text, size, machine):
    if text.startswith('const 0x'):
        return int(text[6:], 16).to_bytes(max(size, (len(text) - 7) // 2), 'little')[:size]
    if text.startswith('const '):
        return (int(text[6:]) & (2**(8 * max(size, 8)) - 1)).to_bytes(max(size, 8), 'little')[:size]
    if re.fullmatch(r'&?0x[0-9a-f]+', text):
        # A link-time address without a symbol.
        return machine.symbol(int(text.lstrip('&'), 16)).to_bytes(8, 'little')[:size]
    parser = Parser(text, machine)
    if text.startswith('*(') and size > 8 and text[2] not in 'us':
        # In memory, and longer than a register.
        parser.take('*(')
        address = parser.closed()
        if parser.at == len(text):
            return bytes(machine.memory(address, size))
        parser.at = 0
    value = parser.expression()
    if parser.at != len(text):
        raise Unknown(f'{text!r}: rest {text[parser.at:]!r}')
    return value.to_bytes(8, 'little').ljust(size, b'\0')[:size]


def evaluate(text, size, machine):
    if not text.startswith('{'):
        return one_piece(text, size, machine)
    parts = text.strip('{}').split(', ')
    # The text does not tell the sizes of pieces: registers are 8 bytes, fields that were split up
    # are alike.
    each = 8 if 8 * (len(parts) - 1) < size <= 8 * len(parts) else size // len(parts)
    if each * len(parts) < size:
        raise Unknown(f'{text!r}: pieces of unknown size')
    return b''.join(one_piece(part, each, machine) for part in parts)[:size]
