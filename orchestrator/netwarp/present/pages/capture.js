// The charts of a capture's page: panels on one time axis, drawn when they come into sight.
"use strict";

(function () {
  const { h, number } = netwarp;
  const LANE = 40, PANEL = 150, GAP = 34, FOOT = 50;

  netwarp.state = { cell: () => null }; // what report.js asks for: this page has no cells to show

  // Plotly is in this file, compressed; unpacked when the first chart is drawn.
  let loading = null;
  netwarp.script = function () {
    loading = loading || (async () => {
      const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (one) => one.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
      const script = document.createElement("script");
      script.textContent = await new Response(stream).text();
      document.head.append(script);
    })();
    return loading;
  };

  const scaleOf = (panel) => netwarp.scale(panel.lines.flatMap((line) => line.v), panel.unit);
  const laneOf = (chart) => (chart.events.length ? LANE : 0);
  const heightOf = (chart) => laneOf(chart) + chart.panels.length * (PANEL + GAP) + FOOT;

  function span(chart) {
    let from = Infinity, to = -Infinity;
    for (const panel of chart.panels) for (const line of panel.lines) for (const t of line.t) { from = Math.min(from, t); to = Math.max(to, t); }
    for (const [t] of chart.events) { from = Math.min(from, t); to = Math.max(to, t); }
    if (!(to > from)) { from = Math.min(from, to) || 0; to = from + 1; }
    const margin = 0.01 * (to - from);
    return [from - margin, to + margin];
  }

  function trace(line, panel, id, colours, chart) {
    const { plain, colour } = netwarp.charts;
    const look = chart.looks[line.key];
    const ink = colour(look);
    const { divisor, unit } = scaleOf(panel);
    const thin = (size, width) => ({ symbol: "x-thin", size, color: ink, line: { width, color: ink } });
    const marker = { marks: thin(8, 1.6), dots: { symbol: "circle", size: 3.5, color: ink } }[line.style];
    const shape = line.style === "line" ? "linear" : "hv";
    return {
      type: "scatter", x: line.t, y: line.v.map((value) => (value === null ? null : value / divisor)), yaxis: "y" + id,
      name: plain(line.name), text: line.v.map((value) => (value === null ? "" : number(value / divisor))), hovertemplate: `%{text} ${plain(unit)}`, fill: line.style === "bar" ? "tozeroy" : "none",
      ...(marker ? { mode: "markers", marker } : { mode: "lines", line: { color: ink, width: 1.6, shape } }),
    };
  }

  function make(chart, range, colours) {
    const { plain, baseLayout } = netwarp.charts;
    const layout = baseLayout(colours);
    const axis = layout.axisTemplate;
    delete layout.yaxis;
    const height = heightOf(chart), inner = height - FOOT - 10;
    const traces = [], annotations = [];
    let top = laneOf(chart);
    chart.panels.forEach((panel, place) => {
      const id = place ? place + 1 : "";
      top += GAP;
      const { unit } = scaleOf(panel);
      layout["yaxis" + id] = {
        ...axis, domain: [Math.max(0, 1 - (top + PANEL) / inner), 1 - top / inner], nticks: 5, automargin: false,
        rangemode: panel.lines.every((line) => line.v.every((v) => v === null || v >= 0)) ? "tozero" : "normal", exponentformat: "none", fixedrange: true,
      };
      annotations.push({
        text: `<b>${plain(panel.title)}</b>${unit ? " (" + plain(unit) + ")" : ""}`, xref: "paper", yref: "paper", x: 0, y: 1 - top / inner,
        xanchor: "left", yanchor: "bottom", yshift: 2, showarrow: false, font: { size: 12, color: colours.text },
      });
      top += PANEL;
      for (const line of panel.lines) traces.push(trace(line, panel, id, colours, chart));
    });
    const lane = chart.panels.length + 1;
    layout["yaxis" + lane] = { domain: [1 - (LANE - 12) / inner, 1], visible: false, range: [0, 1], fixedrange: true };
    if (chart.events.length) {
      traces.push({
        type: "scatter", mode: "markers", x: chart.events.map(([t]) => t), y: chart.events.map(() => 0.25), yaxis: "y" + lane, name: "event",
        text: chart.events.map(([, text]) => plain(text)), hovertemplate: "%{text}<extra></extra>",
        marker: { symbol: "triangle-down", size: 9, color: colours.text },
      });
    }
    Object.assign(layout.xaxis, {
      anchor: "y" + (chart.panels.length > 1 ? chart.panels.length : ""), title: { text: "time since the first packet (s)", standoff: 8 },
      showline: true, range: range || span(chart), hoverformat: ".6~f", showspikes: true, spikemode: "across", spikethickness: 1,
      spikedash: "solid", spikecolor: colours.soft, spikesnap: "cursor",
    });
    Object.assign(layout, { annotations, height, hovermode: "x unified", hoversubplots: "axis", margin: { l: 58, r: 10, t: 10, b: FOOT } });
    return { traces, layout };
  }

  async function draw(element) {
    const chart = netwarp.data.charts[element.dataset.chart];
    let range = null;
    try {
      await netwarp.charts.draw(element, (colours) => make(chart, range, colours));
    } catch (error) {
      element.replaceChildren(h("p", { class: "note" }, "This browser cannot draw the charts (" + error.message + "); the numbers are in the tables."));
      element.style.height = "auto";
      return;
    }
    element.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] !== undefined) range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      else if (change["xaxis.range"]) range = change["xaxis.range"];
      else if (change["xaxis.autorange"]) range = null;
    });
  }

  function zoom(element, factor) {
    const whole = span(netwarp.data.charts[element.dataset.chart]);
    let range = whole;
    if (factor) {
      const [from, to] = element.layout.xaxis.range;
      const middle = (from + to) / 2, half = ((to - from) / 2) * factor;
      range = [Math.max(whole[0], middle - half), Math.min(whole[1], middle + half)];
    }
    window.Plotly.relayout(element, { "xaxis.range": range });
    netwarp.say(`Showing ${number(range[0])} to ${number(range[1])} seconds`);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "400px" });

  for (const element of document.querySelectorAll("[data-chart]")) {
    const name = element.dataset.chart, chart = netwarp.data.charts[name];
    element.style.height = heightOf(chart) + "px"; // at once: nothing below jumps when it is drawn
    const button = (text, factor) => h("button", { type: "button", class: "controls-button", onclick: () => element.dataset.drawn && zoom(element, factor) }, text);
    document.querySelector(`[data-moves="${CSS.escape(name)}"]`).append(button("Whole time", 0), button("Zoom in", 0.5), button("Zoom out", 2));
    const styles = new Map(chart.panels.flatMap((panel) => panel.lines.map((line) => [line.key, line.key === line.name ? line.style : "line"])));
    document.querySelector(`[data-legend="${CSS.escape(name)}"]`).append(...Object.entries(chart.looks).map(([line, look]) => {
      const point = { marks: "\u00d7", dots: "\u2022" }[styles.get(line)];
      const sign = point ? h("b", { class: "capture-point", style: `--light:${look.light};--dark:${look.dark}` }, point) : netwarp.swatch({ ...look, marker: null });
      return h("span", { class: "legend-label" }, sign, line);
    }));
    seen.observe(element);
  }
})();
