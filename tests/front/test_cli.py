"""kemu as it is started: outputs, exit codes, scripts, pipes. Each test starts a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kemu.front.terminal.plain import running


def kemu(*words, stdin="", env=None, binary=False):
    command = [sys.executable, "-m", "kemu", *words]
    environment = {**os.environ, "PYTHONUTF8": "1", **(env or {})}
    text = {} if binary else {"text": True, "encoding": "utf-8", "errors": "surrogateescape"}
    return subprocess.run(
        command, input=stdin, capture_output=True, env=environment, timeout=120, check=False, **text
    )


def test_a_command_prints_and_ends_with_zero():
    done = kemu("-c", "spawn app; ps")
    assert done.returncode == 0
    assert "app" in done.stdout
    assert done.stderr == ""


def test_several_c_options_share_one_experiment():
    done = kemu("-c", "spawn app", "-c", "fork app as kid", "-c", "print kid.ppid == app.pid")
    assert done.stdout.endswith("$1 = true\n")


def test_a_failed_command_ends_the_run_with_one():
    done = kemu("-c", "spawn app", "-c", "mmap app 3q rw anon", "-c", "ps")
    assert done.returncode == 1
    assert "PID" not in done.stdout
    assert done.stderr == (
        "error: length: expected bytes or pages, got '3q'\n"
        "  mmap app 3q rw anon\n"
        "           ^^\n"
        "  write 3p for three pages, or 12288 (see: help sizes)\n"
    )


def test_keep_going_runs_the_rest_and_still_ends_with_one():
    done = kemu("--keep-going", "-c", "nonsense", "-c", "spawn app", "-c", "ps")
    assert done.returncode == 1
    assert "app" in done.stdout


def test_a_script_with_a_wrong_line_names_file_and_line(tmp_path):
    script = tmp_path / "lab.kemu"
    script.write_text(
        "# a lab\nspawn app\nmmap app 0x10000 4p rw\n\nmprotct app 0x10000 1p r\nps\n"
    )
    done = kemu("run", str(script))
    assert done.returncode == 1
    assert f"error: {script}:5: no command 'mprotct'" in done.stderr
    assert "did you mean 'mprotect'?" in done.stderr
    assert "mmap -> 0x10000" in done.stdout
    assert "PID" not in done.stdout


def test_standard_input_is_a_script():
    for words in ((), ("run", "-")):
        done = kemu(*words, stdin="spawn app\nps\n")
        assert done.returncode == 0
        assert done.stdout.startswith("spawn -> 3\n")
        assert ">" not in done.stdout.replace("->", "")


def test_a_missing_script_is_a_usage_error(tmp_path):
    done = kemu("run", str(tmp_path / "none.kemu"))
    assert done.returncode == 2
    assert "cannot read" in done.stderr


def test_an_empty_and_a_binary_script_are_harmless(tmp_path):
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_bytes(b"")
    binary.write_bytes(bytes(range(256)) * 4)
    assert kemu("run", str(empty)).returncode == 0
    done = kemu("run", "--keep-going", str(binary))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_simulated_errno_is_a_result():
    command = "spawn app; munmap app 0x10001 1p"
    done = kemu("-c", command)
    assert done.returncode == 0
    assert "munmap -> -EINVAL (22)" in done.stdout
    assert kemu("--errno-fails", "-c", command).returncode == 1


def test_a_simulated_signal_is_a_result():
    command = "spawn app; read app 0"
    assert kemu("-c", command).returncode == 0
    assert "SEGV_MAPERR" in kemu("-c", command).stdout
    assert kemu("--errno-fails", "-c", command).returncode == 1


def test_json_has_one_object_a_command():
    done = kemu("--json", "-c", "spawn app; mmap app 0x10000 1p rw", "-c", "nonsense")
    assert done.returncode == 1
    spawned, mapped, failed = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"v", "cmd", "ok", "data", "events", "state"} <= spawned.keys()
    assert (spawned["v"], spawned["cmd"], spawned["ok"]) == (1, "spawn app", True)
    assert mapped["data"]["value"] in ("0x10000", 0x10000)
    assert mapped["events"][0] == spawned["events"][1] < mapped["events"][1]
    assert mapped["state"] != spawned["state"]
    assert failed["ok"] is False
    assert failed["error"]["column"] == 0
    (_, wrong) = [
        json.loads(line)
        for line in kemu("--json", "-c", "spawn app;  mmap app 3q rw").stdout.splitlines()
    ]
    assert wrong["cmd"][wrong["error"]["column"] :] == "3q rw"
    assert failed["state"] == mapped["state"]


def test_json_of_a_branch_keeps_its_chatter_off_standard_output():
    done = kemu("--json", "-c", "spawn app; goto 0; spawn other")
    assert all(json.loads(line)["ok"] for line in done.stdout.splitlines())
    assert "timeline 2 starts at #0" in done.stderr
    assert "timeline 2" in json.loads(done.stdout.splitlines()[-1])["notes"][0]


def test_the_same_commands_give_the_same_state():
    lines = [
        kemu("--json", "-c", "spawn app; mmap app 2p rw populate; fork app").stdout
        for _ in range(2)
    ]
    assert lines[0] == lines[1]


def test_going_back_and_forth_gives_the_same_state():
    done = kemu("--json", "-c", "spawn app; mmap app 0x10000 2p rw populate; goto 0; goto end")
    states = [json.loads(line)["state"] for line in done.stdout.splitlines()]
    assert states[1] == states[3] != states[2]


def test_colour_is_off_in_a_pipe_and_obeys_the_words():
    command = ("-c", "spawn app; read app 0")
    assert "\x1b[" not in kemu(*command).stdout
    assert "\x1b[" in kemu("--color=always", *command).stdout
    assert "\x1b[" in kemu(*command, env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in kemu(*command, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


def test_an_ascii_output_gets_ascii_drawings():
    command = ("-c", "spawn app; fork app; tree")
    assert kemu("--ascii", *command).stdout.isascii()
    assert kemu(*command, env={"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}).stdout.isascii()


def test_bytes_that_are_no_text_are_an_error_and_no_traceback():
    done = kemu("run", "--keep-going", "-", stdin=b"ps\n\xff\xfe spawn\nps\n", binary=True)
    assert done.returncode == 1
    assert done.stdout.count(b"PID  PPID") == 2
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m kemu -c 'spawn app; layout; layout; ps; mem; mem' | head -1"
    done = subprocess.run(  # noqa: S602 - a pipe of the shell is what is tested
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_ctrl_c_ends_a_run_with_130_and_says_how_far_it_got():
    command = [sys.executable, "-u", "-m", "kemu", "--mem", "1G"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write(
            "spawn app\nmmap app 0x10000000 256M rw\nwrite app 0x10000000 0b 256M\n"
        )
        process.stdin.close()
        assert process.stdout.readline() == "spawn -> 3\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    assert process.returncode == 130
    assert "stopped: -:3: write app 0x10000000 0b 256M; the machine is at #" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "spawn app"),
        (1, "write app 0x10000 'a; b'"),
        (2, "read app 0x10000"),
        (3, "read app 0x10000"),
    ],
)
def test_the_command_that_was_stopped_is_named_alone(given, said):
    assert running("spawn app;  write app 0x10000 'a; b' ; read app 0x10000 # why", given) == said
    assert (
        running("write app 0x10000 '" + "x" * 100 + "'", 0)
        == "write app 0x10000 '" + "x" * 38 + "..."
    )
    assert running("  'never closed", given) == "'never closed"


def test_the_shell_stays_behind_commands_where_asked():
    done = kemu("-i", "-c", "spawn app", stdin="ps\n")
    assert done.returncode == 0
    assert "app" in done.stdout


@pytest.mark.parametrize("words", [("--geometry", "vax"), ("--mem", "0"), ("--cpus", "x"), ("-x",)])
def test_wrong_options_end_with_two(words):
    done = kemu(*words, "-c", "ps")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2
    assert not done.stdout


@pytest.mark.parametrize("geometry", ["x86-64", "x86-64-la57", "sv39"])
def test_every_geometry_runs_the_kernel(geometry):
    commands = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; read app 0x10000; fork app; walk app 0x10000"
    done = kemu("--geometry", geometry, "-c", commands)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


def test_doctor_tells_what_is_there():
    done = kemu("doctor")
    assert done.returncode == 0
    for name in (
        "kemu",
        "python",
        "attrs",
        "recording",
        "terminal",
        "layout",
        "host kernel",
        "state folder",
    ):
        assert f"\n{name}" in f"\n{done.stdout}"


def test_doctor_says_what_records():
    done = kemu("doctor", env={"KEMU_PURE": "1"})
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("recording")]
    assert line.endswith("off      in Python, at half the speed of C: KEMU_PURE is set")


def test_doctor_survives_a_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = kemu("doctor", env={"KEMU_HOME": str(blocked / "home")})
    assert done.returncode == 0
    assert "Not a directory" in done.stdout


def test_the_demonstration_runs_to_its_end():
    done = kemu("demo")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "wp_page_copy" in done.stdout


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="the host has no file that is always full"
)
@pytest.mark.parametrize(
    "words",
    [("-c", "ps"), ("--json", "-c", "ps"), ("--help",), ("--version",), ("doctor",)],
    ids=" ".join,
)
def test_an_output_without_room_is_no_bug_of_kemu(words):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "kemu", *words]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("kemu: cannot write the output: No space left on device\n")
    assert done.stderr.count("\n") == 2


@pytest.mark.skipif(os.name == "nt", reason="streams are closed by the shell of Unix")
@pytest.mark.parametrize(
    ("closed", "status"), [(">&-", 0), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 0)]
)
def test_a_closed_stream_is_as_one_to_nowhere(closed, status):
    command = f"{sys.executable} -m kemu -c ps {closed}"
    done = subprocess.run(  # noqa: S602 - a pipe of the shell is what is tested
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--mem", "1K"),
            "kemu: --mem: 1K is too small\n  the minimum is 8M, the default 64M\n",
        ),
        (
            ("--cpus", "9"),
            (
                "kemu: --cpus: expected a number from 1 to 8, got '9'\n  kemu --help lists the "
                "options\n"
            ),
        ),
    ],
)
def test_a_number_out_of_bounds_is_told_the_bounds(words, said):
    assert kemu(*words, "-c", "ps").stderr == said


def test_the_bounds_of_the_command_line_are_those_of_the_boot():
    assert kemu("--mem", "8M", "--cpus", "8", "-c", "ps").returncode == 0
