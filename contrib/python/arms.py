"""An environment: two arms whose rewards have two humps. In a file: instances: [{name: mine, exec: [python3, arms.py]}]"""
import sotto


def draw(arm, rng):
    return rng.betavariate(2, 8) if rng.random() < (0.3, 0.4)[arm] else rng.betavariate(8, 2)


sotto.environment(2, draw, name="two-humps")
