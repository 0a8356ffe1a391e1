"""What the real-client scripts share.

server.py   starts, drains, kills and checks one `blockyard serve` process
account.py  endpoint, account names and keys, SDK clients made from them
wire.py     a bare HTTP client that signs with Shared Key, where the SDK would hide or repeat something
content.py  reproducible, unique bytes of any size, cheap enough to keep up with the server
measure.py  resident memory over time, allocated disk blocks
report.py   progress while running, a table of verdicts at the end
cli.py      the flags every script has, and its scratch folder
"""
