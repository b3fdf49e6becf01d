"""A mechanism for sotto audit mechanism --exec: a sum with Laplace noise, 1-DP. With the word half it has half of the
noise that it claims, and an audit refutes it."""
import sys

import sotto

scale = 0.5 if "half" in sys.argv else 1


def laplace(records, rng):
    return sum(records) + scale * (rng.expovariate(1) - rng.expovariate(1))


sotto.mechanism(laplace, name="py-laplace", epsilon=1)
