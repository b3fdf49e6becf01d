"""Write policies for Sotto in Python, run sotto, and read its results. The standard library is enough.

A policy is a generator. It yields plays, pairs of an arm and how many rounds of it, and is sent what was released:

    import sotto

    def mine(run):
        released = yield [(arm, 10) for arm in range(run.arms)]
        yield sotto.rest(max(released, key=lambda r: r.mean).arm)

    sotto.play(mine, mechanism="laplace")

It sees noisy sums and nothing else: Sotto draws the noise, and charges it. README.md says more.
"""

import collections
import csv
import json
import os
import random
import subprocess
import sys

__all__ = ["answer", "columns", "command", "environment", "frame", "mechanism", "numbers", "play", "rest",
    "Release", "Released", "results", "Run", "run"]

VERSION = 1


class Release(collections.namedtuple("Release", "arm rewards sum")):
    """A noisy sum of an arm's rewards, mapped to [0,1], and how many they are."""

    __slots__ = ()

    @property
    def mean(self):
        return self.sum / self.rewards


class Released(list):
    """What a batch has released, in its order. P(noise > sigma √(2x) + h (x + log)) ≤ e^-x, for tail = (sigma, h, log)."""

    tail = (0.0, 0.0, 0.0)


class Run:
    """What is known before the first round: arms; horizon, None if the policy must stop by itself, with risk then;
    budget, such as {"epsilon": 1} or "none"; scale, of the noise in a sum; random, the policy's own coins."""

    def __init__(self, told):
        self.arms = told["arms"]
        self.horizon = told.get("horizon")
        self.risk = told.get("risk")
        self.budget = told["budget"]
        self.scale = told["scale"]
        self.random = random.Random(told["seed"])


def rest(arm):
    """Plays an arm until the end, with nothing more to learn."""
    return {"rest": arm}


def answer(arm):
    """Stops, and says that an arm is the best."""
    return {"answer": arm}


def play(policy, name=None, mechanism="laplace", scale=1, bandit="regret"):
    """Plays a policy, a generator of a Run, until Sotto has no more runs.

    The mechanism is laplace (pure ε), gaussian (ρ and what follows from it), or none for a policy without privacy;
    scale is times the noise that the budget needs, at least 1. With bandit="identify" it looks for the best arm.
    """
    hello = {"name": name or policy.__name__.replace("_", "-"), "mechanism": mechanism, "bandit": bandit}
    if scale != 1:
        hello["scale"] = scale
    running = None
    for said, reply in _lines(hello):
        if "run" in said:
            running = policy(Run(said["run"]))
            wanted = next(running)
        else:
            released = Released(Release(*r) for r in said["release"])
            released.tail = tuple(said.get("tail", released.tail))
            wanted = running.send(released)
        reply(wanted if isinstance(wanted, dict) else {"play": [(int(arm), int(n)) for arm, n in wanted]})


def mechanism(release, name=None, **claim):
    """Has a mechanism audited: release(records, rng) is a number made of a list of records in [0,1], private by its
    claim, such as epsilon=1: records that differ in one are hard to tell apart by it."""
    hello = {"name": name or release.__name__.replace("_", "-"), "claim": claim}
    for said, reply in _lines(hello):
        rng = random.Random(said["seed"])
        reply({"outputs": [float(release(list(said["records"]), rng)) for _ in range(said["times"])]})


def environment(arms, draw, name="environment"):
    """Pays rewards: draw(arm, rng) is one of an arm. Sotto asks for some of each before it plays, and plays their law."""
    for said, reply in _lines({"name": name, "arms": arms}):
        rng = random.Random(said["seed"])
        reply({"rewards": [float(draw(said["arm"], rng)) for _ in range(said["times"])]})


def _lines(hello):
    """Lines that Sotto writes, each with what answers it. What is printed meanwhile goes to standard error."""
    out, sys.stdout = sys.stdout, sys.stderr

    said = {}

    def reply(answer):
        if "turn" in said:  # of the line that it answers
            answer = {**answer, "turn": said["turn"]}
        out.write(json.dumps(answer, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()

    for line in sys.stdin:
        said = json.loads(line)
        if "sotto" in said:
            if said["sotto"] != VERSION:
                raise ValueError(f"this module speaks version {VERSION} of the format, sotto {said['sotto']}")
            reply({"sotto": VERSION, **hello})
        else:
            yield said, reply


# Running sotto, and reading what it leaves.


class Error(Exception):
    """What sotto says when it fails, and its exit code."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def command(*words, **how):
    """Runs sotto with these words and returns what it prints. The program is $SOTTO, or sotto on the path."""
    done = subprocess.run([os.environ.get("SOTTO", "sotto"), *map(str, words)], capture_output=True, text=True, **how)
    if done.returncode:
        raise Error(done.stderr.strip(), done.returncode)
    return done.stdout


def run(file, out, *flags):
    """Plays an experiment, a file, into a directory, and returns its results. A directory that has them is read."""
    command("run", file, "--out", out, *flags)
    return results(out)


def results(directory):
    """The rows of a directory's summary.csv, as dictionaries: numbers are numbers, what is not defined is None."""
    with open(os.path.join(directory, "summary.csv"), newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    words = {"experiment", "instance", "policy", "budget", "metric"}
    return [{k: v if k in words else _number(v) for k, v in row.items()} for row in rows]


def _number(text):
    if text == "":
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def columns(rows):
    """Rows as columns, by name."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def numbers(rows, column):
    """A column as a NumPy array where NumPy is installed, else as a list; None is not a number."""
    x = [float("nan") if row[column] is None else row[column] for row in rows]
    try:
        import numpy
    except ImportError:
        return x
    return numpy.array(x)


def frame(rows):
    """Rows as a DataFrame of pandas, or of polars where pandas is not installed; ImportError without both."""
    try:
        import pandas
    except ImportError:
        import polars
        return polars.DataFrame(rows)
    return pandas.DataFrame(rows)
