"""Certificates of the webhook's server: issuing, renewing, and telling the API server whom to trust.

A process of its own, beside the one that answers reviews, which so never holds the key of the CA:

    authority   issues certificates; pure
    checks      judges them; pure
    material    what is kept in the one Secret, read tolerantly
    state       the values it is decided on
    stages      what to do next, given what is stored and what is seen; pure
    files       puts the pair where the server reads it, all at once
    given       the CAs of somebody else
    access      which API server, by which credentials
    cluster     the calls to the API server
    probe       proves that the API server trusts a CA before that CA's certificate is served
    keeper      the loop
    figures     metrics and health

Nothing in here knows the webhook, nor it this package.
"""
