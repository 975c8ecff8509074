"""The cases that a sanitizer runs, without it: what is wrong there is not the tool's doing."""

from __future__ import annotations

import pytest

from tests.gpu.small import cases

CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_a_small_case_is_right(name: str) -> None:
    assert CASES[name]() == []
