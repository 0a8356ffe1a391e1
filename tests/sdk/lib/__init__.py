"""What the real-client scripts share.

server.py   starts, drains, kills and checks one `blockyard serve` process
account.py  endpoint, account names and keys, SDK clients made from them
wire.py     a bare HTTP client that signs with Shared Key, where the SDK would hide or repeat something
content.py  reproducible, unique bytes of any size, cheap enough to keep up with the server
measure.py  resident memory over time, allocated disk blocks
report.py   progress while running, a table of verdicts at the end
cli.py      the flags every script has, and its scratch folder
killed/     what kill9.py changes, and whether what is found after a kill can be explained
calls.py    calls on one blob, with the answers that models know
linearizable.py  whether a recorded history can be explained by one thing at a time
raced.py    clients that race on few blobs while something else happens, and what their histories say
driver.py   the load driver of benches/load beside a script
collector.py  a collector of OpenTelemetry that decodes spans
openapi.py  the published description, and answers held against it
fuzzing.py  requests that contract.py draws, about things that exist

and what the scripts of clients/ share besides:

roster.py   which clients there are, and the table of what became of them
install.py  clients from their registries, into a cache folder
judged.py   one client's groups of operations: passed, failed, not run and why
accounts.py a second account, and signatures
trees.py    folders of files with odd names, compared
azcopy.py   AzCopy's program, environment and reports
mounted.py  what is asked of a mounted container
rust.py     the binaries of clients/rust
"""
