"""A mutating admission webhook that keeps the members of a TiDB cluster's data components apart.

Layers, each importing only from those below (checked by import-linter):
cli > server > app > controller > admission > locking > cluster > core.
"""
