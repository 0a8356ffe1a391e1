"""Objects of S3: puts, overwrites, uploads in parts, deletes. For servers that do not speak Azure
Blob."""

import contextlib
import dataclasses
import threading

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ..content import sha256
from .base import InDoubt, Piece, Subject
from .block import some

# The least size of a part that another one follows.
PART_BYTES = 5 << 20
LARGE_LOW, LARGE_HIGH = (1 << 20) + 1, 5 << 20


@dataclasses.dataclass(frozen=True)
class Object:
    """Its pieces (none at all: no object) and the mark in its metadata."""

    pieces: tuple | None = None
    mark: str = ""


@contextlib.contextmanager
def refusals_in_doubt():
    """Overload may be refused and the server may go away; any other refusal is its mistake."""
    try:
        yield
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
            raise
        raise InDoubt from error
    except BotoCoreError as error:
        raise InDoubt from error


class ObjectSubject(Subject):
    """One object of 100 bytes to 300 KiB."""

    kind = "object"

    def __init__(self, name):
        super().__init__(name)
        self.state = Object()

    def _put(self, clients, source):
        """What is uploaded, and how."""
        piece, mark = some(source), source.mark()
        return Object((piece,), mark), lambda: clients.put(self.name, piece.data(), mark)

    def step(self, clients, source):
        if source.random.random() < 0.8 or self.state.pieces is None:
            outcome, call = self._put(clients, source)
        else:
            outcome, call = Object(), lambda: clients.delete(self.name)
        self.doubt = (outcome,)
        with refusals_in_doubt():
            call()
        self.state, self.doubt = outcome, ()

    def observe(self, clients):
        return clients.shown(self.name)

    def expected(self, state):
        if state.pieces is None:
            return None, None
        return sha256(b"".join(piece.data() for piece in state.pieces)), state.mark

    def listed(self):
        pieces = self.state.pieces
        return {self.name: sum(piece.size for piece in pieces)} if pieces else {}


class PartsSubject(ObjectSubject):
    """One object of several MiB, of two parts or put at once."""

    kind = "object of parts"

    def _put(self, clients, source):
        mark, last = source.mark(), source.piece(LARGE_LOW, LARGE_HIGH)
        if source.random.random() < 0.5:
            return Object((last,), mark), lambda: clients.put(self.name, last.data(), mark)
        first = Piece(source.piece(PART_BYTES, PART_BYTES).label, PART_BYTES)
        call = lambda: clients.put_parts(self.name, [first.data(), last.data()], mark)
        return Object((first, last), mark), call


class Clients:
    """S3 clients of one bucket, one for each thread. Not retried, so that one call is one request."""

    def __init__(self, endpoint, keys, bucket, read_timeout=120):
        self._endpoint, self._keys, self._bucket = endpoint, keys, bucket
        self._config = Config(retries={"total_max_attempts": 1}, connect_timeout=10,
                              read_timeout=read_timeout, s3={"addressing_style": "path"})
        self._local = threading.local()

    def _client(self):
        client = getattr(self._local, "client", None)
        if client is None:
            # Clients of the module's own session are not to be made by several threads at once.
            client = boto3.session.Session().client(
                "s3", endpoint_url=self._endpoint, region_name="us-east-1", config=self._config,
                aws_access_key_id=self._keys[0], aws_secret_access_key=self._keys[1])
            self._local.client = client
        return client

    def create_bucket(self):
        """The bucket itself."""
        self._client().create_bucket(Bucket=self._bucket)

    def put(self, name, data, mark):
        """One request."""
        self._client().put_object(Bucket=self._bucket, Key=name, Body=data, Metadata={"mark": mark})

    def put_parts(self, name, parts, mark):
        """An upload in parts."""
        client, of = self._client(), {"Bucket": self._bucket, "Key": name}
        of["UploadId"] = client.create_multipart_upload(**of, Metadata={"mark": mark})["UploadId"]
        done = [{"PartNumber": number,
                 "ETag": client.upload_part(**of, PartNumber=number, Body=data)["ETag"]}
                for number, data in enumerate(parts, 1)]
        client.complete_multipart_upload(**of, MultipartUpload={"Parts": done})

    def delete(self, name):
        """One request."""
        self._client().delete_object(Bucket=self._bucket, Key=name)

    def shown(self, name):
        """(digest of the bytes, mark), or (None, None) where there is no object."""
        try:
            found = self._client().get_object(Bucket=self._bucket, Key=name)
            return sha256(found["Body"].read()), found["Metadata"].get("mark")
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return None, None

    def listing(self):
        """{name: size} of everything, in the order of the listing."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return {item["Key"]: item["Size"] for page in pages for item in page.get("Contents", ())}


class ObjectStore:
    """The bucket of the subjects."""

    def __init__(self, endpoint, keys, bucket):
        self._of = (endpoint, keys, bucket)

    def clients(self, **options):
        """What subjects are stepped and observed with."""
        return Clients(*self._of, **options)

    def listing(self):
        """{name: size} of everything, in the order of the listing."""
        return self.clients().listing()


KINDS = ((ObjectSubject, 16), (PartsSubject, 2))
