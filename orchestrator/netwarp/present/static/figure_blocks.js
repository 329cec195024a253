// The spec's figures, drawn when they come near the window, and legends that are buttons.
"use strict";

// The function that draws each kind of figure (figures.js): (figure, lookOf, hidden, colours, element) -> {traces, layout}.
netwarp.kinds = {};

netwarp.legend = (function () {
  const { h } = netwarp;
  // entries: [{id, text, look}]; changed() after a press.
  function buttons(title, entries, hidden, changed) {
    return h("div", { class: "legend-row", role: "group", "aria-label": title }, entries.map((entry) =>
      h("button", {
        type: "button", class: "legend-entry", "aria-pressed": hidden.has(entry.id) ? "false" : "true",
        onclick: (event) => {
          if (!hidden.delete(entry.id)) hidden.add(entry.id);
          event.currentTarget.setAttribute("aria-pressed", hidden.has(entry.id) ? "false" : "true");
          changed();
        },
      }, netwarp.swatch(entry.look), entry.text)));
  }

  const grey = { light: "#666", dark: "#aaa", marker: "circle", dash: "solid" };
  const open = [undefined, "open", "dot", "small"];

  // A heat map has no series, and no legend; a grid has one if its panels' labels do not say it all.
  function forFigure(place, figure, lookOf, hidden, changed) {
    const series = figure.series || (figure.legend ? figure.panels.flatMap((panel) => panel.series) : []);
    const lines = new Map(series.map((line) => [line.key, line.label]));
    place.replaceChildren(lines.size ? buttons("Lines", [...lines].map(([key, text]) => (
      { id: "line " + key, text, look: lookOf(key) })), hidden, changed) : "");
    if (figure.sources && figure.sources.length > 1) {
      place.append(buttons("Sources", figure.sources.map((title, rank) => (
        { id: "source " + rank, text: title, look: { ...grey, open: open[Math.min(rank, 3)] } })), hidden, changed));
    }
  }
  return { forFigure };
})();

(function () {
  const fallback = { light: "#666", dark: "#aaa", marker: "circle", dash: "solid" };
  netwarp.lookOf = (key) => netwarp.data.looks[key] || fallback;

  async function mount(block) {
    const figure = netwarp.data.figures[block.dataset.figure];
    const chart = block.querySelector(".chart");
    const hidden = new Set();
    const make = (colours) => netwarp.kinds[figure.kind](figure, netwarp.lookOf, hidden, colours, chart);
    const legend = () =>
      netwarp.legend.forFigure(block.querySelector(".legend"), figure, netwarp.lookOf, hidden, () =>
        netwarp.charts.draw(chart, make));
    legend();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", legend);
    await netwarp.charts.draw(chart, make);
    netwarp.charts.opensCells(chart);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        mount(entry.target);
      }
    }
  }, { rootMargin: "300px" });
  // the first paint belongs to the text
  const begin = () => document.querySelectorAll("figure[data-figure]").forEach((block) => near.observe(block));
  if ("requestIdleCallback" in window) requestIdleCallback(begin, { timeout: 500 });
  else setTimeout(begin, 50);
})();
