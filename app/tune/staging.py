"""Settings that are being tried out: what would change for the loaded model, applied and undone as one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.forms import choice_words, words
from app.models.words import translate
from app.page import Services
from engine.config import (
    FILELESS_DRAFTERS,
    AppSettings,
    EngineConfig,
    Spec,
    changed_settings,
    config_of,
    engine_config,
    settings_of,
)

OFF = Spec.OFF.value


class Change(NamedTuple):
    """One line of what would change, in words."""

    title: str
    before: str
    after: str


class Staging(QObject):
    """What the user wants for one model beside how it was loaded.

    Nothing is kept or loaded before `apply`; what is applied is kept once the load has succeeded.

    Signals:
        changed: another wish, another model, or other settings.
        applied: the model was loaded as wished.
    """

    changed = Signal()
    applied = Signal()

    def __init__(self, services: Services, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._settings = services.settings
        self.value: AppSettings = self._settings.value
        self._applying: AppSettings | None = None
        self._former: AppSettings | None = None
        self._settings.changed.connect(self._on_settings)
        services.controller.model_changed.connect(self._on_model)
        services.controller.state_changed.connect(self._on_state)

    @property
    def path(self) -> Path | None:
        """The file of the loaded model."""
        model = self._services.controller.model
        return model.path if model is not None else None

    @property
    def config(self) -> EngineConfig:
        """How the model would run."""
        return config_of(self.value, self.path) if self.path else engine_config(self.value)

    @property
    def drafter(self) -> str:
        """What is wished to guess: "" is automatic, else "off", a name or a file."""
        config = self.config
        return OFF if config.spec is Spec.OFF else config.draft or ""

    @property
    def device(self) -> str:
        """Where the model is wished to run."""
        found = self.value.devices.get(str(self.path))
        return found if isinstance(found, str) else engine_config(self.value).device

    # Wishes

    def set(self, name: str, value: Any) -> None:
        """Wish for a value of a setting of `EngineConfig`; raises `BadRequest` for one out of bounds."""
        config = dataclasses.replace(engine_config(self.value), **{name: value})
        self._stage(engine=changed_settings(config))

    def set_drafter(self, drafter: str) -> None:
        """Wish for another drafter; see `drafter`."""
        kept = {k: v for k, v in self.value.drafts.items() if k != str(self.path)}
        engine = dict(self.value.engine)
        if drafter != OFF and engine.get("spec") == OFF:
            del engine["spec"]
        self._stage(engine=engine, drafts=kept | ({str(self.path): drafter} if drafter else {}))

    def set_device(self, device: str) -> None:
        """Wish for another device."""
        kept = {k: v for k, v in self.value.devices.items() if k != str(self.path)}
        if device != engine_config(self.value).device:
            kept[str(self.path)] = device
        self._stage(devices=kept)

    def take(self, engine: dict[str, Any]) -> None:
        """Wish for all settings of a preset."""
        self._stage(engine=dict(engine))

    def automatic(self) -> None:
        """Wish for what the engine chooses by itself."""
        path = str(self.path)
        self._stage(
            engine={},
            drafts={k: v for k, v in self.value.drafts.items() if k != path},
            devices={k: v for k, v in self.value.devices.items() if k != path},
        )

    def revert(self) -> None:
        """Wish for nothing."""
        self.value = self._settings.value
        self.changed.emit()

    def _stage(self, **changes: Any) -> None:
        self.value = dataclasses.replace(self.value, **changes)
        self.changed.emit()

    # What that means

    def changes(self) -> list[Change]:
        """What differs from how the model was loaded."""
        if self.path is None:
            return []
        now, then = self._services.controller.config, self.config
        return [
            Change(words(info.title), shown(name, getattr(now, name)), shown(name, getattr(then, name)))
            for name, info in settings_of(EngineConfig).items()
            if getattr(now, name) != getattr(then, name)
        ]  # fmt: skip

    def apply(self) -> None:
        """Load the model as wished; a load that fails leaves all as it was."""
        if self.path is not None:
            self._applying, self._former = self.value, self._settings.value
            self._services.controller.load(self.path, self.config)

    # The way back

    @Slot(object)
    def _on_model(self, model: Any) -> None:
        applying, self._applying = self._applying, None
        if applying is None or model is None:
            self.revert()
            return
        former = self._former
        self._settings.update(
            engine=applying.engine, drafts=applying.drafts, devices=applying.devices
        )
        self.value = self._settings.value
        self.changed.emit()
        self.applied.emit()
        if former is not None and _kept(former) != _kept(self.value):
            self._services.toast_undo(
                lambda: translate("tune", "The model runs with the new settings."),
                lambda: self._undo(former),
            )

    def _undo(self, former: AppSettings) -> None:
        self._stage(engine=former.engine, drafts=former.drafts, devices=former.devices)
        self.apply()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        if state in ("ready", "failed", "idle"):
            QTimer.singleShot(0, self, self._on_settled)  # after `model_changed` of a good load

    @Slot()
    def _on_settled(self) -> None:
        if self._services.controller.state != "loading":
            self._applying = None
            self.changed.emit()

    @Slot()
    def _on_settings(self) -> None:
        """Settings that were changed elsewhere hold here, where nothing else is wished."""
        if self._applying is None and _kept(self.value) != _kept(self._settings.value):
            self.value = self._settings.value
            self.changed.emit()


def _kept(value: AppSettings) -> tuple[Any, ...]:
    return value.engine, value.drafts, value.devices


def shown(name: str, value: Any) -> str:
    """A value of a setting of `EngineConfig` in words."""
    if value is None or value == "auto":
        return translate("tune", "automatic")
    if name == "draft":
        return drafter_title(str(value))
    if isinstance(value, bool) or not isinstance(value, int):
        return choice_words(str(value))
    return f"{value:,}"


def drafter_title(drafter: str) -> str:
    """How a drafter is called."""
    known = {
        "": translate("tune", "Automatic"),
        "ngram": translate("tune", "What the text repeats"),
        "mtp": translate("tune", "The model's own draft layer"),
        OFF: translate("tune", "Off"),
    }
    return known.get(drafter) or (drafter if drafter in FILELESS_DRAFTERS else Path(drafter).stem)
