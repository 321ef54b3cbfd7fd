// The query tabs: their texts live here and in this browser's storage; results are not kept there.

import { load, save } from "./storage.js";

/** `parameters` are the values of `$1`, `$2`, …; `null` is NULL. @typedef {{ id: string, title: string, sql: string, parameters?: (string | null)[] }} Tab */

const FIRST = `-- Ctrl+Enter runs the statement; a selection runs alone.
SELECT 'hello' AS greeting, current_date AS today, 6 * 7 AS answer
`;

export class Tabs extends EventTarget {
  constructor() {
    super();
    /** @type {Tab[]} */
    this.all = load("tabs", []).filter(isTab);
    if (this.all.length === 0) this.all = [{ id: newId(), title: "Query 1", sql: FIRST }];
    const active = load("tab", "");
    this.active = this.all.find((tab) => tab.id === active) ?? first(this.all);
  }

  /** @param {string} id */
  select(id) {
    const tab = this.all.find((candidate) => candidate.id === id);
    if (!tab || tab === this.active) return;
    this.active = tab;
    this.#changed();
  }

  /**
   * @param {string} sql
   * @param {string} [title]
   * @param {(string | null)[]} [parameters]
   */
  open(sql, title, parameters = []) {
    const tab = { id: newId(), title: title ?? this.#freeTitle(), sql, parameters };
    this.all.splice(this.all.indexOf(this.active) + 1, 0, tab);
    this.active = tab;
    this.#changed();
    return tab;
  }

  /** @param {string} id */
  close(id) {
    const index = this.all.findIndex((tab) => tab.id === id);
    if (index < 0) return;
    const [closed] = this.all.splice(index, 1);
    if (this.all.length === 0) this.all = [{ id: newId(), title: "Query 1", sql: "" }];
    if (closed === this.active) this.active = this.all[Math.min(index, this.all.length - 1)] ?? first(this.all);
    this.#changed();
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  rename(id, title) {
    const tab = this.all.find((candidate) => candidate.id === id);
    if (!tab || title.trim() === "") return;
    tab.title = title.trim();
    this.#changed();
  }

  /**
   * Keeps the text of the active tab; listeners are not told.
   *
   * @param {string} sql
   */
  edit(sql) {
    this.active.sql = sql;
    this.#keep();
  }

  /**
   * Keeps the parameters of the active tab; listeners are not told.
   *
   * @param {(string | null)[]} parameters
   */
  setParameters(parameters) {
    this.active.parameters = parameters;
    this.#keep();
  }

  #changed() {
    this.#keep();
    this.dispatchEvent(new Event("change"));
  }

  #keep() {
    save("tabs", this.all);
    save("tab", this.active.id);
  }

  #freeTitle() {
    const taken = new Set(this.all.map((tab) => tab.title));
    let number = 1;
    while (taken.has(`Query ${number}`)) number += 1;
    return `Query ${number}`;
  }
}

function newId() {
  return Math.random().toString(36).slice(2, 10);
}

/**
 * @param {unknown} value
 * @returns {value is Tab}
 */
function isTab(value) {
  const tab = /** @type {Partial<Tab> | null} */ (value);
  return typeof tab?.id === "string" && typeof tab.title === "string" && typeof tab.sql === "string";
}

/** @param {Tab[]} tabs */
function first(tabs) {
  return tabs[0] ?? { id: newId(), title: "Query 1", sql: FIRST };
}
