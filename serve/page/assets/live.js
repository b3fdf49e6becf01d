// Keeps an open page up to date: each event has fragments in the place of those of the page, and
// rows for its charts.
"use strict";
(() => {
  const element = document.getElementById("data");
  if (!element) return;
  const data = JSON.parse(element.textContent);
  const events = new EventSource(`${location.pathname}/events?from=${data.id}`);
  events.addEventListener("update", (event) => {
    const update = JSON.parse(event.data);
    for (const [id, html] of Object.entries(update.html)) {
      const at = document.getElementById(id);
      if (at) at.innerHTML = html;
    }
    for (const c of update.data.course ?? []) {
      const points = data.course[c.arm].points;
      points.length = c.from;
      points.push(...c.points);
    }
    document.dispatchEvent(new CustomEvent("sotto-update", { detail: data }));
  });
})();
