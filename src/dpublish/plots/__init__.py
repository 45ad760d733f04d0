"""One drawing system: a style sheet, charts of releases, charts of comparisons."""
