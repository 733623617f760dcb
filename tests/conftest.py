"""What holds for every test: no network, no state folder of the person who runs them, reproducible
random inputs."""

import os
import socket

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """A test that opens a connection to anything but a local socket fails with the address it
    wanted."""
    connect = socket.socket.connect

    def refuse(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            raise AssertionError(f"a test wanted to connect to {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(autouse=True)
def own_state_folder(monkeypatch, tmp_path_factory):
    """History and settings of kemu go to a fresh folder, in this process and in the ones it
    starts."""
    monkeypatch.setenv("KEMU_HOME", str(tmp_path_factory.mktemp("kemu-home", numbered=True)))
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
