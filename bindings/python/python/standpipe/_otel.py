"""Attributes of the current OpenTelemetry span, if OpenTelemetry is in use."""

from __future__ import annotations

import sys

from ._native import Lease


def note(lease: Lease) -> None:
    """Adds what is known of an admitted call to the current span."""
    # A program that uses OpenTelemetry has imported it.
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    span = trace.get_current_span()
    if not span.is_recording():
        return
    span.set_attributes(
        {
            "standpipe.pool": lease.pool,
            "standpipe.agent": lease.agent,
            "standpipe.zone": lease.zone,
            "standpipe.waited_ms": round(lease.waited * 1000, 3),
            **{f"standpipe.cost.{unit}": amount for unit, amount in lease.cost.items()},
        }
    )
