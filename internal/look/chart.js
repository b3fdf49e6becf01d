// Charts of the pages, on uPlot: lines with bands, steps, stacked areas. Each is a figure.chart and
// follows the colour scheme. Point at it, or focus it and press ← → (Home, End, Esc): what is there
// is in a tip over the chart, which moves nothing, and spoken. A table beside it has the same numbers.
//
// Charts.enhance(root) draws each figure[data-kind] below root from its own table, and after a
// change of the table anew. Attributes of the figure: data-kind is line, step or area; data-x is
// time (seconds, UTC), number or log; data-x-label, data-y-label, data-min, data-max, data-empty.
// The table's first column is x; a column's heading is its series, its data-hue the colour (1 to 8)
// and data-dash a dashed line. A cell's data-v is its value, data-lo and data-hi its band.
//
// Charts.make(figure, {kind, x: {kind, label}, y: {label, log, min, max}, height, empty, table,
// focus, labels, series: [{name, hue, dash, band, points, span}]}) makes one from numbers; labels puts
// names beside the ends of lines, as far as there is room, and with focus, of five series or more, the
// one that set calls lead and the one that is pointed at, or chosen by ↑ ↓, have colours and bands, the
// rest is grey; x.bin, of steps, is how
// long the last of them is; x.whole has a logarithmic axis begin at a power of ten; points says whether values have dots, and span that a line goes on where
// y is null, where else it has a gap: .set({x: [], end, lead, series: [{y: [], lo: [], hi: []}]}) draws,
// the last values until end if it is given, as often as wished, and .destroy() takes it away.
"use strict";
const Charts = (() => {
  const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    e.append(...children);
    return e;
  };
  const digits = new Intl.NumberFormat("en", {maximumSignificantDigits: 4, useGrouping: "min2"});
  const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0, useGrouping: "min2"});
  // Four digits, or all of a whole number; thin spaces between thousands, from five digits on.
  const number = v => (Math.abs(v) >= 1000 ? whole : digits).format(v).replaceAll(",", "\u202f").replace("-", "\u2212");
  // On an axis of logarithms, powers of ten from 10⁵ on.
  const mark = v => v >= 1e5 && /^1e\+\d+$/.test(v.toExponential()) ?
    "10" + v.toExponential().slice(3).replace(/./g, d => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]) : number(v);
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const time = (seconds, step) => {
    const d = new Date(seconds * 1000), clock = d.toISOString().slice(11, step % 60 ? 19 : 16);
    const day = d.getUTCDate() + " " + months[d.getUTCMonth()];
    return step % 86400 ? day + ", " + clock : day;
  };
  // As uPlot has them: from which step, the text, and what is added where a year, a month or a day begins.
  const day = "\n{D} {MMM}", _ = null;
  const stamps = [[86400 * 360, "{YYYY}", _, _, _, _, _, _, 1], [86400 * 28, "{MMM}", "\n{YYYY}", _, _, _, _, _, 1],
    [86400, "{D} {MMM}", "\n{YYYY}", _, _, _, _, _, 1], [60, "{HH}:{mm}", _, _, day, _, _, _, 1],
    [1, "{HH}:{mm}:{ss}", _, _, day, _, _, _, 1], [.001, "{HH}:{mm}:{ss}.{fff}", _, _, day, _, _, _, 1]];
  const all = new Set();

  const make = (figure, spec) => {
    const time_ = spec.x.kind === "time", area = spec.kind === "area";
    const focus = !!spec.focus && spec.series.length >= 5;
    const legend = element("ul", {class: focus ? "legend long" : "legend", ...(focus ? {tabindex: 0} : {})});
    const tip = element("div", {class: "tip", "aria-hidden": "true", hidden: ""});
    const name = figure.querySelector("figcaption")?.textContent ?? spec.y.label ?? "chart";
    const box = element("div", {class: "canvas", tabindex: 0, role: "application", "aria-roledescription": "chart",
      "aria-label": name + ": arrow keys read its values"});
    const spoken = element("p", {class: "sr", "aria-live": "polite"});
    const empty = element("p", {class: "quiet", hidden: ""}, spec.empty ?? "Nothing yet.");
    const table = spec.table ? element("details", {class: "table"}, element("summary", {}, "As a table")) : null;
    const before = figure.querySelector("figcaption");
    const own = [legend, empty, box, spoken];
    if (before) before.after(...own); else figure.prepend(...own);
    if (table) figure.append(table);
    let tones, font, plot = null, data = null, index = -1, hot = -1, pinned = -1, where = "", byKeys = false;
    const series = spec.series.map((s, i) => ({hue: i % 8 + 1, ...s, on: true}));
    const paint = () => {
      const style = getComputedStyle(figure);
      tones = k => style.getPropertyValue("--" + k).trim();
      font = "12px " + style.fontFamily;
    };
    paint();
    const swatch = s => element("span", {class: "swatch " + (area ? "" : s.dash ? "dash" : "line"), "data-hue": s.hue});
    // What has its colour: all of few series, and of many the leader and the one that is looked at.
    const lit = i => !focus || i === hot || i === data?.lead;
    const tone = i => lit(i) ? tones("s" + series[i].hue) : faint(tones("strong"), area ? .35 : .55);
    const heat = k => {
      if (!focus || k === hot) return;
      hot = k;
      mark_();
      plot?.redraw(false);
    };
    const mark_ = () => series.forEach((s, i) => {
      s.button.classList.toggle("lit", lit(i));
      if (focus) s.button.setAttribute("aria-pressed", String(i === pinned));
    });
    for (const s of series) {
      s.button = element("button", {type: "button", "aria-pressed": String(!focus)}, swatch(s), s.name);
      if (focus) {
        const k = series.indexOf(s);
        s.button.addEventListener("pointerenter", () => heat(k));
        s.button.addEventListener("pointerleave", () => heat(pinned));
      }
      s.button.addEventListener("click", () => {
        if (focus) {
          pinned = pinned === series.indexOf(s) ? -1 : series.indexOf(s);
          heat(pinned);
          return;
        }
        s.on = !s.on;
        s.button.setAttribute("aria-pressed", s.on);
        feed(true);
      });
      legend.append(element("li", {}, s.button));
    }

    const faint = (tone, share) => {
      const n = /^#(..)(..)(..)$/.exec(tone);
      return n ? `rgb(${n.slice(1).map(h => parseInt(h, 16)).join(" ")} / ${share})` : tone;
    };
    const position = i => time_ ? time(data.x[i], data.step) : number(data.x[i]);
    const tell = (s, i) => {
      const d = data.series[series.indexOf(s)], y = d.y[i];
      if (y == null) return "";
      return number(y) + (d.lo?.[i] != null ? " (" + number(d.lo[i]) + " to " + number(d.hi[i]) + ")" : "");
    };
    // The series that is nearest to the pointer, of an area the one that it is in.
    const nearest = () => {
      const {left, top} = plot.cursor;
      if (left < 0 || index < 0) return pinned;
      let best = pinned, away = Infinity;
      for (const [i, s] of series.entries()) {
        const y = plot.data[s.line][index];
        if (y == null || !s.on) continue;
        const at = plot.valToPos(y, "y"), d = area ? (at <= top ? top - at : Infinity) : Math.abs(at - top);
        if (d < away) { best = i; away = d; }
      }
      return best;
    };
    const show = () => {
      index = Math.min((spec.x.bin ? plot?.cursor.idxs?.[1] : plot?.cursor.idx) ?? -1, (data?.x.length ?? 0) - 1);
      const there = data && index >= 0 && index < data.x.length;
      where = there ? (spec.x.label ? spec.x.label + " " : "") + position(index) : "";
      tip.hidden = !there;
      if (!there) { if (plot) heat(pinned); return; }
      if (!byKeys) heat(nearest());
      const rows = series.filter((s, i) => s.on && (!focus || lit(i)) && tell(s, index));
      tip.replaceChildren(element("b", {}, where), ...rows.map(s => element("div", {}, swatch(s), s.name + " ",
        element("span", {class: "value"}, tell(s, index)))));
      // A transform, which is no layout shift.
      const right = plot.valToPos(data.x[index], "x") < plot.over.clientWidth / 2;
      tip.style.transform = `translateX(${right ? box.clientWidth - tip.offsetWidth - 6 : plot.over.offsetLeft + 6}px)`;
    };
    // Names beside the ends of lines, or in the layers of an area: the leader's and the one's that is looked
    // at first, then the others' for which there is room.
    const room = () => Math.round(Math.min(110, (box.clientWidth || 600) * .2));
    const label = u => {
      const {ctx, bbox} = u, r = devicePixelRatio, taken = [];
      ctx.save();
      ctx.font = font.replace("12px", 12 * r + "px");
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      const order = series.map((_, i) => i).filter(i => series[i].on).sort((a, b) => lit(b) - lit(a));
      for (const i of order) {
        const y = u.data[series[i].line].at(-1);
        if (y == null) continue;
        let at = u.valToPos(y, "y", true);
        if (area) {
          const next = u.valToPos(i ? u.data[series[i - 1].line].at(-1) : 0, "y", true);
          if (next - at < 13 * r) continue;
          at = (at + next) / 2;
        }
        at = Math.max(bbox.top + 6 * r, Math.min(bbox.top + bbox.height - 6 * r, at));
        if (taken.some(t => Math.abs(t - at) < 13 * r)) continue;
        taken.push(at);
        let text = series[i].name;
        while (text.length > 1 && ctx.measureText(text).width > room() * r) text = text.replace(/…?.…?$/u, "…");
        ctx.fillStyle = focus && !lit(i) ? tones("quiet") : tones("ink");
        ctx.fillText(text, bbox.left + bbox.width + 8 * r, at);
      }
      ctx.restore();
    };
    // no tick below a second: nothing here is dated more finely
    const ticks = [1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 28800, 43200,
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 30, 60, 90, 120, 180, 365, 730, 1825].map(d => d * 86400)];
    const options = () => {
      const steps = uPlot.paths.stepped({align: 1}), o = {
        width: box.clientWidth || 600, height: spec.height ?? (box.clientWidth < 480 ? 216 : 300),
        padding: [10, spec.labels ? room() + 12 : 16, 0, 0], legend: {show: false}, cursor: {drag: {x: false, y: false}, y: false, points: {size: 7, show: !spec.x.bin},
          ...(spec.x.bin ? {dataIdx: (u, k, i, x) => Math.max(0, u.data[0][i] > x ? i - 1 : i)} : {})},
        tzDate: t => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
        scales: {
          x: {time: time_, ...(spec.x.kind === "log" ? {distr: 3, range: (u, lo, hi) => lo < hi ? [spec.x.whole ? 10 ** Math.floor(Math.log10(lo) + 1e-9) : lo, hi] : [(lo ?? 1) / 10, (hi ?? 1) * 10]} : {})},
          y: spec.y.log ? {distr: 3} : {range: (u, lo, hi) => {
            if (lo == null) return [0, 1];
            const [a, b] = uPlot.rangeNum(lo, hi, .08, true);
            return [area ? 0 : spec.y.min ?? a, spec.y.max ?? b];
          }},
        },
        axes: [
          {stroke: () => tones("quiet"), font, grid: {show: false}, ticks: {stroke: () => tones("line"), size: 5}, gap: 4,
            ...(time_ ? {incrs: ticks} : {}), size: time_ ? 46 : 28, values: time_ ? stamps : (u, v) => v.map(x => x == null ? "" : mark(x)),
            ...(spec.x.label && !time_ ? {label: spec.x.label, labelFont: font, labelSize: 18, labelGap: 0} : {})},
          {stroke: () => tones("quiet"), font, grid: {stroke: () => tones("line"), width: 1}, ticks: {show: false}, gap: 8, space: 34,
            values: (u, v) => v.map(x => x == null ? "" : spec.y.log ? mark(x) : number(x)),
            size: (u, v) => 14 + 7 * Math.max(3, ...(v ?? []).map(x => x.length))},
        ],
        series: [{}], bands: [], hooks: {setCursor: [show], draw: spec.labels ? [label] : []},
      };
      // Bands come first: a line is over all of them.
      if (!area) for (const [i, s] of series.entries()) if (s.band) {
        const k = o.series.length, edge = {stroke: "transparent", width: 0, points: {show: false},
          paths: spec.kind === "line" ? undefined : steps};
        s.edges = [k, k + 1];
        o.series.push({...edge}, {...edge});
        o.bands.push({series: [k + 1, k], fill: () => lit(i) ? faint(tone(i), .18) : "transparent"});
      }
      for (const [i, s] of series.entries()) {
        s.line = o.series.length;
        const own = () => tone(i), few = () => spec.kind === "line" && data.x.length <= 40;
        o.series.push({label: s.name, stroke: own, width: area ? 1 : focus ? 1.5 : 2, dash: s.dash ? [7, 5] : undefined,
          paths: spec.kind === "line" ? undefined : steps, points: {show: s.points ?? few, size: 6, fill: own}, spanGaps: !!s.span});
        if (area) {
          if (i) o.bands.push({series: [i + 1, i], fill: () => faint(own(), .72)});
          else o.series[1].fill = () => faint(own(), .72);
        }
      }
      return o;
    };
    // What is drawn: sums from below of what is shown, and else the bands and then the numbers.
    const columns = () => {
      const all = stacked();
      const end = data.end ?? (spec.x.bin ? data.x.at(-1) + spec.x.bin : null);
      if (end !== null) all.forEach((c, i) => c.push(i ? c.at(-1) : end));
      return all;
    };
    const stacked = () => {
      if (!area) return [[...data.x], ...series.flatMap((s, i) => s.band ?
        [[...data.series[i].lo ?? data.series[i].y], [...data.series[i].hi ?? data.series[i].y]] : []), ...data.series.map(d => [...d.y])];
      const below = new Array(data.x.length).fill(0);
      return [[...data.x], ...data.series.map((d, k) => d.y.map((v, i) => below[i] += series[k].on ? v ?? 0 : 0))];
    };
    const feed = toggled => {
      const none = !data.x.length;
      empty.hidden = !none; box.hidden = none; legend.hidden = none;
      if (none) return;
      if (!plot) { plot = new uPlot(options(), columns(), box); box.append(tip); }
      else plot.setData(columns());
      if (toggled) for (const s of series) {
        if (area) continue; // what is off adds nothing
        for (const k of [s.line, ...(s.edges ?? [])]) plot.setSeries(k, {show: s.on});
      }
      mark_();
      show();
    };
    const write = () => {
      const head = element("tr", {}, element("th", {scope: "col"}, spec.x.label ?? ""),
        ...series.map(s => element("th", {scope: "col", class: "n"}, s.name)));
      const rows = [], n = data.x.length, every = Math.max(1, Math.ceil(n / 24));
      for (let i = (n - 1) % every; i < n; i += every) rows.push(element("tr", {}, element("th", {scope: "row"}, position(i)),
        ...series.map(s => element("td", {class: "n"}, tell(s, i)))));
      table.lastChild.tagName === "SUMMARY" || table.lastChild.remove();
      table.append(element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": name + ", as a table"},
        element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))));
    };
    const go = i => {
      if (!plot) return;
      i = Math.max(0, Math.min(data.x.length - 1, i));
      byKeys = true;
      plot.setCursor({left: plot.valToPos(data.x[i] + (spec.x.bin ?? 0) / 2, "x"), top: 10});
      index = i;
      speak();
    };
    const speak = () => {
      const parts = series.filter((s, k) => s.on && (!focus || lit(k)) && tell(s, index)).map(s => s.name + " " + tell(s, index));
      spoken.textContent = [where, ...parts].join(", ");
    };
    const leave = () => { byKeys = false; plot?.setCursor({left: -10, top: -10}); spoken.textContent = ""; };
    box.addEventListener("pointermove", () => { byKeys = false; });
    box.addEventListener("pointerleave", leave);
    box.addEventListener("keydown", e => {
      if (!data || e.ctrlKey || e.altKey || e.metaKey) return;
      const last = data.x.length - 1, stride = e.shiftKey ? 10 : 1;
      const to = {ArrowLeft: index < 0 ? last : index - stride, ArrowRight: index + stride, Home: 0, End: last}[e.key];
      if (focus && (e.key === "ArrowUp" || e.key === "ArrowDown")) {
        e.preventDefault();
        byKeys = true;
        heat((hot + (e.key === "ArrowUp" ? series.length - 1 : 1)) % series.length);
        if (index >= 0) { show(); speak(); }
        return;
      }
      if (e.key === "Escape") leave();
      else if (to !== undefined) { e.preventDefault(); go(to); }
    });
    box.addEventListener("blur", leave);
    const size = width => plot?.setSize({width, height: spec.height ?? (width < 480 ? 216 : 300)});
    const watch = new ResizeObserver(() => { if (box.clientWidth && box.clientWidth !== plot?.width) size(box.clientWidth); });
    watch.observe(box);
    const chart = {
      set(d) {
        let step = 86400;
        if (time_) for (const x of d.x) step = Math.min(step, x % 86400 === 0 ? 86400 : x % 60 === 0 ? 60 : 1);
        data = {...d, step};
        feed(series.some(s => !s.on));
        if (table) write();
      },
      repaint() { paint(); plot?.redraw(false); },
      print(on) {
        if (table) table.open = on;
        size(on ? 680 : box.clientWidth);
        chart.repaint();
      },
      destroy() {
        all.delete(chart);
        watch.disconnect();
        plot?.destroy();
        for (const e of [...own, ...(table ? [table] : [])]) e.remove();
      },
      figure,
    };
    all.add(chart);
    return chart;
  };

  const value = cell => {
    const v = cell?.dataset.v ?? cell?.textContent.trim();
    return v === undefined || v === "" || Number.isNaN(Number(v)) ? null : Number(v);
  };
  const given = v => v === undefined || v === "" ? undefined : Number(v);
  const drawn = new WeakMap(); // figure: what it was made of, and the chart
  const enhance = (root = document) => {
    for (const chart of [...all]) if (!chart.figure.isConnected) chart.destroy();
    for (const figure of root.querySelectorAll("figure.chart[data-kind]")) {
      const table = figure.querySelector("table"), d = figure.dataset, rows = [...table.tBodies[0].rows];
      const heads = [...table.tHead.rows[0].cells].slice(1);
      const band = k => rows.some(r => r.cells[k + 1]?.dataset.lo !== undefined);
      const spec = {
        kind: d.kind, empty: d.empty, x: {kind: d.x ?? "number", label: d.xLabel},
        y: {label: d.yLabel, min: given(d.min), max: given(d.max)},
        series: heads.map((h, k) => ({name: h.textContent.trim(), hue: Number(h.dataset.hue ?? k % 8 + 1),
          dash: h.dataset.dash !== undefined, band: band(k)})),
      };
      const of = JSON.stringify(spec), had = drawn.get(figure);
      if (had && had.of !== of) had.chart.destroy();
      const chart = had && had.of === of ? had.chart : make(figure, spec);
      drawn.set(figure, {of, chart});
      chart.set({x: rows.map(r => value(r.cells[0])), series: heads.map((h, k) => {
        const cells = rows.map(r => r.cells[k + 1]), side = n => cells.map(c => given(c?.dataset[n]) ?? null);
        return {y: cells.map(value), ...(spec.series[k].band ? {lo: side("lo"), hi: side("hi")} : {})};
      })});
    }
  };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => all.forEach(c => c.repaint()));
  const paper = on => () => {
    document.documentElement.classList.toggle("paper", on);
    for (const details of document.querySelectorAll(".chart details")) details.open = on;
    all.forEach(c => c.print(on));
  };
  addEventListener("beforeprint", paper(true));
  addEventListener("afterprint", paper(false));
  return {make, enhance, number};
})();
