// The query tabs. Each has an entry of its own in this browser's storage, so that windows do not overwrite each
// other's texts; what one window changes, the others show. Which tab is shown is of each window. Texts of closed tabs
// are kept, too.

import { load, remove, save, storedNames } from "./storage.js";

/**
 * `parameters` are the values of `$1`, `$2`, …; `null` is NULL. Tabs are ordered by `place`.
 *
 * @typedef {{ id: string, title: string, sql: string, parameters?: (string | null)[], place: number }} Tab
 * @typedef {{ title: string, sql: string, parameters?: (string | null)[], at: number }} ClosedTab
 */

const FIRST = `-- Ctrl+Enter runs the statement at the caret; a selection runs alone.
SELECT 'hello' AS greeting, current_date AS today, 6 * 7 AS answer
`;
const PREFIX = "tab.";
const CLOSED_MAX = 50;

/** Tells listeners of `change`, and once of `unsaved`: the browser does not keep texts. */
export class Tabs extends EventTarget {
  #isUnsaved = false;

  constructor() {
    super();
    this.#takeOldList();
    /** @type {Tab[]} */
    this.all = storedNames(PREFIX).flatMap((name) => {
      const tab = load(name, /** @type {unknown} */ (null));
      return isTab(tab) ? [{ ...tab, id: name.slice(PREFIX.length) }] : [];
    });
    this.#sort();
    if (this.all.length === 0) this.all = [{ id: newId(), title: "Query 1", sql: FIRST, place: 1 }];
    const active = load("tab", "", sessionStorageOrNone()) || load("tab", "");
    this.active = this.all.find((tab) => tab.id === active) ?? first(this.all);
    addEventListener("storage", (event) => this.#changedElsewhere(event));
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
    const index = this.all.indexOf(this.active);
    const next = this.all[index + 1];
    const place = next ? (this.active.place + next.place) / 2 : this.active.place + 1;
    const tab = { id: newId(), title: title ?? this.#freeTitle(), sql, parameters, place };
    this.all.splice(index + 1, 0, tab);
    this.active = tab;
    this.#keep(tab);
    this.#changed();
    return tab;
  }

  /**
   * @param {string} id
   * @returns {ClosedTab | null}
   */
  close(id) {
    const index = this.all.findIndex((tab) => tab.id === id);
    const [closed] = index < 0 ? [] : this.all.splice(index, 1);
    if (!closed) return null;
    const { title, sql, parameters = [] } = closed;
    const kept = { title, sql, parameters, at: Date.now() };
    if (sql.trim() !== "") save("closed", [kept, ...this.closed()].slice(0, CLOSED_MAX));
    remove(PREFIX + id);
    if (this.all.length === 0) this.all = [{ id: newId(), title: "Query 1", sql: "", place: 1 }];
    if (closed === this.active) this.active = this.all[Math.min(index, this.all.length - 1)] ?? first(this.all);
    this.#changed();
    return kept;
  }

  /** @returns {ClosedTab[]} the one closed last first */
  closed() {
    const all = load("closed", /** @type {ClosedTab[]} */ ([]));
    return Array.isArray(all) ? all.filter((tab) => typeof tab?.sql === "string" && typeof tab.title === "string") : [];
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  rename(id, title) {
    const tab = this.all.find((candidate) => candidate.id === id);
    if (!tab || title.trim() === "") return;
    tab.title = title.trim();
    this.#keep(tab);
    this.#changed();
  }

  /**
   * Keeps the text of the active tab; listeners are not told.
   *
   * @param {string} sql
   */
  edit(sql) {
    if (sql === this.active.sql) return;
    this.active.sql = sql;
    this.#keep(this.active);
  }

  /**
   * Keeps the parameters of the active tab; listeners are not told.
   *
   * @param {(string | null)[]} parameters
   */
  setParameters(parameters) {
    this.active.parameters = parameters;
    this.#keep(this.active);
  }

  #changed() {
    save("tab", this.active.id, sessionStorageOrNone());
    save("tab", this.active.id);
    this.dispatchEvent(new Event("change"));
  }

  /** @param {Tab} tab */
  #keep({ id, ...tab }) {
    const isSaved = save(PREFIX + id, tab);
    if (!isSaved && !this.#isUnsaved) this.dispatchEvent(new Event("unsaved"));
    this.#isUnsaved = !isSaved;
  }

  #sort() {
    this.all.sort((a, b) => a.place - b.place || a.id.localeCompare(b.id));
  }

  /**
   * Another window has changed, opened or closed a tab. One that is shown here stays here.
   *
   * @param {StorageEvent} event
   */
  #changedElsewhere({ key, newValue }) {
    const id = key?.startsWith(`stoa.${PREFIX}`) ? key.slice(`stoa.${PREFIX}`.length) : "";
    if (id === "") return;
    const here = this.all.find((tab) => tab.id === id);
    const there = newValue === null ? null : load(PREFIX + id, /** @type {unknown} */ (null));
    if (isTab(there)) {
      if (here) Object.assign(here, there);
      else this.all.push({ ...there, id });
    } else if (here && here !== this.active) {
      this.all = this.all.filter((tab) => tab !== here);
    } else {
      return;
    }
    this.#sort();
    this.dispatchEvent(new Event("change"));
  }

  /** Tabs were once kept in one list. */
  #takeOldList() {
    const old = load("tabs", /** @type {unknown} */ (null));
    if (!Array.isArray(old)) return;
    for (const [place, { id, ...tab }] of old.filter((tab) => isTab({ place: 0, ...tab })).entries()) save(PREFIX + id, { ...tab, place });
    remove("tabs");
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

/** This window's own storage, where it is not switched off. */
function sessionStorageOrNone() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

/**
 * @param {unknown} value
 * @returns {value is Omit<Tab, "id">}
 */
function isTab(value) {
  const tab = /** @type {Partial<Tab> | null} */ (value);
  return typeof tab?.title === "string" && typeof tab.sql === "string" && typeof tab.place === "number";
}

/** @param {Tab[]} tabs */
function first(tabs) {
  return tabs[0] ?? { id: newId(), title: "Query 1", sql: FIRST, place: 1 };
}
