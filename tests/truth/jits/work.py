# SPDX-License-Identifier: BSD-2-Clause
"""PyPy's loops, bridges, and functions that its code calls by its code: recursion, objects,
generators, numbers."""


class Node:
    def __init__(self, left, right):
        self.left, self.right = left, right


def make(depth):
    return Node(None, None) if depth == 0 else Node(make(depth - 1), make(depth - 1))


def count(node):
    return 1 if node.left is None else 1 + count(node.left) + count(node.right)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def squares(n):
    for i in range(n):
        yield i * i


def orbit(n):
    x, y, vx, vy = 1.0, 0.0, 0.0, 1.0
    for _ in range(n):
        r = (x * x + y * y) ** 1.5
        vx, vy = vx - x / r * 0.001, vy - y / r * 0.001
        x, y = x + vx * 0.001, y + vy * 0.001
    return x


while True:
    count(make(12))
    fib(22)
    sum(squares(200000))
    orbit(200000)
    words = {}
    for i in range(50000):
        word = "w%d" % (i * 7919 % 1009)
        words[word] = words.get(word, 0) + 1
