"""Filter-Priority: a weighted sample of the largest noisy cells of a huge domain."""
