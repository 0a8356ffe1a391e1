"""How Testcontainers' modules start Azurite's image, and what they wait for; what docker/Dockerfile says of ours."""

import ctypes
import fcntl
import json
import os
import pathlib
import re
import socket
import struct

DOCKERFILE = pathlib.Path(__file__).resolve().parents[3] / "docker" / "Dockerfile"
NAME = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PORTS = [10000, 10001, 10002]
HOSTS = ["--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"]
LINES = [f"{service} service is successfully listening" for service in ("Blob", "Queue", "Table")]
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
IMAGE = "the image for Azurite's users"


def stage(name):
    """The lines of a stage of the Dockerfile."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    return re.search(rf"^FROM \S+ AS {name}$(.*?)(?=^FROM )", text, re.MULTILINE | re.DOTALL).group(1)


def image_command(name):
    """The command of the image that a stage makes."""
    return json.loads(re.search(r"^CMD (\[.*\])$", stage(name), re.MULTILINE).group(1))


def image_variables(*more):
    """The variables of the image, or of one whose stages begin from it."""
    found = {}
    for name in ("server", *more):
        found.update(re.findall(r"^ENV (BLOCKYARD_\w+)=(\S+)$", stage(name), re.MULTILINE))
    assert found["BLOCKYARD_BLOB_LISTEN"] == "0.0.0.0:10000", found
    return found


# By module: command, variables, lines and ports that it waits for.
MODULES = {
    "Java": (["entrypoint", "azurite", *HOSTS], {}, [], PORTS),
    "Node": (["azurite", *HOSTS], {}, LINES, []),
    "Node, in memory": (["azurite", *HOSTS, "--inMemoryPersistence", "--extentMemoryLimit", "50", "--skipApiVersionCheck"], {}, LINES, []),
    "Go": (["azurite", *HOSTS], {}, LINES, PORTS),
    "Go, Blob only": (["azurite", "--blobHost", "0.0.0.0"], {}, LINES[:1], PORTS[:1]),
    ".NET": (["azurite", *HOSTS], {}, LINES, []),
    IMAGE: (["entrypoint", *image_command("azurite")], image_variables("azurite"), LINES, PORTS),
    f"{IMAGE}, account named": (["entrypoint", *image_command("azurite")], {**image_variables("azurite"), "AZURITE_ACCOUNTS": f"{NAME}:{KEY}"},
                                LINES, PORTS),
    "Python": (["entrypoint", "serve"], {"AZURITE_ACCOUNTS": f"{NAME}:{KEY}"}, [], PORTS[:1]),
}


def own_network():
    """Moves this process to a network of its own, with loopback up. Returns why that is not possible, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        return os.strerror(ctypes.get_errno())
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    return None


def image_links():
    """The names of the program on the path of the image."""
    found = re.findall(r"ln -s /blockyard /empty/bin/(\S+)", DOCKERFILE.read_text(encoding="utf-8"))
    assert found == ["azurite", "azurite-blob"], found
    return found


def is_open(port):
    """Whether something listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
