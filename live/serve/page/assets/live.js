// Keeps an open page up to date: each event has fragments in the place of those of the page, and
// rows for its charts. When the stream breaks it says so, and goes on where it was.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const connection = document.getElementById("connection"), news = document.getElementById("news");
  const leader = () => document.querySelector("[data-leader]")?.dataset.leader ?? "";

  // Means hold until the next release of their arm, so their lines are steps.
  const figure = document.getElementById("course");
  let course = null;
  const drawMeans = () => {
    const x = [...new Set(data.course.flatMap(c => c.points.map(p => p[0])))].sort((a, b) => a - b);
    figure.hidden = !x.length;
    if (!x.length) return;
    course ??= Charts.make(figure, {kind: "step", table: true, x: {kind: "time", label: "time, UTC"},
      y: {label: "mean"}, series: data.course.map(c => ({name: data.arms[c.arm], hue: c.arm % 8 + 1, band: true}))});
    const last = x.at(-1), end = Math.max(last + 1, Math.min(Date.now() / 1000, last + (last - x[0]) / 25));
    course.set({x, end, series: data.course.map(c => {
      const y = [], lo = [], hi = [];
      let next = 0;
      for (const t of x) {
        while (next < c.points.length && c.points[next][0] <= t) next++;
        const p = c.points[next - 1];
        y.push(p?.[3] ?? null); lo.push(p?.[4] ?? null); hi.push(p?.[5] ?? null);
      }
      return {y, lo, hi};
    })});
  };

  // Decisions by hour, or by day where these are more than a week's.
  const crowd = document.getElementById("traffic"), by = document.getElementById("by");
  let traffic = null, keep = "";
  const drawTraffic = () => {
    crowd.hidden = !data.hours.rows.length;
    if (crowd.hidden) return;
    document.getElementById("nobody")?.remove();
    by.hidden = data.days.rows.length < 2;
    if (!traffic) {
      by.value = keep || (data.days.rows.length > 7 ? "days" : "hours");
      traffic = Charts.make(crowd, {kind: "area", table: true, y: {label: "decisions"},
        x: {kind: "time", label: "from, UTC", bin: by.value === "days" ? 86400 : 3600},
        series: data.arms.map((name, i) => ({name, hue: i % 8 + 1}))});
    }
    const rows = data[by.value].rows;
    traffic.set({x: rows.map(r => r[0]), series: data.arms.map((_, i) => ({y: rows.map(r => r[i + 1])}))});
  };
  by.addEventListener("change", () => { traffic.destroy(); traffic = null; keep = by.value; drawTraffic(); });
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

  // What can be done depends on the state: with another one it is asked for again.
  const state = () => document.querySelector("#live-state .state")?.dataset.state;
  const operations = async () => {
    if (!document.getElementById("operations")) return;
    const page = await fetch(location.pathname).then(r => r.text(), () => "");
    const made = new DOMParser().parseFromString(page, "text/html").getElementById("operations");
    if (made) document.getElementById("operations").replaceWith(made);
  };

  const update = event => {
    const {html, data: more} = JSON.parse(event.data), was = leader(), before = state();
    for (const id in html) swap(id, html[id]);
    data.id = more.id;
    for (const c of more.course ?? []) {
      const points = data.course[c.arm].points;
      points.length = c.from;
      points.push(...c.points);
    }
    for (const part of ["hours", "days"]) {
      data[part].rows.length = more[part].from;
      data[part].rows.push(...more[part].rows);
    }
    draw();
    if (state() !== before) operations();
    if (document.querySelector("[data-decisions]").dataset.decisions !== "0") {
      document.getElementById("ask")?.closest("section").remove();
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
