// Distributions as data.py describes them: a step curve a line, or boxes with every point in them.
"use strict";

(function () {
  const shownGroups = (figure, hidden) => figure.groups.filter((group) => group.values.length && !hidden.has("line " + group.key));
  const valueAxis = (figure, room) => ({
    title: netwarp.charts.title(figure.value.label, 8, room), type: figure.value.kind === "log" ? "log" : "linear", exponentformat: "none",
    ...(figure.value.kind === "log" && logMarks(figure.groups.flatMap((group) => group.values))),
  });
  function logMarks(values) {
    const marks = netwarp.charts.decades(Math.min(...values) / 2, Math.max(...values) * 2);
    return { tickvals: marks, ticktext: marks.map((mark) => netwarp.given(mark)) };
  }
  const howMany = (group) => (group.values.length === group.of ? `n = ${group.of}` : `${group.values.length} of ${group.of} had a value`);

  function cdf(figure, lookOf, hidden, colours, element) {
    const { plain, colour, baseLayout } = netwarp.charts;
    const layout = baseLayout(colours);
    const traces = shownGroups(figure, hidden).map((group) => {
      const look = lookOf(group.key);
      const n = group.values.length;
      const every = Math.max(1, Math.floor(n / 12)); // a line is known by its markers, too
      return {
        type: "scatter", mode: "lines+markers", name: plain(group.label), x: [group.values[0], ...group.values],
        y: [0, ...group.values.map((_, i) => (i + 1) / n)],
        line: { shape: "hv", width: 2, color: colour(look), dash: look.dash },
        marker: { symbol: look.marker, color: colour(look), size: [0, ...group.values.map((_, i) => (i % every ? 0 : 7))] },
        customdata: [[[group.cells[0]], netwarp.percent(0), netwarp.number(group.values[0])],
          ...group.cells.map((id, i) => [[id], netwarp.percent((i + 1) / n), netwarp.number(group.values[i])])],
        hovertemplate: `<b>${plain(group.label)}</b> (${howMany(group)})<br>%{customdata[1]} at or below %{customdata[2]} ${plain(figure.value.unit)}<extra></extra>`,
      };
    });
    Object.assign(layout.xaxis, valueAxis(figure, element.clientWidth - 70), { showline: true });
    Object.assign(layout.yaxis, { title: netwarp.charts.title("share of values at or below", 8, element.clientHeight - 60), range: [0, 1.03], tickformat: ".0%" });
    Object.assign(layout, { hovermode: "closest", uirevision: figure.value.label });
    return { traces, layout };
  }

  function box(figure, lookOf, hidden, colours, element) {
    const { plain, colour, baseLayout } = netwarp.charts;
    const layout = baseLayout(colours);
    const groups = shownGroups(figure, hidden);
    const keys = [...new Set(groups.map((group) => group.key))];
    const width = 0.8 / Math.max(1, keys.length);
    const at = (group) => group.place + (keys.indexOf(group.key) - (keys.length - 1) / 2) * width;
    const traces = keys.map((key) => {
      const own = groups.filter((group) => group.key === key);
      const look = lookOf(key);
      const quartile = (i) => own.map((group) => group.quartiles[i]);
      return {
        type: "box", name: plain(own[0].label), x: own.map(at), lowerfence: quartile(0), q1: quartile(1), median: quartile(2), q3: quartile(3),
        upperfence: quartile(4), width: width * 0.8, line: { color: colour(look), width: 1.5 }, fillcolor: "rgba(0,0,0,0)", hoverinfo: "y", boxpoints: false,
      };
    });
    for (const group of groups) {
      const look = lookOf(group.key);
      // points side by side rather than one on the other, the same on every drawing
      const spread = (i) => at(group) + ((((i * 7) % 11) - 5) / 11) * width * 0.5;
      traces.push({
        type: "scatter", mode: "markers", name: plain(group.label), x: group.values.map((_, i) => spread(i)), y: group.values,
        marker: { symbol: look.marker, color: colour(look), size: 6, opacity: 0.65 }, customdata: group.cells.map((id, i) => [[id], netwarp.number(group.values[i])]),
        hovertemplate: `<b>${plain(group.label)}</b> (${howMany(group)})<br>%{customdata[1]} ${plain(figure.value.unit)}<extra></extra>`,
      });
    }
    const across = element.clientWidth - 70;
    Object.assign(layout.xaxis, { title: netwarp.charts.title(figure.x.label, 8, across), tickvals: figure.x.at, tickangle: 0,
      ticktext: netwarp.charts.tickTexts(figure.x, across),
      range: [-0.6, figure.x.at.length - 0.4], showgrid: false, showline: true });
    Object.assign(layout.yaxis, valueAxis(figure, element.clientHeight - 60));
    if (figure.value.kind !== "log" && groups.every((group) => group.values.every((value) => value >= 0))) layout.yaxis.rangemode = "tozero";
    Object.assign(layout, { hovermode: "closest", uirevision: figure.x.label + figure.value.label });
    return { traces, layout };
  }
  Object.assign(netwarp.kinds, { cdf, box });
})();
