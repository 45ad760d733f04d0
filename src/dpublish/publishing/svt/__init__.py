"""Interactive runs of the sparse vector technique: state on disk, paid for once, restartable."""
