// The waterfall of a page: each object's request, first byte, last byte and delivery on one time axis; two cells side by side.
"use strict";

(function () {
  const { h, number } = netwarp;
  const PARTS = [
    ["setup", "connection set up", "opened_s", "requested_s"],
    ["wait", "requested, nothing yet", "requested_s", "first_s"],
    ["receive", "arriving", "first_s", "complete_s"],
    ["blocked", "complete, waits for packets of others", "complete_s", "delivered_s"],
  ];
  const name = (object) => (object.object ? "object " + object.object : "HTML");
  // whose packet a complete object waited for
  const blamed = (object) => (object.waited_for === null || object.waited_for === undefined ? "" : object.waited_for ? "object " + object.waited_for : "HTML");
  const lane = (object, protocol) => (protocol === "sctp" ? "stream " + object.stream : "port " + object.port);

  // a page's objects; opened_s is null where an earlier page opened the connection
  function objectsOf(objects, page) {
    const kept = new Set(objects.filter((one) => one.page < page).map((one) => one.port + " " + one.opened_s));
    return objects.filter((one) => one.page === page && one.delivered_s !== null).map((one) =>
      (kept.has(one.port + " " + one.opened_s) ? { ...one, opened_s: null } : one));
  }

  // [{cell, flow, protocol, objects}] of a page: a column each
  const columnsOf = (cells, page) => cells.flatMap((cell) => Object.entries(cell.pages || {}).map(([flow, objects]) => ({
    cell, flow, protocol: (cell.flows.find((one) => one.name === flow) || {}).protocol, objects: objectsOf(objects, page),
  })));

  const beginOf = (objects) => Math.min(...objects.map((one) => (one.opened_s === null ? one.requested_s : one.opened_s)));

  function chart({ objects, protocol }, longest) {
    const begin = beginOf(objects);
    const seen = new Set();
    const percent = (seconds) => `${(100 * seconds) / longest}%`;
    return objects.map((object) => {
      const first = !seen.has(object.port);
      seen.add(object.port);
      const bars = PARTS.filter(([kind, , from, to]) =>
        object[to] > object[from] && (kind !== "setup" || (first && object.opened_s !== null))).map(([kind, text, from, to]) =>
        h("span", { class: "waterfall-bar waterfall-" + kind,
          title: `${text}${kind === "blocked" && blamed(object) ? ` (${blamed(object)})` : ""}: ${number((object[to] - object[from]) * 1000)} ms`,
          style: `left: ${percent(object[from] - begin)}; width: ${percent(Math.max(0, object[to] - object[from]))}` }));
      return h("div", { class: "waterfall-row" }, h("span", { class: "waterfall-name" }, name(object), h("small", {}, " ", lane(object, protocol))),
        h("span", { class: "waterfall-track" }, bars), h("span", { class: "waterfall-end" }, number(object.delivered_s - begin), " s"));
    });
  }

  function numbers({ cell, flow, objects }, table) {
    const begin = beginOf(objects);
    const heads = ["object", "port", "stream", "bytes", "requested (s)", "first byte (s)", "last byte (s)", "delivered (s)", "waited for"];
    const rows = objects.map((one) => [name(one), one.port, one.stream, number(one.bytes),
      ...["requested_s", "first_s", "complete_s", "delivered_s"].map((key) => netwarp.fixed(one[key] === null ? null : one[key] - begin, 4)), blamed(one)]);
    return h("details", { class: "numbers" }, h("summary", {}, `These times as a table: ${flow} of ${cell.id}`),
      table("Times of the objects of a page", heads, rows, [1, 2, 3, 4, 5, 6, 7]));
  }

  // A section of the view of a cell, or nothing; `title`: what a cell is called, `table`: makes a table. beside: the
  // other cells that could stand here, [{title, ids}]: those of all levels of a factor.
  netwarp.waterfall = function (cells, section, title, table, beside = []) {
    const [cell] = cells;
    let drawn = cells;
    const pages = [...new Set(Object.values(cell.pages || {}).flat().map((one) => one.page))];
    if (!pages.length) return "";
    const place = h("div", { class: "waterfall-all" });
    const show = (page) => {
      const columns = columnsOf(drawn, page).filter((one) => one.objects.length);
      const ends = columns.map(({ objects }) => Math.max(...objects.map((one) => one.delivered_s)) - beginOf(objects));
      const longest = Math.max(...ends);
      place.replaceChildren(...columns.map((column, at) => h("figure", { class: "waterfall" },
        h("figcaption", {}, h("b", {}, title(column.cell)), ` (${column.flow}): ${number(ends[at])} s`),
        h("div", { role: "img", "aria-label": `Waterfall of page ${page + 1}: ` + column.objects.map((one) =>
          `${name(one)} ${number(one.delivered_s - beginOf(column.objects))} s`).join(", ") }, chart(column, longest)),
        numbers(column, table))));
    };
    const select = h("select", { id: "waterfall-page", onchange: () => show(Number(select.value)) },
      pages.map((page) => h("option", { value: page }, String(page + 1))));
    const chosen = async (at) => {
      const others = at < 0 ? [] : await Promise.allSettled(beside[at].ids.map(netwarp.loadCell));
      // a cell that never ran has no file
      drawn = at < 0 ? cells : [cell, ...others.filter((one) => one.status === "fulfilled").map((one) => one.value)];
      show(Number(select.value));
    };
    show(pages[0]);
    return section("Waterfall of a page",
      h("form", { class: "controls" }, pages.length > 1 && h("label", { class: "controls-inline" }, "Page", select),
        beside.length > 0 && h("label", { class: "controls-inline" }, "Beside it", h("select", { id: "waterfall-beside",
          onchange: (event) => chosen(Number(event.target.value)) },
        h("option", { value: -1 }, cells.length > 1 ? "the cell compared with" : "nothing"),
        beside.map((one, at) => h("option", { value: at }, `the other levels of ${one.title}`))))),
      h("div", { class: "legend-row" }, PARTS.map(([kind, text]) => h("span", { class: "legend-label" },
        h("span", { class: "waterfall-key waterfall-" + kind, "aria-hidden": "true" }), text))),
      place,
      h("p", { class: "note" }, "By the client's captures, from the first packet of the page. An object that waits names, when pointed at and in its table, whose lost packet it waits for."));
  };
})();
