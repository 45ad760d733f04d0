"""The release folder: written whole or not at all, checked when it is opened."""
