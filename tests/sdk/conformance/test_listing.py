"""Listing blobs: order, prefix, delimiter, pages of every size, what is included."""

import concurrent.futures
import xml.etree.ElementTree as ElementTree

import pytest
from azure.storage.blob import BlobPrefix, ContentSettings
from conftest import block_id, put_many, refused

TREE = ["a", "a/1", "a/2", "a/b/1", "a/b/2", "a0", "b", "b//double", "b/", "c/d/e/f", "c/d/e/g", "z"]


def ordered(names):
    """Names in the order of the service: by UTF-16 code unit."""
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


@pytest.fixture
def tree(container):
    """A container with a small tree."""
    put_many(container, TREE)
    return container


def names(pages):
    """The names on pages, flat."""
    return [item.name for page in pages for item in page]


@pytest.mark.parametrize("size", list(range(1, len(TREE) + 2)))
def test_flat_pages(tree, size):
    pages = [list(page) for page in tree.list_blobs(results_per_page=size).by_page()]
    assert names(pages) == ordered(TREE)
    assert all(0 < len(page) <= size for page in pages[:-1])


@pytest.mark.parametrize("size", list(range(1, 9)))
@pytest.mark.parametrize("prefix, wanted", [
    ("", ["a", "a/", "a0", "b", "b/", "c/", "z"]), ("a/", ["a/1", "a/2", "a/b/"]), ("b/", ["b/", "b//"]), ("c", ["c/"]),
    ("c/d/e/", ["c/d/e/f", "c/d/e/g"]), ("nothing", []),
])
def test_hierarchy_pages(wire, tree, prefix, wanted, size):
    """Every page size gives the same names, blobs and prefixes counted together, page after page in order.

    Within a page a client must not rely on how blobs and prefixes alternate, so the order there is not asked for.
    """
    found, marker, pages = [], "", 0
    while True:
        answer = wire.request("GET", f"/{tree.container_name}", {
            "restype": "container", "comp": "list", "delimiter": "/", "prefix": prefix, "maxresults": str(size),
            "marker": marker})
        assert answer.status == 200
        root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
        page = [(item.tag, item.findtext("Name")) for item in root.find("Blobs")]
        assert len(page) <= size
        found += sorted(page, key=lambda row: row[1].encode("utf-16-be"))
        marker = root.findtext("NextMarker") or ""
        pages += 1
        assert pages < 50
        if not marker:
            break
    assert [name for _, name in found] == wanted
    for tag, name in found:
        # "b/" with prefix "b/" is the blob of that name, all others that end in the delimiter are prefixes.
        blob = not name.endswith("/") or (name, prefix) == ("b/", "b/")
        assert tag == ("Blob" if blob else "BlobPrefix")


def test_walk(tree):
    def walk(prefix=""):
        for item in tree.walk_blobs(name_starts_with=prefix):
            if isinstance(item, BlobPrefix):
                yield from walk(item.name)
            else:
                yield item.name
    assert sorted(walk()) == sorted(TREE)


@pytest.mark.parametrize("delimiter, wanted", [("b", ["a", "a/1", "a/2", "a/b", "a0", "b", "c/d/e/f", "c/d/e/g", "z"]),
                                               ("d/e/", None)])
def test_other_delimiters(tree, delimiter, wanted):
    wanted = wanted or ordered([name for name in TREE if not name.startswith("c/")] + ["c/d/e/"])
    assert sorted(item.name for item in tree.walk_blobs(delimiter=delimiter)) == sorted(wanted)


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b", "b/", "zz"])
def test_prefix(tree, prefix):
    assert [b.name for b in tree.list_blobs(name_starts_with=prefix)] == \
        ordered(name for name in TREE if name.startswith(prefix))


@pytest.mark.parametrize("start", ["a/1", "a/15", "b", "zz", "A"])
def test_start_from(tree, start):
    assert [b.name for b in tree.list_blobs(start_from=start)] == ordered(name for name in TREE if name >= start)


def test_utf16_order(container):
    """U+FF5E sorts after U+1F600, because the latter's first code unit is a surrogate; in UTF-8 it is the other way."""
    wanted = ["a", "z", "é", "中", "\U0001f600", "\U0001f600a", "\ufe4f", "\uff5e", "\uff5ea"]
    put_many(container, wanted)
    assert ordered(wanted) == wanted
    for size in (1, 2, 4, 100):
        assert names(container.list_blobs(results_per_page=size).by_page()) == wanted


def test_page_size_limits(wire, tree):
    path, query = f"/{tree.container_name}", {"restype": "container", "comp": "list"}
    for bad in ("0", "-1"):
        answer = wire.request("GET", path, {**query, "maxresults": bad})
        assert (answer.status, answer.code) == (400, "OutOfRangeQueryParameterValue")
    answer = wire.request("GET", path, {**query, "maxresults": "many"})
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    assert wire.request("GET", path, {**query, "maxresults": "100000"}).status == 200


def test_what_a_blob_shows(container):
    container.upload_blob("b", b"12345", metadata={"case": "Kept"},
                          content_settings=ContentSettings(content_type="text/plain", content_language="nl"))
    plain = next(iter(container.list_blobs()))
    found = container.get_blob_client("b").get_blob_properties()
    assert (plain.size, plain.etag.strip('"'), plain.last_modified) == (5, found.etag.strip('"'), found.last_modified)
    assert plain.creation_time == found.creation_time
    assert (plain.content_settings.content_type, plain.content_settings.content_language) == ("text/plain", "nl")
    assert plain.content_settings.content_md5 == found.content_settings.content_md5
    assert (plain.blob_type, plain.lease.state, plain.server_encrypted) == ("BlockBlob", "available", True)
    assert not plain.metadata
    assert next(iter(container.list_blobs(include=["metadata"]))).metadata == {"case": "Kept"}


def test_uncommitted_blobs(container):
    container.upload_blob("committed", b"x")
    container.get_blob_client("pending").stage_block(block_id(0), b"y")
    container.get_blob_client("committed").stage_block(block_id(0), b"z")
    assert [b.name for b in container.list_blobs()] == ["committed"]
    assert [(b.name, b.size) for b in container.list_blobs(include=["uncommittedblobs"])] == \
        [("committed", 1), ("pending", 0)]
    for size in (1, 2):
        assert names(container.list_blobs(include=["uncommittedblobs"], results_per_page=size).by_page()) == \
            ["committed", "pending"]
    pages = list(container.list_blobs(results_per_page=1, name_starts_with="p").by_page())
    assert names(pages) == []


def test_names_only(tree):
    assert list(tree.list_blob_names()) == ordered(TREE)


def test_thousands(container):
    """More than a page: the page ends at the default of 5,000, the marker continues, no name is repeated or missing."""
    wanted = [f"{n % 7}/{n:05}" for n in range(5200)]
    put_many(container, wanted)
    pages = [list(page) for page in container.list_blobs().by_page()]
    assert [len(page) for page in pages] == [5000, 200]
    assert names(pages) == sorted(wanted)
    assert [p.name for p in container.walk_blobs()] == [f"{n}/" for n in range(7)]


def test_listing_while_writing(container):
    """A blob that exists all the time is on the pages exactly once, whatever is created and deleted meanwhile."""
    steady = [f"steady-{n:03}" for n in range(60)]
    put_many(container, steady)
    running = [True]

    def disturb(worker):
        number = 0
        while running[0]:
            name = f"steady-{number % 60:03}-{worker}"
            container.upload_blob(name, b"x", overwrite=True)
            container.delete_blob(name)
            number += 7

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for worker in range(3):
            pool.submit(disturb, worker)
        try:
            for _ in range(6):
                found = names(container.list_blobs(results_per_page=7).by_page())
                assert [name for name in found if name in set(steady)] == steady
                assert found == sorted(set(found))
        finally:
            running[0] = False


def test_bad_include(wire, tree):
    answer = wire.request("GET", f"/{tree.container_name}", {"restype": "container", "comp": "list", "include": "wishes"})
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


def test_list_of_a_deleted_container(tree):
    tree.delete_container()
    refused(lambda: list(tree.list_blobs()), 404, "ContainerNotFound")
