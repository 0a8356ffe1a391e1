#!/usr/bin/env python3
"""azstoragetorch: map and iterable data sets through a DataLoader, checkpoints saved and loaded. With a signature."""

import importlib.metadata
import io
import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import torch
from azstoragetorch.datasets import BlobDataset, IterableBlobDataset
from azstoragetorch.io import BlobIO
from lib import accounts, cli
from lib.content import content
from lib.judged import Judged, equal, parse

FILES = 60
SIZE = 3000
WIDTH, LAYERS = 512, 12


def read(blob):
    """One sample: its name and its bytes."""
    with blob.reader() as source:
        return {"name": blob.blob_name, "data": source.read()}


def wanted():
    """Every sample there must be."""
    return {f"train/{n:03}": content(n, SIZE) for n in range(FILES)}


def seen(data, workers):
    """Every sample a loader gives."""
    found = {}
    for batch in torch.utils.data.DataLoader(data, batch_size=7, num_workers=workers, collate_fn=list):
        for sample in batch:
            equal(sample["name"] in found, False, f"{sample['name']} twice:")
            found[sample["name"]] = sample["data"]
    return found


def map_data(url, signature):
    """By index, shuffled by the loader, with worker processes."""
    make = lambda: BlobDataset.from_container_url(f"{url}?{signature}", prefix="train/", transform=read, credential=False)
    equal(len(make()), FILES)
    equal(seen(make(), 0) == wanted(), True, "samples in this process:")
    # A new one: worker processes are forks, and those of one that has read would share its open connections.
    equal(seen(make(), 2) == wanted(), True, "samples of two workers:")


def iterable_data(url, signature):
    """As a stream, divided among worker processes."""
    make = lambda: IterableBlobDataset.from_container_url(f"{url}?{signature}", prefix="train/", transform=read, credential=False)
    equal(seen(make(), 0) == wanted(), True, "samples in this process:")
    equal(seen(make(), 2) == wanted(), True, "samples of two workers:")


def model():
    """A few layers with weights that are always the same."""
    torch.manual_seed(7)
    return torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def checkpoint(url, signature):
    """A model and its optimizer, saved and loaded as they were."""
    made = model()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(1.5)
    with BlobIO(f"{url}/checkpoint.pt?{signature}", "wb", credential=False) as out:
        torch.save({"model": made.state_dict(), "step": 42}, out)
    with BlobIO(f"{url}/checkpoint.pt?{signature}", "rb", credential=False) as source:
        found = torch.load(source, weights_only=True)
    equal(found["step"], 42)
    equal([name for name, weight in made.state_dict().items() if not torch.equal(weight, found["model"][name])], [])


def bytes_and_ranges(url, signature):
    """The file object itself: write, seek, read lines."""
    data = content("blob io", 9 << 20)
    with BlobIO(f"{url}/io.bin?{signature}", "wb", credential=False) as out:
        for at in range(0, len(data), 1 << 20):
            out.write(data[at:at + (1 << 20)])
    with BlobIO(f"{url}/io.bin?{signature}", "rb", credential=False) as source:
        source.seek(5_000_000)
        equal(source.read(100), data[5_000_000:5_000_100])
        source.seek(-10, io.SEEK_END)
        equal(source.read(), data[-10:])


def main(options, scratch):
    judged = Judged("azstoragetorch", importlib.metadata.version("azstoragetorch"), options)
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        account = server.account
        container = account.service().create_container("torch")
        for name, data in wanted().items():
            container.upload_blob(name, data)
        url, signature = f"{account.url}/torch", accounts.sas(account)
        for name, run in (("map data set", map_data), ("iterable data set", iterable_data),
                          ("checkpoint save and load", checkpoint), ("file object", bytes_and_ranges)):
            with judged.group(name):
                run(url, signature)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))
