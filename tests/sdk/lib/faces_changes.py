"""The changes of `faces_model.py`: every operation of either protocol that changes a blob."""

import base64
import hashlib
from urllib.parse import quote, urlencode

from .faces import CLASSES, key_headers
from .faces_model import CHANGES, PAGE, SECRET, TYPES, Blob, Plan, block_id, change, changed, kept, md5, some_bytes, some_metadata, some_tags


def unused(model):
    """Changes that no step made, or none of which succeeded."""
    return sorted(set(CHANGES) - model.used)


def azure(draw, body):
    """Headers of new content through Blob, and the blob without its data."""
    metadata, tags, kind = some_metadata(draw), some_tags(draw), draw.choice(TYPES)
    headers = {"x-ms-blob-content-type": kind, **{f"x-ms-meta-{name}": value for name, value in metadata.items()}}
    if tags:
        headers["x-ms-tags"] = urlencode(tags)
    return headers, Blob("block", body, kind, metadata, tags)


def amazon(draw, body, tier="Hot"):
    """Headers of a new object, and the blob."""
    metadata, tags, kind = some_metadata(draw), some_tags(draw), draw.choice(TYPES)
    headers = {"content-type": kind, **{f"x-amz-meta-{name}": value for name, value in metadata.items()}}
    if tags:
        headers["x-amz-tagging"] = urlencode(tags)
    if tier != "Hot":
        headers["x-amz-storage-class"] = CLASSES[tier]
    return headers, Blob("block", body, kind, metadata, tags, tier)


def put(model, key, blob):
    """An effect: the blob is there, under a new entity tag."""
    return lambda _answer: model.put(key, blob)


def plain(blob):
    """Whether a blob's content can be read and changed without a key."""
    return blob is not None and blob.secret is None and blob.tier != "Archive"


def readable(draw, model, but=None):
    """A source of a copy: a block blob under another name, its name first."""
    found = [(name, blob) for name, blob in model.blobs.items() if name != but and plain(blob) and blob.kind == "block"]
    return draw.choice(found) if found else (None, None)


# Blob.


@change("blob", 3)
def put_blob(draw, model, key):
    """Put Blob, into a tier."""
    body, tier = some_bytes(draw), draw.choice(["Hot", "Cool", "Cold"])
    headers, blob = azure(draw, body)
    blob.tag, blob.tier = md5(body), tier
    return Plan("blob", ("PUT", None, {**headers, "x-ms-blob-type": "BlockBlob", "x-ms-access-tier": tier}, body),
                model.refusal_of_content(key), put(model, key, blob))


@change("blob")
def put_blob_with_key(draw, model, key):
    """Put Blob under a customer-provided key."""
    headers, blob = azure(draw, some_bytes(draw))
    blob.secret = SECRET
    return Plan("blob", ("PUT", None, {**headers, "x-ms-blob-type": "BlockBlob", **key_headers("x-ms-", SECRET)}, blob.data),
                model.refusal_of_content(key), put(model, key, blob))


@change("blob")
def put_append_blob(draw, model, key):
    """Put Blob, an empty append blob."""
    headers, blob = azure(draw, b"")
    blob.kind = "append"
    return Plan("blob", ("PUT", None, {**headers, "x-ms-blob-type": "AppendBlob"}, b""),
                model.refusal_of_content(key), put(model, key, blob))


@change("blob", 2)
def append_block(draw, model, key):
    """Append Block."""
    blob, body = model.blobs.get(key), draw.randbytes(draw.choice([1, 100, 3_000]))
    refusal = model.refusal("blob", key)
    if blob is None:
        refusal = (404, "BlobNotFound")
    elif blob.kind != "append":
        if refusal or not plain(blob):
            return None
        refusal = (409, "InvalidBlobType")
    effect = None if refusal else changed(model, key, data=blob.data + body, opaque=None)
    return Plan("blob", ("PUT", {"comp": "appendblock"}, {}, body), refusal, effect)


@change("blob")
def put_page_blob(draw, model, key):
    """Put Blob, a page blob of zeros."""
    headers, blob = azure(draw, bytes(4 * PAGE))
    blob.kind = "page"
    return Plan("blob", ("PUT", None, {**headers, "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": len(blob.data)}, b""),
                model.refusal_of_content(key), put(model, key, blob))


@change("blob", 2)
def put_page(draw, model, key):
    """Put Page, written or cleared."""
    blob = model.blobs.get(key)
    if blob is None or blob.kind != "page":
        return None
    first, update = draw.randrange(4) * PAGE, draw.choice(["update", "clear"])
    body = draw.randbytes(PAGE) if update == "update" else b""
    data = blob.data[:first] + (body or bytes(PAGE)) + blob.data[first + PAGE:]
    headers = {"x-ms-page-write": update, "x-ms-range": f"bytes={first}-{first + PAGE - 1}"}
    return Plan("blob", ("PUT", {"comp": "page"}, headers, body), model.refusal("blob", key),
                changed(model, key, data=data, opaque=None))


@change("blob", 3)
def put_block(draw, model, key):
    """Put Block."""
    blob, number, body = model.blobs.get(key), draw.randrange(1, 4), some_bytes(draw) or b"x"
    refusal = model.refusal_of_content(key)
    if blob is not None and blob.kind != "block":
        if refusal:
            return None
        refusal = (409, "InvalidBlobType")

    def effect(_answer):
        model.staged[key][block_id(number)] = body
    return Plan("blob", ("PUT", {"comp": "block", "blockid": block_id(number)}, {}, body), refusal, effect)


@change("blob", 3)
def put_block_list(draw, model, key):
    """Put Block List, of staged and committed blocks, now and then of one that is not there."""
    blob = model.blobs.get(key)
    if blob is not None and (blob.kind != "block" or blob.parts is None):
        return None
    known = {**(dict(reversed(blob.parts)) if plain(blob) else {}), **model.staged[key]}
    if blob is not None and not plain(blob) and not set(known) == set(model.staged[key]):
        return None
    ids = draw.choices(sorted(known), k=draw.randrange(4)) if known else []
    refusal = model.refusal_of_content(key)
    if draw.random() < 0.1:
        if refusal:
            return None
        ids, refusal = [*ids, block_id(9)], (400, "InvalidBlockList")
    headers, new = azure(draw, b"".join(known.get(one, b"") for one in ids))
    new.parts = [(one, known.get(one)) for one in ids]
    if blob is not None and blob.tag is None and blob.parts == new.parts:
        new.opaque = None
    document = "<BlockList>" + "".join(f"<Latest>{one}</Latest>" for one in ids) + "</BlockList>"
    return Plan("blob", ("PUT", {"comp": "blocklist"}, headers, document.encode()), refusal, put(model, key, new))


@change("blob", 2)
def set_blob_metadata(draw, model, key):
    """Set Blob Metadata."""
    if not plain(model.blobs.get(key)):
        return None
    metadata = some_metadata(draw)
    return Plan("blob", ("PUT", {"comp": "metadata"}, {f"x-ms-meta-{name}": value for name, value in metadata.items()}, b""),
                model.refusal("blob", key), changed(model, key, metadata=metadata))


@change("blob", 2)
def set_blob_properties(draw, model, key):
    """Set Blob Properties: the content type. It takes the Content-MD5 away, and the tag of S3 stays."""
    if not plain(model.blobs.get(key)):
        return None
    kind = draw.choice(TYPES)
    return Plan("blob", ("PUT", {"comp": "properties"}, {"x-ms-blob-content-type": kind}, b""),
                model.refusal("blob", key), changed(model, key, type=kind))


@change("blob", 2)
def set_blob_tags(draw, model, key):
    """Set Blob Tags."""
    if key not in model.blobs:
        return None
    tags = some_tags(draw)
    document = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in tags.items())
    return Plan("blob", ("PUT", {"comp": "tags"}, {}, f"<Tags><TagSet>{document}</TagSet></Tags>".encode()),
                model.refusal("blob", key), kept(model, key, tags=tags))


@change("blob")
def set_blob_tier(draw, model, key):
    """Set Blob Tier, the archive among them."""
    blob = model.blobs.get(key)
    if not plain(blob) or blob.lease or blob.kind != "block":
        return None
    tier = draw.choice(["Hot", "Cool", "Cold", "Cold", "Archive"])
    return Plan("blob", ("PUT", {"comp": "tier"}, {"x-ms-access-tier": tier}, b""), None, kept(model, key, tier=tier))


@change("blob")
def snapshot_blob(_draw, model, key):
    """Snapshot Blob."""
    blob = model.blobs.get(key)
    if not plain(blob) or blob.lease:
        return None
    return Plan("blob", ("PUT", {"comp": "snapshot"}, {}, b""), None, kept(model, key, snapshots=blob.snapshots + 1))


@change("blob")
def acquire_lease(_draw, model, key):
    """Lease Blob, infinite."""
    blob = model.blobs.get(key)
    if blob is None or blob.lease:
        return None
    return Plan("blob", ("PUT", {"comp": "lease"}, {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}, b""), None,
                lambda answer: setattr(blob, "lease", answer.headers["x-ms-lease-id"]))


@change("blob", 4)
def release_lease(_draw, model, key):
    """Lease Blob, released."""
    blob = model.blobs.get(key)
    if blob is None or not blob.lease:
        return None
    return Plan("blob", ("PUT", {"comp": "lease"}, {"x-ms-lease-action": "release", "x-ms-lease-id": blob.lease}, b""), None,
                kept(model, key, lease=None))


def deleted(model, key):
    """An effect: nothing is there."""
    def effect(_answer):
        model.blobs.pop(key, None)
        model.staged[key] = {}
    return effect


@change("blob", 2)
def delete_blob(draw, model, key):
    """Delete Blob, with its snapshots or not."""
    blob, with_snapshots = model.blobs.get(key), draw.random() < 0.5
    refusal = model.refusal("blob", key)
    if blob is None:
        refusal = (404, "BlobNotFound")
    elif blob.snapshots and not with_snapshots:
        if refusal:
            return None
        refusal = (409, "SnapshotsPresent")
    headers = {"x-ms-delete-snapshots": "include"} if with_snapshots else {}
    return Plan("blob", ("DELETE", None, headers, b""), refusal, deleted(model, key))


@change("blob")
def copy_blob(draw, model, key):
    """Copy Blob, of another blob of the container: type and metadata come with the content, tags do not."""
    name, source = readable(draw, model, key)
    if source is None:
        return None
    new = Blob("block", source.data, source.type, dict(source.metadata), tag=source.tag, opaque=source.opaque, parts=None)
    url = f"{model.url}/{quote(name, safe='/~')}"
    return Plan("blob", ("PUT", None, {"x-ms-copy-source": url}, b""), model.refusal_of_content(key), put(model, key, new))


# S3.


@change("s3", 4)
def put_object(draw, model, key):
    """PutObject, in a storage class."""
    body = some_bytes(draw)
    headers, blob = amazon(draw, body, draw.choice(["Hot", "Hot", "Cool", "Cold", "Archive"]))
    blob.tag = md5(body)
    return Plan("s3", ("PUT", (), headers, body), model.refusal("s3", key), put(model, key, blob))


@change("s3")
def put_object_with_key(draw, model, key):
    """PutObject with SSE-C."""
    headers, blob = amazon(draw, some_bytes(draw))
    blob.secret = SECRET
    headers |= key_headers("x-amz-server-side-encryption-customer-", SECRET)
    return Plan("s3", ("PUT", (), headers, blob.data), model.refusal("s3", key), put(model, key, blob))


@change("s3")
def put_object_if_absent(draw, model, key):
    """PutObject with If-None-Match: *."""
    old, body = model.blobs.get(key), some_bytes(draw)
    if old is not None and old.lease:
        return None
    headers, blob = amazon(draw, body)
    blob.tag = md5(body)
    refusal = (412, "PreconditionFailed") if old is not None else None
    return Plan("s3", ("PUT", (), {**headers, "if-none-match": "*"}, body), refusal, put(model, key, blob))


@change("s3", 2)
def put_object_if_match(draw, model, key):
    """PutObject with If-Match, of the right tag or of another."""
    old, body = model.blobs.get(key), some_bytes(draw)
    if old is not None and old.lease:
        return None
    headers, blob = amazon(draw, body)
    blob.tag = md5(body)
    right, refusal = draw.random() < 0.7, None
    if old is None:
        refusal = (404, "NoSuchKey")
    elif not right or not (old.tag or old.opaque):
        refusal = (412, "PreconditionFailed")
    tag = (old.tag or old.opaque) if old is not None and refusal is None else "0" * 32
    return Plan("s3", ("PUT", (), {**headers, "if-match": f'"{tag}"'}, body), refusal, put(model, key, blob))


@change("s3", 2)
def delete_object(_draw, model, key):
    """DeleteObject. What is not there counts as deleted."""
    blob = model.blobs.get(key)
    refusal = model.refusal("s3", key)
    if blob is not None and blob.snapshots:
        refusal = (409, "OperationAborted")
    return Plan("s3", ("DELETE", (), {}, b""), refusal, deleted(model, key) if blob else lambda _answer: None)


@change("s3")
def copy_object(draw, model, key):
    """CopyObject of another object: type, metadata and tags come with the content."""
    name, source = readable(draw, model, key)
    if source is None:
        return None
    new = Blob("block", source.data, source.type, dict(source.metadata), dict(source.tags), tag=source.tag,
               opaque=source.opaque, parts=None)
    headers = {"x-amz-copy-source": quote(f"/{model.container}/{name}", safe="/~")}
    return Plan("s3", ("PUT", (), headers, b""), model.refusal("s3", key), put(model, key, new))


@change("s3")
def copy_object_onto_itself(draw, model, key):
    """CopyObject onto itself: with other metadata only."""
    old = model.blobs.get(key)
    if not plain(old) or old.kind != "block" or old.lease:
        return None
    replaces = draw.random() < 0.7
    headers, new = amazon(draw, old.data)
    new.tag, new.opaque, new.parts = old.tag, old.opaque, None
    headers |= {"x-amz-copy-source": quote(f"/{model.container}/{key}", safe="/~"), "x-amz-tagging-directive": "REPLACE"}
    if replaces:
        headers["x-amz-metadata-directive"] = "REPLACE"
    elif old.tier != "Hot":
        return None
    refusal = None if replaces else (400, "InvalidRequest")
    return Plan("s3", ("PUT", (), headers, b""), refusal, put(model, key, new))


@change("s3", 2)
def put_object_tagging(draw, model, key):
    """PutObjectTagging."""
    if key not in model.blobs:
        return None
    tags = some_tags(draw)
    document = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in tags.items())
    body = f"<Tagging><TagSet>{document}</TagSet></Tagging>".encode()
    digest = base64.b64encode(hashlib.md5(body).digest()).decode()
    return Plan("s3", ("PUT", [("tagging", "")], {"content-md5": digest}, body), model.refusal("s3", key),
                kept(model, key, tags=tags))


@change("s3")
def delete_object_tagging(_draw, model, key):
    """DeleteObjectTagging."""
    if key not in model.blobs:
        return None
    return Plan("s3", ("DELETE", [("tagging", "")], {}, b""), model.refusal("s3", key), kept(model, key, tags={}))


@change("s3", 2)
def create_multipart_upload(draw, model, key):
    """CreateMultipartUpload."""
    headers, blob = amazon(draw, b"", draw.choice(["Hot", "Cool"]))

    def effect(answer):
        model.uploads[key][answer.text("UploadId")] = (blob, {})
    return Plan("s3", ("POST", [("uploads", "")], headers, b""), None, effect)


@change("s3", 4)
def upload_part(draw, model, key):
    """UploadPart. Of a part sent twice the last counts."""
    if not model.uploads[key]:
        return None
    upload, number, body = draw.choice(sorted(model.uploads[key])), draw.randrange(1, 4), some_bytes(draw)

    def effect(_answer):
        model.uploads[key][upload][1][number] = body
    return Plan("s3", ("PUT", [("partNumber", str(number)), ("uploadId", upload)], {}, body), None, effect)


@change("s3", 3)
def complete_multipart_upload(draw, model, key):
    """CompleteMultipartUpload, of one part, since all but the last need 5 MiB; now and then with a wrong tag or two small parts."""
    if not model.uploads[key]:
        return None
    upload = draw.choice(sorted(model.uploads[key]))
    start, parts = model.uploads[key][upload]
    if not parts:
        return None
    refusal, wish = model.refusal("s3", key), draw.random()
    numbers = sorted(parts) if wish < 0.1 else [draw.choice(sorted(parts))]
    tags = {number: md5(parts[number]) for number in numbers}
    if 0.1 <= wish < 0.2:
        tags[numbers[0]] = "0" * 32
    if refusal and (len(numbers) > 1 or 0.1 <= wish < 0.2):
        return None
    if 0.1 <= wish < 0.2:
        refusal = (400, "InvalidPart")
    elif len(numbers) > 1:
        refusal = (400, "EntityTooSmall")
    body = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{tags[n]}</ETag></Part>" for n in numbers)
    data = parts[numbers[0]]
    blob = Blob("block", data, start.type, start.metadata, start.tags, start.tier, md5(hashlib.md5(data).digest()) + "-1")
    blob.parts = [(block_id(numbers[0]), data)]

    def effect(_answer):
        model.put(key, blob)
        del model.uploads[key][upload]
    document = f"<CompleteMultipartUpload>{body}</CompleteMultipartUpload>".encode()
    return Plan("s3", ("POST", [("uploadId", upload)], {}, document), refusal, effect)


@change("s3")
def abort_multipart_upload(draw, model, key):
    """AbortMultipartUpload."""
    if not model.uploads[key]:
        return None
    upload = draw.choice(sorted(model.uploads[key]))
    return Plan("s3", ("DELETE", [("uploadId", upload)], {}, b""), None, lambda _answer: model.uploads[key].pop(upload))
