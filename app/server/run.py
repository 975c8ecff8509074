"""The local API inside the application: on and off, who reaches it, its key."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from PySide6.QtCore import QDateTime, QObject, Signal, Slot

from app.page import Services
from engine import cards
from engine.api import auth
from engine.config import ServerConfig, changed_settings, server_config
from engine.connect import NO_KEY, Target, address, own_addresses
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.api.server import Server
    from engine.api.turn import Live

HERE, GUARDED, NETWORK = "here", "guarded", "network"
REACHES = {HERE: ("127.0.0.1", False), GUARDED: ("127.0.0.1", True), NETWORK: ("0.0.0.0", True)}
"""Who can connect, as address and whether the key is asked for; other reaches are addresses of this PC."""

_CLOSE_S = 2.0
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


class LocalServer(QObject):
    """Serves the application's engine to other programs; outlives the page, ends with the controller.

    All work is done on other threads; one change follows the other, and the newest wish holds.

    Signals:
        changed: anything that the page shows is different.
    """

    changed = Signal()
    _exchanged = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__(services.controller)
        self._services = services
        self._server: Server | None = None
        self._wanted = self._busy = self._again = self._free_port = False
        self._closing = threading.Event()
        self.since: QDateTime | None = None
        self.key = ""
        self.problem = ""
        self.port_taken = False
        self.addresses: list[tuple[str, str]] = []
        self._exchanged.connect(services.controller.look_again)
        services.controller.model_changed.connect(self._read_vocabulary)
        services.controller.closing.connect(self._on_closing)

    @classmethod
    def of(cls, services: Services) -> LocalServer:
        """The one server of the application, made on first use."""
        found = services.controller.findChild(cls)
        return found if found is not None else cls(services)

    # What is there

    @property
    def config(self) -> ServerConfig:
        """How it is, or will be, offered."""
        return server_config(self._services.settings.value)

    @property
    def state(self) -> str:
        """ "off", "starting", "on" or "stopping"."""
        if self._busy:
            return "starting" if self._wanted else "stopping"
        return "on" if self._server is not None and self._server.running else "off"

    @property
    def reach(self) -> str:
        """Who can connect: one of `REACHES`, or the one address of this PC that is listened on."""
        config = self.config
        now = (config.host, config.require_key or not _is_here(config.host))
        return next((name for name, value in REACHES.items() if value == now), config.host)

    @property
    def url(self) -> str:
        """Where programs on this PC reach it, without /v1."""
        if self._server is not None and self.state == "on":
            return self._server.url
        return address(self.config.host, self.config.port)

    @property
    def urls_of_others(self) -> list[str]:
        """Where programs on other PCs reach it, without /v1."""
        port = urlsplit(self.url).port or self.config.port
        hosts = [host for host, _ in self.addresses] if self.reach == NETWORK else []
        return [address(host, port) for host in hosts if ":" not in host]

    def target(self) -> Target | None:
        """What other programs need to know; None while no model is loaded."""
        model = self._services.controller.model
        if model is None:
            return None
        key = self.key if self.reach != HERE and self.key else NO_KEY
        return Target(self.url, cards.stem(model.name), model.max_ctx, key)

    def requests(self, texts: bool) -> list[Live]:
        """What is being answered now, the oldest first; what it is about only with `texts`."""
        return self._server.requests(texts) if self._server is not None else []

    def guests(self) -> list[str]:
        """The models that clients had loaded beside the one of this window."""
        return self._server.guests() if self._server is not None else []

    # Commands

    def set_on(self, on: bool) -> None:
        """Start or stop it."""
        if on != self._wanted or (on and self.state == "off"):
            self._wanted = on
            self._renew()

    def configure(self, **changes: Any) -> None:
        """Keep settings of `ServerConfig`; a running server starts anew with them."""
        config = dataclasses.replace(self.config, **changes)
        if config == self.config:
            return
        self._services.settings.update(server=changed_settings(config))
        self.problem, self.port_taken = "", False
        if self._wanted:
            self._renew()
        self.read_key()
        self.changed.emit()

    def set_reach(self, reach: str) -> None:
        """Let these connect: one of `REACHES`, or who reaches an address of this PC, with the key."""
        host, require_key = REACHES.get(reach, (reach, True))
        self.configure(host=host, require_key=require_key)

    def look_for_addresses(self) -> None:
        """Find out under which addresses other PCs know this one."""
        self._run(own_addresses, self._on_addresses)

    def take_free_port(self) -> None:
        """Start on a port that no program uses, and keep it."""
        self._wanted = self._free_port = True
        self._renew()

    def unload_guests(self) -> None:
        """Free the memory of what clients had loaded."""
        if self._server is not None:
            self._server.unload_guests()

    def read_key(self) -> None:
        """Fetch the key where clients need one; it is made at the first call."""
        if self.reach != HERE and not self.key:
            self._run(lambda: auth.api_key(), self._on_key)

    def renew_key(self) -> None:
        """A new key; the former one is refused from then on."""
        self._run(lambda: auth.renew_key(), self._on_new_key)

    # Work on other threads

    def _run(self, work: Any, then: Any) -> None:
        self._services.library.jobs.run(self, lambda cancel: work(), then, self._on_failed)

    def _renew(self) -> None:
        if self._busy:
            self._again = True
            return
        self._busy, self._again = True, False
        self.problem, self.port_taken = "", False
        self._services.controller.start()
        config = self.config if self._wanted else None
        if config is not None and self._free_port:
            config = dataclasses.replace(config, port=0)
        former = self._server
        self._services.library.jobs.run(
            self, lambda cancel: self._exchange(former, config), self._on_served, self._on_refused
        )
        self.changed.emit()

    def _exchange(self, former: Server | None, config: ServerConfig | None) -> Server | None:
        if former is not None:
            former.stop()
        if config is None or (engine := self._engine()) is None:
            return None
        from engine.api.served import Served
        from engine.api.server import Server

        server = Server(config, [Served(engine, on_change=self._exchanged.emit)])
        server.start()
        if self._closing.is_set():
            server.stop()
        return server

    def _engine(self) -> Any:
        """The application's engine, once it is made; None when the application ends before."""
        while not self._closing.wait(0.02):
            if (engine := self._services.controller.engine) is not None:
                return engine
        return None

    # Back on the GUI thread

    def _on_served(self, server: Server | None) -> None:
        self._busy, self._server = False, server
        self.since = QDateTime.currentDateTime() if server is not None else None
        if server is not None and self._free_port:
            self._free_port = False
            now = dataclasses.replace(self.config, port=server.port)
            self._services.settings.update(server=changed_settings(now))
        if server is not None and server.key is not None:
            self.key = server.key
        self._go_on()
        self._read_vocabulary()

    def _on_refused(self, error: Exception) -> None:
        self._busy, self._server, self.since = False, None, None
        self._free_port = False
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _TAKEN:
            self.port_taken = True
            text = self.tr("Port {port} is used by another program, or kept for the system.")
            self.problem = text.format(port=self.config.port)
        else:
            self._on_failed(error)
        self._wanted = self._wanted and self._again
        self._go_on()

    def _go_on(self) -> None:
        if self._again:
            self._renew()
        self.changed.emit()

    @Slot()
    def _read_vocabulary(self) -> None:
        """Before a client asks for a form, whose reading would hold up the window and all answers."""
        if self.state == "on" and self._services.controller.model is not None:
            engine = self._services.controller.engine
            self._run(engine.read_vocabulary, lambda _: None)

    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, EngineError):
            raise error
        self.problem = str(error)
        self.changed.emit()

    def _on_addresses(self, addresses: list[tuple[str, str]]) -> None:
        if addresses != self.addresses:
            self.addresses = addresses
            self.changed.emit()

    def _on_key(self, key: str) -> None:
        self.key = key
        self.changed.emit()

    def _on_new_key(self, key: str) -> None:
        self._on_key(key)
        if self._wanted and self.reach != HERE:
            self._renew()

    @Slot()
    def _on_closing(self) -> None:
        """End all answers before the engine goes; the window is hidden, so that waiting shows nowhere."""
        self._closing.set()
        if (server := self._server) is not None:
            with contextlib.suppress(EngineError):
                server.stop(_CLOSE_S)


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
