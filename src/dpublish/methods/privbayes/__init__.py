"""PrivBayes: a Bayesian network of low degree, from noisy joint counts."""
