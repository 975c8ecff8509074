"""What a cache tells of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheMetrics:
    """What is known of prefixes, and where it lies.

    Pages on the device: `running_pages` of one sequence each, `shared_pages` of several, `kept_pages` of
    none, `free_pages`; beside them `ram_pages` copies in RAM. `owners` counts all but the free ones by the
    owner of the requests that they are for, None where those had several, most pages first. States after
    prefixes: `device_states` and `ram_states`. All copies in RAM hold `ram_bytes` of `ram_limit`. Since the
    load: prompts that began with something known (`hits`) or not, tokens that this spared, pages and states
    moved to RAM, pages brought back, and sequences that gave their place to others.
    """

    running_pages: int = 0
    shared_pages: int = 0
    kept_pages: int = 0
    free_pages: int = 0
    owners: tuple[tuple[str | None, int], ...] = ()
    ram_pages: int = 0
    device_states: int = 0
    ram_states: int = 0
    ram_bytes: int = 0
    ram_limit: int = 0
    hits: int = 0
    misses: int = 0
    reused_tokens_total: int = 0
    moved_out_total: int = 0
    read_back_total: int = 0
    preempted_total: int = 0
