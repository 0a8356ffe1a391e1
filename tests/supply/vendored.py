"""Code of others that is in this tree: what `vendored.json` of each folder says of it."""

import dataclasses
import hashlib
import json

from graph import ROOT

FOLDERS = ["src/admin/console/web/vendor"]
# Our own words about them.
OURS = {"README.md", "vendored.json"}


@dataclasses.dataclass(frozen=True)
class Package:
    """One file of one package of npm."""

    name: str
    version: str
    licence: str
    licence_file: str
    file: str
    sha256: str


def packages(folder):
    """The documented content of a folder."""
    fields = [field.name for field in dataclasses.fields(Package)]
    rows = json.loads((ROOT / folder / "vendored.json").read_text(encoding="utf-8"))
    return [Package(**{name: row[name] for name in fields}) for row in rows]


def faults(rows, files):
    """Lines about `files`, texts by name, that are not what `rows` say."""
    listed = OURS | {row.file for row in rows} | {row.licence_file for row in rows}
    for name in sorted(files.keys() - listed):
        yield f"{name} is in no row of vendored.json"
    for row in rows:
        if row.file not in files or hashlib.sha256(files[row.file]).hexdigest() != row.sha256:
            yield f"{row.file} is not that of {row.name} {row.version}"
        if not files.get(row.licence_file, b"").strip():
            yield f"{row.file} has no licence beside it"
        readme = f"| {row.file} | {row.name} | {row.version} | {row.licence} | {row.licence_file} |"
        if readme not in files["README.md"].decode():
            yield f"README.md lacks '{readme}'"


def refused(allowed):
    """Lines about files in the tree that violate the rules."""
    for folder in FOLDERS:
        rows = packages(folder)
        files = {path.name: path.read_bytes() for path in (ROOT / folder).iterdir()}
        for line in faults(rows, files):
            yield f"{folder}: {line}"
        for row in rows:
            if row.licence not in allowed:
                yield f"{folder}: licence of {row.name} is not allowed: {row.licence}"


def self_check():
    """The rules on rows that break them. Raises `AssertionError`."""
    row = Package("one", "1.0.0", "MIT", "LICENSE-one", "one.mjs", hashlib.sha256(b"code").hexdigest())
    files = {"README.md": b"| one.mjs | one | 1.0.0 | MIT | LICENSE-one |", "vendored.json": b"[]", "one.mjs": b"code",
             "LICENSE-one": b"MIT"}
    assert not list(faults([row], files))
    changed = {**files, "one.mjs": b"other", "LICENSE-one": b"\n", "README.md": b"", "two.mjs": b""}
    assert [line.split(" ")[0] for line in faults([row], changed)] == ["two.mjs", "one.mjs", "one.mjs", "README.md"]
