"""The sparse vector technique, its calibration, and its stored form."""
