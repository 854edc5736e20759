"""Other metrics of the field, computed from a comparison."""
