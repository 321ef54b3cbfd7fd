// The list of past queries, with a search box.

import { h, iconButton } from "./dom.js";
import { ago, count, duration, oneLine } from "./format.js";
import { paint } from "./highlight.js";
import { clear, entries } from "./history.js";

/** @typedef {import("./history.js").HistoryEntry} HistoryEntry */

/**
 * Shows the history; calls `choose` with the text that was picked.
 *
 * @param {(sql: string) => void} choose
 */
export function openHistory(choose) {
  const all = entries();
  const list = h("ul", { class: "history-list" });
  const search = h("input", { type: "search", placeholder: "Search history", "aria-label": "Search history", oninput: () => fill() });
  const dialog = h("dialog", { class: "dialog wide", "aria-label": "History", onclose: () => dialog.remove() },
    h("header", {}, h("h2", {}, "History"), search, iconButton("close", "Close", () => dialog.close())),
    list,
    h("footer", {},
      h("span", { class: "muted" }, "Kept in this browser only."),
      h("button", { type: "button", onclick: () => { clear(); dialog.close(); } }, "Clear")),
  );

  function fill() {
    const words = search.value.toLowerCase();
    const found = all.filter((entry) => entry.sql.toLowerCase().includes(words));
    list.replaceChildren(...found.map((entry) => row(entry, pick)));
    if (found.length === 0) list.append(h("li", { class: "empty" }, all.length === 0 ? "Nothing was run here yet." : "Nothing found."));
  }

  /** @param {string} sql */
  function pick(sql) {
    dialog.close();
    choose(sql);
  }

  fill();
  document.body.append(dialog);
  dialog.showModal();
  search.focus();
}

/**
 * @param {HistoryEntry} entry
 * @param {(sql: string) => void} pick
 */
function row(entry, pick) {
  const code = h("code", {});
  paint(code, oneLine(entry.sql).slice(0, 400));
  const age = ago(Date.now() - entry.at);
  const facts = [age === "now" ? "just now" : `${age} ago`];
  if (entry.error) facts.push(entry.error);
  else {
    if (entry.rows !== null) facts.push(`${count(entry.rows)} rows`);
    if (entry.ms !== null) facts.push(duration(entry.ms));
  }
  return h("li", {}, h("button", { type: "button", onclick: () => pick(entry.sql) },
    code, h("span", { class: entry.error ? "facts bad" : "facts" }, facts.join(" · "))));
}
