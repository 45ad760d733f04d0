"""Help to choose before anything is spent: goals, advice, rehearsals, the meaning of epsilon."""
