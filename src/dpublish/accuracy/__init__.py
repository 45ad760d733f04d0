"""How far noise carries numbers, and how noisy numbers are made consistent."""
