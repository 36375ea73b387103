"""Random small clusters, judged by the webhook and by the real scheduler.

`worlds` makes them from a seed, `stage` puts one on the control plane, `webhook` and `scheduler` are the two who are
asked, `provisioner` makes volumes for both, `judge` compares.
"""
