"""The controller: what one leader among the replicas does beside answering reviews (docs/design.md, section 7).

`rescue.py` is its judgement, pure: which pods of ours wait where they cannot run, and whether anything better is
there; `looking.py` asks the webhook's own rule for that; `loop.py` frees such pods, one after another, and
`memory.py` is what it remembers meanwhile; `running.py` is the thread.

Nothing here has to be exact about who leads: every deletion names the pod's uid and resourceVersion, so of two
leaders one loses; and what a pod gets in its next life is decided by its own admission, under the lock.
"""
