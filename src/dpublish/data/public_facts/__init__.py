"""Public facts about columns, by their names: what ages, months or blood groups can be."""
