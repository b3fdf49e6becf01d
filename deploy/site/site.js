// What a page has beside its text where scripts run: the search, and a button that copies code. The search's own
// program and its index come when it is opened, from the site itself.
const [dialog, query, found, results, opener] = ["search", "query", "found", "results", "open"].map((id) => document.getElementById(`site-${id}`));
const root = new URL(document.querySelector("script[data-root]").dataset.root || "./", location.href);

let loaded;
const load = () => loaded ??= import(new URL("pagefind/pagefind.js", root)).then(async (pagefind) => {
  await pagefind.options({ baseUrl: root.pathname, excerptLength: 24 });
  await pagefind.init();
  return pagefind;
});

function open() {
  if (dialog.open) return;
  dialog.showModal();
  query.select();
  load().catch(() => { found.textContent = "The search did not load. The list of documents has every page."; });
}
opener.hidden = false;
opener.addEventListener("click", open);
addEventListener("keydown", (e) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || e.target.isContentEditable;
  if (!typing && (e.key === "/" || e.key === "k" && (e.ctrlKey || e.metaKey))) { e.preventDefault(); open(); }
});
dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });

// element is a new one; excerpts are HTML in which nothing runs, and of which the text and its marks are taken.
function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}
function excerpt(html) {
  const out = element("span", "", { className: "text" });
  for (const n of new DOMParser().parseFromString(html, "text/html").body.childNodes) {
    out.append(n.nodeName === "MARK" ? element("mark", n.textContent) : n.textContent);
  }
  return out;
}

// weight is how much of what was searched a section has: headings count more than text.
const weight = (s) => s.weighted_locations.reduce((sum, l) => sum + l.balanced_score, 0);

let asked = 0;
query.addEventListener("input", async () => {
  const mine = ++asked, text = query.value.trim();
  if (!text) { results.replaceChildren(); found.textContent = ""; return; }
  const answer = await (await load()).debouncedSearch(text, {}, 120);
  if (!answer || mine !== asked) return;
  const pages = await Promise.all(answer.results.slice(0, 8).map((r) => r.data()));
  if (mine !== asked) return;
  const items = pages.flatMap((p) => {
    const parts = [...p.sub_results].sort((a, b) => weight(b) - weight(a)).slice(0, 2);
    return (parts.length ? parts : [p]).map((s) => {
      const link = element("a", "", { href: s.url });
      link.append(element("strong", p.meta.title));
      if (s.title && s.title !== p.meta.title) link.append(` › ${s.title.replace(/ #$/, "")}`);
      link.append(excerpt(s.excerpt));
      const li = element("li", "");
      li.append(link);
      return li;
    });
  });
  results.replaceChildren(...items);
  const n = answer.results.length;
  found.textContent = n === 0 ? "Nothing is found." : n === 1 ? "1 page" : `${n} pages`;
});
dialog.addEventListener("keydown", (e) => {
  const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (e.key === "ArrowDown" && links.length) { e.preventDefault(); links[Math.min(at + 1, links.length - 1)].focus(); }
  if (e.key === "ArrowUp" && at >= 0) { e.preventDefault(); (links[at - 1] ?? query).focus(); }
  if (e.key === "Enter" && document.activeElement === query) { e.preventDefault(); links[0]?.click(); }
});
results.addEventListener("click", () => dialog.close());

for (const pre of navigator.clipboard ? document.querySelectorAll("article pre") : []) {
  const code = pre.textContent;
  const copy = element("button", "Copy", { type: "button", className: "copy" });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  pre.append(copy);
}
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest" });
