"""What docs/versions.md promises to keep, against the list of it."""

from tools.public_names import FILE, names


def test_public_names_are_those_of_the_list():
    """A name or parameter that is gone breaks people's programs: it needs a new version, and a line in the
    changelog that says what to do instead. What is new is to be meant: it will have to be kept."""
    now, before = set(names()), FILE.read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(before) - now), sorted(now - set(before))
    assert (gone, new) == ([], []), "if that is meant: python -m tools.public_names --write"
    assert before == sorted(before)


def test_the_list_has_what_it_should():
    text = FILE.read_text(encoding="utf-8")
    for line in (
        "piaget.Learner.learn\n",
        "piaget.Learner.learn(1 task)\n",
        "piaget.Learner(1 structure=)\n",
        "piaget.streams.from_table(group=)\n",
        "piaget.streams.from_avalanche(1 benchmark)\n",
        "piaget.lab.compare\n",
        "piaget.Task.scaling",
        "$ piaget run --epochs",
        "$ piaget data fetch",
    ):
        assert f"\n{line}" in text, line
