// Any metric over any factor: the reader chooses, the page draws. Its data is a file of its own, loaded when needed.
"use strict";

(function () {
  const { h, number } = netwarp;
  const form = document.getElementById("explore-form");
  const panels = document.getElementById("explore-panels");
  const legend = document.getElementById("explore-legend");
  const left = document.getElementById("explore-left");
  const hidden = new Set();
  const KINDS = [["line", "points and lines"], ["box", "box plot"], ["cdf", "distribution (CDF)"], ["heatmap", "heat map"]];
  const MOST_ROWS = 1000; // of the table; the file has all
  const SHARE = "share of values at or below";
  let data = null;
  let asked = null; // what the address says, until the data is there

  netwarp.exploreLoaded = (loaded) => { data = loaded; };

  const select = (name, label, options, chosen) =>
    h("label", {}, label, h("select", { name }, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
  const factorOf = (name) => data.factors.find((factor) => factor.name === name);
  const flowsOf = (name) => data.metrics.filter((metric) => metric.name === name).map((metric) => metric.flow);

  // Metrics by group, each once, whatever flows have it.
  function metricChoice(chosen) {
    const groups = new Map();
    for (const { name, title, group } of data.metrics) {
      if (!groups.has(group)) groups.set(group, new Map());
      groups.get(group).set(name, title);
    }
    return h("label", {}, "Metric", h("select", { name: "metric" }, [...groups].map(([label, metrics]) => h("optgroup", { label },
      [...metrics].map(([name, title]) => h("option", { value: name, selected: name === chosen }, title))))));
  }

  // A choice where several flows have the metric; of a metric of the whole cell there is none.
  function flowChoice(state) {
    const flows = flowsOf(state.metric);
    if (flows.length < 2) return "";
    return select("flow", "Flow", flows.map((flow) => [flow, flow || "cell"]), flows.includes(state.flow) ? state.flow : flows[0]);
  }

  // Every choice by name, so that an address outlives a run with more levels. The form remembers what still makes sense.
  function build(state) {
    const factors = data.factors.map((factor) => [factor.name, factor.title]);
    const none = [["", "–"]];
    const drawn = drawnBy(state);
    const but = (...names) => none.concat(factors.filter(([name]) => !names.includes(name)));
    const x = state.kind === "cdf" ? "" : state.x;
    const focused = document.activeElement && form.contains(document.activeElement) ? document.activeElement.name : null;
    const heat = state.kind === "heatmap";
    form.replaceChildren(...[
      select("kind", "As", KINDS, state.kind),
      metricChoice(state.metric), flowChoice(state),
      state.kind === "cdf" ? h("input", { type: "hidden", name: "x", value: state.x }) : select("x", "Over (x)", factors, state.x),
      select("a", heat ? "Against (y)" : "Colour by", but(x), state.a),
      heat ? "" : select("b", "and by", but(x, state.a), state.b || ""),
      data.factors.length > 2 ? select("panel", "Panels by", but(x, state.a, state.b), state.panel || "") : "",
      folded(data.factors.filter((factor) => !drawn.has(factor.name)), state, (factor) => {
        const levels = factor.levels.map((level, i) => [level, factor.titles[i]]);
        return select("is " + factor.name, factor.title, [["", "all"], ...levels], state["is " + factor.name]);
      }),
    ].flat());
    if (focused && form.elements[focused]) form.elements[focused].focus();
  }

  // Factors that the cells shown do not have stand behind one line.
  function folded(held, state, choice) {
    const without = held.filter((factor) => state["is " + factor.name] === "-");
    const rest = held.filter((factor) => !without.includes(factor)).map(choice);
    return without.length > 2 ? [...rest, h("details", { class: "explore-more" }, h("summary", {}, `${without.length} more factors, which these cells do not have`), h("div", { class: "controls" }, without.map(choice)))] : [...rest, ...without.map(choice)];
  }

  const drawnBy = (state) => new Set([state.kind === "cdf" ? "" : state.x, state.a, state.kind === "heatmap" ? "" : state.b, state.panel]);

  // A factor is drawn once: as x, as a colour or by panels.
  function apart(state) {
    const taken = new Set();
    const found = { ...state };
    for (const name of state.kind === "cdf" ? ["a", "b", "panel"] : ["x", "a", "b", "panel"]) {
      if (found[name] && (taken.has(found[name]) || !factorOf(found[name]))) found[name] = "";
      taken.add(found[name]);
    }
    return found;
  }

  // The column of the chosen metric and flow.
  function columnOf(state) {
    const columns = data.metrics.map((one, i) => i).filter((i) => data.metrics[i].name === state.metric);
    return columns.find((i) => data.metrics[i].flow === state.flow) ?? columns[0] ?? 0;
  }

  const read = () => Object.fromEntries(new FormData(form));

  // Factors that are not drawn are held at the levels of one cell that is there, as near as can be to what was chosen:
  // so the choices are always those of the points. kept: the choice that the reader made last.
  function settle(chosen, kept, preferred) {
    const state = apart(chosen);
    const drawn = drawnBy(state);
    const held = data.factors.map((factor, i) => ({ factor, i, name: "is " + factor.name })).filter(({ factor }) => !drawn.has(factor.name));
    const x = state.kind === "cdf" ? -1 : data.factors.indexOf(factorOf(state.x));
    const metric = columnOf(state);
    const levelOf = (cell, i) => data.factors[i].levels[cell.levels[i]];
    // of equal choices the one of which x has most levels
    const alike = (cell) => held.map(({ i }) => cell.levels[i]).join(" ");
    const along = new Map();
    if (x >= 0) for (const cell of data.cells) if (levelOf(cell, x) !== "-" && cell.values[metric] !== null) along.set(alike(cell), (along.get(alike(cell)) || new Set()).add(cell.levels[x]));
    const most = Math.max(1, ...[...along.values()].map((levels) => levels.size));
    const variety = (cell) => (x >= 0 ? (along.get(alike(cell)) || []).size / most || 0 : 0);
    const score = (cell) => held.reduce((sum, { i, name }) => sum + (state[name] === "" || state[name] === levelOf(cell, i) ? (name === kept ? 1000 : 2) : 0), 0) +
      (cell.values[metric] !== null ? 100 : 0) + 1.5 * variety(cell) + (cell.id === preferred ? 0.4 : 0);
    let best = null;
    let reached = -1;
    for (const cell of data.cells) {
      if (x >= 0 && levelOf(cell, x) === "-") continue;
      const found = score(cell);
      if (found > reached) [best, reached] = [cell, found];
    }
    if (!best) return state;
    return { ...state, ...Object.fromEntries(held.map(({ i, name }) => [name, state[name] === "" ? "" : levelOf(best, i)])) };
  }

  // The cells that fit, by panel, group and x: {x, by, metric, panels: [{label, groups: [{key, label, at: Map(level index -> values)}]}]}
  function pick(state) {
    const x = data.factors.indexOf(factorOf(state.x));
    const panel = data.factors.indexOf(factorOf(state.panel));
    const taken = [state.kind === "cdf" ? -1 : x, panel];
    const by = [state.a, state.kind === "heatmap" ? "" : state.b].map((name) => data.factors.indexOf(factorOf(name)))
      .filter((one, i, all) => one >= 0 && !taken.includes(one) && all.indexOf(one) === i);
    const metric = columnOf(state);
    const found = new Map();
    let [lacking, valueless] = [0, 0]; // cells that fit, and have no place: without the factor x, or without a value
    for (const cell of data.cells) {
      const value = cell.values[metric];
      const fits = data.factors.every((factor, i) => {
        const fixed = state["is " + factor.name];
        return !fixed || factor.levels[cell.levels[i]] === fixed;
      });
      if (!fits) continue;
      if (state.kind !== "cdf" && data.factors[x].levels[cell.levels[x]] === "-") {
        lacking += 1;
        continue;
      }
      if (value === null) valueless += 1;
      const where = panel < 0 ? 0 : cell.levels[panel];
      if (!found.has(where)) found.set(where, new Map());
      const groups = found.get(where);
      const order = by.map((i) => cell.levels[i]);
      const id = order.join(" ");
      if (!groups.has(id)) {
        const pairs = by.map((i) => [data.factors[i], cell.levels[i]]).filter(([factor, level]) => factor.levels[level] !== "-");
        groups.set(id, {
          order, key: pairs.map(([factor, level]) => `${factor.name}=${factor.levels[level]}`).join("|"),
          label: labelOf(by, cell), at: new Map(), of: new Map(), like: new Map(), alike: new Set(),
        });
      }
      const { at, of } = groups.get(id);
      const level = cell.levels[x];
      of.set(level, (of.get(level) || 0) + 1);
      if (value === null) continue;
      if (!at.has(level)) at.set(level, []);
      at.get(level).push([value, cell.id]);
      // cells that differ in what is not drawn are no repetitions: they are points of their own, and no line joins them
      const rest = cell.levels.filter((_, i) => i !== x && i !== panel && !by.includes(i)).join(" ");
      const group = groups.get(id);
      if (!group.like.has(level)) group.like.set(level, new Set());
      group.like.get(level).add(rest);
      group.alike.add(rest);
    }
    const inOrder = (one, other) => one.order.map((place, i) => place - other.order[i]).find((difference) => difference !== 0) || 0;
    return {
      x: data.factors[x], by, metric: data.metrics[metric], lacking, valueless,
      panels: [...found].sort(([one], [other]) => one - other).map(([where, groups]) => ({
        label: panel < 0 ? "" : `${data.factors[panel].title}: ${data.factors[panel].titles[where]}`,
        groups: [...groups.values()].filter((group) => group.at.size).sort(inOrder),
      })).filter((one) => one.groups.length),
    };
  }

  // The levels that colours tell apart; a cell that lacks a factor is "without" it.
  const labelOf = (by, cell) => by.map((i) => {
    const factor = data.factors[i];
    const level = cell.levels[i];
    return factor.levels[level] === "-" ? `without ${factor.title}` : factor.titles[level];
  }).join(", ") || "cells shown";

  // A line joins cells that differ in x alone.
  const unlike = (group) => group.alike.size > 1;

  // A variant has the look it has everywhere; combinations no figure draws get the free ones in order.
  function looksFor(groups) {
    const taken = new Set(groups.filter((group) => netwarp.data.looks[group.key]).map((group) => netwarp.data.looks[group.key].number));
    const free = netwarp.data.palette.filter((_, number) => !taken.has(number));
    const found = new Map();
    let next = 0;
    for (const { key } of groups) if (!found.has(key)) found.set(key, netwarp.data.looks[key] || free[next++ % free.length]);
    return (key) => found.get(key);
  }

  const mean = (values) => values.reduce((sum, [value]) => sum + value, 0) / values.length;
  const label = (title, unit) => (unit && !title.replaceAll(",", "").split(" ").includes(unit) ? `${title} (${unit})` : title);
  const far = (values) => (Math.min(...values) > 0 && Math.max(...values) >= 30 * Math.min(...values) ? "log" : "linear");

  // The same descriptions as the report's own figures have, so that the same scripts draw them: one a panel.
  function figures(picked, kind) {
    const { x, metric } = picked;
    const groups = picked.panels.flatMap((panel) => panel.groups);
    const all = groups.flatMap((group) => [...group.at.values()].flat().map(([value]) => value));
    const { divisor, unit } = netwarp.scale(all, metric.unit);
    const levels = x.levels.map((_, i) => i).filter((i) => groups.some((group) => group.at.has(i)));
    const axis = kind === "line" && numbers(x, levels).length > 1 ? scaleAxis(x, levels) : placeAxis(x, levels, { line: 0.3, box: 0.6 }[kind] || 0.5);
    const title = metric.flow && flowsOf(metric.name).length > 1 ? `${metric.title} of ${metric.flow}` : metric.title;
    const value = valueAxis(title, unit, all.map((one) => one / divisor), kind === "line" ? "linear" : far(all));
    const heads = { divisor, levels, kind: "chart", x: axis, y: value, value, boxes: [], bands: [], sources: [] };
    if (kind === "heatmap") return [{ ...heads, kind, ...heat(picked, heads) }];
    const describe = { line: lines, cdf: steps, box: boxes }[kind];
    return picked.panels.map((panel) => ({ ...heads, title: panel.label, ...describe(panel, heads) }));
  }

  const numbers = (x, levels) => (x.at ? levels.map((level) => x.at[level]).filter((value) => value !== null) : []);

  // Levels side by side. beside: room before the first place and behind the last.
  function placeAxis(x, levels, beside) {
    const text = levels.map((level) => x.titles[level]);
    return { title: x.title, unit: "", label: x.title, kind: "category", at: levels.map((_, place) => place), text, ticks: text, span: [-beside, levels.length - 1 + beside] };
  }

  // Levels at their numbers; levels that are words stand behind the largest, apart. words: for each level, whether it is one.
  function scaleAxis(x, levels) {
    const known = numbers(x, levels);
    const kind = far(known);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const behind = (share) => (kind === "log" ? high * (high / low) ** share : high + (high - low) * share);
    const words = levels.map((level) => x.at[level] === null);
    let next = 0;
    const at = levels.map((level, place) => (words[place] ? behind(0.2 * ++next) : x.at[level]));
    const text = levels.map((level, place) => (words[place] ? x.titles[level] : netwarp.given(at[place], 6)));
    return { title: x.title, unit: x.unit, label: label(x.title, x.unit), kind, at, text, ticks: text, span: null, words, apart: next ? behind(0.1) : null };
  }

  // As figures/description.py makes it; `span` is what a heat map's colours span.
  function valueAxis(title, unit, values, kind) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const at = kind === "log" ? netwarp.charts.decades(low, high) : [];
    const text = at.map((mark) => netwarp.given(mark));
    return { title, unit, label: label(title, unit), kind, at, text, ticks: text, span: null, ends: [low, high], from_zero: low >= 0 };
  }

  // Points; a line joins them where x is a number and they differ in nothing else.
  function lines(panel, { divisor, levels, x }) {
    const points = (group, form, there) => {
      const of = (take) => there.map(([level, place]) => take(group.at.get(level), place));
      const numbers = (values) => values.map(([value]) => value / divisor);
      return {
        key: group.key, label: group.label, source: 0, form, every: 1, note: "",
        x: of((_, place) => x.at[place]), y: of((values) => mean(values) / divisor),
        n: of((values) => values.length), cells: of((values) => values.map(([, id]) => id)),
        // several cells at one place: bars from the smallest to the largest
        low: of((values) => (values.length > 1 ? Math.min(...numbers(values)) : null)),
        high: of((values) => (values.length > 1 ? Math.max(...numbers(values)) : null)),
      };
    };
    return {
      sources: [netwarp.data.system],
      series: panel.groups.flatMap((group) => {
        const there = levels.map((level, place) => [level, place]).filter(([level]) => group.at.has(level));
        if (unlike(group)) {
          const every = there.flatMap(([level, place]) => group.at.get(level).map(([value, id]) => ({ at: x.at[place], value: value / divisor, id })));
          return { key: group.key, label: group.label, source: 0, form: "points", every: 1, note: "", low: [], high: [], n: [],
            x: every.map((one) => one.at), y: every.map((one) => one.value), cells: every.map((one) => [one.id]) };
        }
        const apart = ([, place]) => !x.words || x.words[place];
        const parts = [["lines", there.filter((one) => !apart(one)).sort(([, one], [, other]) => x.at[one] - x.at[other])], ["marks", there.filter(apart)]];
        return parts.filter(([, part]) => part.length).map(([form, part]) => points(group, form, part));
      }),
    };
  }

  // Linear interpolation between values, as NumPy and figures/distribution.py do it.
  function quartiles(sorted) {
    return [0, 0.25, 0.5, 0.75, 1].map((share) => {
      const place = share * (sorted.length - 1);
      const below = Math.floor(place);
      return sorted[below] + (place % 1 ? (sorted[below + 1] - sorted[below]) * (place % 1) : 0);
    });
  }

  // One variant's values, ascending, with their cells, and the words for their number.
  function sortedValues(group, entries, of, divisor) {
    const sorted = [...entries].sort((one, other) => one[0] - other[0]);
    const n = sorted.length;
    return { values: sorted.map(([value]) => value / divisor), cells: sorted.map(([, id]) => [id]),
      series: { key: group.key, label: group.label, source: 0, every: 1, low: [], high: [], n: [], note: n === of ? `n = ${n}` : `${n} of ${of} had a value` } };
  }

  function steps(panel, { divisor, value }) {
    return {
      x: { ...value, from_zero: false }, y: { title: SHARE, unit: "%", label: SHARE + " (%)", kind: "linear", at: [], text: [], ticks: [], span: [0, 102] },
      series: panel.groups.map((group) => {
        const all = [...group.of.values()].reduce((sum, count) => sum + count, 0);
        const { values, cells, series } = sortedValues(group, [...group.at.values()].flat(), all, divisor);
        return { ...series, form: "steps", every: Math.max(1, Math.floor(values.length / 12)), x: [values[0], ...values],
          y: [0, ...values.map((_, i) => (100 * (i + 1)) / values.length)], cells: [cells[0], ...cells] };
      }),
    };
  }

  function boxes(panel, { divisor, levels }) {
    const width = 0.8 / panel.groups.length;
    const made = { series: [], boxes: [] };
    panel.groups.forEach((group, number) => levels.forEach((level, place) => {
      if (!group.at.has(level)) return;
      const { values, cells, series } = sortedValues(group, group.at.get(level), group.of.get(level), divisor);
      const at = place + (number - (panel.groups.length - 1) / 2) * width;
      made.boxes.push({ key: group.key, label: group.label, at, width: width * 0.8, quartiles: quartiles(values) });
      // points side by side rather than one on the other
      made.series.push({ ...series, form: "points", x: values.map((_, i) => at + ((((i * 7) % 11) - 5) / 11) * width * 0.5), y: values, cells });
    }));
    return made;
  }

  function heat(picked, { divisor, levels, value }) {
    const rows = new Map(picked.panels.flatMap((panel) => panel.groups).sort((one, other) => (one.order[0] || 0) - (other.order[0] || 0)).map((group) => [group.label, group.key]));
    const factor = picked.by.length ? data.factors[picked.by[0]] : null;
    const spot = (group, level) => {
      if (!group || !group.of.has(level)) return null;
      const values = group.at.get(level);
      if (values && group.like.get(level).size > 1) {
        return { value: null, text: netwarp.counted(values.length, "cell"), why: "cells that differ in factors not drawn: choose a level of each", n: values.length, cells: values.map(([, id]) => id) };
      }
      return values ? { value: mean(values) / divisor, text: number(mean(values) / divisor, 3), why: "", n: values.length, cells: values.map(([, id]) => id) }
        : { value: null, text: "\u2013", why: "nothing to measure", n: 0, cells: [] };
    };
    const spots = (panel) => [...rows.keys()].map((row) => levels.map((level) => spot(panel.groups.find((group) => group.label === row), level)));
    const shown = picked.panels.map((panel) => ({ label: panel.label, spots: spots(panel) }));
    const means = shown.flatMap((panel) => panel.spots.flat()).filter((one) => one && one.value !== null).map((one) => one.value);
    const marks = valueAxis(value.title, value.unit, means.length ? means : [0, 1], means.length ? value.kind : "linear");
    return {
      value: { ...marks, span: marks.ends },
      y: { title: factor ? factor.title : "", unit: "", label: factor ? factor.title : "", kind: "category", at: [...rows].map((_, i) => i), text: [...rows.keys()] },
      panels: shown,
    };
  }

  // Everything drawn, as rows: for the table and the file.
  function rows(picked, { divisor, levels, value, x }, kind) {
    const several = picked.panels.length > 1;
    const heads = [...(several ? ["panel"] : []), picked.by.map((i) => data.factors[i].title).join(", ") || "cells", ...(kind === "cdf" ? [] : [picked.x.title]),
      value.label, "smallest", "largest", "n"];
    const row = (panel, group, place, values) => {
      const numbers = values.map(([one]) => one / divisor);
      return [...(several ? [panel.label] : []), group.label, ...place, mean(values) / divisor, Math.min(...numbers), Math.max(...numbers), values.length];
    };
    return [heads, ...picked.panels.flatMap((panel) => panel.groups.flatMap((group) => (kind === "cdf"
      ? [row(panel, group, [], [...group.at.values()].flat())]
      : levels.filter((level) => group.at.has(level)).flatMap((level) => {
        const values = group.at.get(level);
        const each = kind === "line" ? unlike(group) : kind === "heatmap" && group.like.get(level).size > 1;
        return (each ? values.map((one) => [one]) : [values]).map((one) => row(panel, group, [picked.x.titles[level]], one));
      }))))];
  }

  // A chart a panel, all on the same axes: what one is zoomed to, all are.
  async function drawPanels(list, lookOf, kind) {
    while (panels.children.length > list.length) {
      netwarp.charts.forget(panels.lastElementChild.querySelector(".chart"));
      panels.lastElementChild.remove();
    }
    while (panels.children.length < list.length) panels.append(h("div", {}, h("h3", {}), h("div", { class: "chart", role: "img" })));
    panels.classList.toggle("explore-several", list.length > 1);
    const top = Math.max(...list.flatMap((figure) => (figure.series || []).flatMap((one) => [...one.y, ...one.high])));
    await Promise.all(list.map(async (figure, i) => {
      const [title, chart] = panels.children[i].children;
      title.textContent = figure.title || "";
      title.hidden = !figure.title;
      if (figure.kind !== "heatmap") chart.style.height = "";
      chart.setAttribute("aria-label", `${figure.title || ""} ${figure.value.label} over ${figure.x.title}; the numbers are in the table below`);
      const first = !chart.dataset.drawn;
      await netwarp.charts.draw(chart, (colours) => {
        const made = netwarp.kinds[figure.kind](figure, lookOf, hidden, colours, chart);
        if (list.length > 1 && kind === "line" && made.layout.yaxis.rangemode === "tozero") {
          Object.assign(made.layout.yaxis, { range: [0, top * 1.05], autorange: false });
        }
        return made;
      });
      if (!first) return;
      netwarp.charts.opensCells(chart);
      chart.on("plotly_relayout", (change) => follow(chart, change));
    }));
  }

  let following = false;
  function follow(chart, change) {
    const axes = Object.fromEntries(Object.entries(change).filter(([name]) => /^[xy]axis\.(range|autorange)/.test(name)));
    if (following || !Object.keys(axes).length) return;
    following = true;
    const others = [...panels.querySelectorAll(".chart")].filter((one) => one !== chart);
    Promise.all(others.map((one) => window.Plotly.relayout(one, axes))).finally(() => { following = false; });
  }

  // How many cells fit the choice and are not drawn, and why; and an x that is one level.
  function leftOut({ x, metric, lacking, valueless, panels: shown }, kind) {
    const counted = (n) => netwarp.counted(n, "cell is", "cells are");
    const words = [];
    if (lacking) words.push(`${counted(lacking)} left out: without ${x.title}.`);
    if (valueless) words.push(`${counted(valueless)} left out: without a value of ${metric.title}.`);
    const levels = new Set(shown.flatMap((panel) => panel.groups.flatMap((group) => [...group.at.keys()])));
    if (kind !== "cdf" && levels.size === 1) words.push(`All cells shown have one level of ${x.title}: ${x.titles[[...levels][0]]}.`);
    left.textContent = words.join(" ");
    left.hidden = !words.length;
  }

  let updates = 0;
  async function update(kept) {
    const mine = ++updates;
    panels.setAttribute("aria-busy", "true");
    build(settle(read(), kept));
    const state = read();
    const picked = pick(state);
    const groups = picked.panels.flatMap((panel) => panel.groups);
    leftOut(picked, state.kind);
    const lookOf = looksFor(groups);
    const list = figures(picked, state.kind);
    const draw = () => drawPanels(list, lookOf, state.kind);
    legend.hidden = state.kind === "heatmap" || new Set(groups.map((group) => group.key)).size < 2;
    netwarp.legend.forFigure(legend, { series: groups }, lookOf, hidden, draw);
    const [heads, ...body] = list.length ? rows(picked, list[0], state.kind) : [["no cell fits"]];
    const first = heads.indexOf(list.length ? list[0].value.label : "");
    document.getElementById("explore-table").replaceChildren(h("table", { class: "plain" },
      h("caption", { class: "unseen" }, "Numbers of the chosen plot"),
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i >= first && "n" }, head)))),
      h("tbody", {}, body.slice(0, MOST_ROWS).map((row) => h("tr", {}, row.map((field, i) =>
        h(i ? "td" : "th", { scope: i ? null : "row", class: i >= first && "n" }, typeof field === "number" ? number(field) : field)))))),
      body.length > MOST_ROWS ? h("p", { class: "note", id: "explore-more" }, `${number(body.length - MOST_ROWS)} more rows are in the file.`) : "");
    document.getElementById("explore-csv").onclick = () => netwarp.download("netwarp-" + [picked.metric.name, picked.metric.flow].filter(Boolean).join("-") + ".csv", netwarp.csv([heads, ...body]));
    document.getElementById("explore-none").hidden = groups.length > 0;
    panels.hidden = !groups.length;
    if (!groups.length) netwarp.say("No cell fits this choice");
    await draw();
    if (mine === updates) panels.setAttribute("aria-busy", "false");
  }

  // The first picture: the axes of the spec's first chart; else a factor of numbers as x, and the one beside it that
  // varies most as colours.
  function first() {
    const figure = Object.values(netwarp.data.figures).find((one) => one.kind === "chart" && one.sources.length);
    const named = (name) => data.factors.some((factor) => factor.name === name);
    const lines = figure ? [...new Set(figure.series.flatMap((line) => line.key.split("|").map((pair) => pair.split("=")[0])))].filter(named) : [];
    const has = (factor) => data.cells.filter((cell) => factor.levels[cell.levels[data.factors.indexOf(factor)]] !== "-").length;
    const most = (list, weight) => list.reduce((best, one) => (best === null || weight(one) > weight(best) ? one : best), null);
    const drawn = figure && data.factors.find((factor) => factor.title === figure.x.title);
    const scales = data.factors.filter((factor) => factor.at);
    const x = drawn || most(scales.length ? scales : data.factors, has);
    const others = data.factors.filter((factor) => factor !== x);
    const colours = lines.filter((name) => name !== x.name);
    const metric = (figure && data.metrics.find((one) => one.title === figure.y.title)) || data.metrics.find((one) => one.name === "goodput_bit_s") || data.metrics[0];
    // the flow that most cells have
    const flows = data.metrics.map((one, i) => i).filter((i) => data.metrics[i].name === metric.name);
    const flow = data.metrics[most(flows, (i) => data.cells.filter((cell) => cell.values[i] !== null).length)].flow;
    const a = colours.length ? colours[0] : others.length ? most(others, has).name : "";
    return { kind: "line", metric: metric.name, flow, x: x.name, a, b: colours[1] || "" };
  }

  // A cell of the spec's first chart.
  function preferred() {
    const figure = Object.values(netwarp.data.figures).find((one) => one.kind === "chart" && one.sources.length);
    return figure && figure.series.length ? (figure.series[0].cells[0] || [])[0] : null;
  }

  async function begin() {
    await netwarp.script("assets/explore-data.js");
    if (!data.factors.length || !data.metrics.length || !data.cells.length) {
      document.getElementById("explore").hidden = true;
      return;
    }
    build(settle({ ...first(), ...asked }, null, preferred()));
    form.addEventListener("change", (event) => {
      const drawn = update(event.target.name);
      netwarp.state.write("explore", read());
      return drawn;
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    await update();
  }

  netwarp.state.on("explore", (values) => {
    asked = values;
    if (data && data.factors.length) {
      build(settle({ ...first(), ...values }, null, preferred()));
      update();
    }
  });
  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      begin();
    }
  }, { rootMargin: "200px" }).observe(document.getElementById("explore"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (data && panels.children.length) update(); });
})();
