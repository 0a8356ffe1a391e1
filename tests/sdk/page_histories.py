#!/usr/bin/env python3
"""Page blobs and their snapshots against an array of bytes, through kill -9.

Random writes, clears, snapshots and deletions of snapshots on two page blobs; in the middle the process is killed. Every
few steps each blob and each snapshot must read as the array says, have the ranges it says, and differ from each older
snapshot in the pages that were touched since, and so after a restart; then `blockyard check` must find the store sound,
with the blobs and again without them.
"""

import random

from lib import cli
from lib.report import Progress, Verdicts

PAGES, PAGE = 256, 512
NAMES = ("first", "second")


def ranges(client, **wanted):
    """What a client lists: (first byte, last byte, whether cleared)."""
    return [(found.start, found.end, found.cleared) for found in client.list_page_ranges(**wanted)]


def runs(states):
    """Neighbouring pages of one state as ranges; None is no range."""
    found = []
    for page, state in enumerate(states):
        if state is None:
            continue
        if found and found[-1][1] == page * PAGE - 1 and found[-1][2] == state:
            found[-1] = (found[-1][0], (page + 1) * PAGE - 1, state)
        else:
            found.append((page * PAGE, (page + 1) * PAGE - 1, state))
    return found


class History:
    """One page blob, what it must hold, and what each of its snapshots must."""

    def __init__(self, container, name):
        self.container, self.blob = container, container.get_blob_client(name)
        self.blob.create_page_blob(PAGES * PAGE)
        self.bytes, self.snapshots = bytearray(PAGES * PAGE), {}
        # For each page the number of the last step that touched it, now and at each snapshot with the step it was taken at.
        self.number, self.touched, self.versions = 0, [0] * PAGES, {}

    def step(self, draw):
        """One random change."""
        first = draw.randrange(PAGES)
        count = min(PAGES - first, draw.choice([1, 1, 3, 8, 64, 130]))
        window = slice(first * PAGE, (first + count) * PAGE)
        self.number += 1
        kind = draw.random()
        if kind < 0.55:
            data = bytes([draw.randrange(1, 256)]) * (count * PAGE)
            self.blob.upload_page(data, window.start, len(data))
            self.bytes[window] = data
            self.touched[first:first + count] = [self.number] * count
        elif kind < 0.75:
            self.blob.clear_page(window.start, count * PAGE)
            self.bytes[window] = bytes(count * PAGE)
            self.touched[first:first + count] = [self.number] * count
        elif kind < 0.87:
            taken = self.blob.create_snapshot()["snapshot"]
            self.snapshots[taken] = bytes(self.bytes)
            self.versions[taken] = (list(self.touched), self.number)
        elif self.snapshots:
            taken = draw.choice(sorted(self.snapshots))
            self.of(taken).delete_blob()
            del self.snapshots[taken], self.versions[taken]

    def of(self, taken):
        """The client of a snapshot."""
        return self.container.get_blob_client(self.blob.blob_name, snapshot=taken)

    def wrong(self):
        """Whatever does not read as it must."""
        found = [] if self.blob.download_blob().readall() == bytes(self.bytes) else [self.blob.blob_name]
        found += [taken for taken, want in self.snapshots.items() if self.of(taken).download_blob().readall() != want]
        return found + self.wrong_ranges()

    def wrong_ranges(self):
        """Versions whose ranges, or differences from older snapshots, are not those of the array."""
        found = []
        targets = [(self.blob, bytes(self.bytes), self.touched, "~")]
        targets += [(self.of(t), self.snapshots[t], self.versions[t][0], t) for t in self.snapshots]
        for client, want, touched, name in targets:
            written = [any(want[page * PAGE:(page + 1) * PAGE]) for page in range(PAGES)]
            if ranges(client, results_per_page=5) != runs(False if page else None for page in written):
                found.append(f"ranges of {name}")
            for older in (t for t in self.snapshots if t <= name):
                since = self.versions[older][1]
                state = [None if touched[page] <= since else not written[page] for page in range(PAGES)]
                if ranges(client, previous_snapshot=older, results_per_page=3) != runs(state):
                    found.append(f"{name} since {older}")
        return found


def main(options, scratch):
    verdicts = Verdicts("page histories")
    draw, steps = random.Random(options.seed), 120 if options.small else 600
    with cli.server(options, scratch) as server:
        container = server.account.service().create_container("pages")
        histories = [History(container, name) for name in NAMES]
        wrong = []
        with Progress("change", steps, "steps") as progress:
            for number in range(steps):
                draw.choice(histories).step(draw)
                if number == steps // 2:
                    server.kill()
                    server.start()
                if number % 20 == 19 or number == steps // 2:
                    wrong = [name for history in histories for name in history.wrong()]
                    if wrong:
                        break
                progress.advance()
        verdicts.none("wrong while it changed", wrong)
        server.stop()
        verdicts.equal("check with the blobs", server.check()[0], 0)
        server.start()
        verdicts.none("wrong after a restart", [name for history in histories for name in history.wrong()])
        for history in histories:
            history.blob.delete_blob(delete_snapshots="include")
        server.stop()
        code, output = server.check()
        verdicts.equal("check without them", code, 0)
        left = next((part for part in output.split(", ") if part.endswith(" blobs")), output[-200:])
        verdicts.equal("left", left, "0 blobs")
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--seed", type=int, default=1, help="another history")
    cli.run(main, cli.parse(flags))
