"""Ports for the servers of a script. Scripts run beside each other, and a server that is started again needs its old port."""

import fcntl
import os
import pathlib
import random
import socket
import tempfile

PORTS = range(21000, 22000)
LOCKS = pathlib.Path(tempfile.gettempdir()) / f"blockyard-ports-{os.getuid()}"
# The locks this process holds until it ends.
_HELD = []


def free_port():
    """A port that nothing listens on now. No other process of the tests takes it while this one lives, even while nothing
    listens on it because a server is between two starts."""
    LOCKS.mkdir(mode=0o700, exist_ok=True)
    for port in random.sample(PORTS, len(PORTS)):
        lock = open(LOCKS / str(port), "wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _HELD.append(lock)
        return port
    raise RuntimeError(f"no free port in {PORTS}")
