"""The list of methods, and how one is found and built by its name."""

from dpublish.core.catalog import CATALOG, Entry
from dpublish.core.settings import Setting, make_method, method_class, method_settings

__all__ = ["CATALOG", "Entry", "Setting", "make_method", "method_class", "method_settings"]
