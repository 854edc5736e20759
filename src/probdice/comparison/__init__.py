"""The functions `compare`, `overlap` and `similarity_map`, and the result of `compare`."""
