// Draws figures as they are described by figures/description.py (and by explore.js in the same words).
"use strict";

// Series and boxes over one pair of axes.
(function () {
  // Sources after the first are drawn as open markers: large, large with a dot, small. figures/print.py does the same.
  const OPEN = ["", "-open", "-open-dot", "-open"];
  const SIZES = [9, 14, 14, 6];
  const shape = (look, series) => {
    const { colour } = netwarp.charts;
    const rank = Math.min(series.source, 3);
    if (series.form === "points") return { symbol: look.marker, color: colour(look), size: 6, opacity: 0.65 };
    return { symbol: look.marker + OPEN[rank], color: colour(look), opacity: 1, line: { width: rank ? 1.5 : 0, color: colour(look) },
      // a curve of many points is known by some markers, too
      size: series.every > 1 || series.form === "steps" ? series.x.map((_, i) => (i % series.every ? 0 : 7)) : SIZES[rank] };
  };
  const text = (axis, value) => {
    const place = axis.at.indexOf(value);
    return `${netwarp.charts.plain(place < 0 ? netwarp.number(value, 6) : axis.text[place])} ${axis.words && axis.words[place] ? "" : netwarp.charts.plain(axis.unit)}`;
  };

  function axisOf(axis, room, standoff, texts) {
    return {
      title: netwarp.charts.title(axis.label, standoff, room), type: axis.kind === "log" ? "log" : "linear", exponentformat: "none",
      ...(axis.at.length && { tickvals: axis.at, ticktext: texts(), tickangle: axis.kind === "category" && netwarp.charts.crowded(axis, room) ? -90 : 0 }),
      ...(axis.span ? { range: axis.span } : { rangemode: axis.from_zero ? "tozero" : "normal" }),
    };
  }

  // The trace of one series. figure: with the axes that it is over.
  function traceOf(figure, one, look) {
    const { plain, colour } = netwarp.charts;
    const sources = figure.sources || [];
    const name = `<b>${plain(one.label)}</b>` + (one.note ? ` (${plain(one.note)})` : "") +
      (sources.length ? ` · ${plain(sources[one.source])}` : "");
    const [low, high] = [one.low, one.high];
    const known = (i) => low.length && low[i] !== null;
    return {
      type: "scatter", mode: one.source || one.form === "points" || one.form === "marks" ? "markers" : one.thin ? "lines" : "lines+markers", name: plain(one.label), x: one.x, y: one.y,
      line: { color: colour(look), width: one.thin ? 1 : 2, dash: one.thin ? "solid" : look.dash, shape: one.form === "steps" ? "hv" : "linear" },
      ...(one.thin ? { opacity: 0.55 } : { marker: shape(look, one) }),
      error_y: low.some((end) => end !== null)
        ? { type: "data", symmetric: false, array: one.y.map((y, i) => (known(i) ? high[i] - y : 0)), arrayminus: one.y.map((y, i) => (known(i) ? y - low[i] : 0)),
          thickness: 1.2, width: 4, color: colour(look) }
        : undefined,
      customdata: one.x.map((x, i) => [one.cells.length === 1 ? one.cells[0] : one.cells[i],
        one.form === "points" ? "" : `<br>${plain(figure.x.title)} ${text(figure.x, x)}`, netwarp.number(one.y[i]),
        known(i) ? ` (${netwarp.number(low[i])} to ${netwarp.number(high[i])}, n = ${one.n[i]})` : ""]),
      hovertemplate: `${name}%{customdata[1]}<br>%{customdata[2]}%{customdata[3]} ${plain(figure.y.unit)}<extra></extra>`,
    };
  }

  // hidden: set of "line KEY" and "source RANK".
  netwarp.kinds.chart = function (figure, lookOf, hidden, colours, element) {
    const { plain, tickTexts, colour, baseLayout } = netwarp.charts;
    const [width, height] = [element.clientWidth - 70, element.clientHeight - 60];
    const seen = (one) => !hidden.has("line " + one.key) && !hidden.has("source " + one.source);
    const boxes = figure.boxes.filter(seen).map((box) => ({
      type: "box", name: plain(box.label), x: [box.at], lowerfence: [box.quartiles[0]], q1: [box.quartiles[1]], median: [box.quartiles[2]],
      q3: [box.quartiles[3]], upperfence: [box.quartiles[4]], width: box.width, line: { color: colour(lookOf(box.key)), width: 1.5 },
      fillcolor: "rgba(0,0,0,0)", hoverinfo: "y", boxpoints: false,
    }));
    const series = [...figure.series].reverse().filter(seen).map((one) => traceOf(figure, one, lookOf(one.key)));
    const layout = baseLayout(colours);
    Object.assign(layout.xaxis, axisOf(figure.x, width, 10, () => tickTexts(figure.x, width)), { showgrid: false, showline: true });
    Object.assign(layout.yaxis, axisOf(figure.y, height, 8, () => figure.y.ticks.map(plain)));
    layout.shapes = figure.bands.map(([from, to]) => (
      { type: "rect", x0: from, x1: to, yref: "paper", y0: 0, y1: 1, fillcolor: colours.fault, line: { width: 0 }, layer: "below" }));
    // a level that is a word stands behind this line, not on the scale
    if (figure.x.apart) layout.shapes.push({ type: "line", x0: figure.x.apart, x1: figure.x.apart, yref: "paper", y0: 0, y1: 1, line: { color: colours.soft, width: 1, dash: "dot" } });
    layout.hovermode = "closest";
    layout.uirevision = figure.x.label + figure.y.label; // a zoom outlives a change of lines or theme, not of axes
    return { traces: [...boxes, ...series], layout };
  };

  // Small charts side by side over the same axes: a zoom of one zooms all.
  netwarp.kinds.grid = function (figure, lookOf, hidden, colours, element) {
    const { plain, baseLayout, wrap } = netwarp.charts;
    const LINE = 17, HEAD = 26, INNER = 150, GAP = 14, FOOT = 58, LEFT = 8;
    const width = element.clientWidth || 800;
    const panels = figure.panels;
    const across = Math.max(1, Math.min(panels.length, 3, Math.floor(width / 260)));
    const down = Math.ceil(panels.length / across);
    const lines = wrap(figure.y.label, width);
    const TOP = LINE * lines.length + 6;
    const height = TOP + down * (HEAD + INNER) + (down - 1) * GAP + FOOT;
    element.style.height = height + "px";
    const plot = height - FOOT;
    const layout = baseLayout(colours);
    const axis = layout.axisTemplate;
    delete layout.xaxis;
    delete layout.yaxis;
    const traces = [];
    const shapes = [];
    const annotations = [{ text: lines.map(plain).join("<br>"), xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "top", showarrow: false,
      align: "left", font: { size: 13, color: colours.text } }];
    const values = figure.panels.flatMap((panel) => panel.series.flatMap((one) => one.y));
    const times = figure.panels.flatMap((panel) => panel.series.flatMap((one) => [one.x[0], one.x[one.x.length - 1]]));
    const [least, most] = values.reduce(([low, high], value) => [value > 0 || figure.y.kind !== "log" ? Math.min(low, value) : low, Math.max(high, value)],
      [Infinity, -Infinity]);
    const range = figure.y.kind === "log" ? [Math.log10(least) - 0.05, Math.log10(most) + 0.05]
      : [figure.y.from_zero ? 0 : least - 0.05 * (most - least || 1), most + 0.05 * (most - (figure.y.from_zero ? 0 : least) || 1)];
    panels.forEach((panel, number) => {
      const id = number ? number + 1 : "";
      const [column, row] = [number % across, Math.floor(number / across)];
      const space = across > 1 ? 0.03 : 0;
      const each = (1 - space * (across - 1)) / across;
      const top = TOP + row * (HEAD + INNER + GAP) + HEAD;
      const domain = { x: [column * (each + space), column * (each + space) + each], y: [Math.max(0, 1 - (top + INNER) / plot), 1 - top / plot] };
      const bottom = number + across >= panels.length;
      layout["xaxis" + id] = { ...axis, ...axisOf(figure.x, each * width, 10, () => figure.x.ticks), domain: domain.x, anchor: "y" + id, matches: number ? "x" : undefined,
        range: [Math.min(...times), Math.max(...times)], showgrid: false, showline: true, showticklabels: bottom, title: bottom && column === 0 ? { text: plain(figure.x.label), standoff: 8, font: { size: 13 } } : undefined };
      layout["yaxis" + id] = { ...axis, ...axisOf(figure.y, INNER, 8, () => figure.y.ticks.map(plain)), domain: domain.y, anchor: "x" + id, matches: number ? "y" : undefined,
        range, showticklabels: !column, title: undefined, nticks: 5 };
      annotations.push({ text: `<b>${plain(panel.label)}</b>`, xref: "paper", yref: "paper", x: domain.x[0], y: domain.y[1], xanchor: "left", yanchor: "bottom", yshift: 4,
        showarrow: false, font: { size: 12.5, color: colours.text } });
      for (const [from, to] of panel.bands) {
        shapes.push({ type: "rect", x0: from, x1: to, xref: "x" + id, yref: "y" + id + " domain", y0: 0, y1: 1, fillcolor: colours.fault, line: { width: 0 }, layer: "below" });
      }
      for (const one of [...panel.series].reverse()) {
        if (hidden.has("line " + one.key)) continue;
        const trace = traceOf(figure, one, lookOf(one.key));
        traces.push({ ...trace, hovertemplate: `${plain(panel.label)}<br>${trace.hovertemplate}`, xaxis: "x" + id, yaxis: "y" + id });
      }
    });
    Object.assign(layout, { annotations, shapes, height, hovermode: "closest", margin: { l: LEFT, r: 12, t: 0, b: FOOT } });
    layout.uirevision = figure.x.label + figure.y.label;
    return { traces, layout };
  };
})();

// Heat maps: panels of the same axes under one colour bar, numbers in their fields.
(function () {
  const LINE = 17, LETTER = 7;

  // Cividis at ten places (Nunez, Anderton, Renslow 2018): read alike with and without colour vision.
  const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
  const SCALE = CIVIDIS.map((colour, i) => [i / (CIVIDIS.length - 1), colour]);

  function luminance(share) {
    const at = Math.min(0.999999, Math.max(0, share)) * (CIVIDIS.length - 1);
    const channel = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
    const [one, next] = [CIVIDIS[Math.floor(at)], CIVIDIS[Math.floor(at) + 1]];
    const linear = [0, 1, 2].map((i) => channel(one, i) + (channel(next, i) - channel(one, i)) * (at % 1))
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }

  function draw(figure, lookOf, hidden, colours, element) {
    const { plain, wrap, title, baseLayout } = netwarp.charts;
    const layout = baseLayout(colours);
    const axis = layout.axisTemplate;
    delete layout.xaxis;
    delete layout.yaxis;
    const width = element.clientWidth || 800;
    const panels = figure.panels;
    const across = Math.max(1, Math.min(panels.length, Math.floor(width / Math.max(260, 44 * figure.x.text.length + 70))));
    const down = Math.ceil(panels.length / across);
    const bar = width < 600 ? 0 : 60; // on a phone the numbers in the fields must do
    // what is written outside the fields gets its room first
    const rows = figure.y.text.map((text) => wrap(text, Math.min(220, width * 0.3)));
    const inner = Math.max(34, LINE * Math.max(...rows.map((lines) => lines.length))) * rows.length;
    const beside = Math.max(...rows.flat().map((line) => line.length)) * LETTER + 16;
    const field = (width - beside - bar - 16) / across / Math.max(1, figure.x.text.length);
    const columns = figure.x.text.map((text) => wrap(text, field - 4));
    const below = Math.max(...columns.map((lines) => lines.length)) * LINE;
    const room = field * figure.x.text.length;
    const rowLines = figure.y.label ? wrap("\u2193 " + figure.y.label, room) : [];
    const valueLines = wrap(figure.value.label, room * across + bar);
    const more = LINE * (wrap(figure.x.label, room).length - 1); // lines of its title after the first
    const HEAD = (panels.some((panel) => panel.label) ? 24 : 8) + LINE * rowLines.length;
    const TOP = LINE * valueLines.length + 6, FOOT = below + 40 + more, GAP = below + 28;
    const height = TOP + down * (HEAD + inner) + (down - 1) * GAP + FOOT;
    element.style.height = height + "px";

    const log = figure.value.kind === "log";
    const [low, high] = figure.value.span;
    const height01 = (value) => (log ? Math.log10(value) : value);
    const span = height01(high) - height01(low) || 1;
    const traces = [];
    const annotations = [];
    const shapes = [];
    const above = [[`<b>${valueLines.map(plain).join("<br>")}</b>`, { x: [0], y: [0, 1] }, 0]]; // lines over fields: [text, domain, from the fields up]
    const plot = height - FOOT;
    panels.forEach((panel, number) => {
      const id = number ? number + 1 : "";
      const [column, row] = [number % across, Math.floor(number / across)];
      const top = TOP + row * (HEAD + inner + GAP) + HEAD;
      const space = across > 1 ? 0.025 : 0;
      const each = (1 - space * (across - 1)) / across;
      const domain = { x: [column * (each + space), column * (each + space) + each], y: [Math.max(0, 1 - (top + inner) / plot), 1 - top / plot] };
      const bottom = row === down - 1 || number + across >= panels.length;
      const common = { ...axis, ticks: "", showgrid: false, zeroline: false, fixedrange: true };
      layout["xaxis" + id] = { ...common, domain: domain.x, anchor: "y" + id, tickvals: figure.x.at, tickangle: 0,
        ticktext: columns.map((lines) => lines.map(plain).join("<br>")), range: [-0.5, figure.x.at.length - 0.5], title: bottom ? title(figure.x.label, 10 + more, room) : undefined };
      layout["yaxis" + id] = { ...common, domain: domain.y, anchor: "x" + id, tickvals: figure.y.at, ticktext: rows.map((lines) => lines.map(plain).join("<br>")),
        showticklabels: !column, // panels side by side share their rows
        range: [figure.y.at.length - 0.5, -0.5] };
      if (!column && rowLines.length) above.push([rowLines.map(plain).join("<br>"), domain, panel.label ? 22 : 4]);
      const cell = (pick) => panel.spots.map((spots, y) => spots.map((spot, x) => (spot ? pick(spot, x, y) : null)));
      const empty = !panel.spots.flat().some((spot) => spot && spot.value !== null);
      traces.push({
        type: "heatmap", coloraxis: "coloraxis", xgap: 2, ygap: 2, xaxis: "x" + id, yaxis: "y" + id,
        x: figure.x.at, y: figure.y.at, z: empty ? cell(() => height01(low)) : cell((spot) => (spot.value === null ? null : height01(spot.value))),
        opacity: empty ? 0 : 1, // Plotly cannot draw a map of nothing
        customdata: cell((spot, x, y) => [spot.cells, `${plain(figure.y.title)} ${plain(figure.y.text[y])} ${plain(figure.y.unit)}<br>` +
          `${plain(figure.x.title)} ${plain(figure.x.text[x])} ${plain(figure.x.unit)}<br>` +
          (spot.value === null ? plain(spot.why) : `<b>${netwarp.number(spot.value)} ${plain(figure.value.unit)}</b>` +
            (spot.n > 1 ? ` (mean of ${spot.n})` : "") + (spot.why ? "<br>missing: " + plain(spot.why).slice(0, 200) : ""))]),
        hovertemplate: "%{customdata[1]}<extra></extra>",
      });
      // letters of ours: Plotly's own are one colour for all fields, which half of them do not carry
      panel.spots.forEach((spots, y) => spots.forEach((spot, x) => {
        if (!spot) return;
        if (spot.value === null) {
          shapes.push({ type: "rect", xref: "x" + id, yref: "y" + id, x0: x - 0.48, x1: x + 0.48, y0: y - 0.46, y1: y + 0.46, line: { width: 0 },
            fillcolor: colours.missing, layer: "above" });
        }
        const share = spot.value === null ? null : (height01(spot.value) - height01(low)) / span;
        annotations.push({
          x, y, xref: "x" + id, yref: "y" + id, showarrow: false, captureevents: false,
          text: plain(spot.text),
          font: { size: 12, color: share === null ? colours.soft : luminance(share) < 0.18 ? "#fff" : "#000" },
        });
      }));
      if (panel.label) {
        annotations.push({ text: `<b>${plain(panel.label)}</b>`, xref: "paper", yref: "paper", x: domain.x[0], y: domain.y[1], xanchor: "left",
          yanchor: "bottom", yshift: 4, showarrow: false, font: { size: 12.5, color: colours.text } });
      }
    });
    above.forEach(([text, domain, up], i) => annotations.push({ text, xref: "paper", yref: "paper", x: domain.x[0], y: domain.y[1], xanchor: "left",
      yanchor: i ? "bottom" : "top", yshift: up, showarrow: false, align: "left", font: { size: 13, color: colours.text } }));
    layout.coloraxis = {
      colorscale: SCALE, cmin: height01(low), cmax: height01(low) + span,
      colorbar: { thickness: 12, outlinewidth: 0, tickfont: { color: colours.soft },
        len: Math.min(1 - (TOP + HEAD) / plot, 320 / plot), y: 1 - (TOP + HEAD) / plot, yanchor: "top", ...(log && { tickvals: figure.value.at.map(Math.log10), ticktext: figure.value.text }) },
    };
    if (!bar) layout.coloraxis.showscale = false; // the numbers stand in the fields
    Object.assign(layout, { annotations, shapes, height, hovermode: "closest", dragmode: false, margin: { l: 8, r: 8, t: 0, b: FOOT } });
    return { traces, layout, still: true };
  }
  netwarp.kinds.heatmap = draw;
})();
