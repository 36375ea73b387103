"""`simulate`: what would become of the groups, step by step, on a copy of a cluster.

The webhook's own admission decides; owner, scheduler and rescue are played in their simplest form: what a node's loss
takes is created again, what is pinned runs there at once, what waits is decided on anew after each step.
"""
