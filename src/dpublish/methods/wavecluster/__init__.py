"""WaveCluster: clusters of any shape, as labeled cells of a grid."""
