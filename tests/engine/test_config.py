"""Settings: bounds, choices, and what people are told."""

from __future__ import annotations

import dataclasses

import pytest

from engine.config import (
    AppSettings,
    EngineConfig,
    SamplingParams,
    check_bounds,
    info_of,
    settings_of,
)
from engine.errors import BadRequest

ALL = (EngineConfig, SamplingParams, AppSettings)


@pytest.mark.parametrize("cls", ALL)
def test_every_setting_is_described_and_its_default_is_allowed(cls: type) -> None:
    check_bounds(cls())
    for name, info in settings_of(cls).items():
        assert info.title and info.help.endswith("."), name
        if info.low is not None and info.high is not None:
            assert info.low < info.high, name


@pytest.mark.parametrize("cls", ALL)
def test_what_is_out_of_bounds_is_refused_with_both_numbers(cls: type) -> None:
    for name, info in settings_of(cls).items():
        for bound, off in ((info.low, -1), (info.high, 1)):
            if bound is None:
                continue
            with pytest.raises(BadRequest, match=info.title) as caught:
                cls(**{name: bound + off})
            assert "e+" not in str(caught.value)
        if info.choices:
            with pytest.raises(BadRequest, match="nonsense"):
                cls(**{name: "nonsense"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    with pytest.raises(BadRequest, match="finite"):
        SamplingParams(temperature=value)


def test_large_numbers_are_written_out() -> None:
    with pytest.raises(BadRequest, match="at most 16,777,216"):
        SamplingParams(max_tokens=10**9)


def test_flags_are_unique_within_a_class() -> None:
    for cls in ALL:
        flags = [i.flag for i in settings_of(cls).values() if i.flag]
        assert len(flags) == len(set(flags))


def test_lists_and_dicts_are_not_shared_between_settings() -> None:
    assert AppSettings().extra_model_dirs is not AppSettings().extra_model_dirs
    assert info_of(EngineConfig, "threads").flag == "--threads"
    assert dataclasses.is_dataclass(EngineConfig)
