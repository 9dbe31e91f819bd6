"""The bus: how commands and completions travel between an engine and services."""
