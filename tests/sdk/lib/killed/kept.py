"""Versions of objects in a bucket with object lock, for kill9_s3.py: puts, delete markers, deletions of versions, legal holds.

A held version is asked to be deleted, too: it must be refused, before and after each crash.
"""

import dataclasses

from botocore.exceptions import ClientError

from ..content import sha256
from .base import InDoubt, Piece
from .block import some
from .s3 import S3Subject, doubting

BUCKET = "kill9-kept"
VERSIONS_MAX = 8
HOLD = {True: "ON", False: "OFF"}


@dataclasses.dataclass(frozen=True)
class Version:
    """A version, or without a piece a delete marker. Of one that was not acknowledged, the id is not known."""

    piece: Piece | None = None
    is_held: bool | None = None
    id: str | None = None

    def shown(self):
        """What a client must find."""
        return self.piece and (sha256(self.piece.data()), self.is_held)


class KeptSubject(S3Subject):
    """One object with its versions, newest first."""

    kind = "versions"

    def __init__(self, name):
        super().__init__(name)
        self.state = ()

    def step(self, clients, source):
        dice, real = source.random.random(), [version for version in self.state if version.piece]
        if not real or len(self.state) < VERSIONS_MAX and dice < 0.4:
            self._make(clients, Version(some(source), source.random.choice((None, True))))
        elif len(self.state) < VERSIONS_MAX and dice < 0.5:
            self._make(clients, Version())
        elif dice < 0.7:
            self._hold(clients, source.random.choice(real))
        else:
            self._remove(clients, source.random.choice(self.state))

    def _make(self, clients, version):
        """Puts a version, or a delete marker, on top of the others."""
        options, call = {}, clients.boto.delete_object
        if version.piece:
            options, call = {"Body": version.piece.data()}, clients.boto.put_object
            if version.is_held:
                options["ObjectLockLegalHoldStatus"] = HOLD[True]
        before = self.state
        done = self.change((version, *before), lambda: call(Bucket=BUCKET, Key=self.name, **options))
        self.state = (dataclasses.replace(version, id=done["VersionId"]), *before)

    def _hold(self, clients, version):
        """Begins a legal hold, or ends it."""
        changed = dataclasses.replace(version, is_held=not version.is_held)
        outcome = tuple(changed if one == version else one for one in self.state)
        self.change(outcome, lambda: clients.boto.put_object_legal_hold(
            Bucket=BUCKET, Key=self.name, VersionId=version.id, LegalHold={"Status": HOLD[changed.is_held]}))

    def _remove(self, clients, version):
        """Deletes a version. One that is held must be refused."""
        call = lambda: clients.boto.delete_object(Bucket=BUCKET, Key=self.name, VersionId=version.id)
        if not version.is_held:
            self.change(tuple(one for one in self.state if one != version), call)
            return
        try:
            with doubting():
                call()
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDenied":
                raise
        else:
            raise AssertionError(f"version {version.id} was deleted although it is held")

    def explain(self, clients):
        complaint = super().explain(clients)
        if complaint:
            return complaint
        ids = [found["VersionId"] for found in self._found(clients)]
        known = [version.id or found for version, found in zip(self.state, ids)]
        if known != ids:
            return f"{self.name}: the versions are {ids}, acknowledged {known}"
        self.state = tuple(dataclasses.replace(version, id=found) for version, found in zip(self.state, ids))
        return next((held for held in (self._still_held(clients, version) for version in self.state) if held), None)

    def _still_held(self, clients, version):
        if not version.is_held:
            return None
        try:
            self._remove(clients, version)
        except (AssertionError, InDoubt) as error:
            return f"{self.name}: {error!r}"
        return None

    def _found(self, clients):
        """The versions and delete markers, newest first."""
        listed = clients.boto.list_object_versions(Bucket=BUCKET, Prefix=self.name)
        both = [*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())]
        newest = [one["VersionId"] for one in both if one["IsLatest"]]
        assert len(newest) == bool(both), f"{self.name}: {newest} are the latest"
        return sorted(both, key=lambda one: (one["LastModified"], one["IsLatest"], one["VersionId"]), reverse=True)

    def observe(self, clients):
        found = []
        for one in self._found(clients):
            if "Size" not in one:
                found.append(None)
                continue
            got = clients.boto.get_object(Bucket=BUCKET, Key=self.name, VersionId=one["VersionId"])
            held = got.get("ObjectLockLegalHoldStatus")
            found.append((sha256(got["Body"].read()), held and held == HOLD[True]))
        return found

    def expected(self, state):
        return [version.shown() for version in state]

    def listed(self):
        # In a bucket of its own.
        return {}


KINDS = ((KeptSubject, 3),)
