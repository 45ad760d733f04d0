"""Audit: verify the ledger, its anchor, and the signatures of releases."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
