"""The decisions: functions from frozen values to frozen values with their reasons.

Nothing here does I/O, reads a clock or the environment, or logs; nothing here imports from outside the
standard library and this package.
"""
