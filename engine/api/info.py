"""What the server says of itself: health, models, `/props`, tokens and metrics."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import Field

from engine.api import metrics
from engine.api.errors import ApiError
from engine.api.messages import Message, Tool, plain_messages, plain_tools
from engine.api.schemas import Body, Many
from engine.api.served import Models, Served
from engine.api.wire import JsonResponse
from engine.config import SamplingParams
from engine.reasoning import EFFORTS, known_to
from engine.version import version

router = APIRouter()

PROPS_SCHEMA = 2
_CREATED = 1700000000
_EFFORTS = {
    "low": "Thinks briefly",
    "medium": "Thinks as much as most questions need",
    "high": "Thinks long",
    "x-high": "Thinks very long",
    "max": "Thinks as long as it can",
}


class TokenizeBody(Body):
    """A text, or a chat, to be turned into tokens."""

    model: str = ""
    content: str | None = None
    prompt: str | None = None
    text: str | None = None
    messages: Many[Message] | None = None
    tools: Many[Tool] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool = True
    add_special: bool | None = None
    add_special_tokens: bool | None = None
    parse_special: bool = False
    with_pieces: bool = False
    return_token_strs: bool = False


class DetokenizeBody(Body):
    """Tokens to be turned into text."""

    model: str = ""
    tokens: list[int] = Field(max_length=16_777_216)


@router.get("/")
@router.get("/health")
async def health(request: Request) -> Response:
    """Whether the server answers, and what its models do."""
    models: Models = request.app.state.models
    states = [{"id": one.name, "state": _state(one)} for one in models.all]
    return JsonResponse({"status": "ok", "models": states})


@router.get("/v1/models")
async def list_models(request: Request, client_version: str | None = None) -> Response:
    """All models; with `client_version` in the form that Codex reads."""
    models: Models = request.app.state.models
    if client_version is not None:
        found = [_codex(one, n) for n, one in enumerate(models.all, 1) if one.loaded]
        return JsonResponse({"models": found})
    data = [_model(one) for one in models.all]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
    return JsonResponse({"object": "list", "data": data, "has_more": False, **ends})


@router.get("/v1/models/{model:path}")
async def retrieve_model(model: str, request: Request) -> Response:
    """One model by its name."""
    return JsonResponse(_model(request.app.state.models.named(model)))


@router.post("/v1/embeddings")
async def create_embeddings() -> Response:
    """Refused: there are chat models only."""
    raise ApiError(
        400, "This server writes text and makes no embeddings. Use an embedding server for them.",
        "not_supported",
    )  # fmt: skip


@router.post("/tokenize")
async def tokenize(body: TokenizeBody, request: Request) -> Response:
    """The token ids of a text, or of a chat behind the model's template."""
    served: Served = request.app.state.models.look(body.model)
    texts = [text for text in (body.content, body.prompt, body.text) if text is not None]
    if len(texts) + (body.messages is not None) != 1:
        raise ApiError(400, "Expected exactly one of content, prompt, text and messages.")
    tokenizer, template = served.texts()
    if body.messages is not None:
        messages, tools = plain_messages(body.messages), plain_tools(body.tools)
        kwargs = body.chat_template_kwargs or {}
        ids = await asyncio.to_thread(
            template.encode, messages, tools or None, body.add_generation_prompt, **kwargs
        )
    else:
        bos = body.add_special_tokens if body.add_special is None else body.add_special
        bos = bool(bos) and tokenizer.bos_id is not None
        ids = await asyncio.to_thread(tokenizer.encode, texts[0], body.parse_special, bos)
    pieces = [tokenizer.token_text(token) for token in ids]
    return JsonResponse(
        {
            "tokens": [{"id": t, "piece": p} for t, p in zip(ids, pieces, strict=True)]
            if body.with_pieces
            else ids,
            "count": len(ids),
            "max_model_len": served.info.max_ctx,
            **({"token_strs": pieces} if body.return_token_strs else {}),
        }
    )


@router.post("/detokenize")
async def detokenize(body: DetokenizeBody, request: Request) -> Response:
    """The text of token ids."""
    served: Served = request.app.state.models.look(body.model)
    tokenizer, _ = served.texts()
    text = await asyncio.to_thread(tokenizer.decode, body.tokens, True)
    return JsonResponse({"content": text, "prompt": text})


@router.get("/metrics", response_class=PlainTextResponse)
def prometheus(request: Request) -> Response:
    """The engine's numbers, as Prometheus reads them."""
    models: Models = request.app.state.models
    return Response(metrics.text(models), media_type=metrics.MEDIA_TYPE)


@router.get("/props")
def props(request: Request) -> Response:
    """How the server is set up, in Lucebox Hub's schema."""
    models: Models = request.app.state.models
    first = models.all[0] if models.all else None
    info = first.loaded if first else None
    sampling = info.sampling if info else None
    config = first.engine.config if first else None
    template = first.engine.chat_template if first else None
    numbers = first.engine.metrics() if first else None
    drafting = numbers.speculation if numbers else None
    limits = info.thinking if info else None
    return JsonResponse(
        {
            "default_generation_settings": {
                "n_ctx": info.max_ctx if info else None,
                "temperature": sampling.temperature if sampling else None,
                "top_p": sampling.top_p if sampling else None,
                "top_k": sampling.top_k if sampling else None,
                "min_p": sampling.min_p if sampling else None,
                "repeat_penalty": sampling.repetition_penalty if sampling else None,
            },
            "model_alias": first.name if first else None,
            "model_path": info.path.name if info else None,
            "build_info": f"lucebox {version()}",
            "speculative_mode": drafting.drafter if drafting else "off",
            "server": {"name": "lucebox", "version": version(), "props_schema": PROPS_SCHEMA},
            "model": {
                "arch": info.architecture if info else None,
                "draft_path": Path(config.draft).name if config and config.draft else None,
                "tokenizer_id": info.name if info else None,
            },
            "runtime": {
                "backend": info.device.split(":")[0] if info else None,
                "target_device": info.device if info else None,
                "draft_device": None,
                "chunk": info.prefill_chunk if info else None,
                "max_concurrency": config.max_concurrency if config else None,
            },
            "reasoning": {
                "supported": template is not None and known_to(template.text) is not None,
                "default": models.config.thinking,
                "efforts": list(EFFORTS),
            },
            "model_card": info.card if info else None,
            "budget_envelope": {
                "max_tokens": models.config.max_tokens or (limits.max_tokens if limits else None),
                "think_max_tokens": limits.max_tokens - limits.reply if limits else None,
                "hard_limit_reply_budget": limits.reply if limits else None,
                "reasoning_effort_tiers": limits.tiers if limits else None,
            },
            "speculative": {
                "enabled": drafting is not None,
                "ddtree_budget": config.budget if config else None,
                "state": drafting.state if drafting else "off",
                "acceptance_length": drafting.acceptance_length if drafting else None,
                "speedup": drafting.speedup if drafting else None,
                "message": drafting.message if drafting else "",
            },
            "sampling": {"supported": [field.name for field in fields(SamplingParams)]},
            "prefix_cache": {
                "capacity": numbers.pages_total if numbers else 0,
                "in_use": numbers.pages_used + numbers.cache.kept_pages if numbers else 0,
                "lifetime_hits": numbers.cache.hits if numbers else 0,
            },
            "full_cache": None,
            "pflash": None,
            "tool_replay": None,
            "daemon": {"alive": True},
            "api": {"endpoints": request.app.state.endpoints},
            "capabilities": {"tools": True, "vision": False, "embeddings": False},
            "vision_supported": False,
            "routing": "load" if models.config.load_balancing else "name",
            "waiting": models.waiting,
            "queue_limit": models.config.routing_queue_limit,
            "models": [
                {
                    "id": one.name,
                    "state": _state(one),
                    "capacity": one.capacity,
                    "in_flight": one.in_flight,
                }
                for one in models.all
            ],
        }
    )


def _state(one: Served) -> str:
    return "parked" if one.parked else one.engine.status().state


def _model(one: Served) -> dict[str, Any]:
    info = one.loaded
    return {
        "id": one.name,
        "object": "model",
        "type": "model",  # Anthropic's keys stand beside OpenAI's
        "display_name": one.name,
        "created_at": "2023-11-14T22:13:20Z",
        "created": _CREATED,
        "owned_by": "lucebox",
        "context_length": info.max_ctx if info else None,
        "max_context_length": info.max_ctx if info else None,
        "max_model_len": info.max_ctx if info else None,
        "state": _state(one),
    }


def _codex(one: Served, priority: int) -> dict[str, Any]:
    return {
        "slug": one.name,
        "display_name": one.name,
        "description": f"{one.info.name}, on this PC",
        "default_reasoning_level": "low",
        "supported_reasoning_levels": [
            {"effort": effort, "description": text} for effort, text in _EFFORTS.items()
        ],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "context_window": one.info.max_ctx,
        "supports_reasoning_summaries": False,
        "supports_parallel_tool_calls": True,
    }
