"""The tables."""

import statistics

from comparison.report import figure, line, met


def render(results):
    """Markdown of a whole run."""
    alone, cluster, etcd = results["idle_cpu_ms_per_second"]
    return "\n".join([
        "# A cluster beside one process", "",
        f"{results['date']}, {results['machine']}, load average {results['load']}, {results['version']}. "
        f"Median of {results['turns']} turns of {results['seconds']:g} s, {results['clients']} connections.", "",
        *[f"- {letter}: {title}" for letter, title in results["sides"].items()], "",
        *operations(results["rows"]), "",
        "The cluster to one process: the median of the ratios of each round, and the least and the greatest.", "",
        *ratios(results["rows"]), "",
        f"Processor time while nothing was asked, ms of each second: one process {figure(alone)}, cluster {figure(cluster)}, "
        f"etcd {figure(etcd)}. It is included above.", "",
    ])


def operations(rows):
    """What each operation took."""
    yield line(["workload", "side", "ops/s", "p50 ms", "p99 ms", "CPU us", "etcd CPU us", "syncs", "CPUs of the load", "failed"])
    yield line(["---", "---"] + ["---:"] * 8)
    for row in rows:
        for side, turns in row["turns"].items():
            syncs = middle(turns, "syncs") if row["writes"] else None
            yield line([
                row["title"], side, figure(middle(turns, "ops_per_second")), figure(middle(turns, "p50_us") / 1e3),
                figure(middle(turns, "p99_us") / 1e3), figure(middle(turns, "cpu_us")),
                "-" if side == "a" else figure(middle(turns, "etcd_us")), figure(syncs), figure(middle(turns, "load_cpus")),
                str(sum(turn["errors"] for turn in turns)),
            ])


def ratios(rows):
    """The cluster to one process."""
    yield line(["workload", "CPU b/a", "CPU c/a", "p50 b/a", "p50 c/a", "at most", "b met", "c met"])
    yield line(["---"] + ["---:"] * 5 + ["---", "---"])
    for row in rows:
        found = {(key, side): ratio(row["turns"], side, key) for key in ("cpu_us", "p50_us") for side in "bc"}
        target, failed = row["target"], any(turn["errors"] for turns in row["turns"].values() for turn in turns)
        verdicts = [met(max(found["cpu_us", side][0], found["p50_us", side][0]), target) if target else "-" for side in "bc"]
        yield line([
            row["title"], *[f"{median:.2f} ({least:.2f} to {most:.2f})" for median, least, most in found.values()],
            f"{target:g}" if target else "-", *(["failures"] * 2 if failed else verdicts),
        ])


def ratio(turns, side, key):
    """Of the ratios of each round: the median, the least and the greatest. The machine's speed differs more from round to round."""
    each = [ours[key] / max(alone[key], 1e-9) for ours, alone in zip(turns[side], turns["a"])]
    return statistics.median(each), min(each), max(each)


def middle(turns, key):
    """The median of some turns."""
    return statistics.median(turn[key] for turn in turns)
