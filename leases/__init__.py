"""Leader election over a Lease, for the two programs that need a leader: the keeper of certificates and the controller.

It knows neither of them.
"""
