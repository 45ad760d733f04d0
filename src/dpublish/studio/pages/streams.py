"""Streams: their state, their steps, and what is due."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
