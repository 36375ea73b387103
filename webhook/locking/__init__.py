"""The lock protocol of docs/design.md, section 4: who may answer with which node, among any number of replicas.

`protocol.py` is what it needs of a cluster and what it gives; `round.py` the seven steps; `memory.py` what one
process remembers of its own answers; `queue.py` lets the requests of one group that reach one process share a
round. Safety never rests on the last two: it rests on the compare-and-swap between processes.
"""
