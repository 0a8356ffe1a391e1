"""Clients that race on few blobs, round after round, while something else happens to the server; each blob's history of each
round is held against the model of a blob. In a process of its own, so that recording does not slow the others down."""

import concurrent.futures
import dataclasses
import multiprocessing
import random
import threading

from .account import PerThread
from .calls import Calls
from .linearizable import History, Op, explain, register

NAMES = ["0000", "0001", "0002"]
CLIENTS = 6
CALLS = 16
KINDS = ["put", "put", "create", "swap", "swap", "read", "read", "read", "delete"]


@dataclasses.dataclass
class Found:
    """What became of the histories."""

    histories: int = 0
    ops: int = 0
    planted: int = 0
    unexplained: list = dataclasses.field(default_factory=list)
    # Histories that no order should explain, because a read of an overwritten value was put into them, but one did.
    believed: list = dataclasses.field(default_factory=list)
    errors: list = dataclasses.field(default_factory=list)

    def judge(self, name, ops):
        """Holds one history against the model; then once more with a stale read in it."""
        self.histories += 1
        self.ops += len(ops)
        if explain(ops, register, None) is None:
            self.unexplained.append(f"{name}: {ops}")
            return
        stale = with_stale_read(ops)
        if stale:
            self.planted += 1
            if explain(stale, register, None) is not None:
                self.believed.append(f"{name}: {stale}")


def with_stale_read(ops):
    """The history with a read after everything else that answers what an earlier write put; None when there was none. The last
    calls of a round are one after the other, so that no order explains it."""
    old = next((op.answer for op in ops if op.kind == "put"), None)
    end = max(op.ended for op in ops)
    return old and [*ops, Op(end + 1, end + 2, "read", None, old)]


class Racers:
    """The clients, from `start` to `stop`."""

    def __init__(self, account, container, seed):
        apart = multiprocessing.get_context("spawn")
        self._enough, self._results = apart.Event(), apart.Queue()
        self._process = apart.Process(
            target=_race, args=(account, container, seed, self._enough, self._results), daemon=True)

    def start(self):
        """Starts them."""
        self._process.start()

    def stop(self):
        """Ends them after the round they are in. Returns what was found."""
        self._enough.set()
        found = self._results.get(timeout=120)
        self._process.join()
        return found


def _race(account, container, seed, enough, results):
    """The process: rounds until there are enough, then the verdict."""
    clients, found, rounds, number = PerThread(account, container), Found(), [], 0
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        while not enough.is_set() and not found.errors:
            rounds.append(_round(clients, pool, seed + number, found.errors))
            number += 1
    for histories in rounds:
        for name, history in histories.items():
            found.judge(name, history.ops)
    results.put(found)


def _round(clients, pool, seed, errors):
    """All clients on all names at once, then each name alone: written, read and deleted. Returns histories by name."""
    calls, histories = {name: Calls(clients, name) for name in NAMES}, {name: History() for name in NAMES}
    together = threading.Barrier(CLIENTS)

    def recorded(kind, name, *asked):
        call = getattr(calls[name], kind)
        return histories[name].record(kind, asked[0] if kind == "swap" else None, lambda: call(*asked))

    def work(client):
        drawn, seen = random.Random(f"{seed} {client}"), dict.fromkeys(NAMES, '"none"')
        together.wait()
        for number in range(CALLS):
            name, kind, data = drawn.choice(NAMES), drawn.choice(KINDS), f"{seed} {client} {number}".encode()
            asked = {"put": [data], "create": [data], "swap": [seen[name], data]}.get(kind, [])
            answer = recorded(kind, name, *asked)
            if answer and answer.startswith('"'):
                seen[name] = answer

    try:
        list(pool.map(work, range(CLIENTS)))
        for name in NAMES:
            recorded("put", name, f"{seed} last".encode())
            recorded("read", name)
            recorded("delete", name)
    except Exception as error:  # whatever the SDK raises is what a client sees
        errors.append(f"{type(error).__name__}: {error}"[:300])
        return {}
    return histories
