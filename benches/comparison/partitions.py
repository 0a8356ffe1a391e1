"""The partition map over time, as Blockyard's admin listener shows it."""

import collections
import datetime
import http.client
import json
import threading
import time

EVERY = 0.1
LOOKS = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
# A partition with a smaller share of the requests does not count as serving the burst.
PART = 0.01


class Watch:
    """Looks at the map ten times a second until it is stopped."""

    def __init__(self, server, data):
        self._port, self._token = server.base + 1, (data / "admin-token").read_text().strip()
        self._changes_before = self._look()["latest_change"]
        self._seen, self._ended = [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _look(self, after=None):
        """The map, with changes after that one."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            query = "" if after is None else f"?after={after}"
            connection.request("GET", f"/admin/partitions{query}", headers={"Authorization": f"Bearer {self._token}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _run(self):
        while not self._ended.wait(EVERY):
            look = self._look(self._changes_before)
            self._seen.append((time.time(), [(one["id"], one["requests"]) for one in look["partitions"]]))

    def stop(self):
        """Ends it; returns what was seen."""
        self._ended.set()
        self._thread.join()
        return Seen(self._seen, self._look(self._changes_before)["changes"])


class Seen:
    """Requests of each partition at moments, and the changes of the map."""

    def __init__(self, looks, changes):
        self._looks, self._changes = looks, changes

    def spread(self, began, ended):
        """How the requests of a burst that began and ended then (seconds since 1970) spread over partitions."""
        changes = [one for one in self._changes if began <= when(one["at"]) <= ended]
        splits = [when(one["at"]) - began for one in changes if one["kind"] == "split"]
        return {
            "first_split_ms": min(splits) * 1e3 if splits else None,
            "changes": len(changes),
            "kinds": dict(collections.Counter(one["kind"] for one in changes)),
            "pause_ms": max((one["pause_ms"] for one in changes), default=0.0),
            "looks": [self._look(began, at) for at in LOOKS if began + at <= ended + EVERY],
        }

    def _look(self, began, at):
        """The partitions with a share of the requests in the moment before `at`, and the largest share."""
        until = [look for look in self._looks if look[0] <= began + at] or self._looks[:1]
        before, after = dict(until[-2:][0][1]), until[-1][1]
        counts = [count - before.get(one, 0) for one, count in after]
        # Each request of a blob asks for its container's row too, which is in the first partition.
        counts[0] -= sum(counts) // 2
        total = max(sum(counts), 1)
        return {"at": at, "partitions": sum(count >= PART * total for count in counts), "busiest": max(counts) / total}


def when(iso):
    """Seconds since 1970."""
    return datetime.datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()
