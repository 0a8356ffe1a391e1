"""Page blobs: pages written and cleared, resized, numbered, with snapshots taken and deleted.

What was cleared is no range, what was written is; a snapshot keeps what it took.
"""

import dataclasses

from ..content import content, sha256
from .base import Subject, shown, snapshots

PAGE = 512
PAGES_MIN, PAGES_MAX = 32, 128
SNAPSHOTS_MAX = 3


@dataclasses.dataclass(frozen=True)
class Blob:
    """A label for each page (None: cleared), the sequence number, and what each snapshot took, oldest first."""

    pages: tuple
    number: int = 0
    taken: tuple = ()


# The label of a page that zeros were written to; a cleared one has None.
ZEROS = "zeros"


def data(pages):
    """The bytes of pages, from their labels."""
    return b"".join(bytes(PAGE) if label in (None, ZEROS) else content(label, PAGE) for label in pages)


class PageSubject(Subject):
    """One page blob and its snapshots."""

    kind = "page"

    def __init__(self, name):
        super().__init__(name)
        # Of the snapshots, oldest first.
        self.ids = []

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        if state is None:
            pages = source.random.randint(PAGES_MIN, PAGES_MAX)
            self.attempt(Blob((None,) * pages), lambda: blob.create_page_blob(pages * PAGE))
        elif dice < 0.7:
            self._write(blob, source, clear=dice < 0.2)
        elif dice < 0.8:
            pages = source.random.randint(PAGES_MIN, PAGES_MAX)
            kept = (*state.pages, *(None,) * PAGES_MAX)[:pages]
            self.attempt(dataclasses.replace(state, pages=kept), lambda: blob.resize_blob(pages * PAGE))
        elif dice < 0.85:
            number = state.number + source.random.randint(1, 9)
            self.attempt(dataclasses.replace(state, number=number), lambda: blob.set_sequence_number("max", str(number)))
        elif dice < 0.92 and len(state.taken) < SNAPSHOTS_MAX:
            made = self.attempt(dataclasses.replace(state, taken=(*state.taken, state.pages)), blob.create_snapshot)
            self.ids.append(made["snapshot"])
        elif dice < 0.97 and state.taken:
            at = source.random.randrange(len(state.taken))
            self.attempt(dataclasses.replace(state, taken=state.taken[:at] + state.taken[at + 1:]),
                         clients.container().get_blob_client(self.name, snapshot=self.ids[at]).delete_blob)
            del self.ids[at]
        else:
            self.attempt(None, lambda: blob.delete_blob(delete_snapshots="include"))
            self.ids = []

    def _write(self, blob, source, clear):
        count = source.random.choice([1, 1, 2, 8, 31])
        first = source.random.randrange(len(self.state.pages) - count + 1)
        mark = source.mark()
        fresh = (None,) * count if clear else tuple((mark, page) for page in range(count))
        pages = (*self.state.pages[:first], *fresh, *self.state.pages[first + count:])
        call = (lambda: blob.clear_page(first * PAGE, count * PAGE)) if clear else \
            (lambda: blob.upload_page(data(fresh), first * PAGE, count * PAGE))
        self.attempt(dataclasses.replace(self.state, pages=pages), call)

    def observe(self, clients):
        blob = clients.blob(self.name)
        properties, digest = shown(blob)
        self.ids = snapshots(clients, self.name)
        if properties is None:
            return None, [], None, self.ids
        written = [page for held in blob.list_page_ranges() for page in range(held.start // PAGE, held.end // PAGE + 1)]
        of = clients.container().get_blob_client
        return digest, written, properties.page_blob_sequence_number, [shown(of(self.name, snapshot=i))[1] for i in self.ids]

    def expected(self, state):
        if state is None:
            return None, [], None, []
        written = [number for number, label in enumerate(state.pages) if label is not None]
        return sha256(data(state.pages)), written, state.number, [sha256(data(pages)) for pages in state.taken]

    def listed(self):
        return {self.name: len(self.state.pages) * PAGE} if self.state else {}
