// Any metric over any factor: the reader chooses, the page draws. Its data is a file of its own, loaded when it is needed.
"use strict";

(function () {
  const { h, number } = netwarp;
  const form = document.getElementById("explore-form");
  const chart = document.getElementById("explore-chart");
  const legend = document.getElementById("explore-legend");
  const hidden = new Set();
  let data = null;

  netwarp.exploreLoaded = (loaded) => { data = loaded; };

  const select = (name, label, options, chosen) =>
    h("label", {}, label, h("select", { name }, options.map(([value, text]) => h("option", { value, selected: value === String(chosen) }, text))));

  // The form remembers what still makes sense when its choices change.
  function build(state) {
    const factors = data.factors.map((factor, i) => [String(i), factor.title]);
    const none = [["", "–"]];
    const rest = data.factors.map((_, i) => i).filter((i) => ![state.x, state.a, state.b].includes(String(i)));
    const focused = document.activeElement && form.contains(document.activeElement) ? document.activeElement.name : null;
    form.replaceChildren(...[
      select("kind", "As", [["line", "lines"], ["box", "box plot"], ["cdf", "distribution (CDF)"], ["heat", "heat map"]], state.kind),
      select("metric", "Metric", data.metrics.map((metric, i) => [String(i), metric.title]), state.metric),
      select("x", state.kind === "cdf" ? "(not used)" : "Over", factors, state.x),
      select("a", state.kind === "heat" ? "Against" : "Lines by", none.concat(factors), state.a),
      state.kind === "heat" ? "" : select("b", "and by", none.concat(factors), state.b),
      rest.map((i) => select("fix" + i, data.factors[i].title,
        [["", "all"], ...data.factors[i].levels.map((level, j) => [String(j), data.factors[i].titles[j]]).filter(([j]) => data.factors[i].levels[j] !== "-")],
        state["fix" + i] === undefined ? 0 : state["fix" + i])),
    ].flat());
    if (focused && form.elements[focused]) form.elements[focused].focus();
  }

  const read = () => Object.fromEntries(new FormData(form));

  // The cells that fit, grouped: {groups: [{key, label, at: Map(level index -> values)}], x}
  function groups(state) {
    const x = Number(state.x);
    const by = [state.a, state.kind === "heat" ? "" : state.b].filter((one) => one !== undefined && one !== "" && (Number(one) !== x || state.kind === "cdf"))
      .map(Number).filter((one, i, all) => all.indexOf(one) === i);
    const metric = Number(state.metric);
    const found = new Map();
    for (const cell of data.cells) {
      const value = cell.values[metric];
      const fits = data.factors.every((factor, i) => {
        const fixed = state["fix" + i];
        return fixed === undefined || fixed === "" || factor.levels[cell.levels[i]] === "-" || cell.levels[i] === Number(fixed);
      });
      if (value === null || !fits) continue;
      const key = by.map((i) => cell.levels[i]).join(" ");
      if (!found.has(key)) {
        const pairs = by.map((i) => [data.factors[i], cell.levels[i]]).filter(([factor, level]) => factor.levels[level] !== "-");
        found.set(key, {
          order: by.map((i) => cell.levels[i]),
          key: pairs.map(([factor, level]) => `${factor.name}=${factor.levels[level]}`).join("|"),
          label: pairs.map(([factor, level]) => factor.titles[level]).join(", ") || "all cells", at: new Map(),
        });
      }
      const at = found.get(key).at;
      const level = cell.levels[x];
      if (!at.has(level)) at.set(level, []);
      at.get(level).push([value, cell.id]);
    }
    const ordered = [...found.values()].sort((one, other) => {
      for (let i = 0; i < one.order.length; i++) if (one.order[i] !== other.order[i]) return one.order[i] - other.order[i];
      return 0;
    });
    return { x: data.factors[x], by, metric: data.metrics[metric], groups: ordered };
  }

  // A variant has the look it has everywhere; combinations no figure draws get the free ones in order.
  function looksFor(list) {
    const own = Object.values(netwarp.data.looks);
    const taken = new Set(list.filter((group) => netwarp.data.looks[group.key]).map((group) => netwarp.data.looks[group.key].number));
    const free = own.concat(spare).filter((look) => look.number === undefined || !taken.has(look.number));
    const found = new Map();
    let next = 0;
    for (const group of list) found.set(group.key, netwarp.data.looks[group.key] || free[next++ % free.length]);
    return (key) => found.get(key);
  }
  const spare = [
    ["#0072B2", "#56A8E0", "circle", "solid"], ["#D55E00", "#F28C45", "square", "dash"], ["#009E73", "#3CC79D", "triangle-up", "dashdot"],
    ["#CC79A7", "#E39BC3", "diamond", "longdash"], ["#B07D00", "#E6B022", "triangle-down", "dot"], ["#56B4E9", "#8FD0F7", "cross", "longdashdot"],
    ["#333333", "#D0D0D0", "x", "solid"], ["#7A5195", "#B48ACB", "star", "dash"],
  ].map(([light, dark, marker, dash]) => ({ light, dark, marker, dash }));

  const mean = (values) => values.reduce((sum, [value]) => sum + value, 0) / values.length;
  const levelsOf = (picked) => picked.x.levels.map((_, i) => i).filter((i) => picked.groups.some((group) => group.at.has(i)));
  const label = (title, unit) => (unit ? `${title} (${unit})` : title);

  function asFigure(picked) {
    const { x, metric } = picked;
    const levels = levelsOf(picked);
    const all = picked.groups.flatMap((group) => [...group.at.values()].flat().map(([value]) => value));
    const { divisor, unit } = netwarp.scale(all, metric.unit);
    // a level that does not apply ("-") has no number: then the axis is one of places
    const numeric = x.kind !== "category" && levels.every((i) => x.levels[i] !== "-");
    const at = levels.map((i, place) => (numeric ? x.at[i] : place));
    const text = levels.map((i) => x.titles[i]);
    const xUnit = numeric ? x.unit : "";
    return {
      divisor, levels,
      x: { title: x.title, unit: xUnit, label: label(x.title, xUnit), kind: numeric ? x.kind : "category", at, text: numeric ? at.map(String) : text },
      y: { title: metric.title, unit, label: label(metric.title, unit) },
      sources: [["", netwarp.data.system]],
      lines: picked.groups.map((group) => {
        const there = levels.map((level, place) => [level, place]).filter(([level]) => group.at.has(level));
        const of = (pick) => there.map(([level, place]) => pick(group.at.get(level), place));
        return {
          key: group.key, label: group.label, source: "", x: of((_, place) => at[place]), y: of((values) => mean(values) / divisor),
          n: of((values) => values.length), cells: of((values) => values.map(([, id]) => id)),
          // several cells at one place: bars from the smallest to the largest
          low: of((values) => (values.length > 1 ? Math.min(...values.map(([v]) => v)) / divisor : null)),
          high: of((values) => (values.length > 1 ? Math.max(...values.map(([v]) => v)) / divisor : null)),
        };
      }),
    };
  }

  function boxTraces(picked, lookOf, colours) {
    const figure = asFigure(picked);
    const { plain, colour } = netwarp.charts;
    const layout = netwarp.charts.baseLayout(colours);
    const traces = picked.groups.filter((group) => !hidden.has("line " + group.key)).map((group) => ({
      type: "box", name: plain(group.label), boxpoints: "all", jitter: 0.3, pointpos: 0, marker: { color: colour(lookOf(group.key)), size: 4 },
      x: figure.levels.flatMap((level) => (group.at.get(level) || []).map(() => plain(picked.x.titles[level]))),
      y: figure.levels.flatMap((level) => (group.at.get(level) || []).map(([value]) => value / figure.divisor)),
    }));
    layout.boxmode = "group";
    Object.assign(layout.xaxis, { type: "category", title: { text: plain(label(picked.x.title, "")) },
      categoryorder: "array", categoryarray: figure.levels.map((level) => plain(picked.x.titles[level])) });
    Object.assign(layout.yaxis, { title: { text: plain(figure.y.label) }, exponentformat: "none" });
    return { traces, layout };
  }

  function cdfTraces(picked, lookOf, colours) {
    const figure = asFigure(picked);
    const { plain, colour } = netwarp.charts;
    const layout = netwarp.charts.baseLayout(colours);
    const traces = picked.groups.filter((group) => !hidden.has("line " + group.key)).map((group) => {
      const values = [...group.at.values()].flat().map(([value]) => value / figure.divisor).sort((a, b) => a - b);
      const look = lookOf(group.key);
      return { type: "scatter", mode: "lines", name: plain(group.label), x: values, y: values.map((_, i) => (i + 1) / values.length),
        line: { shape: "hv", width: 2, color: colour(look), dash: look.dash }, hovertemplate: "%{x:.4~g}: %{y:.0%}" };
    });
    Object.assign(layout.xaxis, { title: { text: plain(figure.y.label) }, exponentformat: "none" });
    Object.assign(layout.yaxis, { title: { text: "share of cells at or below" }, range: [0, 1.02], tickformat: ".0%" });
    return { traces, layout };
  }

  function heatTraces(picked, colours) {
    const figure = asFigure(picked);
    const { plain, baseLayout } = netwarp.charts;
    const layout = baseLayout(colours);
    const z = picked.groups.map((group) => figure.levels.map((level) => (group.at.has(level) ? mean(group.at.get(level)) / figure.divisor : null)));
    const traces = [{
      type: "heatmap", z, x: figure.levels.map((level) => plain(picked.x.titles[level])), y: picked.groups.map((group) => plain(group.label)),
      colorscale: "Cividis", texttemplate: "%{text}", text: z.map((row) => row.map((value) => (value === null ? "" : number(value, 3)))),
      hovertemplate: "%{y}<br>%{x}<br>%{text}<extra></extra>", xgap: 2, ygap: 2,
      colorbar: { title: { text: plain(figure.y.unit) }, thickness: 12, outlinewidth: 0, tickfont: { color: colours.soft } },
    }];
    Object.assign(layout.xaxis, { type: "category", title: { text: plain(picked.x.title) } });
    Object.assign(layout.yaxis, { type: "category", autorange: "reversed" });
    return { traces, layout };
  }

  function rows(picked) {
    const figure = asFigure(picked);
    return [[picked.by.map((i) => data.factors[i].title).join(", ") || "cells", picked.x.title, figure.y.label, "smallest", "largest", "n"],
      ...figure.lines.flatMap((line) => line.x.map((x, i) => [line.label, picked.x.titles[figure.levels[figure.x.at.indexOf(x)]], line.y[i], line.low[i] ?? line.y[i], line.high[i] ?? line.y[i], line.n[i]]))];
  }

  async function update() {
    build(read());
    const picked = groups(read());
    const lookOf = looksFor(picked.groups);
    const figure = asFigure(picked);
    const kind = read().kind;
    const draw = () => netwarp.charts.draw(chart, (colours) => {
      if (kind === "heat") return heatTraces(picked, colours);
      if (kind === "box") return boxTraces(picked, lookOf, colours);
      if (kind === "cdf") return cdfTraces(picked, lookOf, colours);
      return netwarp.charts.lines(asFigure(picked), lookOf, hidden, colours);
    });
    legend.hidden = kind === "heat" || picked.groups.length < 2;
    netwarp.legend.forFigure(legend, figure, lookOf, hidden, draw);
    const [heads, ...body] = rows(picked);
    document.getElementById("explore-table").replaceChildren(h("table", { class: "plain" },
      h("caption", { class: "unseen" }, "Numbers of the chosen plot"),
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i > 1 && "n" }, head)))),
      h("tbody", {}, body.map((row) => h("tr", {}, row.map((field, i) =>
        h(i ? "td" : "th", { scope: i ? null : "row", class: i > 1 && "n" }, typeof field === "number" ? number(field) : field)))))));
    document.getElementById("explore-csv").onclick = () => netwarp.download("netwarp-" + picked.metric.name + ".csv", netwarp.csv([heads, ...body]));
    chart.setAttribute("aria-label", `${figure.y.label} over ${picked.x.title}, ${picked.groups.length} lines; the numbers are in the table below`);
    if (!picked.groups.length) netwarp.say("No cell fits this choice");
    const first = !chart.dataset.drawn;
    await draw();
    if (first) netwarp.charts.opensCells(chart);
  }

  async function begin() {
    await netwarp.script("assets/explore-data.js");
    if (!data.factors.length || !data.metrics.length || !data.cells.length) {
      document.getElementById("explore").hidden = true;
      return;
    }
    // start with what a figure of the spec shows, so that the first picture is a sensible one
    const figure = Object.values(netwarp.data.figures)[0];
    const place = (name) => data.factors.findIndex((factor) => factor.name === name);
    const lines = figure ? [...new Set(figure.lines.flatMap((line) => line.key.split("|").map((pair) => pair.split("=")[0])))].map(place).filter((i) => i >= 0) : [];
    const x = figure ? data.factors.findIndex((factor) => factor.title === figure.x.title) : 0;
    const others = data.factors.map((_, i) => i).filter((i) => i !== Math.max(0, x));
    const [a, b] = lines.length ? lines : others;
    build({ kind: "line", metric: String(Math.max(0, data.metrics.findIndex((metric) => metric.name === "goodput_bit_s"))),
      x: String(Math.max(0, x)), a: a === undefined ? "" : String(a), b: b === undefined || !lines.length ? "" : String(b) });
    form.addEventListener("change", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    await update();
  }

  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      begin();
    }
  }, { rootMargin: "200px" }).observe(document.getElementById("explore"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (data && chart.dataset.drawn) update(); });
})();
