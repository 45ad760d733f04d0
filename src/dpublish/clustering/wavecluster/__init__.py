"""Private WaveCluster: clusters of any shape, as labelled cells of a grid."""
