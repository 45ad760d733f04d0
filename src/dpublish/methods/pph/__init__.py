"""PPH: a histogram of the few predictors that separate the classes best."""
