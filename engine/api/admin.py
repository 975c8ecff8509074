"""`/admin`: load and unload models, park and unpark them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from engine import library, settings_store
from engine.api.errors import ApiError
from engine.api.schemas import Body
from engine.api.served import Models, Served
from engine.api.wire import JsonResponse
from engine.config import engine_config
from engine.engine import Engine
from engine.entry import CHAT, Entry

router = APIRouter(prefix="/admin")


class AdminBody(Body):
    """Which model; without a name the first one."""

    model: str = ""


@router.post("/load")
async def load(body: AdminBody, request: Request) -> Response:
    """Load a model that was unloaded, or one of this PC's library by its name; never by a path."""
    models: Models = request.app.state.models
    served = models.find(body.model) if body.model else next(iter(models.all), None)
    if served is None or (served.last is None and served.loaded is None):
        path = await asyncio.to_thread(_in_library, body.model)
        config = engine_config(settings_store.load()[0])
        engine = Engine()
        engine.start()
        try:
            await asyncio.to_thread(engine.load, path, config)
        except BaseException:
            engine.close()
            raise
        served = Served(engine, own=True)
        models.all.append(served)
    elif served.loaded is None:
        await served.reload()
    models.wake()
    return _done(served)


@router.post("/unload")
async def unload(body: AdminBody, request: Request) -> Response:
    """Free a model's memory; what it is writing ends."""
    served = _chosen(request, body)
    await served.unload(parked=False)
    return _done(served)


@router.post("/park")
async def park(body: AdminBody, request: Request) -> Response:
    """Free a model's memory until it is unparked; requests for it are refused meanwhile."""
    served = _chosen(request, body)
    await served.unload(parked=True)
    return _done(served)


@router.post("/unpark")
async def unpark(body: AdminBody, request: Request) -> Response:
    """Bring a parked model back."""
    models: Models = request.app.state.models
    served = _chosen(request, body)
    if served.loaded is None:
        await served.reload()
        models.wake()
    return _done(served)


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


def _in_library(name: str) -> Path:
    found: list[Entry] = []
    library.scan(settings_store.load()[0], found.append, threading.Event())
    wanted = name.casefold()
    for entry in found:
        if entry.kind == CHAT and wanted in (entry.name.casefold(), entry.path.stem.casefold()):
            return entry.path
    raise ApiError(
        404, f"No model on this PC is called {name[:100]!r}.", "model_not_found", "model"
    )
