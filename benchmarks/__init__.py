"""Side-by-side runs against the limit of memory and against other tools: ratios, not seconds."""
