"""Block blobs: puts of 100 bytes to 300 KiB, or of 1 to 5 MiB, overwrites, staged blocks and commits, deletes, metadata sets.

An acknowledged staged block is still listed as uncommitted, with its size.
"""

import dataclasses

from azure.core.exceptions import ResourceNotFoundError

from ..content import sha256
from .base import Subject, block_id, shown

LOW, SMALL, HIGH = 100, 8000, 300 << 10
LARGE_SHARE = 0.3
BLOCKS = 6
# More than what shares an append with other requests.
LARGE_LOW, LARGE_HIGH = (1 << 20) + 1, 5 << 20


@dataclasses.dataclass(frozen=True)
class Blob:
    """Committed pieces (none at all: no blob), the mark in the metadata, and what is staged as ((number, piece), ...)."""

    pieces: tuple | None = None
    mark: str = ""
    staged: tuple = ()


def some(source):
    """Mostly small, sometimes as large as 300 KiB, so that both ways into an extent are taken."""
    return source.piece(LOW, HIGH if source.random.random() < LARGE_SHARE else SMALL)


class BlockSubject(Subject):
    """One block blob."""

    def __init__(self, name):
        super().__init__(name)
        self.state = Blob()

    def _piece(self, source):
        return some(source)

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        if dice < 0.5:
            piece, mark = self._piece(source), source.mark()
            self.attempt(Blob((piece,), mark), lambda: blob.upload_blob(piece.data(), overwrite=True, metadata={"mark": mark}))
        elif dice < 0.7:
            number, piece = source.random.randrange(BLOCKS), self._piece(source)
            staged = tuple(sorted({**dict(state.staged), number: piece}.items()))
            self.attempt(dataclasses.replace(state, staged=staged),
                         lambda: blob.stage_block(block_id(number), piece.data(), piece.size))
        elif dice < 0.8 and state.staged:
            mark = source.mark()
            self.attempt(Blob(tuple(piece for _, piece in state.staged), mark), lambda: blob.commit_block_list(
                [block_id(number) for number, _ in state.staged], metadata={"mark": mark}))
        elif dice < 0.9 and state.pieces:
            self.attempt(Blob(), blob.delete_blob)
        elif state.pieces:
            mark = source.mark()
            self.attempt(dataclasses.replace(state, mark=mark), lambda: blob.set_blob_metadata({"mark": mark}))

    def observe(self, clients):
        blob = clients.blob(self.name)
        properties, digest = shown(blob)
        try:
            staged = {block.id: block.size for block in blob.get_block_list("uncommitted")[1]}
        except ResourceNotFoundError:
            staged = {}
        return digest, properties and properties.metadata.get("mark"), staged

    def expected(self, state):
        staged = {block_id(number): piece.size for number, piece in state.staged}
        if state.pieces is None:
            return None, None, staged
        return sha256(b"".join(piece.data() for piece in state.pieces)), state.mark, staged

    def listed(self):
        return {self.name: sum(p.size for p in self.state.pieces)} if self.state.pieces else {}


class LargeSubject(BlockSubject):
    """A block blob whose puts and blocks have several MiB."""

    kind = "large"

    def _piece(self, source):
        return source.piece(LARGE_LOW, LARGE_HIGH)


class Unstaged:
    """Staged blocks are no part of what is judged: some servers keep them when the blob is written
    over."""

    def observe(self, clients):
        return super().observe(clients)[:2]

    def expected(self, state):
        return super().expected(state)[:2]


class UnstagedBlock(Unstaged, BlockSubject):
    """A block blob without its staged blocks."""


class UnstagedLarge(Unstaged, LargeSubject):
    """A large one without its staged blocks."""
