"""What tests/conftest.py promises for every test holds."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_connection_is_refused_before_anything_is_sent():
    with (
        socket.socket() as outside,
        pytest.raises(AssertionError, match=r"wanted to connect to \('127.0.0.1', 9\)"),
    ):
        outside.connect(("127.0.0.1", 9))


def test_local_sockets_work():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"


def test_the_state_folder_is_fresh_and_empty():
    assert not list(Path(os.environ["KEMU_HOME"]).iterdir())


@settings(max_examples=5)
@given(st.integers())
def test_random_inputs_have_no_deadline(number):
    assert isinstance(number, int)
    assert settings().deadline is None
