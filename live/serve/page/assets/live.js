// Keeps an open page up to date: each event has fragments in the place of those of the page, and
// rows for its charts. When the stream breaks it says so, and goes on where it was.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const connection = document.getElementById("connection"), news = document.getElementById("news");
  const leader = () => document.querySelector("[data-leader]")?.dataset.leader ?? "";

  // Means hold until the next release of their arm, so their lines are steps: by time, or by how many
  // decisions had been released. With contexts they are what rules would have earned.
  const over = document.getElementById("over"), drawn = {course: null, gain: null};
  const lines = () => data.lines ?? data.arms, lead = () => lines().indexOf(leader());
  // What a policy wins over the best of the other rules is a course of its own, below those of the rules.
  const drawMeans = () => {
    const rules = data.course.filter(c => c.arm < lines().length), wins = data.course.filter(c => c.arm >= lines().length);
    over.parentElement.hidden = !rules.some(c => c.points.length);
    drawCourse("course", rules, "mean", c => lines()[c.arm]);
    if (document.getElementById("gain")) drawCourse("gain", wins, "difference", () => data.gain);
  };
  const drawCourse = (id, courses, label, name) => {
    const at = over.value === "time" ? 0 : 1, figure = document.getElementById(id);
    const x = [...new Set(courses.flatMap(c => c.points.map(p => p[at])))].sort((a, b) => a - b);
    figure.hidden = !x.length;
    if (!x.length) return;
    drawn[id] ??= Charts.make(figure, {kind: "step", table: true, labels: true, focus: true,
      x: at ? {kind: over.value === "log" ? "log" : "number", label: "decisions released"} : {kind: "time", label: "time, UTC"},
      y: {label}, series: courses.map(c => ({name: name(c), hue: c.arm % 8 + 1, dash: c.arm > 3, band: true}))});
    const last = x.at(-1), end = at ? last * 1.01 : Math.max(last + 1, Math.min(Date.now() / 1000, last + (last - x[0]) / 25));
    drawn[id].set({x, end, lead: lead(), series: courses.map(c => {
      const y = [], lo = [], hi = [];
      let next = 0;
      for (const t of x) {
        while (next < c.points.length && c.points[next][at] <= t) next++;
        const p = c.points[next - 1];
        y.push(p?.[3] ?? null); lo.push(p?.[4] ?? null); hi.push(p?.[5] ?? null);
      }
      return {y, lo, hi};
    })});
  };
  over.addEventListener("change", () => { for (const id in drawn) { drawn[id]?.destroy(); drawn[id] = null; } drawMeans(); });

  // Decisions in bins that fit the age, from seconds to days; the last ends now.
  const crowd = document.getElementById("traffic"), by = document.getElementById("by");
  const words = s => s < 60 ? s + " s" : s < 3600 ? s / 60 + " min" : s < 86400 ? "hour" : "day";
  const size = () => ({early: data.step, hours: 3600, days: 86400})[by.value];
  let traffic = null, keep = "", bin = 0;
  const drawTraffic = () => {
    crowd.hidden = !data.hours.rows.length;
    if (crowd.hidden) return;
    document.getElementById("nobody")?.remove();
    const has = {early: !!data.early, hours: !data.early || data.hours.rows.length > 1, days: data.days.rows.length > 1};
    for (const o of by.options) {
      o.hidden = o.disabled = !has[o.value];
      if (o.value === "early" && data.step) o.textContent = "by " + words(data.step);
    }
    by.parentElement.hidden = Object.values(has).filter(x => x).length < 2;
    by.value = keep && has[keep] ? keep : data.early ? "early" : data.days.rows.length > 7 ? "days" : "hours";
    if (traffic && bin !== size()) { traffic.destroy(); traffic = null; }
    bin = size();
    traffic ??= Charts.make(crowd, {kind: "area", table: true, labels: data.arms.length > 4, focus: true, y: {label: "decisions"},
      x: {kind: "time", label: "from, UTC", bin},
      series: data.arms.map((name, i) => ({name, hue: i % 8 + 1}))});
    const rows = data[by.value].rows, last = rows.at(-1)[0], now = Date.now() / 1000;
    traffic.set({x: rows.map(r => r[0]), end: now > last ? Math.min(now, last + bin) : last + bin,
      lead: data.lines ? 0 : lead(), series: data.arms.map((_, i) => ({y: rows.map(r => r[i + 1])}))});
  };
  by.addEventListener("change", () => { keep = by.value; drawTraffic(); });
  const draw = () => { drawMeans(); drawTraffic(); };

  // A fragment comes in the place of the last, with what was open in it, and where the focus was.
  const swap = (id, html) => {
    const at = document.getElementById(id);
    if (!at) return;
    const open = [...at.querySelectorAll("details")].map(d => d.open), focus = document.activeElement?.id;
    const inside = focus && at.contains(document.activeElement) && at.id !== focus;
    at.replaceChildren(document.createRange().createContextualFragment(html));
    at.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
    if (inside) document.getElementById(focus)?.focus();
  };

  // What can be done depends on the state, and on which arms are on: with another one it is asked for again.
  const state = () => document.querySelector("#live-state .state")?.dataset.state + document.querySelectorAll("[data-off]").length;
  // So is the history that names who did what, which no event has.
  const again = async id => {
    if (!document.getElementById(id)) return;
    const page = await fetch(location.pathname).then(r => r.text(), () => "");
    const made = new DOMParser().parseFromString(page, "text/html").getElementById(id);
    if (made) document.getElementById(id).replaceWith(made);
  };

  const update = event => {
    const {html, data: more} = JSON.parse(event.data), was = leader(), before = state();
    if (more.arms.length !== data.arms.length) { location.reload(); return; } // one was added
    for (const id in html) swap(id, html[id]);
    data.id = more.id;
    for (const c of more.course ?? []) {
      const points = (data.course[c.arm] ??= {arm: c.arm, points: []}).points;
      points.length = c.from;
      points.push(...c.points);
    }
    data.step = more.step;
    for (const part of ["hours", "days", "early"]) {
      if (!more[part]) { delete data[part]; continue; }
      data[part] ??= {rows: []};
      data[part].rows.length = more[part].from;
      data[part].rows.push(...more[part].rows);
    }
    draw();
    if (state() !== before) again("operations");
    if (html["live-history"]) again("history");
    const ask = document.querySelector("#ask[data-new]"); // how to send visitors: closed once some have come
    if (ask && document.querySelector("[data-decisions]").dataset.decisions !== "0") {
      ask.open = false;
      delete ask.dataset.new;
    }
    if (leader() !== was) news.textContent = leader() ? leader() + " leads now." : "";
  };

  let broken = 0;
  const listen = () => {
    const events = new EventSource(location.pathname + "/events?from=" + encodeURIComponent(data.id));
    events.addEventListener("update", update);
    events.onopen = () => { broken = 0; connection.hidden = true; };
    events.onerror = () => {
      connection.textContent = "Reconnecting… what is shown may be old.";
      connection.hidden = false;
      events.close();
      setTimeout(listen, Math.min(500 * 2 ** broken++, 10000));
    };
  };
  draw();
  listen();
  addEventListener("pageshow", event => { if (event.persisted) location.reload(); });
})();
