"""Plays the program of github.com/achraf-azize/DP-BAI (commit c8d8be2) unchanged: python3 play.py CHECKOUT ALGORITHM EPSILON DELTA FIRST RUNS OUT MEAN...
A line a run: seed, tau as the program reports it, plays as its bandit was asked for them, answer as it returns it."""
import os, sys, tempfile
out = os.path.abspath(sys.argv[7])
checkout, algo, eps, delta, first, runs = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
means = [float(x) for x in sys.argv[8:]]
sys.path[:0] = [os.path.abspath(checkout)]
import numpy as np
from bandit import Bandit
from algorithms.adapTT import AdaPTopTwo
from algorithms.toptwo_ucb import TTUCB
from algorithms.dp_se import DPSE
rule = {"adap_tt": AdaPTopTwo, "tt_ucb": TTUCB, "dp_se": DPSE}[algo]
class Counted(Bandit):
    def __init__(self, mu):
        super().__init__(mu); self.plays = 0
    def pull(self, arm):
        self.plays += 1
        return super().pull(arm)
with tempfile.TemporaryDirectory() as d, open(out, "w") as f:
    os.chdir(d)  # the program writes a file a run
    for seed in range(first, first + runs):
        np.random.seed(seed)
        b = Counted(np.array(means))
        a = rule({"K": len(means), "beta": 0.5, "eps": eps, "delta": delta, "name": "r", "mu": b.mu})
        tau, answer = a.run(b)
        print(seed, int(tau), b.plays, int(answer), file=f, flush=True)
