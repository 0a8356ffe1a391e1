"""Page blobs copied whole, from a snapshot, and in ranges; both sides are written on.

A copy may share what its source has; neither may show what was written to the other afterwards.
"""

import dataclasses

from ..content import sha256
from .base import Subject, answered, ended, shown, snapshots
from .page import PAGE, ZEROS, data

PAGES = 96


@dataclasses.dataclass(frozen=True)
class Pair:
    """A label for each page of the source, of what its snapshot took and of the copy; None where there is none."""

    source: tuple | None = None
    taken: tuple | None = None
    copy: tuple | None = None


class PagesCopiedSubject(Subject):
    """Two page blobs and at most one snapshot. `signature` lets the server read the source."""

    kind = "pages copied"

    def __init__(self, name, signature):
        super().__init__(name)
        self.signature, self.state, self.id = signature, Pair(), None
        self.source_name, self.copy_name = f"{name}-source", f"{name}-copy"

    def step(self, clients, source):
        state, dice, origin = self.state, source.random.random(), clients.blob(self.source_name)
        if state.source is None:
            self.attempt(dataclasses.replace(state, source=(None,) * PAGES), lambda: origin.create_page_blob(PAGES * PAGE))
        elif dice < 0.35:
            self._write(origin, source, "source")
        elif dice < 0.5 and state.copy:
            self._write(clients.blob(self.copy_name), source, "copy")
        elif dice < 0.65:
            self._copy(clients, from_snapshot=state.taken is not None and dice < 0.58)
        elif dice < 0.8 and state.copy:
            self._copy_range(clients, source)
        elif dice < 0.88 and state.taken is None:
            made = self.attempt(dataclasses.replace(state, taken=state.source), origin.create_snapshot)
            self.id = made["snapshot"]
        elif dice < 0.92 and state.taken is not None:
            self.attempt(dataclasses.replace(state, taken=None),
                         clients.container().get_blob_client(self.source_name, snapshot=self.id).delete_blob)
        elif dice > 0.97:
            self.attempt(dataclasses.replace(state, source=None, taken=None),
                         lambda: origin.delete_blob(delete_snapshots="include"))
        elif dice > 0.94 and state.copy:
            self.attempt(dataclasses.replace(state, copy=None), clients.blob(self.copy_name).delete_blob)

    def _write(self, blob, source, side):
        count = source.random.choice([1, 1, 2, 8, 31])
        first = source.random.randrange(PAGES - count + 1)
        mark, pages = source.mark(), getattr(self.state, side)
        clear = source.random.random() < 0.3
        fresh = (None,) * count if clear else tuple((mark, page) for page in range(count))
        outcome = dataclasses.replace(self.state, **{side: (*pages[:first], *fresh, *pages[first + count:])})
        self.attempt(outcome, (lambda: blob.clear_page(first * PAGE, count * PAGE)) if clear else
                     (lambda: blob.upload_page(data(fresh), first * PAGE, count * PAGE)))

    def _copy(self, clients, from_snapshot):
        origin, target = clients.blob(self.source_name), clients.blob(self.copy_name)
        url = f"{origin.url}?{self.signature}" + (f"&snapshot={self.id}" if from_snapshot else "")
        outcome = dataclasses.replace(self.state, copy=self.state.taken if from_snapshot else self.state.source)
        self.attempt(outcome, lambda: target.start_copy_from_url(url))
        ended(target, answered)

    def _copy_range(self, clients, source):
        origin, target = clients.blob(self.source_name), clients.blob(self.copy_name)
        count = source.random.choice([1, 3, 17, 40])
        read, write = (source.random.randrange(PAGES - count + 1) for _ in range(2))
        # Bytes are copied, so that a cleared page of the source is a written page of zeros here.
        fresh = tuple(ZEROS if label is None else label for label in self.state.source[read:read + count])
        copy = self.state.copy
        outcome = dataclasses.replace(self.state, copy=(*copy[:write], *fresh, *copy[write + count:]))
        self.attempt(outcome, lambda: target.upload_pages_from_url(
            f"{origin.url}?{self.signature}", write * PAGE, count * PAGE, read * PAGE))

    def observe(self, clients):
        ended(clients.blob(self.copy_name))
        ids = snapshots(clients, self.source_name)
        self.id = ids[0] if ids else None
        taken = [shown(clients.container().get_blob_client(self.source_name, snapshot=i))[1] for i in ids]
        return shown(clients.blob(self.source_name))[1], taken, shown(clients.blob(self.copy_name))[1]

    def expected(self, state):
        digest = lambda pages: None if pages is None else sha256(data(pages))
        return digest(state.source), [] if state.taken is None else [digest(state.taken)], digest(state.copy)

    def listed(self):
        both = ((self.source_name, self.state.source), (self.copy_name, self.state.copy))
        return {name: PAGES * PAGE for name, pages in both if pages}
