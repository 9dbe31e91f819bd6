"""Govern: what tenants allow, in Cedar."""
