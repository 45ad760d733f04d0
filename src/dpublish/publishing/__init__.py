"""From a table to a published folder: in one call, or step by step for a stream."""

from dpublish.publishing.table import MOST_EPSILON, predict, publish, read_epsilon

__all__ = ["MOST_EPSILON", "predict", "publish", "read_epsilon"]
