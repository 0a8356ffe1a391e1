"""What workers of kill9.py, kill9_s3.py and power_failure.py change while the server is killed, and whether what is found
afterwards can be explained.

load.py     the workers, the changes of the map beside them, the cycles of crash and restart
base.py     a subject: what was acknowledged, what was in doubt, what the server shows
block.py    puts, overwrites, staged blocks and commits, deletes, metadata
append.py   appends with and without a position, seals
page.py     pages written and cleared, resizes, sequence numbers, snapshots and their deletion
snapshot.py snapshots of a block blob that is overwritten
copy.py     copies of all shapes, of a source that is overwritten and deleted, and of what another server has
pages_copied.py  page blobs copied whole, from a snapshot, and in ranges, then changed on both sides
lease.py    leases taken, changed, given back, broken
tags.py     tags, and the search for them
objects.py  objects of any server of S3
s3.py       objects of this one: uploads and their completion, deletions of many keys, copies
"""
