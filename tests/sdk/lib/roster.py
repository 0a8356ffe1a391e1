"""Which clients there are, where each lives, and which of them continuous integration has time for.

Nothing but the standard library: `tests/sdk/run` reads this before anything is installed.
"""

import dataclasses
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]
# Read by the test that makes docs/compatibility.md.
CLIENT_OPERATIONS = HERE.parents[1] / "api-spec" / "clients.json"


@dataclasses.dataclass(frozen=True)
class Client:
    """One script of `clients/`."""

    script: str
    shows: str
    # The environment its Python runs in.
    requirements: str = "requirements.txt"
    # Why continuous integration leaves it out, or nothing when it does not.
    only_full: str = ""

    @property
    def speaks_blob(self):
        """Whether its operations are those of Blob, which api-spec/clients.json has."""
        return not self.script.startswith("s3_")

    @property
    def path(self):
        """Its file."""
        return HERE / "clients" / f"{self.script}.py"


# The suite of conformance/ among the clients.
CONFORMANCE = "conformance suite: azure-storage-blob, Python, and bare HTTP"
_DATA = "clients/requirements-data.txt"
_S3 = "clients/requirements-s3.txt"
_RUST = "two minutes to compile; tests/sdk/run --full"
_JAVA = "packages of 1 GB for Maven to fetch; tests/sdk/run --full"

CLIENTS = [
    Client("azure_storage_blob_python", "azure-storage-blob, Python"),
    Client("azure_storage_blob_js", "@azure/storage-blob, JavaScript"),
    Client("azure_storage_blob_java", "azure-storage-blob, Java", only_full=_JAVA),
    Client("azure_storage_blob_rust", "azure_storage_blob, Rust", only_full=_RUST),
    Client("object_store", "object_store, Rust", only_full=_RUST),
    Client("azcopy", "AzCopy"),
    Client("rclone", "rclone"),
    Client("adlfs", "adlfs", _DATA),
    Client("pyarrow", "pyarrow", _DATA),
    Client("polars", "polars", _DATA),
    Client("deltalake", "deltalake", _DATA),
    Client("pyiceberg", "pyiceberg", _DATA),
    Client("lance", "lance", _DATA),
    Client("blobfuse2", "blobfuse2", only_full="built from its Go module; tests/sdk/run --full"),
    Client("azstoragetorch", "azstoragetorch", "clients/requirements-torch.txt",
           "torch from PyPI comes with CUDA: 5.5 GB; tests/sdk/run --full"),
    Client("azure_cli", "az (azure-cli)", only_full="733 MB to install; tests/sdk/run --full"),
    Client("s3_aws_cli", "aws cli v1 (S3)", _S3),
    Client("s3_s3cmd", "s3cmd (S3)", _S3),
    Client("s3_rclone", "rclone (S3)"),
    Client("s3_minio_py", "minio-py (S3)", _S3),
    Client("s3_js", "AWS SDK for JavaScript v3, lib-storage, minio-js (S3)"),
    Client("s3_s3fs", "s3fs, zarr (S3)", "clients/requirements-s3fs.txt"),
    Client("s3_obstore", "obstore (S3)", _S3),
    Client("s3_tables", "deltalake, polars, pyarrow, lance, pyiceberg (S3)", _DATA),
    Client("s3_restic", "restic (S3)"),
    Client("s3_object_store", "object_store, Rust (S3)", only_full=_RUST),
    Client("s3_go", "AWS SDK for Go v2, minio-go, azblob (S3 and Blob)", only_full="two minutes to build; tests/sdk/run --full"),
    Client("s3_java", "AWS SDK for Java v2, minio-java, S3A, Spark (S3)", only_full=_JAVA),
    Client("s3_more", "DuckDB, icechunk, opendal, s5cmd, litestream, juicefs and others (S3)", "clients/requirements-s3-more.txt",
           "packages of 600 MB; tests/sdk/run --full"),
]


def not_chosen(client):
    """The row of a client that was left out."""
    return {"client": client.shows, "version": "", "group": "all", "state": "not run", "why": client.only_full,
            "seconds": 0}


def rows(results, client, code):
    """What a client's script wrote; a script that failed without a row that says so has a row for that."""
    text = results.read_text(encoding="utf-8") if results.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    failed = any(row["state"] == "FAILED" for row in found)
    if not found or code not in (0, 1, 77) or (code == 1 and not failed):
        found.append({"client": client.shows, "version": "", "group": "the script itself", "state": "FAILED",
                      "why": f"ended with {code}", "seconds": 0})
    return found


def record(shows, version, asked):
    """Notes in api-spec/clients.json which operations a client made the server carry out, by the server's own count."""
    operations = sorted(set(asked.read_text(encoding="utf-8").split())) if asked.exists() else []
    row = {"client": shows, "version": version, "operations": operations}
    kept = json.loads(CLIENT_OPERATIONS.read_text(encoding="utf-8")) if CLIENT_OPERATIONS.exists() else []
    order = [CONFORMANCE] + [known.shows for known in CLIENTS]
    rows = sorted([old for old in kept if old["client"] != shows] + [row], key=lambda row: order.index(row["client"]))
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    CLIENT_OPERATIONS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def report(all_rows, path):
    """Prints the table of clients, writes it as JSON; how many rows failed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(all_rows, indent=1) + "\n", encoding="utf-8")
    columns = ("client", "version", "group", "state", "why")
    width = [max(len(column), *(len(row[column]) for row in all_rows)) for column in columns[:4]]
    print("\nclients")
    for cells in [columns, *[[row[column] for column in columns] for row in all_rows]]:
        print("  ".join([cell.ljust(size) for cell, size in zip(cells, width)] + [cells[4][:110]]).rstrip())
    states = [row["state"] for row in all_rows]
    count = {state: states.count(state) for state in ("passed", "FAILED", "not run")}
    print(", ".join(f"{number} groups {state}" for state, number in count.items() if number) + f"; {path}")
    sys.stdout.flush()
    return count["FAILED"]
