"""Comparison of object stores by the load driver in benches/load.

main.py (command line, order of the steps) -> servers.py (installs, starts and stops each server)
-> driver.py (runs the load driver) -> measure.py (speed, syncs, crash and restart of one server)
-> budgets.py and report.py (the tables); memory.py touches free memory first. burst.py and sequential.py are comparisons of their own with
partitions.py (the partition map while they run). Servers listen on loopback, one at a time, and are ended by
their process id. Needs Python 3.11, cargo, npm, pip; strace for the count of disk syncs.
"""
