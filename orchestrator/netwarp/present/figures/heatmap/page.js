// Heat maps as data.py describes them: panels of the same axes under one colour bar, numbers in their fields.
"use strict";

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
    const { plain, wrap, title, decades, baseLayout } = netwarp.charts;
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
    const known = panels.flatMap((panel) => panel.spots.flat()).filter((spot) => spot && spot.value !== null).map((spot) => spot.value);
    const [low, high] = [Math.min(...known), Math.max(...known)];
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
          text: spot.value === null ? (spot.why === "nothing to measure" ? "–" : plain(spot.why)) : netwarp.number(spot.value, 3),
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
    const marks = log ? decades(low, high) : null;
    layout.coloraxis = {
      colorscale: SCALE, cmin: height01(low), cmax: height01(low) + span,
      colorbar: { thickness: 12, outlinewidth: 0, tickfont: { color: colours.soft },
        len: Math.min(1 - (TOP + HEAD) / plot, 320 / plot), y: 1 - (TOP + HEAD) / plot, yanchor: "top", ...(marks && { tickvals: marks.map(Math.log10), ticktext: marks.map((mark) => netwarp.given(mark)) }) },
    };
    if (!bar) layout.coloraxis.showscale = false; // the numbers stand in the fields
    Object.assign(layout, { annotations, shapes, height, hovermode: "closest", dragmode: false, margin: { l: 8, r: 8, t: 0, b: FOOT } });
    return { traces, layout, still: true };
  }
  netwarp.kinds.heatmap = draw;
})();
