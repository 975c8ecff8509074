"""`/admin`: load and unload models, park and unpark them, see and empty the cache."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from engine import library, settings_store
from engine.api.errors import ApiError
from engine.api.schemas import Body
from engine.api.served import Models, Served
from engine.api.wire import JsonResponse
from engine.cache.archive import empty, held
from engine.config import DiskCacheConfig, EngineConfig, config_of, disk_cache_config
from engine.engine import Engine
from engine.entry import CHAT, Entry

router = APIRouter(prefix="/admin")


class AdminBody(Body):
    """Which model; without a name the first one."""

    model: str = ""


_FIRST = AdminBody()


@router.post("/load")
async def load(request: Request, body: AdminBody = _FIRST) -> Response:
    """Load a model that was unloaded, or one of this PC's library by its name; never by a path.

    It takes the place of one that was unloaded, else it comes beside those that are there.
    """
    async with request.app.state.loading:  # who asks for the same model meanwhile finds it loaded
        served = await _loaded(request.app.state.models, body)
    return _done(served)


async def _loaded(models: Models, body: AdminBody) -> Served:
    served = models.find(body.model) if body.model else next(iter(models.all), None)
    if served is None or (served.last is None and served.loaded is None):
        path, config = await asyncio.to_thread(_in_library, body.model)
        room = (one for one in models.all if not (one.loaded or one.parked or one.given_name))
        if (served := next(room, None)) is not None:
            await served.load(path, config)
        else:
            served = Served(Engine(), own=True)
            served.engine.keep_in(models.all[0].engine.archive if models.all else None)
            served.engine.start()
            try:
                await served.load(path, config)
            except BaseException:
                served.engine.close()
                raise
            models.all.append(served)
    elif served.loaded is None:
        await served.reload()
    models.wake()
    return served


@router.post("/unload")
async def unload(request: Request, body: AdminBody = _FIRST) -> Response:
    """Free a model's memory; what it is writing ends."""
    served = _chosen(request, body)
    await served.unload(parked=False)
    return _done(served)


@router.post("/park")
async def park(request: Request, body: AdminBody = _FIRST) -> Response:
    """Free a model's memory until it is unparked; requests for it are refused meanwhile."""
    served = _chosen(request, body)
    await served.unload(parked=True)
    return _done(served)


@router.post("/unpark")
async def unpark(request: Request, body: AdminBody = _FIRST) -> Response:
    """Bring a parked model back."""
    models: Models = request.app.state.models
    served = _chosen(request, body)
    async with request.app.state.loading:
        if served.loaded is None:
            await served.reload()
            models.wake()
    return _done(served)


@router.get("/cache")
async def cache(request: Request) -> Response:
    """What is kept of prompts: by each model in memory, and on disk."""
    models: Models = request.app.state.models
    kept = [{"model": one.name, **asdict(one.engine.metrics().cache)} for one in models.all]
    engines = [one.engine for one in models.all]
    on_disk = await asyncio.to_thread(held, engines, _disk_cache())
    on = any(engine.archive is not None for engine in engines)
    return JsonResponse({"models": kept, "disk": {"on": on, **asdict(on_disk)}})


@router.post("/cache/clear")
async def clear_cache(request: Request) -> Response:
    """Drop all that is kept of prompts, in memory and on disk."""
    return await _empty(request, forget=False)


@router.post("/cache/forget")
async def forget_cache(request: Request) -> Response:
    """As clear, and the key of the files too."""
    return await _empty(request, forget=True)


async def _empty(request: Request, forget: bool) -> Response:
    models: Models = request.app.state.models
    engines = [one.engine for one in models.all]
    on_disk = await asyncio.to_thread(empty, engines, _disk_cache(), forget)
    return JsonResponse({"disk": asdict(on_disk)})


def _disk_cache() -> DiskCacheConfig:
    return disk_cache_config(settings_store.load()[0])


def _chosen(request: Request, body: AdminBody) -> Served:
    models: Models = request.app.state.models
    if body.model:
        return models.named(body.model)
    if not models.all:
        raise ApiError(404, "This server has no model.", "model_not_found")
    return models.all[0]


def _done(served: Served) -> Response:
    answer: dict[str, Any] = {"model": served.name, "state": served.engine.status().state}
    if served.parked:
        answer["state"] = "parked"
    return JsonResponse(answer)


def _in_library(name: str) -> tuple[Path, EngineConfig]:
    """The model of that name, and how the user runs it."""
    found: list[Entry] = []
    settings = settings_store.load()[0]
    library.scan(settings, found.append, threading.Event())
    wanted = name.casefold()
    for entry in found:
        if entry.kind == CHAT and wanted in (entry.name.casefold(), entry.path.stem.casefold()):
            return entry.path, config_of(settings, entry.path)
    raise ApiError(
        404, f"No model on this PC is called {name[:100]!r}.", "model_not_found", "model"
    )
