"""MovieLens 100K as a contextual bandit, for docs/contextual.md.

A round is 20 films that one person rated, and a reward is 1 for four stars or more, else −1. Run it
in the directory of u.data, u.item and u.user (F. M. Harper and J. A. Konstan, The MovieLens Datasets,
ACM TiiS 5(4), 2015; its README says what they may be used for), then: sotto run films.yaml
"""

import random

people, films, ratings = {}, {}, {}
for line in open("u.user"):
    i, age, sex, *_ = line.split("|")
    people[i] = [sex == "M", int(age) >= 30]
for line in open("u.item", encoding="latin-1"):
    f = line.strip().split("|")
    films[f[0]] = [1] + [int(x) for x in f[6:24]]  # an intercept, and 18 genres
for line in open("u.data"):
    i, film, stars, _ = line.split()
    ratings.setdefault(i, []).append((film, 1 if int(stars) >= 4 else -1))

rng = random.Random(1)
rounds = []
for i in sorted(ratings, key=int):
    rng.shuffle(ratings[i])
    rounds += [(i, ratings[i][k : k + 20]) for k in range(0, len(ratings[i]) - 19, 20)]

# genres; and genres, genres of men, genres of those over 30
for name, who, d in ("genres", False, 19), ("people", True, 57):
    with open(name + ".csv", "w") as out:
        print("round", *(f"x{j + 1}" for j in range(d)), "reward", sep=",", file=out)
        for t, (i, some) in enumerate(rounds):
            for film, reward in some:
                x = films[film] + [int(g and p) for p in people[i] for g in films[film]] * who
                print(t + 1, *x, reward, sep=",", file=out)

with open("films.yaml", "w") as out:
    out.write("""name: films
kind: contextual
horizon: 100_000
runs: 10
seed: 19
instances:
  - {name: genres, csv: genres.csv, normalise: true}
  - {name: people, csv: people.csv, normalise: true}
policies:
  - {policy: adac-oful, name: proved}
  - {policy: adac-oful, name: greedy, greed: 1, lambda: 100}
budgets: [{rho: 0.1}, {rho: 1}, {rho: 10}, none]
checkpoints: [1_000, 10_000, 100_000]
""")
