"""How numeric loops are compiled and cached."""
