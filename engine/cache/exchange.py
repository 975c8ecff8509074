"""Prefixes taken out of a model, into it again, and to and from an archive."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

from engine.cache.host import Copy
from engine.cache.prefix import PrefixCache
from engine.cache.snapshot import Archive, Blob, Snapshot
from engine.pages import Node

PART = 64 << 20
"""Bytes that an archive is given at once at most: answers that are being written wait meanwhile."""


def take_out(
    cache: PrefixCache,
    tokens: Seq[int],
    full_pages: bool = False,
    first: int = 0,
    most: int | None = None,
) -> Snapshot | None:
    """A copy of the longest known prefix of `tokens`, its `first` pages left out.

    It ends with a full page if asked for, and without a state where there are more pages than `most` bytes.
    None where nothing more is known, or RAM is short.
    """
    nodes = cache.known(tokens, full_pages)
    if len(nodes) <= first:
        return None
    whole = True
    if most is not None:
        n = first + max(1, most // cache.memory.page_bytes)
        nodes, whole = nodes[:n], len(nodes) <= n
    pages: list[Blob] = []
    for node in nodes[first:]:
        blob = node.copy.blob if node.copy else cache.memory.read_page(node.page)
        if blob is None:
            return None
        pages.append(blob)
    state = None
    if cache.states is not None and whole:
        last = nodes[-1]
        state = last.state.blob if last.state else cache.memory.read_state(last.slot)
        if state is None:
            return None
    cache.memory.settle()
    known = tuple(token for node in nodes for token in node.tokens)
    size = cache.pool.page_tokens
    return Snapshot(cache.fingerprint, size, known, tuple(pages), state, first)


def take_in(cache: PrefixCache, snapshot: Snapshot) -> int:
    """Bring a snapshot to RAM; how many of its tokens are known now, from the first on.

    As much of it as RAM has room for, for recurrent models all or nothing. 0 for one of another model, or
    where the pages that it leaves out are not known.
    """
    size, memory, host = cache.pool.page_tokens, cache.memory, cache.host
    parts = [snapshot.tokens[i : i + size] for i in range(0, len(snapshot.tokens), size)]
    recurrent = cache.states is not None
    fits = (
        snapshot.fingerprint == cache.fingerprint
        and snapshot.page_tokens == size
        and len(parts) == snapshot.first + len(snapshot.pages)
        and all(page.nbytes == memory.page_bytes for page in snapshot.pages)
        and (snapshot.state is not None) == recurrent
        and (snapshot.state is None or snapshot.state.nbytes == memory.state_bytes)
    )
    if not fits:
        return 0
    room = host.room - (memory.state_bytes if recurrent else 0)
    most = room // memory.page_bytes if memory.page_bytes else len(parts)
    if most < len(parts) and (recurrent or most <= snapshot.first):
        return 0
    cache.touch(cache.known(snapshot.tokens))
    nodes: list[Node] = []
    for i, part in enumerate(parts[:most]):
        node = cache.pool.find(nodes[-1] if nodes else None, part)
        if node is None and i < snapshot.first:
            return 0
        nodes.append(node or cache.pool.known(nodes[-1] if nodes else None, part))
        if i >= snapshot.first and nodes[-1].page < 0 and nodes[-1].copy is None:
            host.reserve(memory.page_bytes)
            nodes[-1].copy = Copy(nodes[-1], snapshot.pages[i - snapshot.first])
            host.keep(nodes[-1].copy)
    last = nodes[-1]
    if snapshot.state is not None and last.slot < 0 and last.state is None:
        host.reserve(memory.state_bytes)
        last.state, last.lasting = Copy(last, snapshot.state, is_state=True), True
        host.keep(last.state)
    cache.touch(nodes)
    return sum(len(node.tokens) for node in cache.known(snapshot.tokens))


def offer(
    archive: Archive,
    cache: PrefixCache,
    tokens: Seq[int],
    later: Callable[[Callable[[], None]], None],
    first: int | None = None,
) -> None:
    """Give an archive the full pages of `tokens` that it lacks, from page `first` on.

    A part now; the next one, when that is written, as work for `later`, which may be called on any thread.
    """
    if first is None:
        first = archive.reaches(cache.fingerprint, cache.pool.page_tokens, tokens)
    snapshot = take_out(cache, tokens, full_pages=True, first=first, most=PART)
    if snapshot is not None:
        end = first + len(snapshot.pages)
        archive.write(snapshot, lambda: later(lambda: offer(archive, cache, tokens, later, end)))


def lacking(
    archive: Archive, cache: PrefixCache, tokens: Seq[int]
) -> Callable[[], Snapshot | None] | None:
    """What reads from an archive, on any thread, that is not known of a prompt; None where it has no more."""
    size, fingerprint, wanted = cache.pool.page_tokens, cache.fingerprint, tokens[:-1]
    first = len(cache.known(wanted, full_pages=True))
    if archive.reaches(fingerprint, size, wanted) <= first:
        return None
    return lambda: archive.read(fingerprint, size, wanted, first)
