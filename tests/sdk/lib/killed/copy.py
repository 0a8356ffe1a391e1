"""Copies of a source that is overwritten and deleted: asked for with Copy Blob, Copy Blob From URL, Put Blob From URL and
Put Block From URL; and Copy Blob of what another server has, which goes on after it was accepted, a restart between or not.

A copy may share its source's extents; it must stay whole whatever becomes of the source.
"""

import dataclasses

from ..content import sha256
from .base import Subject, answered, block_id, ended, shown
from .block import some

PIECES_MAX = 4


@dataclasses.dataclass(frozen=True)
class Pair:
    """The pieces of the source and of its copy; None where there is no blob."""

    source: tuple | None = None
    copy: tuple | None = None


def bytes_of(pieces):
    """Their bytes in a row."""
    return b"".join(piece.data() for piece in pieces)


class CopySubject(Subject):
    """Two blobs. `signature` lets the server read the source; `elsewhere` is [(address, piece), ...] of another server."""

    kind = "copy"

    def __init__(self, name, signature, elsewhere):
        super().__init__(name)
        self.signature, self.elsewhere, self.state = signature, elsewhere, Pair()
        self.source_name, self.copy_name = f"{name}-source", f"{name}-copy"

    def step(self, clients, source):
        state, dice = self.state, source.random.random()
        if dice < 0.1:
            url, piece = source.random.choice(self.elsewhere)
            target = clients.blob(self.copy_name)
            self.attempt(dataclasses.replace(state, copy=(piece,)), lambda: target.start_copy_from_url(url))
            ended(target, answered)
        elif state.source is None or dice < 0.35:
            self._fill(clients.blob(self.source_name), source)
        elif dice < 0.8:
            self._copy(clients, source.random.randrange(4))
        elif dice < 0.9:
            self.attempt(dataclasses.replace(state, source=None), clients.blob(self.source_name).delete_blob)
        elif state.copy is not None:
            self.attempt(dataclasses.replace(state, copy=None), clients.blob(self.copy_name).delete_blob)

    def _fill(self, blob, source):
        pieces = tuple(some(source) for _ in range(source.random.randint(1, PIECES_MAX)))
        outcome = dataclasses.replace(self.state, source=pieces)
        if len(pieces) == 1:
            self.attempt(outcome, lambda: blob.upload_blob(bytes_of(pieces), overwrite=True))
            return
        for number, piece in enumerate(pieces):
            answered(lambda: blob.stage_block(block_id(number), piece.data(), piece.size))
        self.attempt(outcome, lambda: blob.commit_block_list([block_id(number) for number in range(len(pieces))]))

    def _copy(self, clients, way):
        target, url = clients.blob(self.copy_name), f"{clients.blob(self.source_name).url}?{self.signature}"
        outcome = dataclasses.replace(self.state, copy=self.state.source)
        if way == 0:
            self.attempt(outcome, lambda: target.start_copy_from_url(url))
            ended(target, answered)
        elif way == 1:
            self.attempt(outcome, lambda: target.start_copy_from_url(url, requires_sync=True))
        elif way == 2:
            self.attempt(outcome, lambda: target.upload_blob_from_url(url, overwrite=True))
        else:
            answered(lambda: target.stage_block_from_url(block_id(0), url))
            self.attempt(outcome, lambda: target.commit_block_list([block_id(0)]))

    def observe(self, clients):
        ended(clients.blob(self.copy_name))
        return tuple(shown(clients.blob(name))[1] for name in (self.source_name, self.copy_name))

    def expected(self, state):
        return tuple(pieces and sha256(bytes_of(pieces)) for pieces in (state.source, state.copy))

    def listed(self):
        both = ((self.source_name, self.state.source), (self.copy_name, self.state.copy))
        return {name: sum(p.size for p in pieces) for name, pieces in both if pieces}
