// One cell, opened: its time series on one time axis, events, self-checks, configuration and files.
"use strict";

(function () {
  const { h, number } = netwarp;
  let wanted = null; // the cell whose script is being waited for, and where it goes

  // Called by report/cells/<id>.js
  netwarp.cellLoaded = function (cell) {
    if (wanted && wanted.id === cell.id) render(cell, wanted.article);
  };

  netwarp.showCell = function (id, article) {
    for (const chart of article.querySelectorAll(".chart")) netwarp.charts.forget(chart);
    wanted = { id, article };
    article.replaceChildren(h("p", { class: "note" }, "Loading the cell …"));
    const script = h("script", { src: "cells/" + encodeURIComponent(netwarp.data.cells[id]) });
    script.onerror = () => article.replaceChildren(
      h("p", {}, "This cell's file cannot be loaded (it never ran, or the report folder is incomplete). "),
      h("p", {}, h("a", { href: "#cells" }, "Back to the list of cells")));
    script.onload = () => script.remove();
    document.head.append(script);
  };

  const table = (caption, heads, rows, numeric = []) =>
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      h("table", { class: "plain" }, h("caption", { class: "unseen" }, caption),
        h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: numeric.includes(i) && "n" }, head)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((field, i) =>
          h(i ? "td" : "th", { scope: i ? null : "row", class: numeric.includes(i) && "n" }, field)))))));

  const section = (title, ...children) => h("section", {}, h("h3", {}, title), children);

  function render(cell, article) {
    const neighbours = netwarp.neighbours(cell.id);
    const title = cell.factors.map((one) => one.level).join(", ") || cell.experiment;
    const heading = h("h2", { id: "cell-title", tabindex: "-1" }, title);
    const move = (hash, text) => hash && h("a", { class: "control", href: hash }, text);
    const kind = { COMPLETED: ["✓", "holds"], INVALID: ["!", "unsure"], FAILED: ["✗", "fails"], TIMED_OUT: ["◔", "fails"] };
    const [symbol, style] = kind[cell.outcome] || ["⊘", "untested"];
    article.replaceChildren(
      h("div", { class: "cell-head" },
        h("div", { class: "moves" }, h("a", { class: "control", href: "#cells" }, "← All cells"),
          move(neighbours.before, "Previous"), move(neighbours.after, "Next"),
          neighbours.at >= 0 && `${neighbours.at + 1} of ${neighbours.of}`),
        heading,
        h("p", { class: "cell-id" }, cell.id),
        h("p", { class: "reason" }, h("span", { class: "badge " + style }, h("span", { "aria-hidden": "true" }, symbol), " ", cell.outcome),
          cell.reason && " " + cell.reason)),
      cell.console_tail.length ? section("Last lines of the console", h("pre", {}, cell.console_tail.join("\n"))) : "",
      cell.series ? series(cell) : h("p", { class: "note" }, "This cell has no time series: it was not analysed."),
      h("div", { class: "pair" }, measurements(cell), events(cell)),
      configuration(cell), checks(cell), environment(cell), files(cell));
    document.title = title + " – cell of " + document.title.replace(/^.* – cell of /, "");
    const chart = article.querySelector(".chart");
    if (chart) netwarp.timeline.draw(chart, cell);
    heading.focus({ preventScroll: true });
    netwarp.say("Cell " + title);
  }

  function series(cell) {
    const chart = h("div", { class: "chart", id: "cell-chart", role: "img",
      "aria-label": "Time series of this cell on one time axis: " + netwarp.timeline.describe(cell) });
    const zoom = (from, to) => netwarp.timeline.zoom(chart, from, to);
    const faults = cell.series.faults;
    const details = h("details", { class: "numbers" }, h("summary", {}, "These series as a table"));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(seriesTable(cell));
    });
    return section("Time series",
      h("div", { class: "moves legend-row" },
        h("button", { type: "button", class: "control", onclick: () => zoom(null) }, "Whole run"),
        faults.map((fault) => h("button", { type: "button", class: "control", onclick: () => {
          const length = fault.to_s - fault.from_s;
          zoom(fault.from_s - Math.max(2, 0.2 * length), fault.to_s + Math.max(5, length));
        } }, `Zoom to ${fault.action} of ${fault.link}`)),
        h("button", { type: "button", class: "control", onclick: () => netwarp.timeline.step(chart, 0.5) }, "Zoom in"),
        h("button", { type: "button", class: "control", onclick: () => netwarp.timeline.step(chart, 2) }, "Zoom out")),
      h("div", { class: "legend-row", id: "cell-legend" }, netwarp.timeline.legend(cell)),
      chart,
      cell.series.thinned && h("p", { class: "note" }, "Samples are thinned to what can be drawn (smallest and largest of each bucket are kept); derived/series.json has all."),
      h("p", { class: "links" }, h("button", { type: "button", class: "link", onclick: () =>
        netwarp.download(cell.id + ".csv", netwarp.csv([["series", "flow", "path", "t_s", "value"],
          ...netwarp.timeline.columns(cell).flatMap((one) => one.t.map((t, i) => [one.name, one.flow, one.path, t, one.v[i]]))])) },
        "Download the numbers (CSV)")),
      details);
  }

  function seriesTable(cell) {
    const columns = netwarp.timeline.columns(cell).filter((one) => one.binned);
    const several = new Set(columns.map((one) => one.flow)).size > 1;
    const heads = ["from (s)", ...columns.map((one) =>
      `${one.title}${several ? " " + one.flow : ""}${one.path ? " " + one.path : ""} (${one.unit})`)];
    const rows = columns.length ? columns[0].t.map((t, i) => [number(t), ...columns.map((one) => number(one.v[i]))]) : [];
    return table("Binned series", heads, rows, heads.map((_, i) => i));
  }

  function measurements(cell) {
    const there = cell.measurements.filter((one) => one.exact);
    const nothing = cell.measurements.filter((one) => !one.exact);
    const several = cell.flows.length > 1;
    const value = (one) => h("span", { title: one.exact }, one.value);
    const title = (one) => h("span", { title: one.metric }, one.title);
    return section("Measurements",
      there.length
        ? table("Measurements of this cell", several ? ["metric", "flow", "value"] : ["metric", "value"],
          there.map((one) => (several ? [title(one), one.flow || "cell", value(one)] : [title(one), value(one)])), [several ? 2 : 1])
        : h("p", { class: "note" }, "None: only cells that completed are measured."),
      nothing.length > 0 && h("p", { class: "note" }, "Nothing to measure here: " +
        nothing.map((one) => one.title + (several && one.flow ? ` of ${one.flow}` : "")).join(", ") + "."));
  }

  function events(cell) {
    const list = netwarp.timeline.events(cell);
    const several = cell.flows.length > 1;
    const time = (event) => h("button", { type: "button", class: "link", title: "Zoom to this event", onclick: () =>
      netwarp.timeline.zoom(document.getElementById("cell-chart"), event.t_s - 1.5, event.t_s + 1.5) }, event.t_s.toFixed(6));
    return section("Events", list.length
      ? table("Events of this cell", several ? ["time (s)", "what", "flow"] : ["time (s)", "what"],
        list.map((event) => [time(event), event.text, ...(several ? [event.flow] : [])]), [0])
      : h("p", { class: "note" }, "None."));
  }

  function configuration(cell) {
    const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== null)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const heads = ["link", "direction", "rate", "one-way delay", "queue", "loss", "other", "MTU"]
      .filter((head) => cell.links.some((row) => row[head]));
    return section("Configured",
      table("Links as configured", heads, cell.links.map((row) => heads.map((head) => row[head]))),
      h("div", { class: "pair" },
        cell.flows.map((flow) => h("div", {}, h("h4", {}, `Flow ${flow.name}: ${flow.protocol}, ${flow.way}`), facts([
          ["paths", flow.paths.join("; ")], ["start", flow.start], ["end", flow.end], ["message", flow.message],
          ["primary switched", flow.switches.join("; ")],
          ["options", Object.entries(flow.options).map(([name, value]) => `${name} = ${value}`).join("; ")],
        ]))),
        h("div", {}, h("h4", {}, "Cell"), facts([
          ...cell.factors.map((one) => [one.factor, one.level]), ["experiment", cell.experiment],
          ["repetition", String(cell.repetition)], ["seed", cell.seed + (cell.random ? "" : " (changes nothing: nothing is random)")],
          ["simulated", cell.virtual_s === null ? "" : number(cell.virtual_s) + " s"],
          ["real time", cell.wall_s === null ? "" : number(cell.wall_s) + " s"],
        ]))));
  }

  function checks(cell) {
    const failed = cell.checks.filter((check) => !check.ok);
    const rows = (list) => table("Self-checks", ["check", "result", "detail", "stage"], list.map((check) => [
      check.check, h("span", { class: "badge " + (check.ok ? "holds" : "fails") }, check.ok ? "✓ passed" : "✗ failed"),
      h("span", { class: "mono" }, check.detail), check.from]));
    if (!cell.checks.length) return section("Self-checks", h("p", { class: "note" }, "None are stored."));
    return section(`Self-checks: ${cell.checks.length - failed.length} passed, ${failed.length} failed`,
      failed.length ? rows(failed) : "",
      h("details", {}, h("summary", {}, `All ${cell.checks.length} checks`), rows(cell.checks)));
  }

  function environment(cell) {
    const { kernel, namespaces, backend } = cell.environment;
    const spaces = Object.entries(namespaces || {});
    if (!kernel && !spaces.length) return "";
    const said = kernel ? Object.values(kernel).filter(Boolean).join(" · ") : "";
    return section("Environment, as the kernel reported it",
      h("p", { class: "mono" }, [backend, said].filter(Boolean).join(" · ")),
      spaces.map(([name, found]) => h("details", {}, h("summary", {}, `${name}: ${found.interfaces.length} interfaces, ` +
        `${found.qdiscs.length} netem qdiscs, ${Object.keys(found.sysctls).length} sysctls`),
        found.interfaces.length ? table(`Interfaces of ${name}`, Object.keys(found.interfaces[0]), found.interfaces.map((row) => Object.values(row).map(String))) : "",
        found.qdiscs.length ? table(`Qdiscs of ${name}`, Object.keys(found.qdiscs[0]),
          found.qdiscs.map((row) => Object.values(row).map((value) => (value === null ? "–" : String(value)))), [4, 5, 6]) : "",
        Object.keys(found.sysctls).length ? table(`Sysctls of ${name}`, ["sysctl", "value"],
          Object.entries(found.sysctls).map(([path, value]) => [h("span", { class: "mono" }, path), String(value)])) : "",
        found.routes.length ? h("p", { class: "mono" }, "routes: " + found.routes.join("; ")) : "")));
  }

  const files = (cell) => section("Files of this cell",
    h("ul", { class: "files" }, cell.files.map((file) => h("li", {}, h("a", { href: file.href }, file.name), ` ${size(file.bytes)}`))),
    h("p", { class: "note" }, "Captures are compressed; netwarp export turns them into plain pcap files."));

  function size(bytes) {
    const { divisor, unit } = netwarp.scale([bytes], "bytes");
    return number(bytes / divisor, 3) + " " + unit;
  }
})();
