"""Leases without an end: acquired, changed, released, broken, and used to write."""

import dataclasses
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobLeaseClient

from ..content import sha256
from .base import Subject, shown
from .block import some


@dataclasses.dataclass(frozen=True)
class Blob:
    """The bytes and the id of the lease, if there is one."""

    piece: object
    lease: str | None = None


class LeaseSubject(Subject):
    """One block blob and its lease."""

    kind = "lease"

    def step(self, clients, source):
        blob, state, dice = clients.blob(self.name), self.state, source.random.random()
        fresh = str(uuid.UUID(int=source.random.getrandbits(128)))
        if state is None or dice < 0.35:
            piece, held = some(source), state.lease if state else None
            self.attempt(Blob(piece, held), lambda: blob.upload_blob(piece.data(), overwrite=True, lease=held))
        elif dice > 0.93:
            self.attempt(None, lambda: blob.delete_blob(lease=state.lease))
        elif state.lease is None:
            self.attempt(dataclasses.replace(state, lease=fresh), lambda: blob.acquire_lease(lease_id=fresh))
        elif dice < 0.6:
            self.attempt(dataclasses.replace(state, lease=fresh), lambda: BlobLeaseClient(blob, state.lease).change(fresh))
        elif dice < 0.8:
            self.attempt(dataclasses.replace(state, lease=None), BlobLeaseClient(blob, state.lease).release)
        else:
            self.attempt(dataclasses.replace(state, lease=None), lambda: BlobLeaseClient(blob).break_lease(0))

    def observe(self, clients):
        blob = clients.blob(self.name)
        properties, digest = shown(blob)
        if properties is None:
            return None
        if properties.lease.status != "locked":
            return digest, None
        ids = {state.lease for state in (self.state, *self.doubt) if state and state.lease}
        return digest, next((held for held in sorted(ids) if self._renews(blob, held)), "another")

    @staticmethod
    def _renews(blob, held):
        try:
            BlobLeaseClient(blob, held).renew()
        except HttpResponseError as error:
            if error.error_code != "LeaseIdMismatchWithLeaseOperation":
                raise
            return False
        return True

    def expected(self, state):
        return state and (sha256(state.piece.data()), state.lease)

    def listed(self):
        return {self.name: self.state.piece.size} if self.state else {}
