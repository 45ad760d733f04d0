"""DiffGen: class counts over cells that are specialized step by step through taxonomies."""
