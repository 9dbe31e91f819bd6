"""Where secrets come from: the environment, files, folders, chains of them."""

import pytest

from pawlflow import ChainSecrets, EnvironmentSecrets, FileSecrets, MappingSecrets, Pawl, PawlError


class Raising:
    """A provider that has nothing."""

    def get(self, tenant, name):
        raise KeyError(name)


@pytest.mark.parametrize(
    "tenant, name, variable",
    [
        ("default", "deploy-key", "PAWL_SECRET_DEPLOY_KEY"),
        ("acme", "db/pass.word", "PAWL_SECRET_DB_PASS_WORD"),
        ("acme", "deploy-key", "PAWL_SECRET__ACME__DEPLOY_KEY"),
        ("a-b", "k", "PAWL_SECRET__A_2DB__K"),
        ("a_b", "k", "PAWL_SECRET__A_5FB__K"),
        ("A", "k", "PAWL_SECRET___41__K"),
        ("ä", "k", "PAWL_SECRET___C3_A4__K"),
    ],
)
def test_the_environment(tenant, name, variable):
    """One variable for all tenants, or one for each; no two tenants share theirs."""
    assert EnvironmentSecrets({variable: "v"}).get(tenant, name) == "v"
    assert EnvironmentSecrets({variable: "v"}).get(tenant, "other") is None


def test_a_tenant_sees_its_own_before_the_common_one_and_never_anothers():
    """In every provider."""
    found = EnvironmentSecrets({"PAWL_SECRET_K": "all", "PAWL_SECRET__ACME__K": "own"})
    assert [found.get(each, "k") for each in ("acme", "other")] == ["own", "all"]
    found = MappingSecrets({"k": "all", ("acme", "k"): "own"})
    assert [found.get(each, "k") for each in ("acme", "other")] == ["own", "all"]


def private(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "name, text",
    [
        ("s.toml", 'k = "all"\ndb.password = "p"\n"a/b" = "c"\n[tenants.acme]\nk = "own"\n'),
        (
            "s.json",
            '{"k": "all", "db": {"password": "p"}, "a/b": "c", "tenants": {"acme": {"k": "own"}}}',
        ),
    ],
)
def test_a_file(tmp_path, name, text):
    """TOML or JSON, read anew each time: a key that is changed is used at once."""
    path = private(tmp_path / name, text)
    found = FileSecrets(path)
    assert [found.get(each, "k") for each in ("acme", "x")] == ["own", "all"]
    assert [found.get("x", each) for each in ("db.password", "a/b", "none")] == ["p", "c", None]
    private(path, text.replace("all", "new"))
    assert found.get("x", "k") == "new"


def test_a_folder(tmp_path):
    """A file for each, as containers mount them; nothing outside of it can be reached."""
    (tmp_path / "in" / "tenant=acme").mkdir(parents=True)
    private(tmp_path / "outside", "no")
    private(tmp_path / "in" / "k", "all\n")
    private(tmp_path / "in" / "tenant=acme" / "k", "own")
    found = FileSecrets(tmp_path / "in")
    assert [found.get(each, "k") for each in ("acme", "x", "..", "../in")] == [
        "own",
        "all",
        "all",
        "all",
    ]
    assert found.get("x", "../outside") is None
    assert found.get("x", "a/../../outside") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644])
def test_a_file_that_others_may_use_is_refused(tmp_path, mode):
    """With the command that mends it; also when that changes later."""
    path = private(tmp_path / "s.toml", 'k = "v"\n')
    found = FileSecrets(path)
    path.chmod(mode)
    for look in (lambda: FileSecrets(path), lambda: found.get("x", "k")):
        with pytest.raises(PawlError, match=r"chmod 600") as refused:
            look()
        assert refused.value.code == "secrets.file"


@pytest.mark.parametrize(
    "name, text",
    [
        ("s.toml", "k = topsecret"),
        ("s.json", '{"k": topsecret}'),
        ("s.toml", "k = 12345"),
        ("s.json", '["topsecret"]'),
        ("s.toml", "tenants = 'topsecret'"),
    ],
)
def test_a_broken_file_is_refused_without_a_word_of_it(tmp_path, name, text):
    """Parsers quote what they do not understand; that would be the secret."""
    with pytest.raises(PawlError) as refused:
        FileSecrets(private(tmp_path / name, text))
    assert "topsecret" not in str(refused.value)
    assert "12345" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_chain_asks_one_after_the_other(tmp_path):
    """The first that has it gives it; `Pawl(secrets=[...])` makes one of anything."""
    chain = ChainSecrets(
        Raising(), MappingSecrets({"a": "1"}), MappingSecrets({"a": "2", "b": "3"})
    )
    assert [chain.get("x", each) for each in "abc"] == ["1", "3", None]
    path = private(tmp_path / "s.toml", 'f = "4"\n')
    pawl = Pawl("memory:", secrets=[{"a": "1"}, path, EnvironmentSecrets({"PAWL_SECRET_E": "5"})])
    assert [pawl.secrets.get("x", each) for each in "afe"] == ["1", "4", "5"]
