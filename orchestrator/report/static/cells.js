// The list of cells: search, filters, sorting. The rows are in the page already; this only hides and moves them.
"use strict";

(function () {
  const table = document.getElementById("cell-table");
  const form = document.getElementById("cell-filters");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({
    row,
    text: row.textContent.toLowerCase() + " " + row.title.toLowerCase(),
    id: (row.querySelector("a") || {}).hash,
    fields: [...row.cells].map((cell) => cell.textContent.trim()),
    sorts: [...row.cells].map((cell) => (cell.dataset.s === undefined ? null : Number(cell.dataset.s))),
  }));

  function filter() {
    const wanted = new FormData(form);
    const words = String(wanted.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
    let shown = 0;
    for (const entry of rows) {
      const fits = words.every((word) => entry.text.includes(word)) && chosen.every((select) => {
        if (select.name === "outcome") return entry.row.cells[1].dataset.o === select.value;
        return entry.fields[Number(select.dataset.field) + 2] === select.value;
      });
      entry.row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("cell-count").textContent =
      shown === rows.length ? `${shown} cells` : `${shown} of ${rows.length} cells`;
  }

  function sort(column, descending) {
    const order = [...rows].sort((one, other) => {
      const [a, b] = [one.sorts[column], other.sorts[column]];
      if (a === null && b === null) return one.fields[column].localeCompare(other.fields[column]);
      if (a === null || b === null) return a === null ? 1 : -1; // nothing measured: always last
      return descending ? b - a : a - b;
    });
    if (descending && rows.every((entry) => entry.sorts[column] === null)) order.reverse();
    body.append(...order.map((entry) => entry.row));
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = netwarp.h("button", { type: "button", class: "sort" }, head.textContent.trim());
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sort(column, descending);
    });
  });

  // a click anywhere in a row opens the cell; the link in it is what the keyboard reaches
  body.addEventListener("click", (event) => {
    const link = event.target.closest("tr").querySelector("a");
    if (link && !event.target.closest("a") && !String(window.getSelection())) link.click();
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // The cells before and after this one, as the list stands now.
  netwarp.neighbours = function (id) {
    const hash = "#cell=" + encodeURIComponent(id);
    const listed = [...body.rows].filter((row) => !row.hidden && row.querySelector("a"));
    const hashes = listed.map((row) => row.querySelector("a").hash);
    const at = hashes.findIndex((one) => decodeURIComponent(one) === decodeURIComponent(hash));
    return { before: at > 0 ? hashes[at - 1] : null, after: at >= 0 ? hashes[at + 1] || null : null, at, of: hashes.length };
  };
})();
