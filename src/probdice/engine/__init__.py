"""The machinery: a pass over all blocks of two images, added up."""
