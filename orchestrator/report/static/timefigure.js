// Figures over time as timelines.py describes them: a curve a cell, path and series, grey where the link was down.
"use strict";

netwarp.kinds.time = function (figure, lookOf, hidden, colours) {
  const { plain, colour, baseLayout } = netwarp.charts;
  const traces = figure.lines.filter((line) => !hidden.has("line " + line.key)).map((line) => {
    const look = lookOf(line.key);
    const every = Math.max(1, Math.floor(line.x.length / 10)); // a line is known by its markers, too
    return {
      type: "scatter", mode: "lines+markers", name: plain(line.label), x: line.x, y: line.y,
      line: { shape: line.step ? "hv" : "linear", width: 1.5, color: colour(look), dash: look.dash },
      marker: { symbol: look.marker, color: colour(look), size: line.x.map((_, i) => (i % every ? 0 : 7)) },
      customdata: line.x.map(() => [[line.cell]]),
      hovertemplate: `<b>${plain(line.label)}</b><br>%{x:.3f} s: %{y:.4~g} ${plain(figure.y.unit)}<extra></extra>`,
    };
  });
  const layout = baseLayout(colours);
  Object.assign(layout.xaxis, { title: { text: plain(figure.x.label), standoff: 8 }, showline: true, showgrid: false });
  Object.assign(layout.yaxis, { title: { text: plain(figure.y.label), standoff: 8 }, rangemode: "tozero", exponentformat: "none" });
  layout.shapes = figure.faults.map(([from, to]) => (
    { type: "rect", x0: from, x1: to, yref: "paper", y0: 0, y1: 1, fillcolor: colours.fault, line: { width: 0 }, layer: "below" }));
  Object.assign(layout, { hovermode: "closest", uirevision: figure.name });
  return { traces, layout };
};
