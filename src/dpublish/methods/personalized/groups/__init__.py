"""Groups of people with similar levels: planned, drawn and published from."""
