"""Private k-means: published centers, and the synopses they were found in."""
