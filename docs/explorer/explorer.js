// The explorer's page. What is played is one text, the link behind #, which the Go program reads and
// checks; what is drawn are its pictures, each of more runs than the last. They come from sotto explore,
// which computes them natively, or on a static host from two workers that have the same program as
// WebAssembly.
"use strict";
(() => {
  const $ = id => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const e = document.createElement(tag);
    for (const k in attributes) if (attributes[k] !== false) e.setAttribute(k, attributes[k] === true ? "" : attributes[k]);
    e.append(...children);
    return e;
  };
  const number = v => Charts.number(v);
  // A budget as it is shown; what is copied has all of its digits.
  const brief = text => {
    const short = String(Number(Number(text).toPrecision(4)));
    return Number.isFinite(Number(text)) && short.length <= text.length ? short : text;
  };
  const native = document.documentElement.hasAttribute("data-native");
  const remote = native && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);
  const hues = [1, 2, 3, 4, 5, 6, 8, 7], bounded = 7;
  const names = {epsilon: "ε", rho: "ρ", approx: "ε"};
  const trusts = {continuous: "a server, continuous noise", central: "a server, discrete noise", local: "everybody, enough alone",
    "two-server": "two servers", shuffle: "users, behind a shuffler", secagg: "users, summed securely"};

  // --- What is played ---
  let offers, state, first;
  const defaults = () => read(offers.default);
  const read = link => {
    const q = new URLSearchParams(link), s = state ? {...state} : {csv: null};
    const d = offers && link !== offers.default ? new URLSearchParams(offers.default) : q;
    const get = (k, v) => q.get(k) ?? d.get(k) ?? v;
    s.arms = outside(get("arms", ""));
    if (q.get("csv") === null) s.csv = null;
    else if (s.csv?.name !== q.get("csv")) s.csv = {name: q.get("csv"), text: null};
    s.policies = get("policies", "").split(",").filter(Boolean);
    const of = q.has("epsilon") || q.has("rho") ? q : d;
    s.kind = of.has("rho") ? "rho" : of.has("delta") ? "approx" : "epsilon";
    s.budget = of.get("rho") ?? of.get("epsilon");
    s.delta = of.get("delta") ?? s.delta ?? "1e-6";
    for (const [k, v] of [["trust", "continuous"], ["horizon", ""], ["runs", "1024"], ["seed", "1"], ["level", "0.05"], ["range", "0,1"]]) s[k] = q.get(k) ?? d.get(k) ?? v;
    s.points = q.get("points");
    return s;
  };
  const outside = text => {
    const out = [""];
    let depth = 0;
    for (const c of text) {
      if (c === "(") depth++;
      if (c === ")") depth--;
      if (c === "," && !depth) out.push("");
      else out[out.length - 1] += c;
    }
    return out.map(s => s.trim());
  };
  const kept = /%(2C|3A|3D|28|29)/g;
  const escape = text => encodeURIComponent(text).replace(kept, decodeURIComponent);
  const write = s => {
    const out = [], add = (k, v) => out.push(k + "=" + escape(v));
    if (s.csv) add("csv", s.csv.name);
    else add("arms", s.arms.join(","));
    if (s.range !== "0,1") add("range", s.range);
    add("policies", s.policies.join(","));
    add(s.kind === "rho" ? "rho" : "epsilon", s.budget);
    if (s.kind === "approx") add("delta", s.delta);
    if (s.trust !== "continuous") add("trust", s.trust);
    add("horizon", s.horizon);
    for (const [k, v] of [["runs", "1024"], ["seed", "1"], ["level", "0.05"]]) if (s[k] !== v) add(k, s[k]);
    if (s.points) add("points", s.points);
    return out.join("&");
  };

  // --- Who plays it ---
  // Natively: a stream of pictures, a line each, which ends when nobody reads it. A log follows the link.
  const server = () => {
    let stop;
    return {
      name: "natively, by sotto explore",
      async play(link, log, current, show) {
        stop?.abort();
        const own = stop = new AbortController(), body = log === null ? link : link + "\n" + log;
        if (new Blob([body]).size > first.room) return show({error: `csv: the log must have at most ${first.room >> 20} MiB`, field: "csv"});
        try {
          const r = await fetch("pictures", {method: "POST", headers: {"Content-Type": "text/plain"}, body, signal: own.signal});
          const lines = r.body.pipeThrough(new TextDecoderStream()).getReader();
          for (let rest = "";;) {
            const {value, done} = await lines.read();
            if (done || !current()) break;
            const parts = (rest + value).split("\n");
            rest = parts.pop();
            for (const p of parts) show(JSON.parse(p));
          }
        } catch (e) {
          if (e.name !== "AbortError" && current()) show({error: "sotto explore does not answer: has it ended?"});
        } finally {
          own.abort();
        }
      },
    };
  };
  // In the page: workers play a few runs at a time, so that they soon hear of another question.
  const workers = () => {
    const count = 2, slice = 12;
    const module = fetch("sotto.wasm.gz").then(r => {
      if (!r.ok) throw new Error("sotto.wasm.gz is not there");
      // Some hosts undo the compression themselves.
      return r.headers.get("Content-Encoding") === "gzip" ? r.body : r.body.pipeThrough(new DecompressionStream("gzip"));
    }).then(b => WebAssembly.compileStreaming(new Response(b, {headers: {"Content-Type": "application/wasm"}})));
    // Fetched once, so that a worker can be put in another's place where there is no network any more.
    const script = Promise.all(["wasm_exec.js", "worker.js"].map(f => fetch(f).then(r => r.blob())))
      .then(parts => URL.createObjectURL(new Blob(parts, {type: "text/javascript"})));
    let all = [];
    const start = address => {
      const w = new Worker(address), waiting = new Map();
      let id = 0;
      w.onmessage = ({data}) => { waiting.get(data.id)(data.value); waiting.delete(data.id); };
      const send = (message, move = []) => new Promise(done => { waiting.set(++id, done); w.postMessage({...message, id}, move); });
      const ready = module.then(m => send({module: m}));
      return {
        ask: async (ask, ...args) => { await ready; return send({ask, with: args}, args.filter(a => a instanceof Uint8Array).map(a => a.buffer)); },
        busy: () => waiting.size > 0,
        end: () => w.terminate(),
      };
    };
    const begun = script.then(address => { for (let i = 0; i < count; i++) all.push(start(address)); });
    const cost = new Map(); // milliseconds of a run
    let playing = 0;
    return {
      name: "in this page, by two workers",
      async play(link, log, current, show) {
        // One that is in the middle of a long run is not waited for.
        await begun;
        const before = performance.now();
        while (playing > 0 && performance.now() - before < 150) await new Promise(r => setTimeout(r, 2));
        if (!current()) return;
        if (playing > 0) {
          const address = await script;
          all = all.map(w => { if (!w.busy()) return w; w.end(); return start(address); });
          playing = 0;
        }
        const mine = all;
        const opened = await Promise.all(mine.map(w => w.ask("open", link, log)));
        if (!current()) return;
        if (opened[0].error) return show(opened[0]);
        const {cells} = opened[0], kind = link.replace(/(epsilon|rho|seed)=[^&]*/g, "");
        playing++;
        try {
          for (let runs = 0, next = opened[0].next; next > 0;) {
            const tasks = [];
            for (let i = 0; i < cells; i++) {
              const ms = cost.get(kind + i) ?? slice, n = Math.max(1, Math.min(64, Math.round(slice / ms)));
              for (let k = runs; k < next; k += n) tasks.push([i, k, Math.min(n, next - k)]);
            }
            tasks.sort((a, b) => a[1] - b[1]);
            let failed = null;
            await Promise.all(mine.map(async w => {
              for (let t; (t = tasks.shift()) && current() && !failed && all === mine;) {
                const began = performance.now(), out = await w.ask("play", ...t);
                if (out.error) { failed = out; return; }
                cost.set(kind + t[0], (performance.now() - began) / t[2]);
                await mine[0].ask("put", t[0], t[1], out);
              }
            }));
            if (!current() || all !== mine) return;
            const p = failed ?? await mine[0].ask("picture", next);
            if (!current()) return;
            show(p);
            if (p.error) return;
            [runs, next] = [next, p.next];
          }
        } finally { if (all === mine) playing--; }
      },
    };
  };
  const engine = native ? server() : workers();

  let turn = 0, began = 0;
  const ask = () => {
    const mine = ++turn, link = write(state);
    began = performance.now();
    $("regret").dataset.state = "asked";
    $("policies-hint").textContent = "";
    if (state.csv && remote) return show({error: "csv: this page is of another computer, which gets no log: run sotto explore on your own", field: "csv"});
    if (state.csv && state.csv.text === null) return show({error: "csv: " + state.csv.name + " is not here: drop the file in again", field: "csv"});
    $("engine").textContent = "played " + engine.name;
    engine.play(link, state.csv?.text ?? null, () => mine === turn, p => { if (mine === turn) show(p); })
      .catch(x => { if (mine === turn) show({error: "The simulator did not start: " + x.message}); });
    clearTimeout(settle);
    settle = setTimeout(() => history.replaceState(null, "", "#" + link), 250);
  };
  let settle, due = false;
  const change = () => {
    if (due) return;
    due = true;
    turn++; // what was asked for before is over, if the frame comes late too
    requestAnimationFrame(() => { due = false; ask(); });
  };

  // --- What is drawn ---
  let chart, drawn, edge, edged, picture;
  const trail = new Map(); // regrets at the horizon at the budgets that were looked at, by all else
  const show = p => {
    const problem = $("problem");
    problem.hidden = !p.error;
    // What was played before is not what is asked for now.
    $("results").hidden = $("take-away").hidden = !!p.error;
    for (const e of document.querySelectorAll("[aria-invalid]")) e.removeAttribute("aria-invalid");
    if (p.error) {
      problem.textContent = p.error;
      picture = null;
      $("free-mark").hidden = true;
      $("free").replaceChildren();
      $("said").textContent = "";
      const at = {delta: "delta", runs: "runs", seed: "seed", level: "level", range: "range"}[p.field];
      if (at) { $(at).setAttribute("aria-invalid", "true"); $(at).closest("details")?.setAttribute("open", ""); }
      $("regret").dataset.state = "refused";
      document.dispatchEvent(new CustomEvent("picture", {detail: p}));
      return;
    }
    const milliseconds = performance.now() - began;
    picture = p;
    draw(p);
    $("regret").dataset.state = p.next ? "more" : "done";
    $("regret").dataset.runs = p.runs;
    document.dispatchEvent(new CustomEvent("picture", {detail: {...p, milliseconds}}));
    clearTimeout(idle);
    const mine = turn;
    if (!p.next && !$("against").hidden) idle = setTimeout(() => { if (mine === turn) sweep(mine); }, 200);
  };
  let idle;
  const draw = p => {
    const log = $("log").checked, runs = document.querySelector("[name=band]:checked").value === "runs";
    const least = p.bounds.find(b => !b.worstCase);
    const series = p.lines.map(l => ({name: l.title, hue: hue(l.hue - 1, l.policy), dash: !l.asked, band: l.asked}));
    if (least) series.push({name: lower(p) + (least.asymptotic ? ", T → ∞" : ""), hue: bounded, dash: true});
    const key = JSON.stringify([series, log]);
    if (key !== drawn) {
      chart?.destroy();
      chart = Charts.make($("regret"), {kind: "line", x: {kind: "log", label: "round", whole: true}, y: {label: "regret", log, min: log ? undefined : 0}, series, table: true, height: innerWidth < 560 ? 260 : 380});
      drawn = key;
    }
    const seen = y => log ? y.map(v => v > 0 ? v : null) : y;
    const data = p.lines.map(l => ({y: seen(l.mean), ...(l.asked ? {lo: seen(runs ? l.q05 : l.lo), hi: seen(runs ? l.q95 : l.hi)} : {})}));
    if (least) data.push({y: seen(least.value)});
    // A zoom: the rounds before are left out, and the axis of regret fits what is left.
    $("from").max = Math.max(0, Math.ceil(Math.log10(p.horizon)) - 1);
    const begins = 10 ** $("from").value, skip = Math.max(0, p.at.findIndex(t => t >= begins)), rest = a => a && a.slice(skip);
    $("from-value").textContent = number(begins);
    $("from").setAttribute("aria-valuetext", "round " + number(begins));
    chart.set({x: rest(p.at), series: data.map(d => ({y: rest(d.y), lo: rest(d.lo), hi: rest(d.hi)}))});
    table(p);
    tell(p, least);
    beyond(p);
    for (const k of ["command", "yaml"]) $(k).textContent = p[k];
    $("link").textContent = location.href.split("#")[0] + "#" + p.link;
    $("notes").replaceChildren(...[...p.left.map(l => `${l.policy} is not played: ${l.why}`), ...p.notes].map(t => make("li", {}, t)));
  };
  // Older policies are grey: there to compare with.
  const newer = name => offers.policies.find(p => p.name === name)?.newer;
  const hue = (k, name) => newer(name) ? 7 : hues[k % 8];
  const within = (mean, half) => number(mean) + " ± " + number(Number(half.toPrecision(2)));
  const table = p => {
    const order = p.order.length ? p.order : p.lines.map((l, i) => i).filter(i => p.lines[i].asked);
    const says = {better: "better than the next", tie: "as good as the next", unsettled: "not settled against the next"};
    const last = a => a[a.length - 1];
    $("price").tBodies[0].replaceChildren(...order.map((i, k) => {
      const l = p.lines[i], t = p.lines[l.twin], cell = (v, text) => make("td", {class: "n", "data-v": v ?? false}, text);
      return make("tr", {"data-policy": l.label, "data-budget": l.budget},
        make("th", {scope: "row"}, make("span", {class: "swatch", "data-hue": hue(l.hue - 1, l.policy)}), l.title, make("span", {class: "sub"}, l.private ? budget(l.budget) : "not private")),
        cell(last(l.mean), within(last(l.mean), last(l.hi) - last(l.mean))),
        t ? cell(last(t.mean), within(last(t.mean), last(t.hi) - last(t.mean))) : cell(null, "–"),
        l.price ? cell(l.price.mean, within(l.price.mean, l.price.half)) : cell(null, "–"),
        l.price?.times ? cell(l.price.times, priceOf(l)) : cell(null, "–"),
        make("td", {}, k < order.length - 1 && p.verdicts.length && !p.unranked ? says[p.verdicts[k]] : ""));
    }));
  };
  // What sotto run calls the price: the difference over the regret without privacy.
  const priceOf = l => (l.price.times - 1).toFixed(2).replace("-", "\u2212");
  const budget = b => b.split(",").map(part => {
    const [name, value] = part.split("=");
    return ({epsilon: "ε", delta: "δ", rho: "ρ"})[name] + " = " + brief(value);
  }).join(", ");
  // One of the worst case says nothing of these arms.
  const free = p => p.free.find(f => f.name === "d-epsilon") ?? p.free.find(f => !f.worstCase);
  // Bounds are of a trusted server's noise, which under secagg the sum has too. What others add is
  // more, and so they are below the bounds of those models.
  const central = p => !p.lines.some(l => l.private) ||
    ["continuous", "central", "secagg"].includes(new URLSearchParams(p.link).get("trust") ?? "continuous");
  const lower = p => "lower bound" + (central(p) ? "" : ", trusted server");
  const tell = (p, least) => {
    const last = a => a[a.length - 1], strong = t => make("strong", {}, t), out = [];
    const asked = p.order.length ? p.order.map(k => p.lines[k]) : p.lines.filter(l => l.asked);
    const l = asked.find(l => l.private) ?? asked[0], at = asked.indexOf(l), next = asked.findIndex((a, k) => k > at && a.private === l.private);
    const ahead = next < 0 ? [] : p.verdicts.slice(at, next); // of it against the next of its kind
    const has = !ahead.length ? " has a regret of " : ahead.includes("unsettled") ? " has the least regret so far, " :
      ahead.includes("better") ? " has the least regret, " : " has no more regret than the next, ";
    const winner = () => {
      out.push("At " + budget(p.budget) + " ", strong(l.title), has, strong(number(last(l.mean))), ` in ${number(p.horizon)} rounds`);
      if (l.price) {
        out.push(`. Without privacy it has ${number(last(p.lines[l.twin].mean))}: `);
        const shown = Math.abs(l.price.mean) > l.price.half;
        out.push(...(shown ? ["the difference is ", strong(number(l.price.mean)), l.price.times ? `, a price of ${priceOf(l)}` : ""] : [strong("no price"), " can be seen in these runs"]));
      }
      out.push(". ");
      const plain = l.private && asked.find(a => !a.private);
      if (plain) out.push(`${plain.title}, which hides nobody's reward, has ${number(last(plain.mean))}. `);
    };
    const equal = p.lines.every(l => last(l.mean) === 0);
    if (p.unranked) out.push(strong("These regrets rank no policy"), ": rewards leave the declared range and are clipped to it, which changes which arm is best, or may. Declare the range that they have, under Play, More. ");
    else if (equal) out.push("All arms have the same mean, so that no policy has any regret: there is nothing to lose, with privacy or without. ");
    else winner();
    // A bound of T → ∞ says nothing of a T at which regrets are below it.
    const value = least && !p.unranked && central(p) ? last(least.value) : 0, of = l.private ? " with a trusted server" : "";
    const lowest = Math.min(...asked.filter(a => a.private === l.private).map(a => last(a.mean)));
    if (value > 0 && least.asymptotic && value > lowest) out.push(`The long-run lower bound${of}, about `, strong(number(value)), ", does not hold yet at this number of rounds. ");
    else if (value > 0) out.push((least.asymptotic ? "In the long run no" : "No") + " policy" + of + " can have less than " + (least.asymptotic ? "about " : ""), strong(number(value)), ". ");
    const f = value > 0 ? free(p) : undefined, x = Number(state.budget);
    if (f) {
      const from = f.symbol + " = " + number(f.budget);
      out.push(x < f.budget ? `By that bound privacy is free in the long run from ${from} on.` : `By that bound privacy is free here in the long run, as it is from ${from} on.`);
    }
    $("sentence").replaceChildren(...out);
    const mark = f ? `free from ${f.symbol} = ${number(f.budget)}` : "";
    $("free-mark").textContent = mark;
    const [from, to] = scale[state.kind], share = mark ? (Math.log10(f.budget) - from) / (to - from) : -1;
    $("free-mark").hidden = !(share > 0 && share < 1);
    $("free-mark").style.left = `clamp(4.5rem, ${100 * share}%, 100% - 4.5rem)`;
    $("free").replaceChildren(...(f ? [make("option", {value: Math.log10(f.budget).toFixed(2)})] : []));
    const settled = p.order.length > 1 && !p.unranked ? p.settled ? `; the ranking is settled, but for a probability of ${p.level}` : "; the ranking is not settled" : "";
    $("progress").textContent = `${number(p.runs)} of at most ${number(p.most)} runs of each policy${settled}${p.next ? " …" : "."} Lines are means; dashed ones have no privacy.`;
    if (!p.next) $("said").textContent = $("sentence").textContent;
  };
  const note = (seen, x, p) => {
    seen.delete(x);
    seen.set(x, Object.fromEntries(p.lines.filter(l => l.private).map(l => [l.label, l.mean[l.mean.length - 1]])));
    while (seen.size > 40) seen.delete(seen.keys().next().value);
  };
  // The lower bound against the budget, with what was played at the budgets that were looked at.
  const beyond = p => {
    const figure = $("against"), asked = p.lines.filter(l => l.private), x = Number(state.budget);
    if (!p.against && p.next && edge) return;
    // A logarithmic axis has no place for arms without regret.
    figure.hidden = !asked.length || asked.every(l => !(l.mean[l.mean.length - 1] > 0));
    if (figure.hidden) { edge?.destroy(); edge = edged = null; return; }
    const a = p.against ?? {symbol: names[state.kind], budget: [], value: []};
    const rest = write({...state, budget: ""});
    const seen = trail.get(rest) ?? trail.set(rest, new Map()).get(rest);
    note(seen, x, p);
    const at = [...new Set([...a.budget, ...seen.keys()])].sort((u, v) => u - v);
    const between = v => {
      const j = a.budget.findIndex(b => b >= v);
      if (j < 0 || a.budget[j] === v || j === 0) return a.value[j] ?? null;
      const w = Math.log(v / a.budget[j - 1]) / Math.log(a.budget[j] / a.budget[j - 1]);
      return a.value[j - 1] ** (1 - w) * a.value[j] ** w;
    };
    const series = [...(a.budget.length ? [{name: lower(p) + ", T → ∞", hue: bounded, dash: true, points: false}] : []), ...asked.map(l => ({name: l.title, hue: hues[(l.hue - 1) % 8], span: true, points: true}))];
    const key = JSON.stringify([series, a.symbol]);
    if (key !== edged) {
      edge?.destroy();
      edge = Charts.make(figure, {kind: "line", x: {kind: "log", label: a.symbol}, y: {label: "regret at the last round", log: true}, series, height: 260});
      edged = key;
    }
    edge.set({x: at, series: [...(a.budget.length ? [{y: at.map(between).map(v => v > 0 ? v : null)}] : []), ...asked.map(l => ({y: at.map(v => seen.get(v)?.[l.label] || null)}))]});
  };

  // When there is nothing else to do, a few runs at other budgets.
  const sweep = async mine => {
    const s = {...state, runs: "16", points: "2"}, rest = write({...state, budget: ""}), [from, to] = scale[s.kind];
    const seen = trail.get(rest), near = x => [...seen.keys()].some(v => Math.abs(Math.log10(v / x)) < .2);
    for (let k = from; k <= to && mine === turn; k += .5) {
      const budget = round(10 ** k, 3);
      if (near(Number(budget))) continue;
      await engine.play(write({...s, budget}), s.csv?.text ?? null, () => mine === turn, p => {
        if (p.error || p.next) return;
        note(seen, Number(budget), p);
        beyond(picture);
      });
    }
  };

  // --- The controls ---
  const scale = {epsilon: [-3, 2], approx: [-3, 2], rho: [-6, 1]};
  const round = (x, digits) => String(Number(x.toPrecision(digits)));
  const fill = () => {
    const slider = $("budget");
    $("kind").value = state.kind;
    [slider.min, slider.max] = scale[state.kind];
    slider.value = Math.log10(state.budget);
    $("delta").value = state.delta;
    $("horizon").value = Math.log10(state.horizon);
    $("trust").value = state.trust;
    for (const k of ["runs", "seed", "level", "range"]) $(k).value = state[k];
    label();
    arms();
    policies();
  };
  const label = () => {
    const text = `${names[state.kind]} = ${brief(state.budget)}`;
    $("budget-value").textContent = text;
    $("budget").setAttribute("aria-valuetext", text);
    odds();
    $("delta-box").hidden = state.kind !== "approx";
    $("horizon-value").textContent = number(Number(state.horizon));
    $("horizon").setAttribute("aria-valuetext", $("horizon-value").textContent + " rounds");
  };
  // What ε allows: who sees everything that is published, and guessed at even odds whether one reaction
  // was good, is right with probability e^ε/(1 + e^ε) at most. ρ-zCDP implies ε = ρ + 2√(ρ ln(1/δ)).
  const odds = () => {
    const x = Number(state.budget), delta = state.kind === "rho" ? 1e-6 : Number(state.delta);
    const epsilon = state.kind === "rho" ? x + 2 * Math.sqrt(x * Math.log(1 / delta)) : x, guess = 1 / (1 + Math.exp(-epsilon));
    const but = state.kind === "epsilon" ? "" : `, but for a probability of ${delta}`;
    const percent = guess > .999 ? "more than 99.9" : (100 * guess).toFixed(guess < .501 ? 2 : 1);
    $("odds-bar").style.width = 100 * (guess - .5) + "%";
    $("odds").classList.toggle("much", epsilon > 8);
    $("odds-text").textContent = epsilon > 8 ? `This hides next to nothing: a guess of 50 % about one person's reaction may become ${percent} %${but}.` :
      `Seeing everything that is published changes the odds about one person's reaction by at most a factor ${number(Math.exp(epsilon))}: a guess of 50 % becomes at most ${percent} %${but}.`;
  };
  // Four steps for who has never heard of bandits: each is a link, and what to see in it.
  const tour = [
    ["arms=0.5,0.6&policies=successive-elimination,kl-ucb&epsilon=0.5&horizon=100000", "Two versions of a page, one liked by 50 % and one by 60 % of visitors. Always guessing would lose 5 in 100 visitors for ever. A policy that learns (KL-UCB) stops losing: its line bends.", "Next: hide each visitor"],
    ["arms=0.5,0.6&policies=dp-imed,kl-ucb&epsilon=0.1&horizon=100000", "Now no single visitor's reaction may show (ε = 0.1). The private policy learns from noisy sums, so it takes longer: the gap between its two lines is what privacy costs.", "Next: turn the knob"],
    ["arms=0.5,0.6&policies=dp-imed,kl-ucb&epsilon=1&horizon=100000", "At ε = 1 the gap to KL-UCB is gone: the bar below the knob says what is given up for that.", "Next: which policy"],
    ["arms=0.5,0.6&policies=dp-imed,dp-ts,adap-klucb,dp-se&epsilon=1&horizon=1000000", "Private policies differ by more than privacy costs. Grey ones are older; the table below says what privacy costs each. Now change arms, rounds and knob as you like.", ""],
  ];
  // Worlds to begin with: few arms, many, and rates as low as those of clicks.
  const examples = [
    ["Five arms, far apart", "arms=0.25,0.375,0.5,0.625,0.75&horizon=1000000"],
    ["Two arms, close: 50 % and 52 %", "arms=0.5,0.52&horizon=1000000"],
    ["Low rates: 2 %, 2.5 % and 3 %", "arms=0.02,0.025,0.03&horizon=10000000"],
    ["Twenty arms, 1 to 5 %", `arms=${Array.from({length: 20}, (_, i) => +(0.01 + 0.04 * i / 19).toFixed(4)).join(",")}&horizon=10000000`],
  ];
  let station = 0;
  const visit = () => {
    const [link, text, next] = tour[station++];
    state = read(link);
    fill();
    change();
    $("tour-text").textContent = text;
    $("tour-next").textContent = next;
    $("tour-next").hidden = !next;
  };
  const arms = () => {
    if (state.csv) {
      $("arm-list").replaceChildren(make("p", {}, make("strong", {}, state.csv.name), ": its rewards, drawn with replacement. The log stays in " + (native ? "this computer" : "this page") + ". ",
        (() => { const b = make("button", {type: "button", class: "plain"}, "Back to sliders"); b.onclick = () => { state.csv = null; arms(); change(); }; return b; })()));
      $("add").hidden = true;
      return;
    }
    $("add").hidden = false;
    $("add").disabled = state.arms.length >= offers.maxArms;
    // Of low rates the sliders end at a tenth, or they could not be told apart.
    const widest = state.arms.every(law => Number(law) <= .1) ? .1 : 1;
    $("arm-list").replaceChildren(...state.arms.map((law, i) => {
      const mean = Number(law), plain = law !== "" && !Number.isNaN(mean), n = i + 1;
      const text = make("input", {value: law, "aria-label": `Arm ${n}: mean or law`, size: 6, spellcheck: "false"});
      text.value = law;
      text.onchange = () => { state.arms[i] = text.value.trim(); arms(); change(); };
      const off = make("button", {type: "button", "aria-label": `Remove arm ${n}`, disabled: state.arms.length <= 2}, "×");
      off.onclick = () => { state.arms.splice(i, 1); arms(); change(); $("add").focus(); };
      if (!plain) return make("div", {class: "arm law"}, make("span", {}, String(n)), text, off);
      const range = make("input", {type: "range", min: 0, max: widest, step: widest / 200, "aria-label": `Mean of arm ${n}`});
      range.value = mean;
      range.oninput = () => { text.value = state.arms[i] = String(Number(Number(range.value).toFixed(4))); change(); };
      return make("div", {class: "arm"}, make("span", {}, String(n)), range, text, off);
    }));
  };
  const policies = () => {
    const kind = {epsilon: "epsilon", approx: "epsilon,delta", rho: "rho"}[state.kind];
    const rows = [...offers.policies.map(p => ({p, text: p.name}))];
    for (const text of state.policies) {
      if (rows.some(r => r.text === text)) continue;
      const at = rows.findLastIndex(r => r.p.name === text.split(":")[0]);
      if (at >= 0) rows.splice(at + 1, 0, {p: rows[at].p, text});
    }
    const row = ({p, text}) => {
      const on = state.policies.includes(text), can = !p.private || p.budgets.includes(kind);
      const box = make("input", {type: "checkbox", value: text});
      box.checked = on;
      box.onchange = () => {
        state.policies = box.checked ? [...state.policies, text] : state.policies.filter(t => t !== text);
        if (!state.policies.length) {
          box.checked = true;
          state.policies = [text];
          $("policies-hint").textContent = `${p.title} stays: at least one policy is played. Tick another first.`;
          return;
        }
        policies();
        change();
        $("policy-list").querySelector(`[value="${CSS.escape(text)}"]`)?.focus();
      };
      box.disabled = !on && state.policies.length >= offers.most;
      const settings = text.includes(":") ? " " + text.slice(text.indexOf(":") + 1).replaceAll(":", ", ") : "";
      return make("label", {class: can ? "" : "off", title: p.regret}, box,
        make("span", {class: "swatch", "data-hue": on ? hue(state.policies.indexOf(text), p.name) : 7}), p.title + settings,
        can && p.newer ? make("span", {class: "why"}, "older") : "",
        can ? "" : make("span", {class: "why"}, "takes " + p.budgets.map(b => ({epsilon: "ε", rho: "ρ", "epsilon,delta": "(ε, δ)", "alpha,epsilon": "(α, ε)"})[b] ?? b).join(", ")));
    };
    const more = make("input", {id: "policy-text", "aria-label": "A policy with parameters", placeholder: "adap-ucb:alpha=4", spellcheck: "false"});
    const add = make("button", {type: "button"}, "Add");
    const added = () => { const t = more.value.trim(); if (t && !state.policies.includes(t)) { state.policies.push(t); policies(); change(); } };
    add.onclick = added;
    more.onkeydown = e => { if (e.key === "Enter") { e.preventDefault(); added(); } };
    const open = $("policy-list").querySelector("details")?.open;
    const rare = rows.filter(r => r.p.private && (r.p.newer || /modified|-j$|dp-se-2|batch-se/.test(r.p.name)) && !state.policies.includes(r.text));
    const usual = rows.filter(r => r.p.private && !rare.includes(r)).sort((a, b) => !!a.p.newer - !!b.p.newer);
    const others = make("details", {open: !!open}, make("summary", {}, `${rare.length} more`), ...rare.map(row));
    $("policy-list").replaceChildren(make("h2", {}, "private"), ...usual.map(row), others,
      make("h2", {}, "not private"), ...rows.filter(r => !r.p.private).map(row), make("h3", {}, "with parameters"), make("div", {class: "row"}, more, add));
  };
  const listen = () => {
    $("budget").addEventListener("input", () => { state.budget = round(10 ** $("budget").value, 3); label(); change(); });
    $("kind").addEventListener("change", () => {
      const was = state.kind, x = Number(state.budget);
      state.kind = $("kind").value;
      // About as much privacy: ρ = ε²/2.
      if (was === "rho" && state.kind !== "rho") state.budget = round(Math.min(100, Math.max(.001, Math.sqrt(2 * x))), 3);
      if (was !== "rho" && state.kind === "rho") state.budget = round(Math.min(10, Math.max(1e-6, x * x / 2)), 3);
      fill();
      change();
    });
    $("horizon").addEventListener("input", () => { state.horizon = String(Math.max(2, Number((10 ** $("horizon").value).toPrecision(1)))); label(); change(); });
    $("trust").addEventListener("change", () => { state.trust = $("trust").value; change(); });
    for (const k of ["delta", "runs", "seed", "level", "range"]) $(k).addEventListener("change", () => { state[k] = $(k).value.trim().replaceAll(" ", ""); change(); });
    $("add").addEventListener("click", () => {
      state.arms.push("0.5");
      arms();
      change();
      $("arm-list").lastChild.querySelector("input").focus();
    });
    $("tour-next").addEventListener("click", visit);
    $("example").append(...examples.map(([name], i) => make("option", {value: i}, name)));
    $("example").addEventListener("change", () => {
      if ($("example").value === "") return;
      const q = new URLSearchParams(write(state));
      q.delete("csv");
      for (const [k, v] of new URLSearchParams(examples[$("example").value][1])) q.set(k, v);
      state = read(q.toString());
      $("example").value = "";
      fill();
      change();
    });
    $("from").addEventListener("input", () => { if (picture) draw(picture); });
    $("controls").addEventListener("submit", e => e.preventDefault());
    const drop = async file => {
      if (!file) return;
      state.csv = {name: file.name, text: await file.text()};
      arms();
      change();
    };
    $("csv").addEventListener("change", () => drop($("csv").files[0]));
    for (const [type, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) addEventListener(type, e => {
      if (![...e.dataTransfer?.types ?? []].includes("Files")) return;
      e.preventDefault();
      $("arms").classList.toggle("drop", over);
      if (type === "drop") drop(e.dataTransfer.files[0]);
    });
    for (const b of document.querySelectorAll("[data-copy]")) b.addEventListener("click", async () => {
      const text = $(b.dataset.copy).textContent;
      try { await navigator.clipboard.writeText(text); } catch {
        const range = document.createRange();
        range.selectNodeContents($(b.dataset.copy));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        if (!document.execCommand("copy")) { $("copied").textContent = "It is selected: copy it with your keys."; return; }
      }
      $("copied").textContent = "";
      $("copied").textContent = "Copied.";
      const was = b.textContent;
      b.textContent = "Copied";
      setTimeout(() => { b.textContent = was; }, 1200);
    });
    for (const e of document.querySelectorAll(".shades input")) e.addEventListener("change", () => { if (picture) draw(picture); });
    // Its own address: that of the page may be the last link's again, written late by ask.
    addEventListener("hashchange", e => { state = read(new URL(e.newURL).hash.slice(1) || offers.default); fill(); change(); });
  };

  const begin = async () => {
    const r = await fetch("first.json");
    first = await r.json();
    offers = first.offers;
    for (const t of offers.trusts) $("trust").append(make("option", {value: t}, trusts[t] ?? t));
    state = read(location.hash.slice(1) || offers.default);
    $("bench").hidden = false;
    $("stays").hidden = remote;
    fill();
    listen();
    // What a page begins with was played before, so that there is something to see at once.
    if (!location.hash && first.picture) { began = performance.now(); show(first.picture); }
    ask();
  };
  begin().catch(e => {
    $("bench").hidden = false;
    show({error: "The page did not start: " + e.message});
  });
})();
