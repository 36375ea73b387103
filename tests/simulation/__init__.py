"""The lock protocol under a deterministic scheduler of interleavings.

`world.py` runs actors one call at a time; `faults.py` is what may happen at a call; `life.py` is the cluster's
life (creates, deletes, foreign writers); `oracle.py` is invariant 1 of docs/design.md; `mutations.py` are protocols
with one step substituted, which the same runs must find unsafe.
"""
