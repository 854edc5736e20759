"""The functions `compare` and `overlap`, and the result of `compare`."""
