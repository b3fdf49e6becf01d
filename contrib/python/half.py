"""The policy of ucb.py with half of the noise that its budget needs: sotto run refuses it, and sotto audit policy
refutes what it would claim. It is here to be caught."""
import sotto

def half(run):
    while True:
        yield [(arm, 4) for arm in range(run.arms)]

sotto.play(half, name="py-half", scale=0.5)
