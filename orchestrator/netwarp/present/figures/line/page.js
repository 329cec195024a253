// Figures of kind line as data.py describes them: variants by look, other sources as open markers.
"use strict";

(function () {
  // Sources after the first are drawn as open markers: large, large with a dot, small. print.py does the same.
  const openness = ["", "-open", "-open-dot", "-open"];
  const sizes = [9, 14, 14, 6];

  // Lines over an axis, as data.py describes them ({x, y, lines, sources}); hidden: set of keys and sources.
  netwarp.kinds.line = function (figure, lookOf, hidden, colours, element) {
    const { plain, title, tickTexts, colour, baseLayout } = netwarp.charts;
    const [width, height] = [element.clientWidth - 70, element.clientHeight - 60];
    const sources = figure.sources.map(([name]) => name);
    const traces = [];
    for (const line of [...figure.lines].reverse()) {
      if (hidden.has("line " + line.key) || hidden.has("source " + line.source)) continue;
      const look = lookOf(line.key);
      const rank = sources.indexOf(line.source);
      const source = figure.sources[rank][1];
      const texts = line.x.map((x) => figure.x.text[figure.x.at.indexOf(x)]);
      traces.push({
        type: "scatter", mode: rank ? "markers" : "lines+markers", x: line.x, y: line.y, name: plain(line.label),
        line: { color: colour(look), width: 2, dash: look.dash },
        marker: {
          color: colour(look), symbol: look.marker + openness[Math.min(rank, 3)], size: sizes[Math.min(rank, 3)],
          line: { width: rank ? 1.5 : 0, color: colour(look) },
        },
        error_y: line.low.some((low) => low !== null)
          ? { type: "data", symmetric: false, array: line.high.map((high, i) => (high === null ? 0 : high - line.y[i])),
            arrayminus: line.low.map((low, i) => (low === null ? 0 : line.y[i] - low)), thickness: 1.2, width: 4, color: colour(look) }
          : undefined,
        customdata: line.x.map((x, i) => [line.cells[i], plain(texts[i]), netwarp.number(line.y[i]),
          line.low[i] === null ? "" : ` (${netwarp.number(line.low[i])} to ${netwarp.number(line.high[i])}, n = ${line.n[i]})`]),
        hovertemplate: `<b>${plain(line.label)}</b> · ${plain(source)}<br>${plain(figure.x.title)} %{customdata[1]} ${plain(figure.x.unit)}` +
          `<br>%{customdata[2]}%{customdata[3]} ${plain(figure.y.unit)}<extra></extra>`,
      });
    }
    const layout = baseLayout(colours);
    Object.assign(layout.xaxis, {
      title: title(figure.x.label, 10, width), type: figure.x.kind === "log" ? "log" : "linear",
      tickvals: figure.x.at, ticktext: tickTexts(figure.x, width), tickangle: 0, showgrid: false, showline: true,
    });
    if (figure.x.kind === "category") layout.xaxis.range = [-0.3, figure.x.at.length - 0.7];
    Object.assign(layout.yaxis, {
      title: title(figure.y.label, 8, height), exponentformat: "none",
      ...(figure.y.kind === "log" ? { type: "log", dtick: 1 }
        : { rangemode: figure.lines.every((line) => line.y.every((y) => y >= 0)) ? "tozero" : "normal" }),
    });
    layout.hovermode = "closest";
    layout.uirevision = figure.x.label + figure.y.label; // a zoom outlives a change of lines or theme, not of axes
    return { traces, layout };
  };
})();
