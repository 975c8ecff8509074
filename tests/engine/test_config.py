"""Settings: bounds, choices, and what people are told."""

from __future__ import annotations

import dataclasses
import json

import pytest

from engine.config import (
    AppSettings,
    EngineConfig,
    Precision,
    SamplingParams,
    changed_settings,
    check_bounds,
    engine_config,
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


def test_how_models_run_survives_a_round() -> None:
    config = EngineConfig(threads=2, max_ctx=4096, precision=Precision.EXACT, prefill_chunk=128)
    kept = json.loads(json.dumps(changed_settings(config)))
    assert set(kept) == {"threads", "max_ctx", "precision", "prefill_chunk"}
    assert engine_config(AppSettings(engine=kept)) == config
    assert changed_settings(EngineConfig()) == {}


def test_damaged_choices_count_as_none_and_bad_changes_are_refused() -> None:
    kept = {"threads": -4, "precision": "loud", "max_ctx": "{", "nonsense": 1, "prefill_chunk": 64}
    assert engine_config(AppSettings(engine=kept)) == EngineConfig(prefill_chunk=64)
    assert engine_config(AppSettings(engine=kept), threads=3).threads == 3
    with pytest.raises(BadRequest):
        engine_config(AppSettings(), threads=0)
