"""The errors of the engine: each message says what was found, what was expected and what to do."""

from __future__ import annotations


class EngineError(Exception):
    """Anything that a user can be told about; `str(error)` is fit to be shown."""


class ModelFileError(EngineError):
    """A model file is damaged, cut off, or not a model file."""


class UnsupportedModel(EngineError):
    """A sound file that this version cannot run: unknown architecture, type or variant."""


class BadRequest(EngineError):
    """A request or setting that cannot be served as it stands."""


class ContextOverflow(BadRequest):
    """The prompt does not fit the context; the message holds both numbers."""

    def __init__(self, message: str, prompt_tokens: int = 0, max_ctx: int = 0) -> None:
        super().__init__(message)
        self.prompt_tokens = prompt_tokens
        self.max_ctx = max_ctx


class NoModel(BadRequest):
    """There is no model for the request, or not any more; it may be sent again."""


class TemplateError(BadRequest):
    """The chat template refused the messages, or failed."""


class OutOfMemory(EngineError):
    """Memory is short; the message names the device, the need with its addends, and what is free."""


class NumericError(EngineError):
    """The model produced NaN or infinity; the message names the layer where it first appears."""


class KernelError(EngineError):
    """A compute kernel failed to build or to run."""


class DeviceFault(KernelError):
    """The card stopped with an error that stays until the program ends; other devices still work."""


class LoadCancelled(EngineError):
    """The user stopped a load; the former model is untouched."""


def as_engine_error(error: Exception) -> EngineError:
    """What a user is told of any error."""
    if isinstance(error, EngineError):
        return error
    return KernelError(
        f"The request failed in a way that was not foreseen ({type(error).__name__}: {error})."
        " The log has the details; please report it."
    )
