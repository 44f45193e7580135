"""How many numbers a learner holds, counted by hand."""

import piaget
from tests.small import make_task

FEATURES, WIDTH, TASKS = 5, 6, 4


def learned(**settings):
    learner = piaget.Learner(
        initial_components=2, initial_tasks=2, epochs=2, batch_size=8, width=WIDTH, **settings
    )
    assert learner.sizes() == piaget.Sizes(0, 0, 0, 0, 0)
    for i in range(TASKS):
        learner.learn(make_task(f"t{i}", "multiclass", 3, FEATURES, n=20, seed=i))
    return learner.sizes()


def test_soft_ordering_with_replay():
    sizes = learned(adaptation=piaget.Replay(7), algorithm="compositional")
    a_task = (7 * WIDTH) + 7 + 1  # encoded samples, labels, and whose they are
    assert sizes == piaget.Sizes(
        components=2 * (WIDTH * WIDTH + WIDTH),
        structures=TASKS * 2 * 2,  # depth 2
        encoders=TASKS * (FEATURES * WIDTH + WIDTH),
        decoders=TASKS * (WIDTH * 3 + 3),
        memory=TASKS * a_task,
    )
    assert sizes.parameters == sum(sizes) - sizes.memory


def test_shared_encoder_and_decoder_count_once():
    sizes = learned(adaptation="nft", algorithm="joint", encoder="shared", decoder="shared")
    assert sizes.encoders == FEATURES * WIDTH + WIDTH
    assert sizes.decoders == WIDTH * 3 + 3
    assert sizes.memory == 0


def test_a_new_component_counts_for_those_that_may_use_it():
    sizes = learned(adaptation="fm", expansion=piaget.ComponentDropout(-9.0))
    assert sizes.components == 4 * (WIDTH * WIDTH + WIDTH)
    assert sizes.structures == 2 * (2 + 2 + 3 + 4)
