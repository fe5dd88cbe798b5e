"""What `tap.status` returns: plain data that also prints well, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_BAR = 20


class PoolStatus(Mapping[str, Any]):
    """The status of a pool: a read-only mapping with the fields of `standpipe status --json`.

    >>> import standpipe
    >>> tap = standpipe.open("memory", limits={"doc/status": {"parallel": 2}})
    >>> with tap.reserve("doc/status", agent="blog"):
    ...     status = tap.status("doc/status")
    >>> status.in_flight, status["limits"][0]["held"]
    (1, 1)
    >>> print(status)
    doc/status  1 in flight, 0 waiting, green
      parallel  [##########----------]  1 of 2
      holds  blog  requests 1
    """

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._data[name]
        except KeyError:
            known = ", ".join(self._data)
            raise AttributeError(f"a status has no `{name}`; it has {known}") from None

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        data = self._data
        head = f"{data['pool']}  {data['in_flight']} in flight, {data['waiting']} waiting"
        yield f"{head}, {paused(data) or data['zone']}"
        width = max((len(limit["limit"]) for limit in data["limits"]), default=0)
        for limit in data["limits"]:
            used, usable = limit["used"] + limit["held"], limit_of(limit)
            full = min(_BAR, round(_BAR * used / usable)) if usable else _BAR
            bar = "#" * full + "-" * (_BAR - full)
            yield f"  {limit['limit']:<{width}}  [{bar}]  {used:,} of {usable:,}"
        for lease in data["leases"]:
            yield f"  holds  {lease['agent']}  {cost(lease.get('cost'))}"
        for ticket in data["tickets"]:
            yield f"  waits  {ticket['agent']}  {cost(ticket.get('cost'))}  {ticket['reason']}"

    def _repr_html_(self) -> str:
        import html

        data, text = self._data, html.escape
        pause = paused(data)
        state = pause or data["zone"]
        colour = {"green": "#2e7d32", "amber": "#b26a00", "red": "#c62828"}
        shade = "#c62828" if pause else colour.get(str(data["zone"]), "#555")
        rows = []
        for limit in data["limits"]:
            used, usable = limit["used"] + limit["held"], limit_of(limit)
            share = min(100, round(100 * used / usable)) if usable else 100
            bar = (
                "<div style='background:#8883;width:12em;height:.8em;display:inline-block'>"
                f"<div style='background:{shade};width:{share}%;height:100%'></div></div>"
            )
            figures = f"{used:,} of {usable:,}"
            rows.append((text(limit["limit"]), bar, figures))
        for lease in data["leases"]:
            rows.append(("holds", text(lease["agent"]), text(cost(lease.get("cost")))))
        for ticket in data["tickets"]:
            why = f"{cost(ticket.get('cost'))} · {ticket['reason']}"
            rows.append(("waits", text(ticket["agent"]), text(why)))
        cells = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        head = f"{data['in_flight']} in flight · {data['waiting']} waiting"
        return (
            f"<table><caption style='text-align:left'><b>{text(data['pool'])}</b> {head} "
            f"<span style='color:{shade}'>{text(str(state))}</span></caption>{cells}</table>"
        )


class Status(list[PoolStatus]):
    """The status of every pool."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no pool has been used yet"

    def _repr_html_(self) -> str:
        return "".join(pool._repr_html_() for pool in self) or "no pool has been used yet"


def limit_of(limit: dict[str, Any]) -> int:
    """Returns what may be used of a limit."""
    for name in ("effective", "amount"):
        if isinstance(limit.get(name), int):
            return int(limit[name])
    return 0


def cost(amounts: Any) -> str:
    if not isinstance(amounts, dict):
        return ""
    return ", ".join(f"{unit} {amount:,}" for unit, amount in amounts.items())


def paused(data: Mapping[str, Any]) -> str:
    """`paused for 30.0 s by ops`; empty if the pool is not paused."""
    pause = data.get("pause")
    if not pause:
        return ""
    by = f" by {pause['by']}" if pause.get("by") else ""
    return f"paused for {seconds(pause['for_ms'])}{by}"


def seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s"
