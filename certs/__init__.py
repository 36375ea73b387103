"""Certificates for a webhook's server: issuing as pure values. Knows nothing of `webhook`."""
