"""Admission: the one door in."""
