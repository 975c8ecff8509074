"""Every setting a user can choose, declared once: the CLI, the GUI's forms and the API derive from here."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import BadRequest


class Precision(StrEnum):
    """How products are computed: `fast` rounds activations to int8, `exact` keeps float32."""

    FAST = "fast"
    EXACT = "exact"


class Residency(StrEnum):
    """Where a draft is between requests: in the device's memory, or on disk where memory is short."""

    AUTO = "auto"
    PERSISTENT = "persistent"
    REQUEST_SCOPED = "request-scoped"


class Spec(StrEnum):
    """How tokens are guessed ahead, for the model to verify several at once; the text is the same."""

    AUTO = "auto"
    CHAIN = "chain"
    TREE = "tree"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Info:
    """What a form or a help page needs to know of one setting; `low` and `high` are inclusive.

    `at_low` is what the lowest value is called, where it is a word and not a number.
    """

    title: str
    help: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    at_low: str = ""
    flag: str = ""


def setting(default: Any, title: str, help: str, **extra: Any) -> Any:
    """Declare a dataclass field with its `Info`; `extra` are the other fields of `Info`."""
    info = Info(title, help, **extra)
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: type(default)(default), metadata={"info": info})
    return field(default=default, metadata={"info": info})


def info_of(cls: type, name: str) -> Info:
    """The `Info` of one declared setting of a dataclass."""
    return next(f.metadata["info"] for f in dataclasses.fields(cls) if f.name == name)


def settings_of(cls: type) -> dict[str, Info]:
    """All declared settings of a dataclass, in order."""
    return {f.name: f.metadata["info"] for f in dataclasses.fields(cls) if "info" in f.metadata}


def shown(value: float) -> str:
    """A number for people: 16,777,216 and 0.05, never 1.67772e+07."""
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def check_bounds(config: Any) -> None:
    """Refuse values outside their declared bounds or choices with `BadRequest`; None means automatic."""
    for name, info in settings_of(type(config)).items():
        value = getattr(config, name)
        if value is None:
            continue
        if info.choices and str(value) not in info.choices:
            raise BadRequest(
                f"{info.title}: found {value!r}, expected one of {', '.join(info.choices)}."
            )
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if info.low is not None and not number:
            raise BadRequest(f"{info.title}: found {value!r}, expected a number.")
        if number:
            if value != value or value in (float("inf"), float("-inf")):
                raise BadRequest(f"{info.title}: found {value}, expected a finite number.")
            if info.low is not None and value < info.low:
                raise BadRequest(
                    f"{info.title}: found {value}, expected at least {shown(info.low)}."
                )
            if info.high is not None and value > info.high:
                raise BadRequest(
                    f"{info.title}: found {value}, expected at most {shown(info.high)}."
                )


AUTO = "auto"
"""The device that is chosen for the model: a graphics card where it fits, else the processor."""

FILELESS_DRAFTERS = ("ngram", "mtp")
"""Values of `EngineConfig.draft` that are no files: what the text repeats, and the model's own layer."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How one model is loaded and run. None means: chosen from the model and this PC."""

    device: str = setting(
        AUTO,
        "Device",
        "Where the model runs: cpu, cuda:0, or auto, which takes a graphics card if the model fits there.",
        flag="--device",
    )
    threads: int | None = setting(
        None,
        "CPU threads",
        "Threads for computing; by default one for each physical core.",
        low=1,
        high=1024,
        step=1,
        flag="--threads",
    )
    precision: Precision = setting(
        Precision.FAST,
        "Precision",
        "fast rounds activations to 8 bits; exact computes in 32-bit floats and is slower.",
        choices=("fast", "exact"),
        flag="--precision",
    )
    max_ctx: int | None = setting(
        None,
        "Context",
        "Most tokens that one conversation may hold; by default the model's own.",
        unit="tokens",
        low=64,
        high=16_777_216,
        step=64,
        flag="--max-ctx",
    )
    max_concurrency: int = setting(
        4,
        "Sequences at once",
        "How many requests are worked on together.",
        low=1,
        high=256,
        step=1,
        flag="--max-concurrency",
    )
    prefill_chunk: int | None = setting(
        None,
        "Prompt chunk",
        "Tokens of a prompt that are read in one step; by default 512, and 2,048 on a card with room for it.",
        unit="tokens",
        low=1,
        high=8192,
        step=64,
        flag="--prefill-chunk",
    )
    spec: Spec = setting(
        Spec.AUTO,
        "Speculation",
        "Guess tokens ahead and verify them at once: same text, more speed. auto guesses as much as pays; "
        "chain guesses one continuation, tree several.",
        choices=("auto", "chain", "tree", "off"),
        flag="--spec",
    )
    draft: str | None = setting(
        None,
        "Draft model",
        "A file that guesses: a draft made for this model, or a small model of the same vocabulary. "
        "Without one what guesses is the draft that comes with Lucebox for the model, its own draft layers "
        "(mtp), or what the text repeats (ngram).",
        flag="--draft",
    )
    budget: int | None = setting(
        None, "Draft budget", "Most tokens guessed at once; by default chosen from what pays.",
        unit="tokens", low=1, high=31, step=1, flag="--budget",
    )  # fmt: skip
    draft_residency: Residency = setting(
        Residency.AUTO, "Draft between requests",
        "persistent keeps a draft's file in the device's memory, request-scoped only while a text is "
        "written; auto keeps it where memory is not short.",
        choices=("auto", "persistent", "request-scoped"), flag="--draft-residency",
    )  # fmt: skip
    prefix_cache_mib: int | None = setting(
        None, "Prefix cache",
        "Most RAM for beginnings of conversations that the device has no room for; by default a part of what "
        "is free.",
        unit="MiB", at_low="unlimited", low=0, high=16_777_216, step=1024, flag="--prefix-cache-max-mib",
    )  # fmt: skip
    chat_template_file: str | None = setting(
        None, "Chat template", "A jinja file used in place of the model's own template.",
        flag="--chat-template-file",
    )  # fmt: skip
    card: dict[str, Any] = field(default_factory=dict, hash=False)  # before the model's own card

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen and when to stop. Neutral values switch a part off."""

    temperature: float = setting(
        0.8, "Temperature", "0 always takes the likeliest token; higher is more varied.", low=0.0,
        high=5.0, step=0.05, flag="--temperature",
    )  # fmt: skip
    top_k: int = setting(
        40, "Top K", "Keep the K likeliest tokens; 0 keeps all.", at_low="all", low=0,
        high=1_000_000, step=1, flag="--top-k",
    )  # fmt: skip
    top_p: float = setting(
        0.95, "Top P", "Keep the likeliest tokens up to this total probability; 1 keeps all.",
        low=0.0, high=1.0, step=0.01, flag="--top-p",
    )  # fmt: skip
    min_p: float = setting(
        0.05, "Min P", "Drop tokens less likely than this share of the likeliest; 0 drops none.",
        low=0.0, high=1.0, step=0.01, flag="--min-p",
    )  # fmt: skip
    typical_p: float = setting(
        1.0, "Typical P", "Keep tokens of typical surprise up to this total; 1 keeps all.",
        low=0.0, high=1.0, step=0.01, flag="--typical-p",
    )  # fmt: skip
    repetition_penalty: float = setting(
        1.0, "Repetition penalty", "Makes tokens that already occurred less likely; 1 is off.",
        low=0.01, high=10.0, step=0.05, flag="--repetition-penalty",
    )  # fmt: skip
    presence_penalty: float = setting(
        0.0, "Presence penalty", "Taken once from each token that occurred; 0 is off.", low=-2.0,
        high=2.0, step=0.1, flag="--presence-penalty",
    )  # fmt: skip
    frequency_penalty: float = setting(
        0.0, "Frequency penalty", "Taken for each time that a token occurred; 0 is off.", low=-2.0,
        high=2.0, step=0.1, flag="--frequency-penalty",
    )  # fmt: skip
    penalty_last_n: int = setting(
        -1, "Penalty window", "Tokens that the penalties look back over; -1 is the whole text.",
        unit="tokens", at_low="whole text", low=-1, high=16_777_216, step=64,
        flag="--penalty-last-n",
    )  # fmt: skip
    seed: int | None = setting(
        None, "Seed", "Same seed, same text; empty draws a new one each time.", low=0,
        high=2**63 - 1, step=1, flag="--seed",
    )  # fmt: skip
    max_tokens: int | None = setting(
        None, "Answer length", "Most tokens in an answer; empty is up to the context.",
        unit="tokens", low=0, high=16_777_216, step=64, flag="--max-tokens",
    )  # fmt: skip
    logit_bias: dict[int, float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How the local API is offered."""

    host: str = setting(
        "127.0.0.1", "Address", "Where to listen; any address but this PC's own needs the API key.",
        flag="--host",
    )  # fmt: skip
    port: int = setting(
        8080, "Port", "0 takes a free one.", low=0, high=65535, step=1, flag="--port"
    )
    require_key: bool = setting(
        False, "Require the API key", "Also of programs on this PC.", flag="--require-key"
    )
    allowed_origins: list[str] = setting(
        [], "Web pages", "Origins whose pages may use the API, such as http://localhost:5173.",
        flag="--cors",
    )  # fmt: skip
    allowed_hosts: list[str] = setting(
        [], "Host names", "Names, beside this PC's own, under which clients reach it.",
        flag="--allow-host",
    )  # fmt: skip
    body_limit: int = setting(
        64, "Largest request", "Larger ones are refused.",
        unit="MiB", low=1, high=1024, step=16, flag="--body-limit",
    )  # fmt: skip
    max_tokens: int | None = setting(
        None, "Answer limit", "Most tokens of any answer; by default up to the context.",
        unit="tokens", low=1, high=16_777_216, step=64, flag="--max-tokens",
    )  # fmt: skip
    thinking: str = setting(
        "off", "Thinking", "Whether models think where a request does not say; model leaves it to them.",
        choices=("off", "on", "model"), flag="--thinking",
    )  # fmt: skip
    load_balancing: bool = setting(
        False, "Share the load", "Any model answers: the first one that is free, in their order.",
        flag="--load-balancing",
    )  # fmt: skip
    unknown_model: str = setting(
        "auto", "Unknown model names",
        "primary answers with the first model, refuse with an error; auto refuses where there are several.",
        choices=("auto", "primary", "refuse"), flag="--unknown-model",
    )  # fmt: skip
    routing_queue_limit: int = setting(
        32, "Queue", "Requests that may wait for a busy model; more are told to come again later.",
        low=0, high=100_000, step=8, flag="--routing-queue-limit",
    )  # fmt: skip
    agent_turn_cache: bool = setting(
        True, "Agent turn cache",
        "Keep the state after each answer, so that a tool's result is all that the next turn must read.",
        flag="--agent-turn-cache",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_bounds(self)
        for origin in self.allowed_origins:
            if not re.fullmatch(r"[\w+.-]+://[^/\s*]+/?", origin):
                raise BadRequest(
                    f"Web pages: found {origin!r}, expected an origin such as http://localhost:5173."
                )


@dataclass(frozen=True, slots=True)
class DiskCacheConfig:
    """How conversations are kept on disk, so that their beginnings need not be read again after a restart."""

    disk_cache: bool = setting(
        False, "Keep conversations on disk",
        "Conversations need not be read anew after a restart. The files are encrypted, and their key is in "
        "the system's keyring.",
        flag="--disk-cache",
    )  # fmt: skip
    disk_cache_dir: str | None = setting(
        None, "Folder", "Where they are kept; by default in the user's cache folder.",
        flag="--kv-cache-dir",
    )  # fmt: skip
    disk_cache_limit: int = setting(
        20_480, "Most on disk", "What was not used for longest goes first.",
        unit="MiB", low=64, high=16_777_216, step=1024, flag="--kv-cache-budget",
    )  # fmt: skip
    disk_cache_days: int = setting(
        30, "Longest on disk", "What was not used for so many days is deleted.",
        unit="days", low=1, high=3650, step=1, flag="--kv-cache-days",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What the application and the command line remember between starts."""

    models_dir: str | None = setting(
        None,
        "Models folder",
        "Where downloads and copies go; by default in the user's data folder.",
    )
    extra_model_dirs: list[str] = setting(
        [], "Other model folders", "Read in place, never changed."
    )
    theme: str = setting(
        "system", "Theme", "Colours of the window.", choices=("system", "light", "dark")
    )
    language: str = setting(
        "system", "Language", "Language of the window.", choices=("system", "en", "ko")
    )
    text_size: float = setting(
        100, "Text size", "Size of all text.", unit="%", low=70, high=200, step=10
    )
    expert: bool = setting(False, "Expert", "Show the pages for tuning, devices and serving.")
    load_last_model: bool = setting(True, "Load last model", "Load it again when the window opens.")
    last_model: str | None = setting(None, "Last model", "The file that was loaded last.")
    system_prompt: str = setting("", "System prompt", "Sent ahead of each new chat.")
    mark_drafted: bool = setting(
        False, "Mark drafted tokens", "Dotted lines under what a draft guessed in answers."
    )
    engine: dict[str, Any] = setting(
        {}, "How models run", "By setting; what the user changed from the defaults."
    )
    serve_at_start: bool = setting(
        False, "Start with the app", "Switch the local API on when the window opens."
    )
    server: dict[str, Any] = setting(
        {}, "Local API", "By setting; what the user changed from the defaults."
    )
    cache: dict[str, Any] = setting(
        {}, "Disk cache", "By setting; what the user changed from the defaults."
    )
    devices: dict[str, Any] = setting(
        {}, "Device of each model", "By model file; where it runs, if not where all others do."
    )
    drafts: dict[str, Any] = setting(
        {}, "Draft of each model", "By model file; what guesses, if not what the engine chooses."
    )
    presets: dict[str, dict[str, Any]] = setting(
        {}, "Presets", "By name; what is changed from the defaults of how models run."
    )
    sampling: dict[str, dict[str, Any]] = setting(
        {}, "Sampling of each model", "By model file; what the user changed from the defaults."
    )

    def __post_init__(self) -> None:
        check_bounds(self)


Config = TypeVar("Config", EngineConfig, ServerConfig, DiskCacheConfig)


def engine_config(settings: AppSettings, **changes: Any) -> EngineConfig:
    """How models run where nobody says otherwise: the user's choices, then `changes`.

    A kept choice that is not sound any more counts as none; a bad change raises `BadRequest`.
    """
    config = dataclasses.replace(_kept(EngineConfig, settings.engine), **changes)
    return dataclasses.replace(
        config,
        precision=Precision(config.precision),
        spec=Spec(config.spec),
        draft_residency=Residency(config.draft_residency),
    )


def config_of(settings: AppSettings, path: Path) -> EngineConfig:
    """How one model runs: as all others, on the device and with the draft chosen for it.

    A draft's file that is gone counts as no choice.
    """
    config = engine_config(settings)
    device, draft = settings.devices.get(str(path)), settings.drafts.get(str(path))
    if isinstance(device, str):
        config = dataclasses.replace(config, device=device)
    if draft == Spec.OFF.value:
        return dataclasses.replace(config, spec=Spec.OFF)
    if isinstance(draft, str) and (draft in FILELESS_DRAFTERS or Path(draft).exists()):
        spec = Spec.AUTO if config.spec is Spec.OFF else config.spec
        config = dataclasses.replace(config, draft=draft, spec=spec)
    return config


def server_config(settings: AppSettings) -> ServerConfig:
    """How the application offers the API; a kept choice that is not sound any more counts as none."""
    return _kept(ServerConfig, settings.server)


def disk_cache_config(settings: AppSettings) -> DiskCacheConfig:
    """How the application keeps conversations on disk; a choice that is not sound counts as none."""
    return _kept(DiskCacheConfig, settings.cache)


def _kept(cls: type[Config], kept: dict[str, Any]) -> Config:
    config = cls()
    for name, value in kept.items():
        if name in settings_of(cls):
            with contextlib.suppress(BadRequest, TypeError, ValueError):
                config = dataclasses.replace(config, **{name: value})
    return config


def changed_settings(config: Config) -> dict[str, Any]:
    """What differs from the defaults, as `AppSettings` keeps it."""
    usual = type(config)()
    values = {name: getattr(config, name) for name in settings_of(type(config))}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


@dataclass(frozen=True, slots=True)
class Plan:
    """The resolved configuration of one loaded model: all numbers final, nothing optional.

    `page_tokens` tokens a page, `n_pages` pages in the pool, `max_ctx` tokens a sequence,
    `n_slots` recurrent states (0 for models that have none), `cache_bytes` of RAM for copies of both.
    """

    path: Path
    device: str
    threads: int
    precision: Precision
    max_ctx: int
    max_concurrency: int
    prefill_chunk: int
    page_tokens: int
    n_pages: int
    n_slots: int
    chat_template_file: str | None
    cache_bytes: int = 0
    spec: Spec = Spec.AUTO
    draft: Path | None = None
    budget: int | None = None
    draft_parked: bool = False
    notes: tuple[str, ...] = ()
