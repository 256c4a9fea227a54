"""Goals of a search: `max throughput, p99 < 2 ms, memory.max minimal`.

Parts are parted by commas. `max EXPR`, `EXPR maximal`, `min EXPR` and `EXPR minimal` are objectives; `A < B`, `<=`, `>`
and `>=` are constraints. An expression has names, numbers with or without a unit, `+ - * /` and parentheses. A name is a
figure (`overview.major_faults`), a key of the search, or the end of one that no other has (`memory.max`); one with other
characters stands in backticks. There is a space around `-` and `/`: names have these too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ._mmtwin import number

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`[^`]+`)|(?P<number>\d[\d_]*(?:\.\d+)?(?:\s*(?:[KMGT]iB|B|[kMGT]B/s|B/s|ns|us|ms|s|min|h|[kMG]?Hz"
    r"|[kMG] pages/s|pages/s|%)(?![\w.]))?)|(?P<name>[A-Za-z_/][\w./:-]*)|(?P<mark><=|>=|[-+*/()<>]))"
)

Values = Mapping[str, float]


@dataclass(frozen=True)
class Objective:
    """What is to be as large or as small as can be."""

    text: str
    maximal: bool
    value: Callable[[Values], float | None]


@dataclass(frozen=True)
class Constraint:
    """What must hold. `excess` is above 0 by how much it does not."""

    text: str
    excess: Callable[[Values], float | None]


class GoalError(ValueError):
    """A goal that cannot be read."""


def parse(text: str) -> tuple[list[Objective], list[Constraint]]:
    """Reads a goal. Raises `GoalError` (a `ValueError`) with the part that is wrong."""
    objectives: list[Objective] = []
    constraints: list[Constraint] = []
    for part in (part.strip() for part in text.split(",")):
        objective = re.fullmatch(r"(max|min)\s+(.+)|(.+?)\s+(maximal|minimal)", part)
        if objective:
            word, body = objective[1] or objective[4], objective[2] or objective[3]
            objectives.append(Objective(part, word.startswith("max"), _Parser(body).whole()))
        else:
            constraints.append(_constraint(part))
    if not objectives:
        raise GoalError(f"{text!r} has no objective: max EXPR or min EXPR")
    return objectives, constraints


def _constraint(part: str) -> Constraint:
    parser = _Parser(part)
    left = parser.sum()
    mark = parser.take()
    if mark not in ("<", "<=", ">", ">="):
        raise GoalError(f"{part!r}: expected max EXPR, min EXPR, EXPR maximal, EXPR minimal, or A < B")
    right = parser.whole()
    low, high = (left, right) if mark in ("<", "<=") else (right, left)

    def excess(values: Values) -> float | None:
        a, b = low(values), high(values)
        return None if a is None or b is None else a - b

    return Constraint(part, excess)


def resolve(name: str, values: Values) -> float | None:
    """The value of a name: its own, or that of the only key which ends with it. `None`: it is not known."""
    if name in values:
        return values[name]
    ends = [key for key in values if key.endswith((f".{name}", f"/{name}", f"__{name}"))]
    if len(ends) > 1:
        raise GoalError(f"{name!r} may be {', '.join(sorted(ends)[:6])}: write more of it")
    return values[ends[0]] if ends else None


class _Parser:
    """Reads an expression, and gives a function of the values."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def next(self) -> re.Match[str] | None:
        if not self.text[self.at :].strip():
            return None
        found = _TOKEN.match(self.text, self.at)
        if not found:
            raise GoalError(f"{self.text!r}: cannot read {self.text[self.at :].strip()!r}")
        return found

    def take(self) -> str | None:
        found = self.next()
        self.at = found.end() if found else self.at
        return found[0].strip() if found else None

    def peek(self) -> str | None:
        found = self.next()
        return found[0].strip() if found else None

    def whole(self) -> Callable[[Values], float | None]:
        value = self.sum()
        if self.peek() is not None:
            raise GoalError(f"{self.text!r}: cannot read {self.text[self.at :].strip()!r}")
        return value

    def sum(self) -> Callable[[Values], float | None]:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = _both(value, self.take(), self.product())
        return value

    def product(self) -> Callable[[Values], float | None]:
        value = self.factor()
        while self.peek() in ("*", "/"):
            value = _both(value, self.take(), self.factor())
        return value

    def factor(self) -> Callable[[Values], float | None]:
        found = self.next()
        if not found:
            raise GoalError(f"{self.text!r}: something is missing at the end")
        self.at = found.end()
        if found["number"]:
            known = number(found["number"])
            if known is None:
                raise GoalError(f"{self.text!r}: {found['number']!r} is no number")
            return lambda _: known
        if found["quoted"] or found["name"]:
            name = (found["quoted"] or found["name"]).strip("`")
            return lambda values: resolve(name, values)
        if found["mark"] == "(":
            value = self.sum()
            if self.take() != ")":
                raise GoalError(f"{self.text!r}: a parenthesis is not closed")
            return value
        if found["mark"] == "-":
            return _both(lambda _: 0.0, "-", self.factor())
        raise GoalError(f"{self.text!r}: {found[0].strip()!r} is not expected there")


def _both(left: Callable, mark: str | None, right: Callable) -> Callable[[Values], float | None]:
    def value(values: Values) -> float | None:
        a, b = left(values), right(values)
        if a is None or b is None or (mark == "/" and b == 0):
            return None
        return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if mark == "/" else 0.0}[mark or "+"]

    return value
