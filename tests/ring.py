"""A keyring in memory, in the place of the system's."""

from __future__ import annotations


class Ring:
    """What `engine.keyring_store` needs of a keyring."""

    priority = 1

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, user: str) -> str | None:
        return self.held.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self.held[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        del self.held[service, user]
