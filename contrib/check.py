#!/usr/bin/env python3
"""Check a certificate of Sotto against the transcript that it is of.

    python3 check.py CERTIFICATE TRANSCRIPT

Exit code 0: what the certificate says follows from the transcript. 1: it does not, or cannot be read, or is of a
kind that this checker does not know; one line says why. It needs Python's standard library and nothing of Sotto's.

It reads the transcript alone first: the chain, the declaration, each release with its slot, its decisions and its
sensitivity. It prices each with exact fractions, adds up by slots, and converts with many digits, rounded outward. Then
it holds the certificate against that. What it believes is in the certificate's list of what no transcript can show. It
does not play the policy again (`sotto replay` does), and does not know sums without noise.
"""

import datetime
import decimal
import hashlib
import json
import re
import sys
from fractions import Fraction

SLACK = Fraction(1, 10**9)  # by which a cap may be exceeded, and a price be above the exact one
TICK = datetime.timedelta(seconds=1)  # by which a line may be behind one above it
MOST = 1 << 62

# The squares of sensitivities, in units of the declared range, by mechanism. Beside it: the price of one release
# for a square s and the mechanism's fields, as a pure ε or as a ρ.
# - One reward in [0,1] moves a sum by at most 1.
# - Vectors v in the unit ball, rewards r in [-1,1]: one reward moves Σ v·r by at most 2. If v changes too, it is
#   the ball's diameter, 2 again.
# - Σ vv' with Σ v·r beside it: |vv' - ww'|² + |rv - sw|² ≤ 2 - 2p² + 2 + 2p ≤ 9/2 with p = |v·w|.
#   The noise of Σ vv' has deviation s on the diagonal and s/√2 off it, where each entry is there twice.
# - Σ zz' with z = (v, r), |z|² ≤ 2: |zz' - yy'|² ≤ |z|⁴ + |y|⁴ ≤ 8. Its noise has deviation √2·s on the diagonal
#   and s off it: half of that counts.
SQUARES = {"laplace": Fraction(1), "gaussian": Fraction(1), "aggregated": Fraction(1), "vector-gaussian": Fraction(4),
    "vector-laplace": Fraction(4), "gram-gaussian": Fraction(9, 2), "gram-tree": Fraction(8)}
FIELDS = {"laplace": ["scale"], "gaussian": ["sigma"], "vector-gaussian": ["sigma"], "vector-laplace": ["scale"],
    "gram-gaussian": ["sigma"], "gram-tree": ["sigma", "horizon"],
    "aggregated": ["trust", "noise", "g", "users", "invited", "modulus", "tau", "num", "den"]}
OF_KIND = {"arms": {"laplace", "gaussian", "aggregated"}, "contexts": {"vector-gaussian"},
    "joint-contexts": {"gram-gaussian", "gram-tree", "vector-laplace"}}
CHANGES = {"end", "window", "floor", "off", "add", "guard", "resume", "share", "description", "public"}
PARTS = set("plays ahead rest off add from share gone change release metrics n gram rules".split())
class Wrong(Exception): pass
def need(yes, text):
    if not yes:
        raise Wrong(text)
def pairs(items):
    need(len(dict(items)) == len(items), "an object has a field twice")
    return dict(items)
def parse(text):
    """JSON, with every number that is no integer as the fraction that a double has."""
    try:
        return json.loads(text.decode(), object_pairs_hook=pairs, parse_constant=double, parse_float=double)
    except (ValueError, RecursionError, OverflowError) as e:
        raise Wrong("it is no JSON: %s" % e)
class Double(Fraction): pass  # and how it was written
def double(text):
    out = Double(float(text))
    out.text = text
    return out
def number(x, what):
    need(type(x) in (int, Double), "%s is no number" % what)
    return Fraction(x)
def get(at, name, kind, what, default=None):
    """A field of an object, which must be of this kind."""
    need(type(at) is dict, "%s is no object" % what)
    x = at.get(name, default)
    if kind is Fraction:
        return number(x, "%r of %s" % (name, what))
    need(type(x) is kind, "%s has no %r that is %s" % (what, name, kind.__name__))
    need(kind is not int or 0 <= x < MOST, "%r of %s is out of range" % (name, what))
    return x
def exactly(at, names, what, optional=()):
    need(type(at) is dict and set(names) <= set(at) <= set(names) | set(optional),
         "%s must have the fields %s" % (what, ", ".join(names)))
def lines_of(data):
    """The objects of a transcript, and the hash of its last line."""
    need(data.endswith(b"\n"), "the last line is cut, or there is none")
    tip, out, latest = None, [], None
    for n, line in enumerate(data[:-1].split(b"\n"), 1):
        start = b"{" if tip is None else b'{"after":"%s",' % tip.encode()
        need(line.startswith(start) and not (tip is None and line.startswith(b'{"after":')) and line.strip() == line,
             "line %d does not follow the line before" % n)
        tip = hashlib.sha256(line).hexdigest()
        object = parse(line)
        need(type(object) is dict, "line %d is no object" % n)
        timed = "trial" not in (out or [object])[0]
        if timed:
            now = datetime.datetime.strptime(get(object, "at", str, "line %d" % n), "%Y-%m-%dT%H:%M:%S.%fZ")
            need(latest is None or now > latest - TICK, "the time of line %d is before that of a line above" % n)
            latest = max(now, latest or now)
        out.append({k: x for k, x in object.items() if k not in ("after", "at")[:1 + timed]})
    return out, tip
class Transcript:
    """What follows from a transcript alone."""
    def __init__(self, data):
        lines, self.tip = lines_of(data)
        self.lines, self.trial = len(lines), "trial" in lines[0]
        head = self.header(lines[0]) if self.trial else lines[0]
        exactly(head, ["live", "program", "declaration", "budget", "coins"], "line 1")
        need(head["live"] == 1 and type(head["live"]) is int, "line 1: its version is not one that is known")
        self.program, self.coins = head["program"], head["coins"]
        self.declared(head)
        self.heads, self.ahead = [0] * max(1, len(self.arms)), [0] * max(1, len(self.arms))
        self.off, self.open, self.first = set(), set(), {}
        self.releases, self.running, self.asked, self.ended, self.rested = [], {}, {}, False, False
        for self.at, line in enumerate(lines[1:], 2):
            try:
                self.of_trial(line) if self.trial else self.line(line)
            except Wrong as e:
                raise Wrong("line %d: %s" % (self.at, e))
        need(not self.asked and self.ended >= self.trial, "a session's sum is in no release, or a trial has no end")
    def header(self, head):
        """The first line of a trial of `sotto identify`, as that of a live experiment."""
        exactly(head, "trial rule params budget risk arms range".split(), "line 1", ["simulated"])
        arms, rule = get(head, "arms", list, "line 1"), head["rule"]
        self.plays, self.waits, made_up = [], [0] * len(arms), get(head, "simulated", bool, "line 1", False)
        self.unread = () if made_up else ("cap", "data")  # ends at which nothing of the last plays was read
        return {"live": 1 if head["trial"] == 2 else 0, "program": "", "coins": "", "budget": head["budget"],
                "declaration": {"name": rule, "policy": {"policy": rule}, "arms": [{"name": a} for a in arms], "unit":
                                {"of": "row"}, "budget": head["budget"], "reward": {"range": head["range"]}}}
    def of_trial(self, line):
        """A line of a trial: plays, what they release, or the end."""
        of = [p["arm"] for p in self.plays if p.get("release")]
        need(not self.ended and not (of and "plays" in line), "it follows the end, or plays that released nothing")
        if "plays" in line:
            exactly(line, ["plays"], "it")
            self.plays = get(line, "plays", list, "it")
            for p in self.plays:
                exactly(p, ["arm", "rounds"], "a play", ["release"])
                need(get(p, "arm", int, "a play") < len(self.arms), "there is no such arm")
                self.waits[p["arm"]] += get(p, "rounds", int, "a play")
                get(p, "release", bool, "a play", False)
        elif "slots" in line:
            need(of and line.get("n") == [self.waits[a] for a in of], "it is not of what was played")
            self.played({"plays": self.plays, "release": line})
            self.plays, self.waits = [], [0 if a in of else n for a, n in enumerate(self.waits)]
        else:
            exactly(line, ["end", "answer", "tau", "total"], "the end")
            total, answer, self.ended = get(line, "total", list, "it"), line["answer"], True
            need(type(answer) is int and answer in (range(len(self.arms)) if line["end"] == "answer" else [-1]) and
                 line["end"] in ("answer", "cap", "data", "interrupted"), "the end says more than why, and the answer")
            need([type(n) for n in total] == [int] * len(self.arms) and sum(total) == line["tau"], "its plays add up to less, or more")
            for arm, n in enumerate(total):
                most = self.heads[arm] + self.waits[arm]
                least = most - sum(p["rounds"] for p in self.plays if p["arm"] == arm) * (line["end"] != "answer")
                need(least <= n <= (least if line["end"] in self.unread else most), "its plays are not those above")
    def declared(self, head):
        d, what = get(head, "declaration", dict, "line 1"), "the declaration"
        self.name = get(d, "name", str, what)
        contextual, self.kind = get(d, "contextual", dict, what, {}), "arms"
        rules = get(contextual, "rules", list, what, [])
        if contextual:
            self.kind = {None: "contexts", "reward": "contexts", "joint": "joint-contexts"}[contextual.get("protect")]
        need(not rules or self.kind == "contexts", "rules would tell of protected contexts without noise")
        self.arms = [get(a, "name", str, "an arm") for a in get(d, "arms", list, what, [])]
        need(len(set(self.arms)) == len(self.arms) and (len(self.arms) >= 2) == (self.kind == "arms"),
             "it has %d arms, or two of one name" % len(self.arms))
        self.trust = get(d, "trust", str, what, "central")
        need(self.trust == "central" or self.trust in ("local", "two-server", "secagg") and self.kind == "arms",
             "its trust is unknown")
        self.policy = get(get(d, "policy", dict, what), "policy", str, what)
        by, unit = get(d, "by", dict, what, {}), get(d, "unit", dict, what)
        self.cells = [getattr(v, "text", v if type(v) is str else json.dumps(v)) for of in by.values() for v in of]
        self.cells += ["other"] * len(by)
        need(len(by) < 2, "by has more than one key")
        self.of, self.m = get(unit, "of", str, "unit"), max(1, get(unit, "assignments", int, "unit", 1))
        budget, self.sums, self.caps, self.total = get(d, "budget", dict, what), [], [], Fraction(0)
        need(set(budget) in ({"epsilon"}, {"rho"}), "the budget must be in epsilon or in rho to be checked here")
        self.currency = next(iter(budget))
        times = self.m if self.currency == "epsilon" else self.m**2
        reward = {"name": "reward", "budget": budget, "range": get(d, "reward", dict, what, {}).get("range", [0, 1])}
        for s in [reward] + get(d, "metrics", list, what, []) + rules:
            name, cost = get(s, "name", str, "a sum"), get(s, "budget", dict, "a sum")
            x = get(cost, self.currency, Fraction, "the budget")
            x = Fraction(getattr(cost[self.currency], "text", x))  # the decimal that was written
            lo, hi = (number(v, "range") for v in ([0, s["clip"]] if "clip" in s else s.get("range", [0, 1])))
            need(set(cost) == {self.currency} and x > 0 and lo < hi, "%r has no budget or no range" % name)
            self.sums.append((name, lo, hi))
            self.caps.append(x / times)
            self.total += x
        lo, hi = map(float, self.sums[0][1:])
        default = float(get(d.get("reward", {}), "default", Fraction, "the reward", 0))
        self.default = min(max((default - lo) * (1 / (hi - lo)), 0), 1)  # of the range, rounded as the program does
        need(len({s[0] for s in self.sums[1:]}) == len(self.sums) - 1, "two sums have one name")
        self.cap = self.total / times
        said = get(get(head, "budget", dict, "line 1"), self.currency, Fraction, "the budget of line 1")
        need(len(head["budget"]) == 1 and abs(said - self.caps[0]) <= said * SLACK, "line 1: its budget is not that of its declaration")
        self.believed = {"clipping", "closing", "complete", "disjoint", "noise"} | {k for k, yes in (
            ("rows", self.trial), ("assignments", not self.trial),
            ("exposure", d.get("exposure", "decide") != "decide"), ("reports", d.get("missing", "default") == "drop"),
            ("norms", self.kind != "arms"), ("own-action", self.kind == "joint-contexts"),
            ("trust", self.trust != "central")) if yes}
    def line(self, line):
        need(not self.ended, "it follows the end")
        if "end" in line:
            exactly(line, ["end", "keep", "coins"], "the end", ["leader", "policy", "without", "gone"])
            seed = get(line, "coins", str, "the end")
            need(re.fullmatch("[0-9a-f]{32}", seed) and hashlib.sha256(bytes.fromhex(seed)).hexdigest() == self.coins,
                 "its coins are not those of line 1")
            need(line["end"] in ("answer", "policy", "date", "operator") and all(
                type(line.get(k, False)) is bool for k in ("leader", "policy")) and all(
                type(x) is int for x in [line["keep"], line.get("gone", 0), *get(line, "without", list, "the end", [])]),
                 "the end says more than why, and what is kept")
            self.ended = True
        elif "cohort" in line:
            note = get(line, "cohort", dict, "it")
            need(self.trust == "secagg" and len(line) == 1, "it tells of a cohort")
            exactly(note, ["arm", "start", "end"], "a cohort", ["asked", "missing"])
            arm, start, end, asked = (get(note, k, int, "cohort", 0) for k in ("arm", "start", "end", "asked"))
            need(arm < len(self.arms) and self.heads[arm] <= start < end, "there is no such cohort")
            if asked > 0:
                need(all(a != arm or e <= start or end <= b for a, b, e in self.asked), "they were asked for already")
                self.asked[arm, start, end] = asked
        else:
            self.played(line)
    def played(self, line):
        change = get(line, "change", dict, "it", {})
        need(line and set(line) <= PARTS, "it is of no known kind")
        need(set(change) <= CHANGES, "it changes what must not change: %s" % ", ".join(set(change) - CHANGES))
        need(not self.rested or set(line) == {"change"}, "it follows the rest")
        if self.kind != "arms":
            need(not set(line) & {"plays", "ahead", "rest", "add", "off", "metrics"}, "it has arms")
            return self.segment(line) if "n" in line else need(set(line) == {"change"}, "it is of no known kind")
        need(not set(line) & {"n", "gram", "rules"}, "it has contexts, and the declaration has none")
        self.rested, rows = "rest" in line, []
        for key in ("plays", "ahead", "rest"):
            of = get(line, key, list, "it", [])
            rows += [r for r in (self.row(p, key) for p in of) if r]
            need(len({p["arm"] for p in of}) == len(of), "an arm is there twice")
        places = [(arm, cell) for arm, cells, _ in rows for cell in cells]
        need(len(set(places)) == len(places), "an arm is released twice at once")
        if places:
            self.sums_of(line, rows, places)
        else:
            need("release" not in line and "metrics" not in line, "it releases more than it says")
        if "add" in line:
            self.added(line, change)
        else:
            need("add" not in change and "from" not in line and "share" not in line, "it adds an arm, or does not")
        if "off" in line:
            arm = get(line, "off", int, "it")
            need(arm < len(self.arms) and arm not in self.off, "there is no such arm")
            self.off, self.ahead[arm] = self.off | {arm}, 0
            self.heads[arm] += get(line, "gone", int, "it", 0)
    def row(self, p, key):
        """What a row of a line releases: (arm, cells, take), or None."""
        exactly(p, ["arm", "rounds"], "a play", ["release", "held", "gone", "cells"])
        arm, rounds = get(p, "arm", int, "a play"), get(p, "rounds", int, "a play")
        gone, held = get(p, "gone", int, "a play", 0), get(p, "held", bool, "a play", False)
        cells, released = get(p, "cells", list, "a play", []), get(p, "release", bool, "a play", False)
        released = key == "ahead" or (rounds > 0 if key == "rest" else released)
        need(arm < len(self.arms), "there is no arm %d" % arm)
        need(key == "rest" or arm not in self.off, "arm %d was removed" % arm)
        if held:
            need(released and key == "plays" and self.ahead[arm] > 0 and not gone and not cells,
                 "a release of arm %d is said to be above, and is not" % arm)
            self.ahead[arm] -= 1
            return None
        if not released:
            need(not cells, "cells are released of nothing")
            self.heads[arm] += gone
            return None
        self.ahead[arm] += key == "ahead"
        need(bool(cells) == bool(self.cells) and cells == sorted(set(cells)) and
             all(type(c) is int and 0 <= c < len(self.cells) for c in cells), "there are no such cells")
        def take(n):
            need(n == rounds or key != "rest" and (n > rounds or self.policy == "split"),
                 "%d decisions of arm %d are released, and %d were to be" % (n, arm, rounds))
            start = self.heads[arm]
            self.heads[arm] += n + gone
            return [start, self.heads[arm]]
        return arm, cells or [None], take
    def added(self, line, change):
        arm, new = get(line, "add", int, "it"), get(change, "add", list, "its change")
        need(arm == len(self.arms) and len(new) == 1 and self.trust == "central" and "release" not in line,
             "arm %d cannot be added" % arm)
        name = get(new[0], "name", str, "the arm")
        need(name not in self.arms, "an arm of this name is there")
        self.arms, self.heads, self.ahead, self.open = self.arms + [name], self.heads + [0], self.ahead + [0], set()
    def label(self, places, slots):
        """Slots are numbered as they open: one for each arm and cell, and the next when one is released. A
        restart opens all anew, from the number after the last that was released."""
        each, free, after = max(1, len(self.cells)), max(self.first, default=-1) + 1, set()
        keys = [arm * each + (cell or 0) for arm, cell in places]
        fresh = tuple(range(free, free + len(self.arms) * each))
        anew = set() if self.trial and self.open else {(fresh, fresh[-1] + 1)}
        for table in self.open | anew:  # whether there was a restart may show later, and a trial has none
            numbers, top = list(table[0]), table[1]
            if [numbers[k] for k in keys] == slots:
                for top, k in enumerate(keys, top):
                    numbers[k] = top
                after.add((tuple(numbers), top + 1))
        need(after, "it releases slots that are not those that are open: a line was left out, or moved")
        self.open = after
    def sums_of(self, line, rows, places):
        """The releases of a line: of the reward, and beside it of each metric."""
        further = get(line, "metrics", list, "it", [])
        need(len(further) == len(self.sums) - 1, "it does not release the metrics that are declared")
        first = get(line, "release", dict, "it")
        for i, release in enumerate([first] + further):
            exactly(release, ["slots", "mechanism", "n", "sum", "tail"], "a release")
            slots, ns, sums = release["slots"], release["n"], release["sum"]
            need(all(type(x) is list and len(x) == len(places) for x in (slots, ns, sums)),
                 "a release has not a sum for each place")
            for s, n, x in zip(slots, ns, sums):
                number(x, "a sum")
                need(type(s) is int and type(n) is int and 0 <= s < MOST and 0 < n < MOST, "a release is of nothing")
            if i == 0:
                need(not set(slots) & set(self.first), "a slot is released again")
                self.label(places, slots)
                spans, at = [], 0
                for _, cells, take in rows:
                    spans += [take(sum(ns[at:at + len(cells)]))] * len(cells)
                    at += len(cells)
            need(slots == first["slots"] and ns == first["n"], "a metric is of other decisions than the reward")
            for j, (arm, cell) in enumerate(places):
                name = "" if cell is None else self.cells[cell]
                self.release(i, self.arms[arm], name, spans[j], ns[j], slots[j], release)
                if self.trust == "secagg":
                    self.session(arm, spans[j], ns[j], Fraction(sums[j]), release["mechanism"])
    def session(self, arm, span, n, total, m):
        """The noise of a sum is of the clients who were asked for it; if none were, it is of the default alone."""
        asked, each = self.asked.pop((arm, *span), None), Fraction(int(self.default * m["g"] + 0.5), m["g"])
        need(total == n * each if asked is None else m["users"] <= asked <= min(m["invited"], n),
             "the noise of arm %d is not of enough clients" % arm)
    def segment(self, line):
        """The release of a segment of decisions with contexts."""
        exactly(line, ["n", "release"], "it", ["gram", "rules"])
        n, release = get(line, "n", int, "it"), get(line, "release", dict, "it")
        exactly(release, ["slot", "mechanism", "n", "vector"], "a release")
        slot, span = get(release, "slot", int, "a release"), [self.heads[0], self.heads[0] + n]
        need(n > 0 and (self.kind == "contexts" or "gram" not in line), "it tells of protected contexts without noise")
        self.heads[0] += n
        need([number(x, "a vector") for x in get(release, "vector", list, "a release")], "there is no vector")
        rules = get(line, "rules", list, "it", [])
        need(len(rules) == len(self.sums) - 1, "it does not release the rules that are declared")
        self.release(0, "", "", span, n, slot, release)
        for i, rule in enumerate(rules, 1):
            exactly(rule, ["weights", "squares", "release"], "a rule")
            more = get(rule, "release", dict, "a rule")
            exactly(more, ["slots", "mechanism", "n", "sum", "tail"], "a release")
            need(more["slots"] == [slot] and more["n"] == [n] and type(more["sum"]) is list and len(more["sum"]) == 1,
                 "a rule is of other decisions than the vectors")
            self.release(i, "", "", span, n, slot, more)
    def release(self, i, arm, cell, span, n, slot, release):
        mechanism = get(release, "mechanism", dict, "a release")
        kind = get(mechanism, "mechanism", str, "a mechanism")
        need(kind in (OF_KIND[self.kind] if i == 0 else {"laplace", "gaussian"}), "%r is not checked here" % kind)
        need((kind == "aggregated") == (self.trust != "central"), "the mechanism %r is not of its trust" % kind)
        price, rules = self.price(kind, mechanism)
        need(price <= self.caps[i] * (1 + SLACK), "a release of %r costs %s %s, and %s is declared" %
             (self.sums[i][0], self.currency, show(price), show(self.caps[i])))
        if "tail" in release:
            self.tail(kind, mechanism, release["tail"])
        if self.trust == "central" and self.kind == "arms" or i > 0:
            need(self.running.setdefault(i, mechanism) == mechanism, "the mechanism of %r changes" % self.sums[i][0])
        if kind == "gram-tree":
            before = self.first.get(slot)
            total, of = before if type(before) is tuple else (0, mechanism)
            need(of == mechanism and slot == max(self.first, default=-1) + (before is None) and
                 (before is None or type(before) is tuple), "slot %d is released again" % slot)
            total += n
            need(get(release, "n", int, "a release") == total and total % max(1, mechanism.get("leaf", 1)) == 0 and
                 total <= mechanism["horizon"], "a running sum is not of all decisions so far")
            self.first[slot] = (total, mechanism)
            if before is not None:
                price, rules = Fraction(0), ["prefix"]
        elif i == 0:
            need(slot not in self.first, "slot %d is released again" % slot)
            need(self.kind == "arms" or slot == max(self.first, default=-1) + 1 and
                 get(release, "n", int, "a release") == n, "slot %d is not the next, or of other decisions" % slot)
            self.first[slot] = kind
        self.releases.append({
            "line": self.at, "sum": self.sums[i][0], "arm": arm, "cell": cell, "decisions": span, "n": n,
            "slot": slot, "mechanism": mechanism, "sensitivity_squared": SQUARES[kind], "rules": rules, "price": price})
    def price(self, kind, m):
        """What a release costs one decision, exactly, and by which rules."""
        exactly(m, ["mechanism"] + FIELDS[kind], "the mechanism", ["leaf"] if kind == "gram-tree" else [])
        square, rules = SQUARES[kind], [kind]
        need(get(m, "sigma" if "sigma" in m else "scale", Fraction, kind, 1) > 0, "the mechanism has no noise")
        if kind == "aggregated":
            g, users, invited, num, den, modulus, tau = (get(m, k, int, "the mechanism") for k in (
                "g", "users", "invited", "num", "den", "modulus", "tau"))
            need(m["trust"] == self.trust, "its trust is not the declared one")
            need((m["noise"], m["trust"]) in (("laplace", "local"), ("laplace", "two-server"), ("polya", "secagg")),
                 "noise %s under trust %s is not checked here" % (m["noise"], m["trust"]))
            need(min(g, num, den) >= 1 and 1 <= users <= invited and modulus >= invited * g + 2 * tau + 1,
                 "the mechanism has no noise, or its sums would be misread")
            pure, rules = Fraction(g * den, num), ["%s-%s" % (m["noise"], m["trust"])]
        elif "scale" in m:
            pure = {1: 1, 4: 2}[square] / get(m, "scale", Fraction, "the mechanism")
        else:
            sigma = get(m, "sigma", Fraction, "the mechanism")
            need(self.currency == "rho", "normal noise has no pure epsilon")
            if kind == "gram-tree":
                horizon, leaf = get(m, "horizon", int, "a tree"), max(1, get(m, "leaf", int, "a tree", 1))
                need(horizon >= leaf, "a tree has no leaves")
                square *= Fraction((horizon // leaf).bit_length(), 2)
            return square / (2 * sigma * sigma), rules
        return (min(pure * pure / 2, pure), rules + ["pure-to-zcdp"]) if self.currency == "rho" else (pure, rules)
    def tail(self, kind, m, tail):
        """The noise that is said to be in the sums must be that which is paid for."""
        exactly(tail, ["sigma", "h", "log"], "a tail")
        of = {k: get(tail, k, Fraction, "a tail") for k in tail}
        yes = kind == "aggregated" and of["h"] >= Fraction(m["num"], m["den"] * m["g"]) * (1 - SLACK)
        if kind != "aggregated":
            least, most = Fraction(m.get("scale", m.get("sigma"))), of["h" if kind == "laplace" else "sigma"]
            yes = least <= most <= least * Fraction(101, 100) + Fraction(1, 10**4)
        need(yes, "the tail is not that of its noise")
def show(x): return "%.6g" % float(x)
class Price(Fraction): pass  # what is said may be above it, and by a little only
class Near(Fraction): pass  # what is said may be rounded
def same(said, want, what):
    """Holds what is said against what follows, field by field. What is empty may be missing."""
    if type(want) in (Price, Near):
        x, least = number(said, what), want if type(want) is Price else want * (1 - SLACK)
        need(least <= x <= want * (1 + SLACK), "%s is said to be %s, and is %s" % (what, show(x), show(want)))
    elif type(want) is dict:
        need(type(said) is dict and set(said) <= set(want), "%s has other fields than %s" % (what, ", ".join(want)))
        for key, x in want.items():
            if key in said or x not in ("", []):
                same(said.get(key), x, what + "." + key)
    elif type(want) is list:
        need(type(said) is list and len(said) == len(want), "%s must have %d entries" % (what, len(want)))
        for i, x in enumerate(want):
            same(said[i], x, "%s[%d]" % (what, i))
    else:
        need(said == want and type(said) is not bool, "%s is not what follows from the transcript" % what)
def check(c, t):
    """Slots are disjoint, so that their maximum counts; what reads one slot adds up; the cap is kept; a unit has m."""
    slots, used = {}, {"adaptive", "parallel", "filter", "group"}
    for i, r in enumerate(t.releases):
        slots.setdefault(r["slot"], []).append(i)
        used |= set(r["rules"])
    each = [(slot, of, sum(t.releases[i]["price"] for i in of)) for slot, of in slots.items()]
    most = max((price for _, _, price in each), default=Fraction(0))
    need(most <= t.cap * (1 + SLACK), "a decision loses %s %s of %s" % (t.currency, show(most), show(t.cap)))
    total = most * (t.m if t.currency == "epsilon" else t.m**2)
    need(total <= t.total * (1 + SLACK) and type(c) is dict, "the total is above the budget, or it is no object")
    rules, cannot, converted = (c.pop(key, None) for key in ("rules", "cannot_show", "conversions"))
    same(c, {
        "certificate": 1, "kind": "trial" if t.trial else t.kind, "trust": t.trust, "program": t.program,
        "transcript": {"experiment": t.name, "lines": t.lines, "tip": t.tip}, "currency": t.currency,
        "unit": {"of": t.of, "assignments": t.m}, "arms": t.arms, "cells": t.cells, "budget": Near(t.total),
        "sums": [{"name": name, "range": [lo, hi]} for name, lo, hi in t.sums],
        "releases": [dict(r, price=Price(r["price"])) for r in t.releases],
        "total": {"rule": "group", "price": Price(total), "times": t.m, "of": [
            {"rule": "filter", "price": Price(most), "cap": Near(t.cap), "of": [
                {"rule": "parallel", "price": Price(most), "of": [
                    {"rule": "adaptive", "price": Price(price), "slot": slot, "releases": of}
                    for slot, of, price in each]}]}]}}, "certificate")
    said = number(c["total"]["price"], "total")
    cited(rules, used | conversions(converted, said, t), ["proof", "test"])
    cited(cannot, t.believed, ["test"])
    return said
def conversions(said, total, t):
    """The total in another currency."""
    if total == 0:
        return need(said == [], "nothing was released, and is converted") or set()
    need(type(said) is list and len(said) == 1, "it has not one conversion")
    if t.currency == "epsilon":
        same(said[0], {"rule": "pure-to-zcdp", "rho": Price(min(total * total / 2, total))}, "conversion")
        return {"pure-to-zcdp"}
    alpha, delta = (get(said[0], key, Fraction, "a conversion") for key in ("alpha", "delta"))
    need(alpha > 1 and delta == Fraction(1e-6), "a conversion must be to delta 1e-6, by an order above 1")
    with decimal.localcontext() as context:
        context.prec, context.rounding = 60, decimal.ROUND_CEILING
        a, d, rho = (decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator) for x in (alpha, delta, total))
        exact = rho * a - (a * d).ln() / (a - 1) + (1 - 1 / a).ln()
        exact += abs(exact) * decimal.Decimal("1e-40")  # outward, beyond what 60 digits round
    same(said[0], {"rule": "zcdp-to-approx", "alpha": alpha, "delta": delta,
                   "epsilon": Price(max(Fraction(0), Fraction(exact)))}, "conversion")
    return {"zcdp-to-approx"}
def cited(said, want, keys):
    """Each rule that is used has a statement, a proof and a test, and so has all that is believed, but for proofs."""
    need(type(said) is dict and set(said) == set(want), "what is used or believed is %s" % ", ".join(sorted(want)))
    for name, rule in said.items():
        exactly(rule, ["statement"] + keys, name)
        need(get(rule, "statement", str, name) and all(get(rule, key, list, name) for key in keys), name + " is empty")
        for p in (p for key in keys for p in rule[key]):
            exactly(p, ["file", "line", "name"], name)
            need(get(p, "file", str, name) and get(p, "line", int, name) and get(p, "name", str, name), name + " is empty")
def main(arguments):
    if len(arguments) != 3:
        return print("usage: check.py CERTIFICATE TRANSCRIPT", file=sys.stderr) or 1
    try:
        with open(arguments[1], "rb") as certificate, open(arguments[2], "rb") as transcript:
            t = Transcript(transcript.read())
            total = check(parse(certificate.read()), t)
    except Exception as e:  # whatever a file has in it, one line says that it is not accepted
        why = str(e) if type(e) is Wrong else "cannot be read: " + repr(e)[:200]
        return print("rejected: " + " ".join(why.split()), file=sys.stderr) or 1
    print("holds: %s: %d releases, a %s loses at most %s %s of %s; believed: %s" % (
        t.name, len(t.releases), t.of, t.currency, show(total), show(t.total), ", ".join(sorted(t.believed))))
    return 0
if __name__ == "__main__":
    sys.exit(main(sys.argv))
