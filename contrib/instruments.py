#!/usr/bin/env python3
"""Other people's testers of privacy, on the samples that contrib/instruments.go has drawn.

    PYTHONPATH=… python3 contrib/instruments.py DIR [TESTER ...]

Each mechanism claims ε = 1. A tester is given 100, 300, 1000, … new samples, of both sums together, until
it refutes the claim at a confidence of 99.9 %; the first number at which it does is printed, else 0. The
testers are imported from dp_auditorium, statdp and dpsniper, which must be in PYTHONPATH, with numpy, scipy,
numba and torch. What they import and do not use here is made up.
"""
import math
import os
import sys
import tempfile
import types
from unittest.mock import MagicMock

import numpy as np

np.bool = bool  # of testers older than numpy 1.24

for name in ("vizier", "vizier.service", "tensorboard", "torch.utils.tensorboard", "etils", "etils.array_types",
             "tensorflow", "absl.logging", "mmh3"):
    sys.modules.setdefault(name, MagicMock())

CLAIM, GAMMA = 1.0, 1e-3
SIZES = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def histogram(zero, one, n):
    """dp-auditorium's tester by histograms (Gilbert and McMillan 2018), of 20 bins."""
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers.histogram_tester import HistogramTester
    t = HistogramTester(property_tester_config.HistogramPropertyTesterConfig(
        test_discrete_mechanism=False, histogram_size=20, min_value=-6, max_value=7,
        approximate_dp=privacy_property.ApproximateDp(epsilon=CLAIM, delta=0.0)))
    a, b = zero[:n // 2, 0], one[:n // 2, 0]
    return any(t.reject_property(t.estimate_lower_bound(x, y, GAMMA / 2)) for x, y in ((a, b), (b, a)))


def mmd(zero, one, n):
    """dp-auditorium's tester by maximum mean discrepancy."""
    if n > 100_000:  # a loop of Python's
        return None
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers.mmd_tester import MMDPropertyTester
    t = MMDPropertyTester(property_tester_config.MMDPropertyTesterConfig(
        kernel=property_tester_config.Kernel.KERNEL_LAPLACIAN, bandwidth=1.0,
        approximate_dp=privacy_property.ApproximateDp(epsilon=CLAIM, delta=0.0)))
    return t.reject_property(t.estimate_lower_bound(zero[:n // 2], one[:n // 2], GAMMA))


def statdp(zero, one, n):
    """StatDP (Ding et al. 2018): an event is chosen by half of the samples, and tested on the others."""
    from statdp.hypotest import hypothesis_test
    from statdp.selectors import select_event
    each = n // 4
    rows = [iter([tuple(map(float, x)) if len(x) > 1 else np.float64(x[0]) for x in s[:2 * each + 2 * len(SIZES)]])
            for s in (zero, one)]

    def algorithm(_, which, **kwargs):
        return next(rows[which])

    pool = types.SimpleNamespace(_processes=1, imap_unordered=map)
    picked = select_event(algorithm, ((0, 1, {}),), CLAIM, each, pool, quiet=True)
    return hypothesis_test(algorithm, *picked, CLAIM, each, pool, report_p2=False) < GAMMA


def sniper(zero, one, n, features=None, sizes=()):
    """DP-Sniper (Bichsel et al. 2021): a classifier is trained by 2/5 of the samples, its threshold is set by 1/5."""
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory, MultiLayerPerceptronFactory
    from dpsniper.classifiers.torch_optimizer_factory import AdamOptimizerFactory, SGDOptimizerFactory
    from dpsniper.probability.estimators import EpsEstimator, PrEstimator
    from dpsniper.search.ddconfig import DDConfig
    from dpsniper.utils.paths import set_output_directory
    set_output_directory(tempfile.mkdtemp())
    each = n // 5
    if each >= 10_000:
        each -= each % 1000
    config = DDConfig(n_train=each, n=each, n_check=each, n_final=each, n_processes=1, confidence=1 - GAMMA)
    rows, at = (zero, one), [0, 0]

    class Mechanism:
        def m(self, a, n_samples=1):
            x = rows[a][at[a]:at[a] + n_samples]
            at[a] += n_samples
            return x[:, 0] if x.shape[1] == 1 else x

    if features is None:
        factory = LogisticRegressionFactory(in_dimensions=zero.shape[1], optimizer_factory=SGDOptimizerFactory())
    else:
        factory = MultiLayerPerceptronFactory(in_dimensions=64, hidden_sizes=(10, 5), feature_transform=features,
                                              optimizer_factory=AdamOptimizerFactory(learning_rate=0.1, step_size=500),
                                              regularization_weight=0.0001, epochs=10)
    for a1, a2 in ((0, 1), (1, 0)):  # which may be the likelier is not known: half of the confidence each
        at[:] = [0, 0]
        config.confidence = 1 - GAMMA / 2
        attack = DPSniper(Mechanism(), factory, config).best_attack(a1, a2)
        if EpsEstimator(PrEstimator(Mechanism(), each, config)).compute_eps_estimate(a1, a2, attack)[1] > CLAIM:
            return True
    return False


def bits(zero, one, n):
    """DP-Sniper with the bits of a double as features."""
    if zero.shape[1] > 1 or n > 100_000:  # a loop of Python's
        return None
    from dpsniper.classifiers.feature_transformer import BitPatternFeatureTransformer
    return sniper(zero, one, n, BitPatternFeatureTransformer())


TESTERS = {f.__name__: f for f in (histogram, mmd, statdp, sniper, bits)}


def main(folder, *only):
    for name in sorted(f[:-2] for f in os.listdir(folder) if f.endswith(".0")):
        numbers = 2 if name == "shared-noise" else 1
        zero, one = (np.fromfile(os.path.join(folder, f"{name}.{s}"), "<f8").reshape(-1, numbers) for s in (0, 1))
        for tester in only or TESTERS:
            found = 0
            for n in SIZES:
                try:
                    if TESTERS[tester](zero, one, n):
                        found = n
                except Exception as e:  # a tester that fails has found nothing
                    print(f"{name} {tester} {n}: {e!r}", file=sys.stderr)
                if found:
                    break
            print(f"{name:18} {tester:9} {found:8}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
