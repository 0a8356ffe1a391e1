"""Calls of the SDK on one blob, with the answers that the models of `linearizable.py` know."""

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobLeaseClient


def code_of(error):
    """The code of an SDK error as text."""
    return str(getattr(error.error_code, "value", error.error_code))


def answer(call, refusals):
    """What the call answers, or the word for the one refusal that the race allows."""
    try:
        return call()
    except HttpResponseError as error:
        word = refusals.get(code_of(error))
        if word is None:
            raise
        return word


class Calls:
    """The conditional calls on one blob, as the models know them. `values` is {ETag: bytes written}."""

    def __init__(self, clients, name):
        self._clients, self._name, self.values = clients, name, {}

    def blob(self):
        """This thread's client."""
        return self._clients.blob(self._name)

    def _put(self, data, **condition):
        etag = self.blob().upload_blob(data, overwrite=bool(condition), **condition)["etag"]
        self.values[etag] = data
        return etag

    def put(self, data):
        """Without a condition."""
        etag = self.blob().upload_blob(data, overwrite=True)["etag"]
        self.values[etag] = data
        return etag

    def create(self, data):
        """If-None-Match: *."""
        return answer(lambda: self._put(data), {"BlobAlreadyExists": "exists"})

    def swap(self, etag, data):
        """If-Match."""
        condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
        return answer(lambda: self._put(data, **condition), {"ConditionNotMet": "other"})

    def read(self):
        """The ETag, after its bytes were seen to be the ones written under it."""
        try:
            found = self.blob().download_blob()
            data, etag = found.readall(), found.properties.etag
        except HttpResponseError as error:
            if code_of(error) != "BlobNotFound":
                raise
            return None
        # The writer may not have its answer yet; the content says which write it is from.
        if self.values.get(etag, data) != data:
            return f"{etag} with other bytes"
        return etag

    def delete(self):
        """Without a condition."""
        return answer(lambda: self.blob().delete_blob() or "gone", {"BlobNotFound": "missing"})

    def acquire(self, lease_id):
        """A lease without end."""
        return answer(lambda: self.blob().acquire_lease(lease_id=lease_id) and "mine", {"LeaseAlreadyPresent": "taken"})

    def release(self, lease_id):
        """Gives it back."""
        return answer(lambda: BlobLeaseClient(self.blob(), lease_id).release() or "free",
                      {"LeaseIdMismatchWithLeaseOperation": "not mine"})

    def append(self, wanted, entry):
        """At a position or not at all."""
        return answer(lambda: self.blob().append_block(entry, appendpos_condition=wanted) and "at end",
                      {"AppendPositionConditionNotMet": "elsewhere"})
