"""Statistics: counts, sums, means, variances and quantiles by group, with intervals."""
