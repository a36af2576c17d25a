"use strict";
(() => {
  const texts = JSON.parse(document.getElementById("texts")?.textContent || "{}");
  const text = id => texts[id] ?? "id " + id;
  const count = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const small = v => v >= 1e8 ? "∞" : v < 0 ? "–" : v === 0 ? "0" : v >= 0.01 ? String(+v.toPrecision(3)) : v.toExponential(1).replace("e+", "e");

  // The last entry of a list of runs that begins at or before a place.
  const last = (list, place, of = x => x[0]) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (of(list[middle]) <= place) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  const what = (segment, place) => {
    const [start, kind, from, offset] = segment, i = offset + place - start;
    if (kind === 0) return `task prefix, token ${i}`;
    if (kind === 3) return `sampled by call ${from}, token ${i}`;
    if (kind === 1) return `copy of call ${from}'s output, token ${i}`;
    if (kind === 2) return from < 0 ? `shown before the first call, token ${i}` : `observation after call ${from}, token ${i}`;
    return "not in the record";
  };

  class View {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(document.getElementById("d-" + root.dataset.view).textContent);
      this.tracks = root.querySelector("svg.tracks");
      this.matrix = root.querySelector("svg.matrix");
      this.range = root.querySelector("input[type=range]");
      this.range.max = this.data.n - 1;
      this.fields = {};
      for (const e of root.querySelectorAll("[data-f]")) this.fields[e.dataset.f] = e;
      let n = 0;
      this.first = this.data.acts.map(a => (n += a[4]) - a[4]); // index of each run's first error
      this.flips = new Set(this.data.flips);
      this.spurious = new Set(this.data.spurious);
      this.range.addEventListener("input", () => this.move(+this.range.value));
      const under = (e, svg) => {
        const box = svg.getBoundingClientRect();
        return Math.floor((e.clientX - box.left) / box.width * this.data.n);
      };
      for (const kind of ["pointermove", "pointerdown"]) this.tracks.addEventListener(kind, e => this.move(under(e, this.tracks)));
      for (const kind of ["pointermove", "pointerdown"]) {
        this.matrix.addEventListener(kind, e => {
          const box = this.matrix.getBoundingClientRect(), margin = +this.matrix.dataset.margin;
          this.move(Math.floor((e.clientY - box.top) / box.height * (this.data.n + margin) - margin));
        });
      }
      for (const button of root.querySelectorAll("button.go")) {
        button.disabled = false;
        button.addEventListener("click", () => this.move(+button.dataset.place));
      }
      this.move(+this.range.value);
    }

    // The action at a place: who predicts it and what became of it.
    action(place) {
      const i = last(this.data.acts, place);
      for (let run = i; run >= 0; run--) { // runs that share places are rare
        const [start, predict, , , n] = this.data.acts[run], k = place - start;
        if (k < n) return { predict: predict + k, number: this.first[run] + k };
        if (run < i) break;
      }
      return this.spurious.has(place) ? { predict: place - 1, number: -1 } : null;
    }

    move(place) {
      place = Math.max(0, Math.min(this.data.n - 1, place));
      const { data, fields } = this, at = data.segs[last(data.segs, place)], k = place - at[0];
      const [, , , , position, index, seen, extra, missing] = at;
      const action = this.action(place), set = (f, v) => { if (fields[f].textContent !== v) fields[f].textContent = v; };
      const near = (from, to) => data.ids.slice(Math.max(0, from), Math.max(0, to)).map(text).join(" ");
      this.range.value = place;
      this.range.setAttribute("aria-valuetext", `place ${place}: ${text(data.ids[place])}, ${what(at, place)}`);
      set("before", near(place - 12, place));
      set("text", text(data.ids[place]));
      set("after", near(place + 1, place + 9));
      set("what", what(at, place));
      set("id", String(data.ids[place]));
      const row = last(data.rows, place, x => x);
      set("where", data.rows.length > 1 ? `${place - data.rows[row]} of row ${row}` : String(place));
      set("position", count(position + k) + (index >= 0 && index !== position ? `, was ${count(index + k)}` : ""));
      set("sees", count(seen + k + 1) + (extra ? `, ${count(extra)} too many` : "") + (missing ? `, ${count(missing)} missing` : ""));
      set("predict", action ? `place ${action.predict}, after ${text(data.ids[action.predict])}` : "no action");
      set("error", action && action.number >= 0 ? small(data.errs[action.number]) : action ? "not sampled" : "–");
      set("flip", action && this.flips.has(action.number) ? " ▼ top prediction flips" : "");
      this.mark(place, action ? action.predict : -1);
    }

    mark(place, predict) {
      const n = this.data.n;
      for (const [name, p] of [["place", place], ["predict", predict]]) {
        const line = this.tracks.querySelector(`[data-c=${name}]`), x = `${(p + 0.5) / n * 100}%`;
        line.setAttribute("visibility", p < 0 ? "hidden" : "visible");
        if (p >= 0) { line.setAttribute("x1", x); line.setAttribute("x2", x); }
      }
      const y = (predict >= 0 ? predict : place) + 0.5, x = place + 0.5;
      this.matrix.querySelector("[data-c=matrix]").setAttribute("d", `M0 ${y}H${y}M${x} ${x}V${n}`);
    }
  }

  document.documentElement.classList.add("js-on");
  const views = new Map();
  const wake = () => {
    for (const root of document.querySelectorAll(".view")) {
      if (!views.has(root) && root.getClientRects().length) views.set(root, new View(root));
    }
  };
  // One choice of layout for all trajectories.
  document.addEventListener("change", e => {
    if (e.target.type !== "radio") return;
    if (e.target.name.startsWith("layout-")) {
      for (const other of document.querySelectorAll(".tile input")) {
        if (other.value === e.target.value) other.checked = true;
      }
    }
    wake();
  });
  wake();
})();
