"""What is said when a part of one's own cannot be batched by torch.vmap."""

from __future__ import annotations

from piaget.errors import SettingError


def explained(error: RuntimeError) -> Exception:
    """An error of vmap in plain words; any other as it is."""
    if "vmap" not in str(error):
        return error
    return SettingError(
        "a part cannot be batched over samples or the runs of a cohort: its functions of tensors may not use "
        "`if` on a tensor's value (torch.where does that), .item(), or random numbers of their own. PyTorch: "
        + str(error).split(". ")[0]
    )
