"""The list of recipes, and how one is found and built by its name."""

from dpublish.recipes.entries import RECIPES, Entry
from dpublish.recipes.settings import Setting, make_recipe, recipe_class, recipe_settings

__all__ = ["RECIPES", "Entry", "Setting", "make_recipe", "recipe_class", "recipe_settings"]
