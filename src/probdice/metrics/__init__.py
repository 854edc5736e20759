"""Other common segmentation metrics, computed from a comparison."""
