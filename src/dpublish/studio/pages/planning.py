"""Plan a release: goal, advised methods, error against epsilon, rehearsal; spends nothing."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
