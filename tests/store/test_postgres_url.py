"""What is said of a server never tells its password."""

import pytest

from pawlflow.store.postgres_url import scrubbed, where_of


@pytest.mark.parametrize(
    ("url", "said", "shown"),
    [
        ("postgresql://ann:shop@h/web", "no webshop for shop", "no webshop for ***"),
        ("postgresql://ann:shop@h/shop", "no database shop", "no database shop"),
        ("postgresql://ann:x@h/d", "it does not exist", "it does not exist"),
        ("postgresql://ann:a%26b@h/d", "bad a&b, or a%26b", "bad ***, or ***"),
    ],
)
def test_a_password_is_masked_and_not_told_by_that(url, said, shown):
    """Only where it stands by itself, and not what the URL shows anyway."""
    assert scrubbed(said, where_of(url)) == shown
