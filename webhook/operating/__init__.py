"""What people on call ask of a cluster, live or in a dump: `why`, `audit`, `can-drain`, `simulate`, `doctor`.

Nothing in here writes to a cluster. `connecting.py` opens it, `failures.py` says in a sentence what could not be
read, `looking.py` asks the webhook's own rule.
"""
