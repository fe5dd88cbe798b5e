"""A real Jupyter kernel: how the status shows itself, and what is left when the kernel is killed."""

import os
import signal

import pytest
from jupyter_client.manager import KernelManager

CELL = """
import standpipe
tap = standpipe.open()
lease = tap.reserve("my/slots", agent="notebook")
tap.status("my/slots")
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    manager = KernelManager()
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready()
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def shown(client, cell):
    """Runs a cell and returns how its value shows itself, by type."""
    results, errors = [], []

    def hook(message):
        content = message["content"]
        if message["msg_type"] == "execute_result":
            results.append(content["data"])
        elif message["msg_type"] == "error":
            errors.append(content["evalue"])

    client.execute_interactive(cell, output_hook=hook)
    assert errors == []
    return results[0]


def test_a_kernel_shows_the_status_and_its_slot_is_free_when_it_is_killed(tap, kernel):
    manager, client = kernel
    tap.reserve("my/slots").commit()
    data = shown(client, CELL)
    assert data["text/html"].startswith("<table>") and "<td" in data["text/html"]
    assert "notebook" in data["text/html"] and "1 in flight" in data["text/plain"]
    assert "<table>" in shown(client, "tap.status()")["text/html"]
    assert shown(client, "tap.agent")["text/plain"] == "'notebook'"
    assert tap.status("my/slots").in_flight == 1
    process = manager.provisioner.process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with tap.reserve("my/slots", timeout=0):
        assert tap.status("my/slots").leases[0]["agent"] == tap.agent
