#!/usr/bin/env python3
"""Many threads race for one blob through the Python SDK: exactly one wins each round, and every history is linearizable.

Create (If-None-Match: *), overwrite (If-Match), lease, append position; then a mixture of all conditional calls and
reads on one blob. Each recorded history goes through `lib/linearizable.py`, which first must refuse bad ones.
"""

import concurrent.futures
import random
import threading
import uuid

from azure.core.exceptions import HttpResponseError
from lib import cli
from lib.account import PerThread
from lib.calls import Calls, code_of
from lib.linearizable import History, explain, lock, log, register, says_no
from lib.report import Progress, Verdicts

THREADS = 64
MIX_THREADS = 12
MIX_CALLS = 25


class Race:
    """Threads that start together, round after round."""

    def __init__(self, account, container, rounds):
        self.account, self.container, self.rounds = account, container, rounds
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.clients = PerThread(account, container.container_name)

    def at_once(self, count, call):
        """Calls `call(n)` from `count` threads that start together."""
        together = threading.Barrier(count)

        def run(number):
            together.wait()
            return call(number)

        return list(self.pool.map(run, range(count)))

    def run(self, verdicts, what, one_round, model):
        """All rounds of one kind: one winner each, an explainable history each."""
        wrong, unexplained = [], []
        with Progress(what, self.rounds, "rounds") as progress:
            for number in range(self.rounds):
                try:
                    winners, ops, start = one_round(number)
                except HttpResponseError as error:
                    verdicts.check(what, False, "one winner each", f"{code_of(error)}: {str(error).splitlines()[0][:70]}")
                    return
                if winners != 1:
                    wrong.append(f"round {number}: {winners} winners")
                if explain(ops, model, start) is None:
                    unexplained.append(f"round {number}: {ops}")
                progress.advance()
        verdicts.none(f"{what}: {self.rounds} rounds with other than one winner", wrong)
        verdicts.none(f"{what}: histories that are not linearizable", unexplained)

    def create_round(self, number):
        """64 creators."""
        calls, history = Calls(self.clients, f"create{number}"), History()
        self.at_once(THREADS, lambda n: history.record("create", None, lambda: calls.create(b"%d" % n)))
        history.record("read", None, calls.read)
        return sum(op.kind == "create" and op.answer != "exists" for op in history.ops), history.ops, None

    def swap_round(self, number):
        """64 overwriters of one version."""
        calls, history = Calls(self.clients, "swap"), History()
        start = self.container.upload_blob("swap", b"start%d" % number, overwrite=True).get_blob_properties().etag
        self.at_once(THREADS, lambda n: history.record("swap", start, lambda: calls.swap(start, b"%d/%d" % (number, n))))
        history.record("read", None, calls.read)
        return sum(op.kind == "swap" and op.answer != "other" for op in history.ops), history.ops, start

    def lease_round(self, number):
        """64 takers of one lease; the winner gives it back."""
        if number == 0:
            self.container.upload_blob("lease", b"x", overwrite=True)
        calls, history = Calls(self.clients, "lease"), History()
        ids = [str(uuid.uuid4()) for _ in range(THREADS)]
        found = self.at_once(THREADS, lambda n: history.record("acquire", ids[n], lambda: calls.acquire(ids[n])))
        if "mine" in found:
            holder = ids[found.index("mine")]
            history.record("release", holder, lambda: calls.release(holder))
        return found.count("mine"), history.ops, None

    def append_round(self, number):
        """64 writers of one position."""
        name = f"append{number}"
        self.container.get_blob_client(name).create_append_blob()
        calls, history = Calls(self.clients, name), History()
        found = self.at_once(THREADS, lambda n: history.record("append", (0, b"%02d," % n), lambda: calls.append(0, b"%02d," % n)))
        history.record("read", None, lambda: calls.blob().download_blob().readall())
        return found.count("at end"), history.ops, ()

    def mixture(self, number):
        """Every conditional call at once on one blob; the history is what is judged."""
        calls, history = Calls(self.clients, f"mix{number}"), History()

        def work(thread):
            drawn = random.Random(number * 1000 + thread)
            seen = "\"none\""
            for call in range(MIX_CALLS):
                data = b"%d.%d.%d" % (number, thread, call)
                kind = drawn.choice(["create", "swap", "swap", "swap", "read", "read", "delete"])
                if kind == "create":
                    found = history.record(kind, None, lambda: calls.create(data))
                elif kind == "swap":
                    wanted = seen
                    found = history.record(kind, wanted, lambda: calls.swap(wanted, data))
                elif kind == "read":
                    found = history.record(kind, None, calls.read)
                else:
                    found = history.record(kind, None, calls.delete)
                seen = found if found and found.startswith('"') else seen

        self.at_once(MIX_THREADS, work)
        return 1, history.ops, None


def main(options, scratch):
    verdicts = Verdicts("races")
    for what, ops, model, start in says_no():
        verdicts.check(f"the check refuses: {what}", explain(ops, model, start) is None, "refused", "")
    with cli.server(options, scratch) as server:
        container = server.account.service().create_container("races")
        race = Race(server.account, container, options.rounds)
        race.run(verdicts, "create, If-None-Match", race.create_round, register)
        race.run(verdicts, "overwrite, If-Match", race.swap_round, register)
        race.run(verdicts, "lease", race.lease_round, lock)
        race.run(verdicts, "append position", race.append_round, log)
        race.rounds = max(options.rounds // 10, 3)
        race.run(verdicts, "mixture", race.mixture, register)
        race.pool.shutdown()
    return verdicts.exit_code()


if __name__ == "__main__":
    made = cli.parser(__doc__)
    made.add_argument("--rounds", type=int, help="rounds of each kind (default 200, small 15)")
    chosen = cli.parse(made)
    chosen.rounds = chosen.rounds or (15 if chosen.small else 200)
    cli.run(main, chosen)
