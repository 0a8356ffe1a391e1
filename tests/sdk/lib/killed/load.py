"""The load of kill9.py and power_failure.py: workers that change subjects until the server is gone,
changes of the partition map beside them, a crash, a restart, and the question whether everything
found can be explained."""

import collections
import http.client
import random
import threading
import time

from .. import accounts
from ..account import PerThread
from ..changes import REFUSALS
from ..report import Progress
from .append import AppendSubject
from .base import InDoubt, Piece, Source
from .block import BlockSubject, LargeSubject, UnstagedBlock, UnstagedLarge
from .copy import CopySubject
from .lease import LeaseSubject
from .page import PageSubject
from .pages_copied import PagesCopiedSubject
from .snapshot import SnapshotSubject
from .tags import TagsSubject

# The other server is on the loopback address like everything here; moves need a second host.
SERVED_WITH = ("--copy-source-allow=127.0.0.1", "--index-hosts=2")
# How many of each a worker has.
ALL = ((BlockSubject, 9), (AppendSubject, 4), (PageSubject, 4), (CopySubject, 3),
       (PagesCopiedSubject, 3), (SnapshotSubject, 3), (LeaseSubject, 2), (TagsSubject, 2),
       (LargeSubject, 1))
# What other servers of the protocol carry out too.
PLAIN = ((UnstagedBlock, 9), (PageSubject, 4), (SnapshotSubject, 3), (LeaseSubject, 2),
         (UnstagedLarge, 1))
SIGNED = (AppendSubject, CopySubject, PagesCopiedSubject)
# Of the blobs of the other server, which nobody kills.
ELSEWHERE_BYTES = (0, 700, 40_000, 1 << 20, 9 << 20)
COMPLAINTS_MAX = 20


def sources(other, container):
    """Fills another server; [(address with a signature, piece), ...]."""
    container = other.account.service().create_container(container)
    made = []
    for size in ELSEWHERE_BYTES:
        piece = Piece(("elsewhere", size), size)
        blob = container.upload_blob(str(size), piece.data())
        made.append((f"{blob.url}?{accounts.sas(other.account)}", piece))
    return made


def subjects(worker, kinds, signature=None, elsewhere=None):
    """What one worker changes."""
    made = []
    for kind, count in kinds:
        more = (signature,) if kind in SIGNED else ()
        more += (elsewhere,) if kind is CopySubject else ()
        name = f"w{worker:02}/{kind.kind.replace(' ', '-')}"
        made += [kind(f"{name}-{number:03}", *more) for number in range(count)]
    return made


def everything(server, other, container, threads):
    """Subjects of all kinds for each worker, in a new container; `other` has sources of copies."""
    elsewhere, signature = sources(other, container), accounts.sas(server.account)
    server.account.service().create_container(container)
    return [subjects(worker, ALL, signature, elsewhere) for worker in range(threads)]


def keys(server, container, subjects_of_workers):
    """Where the partition map may be split: the names of the subjects."""
    account = server.account.name
    return [[f"{account}/{container}/{subject.name}" for subject in mine]
            for mine in subjects_of_workers]


class Worker(threading.Thread):
    """Keeps changing one subject after another until it must stop."""

    def __init__(self, number, mine, clients, seed, stopping):
        super().__init__(daemon=True)
        self.number, self.mine, self.clients, self.stopping = number, mine, clients, stopping
        self.source = Source(random.Random(f"{seed}/{number}"), seed, number)
        self.done, self.surprise = collections.Counter(), None
        self.refused = None  # The code with which the server could not finish an operation.

    def run(self):
        while not self.stopping.is_set():
            subject = self.source.random.choice(self.mine)
            try:
                subject.step(self.clients, self.source)
                self.done[subject.kind] += 1
            except InDoubt as doubt:
                self.refused = doubt.code
                return  # The server is gone. What is in doubt stays written down in the subject.
            except Exception as error:  # pylint: disable=broad-except
                told_by = f"worker {self.number}: {subject.name}"
                self.surprise = f"{told_by}: {type(error).__name__}: {error}"
                return


class Changing(threading.Thread):
    """Keeps changing the partition map until the server is gone."""

    def __init__(self, changer):
        super().__init__(daemon=True)
        self.changer, self.surprise = changer, None

    def run(self):
        try:
            while True:
                self.changer.change()
        except (OSError, http.client.HTTPException):
            return  # The server is gone.
        except Exception as error:  # pylint: disable=broad-except
            self.surprise = f"changes of the map: {type(error).__name__}: {error}"


class AzureStore:
    """The container of the subjects."""

    def __init__(self, account, container):
        self.account, self.container = account, container

    def clients(self, **options):
        """What subjects are stepped and observed with."""
        return PerThread(self.account, self.container, **options)

    def listing(self):
        """{name: size} of everything, in the order of the listing."""
        listed = self.account.service().get_container_client(self.container).list_blobs()
        return {item.name: item.size for item in listed}


def verify(store, subjects_of_workers):
    """Checks every subject of every worker and the listing. Returns complaints."""
    complaints = []

    def one(mine):
        clients = store.clients()
        for subject in mine:
            try:
                complaint = subject.explain(clients)
            except Exception as error:  # pylint: disable=broad-except
                complaint = f"{subject.name}: {type(error).__name__}: {error}"
            if complaint:
                complaints.append(complaint)

    threads = [threading.Thread(target=one, args=(mine,)) for mine in subjects_of_workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {}
    for mine in subjects_of_workers:
        for subject in mine:
            wanted |= subject.listed()
    try:
        listed = store.listing()
    except Exception as error:  # pylint: disable=broad-except
        return [*complaints, f"listing: {type(error).__name__}: {error}"]
    if list(listed) != sorted(wanted):
        odd = sorted(set(listed) ^ set(wanted))[:5]
        complaints.append(f"listing: {odd} are in the listing or in reads, not both")
    wrong = [name for name, size in wanted.items() if listed.get(name, size) != size]
    if wrong:
        complaints.append(f"listing: wrong sizes of {wrong[:5]}")
    return complaints


class Cycles:
    """Load, a crash in the middle of it, a restart, verification; again and again."""

    def __init__(self, server, store, subjects_of_workers, seed, load_seconds, changer=None):
        self.server, self.store, self.changer = server, store, changer
        self.subjects, self.seed, self.load_seconds = subjects_of_workers, seed, load_seconds
        self.acknowledged, self.in_doubt = collections.Counter(), collections.Counter()
        self.restarts, self.complaints = [], []

    def run_all(self, title, count, crash):
        """Cycles, each with `crash(cycle)`; ends early when there is much to complain of."""
        with Progress(title, count, "cycles") as progress:
            for cycle in range(count):
                for complaint in self.run(cycle, lambda: crash(cycle))[:5]:
                    print(f"cycle {cycle}: {complaint}", flush=True)
                done, wrong = self.acknowledged.total(), len(self.complaints)
                progress.move_to(cycle + 1, f"{done:,} acknowledged, {wrong} complaints")
                if wrong > COMPLAINTS_MAX or not self.server.running():
                    break

    def run(self, cycle, crash):
        """One cycle. `crash()` ends the server. Returns what this cycle had to complain of; where
        the server does not start again, it does not run afterwards."""
        stopping, seed = threading.Event(), f"{self.seed}/{cycle}"
        workers = [Worker(number, mine, self.store.clients(read_timeout=30), seed, stopping)
                   for number, mine in enumerate(self.subjects)]
        changing = [Changing(self.changer)] if self.changer else []
        for one in (*workers, *changing):
            one.start()
        # A different moment each time: right away, within a group commit, in the middle of a flush.
        time.sleep(random.Random(seed).uniform(0.2, self.load_seconds))
        crash()
        stopping.set()
        found = self._ended(workers, changing)
        doubted = (subject.kind for mine in self.subjects for subject in mine if subject.doubt)
        self.in_doubt += collections.Counter(doubted)
        try:
            self.restarts.append(self.server.start())
            found += verify(self.store, self.subjects)
        except RuntimeError as error:
            found.append(str(error))
        self.complaints += [f"cycle {cycle}: {complaint}" for complaint in found]
        return found

    def _ended(self, workers, changing):
        found = []
        for worker in workers:
            worker.join(60)
            if worker.is_alive():
                found.append(f"worker {worker.number} still waits for an answer")
            if worker.surprise:
                found.append(worker.surprise)
            self.acknowledged += worker.done
        for one in changing:
            one.join(60)
            if one.is_alive() or one.surprise:
                found.append(one.surprise or "a change of the map still waits for an answer")
        return found

    def verdicts(self, verdicts):
        """The verdicts of all cycles."""
        many = len(self.restarts)
        verdicts.none("every blob explained after every restart", self.complaints, COMPLAINTS_MAX)
        kinds = {subject.kind for mine in self.subjects for subject in mine}
        fewest = min(self.acknowledged[kind] for kind in kinds)
        verdicts.check("operations of every kind acknowledged under load", fewest > many, "many",
                       summary(self.acknowledged))
        if self.changer:
            done, refused = self.changer.done, set(self.changer.refused)
            verdicts.check("the map changed under load", done.total() > many, "often",
                           str(dict(done)))
            verdicts.equal("refusals that are not those of a map that has changed",
                           refused - REFUSALS, set())
        verdicts.figure("operations in doubt at a crash", summary(self.in_doubt))
        if self.restarts:
            restarts = sorted(self.restarts)
            verdicts.figure("start to serving, median and worst",
                            f"{restarts[many // 2]:.3f} s, {restarts[-1]:.3f} s")


def summary(counter):
    """All, and of each kind."""
    kinds = ", ".join(f"{kind} {counter[kind]:,}" for kind in sorted(counter))
    return f"{counter.total():,}: {kinds}"
