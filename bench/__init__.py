"""Measurements. Each module here is one bench with a `main(arguments)`; README.md is the method."""
