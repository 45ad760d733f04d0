"""Begin with a table: the guided start of `dpublish init` as pages."""

from dpublish.studio.visit import Page

PAGES: tuple[Page, ...] = ()
