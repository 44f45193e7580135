"""Numbers about components keep apart when they are exported."""

from piaget.lab.exports import Exporter
from tests.exported import make_run, row
from tests.test_export import Memory


def test_components_and_depths_have_curves_of_their_own(tmp_path):
    weights = [
        row("t1", 10, "t0", 0.5, "weight") | {"component": c, "depth": d} for c in (0, 1) for d in (0, 1)
    ]
    removed = [row("t1", 10, "t0", 0.5, "accuracy without component") | {"component": c} for c in (0, 1)]
    make_run(tmp_path / "seed-0", weights + removed)
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == 6
    tags = {point.tag for point in sink.points if not point.tag.endswith("/mean")}
    assert tags == {
        *(f"component {c} depth {d}/test/t0" for c in (0, 1) for d in (0, 1)),
        *(f"accuracy without component {c}/test/t0" for c in (0, 1)),
    }
