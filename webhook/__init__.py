"""A mutating admission webhook that keeps the members of a TiDB cluster's data components apart.

Layers, each importing only from those below (checked by import-linter):
cli > commands > wiring > serving, controller > app > admission > locking > cluster > core.
"""
