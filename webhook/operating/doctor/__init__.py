"""`doctor`: what keeps the webhook from doing its work, each thing found by a check of its own.

A check yields lines; `examine.py` runs them all, and one that cannot read what it needs becomes a line that says so.
"""
