"""The paper's claims, in its own words, and what this project asks beside them."""

from __future__ import annotations

from piaget.paper.presets import IMAGES, OBJECTS
from piaget.report import claim_readings as readings
from piaget.report.claim_readings import BASELINES, CHANCE, FORGOTTEN, GATED, NEAR, OURS
from piaget.report.claims import Claim, all_pairs

POINTS, COUNT = "points (schools: rmse)", "components"

CLAIMS = (
    Claim(
        "The compositional versions of ER, EWC, and NFT clearly outperformed all the joint versions.",
        "5.2.1, linear models",
        "final performance, compositional against joint",
        all_pairs(("fera", "landmine", "schools"), ("compositional",), ("joint",), structure="linear"),
        POINTS,
    ),
    Claim(
        "The no-components variants performed better than the jointly trained versions in two out of the "
        "three data sets, and even outperformed our compositional algorithms in one.",
        "5.2.1, linear models",
        "landmine and schools: no components against joint; schools, ER and EWC: against compositional",
        readings.single_model,
        POINTS,
    ),
    Claim(
        "All the algorithms conforming to our framework outperformed the joint and no-components learners.",
        "5.2.2, soft layer ordering",
        "dynamic and compositional against joint and no components, of the same adaptation",
        all_pairs(IMAGES, OURS, BASELINES),
        "points",
    ),
    Claim(
        "Dyn. + comp. agents further improved performance, leading to our methods being strongest.",
        "appendix, soft layer ordering",
        "dynamic against compositional, of the same adaptation",
        all_pairs(IMAGES, ("dynamic",), ("compositional",)),
        "points",
    ),
    Claim(
        "On CIFAR it was crucial for the agent to be capable of detecting when new components were needed.",
        "5.2.2, soft layer ordering",
        "cifar100: dynamic against compositional",
        all_pairs(("cifar100",), ("dynamic",), ("compositional",)),
        "points",
    ),
    Claim(
        "Algorithms with adaptation outperformed the ablated compositional FM agent.",
        "5.2.2, soft layer ordering",
        "compositional ER, EWC and NFT against compositional FM",
        readings.adaptation,
        "points",
    ),
    Claim(
        "When FM was allowed to dynamically add new components, it yielded the best performance on MNIST and "
        "Fashion by adding far more components than methods with adaptation.",
        "5.2.2, soft layer ordering",
        "dynamic FM against dynamic ER, EWC and NFT: final performance, and number of components",
        readings.frozen_is_best,
        "points, components",
    ),
    Claim(
        "A substantial improvement of compositional algorithms w.r.t. baselines.",
        "5.2.3, soft gating",
        "dynamic and compositional against joint and no components, of the same adaptation",
        all_pairs(GATED, OURS, BASELINES, structure="soft-gating"),
        "points",
    ),
    Claim(
        "The forward accuracy of compositional methods was nearly identical to that of jointly trained and "
        "no-components versions.",
        "5.2.3, soft gating",
        f"less than {NEAR:g} points apart right after tasks were learned: what is left to that",
        readings.near,
        "points",
    ),
    Claim(
        "Soft gating nets typically required adding fewer new components.",
        "appendix, number of components",
        "dynamic, soft gating against soft ordering: fewer components",
        readings.fewer_components,
        COUNT,
    ),
    Claim(
        "In order for our methods to work on the CIFAR data set, they required learning almost one component "
        "per task.",
        "appendix, number of components",
        "more than 0.8 components a task",
        readings.one_a_task,
        COUNT,
    ),
    Claim(
        "Our method greatly outperforms the baselines.",
        "5.2.4, very different tasks",
        "combined: dynamic and compositional against joint and no components",
        all_pairs(("combined",), OURS, BASELINES),
        "points",
    ),
    Claim(
        "ER with no components was completely incapable of learning the CUB tasks.",
        "5.2.4, very different tasks",
        f"below {CHANCE:g} % on the CUB tasks of combined, twice what guessing gives",
        readings.incapable,
        "points",
    ),
    Claim(
        "Compositional algorithms had practically no forgetting.",
        "appendix, forgetting",
        f"forgetting ratio (first / final score, mean over tasks) below {FORGOTTEN:g}",
        readings.no_forgetting,
        "of the ratio",
    ),
    Claim(
        "Compositional methods exhibit substantially less catastrophic forgetting.",
        "appendix, forgetting",
        "a lower forgetting ratio than joint and no components, of the same adaptation",
        readings.less_forgetting,
        "of the ratio",
    ),
    Claim(
        "As more tasks were seen and accommodated, assimilation performance of later tasks improved.",
        "5.2.2, learning curves of dynamic ER",
        "the score at the first look while a task is learned rises along the stream",
        readings.later_tasks,
        "points a task",
    ),
    Claim(
        "Compositional algorithms work better than baselines even in the presence of very little data.",
        "appendix, limited data",
        "dynamic and compositional ER against joint and no components, at each number of samples",
        readings.little_data,
        "points",
    ),
    Claim(
        "All four components available from initialization were used by multiple tasks.",
        "appendix, component reuse",
        "ER: of the four most reused components, the last is used by more than one task on average",
        readings.reused,
        "tasks",
    ),
    Claim(
        "It was beneficial to carry out adaptation steps infrequently, with a clear increasing trend.",
        "appendix, schedule",
        "ER: what performance gains when components adapt ten times as rarely (a line through all schedules)",
        readings.rarer_is_better,
        "points",
    ),
    Claim(
        "For MNIST and Fashion, all choices of schedule led to improved performance over baselines.",
        "appendix, schedule",
        "ER: each schedule against joint and no components",
        readings.every_schedule,
        "points",
    ),
    Claim(
        "For CUB, very fast accommodation rates achieved lower accuracy than the baselines.",
        "appendix, schedule",
        "ER: joint against the schedule that adapts most often",
        readings.fast_is_worse,
        "points",
    ),
    Claim(
        "Each of our methods outperforms all baselines in all settings.",
        "appendix, Objects",
        "dynamic and compositional against joint and no components, of the same adaptation",
        all_pairs(OBJECTS, OURS, BASELINES),
        "points",
    ),
    Claim(
        "The components learned with compositional ER learned to produce effects consistent across tasks; "
        "joint ER learned components whose effects are different for different tasks and depths.",
        "appendix, visualization",
        "pixel-mnist: consistency of components (docs/report.md), compositional against joint ER",
        readings.consistent,
        "of consistency",
    ),
)

# What the paper does not ask.
QUESTIONS = (
    Claim(
        "Does sharing help at all?",
        "",
        "dynamic ER (linear models: compositional ER) against the same network trained on each task alone",
        readings.sharing,
        POINTS,
    ),
    Claim(
        "Is it better than a single network whose past encoders and decoders stay as they are?",
        "",
        "dynamic ER against no components with past tasks frozen",
        readings.frozen_baseline,
        "points",
    ),
    Claim(
        "Is the recommended method better than all of the paper's?",
        "",
        "the recommended method (docs/recommended.md) against each of the paper's 14 methods",
        readings.recommended,
        "points",
    ),
)
