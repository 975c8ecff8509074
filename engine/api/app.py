"""The ASGI application: all dialects behind the guard."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from engine.api import admin, anthropic, info, openai_chat, openai_responses, openai_text
from engine.api.errors import RESPONSES, ApiError, as_api_error, error_response, of_validation
from engine.api.guard import Guard
from engine.api.responses_store import ResponseStore
from engine.api.served import Models
from engine.errors import EngineError
from engine.version import version

ROUTERS = (
    openai_chat.router,
    openai_text.router,
    openai_responses.router,
    anthropic.router,
    info.router,
    admin.router,
)


def make_app(models: Models, key: str | None = None) -> ASGIApp:
    """The application that serves `models` to clients who send `key`, or to all where it is None."""
    return models.journal.keeping(Guard(bare_app(models), models.config, key))


def bare_app(models: Models) -> FastAPI:
    """The application without its guard."""
    app = FastAPI(
        title="Lucebox", version=version(), docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.models = models
    app.state.responses = ResponseStore()
    app.state.loading = asyncio.Lock()
    app.state.endpoints = sorted({r.path_format for router in ROUTERS for r in router.routes})  # type: ignore[attr-defined]
    for router in ROUTERS:
        app.include_router(router, responses=RESPONSES)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in (ApiError, EngineError, Exception):
        app.add_exception_handler(kind, _failed)
    return app


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(request, of_validation(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = {
        400: "The body cannot be read; expected JSON in UTF-8.",
        404: f"There is nothing at {request.method} {request.url.path[:200]}.",
        405: f"{request.method} is not possible at {request.url.path[:200]}.",
    }.get(error.status_code, str(error.detail))
    code = "unknown_endpoint" if error.status_code in (404, 405) else None
    response = error_response(request, ApiError(error.status_code, message, code))
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(request, as_api_error(error))
