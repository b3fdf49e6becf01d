#!/usr/bin/env python3
"""Draw every figure of this bundle, data/FIGURE/NAME.csv, as figures/FIGURE/NAME.svg.

It checks the files against SHA256SUMS first. Exit code 0: all files are as they were, and every figure is drawn.
"""

import csv
import hashlib
import json
import math
import os
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 480, 80, 250, 60, 60
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]


def sums():
    """The files of the bundle: what each must hash to, and its name."""
    with open(os.path.join(HERE, "SHA256SUMS"), encoding="utf-8") as f:
        return [line.rstrip("\n").split("  ", 1) for line in f]


def check():
    """Says which files are not what they were."""
    wrong = []
    for want, name in sums():
        try:
            with open(os.path.join(HERE, *name.split("/")), "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != want:
                    wrong.append(name + " is not what it was")
        except OSError as e:
            wrong.append(f"{name}: {e.strerror}")
    return wrong


def number(text):
    return float(text) if text else math.nan


class Axis:
    """Places numbers between two ends of the picture."""

    def __init__(self, values, log, at, to):
        self.log = log
        values = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1, 10]
        lo, hi = min(values), max(values)
        if lo == hi:
            lo, hi = (lo / 2, hi * 2) if log else (lo - 1, hi + 1)
        self.lo, self.hi, self.at, self.to = lo, hi, at, to

    def __call__(self, v):
        if not math.isfinite(v) or self.log and v <= 0:
            return None
        f = math.log10 if self.log else float
        return self.at + (self.to - self.at) * (f(v) - f(self.lo)) / (f(self.hi) - f(self.lo))

    def ticks(self):
        if self.log:
            first, last = math.ceil(math.log10(self.lo) - 1e-9), math.floor(math.log10(self.hi) + 1e-9)
            if last - first >= 1:
                return [10.0**k for k in range(first, last + 1, max(1, (last - first) // 6))]
            return [self.lo, self.hi]
        step = 10 ** math.floor(math.log10((self.hi - self.lo) / 4))
        step *= next(m for m in (1, 2, 5, 10) if (self.hi - self.lo) / (step * m) <= 8)
        return [k * step for k in range(math.ceil(self.lo / step - 1e-9), math.floor(self.hi / step + 1e-9) + 1)]


def text(x, y, words, anchor="start", size=12):
    words = escape("".join(c if c.isprintable() else "\ufffd" for c in words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def frame(about, x, y, height):
    """The titles, axes and marks of a figure."""
    out = [text(LEFT, 24, about["title"], size=16), text(LEFT, 44, about.get("subtitle", ""))]
    base = height - BOTTOM
    for v in x.ticks():
        out += [f'<line x1="{x(v):.1f}" y1="{TOP}" x2="{x(v):.1f}" y2="{base}" stroke="#eee"/>',
            text(x(v), base + 16, f"{v:g}", "middle")]
    for v in y.ticks() if y else ():
        out += [f'<line x1="{LEFT}" y1="{y(v):.1f}" x2="{WIDTH - RIGHT}" y2="{y(v):.1f}" stroke="#eee"/>',
            text(LEFT - 6, y(v) + 4, f"{v:g}", "end")]
    out.append(text((LEFT + WIDTH - RIGHT) / 2, base + 36, about["x"], "middle"))
    out.append(text(LEFT, TOP - 6, about["y"]))
    for mark in about.get("marks", []):
        if x.lo <= mark["x"] <= x.hi and x(mark["x"]) is not None:
            at = x(mark["x"])
            out += [f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{base}" stroke="#999" stroke-dasharray="4 3"/>',
                text(at + 4, TOP + 12, mark["label"], size=11)]
    return out + [text(LEFT, height - 8, about.get("note", ""), size=10)]


def curves(about, rows):
    """Lines with bands."""
    ends = [number(r[k]) for r in rows for k in ("mean", "low", "high")]
    x = Axis([number(r["x"]) for r in rows], about.get("log_x"), LEFT, WIDTH - RIGHT)
    y = Axis(ends, about.get("log_y"), HEIGHT - BOTTOM, TOP)
    out = frame(about, x, y, HEIGHT)
    for i, series in enumerate(about.get("series", [])):
        mine = [r for r in rows if r["series"] == str(i)]
        colour = "#999999" if series.get("aside") else COLOURS[i % len(COLOURS)]
        dash = ' stroke-dasharray="2 3"' if series.get("plain") else ""
        band = [(x(number(r["x"])), y(number(r["low"])), y(number(r["high"]))) for r in mine]
        band = [b for b in band if None not in b]
        if len(band) > 1:
            points = [(a, low) for a, low, _ in band] + [(a, high) for a, _, high in reversed(band)]
            out.append(f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="{colour}" '
                'fill-opacity="0.15"/>')
        path, pen = [], False
        for r in mine:
            a, b = x(number(r["x"])), y(number(r["mean"]))
            if a is None or b is None:
                pen = False
                continue
            if pen and series.get("step"):
                path.append(f"H{a:.1f}")
            path.append(f"{'L' if pen else 'M'}{a:.1f} {b:.1f}")
            pen = True
        if path:
            out.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
            if len(path) == 1:
                a, b = path[0][1:].split()
                out.append(f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>')
        at = TOP + 10 + 18 * i
        out += [f'<line x1="{WIDTH - RIGHT + 12}" y1="{at}" x2="{WIDTH - RIGHT + 32}" y2="{at}" stroke="{colour}" '
            f'stroke-width="1.8"{dash}/>', text(WIDTH - RIGHT + 38, at + 4, series["label"])]
    return out, max(HEIGHT, TOP + 18 * len(about.get("series", [])) + 20)


def forest(about, rows):
    """An interval a row, beside a reference."""
    height = TOP + BOTTOM + 20 * len(rows)
    ends = [number(r[k]) for r in rows for k in ("low", "middle", "high")] + [about["reference"]]
    x = Axis(ends, about.get("log_x"), LEFT + 200, WIDTH - RIGHT)
    out = frame(about, x, None, height)
    at = x(about["reference"])
    if at is not None:
        out += [f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{height - BOTTOM}" stroke="#999"/>',
            text(at, TOP - 6, about.get("says", ""), "middle", 11)]
    for i, r in enumerate(rows):
        y = TOP + 14 + 20 * i
        low, middle, high = (x(number(r[k])) for k in ("low", "middle", "high"))
        low, high = x.at if low is None else low, x.to if high is None else high
        out += [text(LEFT + 190, y + 4, r["row"], "end", 11),
            f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="#0072b2" stroke-width="2"/>',
            text(WIDTH - RIGHT + 12, y + 4, f"{r['text']}  {r['verdict']}", size=11)]
        if middle is not None:
            out.append(f'<circle cx="{middle:.1f}" cy="{y}" r="3.5" fill="#0072b2"/>')
    return out, height


def main():
    wrong = check()
    if wrong:
        sys.exit("\n".join(wrong))
    drawn = 0
    for _, listed in sums():
        if not (listed.startswith("data/") and listed.endswith(".csv")):
            continue
        name = os.path.join(*listed[:-len(".csv")].split("/"))
        with open(os.path.join(HERE, name + ".json"), encoding="utf-8") as f:
            about = json.load(f)
        with open(os.path.join(HERE, name + ".csv"), newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        body, height = (forest if "reference" in about else curves)(about, rows)
        to = os.path.join(HERE, "figures", os.path.relpath(name + ".svg", "data"))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "w", encoding="utf-8") as f:
            f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
                + "\n".join(body) + "\n</svg>\n")
        drawn += 1
    if drawn == 0:
        sys.exit("SHA256SUMS lists no figure, must list one at least")
    print(f"{drawn} figures are in figures/")


if __name__ == "__main__":
    main()
