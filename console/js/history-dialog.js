// What was run, and the texts of closed tabs, with a search box.

import { h, iconButton } from "./dom.js";
import { ago, count, duration, oneLine } from "./format.js";
import { paint } from "./highlight.js";
import { clear, entries } from "./history.js";

/** @typedef {import("./history.js").HistoryEntry} HistoryEntry */
/** @typedef {import("./tabs.js").ClosedTab} ClosedTab */

/**
 * Shows the history; calls `choose` with the text that was picked, `reopen` with a closed tab.
 *
 * @param {ClosedTab[]} closed
 * @param {{ choose: (sql: string) => void, reopen: (tab: ClosedTab) => void }} actions
 */
export function openHistory(closed, { choose, reopen }) {
  const all = entries();
  let isClosed = false;
  const choices = [["Statements", false], ["Closed tabs", true]].map(([label, value]) => h("button", {
    type: "button", class: "quiet", "aria-pressed": String(value === isClosed),
    onclick: () => {
      isClosed = value === true;
      for (const [index, choice] of choices.entries()) choice.setAttribute("aria-pressed", String((index === 1) === isClosed));
      fill();
    },
  }, String(label)));
  const list = h("ul", { class: "history-list" });
  const search = h("input", { type: "search", placeholder: "Search history", "aria-label": "Search history", oninput: () => fill() });
  const dialog = h("dialog", { class: "dialog wide", "aria-label": "History", onclose: () => dialog.remove() },
    h("header", {}, h("h2", {}, "History"), h("span", { class: "segments", role: "group", "aria-label": "What" }, ...choices), search, iconButton("close", "Close", () => dialog.close())),
    list,
    h("footer", {},
      h("span", { class: "muted" }, "Kept in this browser only."),
      h("button", { type: "button", onclick: () => { clear(); dialog.close(); } }, "Clear")),
  );

  function fill() {
    const words = search.value.toLowerCase();
    if (isClosed) {
      const tabs = closed.filter(({ title, sql }) => `${title} ${sql}`.toLowerCase().includes(words));
      list.replaceChildren(...tabs.map((tab) => closedRow(tab, () => { dialog.close(); reopen(tab); })));
      if (tabs.length === 0) list.append(h("li", { class: "empty" }, closed.length === 0 ? "No tab was closed." : "Nothing found."));
      return;
    }
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
 * @param {ClosedTab} tab
 * @param {() => void} pick
 */
function closedRow({ title, sql, at }, pick) {
  const code = h("code", {});
  paint(code, oneLine(sql).slice(0, 400));
  const age = ago(Date.now() - at);
  return h("li", {}, h("button", { type: "button", onclick: pick },
    code, h("span", { class: "facts" }, title, " · closed ", age === "now" ? "just now" : `${age} ago`)));
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
