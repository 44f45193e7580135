import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_global_randomness():
    """Nothing in the library may use or move PyTorch's global generator."""
    before = torch.random.get_rng_state()
    yield
    assert torch.equal(before, torch.random.get_rng_state())
