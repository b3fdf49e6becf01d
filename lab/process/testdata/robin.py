"""Every arm once, again and again: how fast the pipe is."""
import sys

sys.path.insert(0, "../../../contrib/python")
import sotto


def robin(run):
    plays = [(arm, 1) for arm in range(run.arms)]
    while True:
        yield plays


sotto.play(robin)
