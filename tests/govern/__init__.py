"""Tests of policies in Cedar."""
