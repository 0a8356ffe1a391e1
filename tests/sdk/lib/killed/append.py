"""Append blobs: created, appended to at the end and at a position, from the body and from their own bytes, sealed, deleted.

An acknowledged append is there, once and in its place.
"""

import dataclasses

from ..content import sha256
from .base import Subject, shown

LOW, HIGH = 1, 100 << 10
PIECES_MAX = 30


@dataclasses.dataclass(frozen=True)
class Again:
    """Bytes that are in the blob already: `size` from `start` on of these pieces."""

    pieces: tuple
    start: int
    size: int

    def data(self):
        """The bytes."""
        return b"".join(piece.data() for piece in self.pieces)[self.start:self.start + self.size]


@dataclasses.dataclass(frozen=True)
class Blob:
    """The pieces in order."""

    pieces: tuple = ()
    sealed: bool = False


class AppendSubject(Subject):
    """One append blob. `signature` lets the server read it as a source."""

    kind = "append"

    def __init__(self, name, signature):
        super().__init__(name)
        self.signature = signature

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        if state is None or dice < 0.05:
            self.attempt(Blob(), blob.create_append_blob)
        elif dice < 0.12:
            self.attempt(None, blob.delete_blob)
        elif state.sealed or len(state.pieces) == PIECES_MAX:
            self.attempt(Blob(), blob.create_append_blob)
        elif dice < 0.17:
            self.attempt(dataclasses.replace(state, sealed=True), blob.seal_append_blob)
        elif dice < 0.25 and state.pieces:
            whole = self.listed()[self.name]
            start = source.random.randrange(whole)
            piece = Again(state.pieces, start, min(whole - start, source.random.randint(LOW, HIGH)))
            self.attempt(dataclasses.replace(state, pieces=(*state.pieces, piece)), lambda: blob.append_block_from_url(
                f"{blob.url}?{self.signature}", piece.start, piece.size))
        else:
            piece = source.piece(LOW, HIGH)
            at = {"appendpos_condition": self.listed()[self.name]} if dice < 0.6 else {}
            self.attempt(dataclasses.replace(state, pieces=(*state.pieces, piece)),
                         lambda: blob.append_block(piece.data(), **at))

    def observe(self, clients):
        properties, digest = shown(clients.blob(self.name))
        if properties is None:
            return None
        return digest, properties.append_blob_committed_block_count, bool(properties.is_append_blob_sealed)

    def expected(self, state):
        if state is None:
            return None
        return sha256(b"".join(piece.data() for piece in state.pieces)), len(state.pieces), state.sealed

    def listed(self):
        return {self.name: sum(p.size for p in self.state.pieces)} if self.state else {}
