"""What both protocols must show of a few blobs, and the changes that lead there.

Each change says through which protocol it goes, when it is refused and how, and what becomes of the blob. A change that the model
cannot predict is not in the list: it would need the server to say what is right.
"""

import base64
import dataclasses
import hashlib
import re

from .faces import Shown

MODEL_NAMES = ("a", "a/b", "a//c", "z\u00fc", "~")
TYPES = ("text/plain", "image/png", "application/x-tar")
SECRET = bytes(range(32))
PAGE = 512
OPAQUE = re.compile(r"[0-9a-f]{32}-[1-9][0-9]*")
CHANGES = {}


@dataclasses.dataclass
class Blob:
    """A blob. `tag` is S3's entity tag, None for one that is only known to stay; `parts` are blocks by id."""

    kind: str
    data: bytes
    type: str
    metadata: dict
    tags: dict = dataclasses.field(default_factory=dict)
    tier: str = "Hot"
    tag: str = None
    parts: list = dataclasses.field(default_factory=list)
    lease: str = None
    snapshots: int = 0
    secret: bytes = None
    # What the protocols showed last: Blob's tag, the one before it, and S3's tag where the model has none.
    etag: str = None
    past: str = None
    opaque: str = None


@dataclasses.dataclass
class Plan:
    """A request, its refusal if it is refused, and its effect if it is not."""

    face: str
    request: tuple
    refusal: tuple
    effect: object


def change(face, weight=1):
    """Registers a change. It takes (draw, model, key) and returns a Plan, or None where it does not fit the state."""
    def register(function):
        CHANGES[function.__name__] = (function, face, weight)
        return function
    return register


def md5(data):
    """An MD5 as S3 shows it."""
    return hashlib.md5(data).hexdigest()


def brief(shown):
    """For messages: a blob without most of its bytes."""
    return shown and dataclasses.replace(shown, data=shown.data[:8] + b"..." if len(shown.data) > 8 else shown.data)


def some_bytes(draw):
    """A small body; sometimes empty, sometimes longer than what fits into a row."""
    return draw.randbytes(draw.choice([0, 1, 100, 600, 5_000]))


def some_metadata(draw):
    """Names that both protocols can have."""
    return {draw.choice("abc"): f"v{draw.randrange(100)}" for _ in range(draw.randrange(3))}


def some_tags(draw):
    """Tags that both protocols can have."""
    return {draw.choice("xyz"): f"t{draw.randrange(100)}" for _ in range(draw.randrange(3))}


def block_id(number):
    """The id of a block: four bytes, as those of parts."""
    return base64.b64encode(number.to_bytes(4, "big")).decode()


class Model:
    """The blobs by name, staged blocks, uploads, and which changes were made."""

    def __init__(self, names, url, container):
        self.names, self.url, self.container = names, url, container
        self.blobs, self.staged, self.uploads = {}, {name: {} for name in names}, {name: {} for name in names}
        self.used = set()

    def listed(self):
        """Names and lengths in the order of lists."""
        return sorted((name, len(blob.data)) for name, blob in self.blobs.items())

    def refusal(self, face, key):
        """How a lease refuses a change of a blob."""
        blob = self.blobs.get(key)
        if blob is None or blob.lease is None:
            return None
        return (412, "LeaseIdMissing") if face == "blob" else (409, "OperationAborted")

    def refusal_of_content(self, key):
        """How Blob refuses other content: by a lease, or because the blob is archived."""
        blob = self.blobs.get(key)
        is_archived = blob is not None and blob.tier == "Archive"
        return self.refusal("blob", key) or ((409, "BlobArchived") if is_archived else None)

    def put(self, key, blob):
        """A new blob in the place of another. Snapshots stay, staged blocks do not."""
        before = self.blobs.get(key)
        blob.snapshots = before.snapshots if before else 0
        blob.past = before.etag if before else None
        self.blobs[key] = blob
        self.staged[key] = {}

    def wrong(self, key, face, shown):
        """The differences between what a protocol shows and the model. Takes over tags that only the server can know."""
        blob = self.blobs.get(key)
        if blob is None or shown is None:
            return [] if blob is None and shown is None else [f"{face} shows {brief(shown)}, not {brief(blob)}"]
        if blob.tier == "Archive":
            want = {"Blob": (409, "BlobArchived"), "S3": (403, "InvalidObjectState")}[face]
            return [] if (shown.refusal, shown.tags) == (want, blob.tags) else [f"{face} shows {brief(shown)} of an archived blob"]
        want = Shown(None, blob.data, blob.type, blob.metadata, blob.tags, blob.tier, shown.etag)
        if blob.kind != "block":
            want.tier = "Hot"
        found = [f"{face} shows {brief(shown)}, not {brief(want)}"] if shown != want else []
        return found + (self.wrong_etag(blob, shown) if face == "Blob" else self.wrong_tag(blob, shown))

    @staticmethod
    def wrong_etag(blob, shown):
        """Blob's entity tag: as before, or another one after a change."""
        if blob.etag is None and shown.etag != blob.past:
            blob.etag = shown.etag
        return [] if shown.etag == blob.etag else [f"Blob's tag is {shown.etag}, not {blob.etag}, and before {blob.past}"]

    @staticmethod
    def wrong_tag(blob, shown):
        """S3's entity tag: the one of the model, or one that is no MD5 and stays."""
        if blob.tag is not None:
            return [] if shown.etag == blob.tag else [f"S3's tag is {shown.etag}, not {blob.tag}"]
        if blob.opaque is None:
            blob.opaque = shown.etag
        is_right = shown.etag == blob.opaque and OPAQUE.fullmatch(shown.etag)
        return [] if is_right else [f"S3's tag is {shown.etag}, not {blob.opaque}"]


def step(draw, model, faces):
    """Makes one change. Returns the name, what was done, and what was wrong with the answer."""
    names = list(CHANGES)
    while True:
        name = draw.choices(names, [CHANGES[one][2] for one in names])[0]
        key = draw.choice(model.names)
        plan = CHANGES[name][0](draw, model, key)
        if plan is not None:
            break
    face = getattr(faces, plan.face)
    method, query, headers, body = plan.request
    answer = face.call(method, key, query, headers, body)
    if plan.refusal is not None:
        found = (answer.status, face.code(answer))
        return key, name, [] if found == plan.refusal else [f"refused with {found}, not {plan.refusal}"]
    if answer.status >= 300:
        return key, name, [f"refused with {(answer.status, face.code(answer))}"]
    model.used.add(name)
    plan.effect(answer)
    return key, name, []


def changed(model, key, **fields):
    """An effect: the blob of the key with other fields, and a new entity tag of Blob."""
    def effect(_answer):
        blob = model.blobs[key]
        for name, value in fields.items():
            setattr(blob, name, value)
        blob.past, blob.etag = blob.etag, None
        if blob.kind == "page":
            # No checksum of its content is kept, so S3's tag is made of Blob's (ADR 0034).
            blob.opaque = None
    return effect


def kept(model, key, **fields):
    """An effect that leaves Blob's entity tag."""
    def effect(_answer):
        for name, value in fields.items():
            setattr(model.blobs[key], name, value)
    return effect
