"""Snapshots of a block blob that is overwritten: each keeps its content until it is deleted."""

import dataclasses

from ..content import sha256
from .base import Subject, shown, snapshots
from .block import some

SNAPSHOTS_MAX = 4


@dataclasses.dataclass(frozen=True)
class Blob:
    """The bytes, and what each snapshot took, oldest first."""

    piece: object
    taken: tuple = ()


class SnapshotSubject(Subject):
    """One block blob and its snapshots."""

    kind = "snapshot"

    def __init__(self, name):
        super().__init__(name)
        self.ids = []

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        if state is None or dice < 0.4:
            piece = some(source)
            self.attempt(Blob(piece, state.taken if state else ()), lambda: blob.upload_blob(piece.data(), overwrite=True))
        elif dice < 0.65 and len(state.taken) < SNAPSHOTS_MAX:
            made = self.attempt(dataclasses.replace(state, taken=(*state.taken, state.piece)), blob.create_snapshot)
            self.ids.append(made["snapshot"])
        elif dice < 0.8 and state.taken:
            at = source.random.randrange(len(state.taken))
            self.attempt(dataclasses.replace(state, taken=state.taken[:at] + state.taken[at + 1:]),
                         clients.container().get_blob_client(self.name, snapshot=self.ids[at]).delete_blob)
            del self.ids[at]
        elif dice < 0.9 and state.taken:
            self.attempt(dataclasses.replace(state, taken=()), lambda: blob.delete_blob(delete_snapshots="only"))
            self.ids = []
        elif dice > 0.95:
            self.attempt(None, lambda: blob.delete_blob(delete_snapshots="include"))
            self.ids = []

    def observe(self, clients):
        self.ids = snapshots(clients, self.name)
        of = clients.container().get_blob_client
        return shown(clients.blob(self.name))[1], [shown(of(self.name, snapshot=i))[1] for i in self.ids]

    def expected(self, state):
        if state is None:
            return None, []
        return sha256(state.piece.data()), [sha256(piece.data()) for piece in state.taken]

    def listed(self):
        return {self.name: self.state.piece.size} if self.state else {}
