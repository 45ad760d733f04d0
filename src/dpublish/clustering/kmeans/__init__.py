"""Private k-means: published centres, and the synopses they were found in."""
