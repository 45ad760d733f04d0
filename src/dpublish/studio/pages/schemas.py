"""Schemas: kinds, bounds, bins, code lists and taxonomies, and how a table fits them."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
