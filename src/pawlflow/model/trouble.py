"""The base of every exception that callers may catch."""


class PawlError(Exception):
    """Something was not possible. `code` is stable; `pawl explain CODE` says more."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)
