"""Secrets: the providers that come with Pawl. Values are read when they are needed, never kept."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pawlflow.effects.secrets import Secrets
from pawlflow.model.trouble import PawlError

PREFIX: Final = "PAWL_SECRET_"
OTHERS: Final = stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH
BYTES_MAX: Final = 1 << 20  # of a file of secrets
TENANTS: Final = "tenants"  # the table of a file that holds those of single tenants


class SecretsError(PawlError):
    """A place of secrets that cannot be used. No value is in the message."""

    def __init__(self, message: str) -> None:
        super().__init__("secrets.file", message)


class EnvironmentSecrets:
    """`deploy-key` is PAWL_SECRET_DEPLOY_KEY; of tenant acme PAWL_SECRET__ACME__DEPLOY_KEY."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def get(self, tenant: str, name: str) -> str | None:
        """The tenant's own, or the one for all."""
        word = re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        own = self._environment.get(f"{PREFIX}_{tenant_word(tenant)}__{word}")
        return own or self._environment.get(f"{PREFIX}{word}")


def tenant_word(tenant: str) -> str:
    """A tenant in the name of a variable. No two share one: all but a-z and 0-9 is `_` and hex."""
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789"
    data = tenant.encode("utf-8", "surrogatepass")
    return "".join(chr(each).upper() if each in plain else f"_{each:02X}" for each in data)


class MappingSecrets:
    """Secrets in memory, for tests: by name, or by (tenant, name)."""

    def __init__(self, values: Mapping[Any, str]) -> None:
        self._values = dict(values)

    def get(self, tenant: str, name: str) -> str | None:
        """The tenant's own, or the one for all."""
        return self._values.get((tenant, name)) or self._values.get(name)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"


class FileSecrets:
    """A TOML or JSON file of names and values, or a folder with a file for each.

    Of single tenants: a table `tenants.acme`, a folder `tenant=acme`. Raises SecretsError at once
    if the file is not there, or if others than its owner may read it.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser().absolute()
        if not self._path.is_dir():
            self.read()

    def get(self, tenant: str, name: str) -> str | None:
        """The tenant's own, or the one for all; as the file is now."""
        if self._path.is_dir():
            own = self.file_of(self._path / f"tenant={quote(tenant, safe='')}", name)
            return own or self.file_of(self._path, name)
        values, tenants = self.read()
        return tenants.get(tenant, {}).get(name) or values.get(name)

    def file_of(self, folder: Path, name: str) -> str | None:
        """What a file says; one newline at its end is not part of it."""
        if any(part in ("", ".", "..") for part in name.split("/")):
            return None
        path = folder / name
        if not path.is_file():
            return None
        return text_of(path, contents_of(path)).removesuffix("\n").removesuffix("\r")

    def read(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """The whole file: values for all by name, and those of tenants."""
        text = text_of(self._path, contents_of(self._path))
        try:
            found = json.loads(text) if self._path.suffix == ".json" else tomllib.loads(text)
        except ValueError:  # its message may quote a value
            kind = "JSON" if self._path.suffix == ".json" else "TOML"
            raise SecretsError(f"{self._path} is not {kind}") from None
        if not isinstance(found, dict):
            raise SecretsError(f"{self._path} must be a table of names and values")
        tenants = found.pop(TENANTS, {})
        if not isinstance(tenants, dict):
            raise SecretsError(f"{self._path}: {TENANTS} must hold a table for each tenant")
        own = {tenant: self.checked(values) for tenant, values in tenants.items()}
        return self.checked(found), own

    def checked(self, table: Any) -> dict[str, str]:
        """Names and values, if they are."""
        values = flat(table) if isinstance(table, dict) else {TENANTS: table}
        for name, value in values.items():
            if not isinstance(value, str):
                raise SecretsError(f"{self._path}: {name} must be a text, in quotes")
        return values

    def __repr__(self) -> str:
        return f"<secrets in {self._path}>"


class ChainSecrets:
    """Several providers: the first that has a secret gives it."""

    def __init__(self, *providers: Secrets) -> None:
        self._providers = providers

    def get(self, tenant: str, name: str) -> str | None:
        """The first value there is."""
        for provider in self._providers:
            try:
                found = provider.get(tenant, name)
            except LookupError:
                continue
            if found:
                return found
        return None


# What `Pawl(secrets=...)` takes: a provider, a mapping, a path, several of them; None: environment
Source = Secrets | Mapping[Any, str] | str | Path | Sequence[Any] | None


def secrets_of(given: Source) -> Secrets:
    """The provider that is meant."""
    if given is None:
        return EnvironmentSecrets()
    if isinstance(given, str | Path):
        return FileSecrets(given)
    if isinstance(given, Mapping):
        return MappingSecrets(given)
    if isinstance(given, Sequence):
        return ChainSecrets(*map(secrets_of, given))
    return given


def contents_of(path: Path) -> bytes:
    """The bytes of a file that only its owner may read. Raises SecretsError."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_mode & OTHERS:
                mode = stat.S_IMODE(found.st_mode)
                message = f"{path} may be used by others (mode {mode:04o}): chmod 600 {path}"
                raise SecretsError(message)
            if found.st_uid not in (os.geteuid(), 0):
                raise SecretsError(f"{path} belongs to another user")
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise SecretsError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > BYTES_MAX:
        raise SecretsError(f"{path} is too large: {BYTES_MAX:,} bytes at most")
    return data


def text_of(path: Path, data: bytes) -> str:
    """The text of a file. Raises SecretsError."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SecretsError(f"{path} is not UTF-8") from None


def flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Names and values; a table inside gives names with a dot."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found
