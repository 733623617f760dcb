"""Any words behind race are understood or refused in one line; none of them brings kemu down or
changes the machine."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kemu.commands.run import run
from kemu.races.programs import LITMUS
from tests.races.raced import session

WORDS = st.one_of(
    st.sampled_from(sorted(LITMUS)),
    st.sampled_from(["replay", "--atomic", "--non-atomic", "--refcount", "--unless-zero", "--end"]),
    st.sampled_from(["lock", "lock@1", "lock@9", "ptl"]),
    st.sampled_from(["--cpus", "--uses", "--count", "--bound", "--without-lock", "--mutant"]),
    st.sampled_from(
        [
            "0",
            "1",
            "2",
            "3",
            "0110",
            "00001111",
            "0*3,1*2",
            "0*",
            "-1",
            "4294967296",
            "0x7fffffff",
            "1e9",
        ]
    ),
    st.sampled_from(
        [
            '""',
            '"write a 1"',
            '"',
            "'",
            "(",
            ")",
            "#",
            ";",
            "@",
            "\\",
            "\0",
            "--",
            "ä",
            "*",
            "0,1",
            "nonsense",
        ]
    ),
)

MACHINE = session()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WORDS, max_size=6))
def test_any_words_are_understood_or_refused(words):
    with MACHINE.anew():
        pass
    before = MACHINE.state_hash()
    results = run(MACHINE, " ".join(["race", *words]))
    for result in results:
        if result.error is not None:
            assert result.error.what
            assert "\n" not in result.error.what
            assert 0 <= result.error.column <= len(result.error.text)
    replayed = any(record.text.startswith("race replay") for record in MACHINE.timeline.records)
    assert MACHINE.state_hash() == before or replayed


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="012*,. -", max_size=12))
def test_any_schedule_is_played_or_refused(text):
    with MACHINE.anew():
        pass
    for result in run(MACHINE, f'race replay gets --non-atomic "{text}"'):
        if result.error is None:
            assert set(result.reading.schedule) <= set("01")
        else:
            assert "\n" not in result.error.what


def test_the_cases_are_listed_by_the_word_that_lists_mutants_too():
    made = session()
    assert run(made, "race list")[-1].reading == run(made, "race")[-1].reading
