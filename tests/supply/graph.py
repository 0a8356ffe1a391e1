"""The crates that are built, as cargo resolves them. Nothing but the standard library."""

import dataclasses
import pathlib
import subprocess

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True, order=True)
class Crate:
    """One version of one crate."""

    name: str
    version: str
    licence: str


def toml(name):
    """A TOML file of the tree."""
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


class NotFetchedError(Exception):
    """The crates of a project are not on this machine."""


def crates(targets, edges, folder="."):
    """The crates that are built for any of these targets over these kinds of edges (`normal,build,dev`), without our own.

    Raises `NotFetchedError` when cargo would have to fetch some."""
    found = set()
    for target in targets:
        command = ["cargo", "tree", "--locked", "--offline", "--target", target, "--edges", edges,
                   "--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]
        done = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotFetchedError(f"{' '.join(command)} failed in {folder}; run `cargo fetch --locked` there first:\n"
                                  f"{done.stderr.strip()}")
        for line in done.stdout.splitlines():
            package, _, licence = line.partition("|")
            name, _, rest = package.partition(" ")
            if rest:
                found.add(Crate(name, rest.split(" ")[0].removeprefix("v"), licence))
    return sorted(crate for crate in found if crate.name not in own(folder))


def own(folder="."):
    """The names of a project's packages that are in this tree."""
    return {toml("Cargo.toml")["package"]["name"], toml(f"{folder}/Cargo.toml")["package"]["name"]}


def locked(folder="."):
    """The packages of a project's Cargo.lock by name and version: source and checksum."""
    packages = toml(f"{folder}/Cargo.lock")["package"]
    return {(package["name"], package["version"]): package for package in packages}
