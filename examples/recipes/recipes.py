import json
import pandas as pd
import matplotlib.pyplot as plt

# A figure with bands: 95 % intervals of the mean at each round, by Student's quantile for 20 runs.
d = pd.read_csv("results/small/summary.csv")
regret = d[d["metric"] == "regret"]
student = 2.093  # scipy.stats.t.ppf(0.975, runs - 1)
for (policy, budget), line in regret.groupby(["policy", "budget"]):
    plt.plot(line["t"], line["mean"], label=f"{policy}, {budget}")
    plt.fill_between(line["t"], line["mean"] - student * line["se"],
                     line["mean"] + student * line["se"], alpha=0.2)
plt.xscale("log")
plt.yscale("log")
plt.xlabel("round t")
plt.ylabel("pseudo-regret")
plt.legend()
plt.savefig("regret.pdf")

# The table of a paper: policies down, budgets across, regret at the horizon.
last = regret[regret["t"] == regret["t"].max()]
print(last.pivot_table(index="policy", columns="budget", values="mean").round(1))

# The releases of a transcript: a line of plays says which arms are released next, and the line of the release how
# many rewards are in each noisy sum. Add a mechanism's noise to what you conclude from it: "scale" is that of its law.
rows, asked = [], []
for line in map(json.loads, open("trial.jsonl")):
    if "trial" in line:
        arms = line["arms"]
    elif "plays" in line:
        asked = [p["arm"] for p in line["plays"] if p.get("release")]
    elif "sum" in line:
        for arm, n, total in zip(asked, line["n"], line["sum"]):
            rows.append({"arm": arms[arm], "n": n, "sum": total, "scale": line["mechanism"]["scale"]})
releases = pd.DataFrame(rows)
means = releases.groupby("arm")[["n", "sum"]].sum()
print((means["sum"] / means["n"]).round(4))

# The ledger of a live experiment: which mechanism each slot was charged with, and how often.
ledger = json.load(open("ledger.json"))
entries = pd.json_normalize(ledger["entries"])
print(entries.groupby("mechanism.mechanism")["releases"].agg(["count", "sum"]))
