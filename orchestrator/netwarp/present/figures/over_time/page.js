// Figures over time as data.py describes them: a curve a cell, path and series, grey where the link was down.
"use strict";

netwarp.kinds.time = function (figure, lookOf, hidden, colours, element) {
  const { plain, title, colour, baseLayout } = netwarp.charts;
  const traces = figure.lines.filter((line) => !hidden.has("line " + line.key)).map((line) => {
    const look = lookOf(line.key);
    return {
      type: "scatter", mode: "lines+markers", name: plain(line.label), x: line.x, y: line.y,
      line: { shape: line.step ? "hv" : "linear", width: 1.5, color: colour(look), dash: look.dash },
      marker: { symbol: look.marker, color: colour(look), size: 7, maxdisplayed: 12 }, // a line is known by its markers, too
      customdata: line.x.map((t, i) => [[line.cell], netwarp.fixed(t, 3), netwarp.number(line.y[i])]),
      hovertemplate: `<b>${plain(line.label)}</b><br>%{customdata[1]} s: %{customdata[2]} ${plain(figure.y.unit)}<extra></extra>`,
    };
  });
  const layout = baseLayout(colours);
  Object.assign(layout.xaxis, { title: title(figure.x.label, 8, element.clientWidth - 70), showline: true, showgrid: false });
  Object.assign(layout.yaxis, { title: title(figure.y.label, 8, element.clientHeight - 60), rangemode: "tozero", exponentformat: "none" });
  layout.shapes = figure.faults.map(([from, to]) => (
    { type: "rect", x0: from, x1: to, yref: "paper", y0: 0, y1: 1, fillcolor: colours.fault, line: { width: 0 }, layer: "below" }));
  Object.assign(layout, { hovermode: "closest", uirevision: figure.name });
  return { traces, layout };
};
