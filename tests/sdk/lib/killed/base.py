"""A subject: one blob, or a few that belong together, that only one worker changes."""

import base64
import dataclasses
import time

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from ..content import content, sha256

PENDING_SECONDS = 60


class InDoubt(Exception):
    """The connection broke or the server said it could not finish: the operation may or may not have happened.

    `code` is the error code that the server gave; None if it gave no answer, or something in between did."""

    def __init__(self, code=None):
        super().__init__(code)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Piece:
    """Unique bytes, named by `label`."""

    label: tuple
    size: int

    def data(self):
        """The bytes."""
        return content(self.label, self.size)


class Source:
    """Randomness and names for one worker in one cycle."""

    def __init__(self, random, *label):
        self.random, self._label, self._serial = random, label, 0

    def piece(self, low, high):
        """Bytes of a random size."""
        self._serial += 1
        return Piece((*self._label, self._serial), self.random.randint(low, high))

    def mark(self):
        """A unique word."""
        self._serial += 1
        return sha256(repr((*self._label, self._serial)).encode())[:16]


class Subject:
    """`state` is what was acknowledged (None: nothing is there), `doubt` the states an unanswered operation may have led
    to besides. States are immutable and compare by value."""

    kind = "block"

    def __init__(self, name):
        self.name, self.state, self.doubt = name, None, ()

    def step(self, clients, source):
        """One operation that suits the state."""
        raise NotImplementedError

    def observe(self, clients):
        """What the server shows now, in the shape of `expected`."""
        raise NotImplementedError

    def expected(self, state):
        """What the server must show in a state."""
        raise NotImplementedError

    def listed(self):
        """{name: size} that a listing must show."""
        raise NotImplementedError

    def attempt(self, outcome, call):
        """Runs `call`; on an answer the state becomes `outcome`, on none it is in doubt. Returns what `call` answered."""
        self.doubt = (outcome,)
        answer = answered(call)
        self.state, self.doubt = outcome, ()
        return answer

    def explain(self, clients):
        """Compares the found state with the known one and resolves doubts. Returns a complaint, or None."""
        found = self.observe(clients)
        for state in (self.state, *self.doubt):
            if found == self.expected(state):
                self.state, self.doubt = state, ()
                return None
        in_doubt = [self.expected(state) for state in self.doubt]
        return f"{self.name}: found {found}, acknowledged {self.expected(self.state)}, in doubt {in_doubt}"


def answered(call):
    """Runs a call that the state allows. Overload may be refused; any other refusal is the server's mistake."""
    try:
        return call()
    except HttpResponseError as error:
        if error.status_code == 503:
            raise InDoubt(error.error_code) from error
        raise
    except AzureError as error:
        raise InDoubt from error


def shown(blob):
    """(properties, digest of the bytes), or (None, None) where there is no blob."""
    try:
        download = blob.download_blob()
        return download.properties, sha256(download.readall())
    except ResourceNotFoundError as error:
        if error.error_code != "BlobNotFound":
            raise
        return None, None


def ended(target, ask=lambda call: call()):
    """Waits until a copy that was accepted has ended, if there is one."""
    deadline = time.monotonic() + PENDING_SECONDS
    while True:
        try:
            status = ask(target.get_blob_properties).copy.status
        except ResourceNotFoundError:
            return
        if status != "pending":
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"{target.blob_name}: still pending")
        time.sleep(0.02)


def snapshots(clients, name):
    """The ids of a blob's snapshots, oldest first."""
    found = clients.container().list_blobs(name_starts_with=name, include=["snapshots"])
    return sorted(item.snapshot for item in found if item.name == name and item.snapshot)


def block_id(number):
    """Ids of one length, as the protocol demands."""
    return base64.b64encode(f"b{number:04}".encode()).decode()
