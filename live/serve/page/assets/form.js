// Says of a declaration what it promises, what is to be expected of it, or what is wrong with it, while it is
// written: the service reads it as it would at the end. A field is not blamed before one has been in it. What
// was typed is kept in the tab until the experiment is made.
"use strict";
(() => {
  const form = document.getElementById("declare"), by = id => document.getElementById(id);
  const checked = by("checked"), preview = by("preview"), rest = by("rest"), odds = by("odds");
  const been = new Set(), kept = form.elements.text ? "new text" : "new";
  const radios = [...form.querySelectorAll("[type=radio]")];
  let asked = 0, timer = 0, forecast = null, goal = "";

  // Each of all that is wrong is said at its field.
  const show = all => {
    for (const error of form.querySelectorAll(".error[id$='-error']")) {
      const name = error.id.slice(0, -"-error".length), wrong = all.find(w => w.field === name);
      const input = form.elements[name];
      error.hidden = !wrong;
      if (wrong) error.textContent = wrong.detail;
      if (wrong && error.closest("details")) error.closest("details").open = true;
      if (wrong && error.closest(".field")) error.closest(".field").hidden = false;
      if (!(input instanceof Element)) continue; // radio buttons
      if (wrong) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    }
  };

  // What is of the other goal alone is not shown: its policies, and fields that are empty, or as they were.
  const choose = () => {
    if (!form.elements.goal) return;
    if (goal && goal !== form.elements.goal.value) form.querySelector("[name=policy][value='']").checked = true;
    goal = form.elements.goal.value;
    for (const part of form.querySelectorAll("[data-goal]")) part.hidden = part.dataset.goal !== goal;
    for (const [name, of] of [["risk", "decide"], ["shares", "decide"], ["floor", "earn"], ["horizon", "earn"]]) {
      const input = form.elements[name];
      input.closest(".field").hidden = of !== goal && (!input.value || input.value === "0.05" && name === "floor");
    }
  };

  const look = async () => {
    forecast?.abort();
    forecast = new AbortController();
    const at = by("forecast");
    at.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch("/new/forecast", {method: "POST", signal: forecast.signal, body: new URLSearchParams(new FormData(form))});
      if (!answer.ok) return;
      const {html} = await answer.json();
      at.replaceChildren(document.createRange().createContextualFragment(html));
      by("ahead").hidden = !html;
      at.removeAttribute("aria-busy");
    } catch { /* another was asked for, or nobody answers */ }
  };

  const check = async () => {
    const mine = ++asked;
    let said;
    try {
      const answer = await fetch("/new/check", {method: "POST", body: new URLSearchParams(new FormData(form))});
      if (!answer.ok) return;
      said = await answer.json();
    } catch {
      return; // it is not there: the form is checked when it is sent
    }
    if (mine !== asked) return;
    if (said.taken && sent() && sent() === named()) { // it was made
      sessionStorage.removeItem(kept);
      by("again").hidden = true;
      form.reset();
      choose();
      check();
      return;
    }
    if (preview) preview.textContent = said.text;
    if (odds) [odds.textContent, odds.hidden] = [said.odds, !said.odds];
    const faults = said.wrong ?? [], blamed = faults.filter(w => !form.elements[w.field] || been.has(w.field) || said.taken && w.field === "name");
    const quiet = !said.ok && !blamed.length;
    checked.replaceChildren(quiet ? "" : document.createRange().createContextualFragment(said.html));
    for (const line of checked.querySelectorAll("li[data-of]")) line.hidden = !blamed.some(w => w.field === line.dataset.of);
    rest.hidden = !said.missing;
    rest.textContent = said.missing ? "Still to be filled in: " + said.missing.join(", ") + "." : "";
    show(blamed);
    forecast?.abort();
    if (said.ok) look(); else by("ahead").hidden = true;
  };
  const later = wait => { clearTimeout(timer); timer = setTimeout(check, wait); };

  // sent is the name under which what is kept was sent last, if it was.
  const sent = () => JSON.parse(sessionStorage.getItem(kept) ?? "{}").sent;
  const keep = sent => sessionStorage.setItem(kept, JSON.stringify({sent, fields: [...new FormData(form)]}));
  const named = () => form.elements.name?.value ?? /^name: *"?([^"\s]+)/m.exec(form.elements.text.value)?.[1];
  const restore = () => {
    const fields = JSON.parse(sessionStorage.getItem(kept) ?? "{}").fields;
    if (!fields || !("fresh" in form.dataset)) return;
    const was = JSON.stringify([...new FormData(form)]);
    for (const [name, value] of fields) {
      const input = form.elements[name];
      if (!input) continue;
      if (input.type === "checkbox") input.checked = true; else input.value = value;
    }
    by("again").hidden = was === JSON.stringify([...new FormData(form)]);
    for (const details of form.querySelectorAll(".declare details")) {
      if ([...details.querySelectorAll("input, textarea")].some(i => i.type === "radio" ? i.checked : i.value !== i.defaultValue)) details.open = true;
    }
  };
  by("afresh").addEventListener("click", () => {
    sessionStorage.removeItem(kept);
    by("again").hidden = true;
    form.reset();
    been.clear();
    choose();
    check();
  });
  form.addEventListener("submit", event => {
    if (event.submitter?.value !== "create") return keep();
    keep(named());
    const fields = JSON.parse(sessionStorage.getItem("new") ?? "{}").fields; // that the text may have begun with
    if (fields && kept !== "new") sessionStorage.setItem("new", JSON.stringify({sent: named(), fields}));
  });

  form.addEventListener("input", event => {
    if (event.target.id === "text") been.add("text");
    keep();
    choose();
    later(250);
  });
  form.addEventListener("focusout", event => {
    if (event.target.name && !radios.includes(event.target)) { been.add(event.target.name); later(0); }
  });
  // A field that was changed and left before this script was there has been in, too.
  const changed = [...form.elements].filter(field => /checkbox|radio/.test(field.type) ? field.checked !== field.defaultChecked
    : "defaultValue" in field && field.value !== field.defaultValue);
  for (const field of form.elements) {
    if (field.getAttribute("aria-invalid") || field.name && by(field.name + "-error")?.hidden === false || changed.includes(field) && field !== document.activeElement) been.add(field.name);
  }
  restore();
  choose();
  if (changed.length > 0 || !by("again").hidden || !checked.firstElementChild) check(); else if (checked.querySelector(".good")) look();
})();
