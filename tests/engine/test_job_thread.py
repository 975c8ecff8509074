"""Threads beside the serving thread outlive what is done on them."""

from __future__ import annotations

import threading

import pytest

from engine.job_thread import JobThread


def test_a_job_that_fails_holds_up_none_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    thread, done, seen = JobThread("one"), threading.Event(), []

    def fail() -> None:
        raise RuntimeError("the job's own fault")

    thread.do(lambda: seen.append(threading.current_thread()))
    thread.do(fail)
    thread.do(lambda: (seen.append(threading.current_thread()), done.set()))
    assert done.wait(10)
    assert len(seen) == 2 and seen[0] is seen[1]
    assert "the job's own fault" in caplog.text
    thread.close()
    seen[0].join(10)
    assert not seen[0].is_alive()
