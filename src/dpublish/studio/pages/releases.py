"""Releases: reports, counts, rows, predictions, comparisons, exports and checks."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
