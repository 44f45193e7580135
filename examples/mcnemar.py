"""A keep rule by McNemar's test: a new component stays if it mends significantly more validation samples than
it spoils."""

from dataclasses import dataclass

from scipy.stats import binomtest

import piaget


@dataclass(frozen=True)
class McNemar(piaget.Expansion):
    level: float = 0.05

    def keeps(self, evidence: piaget.Evidence) -> bool:
        with_it, without = evidence.right
        mended, spoilt = int((with_it & ~without).sum()), int((without & ~with_it).sum())
        if mended + spoilt == 0:
            return False
        return bool(binomtest(mended, mended + spoilt, alternative="greater").pvalue <= self.level)
