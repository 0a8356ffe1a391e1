"""Whether one object that does one operation at a time can explain a recorded history.

A history is a list of `Op`: when a call began, when its answer came, what was asked and what was answered. It is
linearizable when each operation can be given one moment between those two times, such that done in that order the model
gives the very answers. The search is the classic one: among the operations that may come next (none that is left
ended before they began) try one, follow it, go back when stuck; what was tried once with the same operations done and
the same state is not tried again.
"""

import dataclasses
import sys
import threading
import time


@dataclasses.dataclass(frozen=True)
class Op:
    """One call and its answer; times in seconds of one monotonic clock."""

    began: float
    ended: float
    kind: str
    asked: object
    answer: object


class History:
    """Calls of many threads, recorded."""

    def __init__(self):
        self.ops = []
        self._lock = threading.Lock()

    def record(self, kind, asked, call):
        """Makes the call, which answers what the model knows, and keeps it. Returns that answer."""
        began = time.monotonic()
        answer = call()
        op = Op(began, time.monotonic(), kind, asked, answer)
        with self._lock:
            self.ops.append(op)
        return answer


IMPOSSIBLE = object()


def explain(ops, model, state):
    """The order that explains a history, or None. `model(state, op)` answers the next state or `IMPOSSIBLE`."""
    ops = sorted(ops, key=lambda op: op.began)
    count = len(ops)
    everything = (1 << count) - 1
    tried = set()
    # Each: operations done as bits, the state after them, what is left to try next.
    stack = [(0, state, iter(_next(ops, 0)))]
    order = []
    while stack:
        done, now, candidates = stack[-1]
        if done == everything:
            return order
        for number in candidates:
            after = model(now, ops[number])
            if after is IMPOSSIBLE or (done | 1 << number, after) in tried:
                continue
            tried.add((done | 1 << number, after))
            order.append(ops[number])
            stack.append((done | 1 << number, after, iter(_next(ops, done | 1 << number))))
            break
        else:
            stack.pop()
            if order:
                order.pop()
    return None


def _next(ops, done):
    """Numbers of the operations that may come next: those that began before any other that is left had ended."""
    left = [number for number in range(len(ops)) if not done >> number & 1]
    first_end = min((ops[number].ended for number in left), default=sys.float_info.max)
    return [number for number in left if ops[number].began <= first_end]


def register(state, op):
    """A blob under conditions: the state is its ETag, or None while there is none.

    put: asked nothing, answers the new ETag. create: asked nothing, answers the new ETag or 'exists'. swap: asked the ETag, answers the new one or 'other'.
    read: answers the ETag or None. delete: answers 'gone' or 'missing'.
    """
    if op.kind == "put":
        return op.answer
    if op.kind == "create":
        return _if((op.answer == "exists") == (state is not None), state if op.answer == "exists" else op.answer)
    if op.kind == "swap":
        return _if((op.answer == "other") == (state != op.asked), state if op.answer == "other" else op.answer)
    if op.kind == "read":
        return _if(op.answer == state, state)
    if op.kind == "delete":
        return _if((op.answer == "missing") == (state is None), None)
    raise ValueError(op.kind)


def lock(state, op):
    """A lease: the state is its holder, or None. acquire: asked an id, answers 'mine' or 'taken'. release: asked an id,
    answers 'free' or 'not mine'."""
    if op.kind == "acquire":
        return _if((op.answer == "taken") == (state is not None), state if op.answer == "taken" else op.asked)
    if op.kind == "release":
        return _if((op.answer == "free") == (state == op.asked), None if op.answer == "free" else state)
    raise ValueError(op.kind)


def log(state, op):
    """An append blob: the state is what it holds, as a tuple. append: asked (length wanted, entry), answers 'at end' or
    'elsewhere'. read: answers the entries."""
    if op.kind == "append":
        wanted, entry = op.asked
        fits = wanted == sum(map(len, state))
        return _if((op.answer == "at end") == fits, state + (entry,) if fits else state)
    if op.kind == "read":
        return _if(op.answer == b"".join(state), state)
    raise ValueError(op.kind)


def _if(holds, state):
    return state if holds else IMPOSSIBLE


def says_no():
    """Histories that no order explains, for showing that the check can refuse: (what, ops, model, state)."""
    two = lambda kind, a, b: [Op(0, 10, kind, *a), Op(1, 9, kind, *b)]
    return [
        ("two creators won", two("create", (None, "e1"), (None, "e2")), register, None),
        ("nobody created", two("create", (None, "exists"), (None, "exists")), register, None),
        ("two swaps of one ETag won", two("swap", ("e0", "e1"), ("e0", "e2")), register, "e0"),
        ("an old value was read after a write had ended",
         [Op(0, 1, "swap", "e0", "e1"), Op(2, 3, "read", None, "e0")], register, "e0"),
        ("a put was lost", [Op(0, 1, "put", None, "e1"), Op(2, 3, "read", None, "e0")], register, "e0"),
        ("a value came back", [Op(0, 9, "swap", "e0", "e1"), Op(1, 2, "read", None, "e1"), Op(3, 4, "read", None, "e0")],
         register, "e0"),
        ("two hold one lease", two("acquire", ("a", "mine"), ("b", "mine")), lock, None),
        ("two appended at one place", two("append", ((0, b"x"), "at end"), ((0, b"y"), "at end")), log, ()),
    ]
