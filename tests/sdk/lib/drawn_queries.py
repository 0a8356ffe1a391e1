"""Tables and queries that are drawn: each query as a text for the server and as one for DuckDB.

SUBSTRING counts from zero on the service. The columns of a CSV file are text, so that the server's statement casts them. DuckDB has typed columns in any case.
"""

import dataclasses
import datetime
import random

WORDS = ["ann", "Bob", "c,d", 'e"f', "", "grün", " pad ", "100%", "a_b", "Zz9", "x'y", "tab\tbed", "semi;colon"]
UNITS = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE"]


@dataclasses.dataclass
class Both:
    """An expression in two languages."""

    server: str
    duck: str


def quoted(text):
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


class Table:
    """Rows of (n, r, s, b, t): a whole number, a quarter, a word, a truth, a time."""

    def __init__(self, draw, size, nulls):
        def maybe(value):
            return None if nulls and draw.random() < 0.1 else value
        start = datetime.datetime(2020, 1, 1)
        self.rows = [(maybe(draw.randint(-50, 50)), maybe(draw.randint(-400, 400) / 4), maybe(draw.choice(WORDS)),
                      maybe(draw.random() < 0.5), maybe(start + datetime.timedelta(minutes=draw.randrange(4_000_000))))
                     for _ in range(size)]
        self.nulls = nulls


class Queries:
    """Draws queries about a table in one format: csv, json or parquet."""

    def __init__(self, draw, kind):
        self.draw, self.kind = draw, kind

    def column(self, name):
        """A column as its type."""
        types = {"n": "INT", "r": "FLOAT", "b": "BOOLEAN", "t": "TIMESTAMP"}
        if name in types and (self.kind == "csv" or (self.kind == "json" and name == "t")):
            return Both(f"CAST({name} AS {types[name]})", name)
        return Both(name, name)

    def pick(self, *options):
        """One of the options, called."""
        return self.draw.choice(options)()

    def whole(self, depth):
        """A whole number."""
        if depth <= 0 or self.draw.random() < 0.4:
            number = self.draw.randint(-60, 60)
            return self.column("n") if self.draw.random() < 0.7 else Both(f"({number})", f"({number})")
        sub = lambda: self.whole(depth - 1)
        return self.pick(
            lambda: self.two(self.draw.choice("+-*"), sub(), sub()),
            lambda: self.call("CHAR_LENGTH", "length", self.text(depth - 1)),
            lambda: self.extract(),
            lambda: self.coalesce(sub(), sub()),
            lambda: self.call("NULLIF", "nullif", sub(), sub()))

    def extract(self):
        """A part of a time."""
        unit, time = self.draw.choice(UNITS), self.column("t")
        return Both(f"EXTRACT({unit} FROM {time.server})", f"extract({unit} FROM {time.duck})")

    def quarter(self, depth):
        """A number with a fraction. Sums and products of few quarters are exact."""
        if depth <= 0 or self.draw.random() < 0.5:
            number = self.draw.randint(-100, 100) / 4
            return self.column("r") if self.draw.random() < 0.7 else Both(f"({number})", f"({number}::DOUBLE)")
        return self.pick(
            lambda: self.two(self.draw.choice("+-*"), self.quarter(depth - 1), self.quarter(depth - 1)),
            lambda: self.two("/", self.quarter(depth - 1), Both("2.0", "2.0::DOUBLE")),
            lambda: self.coalesce(self.quarter(depth - 1), self.quarter(0)))

    def text(self, depth):
        """A text."""
        if depth <= 0 or self.draw.random() < 0.4:
            word = quoted(self.draw.choice(WORDS))
            return self.column("s") if self.draw.random() < 0.7 else Both(word, word)
        sub = lambda: self.text(depth - 1)
        first, count = self.draw.randint(0, 4), self.draw.randint(0, 4)
        return self.pick(
            lambda: self.call("LOWER", "lower", sub()),
            lambda: self.call("UPPER", "upper", sub()),
            lambda: self.call("TRIM", "trim", sub()),
            lambda: self.two("||", sub(), sub()),
            lambda: self.call("SUBSTRING", "substring", sub(), Both(str(first), str(first + 1)), Both(str(count), str(count))),
            lambda: self.coalesce(sub(), sub()),
            lambda: Both(*(f"CAST({side} AS {word})" for side, word in zip(dataclasses.astuple(self.column("n")), ("STRING", "VARCHAR")))))

    def truth(self, depth):
        """A condition."""
        if depth <= 0:
            return self.comparison(0)
        sub = lambda: self.truth(depth - 1)
        return self.pick(
            lambda: self.comparison(depth - 1), lambda: self.comparison(depth - 1),
            lambda: self.two("AND", sub(), sub()), lambda: self.two("OR", sub(), sub()),
            lambda: self.wrap("NOT ({})", sub()),
            lambda: self.between(depth - 1), lambda: self.within(), lambda: self.like(), lambda: self.absent(),
            lambda: self.two("=", self.column("b"), Both("TRUE", "TRUE")))

    def comparison(self, depth):
        """Two values of one type."""
        sign = self.draw.choice(["=", "<>", "<", "<=", ">", ">="])
        kind = self.draw.choice([self.whole, self.quarter, self.text])
        return self.two(sign, kind(depth), kind(depth))

    def between(self, depth):
        """A number between two."""
        value, low, high = self.whole(depth), self.whole(0), self.whole(0)
        return Both(*(f"({v} BETWEEN {lo} AND {hi})" for v, lo, hi in zip(*map(dataclasses.astuple, (value, low, high)))))

    def within(self):
        """A text among several."""
        words = ", ".join(quoted(word) for word in self.draw.sample(WORDS, 3))
        negated = self.draw.choice(["", "NOT "])
        return self.wrap(f"({{}} {negated}IN ({words}))", self.text(1))

    def like(self):
        """A pattern, with an escape or without."""
        pattern = "".join(self.draw.choice(["%", "_", "a", "b", "n", "d", "!%", "!_"]) for _ in range(self.draw.randint(1, 4)))
        negated = self.draw.choice(["", "NOT "])
        return self.wrap(f"({{}} {negated}LIKE {quoted(pattern)} ESCAPE '!')", self.text(1))

    def absent(self):
        """Whether a value is there. In CSV every one is."""
        negated = self.draw.choice(["", "NOT "])
        return self.wrap(f"({{}} IS {negated}NULL)", self.column("s"))

    @staticmethod
    def two(sign, left, right):
        """An operator between two."""
        return Both(f"({left.server} {sign} {right.server})", f"({left.duck} {sign} {right.duck})")

    @staticmethod
    def wrap(template, one):
        """A text around one."""
        return Both(template.format(one.server), template.format(one.duck))

    @staticmethod
    def call(server, duck, *arguments):
        """A function."""
        return Both(f"{server}({', '.join(a.server for a in arguments)})", f"{duck}({', '.join(a.duck for a in arguments)})")

    def coalesce(self, left, right):
        """The first that is there."""
        return self.call("COALESCE", "coalesce", left, right)

    def aggregate(self):
        """One value of all rows."""
        value = self.draw.choice([self.whole, self.quarter])(1)
        name = self.draw.choice(["COUNT", "SUM", "AVG", "MIN", "MAX"])
        return self.pick(lambda: Both("COUNT(*)", "count(*)"), lambda: self.call(name, name.lower(), value))

    def query(self):
        """A statement: columns or aggregates, perhaps with a condition and a limit."""
        is_aggregate = self.draw.random() < 0.3
        some = [self.aggregate() if is_aggregate else self.pick(lambda: self.whole(2), lambda: self.quarter(2),
                                                                lambda: self.text(2), lambda: self.column("b"))
                for _ in range(self.draw.randint(1, 3))]
        server = f"SELECT {', '.join(one.server for one in some)} FROM BlobStorage"
        duck = f"SELECT {', '.join(one.duck for one in some)} FROM drawn"
        if self.draw.random() < 0.8:
            condition = self.truth(2)
            server, duck = f"{server} WHERE {condition.server}", f"{duck} WHERE {condition.duck}"
        if not is_aggregate and self.draw.random() < 0.3:
            limit = f" LIMIT {self.draw.randint(0, 20)}"
            server, duck = server + limit, duck + limit
        return Both(server, duck)


def seeded(seed):
    """A source of chance."""
    return random.Random(seed)
