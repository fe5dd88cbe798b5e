"""The pytest fixture `standpipe_tap`: a tap on a virtual clock, also for decorated functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .testing import VirtualTap


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers", "standpipe_limits(limits): the limits of the pools of `standpipe_tap`"
    )


@pytest.fixture
def standpipe_tap(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VirtualTap]:
    """A tap in memory on a virtual clock.

    It is the default tap during the test, so that `@standpipe.limited` and the transports use it.
    The marker `standpipe_limits` gives its pools limits.
    """
    from . import _tap
    from .testing import VirtualTap

    marker = request.node.get_closest_marker("standpipe_limits")
    tap = VirtualTap(limits=marker.args[0] if marker else None)
    monkeypatch.setattr(_tap, "_default", tap)
    yield tap
