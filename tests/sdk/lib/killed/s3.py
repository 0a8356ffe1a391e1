"""Objects of S3 in this server, for kill9_s3.py: puts and overwrites, uploads in parts, deletions of many keys, copies.

What is shown of an object is the digest of its bytes, the mark in its metadata and its ETag, which S3 defines: the MD5 of the
bytes, or that of the MD5s of the parts. An upload is observed by its parts; a completion that was acknowledged is repeated after
each restart and must answer what it did.
"""

import contextlib
import dataclasses
import hashlib
import threading

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from ..content import sha256
from . import objects
from .base import InDoubt, Piece, Subject
from .block import some

PART_BYTES = 5 << 20
MANY = 8
MISSING = (None, None, None)
NO_KEY, NO_UPLOAD = "NoSuchKey", "NoSuchUpload"


@dataclasses.dataclass(frozen=True)
class Object:
    """An object: its pieces and its mark. `parts`: they were uploaded as parts."""

    pieces: tuple
    mark: str
    parts: bool = False

    def shown(self):
        """What a client must find."""
        bodies = [piece.data() for piece in self.pieces]
        etag = hashlib.md5(b"".join(bodies)).hexdigest()
        if self.parts:
            digests = b"".join(hashlib.md5(body).digest() for body in bodies)
            etag = f"{hashlib.md5(digests).hexdigest()}-{len(bodies)}"
        return sha256(b"".join(bodies)), self.mark, etag

    def size(self):
        """Bytes."""
        return sum(piece.size for piece in self.pieces)


def shown(found):
    """What must be found: an object, or nothing."""
    return found.shown() if found else MISSING


def listed(**found):
    """{name: size} of what is there."""
    return {name: one.size() for name, one in found.items() if one}


@contextlib.contextmanager
def doubting():
    """Overload may be refused and the server may go away; any other refusal is its mistake."""
    try:
        yield
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
            raise
        raise InDoubt from error
    except BotoCoreError as error:
        raise InDoubt from error


@contextlib.contextmanager
def refused_with(code):
    """Takes this refusal; `.is_refused` says whether it came."""

    class Outcome:
        is_refused = False

    try:
        yield Outcome
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            raise
        Outcome.is_refused = True


class S3Subject(Subject):
    """Its changes go through a boto3 client."""

    def change(self, outcome, call):
        """As `attempt`, for S3."""
        self.doubt = (outcome,)
        with doubting():
            answer = call()
        self.state, self.doubt = outcome, ()
        return answer


class PutSubject(S3Subject):
    """One object that is put, overwritten and deleted."""

    kind = "object"

    def step(self, clients, source):
        if source.random.random() < 0.8 or self.state is None:
            made = Object((some(source),), source.mark())
            self.change(made, lambda: clients.put(self.name, made))
        else:
            self.change(None, lambda: clients.delete(self.name))

    def observe(self, clients):
        return clients.shown(self.name)

    def expected(self, state):
        return shown(state)

    def listed(self):
        return listed(**{self.name: self.state})


@dataclasses.dataclass(frozen=True)
class Copied:
    """A source and what was copied from it."""

    source: Object | None = None
    target: Object | None = None


class CopySubject(S3Subject):
    """A source and a target: puts, copies by name, with the metadata of the source or others, deletes."""

    kind = "copy"

    def __init__(self, name):
        super().__init__(name)
        self.state = Copied()
        self.names = (f"{name}-source", f"{name}-target")

    def step(self, clients, source):
        state, dice = self.state, source.random.random()
        origin, target = self.names
        if state.source is None or dice < 0.3:
            made = Object((some(source),), source.mark())
            self.change(dataclasses.replace(state, source=made), lambda: clients.put(origin, made))
        elif dice < 0.6:
            self.change(dataclasses.replace(state, target=state.source), lambda: clients.copy(origin, target))
        elif dice < 0.8:
            made = dataclasses.replace(state.source, mark=source.mark())
            self.change(dataclasses.replace(state, target=made), lambda: clients.copy(origin, target, made.mark))
        elif dice < 0.9:
            self.change(dataclasses.replace(state, source=None), lambda: clients.delete(origin))
        else:
            self.change(dataclasses.replace(state, target=None), lambda: clients.delete(target))

    def observe(self, clients):
        return tuple(clients.shown(name) for name in self.names)

    def expected(self, state):
        return shown(state.source), shown(state.target)

    def listed(self):
        return listed(**dict(zip(self.names, (self.state.source, self.state.target))))


class ManySubject(S3Subject):
    """A few objects that one request deletes. Of a request in doubt each key is deleted or not."""

    kind = "many"

    def __init__(self, name):
        super().__init__(name)
        self.state = (None,) * MANY

    def _name(self, number):
        return f"{self.name}-{number}"

    def step(self, clients, source):
        there = [number for number, found in enumerate(self.state) if found]
        if len(there) < MANY // 2 or source.random.random() < 0.5:
            number, made = source.random.randrange(MANY), Object((some(source),), source.mark())
            outcome = (*self.state[:number], made, *self.state[number + 1:])
            self.change(outcome, lambda: clients.put(self._name(number), made))
            return
        doomed = set(source.random.sample(range(MANY), source.random.randint(1, MANY)))
        outcome = tuple(None if number in doomed else found for number, found in enumerate(self.state))
        self.change(outcome, lambda: clients.delete_many([self._name(number) for number in sorted(doomed)]))

    def explain(self, clients):
        settled = []
        for number, known in enumerate(self.state):
            possible = (known, *(outcome[number] for outcome in self.doubt))
            found = clients.shown(self._name(number))
            fits = [one for one in possible if shown(one) == found]
            if not fits:
                return f"{self._name(number)}: found {found}, possible {[shown(one) for one in possible]}"
            settled.append(fits[0])
        self.state, self.doubt = tuple(settled), ()
        return None

    def observe(self, clients):
        return tuple(clients.shown(self._name(number)) for number in range(MANY))

    def expected(self, state):
        return tuple(map(shown, state))

    def listed(self):
        return listed(**{self._name(number): found for number, found in enumerate(self.state)})


@dataclasses.dataclass(frozen=True)
class Uploaded:
    """An object, and the parts of the upload beside it: ((number, piece), ...), None without an upload. `mark` is that of the
    upload."""

    made: Object | None = None
    parts: tuple | None = None
    upload: str = ""
    mark: str = ""


class UploadSubject(S3Subject):
    """An object and an upload beside it: parts, parts sent twice, completion, a second completion, abortion, puts meanwhile."""

    kind = "upload"

    def __init__(self, name):
        super().__init__(name)
        self.state = Uploaded()
        # The completions that were acknowledged: (upload, parts, ETag). The last few are repeated.
        self.completed = []

    def step(self, clients, source):
        state, dice = self.state, source.random.random()
        if state.parts is None:
            if dice < 0.2:
                made = Object((some(source),), source.mark())
                self.change(dataclasses.replace(state, made=made), lambda: clients.put(self.name, made))
                return
            mark = source.mark()
            # Of a begun upload without an answer nothing is known, not even its id.
            with doubting():
                upload = clients.begin(self.name, mark)
            self.state = dataclasses.replace(state, parts=(), upload=upload, mark=mark)
        elif len(state.parts) < 2 or dice < 0.2:
            number = 1 if not state.parts else source.random.choice((1, 2))
            piece = Piece(source.piece(PART_BYTES, PART_BYTES).label, PART_BYTES) if number == 1 else some(source)
            parts = tuple(sorted({**dict(state.parts), number: piece}.items()))
            self.change(dataclasses.replace(state, parts=parts),
                        lambda: clients.part(self.name, state.upload, number, piece.data()))
        elif dice < 0.3:
            made = Object((some(source),), source.mark())
            self.change(dataclasses.replace(state, made=made), lambda: clients.put(self.name, made))
        elif dice < 0.9:
            self._complete(clients)
        else:
            self.change(dataclasses.replace(state, parts=None), lambda: clients.abort(self.name, state.upload))

    def _complete(self, clients):
        state = self.state
        made = Object(tuple(piece for _, piece in state.parts), state.mark, parts=True)
        outcome = dataclasses.replace(state, made=made, parts=None)
        etag = self.change(outcome, lambda: clients.complete(self.name, state.upload, state.parts))
        self.completed = [*self.completed[-2:], (state.upload, state.parts, etag)]

    def explain(self, clients):
        before, doubt = self.state, self.doubt
        complaint = super().explain(clients)
        if complaint:
            return complaint
        was_completing = any(before.parts and one.parts is None and one.made != before.made for one in doubt)
        if was_completing:
            # Whether it happened or not: a client that got no answer asks again, and then it has happened.
            etag = clients.complete(self.name, before.upload, before.parts)
            (self.state,) = doubt
            self.completed = [*self.completed[-2:], (before.upload, before.parts, etag)]
            if self.observe(clients) != self.expected(self.state):
                return f"{self.name}: a completion was repeated, found {self.observe(clients)}"
        for upload, parts, etag in self.completed:
            again = clients.complete(self.name, upload, parts)
            if again != etag:
                return f"{self.name}: the second completion of {upload} answers {again}, the first {etag}"
        if self.observe(clients) != self.expected(self.state):
            return f"{self.name}: a second completion changed it: {self.observe(clients)}"
        return None

    def observe(self, clients):
        parts = clients.parts(self.name, self.state.upload) if self.state.upload else None
        return clients.shown(self.name), parts

    def expected(self, state):
        # A part that was sent twice may have the size that it had.
        parts = state.parts
        if parts is not None:
            parts = [(number, piece.size, hashlib.md5(piece.data()).hexdigest()) for number, piece in parts]
        return shown(state.made), parts

    def listed(self):
        return listed(**{self.name: self.state.made})


class Clients(objects.Clients):
    """One boto3 client of one bucket, made before it is needed: a round lasts as long as it takes to make a few."""

    _session, _making = boto3.session.Session(), threading.Lock()

    def __init__(self, endpoint, keys, bucket, read_timeout=120):
        super().__init__(endpoint, keys, bucket, read_timeout)
        with self._making:
            self.boto = self._session.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=self._config,
                                             aws_access_key_id=keys[0], aws_secret_access_key=keys[1])

    def _client(self):
        return self.boto

    def put(self, name, made):  # pylint: disable=arguments-differ
        """One request."""
        body = b"".join(piece.data() for piece in made.pieces)
        self._client().put_object(Bucket=self._bucket, Key=name, Body=body, Metadata={"mark": made.mark})

    def copy(self, source, target, mark=None):
        """A copy by name, with other metadata if there is a mark."""
        more = {"MetadataDirective": "REPLACE", "Metadata": {"mark": mark}} if mark else {}
        self._client().copy_object(Bucket=self._bucket, Key=target, CopySource={"Bucket": self._bucket, "Key": source}, **more)

    def delete_many(self, names):
        """One request; each key must be reported as deleted."""
        done = self._client().delete_objects(Bucket=self._bucket, Delete={"Objects": [{"Key": name} for name in names]})
        codes = {one["Code"] for one in done.get("Errors", ())}
        if codes == {"SlowDown"}:
            raise InDoubt
        if codes or len(done.get("Deleted", ())) != len(names):
            raise AssertionError(f"DeleteObjects: {done}")

    def begin(self, name, mark):
        """Begins an upload; its id."""
        return self._client().create_multipart_upload(Bucket=self._bucket, Key=name, Metadata={"mark": mark})["UploadId"]

    def part(self, name, upload, number, body):
        """Sends a part."""
        self._client().upload_part(Bucket=self._bucket, Key=name, UploadId=upload, PartNumber=number, Body=body)

    def complete(self, name, upload, parts):
        """Completes an upload; the ETag."""
        listed_parts = [{"PartNumber": number, "ETag": hashlib.md5(piece.data()).hexdigest()} for number, piece in parts]
        done = self._client().complete_multipart_upload(Bucket=self._bucket, Key=name, UploadId=upload,
                                                        MultipartUpload={"Parts": listed_parts})
        return done["ETag"]

    def abort(self, name, upload):
        """Aborts an upload."""
        self._client().abort_multipart_upload(Bucket=self._bucket, Key=name, UploadId=upload)

    def parts(self, name, upload):
        """[(number, size, ETag), ...] of an upload, or None where there is none."""
        with refused_with(NO_UPLOAD):
            found = self._client().list_parts(Bucket=self._bucket, Key=name, UploadId=upload)
            return [(part["PartNumber"], part["Size"], part["ETag"].strip('"')) for part in found.get("Parts", ())]
        return None

    def shown(self, name):
        """(digest of the bytes, mark, ETag), or three times None where there is no object."""
        with refused_with(NO_KEY):
            found = self._client().get_object(Bucket=self._bucket, Key=name)
            return sha256(found["Body"].read()), found["Metadata"].get("mark"), found["ETag"].strip('"')
        return MISSING


class Store(objects.ObjectStore):
    """The bucket of the subjects."""

    def clients(self, **options):
        return Clients(*self._of, **options)


KINDS = ((PutSubject, 10), (CopySubject, 4), (ManySubject, 3), (UploadSubject, 2))
