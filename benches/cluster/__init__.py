"""A cluster beside one process, by what an operation takes.

main.py (command line, order of the turns) -> sides.py (starts and ends the processes) -> turn.py (one workload on one side, by
`blockyard bench`) -> report.py (the tables). Everything listens on loopback, on free ports, and is ended by its process id.
Needs etcd and the standard library.
"""
