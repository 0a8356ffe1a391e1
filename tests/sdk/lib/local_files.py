"""`blockyard ls`, `cat`, `stat` and `rm` with local paths, for files.py."""

import json
import os

WAIT_SECONDS = 120


def commands(client, verdicts, scratch, container):
    """(e) The same commands with local paths."""
    root = scratch / "local"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"0123456789")
    (root / "sub" / "deep" / "b").write_bytes(b"b")
    (root / "link").symlink_to(scratch / "small")
    (root / "nowhere").symlink_to("nothing")
    (scratch / "to-local").symlink_to(root)
    lengths = {name: str(os.lstat(root / name).st_size) for name in ("a.txt", "link", "nowhere")}
    lines = client.good("ls", root).decode().splitlines()
    verdicts.equal("(e) ls of a local folder", {line.split("\t")[2]: line.split("\t")[0] for line in lines}, {**lengths, "sub/": ""})
    lines = client.good("ls", "--json", scratch / "to-local").splitlines()
    verdicts.equal("(e) ls of a link to a folder", [json.loads(line)["type"] for line in lines], ["file", "link", "link", "folder"])
    lines = [json.loads(line) for line in client.good("ls", "-r", "--json", root).splitlines()]
    verdicts.equal("(e) ls -r of a local folder", [(line["name"], line["type"]) for line in lines],
                   [(f"{root}/a.txt", "file"), (f"{root}/link", "link"), (f"{root}/nowhere", "link"), (f"{root}/sub/deep/b", "file")])
    for name in ("a.txt", "nowhere"):
        verdicts.equal(f"(e) ls of {name}", client.good("ls", root / name).decode().split("\t")[0::2], [lengths[name], f"{root}/{name}\n"])
    printed = client.good("cat", root / "a.txt", f"by://{container}/manyother", root / "link")
    verdicts.equal("(e) cat of local files and a blob", printed, b"0123456789smallsmall")
    for text, part in (("2-4", b"234"), ("7-", b"789"), ("-2", b"89"), ("20-", b"")):
        verdicts.equal(f"(e) cat --range {text} of a local file", client.good("cat", root / "a.txt", "--range", text), part)
    code, _, _ = client.run("cat", scratch / "pipe", "--range", "0-1")
    verdicts.check("(e) cat --range of a pipe is refused", code == 2, 2, code)
    process = client.begin("cat", scratch / "pipe")
    with open(scratch / "pipe", "wb", buffering=0) as pipe:
        pipe.write(b"first")
        verdicts.equal("(e) cat prints what a pipe has", process.stdout.read(5), b"first")
    verdicts.check("(e) cat of a pipe ends with it", process.wait(WAIT_SECONDS) == 0)
    shown = json.loads(client.good("stat", "--json", root / "a.txt"))
    verdicts.equal("(e) stat of a local file", (shown["name"], shown["size"], shown["type"], bool(shown["modified"])), (f"{root}/a.txt", 10, "file", True))
    verdicts.equal("(e) stat of a link", json.loads(client.good("stat", "--json", root / "link"))["type"], "link")
    deletions(client, verdicts, scratch, root, container)


def deletions(client, verdicts, scratch, root, container):
    """(e) What `rm` deletes of local files, and nothing else."""
    left = lambda: {str(path.relative_to(root)) for path in root.rglob("*")} if root.exists() else None
    before = left()
    for words in (["rm", root], ["rm", "-r", "--container", root], ["rm", "-r", f"{root}/."], ["rm", "-r", f"{root}/sub/.."], ["rm", root / "a.txt", root],
                  ["rm", root / "a.txt", f"by://{container}"], ["rm", "-r", f"{scratch}/to-local/"], ["rm", "-r", "/"]):
        code, _, errors = client.run(*words)
        verdicts.check(f"(e) {' '.join(map(str, words))[-30:]} deletes nothing", code == 2 and errors and left() == before, 2, code)
    shown = client.good("rm", "-r", "--dry-run", root).decode().splitlines()
    verdicts.check("(e) rm --dry-run of a local folder", len(shown) == 5 and left() == before, 5, len(shown))
    lines = [json.loads(line) for line in client.good("rm", "--json", root / "a.txt", root / "link").splitlines()]
    verdicts.equal("(e) rm of local files", lines, [{"deleted": f"{root}/a.txt"}, {"deleted": f"{root}/link"}])
    verdicts.equal("(e) and of nothing else", left(), before - {"a.txt", "link"})
    forged = root / "x\nblockyard: FAILED \x1b[2J"
    for words in (["ls", forged], ["stat", forged], ["rm", forged]):
        code, _, errors = client.run(*words)
        verdicts.check(f"(e) {words[0]}: one line without control characters", code == 1 and "FAILED \\u{1b}" in errors, 1, f"{code} {errors!a}")
    client.good("rm", "-r", scratch / "to-local")
    verdicts.equal("(e) rm -r of a link", left(), before - {"a.txt", "link"})
    client.good("rm", "-r", f"{root}/")
    verdicts.check("(e) rm -r of a local folder", left() is None and (scratch / "small").read_bytes() == b"small")
