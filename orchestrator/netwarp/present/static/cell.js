// One cell, opened: its time series on one time axis, events, self-checks, configuration and files.
"use strict";

(function () {
  const { h, number } = netwarp;
  const loaded = new Map(); // cell id -> its data; only the last few are kept
  const waiting = new Map(); // cell id -> [resolve]
  const MOST_OPEN = 40; // rows of a group of measurements that is open from the start
  const MOST_OTHERS = 500; // options of a choice; a cell beyond them is named by its number in the list
  let shown = 0; // counts what was asked for, so that an answer that comes late is dropped

  // Called by report/cells/<id>.js
  netwarp.cellLoaded = function (cell) {
    loaded.set(cell.id, cell);
    if (loaded.size > 6) loaded.delete(loaded.keys().next().value);
    for (const resolve of waiting.get(cell.id) || []) resolve(cell);
    waiting.delete(cell.id);
  };

  // A promise of a cell's data; its file is a script, because a page from file:// cannot fetch.
  netwarp.loadCell = (id) => new Promise((resolve, reject) => {
    if (loaded.has(id)) return resolve(loaded.get(id));
    waiting.set(id, [...(waiting.get(id) || []), resolve]);
    const script = h("script", { src: "cells/" + encodeURIComponent(netwarp.cells.script(id)) });
    script.onerror = () => reject(new Error("cannot be loaded"));
    script.onload = () => script.remove();
    document.head.append(script);
  });

  // address: {id, with, from, to} as the address says it.
  netwarp.showCell = async function (address, article) {
    for (const chart of article.querySelectorAll(".chart")) netwarp.charts.forget(chart);
    const turn = ++shown;
    article.replaceChildren(h("p", { class: "note" }, "Loading the cell …"));
    let cells;
    try {
      cells = await Promise.all([address.id, address.with].filter(Boolean).map(netwarp.loadCell));
    } catch {
      if (turn === shown) {
        article.replaceChildren(
          h("p", {}, "This cell's file cannot be loaded (it never ran, or the report folder is incomplete). "),
          h("p", {}, h("a", { href: "#cells" }, "Back to the list of cells")));
      }
      return;
    }
    if (turn === shown) render(cells, address, article);
  };

  const table = (caption, heads, rows, numeric = []) => {
    const body = h("tbody", {}, rows.map((row) => h("tr", {}, row.map((field, i) =>
      h(i ? "td" : "th", { scope: i ? null : "row", class: numeric.includes(i) && "n" }, field)))));
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      h("table", { class: "plain" }, h("caption", { class: "unseen" }, caption),
        h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: numeric.includes(i) && "n" }, head)))),
        body));
  };

  const section = (title, ...children) => h("section", {}, h("h3", {}, title), children);

  const nameOf = (cell) => cell.factors.map((one) => one.level).join(", ") || cell.experiment;
  const KINDS = { COMPLETED: ["✓", "holds"], INVALID: ["!", "unsure"], FAILED: ["✗", "fails"], TIMED_OUT: ["◔", "fails"] };

  function render(cells, address, article) {
    const [cell, other] = cells;
    const neighbours = netwarp.cells.neighbours(cell.id);
    const title = nameOf(cell);
    const heading = h("h2", { id: "cell-title", tabindex: "-1" }, title);
    const move = (hash, text) => hash && h("a", { class: "controls-button", href: hash }, text);
    const [symbol, style] = KINDS[cell.outcome] || ["⊘", "untested"];
    article.replaceChildren(
      h("div", { class: "cell-head" },
        h("div", { class: "moves" }, h("a", { class: "controls-button", href: "#cells" }, "← All cells"),
          move(neighbours.before, "Previous"), move(neighbours.after, "Next"),
          neighbours.at >= 0 && `${neighbours.at + 1} of ${neighbours.of}`),
        heading,
        h("p", { class: "cell-id" }, cell.id),
        h("p", { class: "cell-reason" }, h("span", { class: "badge " + style }, h("span", { "aria-hidden": "true" }, symbol), " ", cell.outcome),
          cell.reason && " " + cell.reason)),
      cell.console_tail.length ? section("Last lines of the console", h("pre", {}, cell.console_tail.join("\n"))) : "",
      cell.series ? series(cells.filter((one) => one.series), cells, address) : h("p", { class: "note" }, "This cell has no time series: it was not analysed."),
      netwarp.waterfall(cells, section, nameOf, table, levelsBeside(cell)),
      h("div", { class: other || cell.flows.length > 2 ? "" : "pair" }, measurements(cell, other), events(cell)),
      configuration(cell), checks(cell), environment(cell), files(cell));
    document.title = title + " – cell of " + document.title.replace(/^.* – cell of /, "");
    const chart = article.querySelector(".chart");
    if (chart) {
      const ends = [address.from, address.to].map(Number);
      const range = address.from !== undefined && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
      netwarp.timeline.draw(chart, cells.filter((one) => one.series), range, (now) => {
        const places = (value) => Number(Number(value).toFixed(6));
        netwarp.state.writeCell({ id: cell.id, with: address.with, ...(now && { from: places(now[0]), to: places(now[1]) }) });
      });
    }
    heading.focus({ preventScroll: true });
    netwarp.say("Cell " + title);
  }

  // The cells that differ from this one in one factor only, by factor.
  function levelsBeside(cell) {
    const groups = new Map();
    for (const { id, differing } of netwarp.cells.beside(cell.id)) {
      if (!differing) continue;
      if (!groups.has(differing)) groups.set(differing, []);
      groups.get(differing).push(id);
    }
    return [...groups].map(([title, ids]) => ({ title, ids }));
  }

  // A choice of the cell to lay over this one: first those that differ in one factor only.
  function comparison(cell, address) {
    const groups = new Map();
    const rest = [];
    for (const { id, differing, text, label } of netwarp.cells.beside(cell.id)) {
      const option = () => h("option", { value: id, selected: id === address.with }, differing ? text : label);
      if (!differing) {
        if (rest.length < MOST_OTHERS || id === address.with) rest.push(option());
        continue;
      }
      if (!groups.has(differing)) groups.set(differing, []);
      groups.get(differing).push(option());
    }
    const more = netwarp.cells.count > MOST_OTHERS;
    const lay = (id) => { location.hash = netwarp.state.cellHash({ id: cell.id, with: id || undefined }); };
    return [h("label", { class: "controls-inline" }, "Compare with", h("select", { id: "compare", onchange: (event) => lay(event.target.value) },
      h("option", { value: "" }, "nothing"), [...groups].map(([title, options]) => h("optgroup", { label: "differs in " + title }, options)),
      rest.length > 0 && h("optgroup", { label: more ? "some of the other cells" : "other cells" }, rest))),
    more && h("label", { class: "controls-inline" }, "or cell number", h("input", { id: "compare-number", type: "number", min: 1, max: netwarp.cells.count,
      onchange: (event) => lay(netwarp.cells.idOf(Number(event.target.value) - 1)) }))];
  }

  function series(cells, asked, address) {
    const cell = cells[0];
    const chart = h("div", { class: "chart", id: "cell-chart", role: "img",
      "aria-label": "Time series of this cell on one time axis: " + netwarp.timeline.describe(cells) });
    const zoom = (from, to) => netwarp.timeline.zoom(chart, from, to);
    const faults = cell.series.faults;
    const details = h("details", { class: "numbers" }, h("summary", {}, "These series as a table"));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(seriesTable(cell));
    });
    const numbers = () => [["cell", "series", "flow", "path", "t_s", "value"], ...cells.flatMap((one) =>
      netwarp.timeline.columns(one).flatMap((column) => column.t.map((t, i) => [one.id, column.name, column.flow, column.path, t, column.v[i]])))];
    return section("Time series",
      h("form", { class: "controls" }, comparison(cell, address)),
      asked.length > 1 && h("p", { class: "cell-compared" },
        asked.map((one, number) => h("span", { class: "legend-label" }, netwarp.swatch({ ...netwarp.timeline.INK, dash: netwarp.timeline.DASHES[number] }),
          h("b", {}, ["A", "B"][number]), "\u00a0", number ? h("a", { href: netwarp.state.cellHash({ id: one.id }) }, nameOf(one)) : nameOf(one),
          !one.series && " (no time series)"))),
      h("div", { class: "moves legend-row" },
        h("button", { type: "button", class: "controls-button", onclick: () => zoom(null) }, "Whole run"),
        faults.map((fault) => h("button", { type: "button", class: "controls-button", onclick: () => {
          const length = fault.to_s - fault.from_s;
          zoom(fault.from_s - Math.max(2, 0.2 * length), fault.to_s + Math.max(5, length));
        } }, `Zoom to ${fault.action} of ${fault.link}`)),
        h("button", { type: "button", class: "controls-button", onclick: () => netwarp.timeline.step(chart, 0.5) }, "Zoom in"),
        h("button", { type: "button", class: "controls-button", onclick: () => netwarp.timeline.step(chart, 2) }, "Zoom out")),
      h("div", { class: "legend-row", id: "cell-legend" }, netwarp.timeline.legend(cells)),
      chart,
      cells.some((one) => one.series.thinned) && h("p", { class: "note" }, "Samples are thinned for drawing (each interval keeps its smallest and largest); derived/series.json has all of them."),
      h("p", { class: "links" }, h("button", { type: "button", class: "link", onclick: () =>
        netwarp.download(cell.id + ".csv", netwarp.csv(numbers())) }, "Download the numbers (CSV)")),
      details);
  }

  function seriesTable(cell) {
    const columns = netwarp.timeline.columns(cell).filter((one) => one.binned);
    const several = new Set(columns.map((one) => one.flow)).size > 1;
    const heads = ["from (s)", ...columns.map((one) =>
      `${one.title}${several ? " " + one.flow : ""}${one.path ? " " + one.path : ""}${one.unit && ` (${one.unit})`}`)];
    const rows = columns.length ? columns[0].t.map((t, i) => [number(t), ...columns.map((one) => number(one.v[i]))]) : [];
    return table("Binned series", heads, rows, heads.map((_, i) => i));
  }

  // By group. Of one cell a column a flow; with another cell beside it, a row a flow: its values, and how far apart they are.
  function measurements(cell, other) {
    const there = cell.measurements.filter((one) => one.exact);
    const nothing = new Set(cell.measurements.filter((one) => !one.exact).map((one) => one.metric));
    for (const one of there) nothing.delete(one.metric);
    const flows = [...new Set(there.map((one) => one.flow))];
    const wide = !other && flows.length > 1 && flows.length <= 4;
    const several = flows.length > 1 && !wide;
    const value = (one) => (one ? h("span", { title: one.exact }, one.value) : "–");
    const title = (one) => h("span", { title: one.metric }, one.title);
    const twin = (one) => other && other.measurements.find((two) => two.metric === one.metric && two.flow === one.flow && two.exact);
    const apart = (one, two) => {
      if (!two || !one.number) return two && two.number === one.number ? "0" : "–";
      return netwarp.percent(two.number / one.number - 1, 3, true);
    };
    const named = (flow) => flow || "cell";
    const heads = ["metric", ...(several ? ["flow"] : []), ...(wide ? flows.map(named) : other ? ["A", "B", "B to A"] : ["value"])];
    const row = (one) => [title(one), ...(several ? [named(one.flow)] : []), value(one),
      ...(other ? [value(twin(one)), apart(one, twin(one))] : [])];
    const across = (name) => {
      const own = there.filter((one) => one.metric === name);
      return [title(own[0]), ...flows.map((flow) => value(own.find((one) => one.flow === flow)))];
    };
    const rows = (list) => (wide ? [...new Set(list.map((one) => one.metric))].map(across) : list.map(row));
    const groups = [...new Set(there.map((one) => one.group))].map((group) => [group, rows(there.filter((one) => one.group === group))]);
    const numeric = heads.map((_, i) => i).filter((i) => i > (several ? 1 : 0));
    const unsure = [cell, other].filter((one) => one && one.outcome === "INVALID" && one.measurements.length);
    return section(unsure.length ? "Measurements, not to be relied on" : "Measurements",
      unsure.map((one) => h("p", { class: "note" }, h("span", { class: "badge unsure" }, h("span", { "aria-hidden": "true" }, "!"), " INVALID"),
        ` A self-check of ${one === cell ? "this cell" : "the cell beside it"} failed (${one.reason}): its numbers are in no table.`)),
      there.length ? groups.map(([group, list], place) => h("details", { class: "cell-group", open: place < 2 && list.length <= MOST_OPEN },
        h("summary", {}, `${group} (${list.length})`), table(`Measurements: ${group}`, heads, list, numeric))) : h("p", { class: "note" }, "None: only cells that completed are measured."),
      nothing.size > 0 && h("p", { class: "note" }, netwarp.counted(nothing.size, "other metric has", "other metrics have") + " nothing to measure in this cell (",
        h("a", { href: "../tables/measurements.csv" }, "measurements.csv"), " names them)."));
  }

  function events(cell) {
    const list = netwarp.timeline.events(cell);
    const several = cell.flows.length > 1;
    const time = (event) => h("button", { type: "button", class: "link", title: "Zoom to this event", onclick: () =>
      netwarp.timeline.zoom(document.getElementById("cell-chart"), event.t_s - 1.5, event.t_s + 1.5) }, netwarp.fixed(event.t_s, 6));
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
          ["repetition", String(cell.repetition)], ["seed", cell.seed + (cell.random ? "" : " (no effect: nothing in this cell is random)")],
          ["simulated", cell.virtual_s === null ? "" : number(cell.virtual_s) + " s"],
          ["real time", cell.wall_s === null ? "" : number(cell.wall_s) + " s"],
        ]))));
  }

  function checks(cell) {
    const failed = cell.checks.filter((check) => !check.ok);
    const rows = (list) => table("Self-checks", ["check", "result", "detail", "stage"], list.map((check) => [
      check.check, h("span", { class: "badge " + (check.ok ? "holds" : "fails") }, check.ok ? "✓ passed" : "✗ failed"),
      h("span", { class: "cell-mono" }, check.detail), check.from]));
    if (!cell.checks.length) return section("Self-checks", h("p", { class: "note" }, "None are stored."));
    return section(`Self-checks: ${cell.checks.length - failed.length} passed, ${failed.length} failed`,
      failed.length ? rows(failed) : "",
      h("details", {}, h("summary", {}, "All " + netwarp.counted(cell.checks.length, "check")), rows(cell.checks)));
  }

  function environment(cell) {
    const { kernel, namespaces, backend, machines } = cell.environment;
    const spaces = Object.entries(namespaces || {});
    if (!kernel && !spaces.length) return "";
    const words = kernel ? Object.values(kernel).filter(Boolean).join(" · ") : "";
    return section("Environment, as the kernel reported it",
      h("p", { class: "cell-mono" }, [backend, words].filter(Boolean).join(" · ")),
      machines && machines.rows.length ? table("Machines", Object.keys(machines.rows[0]), machines.rows.map((row) => Object.values(row).map(String))) : "",
      machines ? machines.notes.map((note) => h("p", { class: "note" }, note)) : "",
      spaces.map(([name, found]) => h("details", {}, h("summary", {}, `${name}: ` + [[found.interfaces, "interface"],
        [found.qdiscs, "netem qdisc"], [Object.keys(found.sysctls), "sysctl"]].map(([list, noun]) => netwarp.counted(list.length, noun)).join(", ")),
        found.interfaces.length ? table(`Interfaces of ${name}`, Object.keys(found.interfaces[0]), found.interfaces.map((row) => Object.values(row).map(String))) : "",
        found.qdiscs.length ? table(`Qdiscs of ${name}`, Object.keys(found.qdiscs[0]),
          found.qdiscs.map((row) => Object.values(row).map((value) => (value === null ? "–" : String(value)))), [4, 5, 6]) : "",
        Object.keys(found.sysctls).length ? table(`Sysctls of ${name}`, ["sysctl", "value"],
          Object.entries(found.sysctls).map(([path, value]) => [h("span", { class: "cell-mono" }, path), String(value)])) : "",
        found.routes.length ? h("p", { class: "cell-mono" }, "routes: " + found.routes.join("; ")) : "")));
  }

  const files = (cell) => section("Files of this cell",
    h("ul", { class: "cell-files" }, cell.files.map((file) => h("li", {}, h("a", { href: file.href }, file.name), ` ${size(file.bytes)}`))),
    h("p", { class: "note" }, "Captures are compressed; netwarp export turns them into plain pcap files."));

  function size(bytes) {
    const { divisor, unit } = netwarp.scale([bytes], "bytes");
    return number(bytes / divisor, 3) + " " + unit;
  }
})();
