import math, sotto

def py_ucb(run):  # UCB in episodes that double, with the width of Laplace noise
    sums = {r.arm: r for r in (yield [(arm, 1) for arm in range(run.arms)])}
    while True:
        log = math.log(sum(2 * r.rewards for r in sums.values()) ** 3)
        index = lambda r: r.mean + math.sqrt(log / (2 * r.rewards)) + run.scale * log / r.rewards
        arm = max(sums.values(), key=index).arm
        sums[arm] = (yield [(arm, 2 * sums[arm].rewards)])[0]

sotto.play(py_ucb)
