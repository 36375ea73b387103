"""Measurements, printed as ratios within one run and never asserted: `make bench`."""
