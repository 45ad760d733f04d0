"""The language of queries, and what a query covers of a column."""
