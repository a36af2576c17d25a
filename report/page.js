"use strict";
(() => {
  const source = document.getElementById("trajectory-data");
  if (!source) return;
  const data = JSON.parse(source.textContent), all = data.trajectories;
  const root = document.getElementById("browser"), form = root.querySelector("form");
  const list = root.querySelector(".list"), viewer = root.querySelector(".viewer");
  const names = ["all right", "in part", "wrong", "no answer"];
  const ends = { answered: "answered", turn_limit: "the turn budget was spent", unusable: "a response was unusable", context: "the context was full",
    retrieval: "the search failed", model_error: "the model failed", update: "the context update failed", cancelled: "stopped" };
  for (const t of all) { // empty lists are null in JSON
    for (const k of ["questions", "golds", "answers", "scores", "calls"]) t[k] = t[k] || [];
    t.golds = t.golds.map(g => g || []);
  }
  let shown = [], chosen = -1, call = 0, every = false;

  // make builds an element; texts of runs come in as text alone.
  const make = (tag, attributes, ...children) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
    e.append(...children.filter(c => c !== null && c !== undefined));
    return e;
  };
  const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");
  const f3 = v => v === 0 || v === 1 ? String(v) : v.toFixed(3);

  // Words: tags of the protocol are words of their own.
  const split = text => text.split(/(<\/?(?:think|search|answer|information)>|\s+)/).filter(w => w !== "");
  const isTag = w => /^<\/?(think|search|answer|information)>$/.test(w), isSpace = w => /^\s+$/.test(w);
  const norm = w => w.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

  // goldWords tells which words stand in a gold answer.
  const goldWords = (words, golds) => {
    const at = words.map((w, i) => i).filter(i => !isSpace(words[i]) && !isTag(words[i]));
    const flat = at.map(i => norm(words[i])), hit = new Set();
    for (const gold of golds) {
      const g = gold.split(/\s+/).map(norm).filter(w => w);
      for (let i = 0; g.length && i + g.length <= flat.length; i++)
        if (g.every((w, j) => flat[i + j] === w)) for (let k = at[i]; k <= at[i + g.length - 1]; k++) hit.add(k);
    }
    return hit;
  };
  const holds = (text, golds) => goldWords(split(text), golds).size > 0;

  // difference is the places of words that the other text has not, in order.
  const difference = (a, b) => {
    const pick = ws => ws.map((w, i) => i).filter(i => !isSpace(ws[i]) && !isTag(ws[i]));
    const x = pick(a), y = pick(b), goneA = new Set(x), goneB = new Set(y);
    if (x.length * y.length > 4e6) return [new Set(), new Set()];
    const t = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--)
      t[i][j] = a[x[i]] === b[y[j]] ? t[i + 1][j + 1] + 1 : Math.max(t[i + 1][j], t[i][j + 1]);
    for (let i = 0, j = 0; i < x.length && j < y.length;) {
      if (a[x[i]] === b[y[j]]) { goneA.delete(x[i++]); goneB.delete(y[j++]); }
      else if (t[i + 1][j] >= t[i][j + 1]) i++; else j++;
    }
    return [goneA, goneB];
  };

  // block shows a text; marks: golds, and words that are gone (del) or new (ins).
  const block = (kind, text, golds, marked, tag) => {
    const e = make("div", { class: "block " + kind }), words = split(text), gold = goldWords(words, golds);
    let run = "", state = "";
    const flush = () => {
      if (run === "") return;
      let node = document.createTextNode(run);
      if (state.includes("t")) node = make("span", { class: "tag" }, node);
      if (state.includes("g")) node = make("mark", {}, node);
      if (state.includes("m")) node = make(tag, {}, node);
      e.append(node);
      run = "";
    };
    words.forEach((w, i) => {
      const between = isSpace(w) && i > 0 && i + 1 < words.length;
      const is = (set, c) => set && (set.has(i) || between && set.has(i - 1) && set.has(i + 1)) ? c : "";
      const s = (isTag(w) ? "t" : "") + is(gold, "g") + is(marked, "m");
      if (s !== state) { flush(); state = s; }
      run += w;
    });
    flush();
    return e;
  };

  const textOf = (t, p) => p.text !== undefined ? p.text : (p.origin === "observation" ? t.calls[p.from_call].observation : t.calls[p.from_call].response).text;
  const head = (text, tokens, css) => make("h5", { class: css }, text + " ", make("small", {}, plural(tokens, "token")));
  const partName = p => (p.origin === "retained" ? "Memory: response of call " : p.origin === "observation" ? "Observation of call " : p.origin + " of call ") + p.from_call + (p.offset ? ", from token " + p.offset + " on" : "");

  function showCall(t, k) {
    const c = t.calls[k], golds = t.golds.flat(), response = split(c.response.text);
    const memory = c.context.filter(p => p.origin === "retained").pop();
    const before = memory ? split(textOf(t, memory)) : [], [gone, fresh] = memory ? difference(before, response) : [new Set(), null];
    const left = make("div", {}), right = make("div", {});
    left.append(head("Task prefix", t.prefix.tokens), block("", t.prefix.text, []));
    for (const p of c.context) {
      const mem = p.origin === "retained";
      left.append(head(partName(p), p.tokens), block(mem ? "mem" : "obs", textOf(t, p), golds, p === memory ? gone : null, "del"));
    }
    if (c.context.length === 0) left.append(make("p", { class: "note" }, "Nothing but the task: there is no memory yet."));
    for (const p of c.dropped || [])
      left.append(head("Dropped before this call: " + (p.origin === "retained" ? "response" : "observation") + " of call " + p.from_call + (p.offset ? ", from token " + p.offset + " on" : ""), p.tokens, "gone-h"), block("gone", textOf(t, p), golds));
    right.append(head("Response", c.response.tokens), block("out", c.response.text, golds, fresh, "ins"));
    const flags = make("ul", { class: "flags" });
    t.golds.forEach((g, q) => {
      if (memory && holds(textOf(t, memory), g) && !holds(c.response.text, g))
        flags.append(make("li", { class: "lost" }, "✗ Dropped from memory: " + g.find(x => holds(textOf(t, memory), [x])) + ", the answer to question " + (q + 1)));
    });
    if (flags.children.length) right.append(flags);
    if (c.outcome === "search") {
      right.append(make("h5", {}, "Search"), make("div", { class: "block" }, c.query || "–"));
      if (c.observation && c.observation.tokens) right.append(head("Answer of the environment" + ((c.documents || []).length ? ": " + c.documents.join(", ") : ", no document"), c.observation.tokens), block("obs", c.observation.text, golds));
      if (c.failure) right.append(make("p", { class: "lost" }, "The search could not be made: " + c.failure));
    } else if (c.outcome === "answer") {
      right.append(make("h5", {}, "Final answer"), make("div", { class: "block out" }, t.answers.join(" ; ") || "–"));
    } else right.append(make("p", { class: "lost" }, "Unusable" + (c.reason ? ": " + c.reason : "") + "."));
    const what = c.outcome === "search" ? "search" : c.outcome === "answer" ? "final answer" : "unusable";
    return make("div", { class: "call", role: every ? "group" : "tabpanel", "aria-label": "Call " + k },
      make("h4", {}, "Call " + k + " (0 to " + (t.calls.length - 1) + "): " + what),
      make("p", {}, plural(c.context_tokens, "token") + " of context, " + c.response.tokens + " written" + (c.seconds ? ", " + c.seconds.toFixed(2) + " s" : "") + (c.stop ? "; ended by " + c.stop.replace(/_/g, " ") : "")),
      make("div", { class: "sides" }, left, right));
  }

  function strip(t) {
    const bar = make("div", { class: "strip", role: "tablist", "aria-label": "Calls" });
    const most = Math.max(...t.calls.map(c => c.context_tokens + c.response.tokens), 1), px = n => "height:" + Math.max(n ? 1 : 0, Math.round(74 * n / most)) + "px";
    t.calls.forEach((c, k) => {
      const sum = origin => c.context.filter(p => p.origin === origin).reduce((n, p) => n + p.tokens, 0);
      const part = (css, n) => { const i = make("i", { class: css }); i.style.cssText = px(n); return i; };
      const b = make("button", { type: "button", role: "tab", "aria-selected": String(k === call), tabindex: k === call ? 0 : -1,
        "aria-label": "Call " + k + ", " + c.context_tokens + " tokens of context, " + c.response.tokens + " written", title: "call " + k + ": " + c.context_tokens + " + " + c.response.tokens + " tokens" },
      part("out", c.response.tokens), part("obs", sum("observation")), part("mem", sum("retained")), part("pre", t.prefix.tokens), make("span", {}, String(k)));
      b.addEventListener("click", () => go(k, true));
      bar.append(b);
    });
    return bar;
  }

  function view() {
    viewer.replaceChildren();
    const t = all[chosen];
    if (!t) return;
    const kind = names.indexOf(t.outcome);
    viewer.append(make("h3", {}, t.task_id + " ", make("span", { class: "badge b" + kind }, ["✓ ", "◐ ", "✗ ", "∅ "][kind] + t.outcome)),
      make("p", {}, [t.variant, "seed " + t.seed, t.horizon, "EM " + f3(t.em), "F1 " + f3(t.f1), plural(t.calls.length, "call"), "peak context " + t.peak_context, (ends[t.end] || t.end) + (t.error ? ": " + t.error : ""), "update " + t.update].join(" · ")));
    const body = make("tbody", {});
    t.questions.forEach((q, i) => {
      const s = t.scores[i], answer = t.answers[i];
      body.append(make("tr", {}, make("td", {}, String(i + 1)), make("td", {}, q), make("td", {}, t.golds[i].join(" / ")),
        make("td", { class: s.em === 1 ? "right" : "wrong" }, (s.em === 1 ? "✓ " : "✗ ") + (answer === undefined ? "none" : answer === "" ? "(empty)" : answer)), make("td", {}, f3(s.f1))));
    });
    viewer.append(make("div", { class: "qs", tabindex: 0, role: "region", "aria-label": "Questions" }, make("table", { class: "questions" }, make("thead", {}, make("tr", {}, ...["", "question", "gold", "answer", "F1"].map(h => make("th", { scope: "col" }, h)))), body)));
    if (t.answers.length > t.questions.length) viewer.append(make("p", {}, plural(t.answers.length - t.questions.length, "answer") + " too many: " + t.answers.slice(t.questions.length).join(" ; ")));
    viewer.append(make("h5", {}, "Tokens of each call"), strip(t),
      make("ul", { class: "keys" }, ...[["out", "written"], ["obs", "observation"], ["mem", "memory"], ["pre", "task prefix"]].map(([c, n]) => make("li", {}, make("i", { class: c }), n)),
        make("li", {}, make("b", { class: "lost" }, "struck"), " dropped"), make("li", {}, "underlined: new in the response"), make("li", {}, "highlighted: a gold answer")));
    const back = make("button", { type: "button" }, "← Call before"), next = make("button", { type: "button" }, "Next call →");
    const box = make("input", { type: "checkbox" });
    box.checked = every;
    back.disabled = every || call === 0;
    next.disabled = every || call >= t.calls.length - 1;
    back.addEventListener("click", () => go(call - 1));
    next.addEventListener("click", () => go(call + 1));
    box.addEventListener("change", () => { every = box.checked; view(); viewer.querySelector("input").focus(); });
    viewer.append(make("div", { class: "steps" }, back, next, make("label", {}, box, "all calls")));
    if (t.calls.length === 0) viewer.append(make("p", {}, "No call was made."));
    t.calls.forEach((c, k) => { if (every || k === call) viewer.append(showCall(t, k)); });
  }

  function go(k, focus) {
    const t = all[chosen];
    call = Math.min(Math.max(k, 0), Math.max(t.calls.length - 1, 0));
    const top = viewer.querySelector(".strip").scrollLeft;
    view();
    const bar = viewer.querySelector(".strip"), tab = bar.children[call];
    bar.scrollLeft = top;
    if (tab && (tab.offsetLeft < bar.scrollLeft || tab.offsetLeft + tab.offsetWidth > bar.scrollLeft + bar.clientWidth)) bar.scrollLeft = tab.offsetLeft - 40;
    if (focus && tab) tab.focus({ preventScroll: true });
  }

  function choose(index) {
    chosen = index;
    call = 0;
    [...list.children].forEach(e => {
      const on = e.dataset.index === String(index);
      e.setAttribute("aria-selected", String(on));
      if (on) {
        list.setAttribute("aria-activedescendant", e.id);
        if (e.offsetTop < list.scrollTop) list.scrollTop = e.offsetTop - 4;
        if (e.offsetTop + e.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = e.offsetTop + e.offsetHeight - list.clientHeight + 4;
      }
    });
    view();
  }

  function filter() {
    const want = Object.fromEntries([...form.elements].filter(e => e.name).map(e => [e.name, e.value]));
    shown = all.map((t, i) => i).filter(i => ["variant", "horizon", "outcome"].every(k => !want[k] || all[i][k] === want[k]));
    form.querySelector("output").textContent = shown.length + " of " + plural(all.length, "trajectory").replace("trajectorys", "trajectories");
    list.replaceChildren(...shown.map(i => {
      const t = all[i], kind = names.indexOf(t.outcome);
      const e = make("li", { role: "option", id: "trajectory-" + i, "aria-selected": "false", "data-index": String(i) }, ["✓ ", "◐ ", "✗ ", "∅ "][kind] + t.task_id,
        make("small", {}, make("span", {}, t.variant + " · " + t.horizon + (seeds ? " · seed " + t.seed : "")), make("span", {}, "F1 " + f3(t.f1))));
      e.addEventListener("click", () => choose(i));
      return e;
    }));
    if (shown.length === 0) list.append(make("li", { class: "none" }, "None: change the filter."));
    if (shown.length === 0) { chosen = -1; list.removeAttribute("aria-activedescendant"); view(); }
    else choose(shown.includes(chosen) ? chosen : shown[0]);
  }

  const seeds = new Set(all.map(t => t.seed)).size > 1;
  const select = (name, label, values) => {
    const s = make("select", { name }, make("option", { value: "" }, "all"), ...values.map(v => make("option", { value: v }, v)));
    s.addEventListener("change", filter);
    return make("label", {}, label, s);
  };
  form.append(select("variant", "Variant", data.variants), select("horizon", "Horizon", data.horizons), select("outcome", "Outcome", data.outcomes), make("output", { "aria-live": "polite" }));
  form.addEventListener("submit", e => e.preventDefault());
  const step = (e, at, last) => ({ ArrowDown: at + 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last })[e.key];
  list.addEventListener("keydown", e => {
    if (chosen < 0) return;
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") { e.preventDefault(); return go(call + (e.key === "ArrowRight" ? 1 : -1)); }
    const to = step(e, shown.indexOf(chosen), shown.length - 1);
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    choose(shown[Math.min(Math.max(to, 0), shown.length - 1)]);
  });
  viewer.addEventListener("keydown", e => {
    if (!e.target.closest(".strip")) return;
    const to = step(e, call, all[chosen].calls.length - 1);
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    go(to, true);
  });
  root.hidden = false;
  filter();
})();
