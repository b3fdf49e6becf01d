// Says of a declaration what it promises, or what is wrong with it, while it is written: the service
// reads it as it would at the end. A field is not blamed before one has been in it.
"use strict";
(() => {
  const form = document.getElementById("declare"), checked = document.getElementById("checked");
  const preview = document.getElementById("preview"), rest = document.getElementById("rest");
  const been = new Set();
  let asked = 0, timer = 0;
  const show = (field, detail) => {
    for (const error of form.querySelectorAll(".error[id$='-error']")) {
      const name = error.id.slice(0, -"-error".length), wrong = name === field;
      const input = form.elements[name];
      error.hidden = !wrong;
      if (wrong) error.textContent = detail;
      if (wrong) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    }
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
    if (preview) preview.textContent = said.text;
    const quiet = !said.ok && said.field && form.elements[said.field] && !been.has(said.field);
    checked.replaceChildren(quiet ? "" : document.createRange().createContextualFragment(said.html));
    rest.hidden = !quiet;
    if (quiet) {
      const label = form.querySelector(`label[for="${CSS.escape(said.field)}"]`);
      rest.textContent = "Still to be filled in: " + (label ? label.textContent : said.field) + ".";
    }
    show(said.ok || quiet ? "" : said.field, said.detail);
  };
  const later = wait => { clearTimeout(timer); timer = setTimeout(check, wait); };
  form.addEventListener("input", event => { if (event.target.id === "text") been.add("text"); later(250); });
  form.addEventListener("focusout", event => { if (event.target.name) { been.add(event.target.name); later(0); } });
  // A field that was changed and left before this script was there has been in, too.
  const changed = [...form.elements].filter(field => field.type === "checkbox" ? field.checked !== field.defaultChecked
    : "defaultValue" in field && field.value !== field.defaultValue);
  for (const field of form.elements) {
    if (field.getAttribute("aria-invalid") || changed.includes(field) && field !== document.activeElement) been.add(field.name);
  }
  if (changed.length > 0 || !checked.firstElementChild) check();
})();
