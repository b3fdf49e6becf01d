#!/usr/bin/env python3
"""Check a certificate of Sotto against the transcript that it is of.

    python3 check.py CERTIFICATE TRANSCRIPT

Exit code 0: what the certificate says follows from the transcript. 1: it does not, or cannot be read, or is of a
kind that this checker does not know; one line says why. It needs Python's standard library and nothing of Sotto's.

It reads the transcript alone first: the chain, the declaration, each release with its slot, its row of decisions
and its sensitivity. It prices each with exact fractions, adds the prices up by slots, and converts the total with
many digits, rounded outward. Then it holds the certificate against that, field by field.

What it believes is in the certificate's list of what no transcript can show. It does not play the policy again
(`sotto replay` does), and does not know sums without noise.
"""

import decimal
import hashlib
import json
import re
import sys
from fractions import Fraction

SLACK = Fraction(1, 10**9)  # by which a cap may be exceeded, and a price be above the exact one
TICK = 1000  # milliseconds by which a line may be behind one above it
MOST = 1 << 62

# The squares of sensitivities, in units of the declared range, by mechanism. Beside it: the price of one release
# for a square s and the mechanism's fields, as a pure ε or as a ρ.
#
# - One reward in [0,1] moves a sum by at most 1.
# - Vectors v in the unit ball, rewards r in [-1,1]: one reward moves Σ v·r by at most 2. If v changes too, it is
#   the ball's diameter, 2 again.
# - Σ vv' with Σ v·r beside it: |vv' - ww'|² + |rv - sw|² ≤ 2 - 2p² + 2 + 2p ≤ 9/2 with p = |v·w|.
# - Σ zz' with z = (v, r), |z|² ≤ 2: |zz' - yy'|² ≤ |z|⁴ + |y|⁴ ≤ 8. A symmetric matrix has each entry twice off
#   its diagonal, and the noise of an entry once: half of that counts.
SQUARES = {"laplace": Fraction(1), "gaussian": Fraction(1), "aggregated": Fraction(1), "vector-gaussian": Fraction(4),
    "vector-laplace": Fraction(4), "gram-gaussian": Fraction(9, 2), "gram-tree": Fraction(8)}
FIELDS = {"laplace": ["scale"], "gaussian": ["sigma"], "vector-gaussian": ["sigma"], "vector-laplace": ["scale"],
    "gram-gaussian": ["sigma"], "gram-tree": ["sigma", "horizon"],
    "aggregated": ["trust", "noise", "g", "users", "invited", "modulus", "tau", "num", "den"]}
# What each kind of transcript may release.
OF_KIND = {"arms": {"laplace", "gaussian", "aggregated"}, "contexts": {"vector-gaussian"},
    "joint-contexts": {"gram-gaussian", "gram-tree", "vector-laplace"}}
CHANGES = {"end", "window", "floor", "off", "add", "guard", "resume", "share", "description", "public"}

class Wrong(Exception):
    pass

def need(yes, text):
    if not yes:
        raise Wrong(text)

# Reading.

def pairs(items):
    out = dict(items)
    need(len(out) == len(items), "an object has a field twice")
    return out

def refuse(text):
    raise Wrong("%s is no number" % text)

def parse(text):
    """JSON, with every number that is no integer as the fraction that a double has."""
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=refuse, parse_float=double)
    except (ValueError, RecursionError, OverflowError) as e:
        raise Wrong("it is no JSON: %s" % e)

class Double(Fraction):
    """A double, and how it was written."""

def double(text):
    x = float(text)
    need(abs(x) < float("inf"), "a number is too large")
    out = Double(x)
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
    if kind is int:
        need(0 <= x < MOST, "%r of %s is out of range" % (name, what))
    return x

def exactly(at, names, what, optional=()):
    need(type(at) is dict and set(names) <= set(at) <= set(names) | set(optional),
         "%s must have the fields %s" % (what, ", ".join(names)))

def decimal_of(x):
    """What was written, not the double that it is read as."""
    return Fraction(x.text) if type(x) is Double else Fraction(x)

def lines_of(data):
    """The objects of a transcript, and the hash of its last line."""
    need(data.endswith(b"\n"), "the last line is cut, or there is none")
    tip, out, latest = None, [], None
    for n, line in enumerate(data[:-1].split(b"\n"), 1):
        start = b"{" if tip is None else b'{"after":"%s",' % tip.encode()
        need(line.startswith(start) and not (tip is None and line.startswith(b'{"after":')) and line.strip() == line,
             "line %d does not follow the line before" % n)
        tip = hashlib.sha256(line).hexdigest()
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise Wrong("line %d is no text" % n)
        object = parse(text)
        need(type(object) is dict, "line %d is no object" % n)
        object.pop("after", None)
        at = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z", str(object.pop("at", "")))
        need(at, "line %d has no time" % n)
        h, m, s, ms = map(int, at.groups()[1:])
        y, mo, d = map(int, at.group(1).split("-"))
        now = ((((y * 12 + mo) * 31 + d) * 24 + h) * 60 + m) * 60000 + s * 1000 + ms
        need(latest is None or now > latest - TICK, "the time of line %d is before that of a line above" % n)
        latest = now if latest is None else max(now, latest)
        out.append(object)
    return out, tip

# The transcript.

class Transcript:
    """What follows from a transcript alone."""

    def __init__(self, data):
        lines, self.tip = lines_of(data)
        self.lines = len(lines)
        head = lines[0]
        need("live" in head, "it is not the transcript of a live experiment")
        exactly(head, ["live", "program", "declaration", "budget", "coins"], "line 1")
        need(head["live"] == 1 and type(head["live"]) is int, "line 1: its version is not 1")
        self.program, self.coins = head["program"], head["coins"]
        self.declared(head)
        self.releases, self.notes = [], []
        self.heads = [0] * max(1, len(self.arms))
        self.ahead = [0] * len(self.heads)
        self.off, self.open, self.first = set(), set(), {}
        self.running, self.ended, self.rested = {}, False, False
        for self.at, line in enumerate(lines[1:], 2):
            try:
                self.line(line)
            except Wrong as e:
                raise Wrong("line %d: %s" % (self.at, e))
        for arm, start, end in self.notes:
            rows = {(r["arm"], tuple(r["decisions"])) for r in self.releases}
            need((self.arms[arm], (start, end)) in rows, "a session was held, and its sum is in no release")

    def declared(self, head):
        d = get(head, "declaration", dict, "line 1")
        what = "the declaration"
        self.name = get(d, "name", str, what)
        contextual = d.get("contextual")
        self.kind, rules = "arms", []
        if contextual is not None:
            need(type(contextual) is dict and "arms" not in d, "it has contexts and arms")
            protect = contextual.get("protect")
            need(protect in (None, "joint"), "it protects what is unknown here")
            self.kind = "joint-contexts" if protect else "contexts"
            rules = get(contextual, "rules", list, what, [])
        self.arms = [get(a, "name", str, "an arm") for a in get(d, "arms", list, what, [])]
        need(len(set(self.arms)) == len(self.arms), "two arms have one name")
        need((len(self.arms) >= 2) == (self.kind == "arms"), "it has %d arms" % len(self.arms))
        self.trust = get(d, "trust", str, what, "central")
        need(self.trust in ("central", "local", "two-server", "secagg"), "trust is unknown")
        need(self.trust == "central" or self.kind == "arms", "trust must be central with contexts")
        self.policy = get(get(d, "policy", dict, what), "policy", str, what)
        by = get(d, "by", dict, what, {})
        need(len(by) <= 1, "by has more than one key")
        self.cells = []
        for values in by.values():
            need(type(values) is list, "by has no list")
            self.cells = [v if type(v) is str else str(getattr(v, "text", json.dumps(v, default=str))) for v in values]
            self.cells.append("other")
        unit = get(d, "unit", dict, what)
        self.of, self.m = get(unit, "of", str, "unit"), max(1, get(unit, "assignments", int, "unit", 1))
        budget = get(d, "budget", dict, what)
        need(set(budget) in ({"epsilon"}, {"rho"}), "the budget is in a currency that is not checked here: it must "
             "be epsilon or rho")
        self.currency = next(iter(budget))
        times = self.m if self.currency == "epsilon" else self.m**2
        self.sums, self.caps, self.total = [], [], Fraction(0)
        reward = {"name": "reward", "budget": budget, "range": get(d, "reward", dict, what, {}).get("range", [0, 1])}
        for s in [reward] + get(d, "metrics", list, what, []) + rules:
            name, cost = get(s, "name", str, "a sum"), get(s, "budget", dict, "a sum")
            need(set(cost) == {self.currency}, "the budget of %r is in another currency" % name)
            get(cost, self.currency, Fraction, "budget")
            x = decimal_of(cost[self.currency])
            need(x > 0, "the budget of %r is not above 0" % name)
            between = [0, s["clip"]] if s in rules and "clip" in s else s.get("range", [0, 1])
            need(type(between) is list and len(between) == 2, "the range of %r is none" % name)
            lo, hi = (number(v, "range") for v in between)
            need(lo < hi, "the range of %r is none" % name)
            self.sums.append((name, lo, hi))
            self.caps.append(x / times)
            self.total += x
        need(len({s[0] for s in self.sums[1:]}) == len(self.sums) - 1, "two sums have one name")
        self.cap = self.total / times
        one = get(head, "budget", dict, "line 1")
        need(set(one) == {self.currency}, "line 1: its budget is in another currency than the declaration's")
        said = get(one, self.currency, Fraction, "budget")
        need(close(said, self.caps[0]), "line 1: its budget is not that of its declaration")
        self.believed = {"assignments", "clipping", "closing", "complete", "disjoint", "noise"}
        if d.get("exposure", "decide") != "decide":
            self.believed.add("exposure")
        if d.get("missing", "default") == "drop":
            self.believed.add("reports")
        if self.trust != "central":
            self.believed.add("trust")
        if self.kind != "arms":
            self.believed.add("norms")
        if self.kind == "joint-contexts":
            self.believed.add("own-action")

    def line(self, line):
        need(not self.ended, "it follows the end")
        if "end" in line:
            exactly(line, ["end", "keep", "coins"], "the end", ["leader", "policy", "without", "gone"])
            seed = get(line, "coins", str, "the end")
            need(re.fullmatch("[0-9a-f]{32}", seed) and hashlib.sha256(bytes.fromhex(seed)).hexdigest() == self.coins,
                 "its coins are not those of line 1")
            self.ended = True
        elif "cohort" in line:
            note = get(line, "cohort", dict, "it")
            need(self.trust == "secagg" and len(line) == 1, "it tells of a cohort")
            arm, start, end = (get(note, k, int, "cohort") for k in ("arm", "start", "end"))
            need(arm < len(self.arms) and start < end, "there is no such cohort")
            if get(note, "asked", int, "cohort", 0) > 0:
                need(all(n[0] != arm or n[2] <= start or end <= n[1] for n in self.notes),
                     "decisions were asked for in two sessions")
                self.notes.append((arm, start, end))
        else:
            self.played(line)

    def played(self, line):
        allowed = {"plays", "ahead", "rest", "off", "add", "from", "share", "gone", "change", "release", "metrics",
                   "n", "gram", "rules"}
        need(line and set(line) <= allowed, "it is of no known kind")
        change = get(line, "change", dict, "it", {})
        need(set(change) <= CHANGES, "it changes what must not change: %s" % ", ".join(set(change) - CHANGES))
        need(not self.rested or set(line) == {"change"}, "it follows the rest")
        if self.kind != "arms":
            need(not set(line) & {"plays", "ahead", "rest", "add", "off", "metrics"}, "it has arms")
            if "n" in line:
                self.segment(line)
            else:
                need(set(line) == {"change"}, "it is of no known kind")
            return
        need(not set(line) & {"n", "gram", "rules"}, "it has contexts, and the declaration has none")
        self.rested = "rest" in line
        rows = [self.row(p, get(p, "release", bool, "a play", False), "plays")
                for p in get(line, "plays", list, "it", [])]
        rows += [self.row(p, True, "ahead") for p in get(line, "ahead", list, "it", [])]
        rows += [self.row(p, get(p, "rounds", int, "the rest", 0) > 0, "rest")
                 for p in get(line, "rest", list, "it", [])]
        for key in ("plays", "ahead", "rest"):
            arms = [p["arm"] for p in line.get(key, [])]
            need(len(set(arms)) == len(arms), "an arm is there twice")
        rows = [r for r in rows if r]
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
            need(arm < len(self.arms) and arm not in self.off and self.trust != "secagg" or "gone" not in line,
                 "there is no such arm")
            self.off.add(arm)
            self.ahead[arm] = 0
            self.heads[arm] += get(line, "gone", int, "it", 0)

    def row(self, p, released, key):
        """What a row of a line releases: (arm, cells, take), or None."""
        exactly(p, ["arm", "rounds"], "a play", ["release", "held", "gone", "cells"])
        arm, rounds = get(p, "arm", int, "a play"), get(p, "rounds", int, "a play")
        gone, held = get(p, "gone", int, "a play", 0), get(p, "held", bool, "a play", False)
        cells = get(p, "cells", list, "a play", [])
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
        if key == "ahead":
            self.ahead[arm] += 1
        if self.cells:
            need(cells and all(type(c) is int and 0 <= c < len(self.cells) for c in cells) and
                 cells == sorted(set(cells)), "there are no such cells")
        else:
            need(not cells, "the declaration has no cells")
        exact = key == "rest"
        least = 0 if self.policy == "split" and key != "rest" else rounds

        def take(n):
            need(n == rounds if exact else n >= least, "%d decisions of arm %d are released, and %d were to be" %
                 (n, arm, rounds))
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
        self.arms.append(name)
        self.heads.append(0)
        self.ahead.append(0)
        self.open = set()  # slots are opened anew

    def label(self, places, slots):
        """Slots are numbered as they open: one for each arm and cell, and the next when one is released. A
        restart opens all anew, from the number after the last that was released."""
        each, last = max(1, len(self.cells)), max(self.first, default=-1)
        keys = [arm * each + (cell or 0) for arm, cell in places]
        fresh = tuple(range(last + 1, last + 1 + len(self.arms) * each))
        after = set()
        for table in self.open | {(fresh, fresh[-1] + 1)}:  # whether there was a restart may show later
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
        need(len(further) == len(self.sums) - 1, "it releases %d metrics, and %d are declared" %
             (len(further), len(self.sums) - 1))
        all_slots, counts = None, None
        for i, release in enumerate([get(line, "release", dict, "it")] + further):
            exactly(release, ["slots", "mechanism", "n", "sum", "tail"], "a release")
            slots, ns, sums = release["slots"], release["n"], release["sum"]
            need(all(type(x) is list and len(x) == len(places) for x in (slots, ns, sums)),
                 "a release has not a sum for each place")
            for s, n, x in zip(slots, ns, sums):
                number(x, "a sum")
                need(type(s) is int and type(n) is int and 0 <= s < MOST and 0 < n < MOST, "a release is of nothing")
            if i == 0:
                all_slots, counts = slots, ns
                for s in slots:
                    need(s not in self.first, "slot %d is released again" % s)
                self.label(places, slots)
                spans, at = [], 0
                for _, cells, take in rows:
                    spans += [take(sum(ns[at:at + len(cells)]))] * len(cells)
                    at += len(cells)
            need(slots == all_slots and ns == counts, "a metric is of other decisions than the reward")
            for j, (arm, cell) in enumerate(places):
                self.release(i, self.arms[arm], "" if cell is None else self.cells[cell], spans[j], ns[j],
                             slots[j], release)

    def segment(self, line):
        """The release of a segment of decisions with contexts."""
        exactly(line, ["n", "release"], "it", ["gram", "rules"])
        n, release = get(line, "n", int, "it"), get(line, "release", dict, "it")
        exactly(release, ["slot", "mechanism", "n", "vector"], "a release")
        slot = get(release, "slot", int, "a release")
        span = [self.heads[0], self.heads[0] + n]
        need(n > 0, "a release is of nothing")
        self.heads[0] += n
        need(type(release["vector"]) is list and release["vector"], "there is no vector")
        for x in release["vector"]:
            number(x, "a vector")
        rules = get(line, "rules", list, "it", [])
        need(len(rules) == len(self.sums) - 1, "it releases %d rules, and %d are declared" %
             (len(rules), len(self.sums) - 1))
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
        allowed = OF_KIND[self.kind] if i == 0 else {"laplace", "gaussian"}
        need(kind in SQUARES and kind in allowed, "the mechanism %r is not checked here" % kind)
        need((kind == "aggregated") == (self.trust != "central"), "the mechanism %r is not of its trust" % kind)
        price, rules = self.price(kind, mechanism)
        need(price <= self.caps[i] * (1 + SLACK), "a release of %r costs %s %s, and %s is declared" %
             (self.sums[i][0], self.currency, show(price), show(self.caps[i])))
        if "tail" in release:
            self.tail(kind, mechanism, release["tail"])
        if self.trust == "central" and self.kind == "arms" or i > 0:
            need(self.running.setdefault(i, mechanism) == mechanism, "the mechanism of %r changes" % self.sums[i][0])
        if i == 0 and kind == "gram-tree":
            before = self.first.get(slot)
            total, of = before if type(before) is tuple else (0, mechanism)
            need((before is None or type(before) is tuple) and of == mechanism and slot == max(self.first, default=slot)
                 or before is None and slot == max(self.first) + 1, "slot %d is released again" % slot)
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
        if kind == "aggregated":
            g, users, invited, num, den = (get(m, k, int, "the mechanism")
                                           for k in ("g", "users", "invited", "num", "den"))
            get(m, "modulus", int, "the mechanism"), get(m, "tau", int, "the mechanism")
            need(m["trust"] == self.trust, "its trust is not the declared one")
            need((m["noise"], m["trust"]) in (("laplace", "local"), ("laplace", "two-server"), ("polya", "secagg")),
                 "noise %s under trust %s is not checked here" % (m["noise"], m["trust"]))
            need(min(g, num, den) >= 1 and 1 <= users <= invited, "the mechanism has no noise")
            need(m["modulus"] >= invited * g + 2 * m["tau"] + 1, "sums would be misread")
            pure, rules = Fraction(g * den, num), ["%s-%s" % (m["noise"], m["trust"])]
        elif "scale" in m:
            scale = get(m, "scale", Fraction, "the mechanism")
            need(scale > 0, "the mechanism has no noise")
            pure = {1: 1, 4: 2}[square] / scale
        else:
            sigma = get(m, "sigma", Fraction, "the mechanism")
            need(sigma > 0, "the mechanism has no noise")
            need(self.currency == "rho", "normal noise has no pure epsilon")
            levels = 1
            if kind == "gram-tree":
                horizon, leaf = get(m, "horizon", int, "a tree"), max(1, get(m, "leaf", int, "a tree", 1))
                need(horizon >= leaf, "a tree has no leaves")
                levels, square = (horizon // leaf).bit_length(), square / 2
            return levels * square / (2 * sigma * sigma), rules
        if self.currency == "rho":
            return min(pure * pure / 2, pure), rules + ["pure-to-zcdp"]
        return pure, rules

    def tail(self, kind, m, tail):
        """The noise that is said to be in the sums must be that which is paid for."""
        exactly(tail, ["sigma", "h", "log"], "a tail")
        of = {k: get(tail, k, Fraction, "a tail") for k in tail}
        field, place = ("scale", "h") if kind == "laplace" else ("sigma", "sigma")
        if kind in ("laplace", "gaussian"):
            least = get(m, field, Fraction, "the mechanism")
            need(least <= of[place] <= least * Fraction(101, 100) + Fraction(1, 10**4),
                 "the tail is not that of its noise")
        elif kind == "aggregated":
            need(of["h"] >= Fraction(m["num"], m["den"] * m["g"]) * (1 - SLACK), "the tail is not that of its noise")

def close(a, b):
    return abs(a - b) <= abs(b) * SLACK

def show(x):
    return "%.6g" % float(x)

# The certificate.

def above(said, exact, what):
    """A price may be rounded up, and a little only."""
    need(exact <= said <= exact * (1 + SLACK), "%s is said to be %s, and is %s" % (what, show(said), show(exact)))

def check(c, t):
    exactly(c, ["certificate", "kind", "trust", "program", "transcript", "unit", "sums", "currency", "budget", "releases",
                "total", "conversions", "rules", "cannot_show"], "the certificate", ["arms", "cells"])
    need(c["certificate"] == 1 and type(c["certificate"]) is int, "the version of the certificate is not 1")
    for key, want in (("kind", t.kind), ("trust", t.trust), ("program", t.program), ("currency", t.currency)):
        need(c[key] == want, "%s is %s, and the transcript's is %s" % (key, json.dumps(c[key], default=str), want))
    exactly(c["transcript"], ["experiment", "lines", "tip"], "transcript")
    need(c["transcript"] == {"experiment": t.name, "lines": t.lines, "tip": t.tip}, "it is of another transcript")
    exactly(c["unit"], ["of", "assignments"], "unit")
    need(c["unit"] == {"of": t.of, "assignments": t.m}, "the unit is not the declared one")
    need(c.get("arms", []) == t.arms, "the arms are not those of the transcript")
    need(c.get("cells", []) == t.cells, "the cells are not those of the transcript")
    sums = get(c, "sums", list, "the certificate")
    need(len(sums) == len(t.sums), "the sums are not those that are declared")
    for s, (name, lo, hi) in zip(sums, t.sums):
        exactly(s, ["name", "range"], "a sum")
        need(s["name"] == name and s["range"] == [lo, hi], "the range of %r is not the declared one" % name)
    need(close(get(c, "budget", Fraction, "the certificate"), t.total), "the budget is not the declared one")
    releases = get(c, "releases", list, "the certificate")
    need(len(releases) == len(t.releases), "it has %d releases, and the transcript has %d" %
         (len(releases), len(t.releases)))
    for i, (r, want) in enumerate(zip(releases, t.releases)):
        what = "release %d" % i
        for key in want:
            got = r.get(key, "") if type(r) is dict else None
            if key == "price":
                above(get(r, key, Fraction, what), want[key], "the price of " + what)
            else:
                need(got == want[key] and type(got) is not bool, "%s: its %s is not that of the transcript" % (what, key))
        need(set(r) <= set(want), "%s has a field too many" % what)
    used = {rule for r in t.releases for rule in r["rules"]} | {"adaptive", "parallel", "filter", "group"}
    total = tree(c["total"], t)
    used |= conversions(get(c, "conversions", list, "the certificate"), total, t)
    cited(c["rules"], used, True)
    cited(c["cannot_show"], t.believed, False)
    return total

def tree(group, t):
    """Slots are disjoint, so that their maximum counts; what reads one slot adds up; the cap is kept; and a unit
    has so many decisions."""
    slots = {}
    for i, r in enumerate(t.releases):
        slots.setdefault(r["slot"], []).append(i)
    exactly(group, ["rule", "price", "times", "of"], "total")
    need(group["rule"] == "group" and group["times"] == t.m and type(group["of"]) is list and len(group["of"]) == 1,
         "the total is not that of a unit with its decisions")
    cap = group["of"][0]
    exactly(cap, ["rule", "price", "cap", "of"], "the filter")
    need(cap["rule"] == "filter" and type(cap["of"]) is list and len(cap["of"]) == 1, "there is no filter")
    need(close(get(cap, "cap", Fraction, "the filter"), t.cap), "the cap is not that of one decision")
    parallel = cap["of"][0]
    exactly(parallel, ["rule", "price"], "parallel composition", ["of"])
    of = get(parallel, "of", list, "parallel composition", [])
    need(parallel["rule"] == "parallel", "slots are not composed in parallel")
    need(len(of) == len(slots), "there are %d slots, and the transcript has %d" % (len(of), len(slots)))
    most, seen = Fraction(0), set()
    for node in of:
        exactly(node, ["rule", "price", "slot", "releases"], "a slot")
        slot = get(node, "slot", int, "a slot")
        need(node["rule"] == "adaptive" and slot not in seen and node["releases"] == slots.get(slot),
             "slot %d has not the releases of the transcript" % slot)
        seen.add(slot)
        exact = sum(t.releases[i]["price"] for i in slots[slot])
        above(get(node, "price", Fraction, "a slot"), exact, "the price of slot %d" % slot)
        most = max(most, exact)
    need(most <= t.cap * (1 + SLACK), "a decision loses %s %s, and the cap is %s" % (t.currency, show(most), show(t.cap)))
    above(get(parallel, "price", Fraction, "parallel composition"), most, "the price of all slots")
    above(get(cap, "price", Fraction, "the filter"), most, "what the filter let pass")
    total = most * (t.m if t.currency == "epsilon" else t.m**2)
    above(get(group, "price", Fraction, "total"), total, "the total")
    need(total <= t.total * (1 + SLACK), "the total is above the budget")
    return get(group, "price", Fraction, "total")

def conversions(said, total, t):
    """The total in another currency."""
    if total == 0:
        need(said == [], "nothing was released, and is converted")
        return set()
    need(len(said) == 1, "it has not one conversion")
    c = said[0]
    if t.currency == "epsilon":
        exactly(c, ["rule", "rho"], "a conversion")
        need(c["rule"] == "pure-to-zcdp", "a conversion is by another rule")
        above(get(c, "rho", Fraction, "a conversion"), min(total * total / 2, total), "rho")
        return {"pure-to-zcdp"}
    exactly(c, ["rule", "epsilon", "delta", "alpha"], "a conversion")
    need(c["rule"] == "zcdp-to-approx", "a conversion is by another rule")
    alpha, delta = get(c, "alpha", Fraction, "a conversion"), get(c, "delta", Fraction, "a conversion")
    need(alpha > 1 and delta == Fraction(1e-6), "a conversion must be to delta 1e-6, by an order above 1")
    with decimal.localcontext() as context:
        context.prec, context.rounding = 60, decimal.ROUND_CEILING
        a, d, rho = (decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator) for x in (alpha, delta, total))
        one = decimal.Decimal(1)
        exact = rho * a - (a * d).ln() / (a - one) + (one - one / a).ln()
        exact += abs(exact) * decimal.Decimal("1e-40")  # outward, beyond what 60 digits round
    above(get(c, "epsilon", Fraction, "a conversion"), max(Fraction(0), Fraction(exact)), "epsilon")
    return {"zcdp-to-approx"}

def cited(said, want, proved):
    """Each rule that is used has a statement, a proof and a test, and so has all that is believed, but for proofs."""
    need(type(said) is dict and set(said) == set(want), "rules that are used, or believed, are %s" %
         ", ".join(sorted(want)))
    for name, rule in said.items():
        exactly(rule, ["statement", "test"] + (["proof"] if proved else []), name)
        need(get(rule, "statement", str, name), "%s says nothing" % name)
        for key in ("proof", "test") if proved else ("test",):
            places = get(rule, key, list, name)
            need(places, "%s has no %s" % (name, key))
            for p in places:
                exactly(p, ["file", "line", "name"], key)
                need(get(p, "file", str, key) and get(p, "line", int, key) > 0 and get(p, "name", str, key),
                     "%s has no %s" % (name, key))

def main(arguments):
    if len(arguments) != 3:
        print("usage: check.py CERTIFICATE TRANSCRIPT", file=sys.stderr)
        return 1
    try:
        data = []
        for path in arguments[1:]:
            with open(path, "rb") as f:
                data.append(f.read())
        t = Transcript(data[1])
        total = check(parse(data[0].decode()), t)
    except Wrong as e:
        print("rejected: %s" % " ".join(str(e).split()), file=sys.stderr)
        return 1
    except Exception as e:  # whatever a file has in it, one line says that it is not accepted
        print("rejected: cannot be read: %s" % " ".join(repr(e)[:200].split()), file=sys.stderr)
        return 1
    print("holds: %s: %d releases, a %s loses at most %s %s of %s; believed: %s" % (
        t.name, len(t.releases), t.of, t.currency, show(total), show(t.total), ", ".join(sorted(t.believed))))
    return 0

if __name__ == "__main__":
    sys.exit(main(sys.argv))
