"""A client of the API for measurements, a process of its own as users' clients are; runs as a file."""

from __future__ import annotations

import json
import socket
import sys
import time

END = b"0\r\n\r\n"
_PATIENCE_S = 30.0


def main(port: int, spin: bool) -> None:
    """For each line of stdin, a body in JSON: ask for its chat, and write when that began and when each event
    with " word" came, in seconds of `time.perf_counter`.

    With `spin` it looks without a pause, so that the time to wake it is not the API's.
    """
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for line in sys.stdin:
            body = line.strip().encode()
            head = (
                "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            connection.settimeout(_PATIENCE_S)
            began = time.perf_counter()
            connection.sendall(head.encode() + body)
            if spin:
                connection.setblocking(False)
            print(json.dumps([began, *_arrivals(connection)]), flush=True)


def _arrivals(connection: socket.socket) -> list[float]:
    """When each piece of text came, up to the end of the stream."""
    seen: list[float] = []
    data = b""
    while not data.endswith(END):
        try:
            part = connection.recv(1 << 16)
        except BlockingIOError:
            continue
        now = time.perf_counter()
        if not part:
            raise ConnectionError("The server closed the connection.")
        data += part
        *whole, data = data.split(b"\n\n")
        seen += [now] * sum(piece.count(b" word") for piece in whole)
    return seen


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "spin")
