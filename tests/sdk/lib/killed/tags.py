"""Tags, set with the bytes and alone; the search finds a blob by the tags it has and by no others."""

import dataclasses

from ..measure import wait_until
from ..content import sha256
from .base import Subject, shown
from .block import some

# The index follows a write within a moment, and after a crash when reclaim has brought it up.
FOUND_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Blob:
    """The bytes and the value of the tag."""

    piece: object
    mark: str


class TagsSubject(Subject):
    """One block blob with two tags: one that always names it, one that changes."""

    kind = "tags"

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        mark = source.mark()
        if state is None or dice < 0.3:
            piece = some(source)
            self.attempt(Blob(piece, mark), lambda: blob.upload_blob(piece.data(), overwrite=True, tags=self._tags(mark)))
        elif dice < 0.9:
            self.attempt(dataclasses.replace(state, mark=mark), lambda: blob.set_blob_tags(self._tags(mark)))
        else:
            self.attempt(None, blob.delete_blob)

    def _tags(self, mark):
        return {"owner": self.name, "mark": mark}

    def observe(self, clients):
        blob = clients.blob(self.name)
        properties, digest = shown(blob)
        tags = blob.get_blob_tags() if properties else {}
        wanted = [self.name] if tags else []
        find = lambda text: [b.name for b in clients.container().find_blobs_by_tags(text)]
        everything = f"\"owner\"='{self.name}'"
        mark = tags.get("mark", "none")
        wait_until(lambda: find(everything) == wanted and find(f"\"mark\"='{mark}'") == wanted, FOUND_SECONDS)
        # The marks it does not have find nothing.
        others = {state.mark for state in (self.state, *self.doubt) if state} - {mark}
        return (digest, tags, find(everything), find(f"\"mark\"='{mark}'"),
                [other for other in sorted(others) if find(f"\"mark\"='{other}'")])

    def expected(self, state):
        if state is None:
            return None, {}, [], [], []
        return sha256(state.piece.data()), self._tags(state.mark), [self.name], [self.name], []

    def listed(self):
        return {self.name: self.state.piece.size} if self.state else {}
