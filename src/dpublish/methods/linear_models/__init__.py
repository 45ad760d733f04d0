"""Linear models: logistic regression, support vector machines, linear regression."""
