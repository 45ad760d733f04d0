"""Private k-means: centers of clusters, and the synopses they were found in."""
