"""What of the documentation is made from the code, and tests that the rest agrees with it."""
