"""Changes of the partition map by the admin listener, drawn at random."""

import collections
import http.client
import json
import pathlib
import random

# The refusals of a change when the map has changed since it was drawn.
REFUSALS = frozenset(("AlreadyBorder", "BadKeys", "Busy", "NoSuchPartition", "NotNeighbours", "NotStripable", "PartitionsBusy",
                      "Striped"))


class Admin:
    """The admin listener's commands."""

    def __init__(self, server):
        self.address = server.admin_address
        self.token = (pathlib.Path(server.data[0]) / "admin-token").read_text().strip()

    def call(self, method, path, body=None):
        """About partitions: (status, decoded answer)"""
        return self.ask(method, f"/partitions{path}", body)

    def ask(self, method, path, body=None):
        """(status, decoded answer)"""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(method, f"/admin{path}", body and json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def partitions(self):
        """All of them, in key order."""
        status, found = self.call("GET", "")
        assert status == 200, found
        return found["partitions"]


class Changer:
    """Changes the map of a server with two index hosts, one change after the other. Splits are at one of `keys`, lists of
    `ACCOUNT/CONTAINER/NAME`."""

    def __init__(self, admin, keys, seed):
        self.admin, self.keys = admin, keys
        self.draw = random.Random(seed)
        self.done, self.refused = collections.Counter(), collections.Counter()

    def change(self):
        """One change of a kind that fits the map as it is; counts what came of it."""
        found = self.admin.partitions()
        kind = self.draw.choice(["split", "split", "split", "merge", "merge", "merge", "move", "stripe", "unstripe"])
        striped = [part for part in found if part.get("stripe")]
        if kind == "unstripe" and not striped:
            kind = "stripe"
        if len(found) < 3:
            kind = "split"
        elif len(found) > 24 and kind in ("split", "stripe"):
            kind = "unstripe" if striped else "merge"
        if kind == "split":
            body = {"at": [self.draw.choice(self.draw.choice(self.keys))]}
        elif kind == "merge":
            first = self.draw.randrange(len(found) - 1)
            body = {"partitions": [part["id"] for part in found[first:first + self.draw.choice([2, 2, 3])]]}
        elif kind == "stripe":
            body = {"partition": self.draw.choice(found)["id"], "stripes": self.draw.randrange(2, 5)}
        elif kind == "unstripe":
            body = {"partition": self.draw.choice(striped)["id"]}
        else:
            part = self.draw.choice(found)
            body = {"partition": part["id"], "host": 1 - part["host"]}
        status, answer = self.admin.call("POST", f"/{kind}", body)
        if status < 300:
            self.done[kind] += 1
        else:
            error = answer["error"]
            expected = error["code"] in REFUSALS
            self.refused[error["code"] if expected else f"{error['code']}: {error['message']}"] += 1
