"""The tables, from the figures of every server."""

from comparison.budgets import BURST_RSS_MIB, IDLE_RSS_MIB, RESTART_SECONDS, ROWS, S3_BELOW_PEER
from comparison.budgets import S3_OF_BLOB, S3_OF_BLOB_AND_MD5, S3_OF_BLOB_PLUS_SHA256

# This server, driven over S3.
OVER_S3 = "blockyard-s3"


def render(results):
    """Markdown of a whole run."""
    servers = results["servers"]
    parts = [
        "# Figures of the last run",
        "",
        f"{results['date']}, {results['machine']}, load average {results['load']} at the start.",
        "",
        "Server CPU is user and system time of all its processes over a fixed number of operations, settled "
        "writes included; it is the figure to trust. Ratios between servers of one run come second, latency "
        "and throughput say little on a shared machine.",
        "",
        *versions(servers),
        "",
        "## Server CPU",
        "",
        *cpu_table(servers),
        "",
        *memory_table(servers),
        "",
        *s3_table(servers, results.get("md5_us_per_mib"), results.get("sha256_us_per_mib")),
        "## Durability beside the speed",
        "",
        *durability_table(servers),
        "",
        "## Throughput and latency",
        "",
        *latency_table(servers),
        "",
    ]
    return "\n".join(parts)


def versions(servers):
    """A line for each server. A load average far above 1 means that other processes used the machine; CPU figures are too high then."""
    return [
        f"- {name}: {server['version']}, 1/{server['divide']} of the operations, "
        f"load average {server.get('load', 'not noted')} over its speed run"
        for name, server in servers.items()
    ]


def cpu_table(servers):
    """The table of budgets."""
    names = [name for name in servers if name != OVER_S3]
    peers = [name for name in names if name != "blockyard"]
    yield line(["workload", *[f"{name} us" for name in names], "budget us", "of budget", "best peer / ours", "met"])
    yield line(["---"] + ["---:"] * (len(names) + 3) + ["---"])
    for row in ROWS:
        ours = cpu(servers, "blockyard", row.name)
        best = min((c for c in (cpu(servers, peer, row.name) for peer in peers) if c), default=None)
        yield line([
            f"{row.title} (per {row.unit})",
            *[figure(cpu(servers, name, row.name)) for name in names],
            figure(row.budget_us),
            f"{ours / row.budget_us:.2f}" if ours else "-",
            f"{best / ours:.1f} x" if best and ours else "-",
            met(ours, row.budget_us),
        ])


def s3_table(servers, md5, sha256):
    """What an operation takes over S3: beside Blob of this server, and beside SeaweedFS. `md5` and `sha256` are what those of one stream take."""
    if OVER_S3 not in servers:
        return
    yield from ["## S3 beside Blob", ""]
    if md5:
        yield from ["The kernel's time of writes varies with the disk by half and more between runs; the last column leaves it out.", ""]
        yield from [f"Blob's figure of UploadPart is that of Put Block and {md5:.0f} us for an MD5 of one stream (OpenSSL) for each MiB.", ""]
    yield line(["workload", "S3 us", "Blob us", "S3 / Blob", "at most", "seaweedfs us", "seaweedfs / S3", "at least", "met",
                "user time, S3 / Blob"])
    yield line(["---"] + ["---:"] * 7 + ["---", "---:"])
    for row in ROWS:
        ours, blob, peer = (cpu(servers, name, row.name) for name in (OVER_S3, "blockyard", "seaweedfs"))
        most, least = S3_OF_BLOB.get(row.name), S3_BELOW_PEER.get(row.name)
        if row.name in S3_OF_BLOB_AND_MD5 and md5 and blob:
            blob, most = blob + md5, S3_OF_BLOB_AND_MD5[row.name]
        if row.name in S3_OF_BLOB_PLUS_SHA256 and sha256 and blob:
            share, mib = S3_OF_BLOB_PLUS_SHA256[row.name]
            most = share + sha256 * mib / blob
        of_blob = ours / blob if ours and blob else None
        below = peer / ours if ours and peer else None
        bars = [met(of_blob, most)] if most else []
        bars += [met(least, below) if below else "-"] if least else []
        yield line([
            f"{row.title} (per {row.unit})", figure(ours), figure(blob), figure(of_blob), figure(most), figure(peer), figure(below),
            figure(least), "-" if not bars or "-" in bars else "NO" if "NO" in bars else "yes", figure(user_ratio(servers, row, md5)),
        ])
    yield ""


def user_ratio(servers, row, md5):
    """S3 beside Blob without the kernel's time, which for writes is the disk's and varies most."""
    ours, blob = (deep(servers.get(name), "speed", row.name, "server") for name in (OVER_S3, "blockyard"))
    if not ours or not blob:
        return None
    user = [side["cpu_us_per_unit"] - side["system_us_per_unit"] for side in (ours, blob)]
    more = md5 if md5 and row.name in S3_OF_BLOB_AND_MD5 else 0
    return user[0] / (user[1] + more) if user[1] + more else None


def memory_table(servers):
    """Memory and restart against their budgets."""
    names = [name for name in servers if name != OVER_S3]
    yield line(["what", *names, "budget", "met"])
    yield line(["---"] + ["---:"] * (len(names) + 1) + ["---"])
    rows = [
        ("RSS idle, MiB", lambda s: deep(s, "speed", "idle", "server", "rss_mib"), IDLE_RSS_MIB),
        ("RSS peak, 64 x 16 MiB PUT at once, MiB",
         lambda s: deep(s, "speed", "burst16m", "server", "rss_peak_mib"), BURST_RSS_MIB),
        ("restart to serving after kill -9, s", lambda s: deep(s, "crash", "restart_seconds"), RESTART_SECONDS),
    ]
    for title, get, budget in rows:
        values = [get(servers[name]) for name in names]
        ours = get(servers["blockyard"]) if "blockyard" in servers else None
        yield line([title, *[figure(v) for v in values], figure(budget), met(ours, budget)])
    counts = [deep(servers[name], "crash", "objects") for name in names]
    yield line(["objects in the store at that restart", *[str(c or "-") for c in counts], "1000000", ""])


def durability_table(servers):
    """The durability of an acknowledged write: documented and measured."""
    yield line(["server", "what it promises", "syncs per PUT, c=1", "c=16", "acknowledged writes lost to kill -9"])
    yield line(["---", "---", "---:", "---:", "---:"])
    for name, server in servers.items():
        counts = server.get("syncs") or {}
        crash = server.get("crash") or {}
        lost = crash.get("lost")
        yield line([
            name, server["durability"], figure(counts.get("1")), figure(counts.get("16")),
            "-" if lost is None else f"{lost} of {crash['objects']}",
        ])


def latency_table(servers):
    """Throughput, percentiles and bytes written."""
    yield line(["workload", "server", "ops/s", "p50 ms", "p99 ms", "max ms", "written KiB/op", "failed"])
    yield line(["---", "---"] + ["---:"] * 6)
    for row in ROWS:
        for name, server in servers.items():
            one = deep(server, "speed", row.name)
            if one is None:
                continue
            written = deep(one, "server", "written_per_op")
            yield line([
                row.title, name, figure(one["ops_per_second"]), figure(one["p50_us"] / 1e3),
                figure(one["p99_us"] / 1e3), figure(one["max_us"] / 1e3),
                figure(written / 1024 if written is not None else None), str(one["errors"]),
            ])


def cpu(servers, name, workload):
    """Server CPU per unit in microseconds, if it was measured without failures."""
    one = deep(servers.get(name), "speed", workload)
    if one is None or one["errors"] or not one["ops"]:
        return None
    return deep(one, "server", "cpu_us_per_unit")


def deep(value, *keys):
    """`value[k1][k2]…`, or none where a step is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def met(value, budget):
    """Whether the budget is kept."""
    if value is None:
        return "-"
    return "yes" if value <= budget else "NO"


def figure(value):
    """A number with three significant digits."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def line(cells):
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"
