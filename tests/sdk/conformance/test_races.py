"""Many at once: exactly one wins, and no update is lost."""

import concurrent.futures
import threading

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from conftest import block_id, code_of
from lib.account import PerThread

THREADS = 64


def at_once(count, call):
    """Calls `call(n)` from `count` threads that start together. Returns the results in order of n."""
    together = threading.Barrier(count)

    def run(number):
        together.wait()
        return call(number)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def outcome(call):
    """'made', or the error code."""
    try:
        call()
    except HttpResponseError as error:
        return code_of(error)
    return "made"


@pytest.mark.parametrize("attempt", range(3))
@pytest.mark.parametrize("size", [10, 20_000])
def test_one_creator_wins(account, container, size, attempt):
    clients = PerThread(account, container.container_name)
    outcomes = at_once(THREADS, lambda n: outcome(lambda: clients.blob("one").upload_blob(bytes([n]) * size)))
    assert outcomes.count("made") == 1
    assert outcomes.count("BlobAlreadyExists") == THREADS - 1
    assert container.download_blob("one").readall() == bytes([outcomes.index("made")]) * size


def test_one_committer_wins(account, container):
    clients = PerThread(account, container.container_name)
    container.get_blob_client("one").stage_block(block_id(0), b"shared")
    outcomes = at_once(THREADS, lambda n: outcome(lambda: clients.blob("one").commit_block_list(
        [block_id(0)], metadata={"n": str(n)}, match_condition=MatchConditions.IfMissing)))
    assert outcomes.count("made") == 1
    assert set(outcomes) <= {"made", "BlobAlreadyExists", "InvalidBlockList"}
    found = container.get_blob_client("one").get_blob_properties()
    assert found.metadata == {"n": str(outcomes.index("made"))}


def test_one_container_creator_wins(account, container):
    name = container.container_name + "x"
    clients = PerThread(account, name)
    outcomes = at_once(16, lambda n: outcome(clients.container().create_container))
    assert sorted(outcomes) == ["ContainerAlreadyExists"] * 15 + ["made"]
    account.service().delete_container(name)


def test_compare_and_swap_loses_nothing(account, container):
    """16 threads add to one number by ETag; every addition that was acknowledged is in the sum."""
    clients = PerThread(account, container.container_name)
    container.upload_blob("sum", b"0")

    def add(_):
        done = 0
        for _ in range(400):
            blob = clients.blob("sum")
            read = blob.download_blob()
            value = int(read.readall())
            result = outcome(lambda: blob.upload_blob(
                str(value + 1).encode(), overwrite=True, etag=read.properties.etag,
                match_condition=MatchConditions.IfNotModified))
            assert result in ("made", "ConditionNotMet")
            done += result == "made"
            if done == 5:
                return done
        return done

    done = at_once(16, add)
    assert sum(done) > 0
    assert int(container.download_blob("sum").readall()) == sum(done)


def test_readers_see_whole_versions(account, container):
    """While one blob is overwritten again and again, a reader sees one version, never parts of two."""
    clients = PerThread(account, container.container_name)
    size = 200_000
    container.upload_blob("b", bytes([255]) * size)
    running = [True]

    def write(n):
        for round_number in range(25):
            clients.blob("b").upload_blob(bytes([n * 25 + round_number]) * (size - n), overwrite=True)

    def read(_):
        seen = 0
        while running[0] or not seen:
            data = clients.blob("b").download_blob().readall()
            assert len(set(data)) == 1
            assert len(data) == (size if data[0] == 255 else size - data[0] // 25)
            seen += 1
        return seen

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, n) for n in range(4)]
        try:
            list(pool.map(write, range(4)))
        finally:
            running[0] = False
        assert all(reader.result() > 0 for reader in readers)
