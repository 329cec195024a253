// A reader's choices stand in the address after #, so that a link shows the same again:
// #cell=ID&with=ID&from=45&to=75 is a cell; #cells?outcome=FAILED a part of the page and the choices in it.
"use strict";

netwarp.state = (function () {
  const readers = new Map(); // part of the page -> function that takes over choices from the address

  const parse = (text) => Object.fromEntries(new URLSearchParams(text));
  const format = (values) => {
    const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
    return kept.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  };

  // {part, values} of the address as it stands.
  function now() {
    const match = /^#([A-Za-z0-9_-]+)\?(.*)$/.exec(location.hash);
    return match ? { part: match[1], values: parse(match[2]) } : null;
  }

  // The address says what was chosen in a part of the page; the browser's Back does not step through every choice.
  function write(part, values) {
    const text = format(values);
    history.replaceState(history.state, "", "#" + part + (text ? "?" + text : ""));
  }

  // take(values): called now if the address is about this part, and whenever it becomes so.
  function on(part, take) {
    readers.set(part, take);
    const found = now();
    if (found && found.part === part) take(found.values);
  }

  window.addEventListener("hashchange", () => {
    const found = now();
    if (!found || !readers.has(found.part)) return;
    readers.get(found.part)(found.values);
  });

  // The cell in the address: {id, with, from, to}, null if there is none.
  function cell() {
    const match = /^#cell=([^&]+)(?:&(.*))?$/.exec(location.hash);
    if (!match) return null;
    try {
      return { ...parse(match[2] || ""), id: decodeURIComponent(match[1]) };
    } catch {
      return null;
    }
  }
  const cellHash = ({ id, ...more }) => ["#cell=" + encodeURIComponent(id), format(more)].filter(Boolean).join("&");
  const writeCell = (values) => history.replaceState(history.state, "", cellHash(values));

  return { on, write, now, cell, cellHash, writeCell };
})();
