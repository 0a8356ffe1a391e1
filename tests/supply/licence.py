"""Licence expressions: SPDX, and the older slash of crates.io."""

import re

_TOKEN = re.compile(r"\s*(\(|\)|/|[A-Za-z0-9.+:-]+)")


def _tokens(text):
    at, found = 0, []
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f"no licence expression: {text!r}")
        found.append("OR" if match[1] == "/" else match[1])
        at = match.end()
    return found


class _Parser:
    def __init__(self, text, allowed):
        self.text, self.left, self.allowed = text, _tokens(text), allowed

    def take(self):
        if not self.left:
            raise ValueError(f"licence expression ends early: {self.text!r}")
        return self.left.pop(0)

    def either(self):
        good = self.both()
        while self.left[:1] == ["OR"]:
            self.take()
            good = self.both() or good
        return good

    def both(self):
        good = self.one()
        while self.left[:1] == ["AND"]:
            self.take()
            good = self.one() and good
        return good

    def one(self):
        word = self.take()
        if word == "(":
            good = self.either()
            if self.take() != ")":
                raise ValueError(f"unbalanced licence expression: {self.text!r}")
            return good
        if word in (")", "OR", "AND", "WITH"):
            raise ValueError(f"no licence expression: {self.text!r}")
        if self.left[:1] == ["WITH"]:
            self.take()
            word = f"{word} WITH {self.take()}"
        return word in self.allowed


def is_allowed(text, allowed):
    """Whether what is `allowed` suffices for a licence expression."""
    parser = _Parser(text, allowed)
    good = parser.either()
    if parser.left:
        raise ValueError(f"no licence expression: {text!r}")
    return good


def self_check():
    """The rules above on expressions whose answer is known. Raises `AssertionError`."""
    allowed = {"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"}
    for text, expected in {
        "MIT": True, "GPL-3.0": False, "MIT OR GPL-3.0": True, "GPL-3.0 OR MIT": True, "MIT AND GPL-3.0": False,
        "GPL-3.0/MIT": True, "(MIT OR GPL-3.0) AND ISC": True, "MIT OR GPL-3.0 AND AGPL-3.0": True,
        "(MIT OR GPL-3.0) AND AGPL-3.0": False, "Apache-2.0 WITH LLVM-exception": True, "Apache-2.0": False,
        "GPL-2.0 WITH Classpath-exception-2.0": False,
    }.items():
        assert is_allowed(text, allowed) == expected, text
    for text in ("", "MIT OR", "(MIT", "MIT ISC", "OR MIT", "MIT WITH"):
        try:
            is_allowed(text, allowed)
        except ValueError:
            continue
        raise AssertionError(f"{text!r} is no expression")
