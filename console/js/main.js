// Puts the page together and runs what the editor asks for.

import { ApiError, forgetResult, me, runSql } from "./api.js";
import { ClusterPage } from "./cluster-page.js";
import { confirmed } from "./confirm.js";
import { h } from "./dom.js";
import { Editor } from "./editor.js";
import { remember } from "./history.js";
import { Home } from "./home.js";
import { Live } from "./live.js";
import { LiveStream } from "./live-stream.js";
import { Names } from "./names.js";
import { Pages } from "./pages.js";
import { QueriesPage } from "./queries-page.js";
import { codeUnits, Results } from "./results.js";
import { Samples } from "./samples.js";
import { ShapesPage } from "./shapes-page.js";
import { qualified } from "./sql-names.js";
import { TablesPage } from "./tables-page.js";
import { Tables } from "./tables.js";
import { TabSessions } from "./tab-sessions.js";
import { Tabs } from "./tabs.js";
import { openHelp, Top } from "./top.js";

/** @typedef {import("./results.js").View} View */
/** @typedef {import("./api.js").Statement} Statement */

const FIRST_ROWS = 10_000;
const EXPLAIN = "EXPLAIN ANALYZE ";
const TABLES_EVERY_S = 15;
/** On their own page tables are looked at more often. */
const TABLES_SHOWN_EVERY_S = 3;
const RECENT_IN_LIVE = 60;
const RECENT_MAX = 256;
const SHAPES_ON_HOME = 20;
const SHAPES_MAX = 1000;
const SHAPES_OF_CLUSTER = 50;
/** How long the second key after `g` may take. */
const SECOND_KEY_MS = 1500;

/** What each tab shows, and what it waits for. */
const views = /** @type {Map<string, View>} */ (new Map());
const waiting = /** @type {Map<string, AbortController>} */ (new Map());

const toast = h("div", { class: "toast", role: "status", "aria-live": "polite" });
const tabs = new Tabs();
const sessions = new TabSessions();
const names = new Names();
const top_ = new Top();
const results = new Results({
  goTo: (index) => editor.goTo(index),
  notify, confirm: confirmed,
});
const editor = new Editor(tabs, {
  run: (statement, offset) => run(statement, offset),
  explain: ({ sql, parameters }, offset) => run({ sql: EXPLAIN + withoutEnd(sql), parameters }, offset - EXPLAIN.length),
  cancel: () => waiting.get(tabs.active.id)?.abort(),
  close: closeTab,
  notify, names,
});
const tables = new Tables({
  preview,
  insert: (text) => editor.insert(text),
  details: (namespace, name) => pages.go("tables", namespace, name),
  changed: () => names.forget(),
  empty: (isEmpty) => home.showEmpty(isEmpty),
});
const live = new Live({
  open: (sql) => {
    tabs.open(sql);
    editor.focus();
  },
  openSql, notify,
});
const samples = new Samples();
const home = new Home({
  openSql, notify,
  openShape: (sql) => {
    shapesPage.open(sql);
    pages.go("shapes");
  },
});
const queriesPage = new QueriesPage({
  openSql, notify,
  refresh: () => stream.begin(),
  open: (...place) => pages.go("queries", ...place),
  openShape: (sql) => {
    shapesPage.open(sql);
    pages.go("shapes");
  },
});
const shapesPage = new ShapesPage({ openSql, notify, refresh: () => shapesPage.showQueries(remembered) });
const tablesPage = new TablesPage({
  openSql, notify,
  open: (namespace, name) => pages.go("tables", namespace, name),
  close: () => pages.go("tables"),
  refresh: () => {
    stream.begin();
    tables.refresh();
  },
  preview: (namespace, name) => {
    preview(namespace, name);
    pages.go("sql");
  },
});
const clusterPage = new ClusterPage({
  openSql, notify,
  open: (daemon) => pages.go("cluster", ...(daemon === clusterPage.open ? [] : [daemon])),
  close: () => pages.go("cluster"),
});
const workbench = h("div", { class: "app", hidden: true });
const pages = new Pages([
  { name: "home", title: "Home", key: "h", element: home.element, shown: () => stream.begin() },
  { name: "sql", title: "SQL", key: "s", element: workbench, shown: () => { stream.begin(); editor.load().catch(() => notify("The editor could not be loaded: reload the page")); editor.focus(); } },
  { name: "tables", title: "Tables", key: "t", element: tablesPage.element, shown: (place) => { tablesPage.show(place); stream.begin(); } },
  { name: "queries", title: "Queries", key: "q", element: queriesPage.element, shown: (place) => { queriesPage.show(place); stream.begin(); } },
  { name: "shapes", title: "Shapes", key: "p", element: shapesPage.element, shown: () => stream.begin() },
  { name: "cluster", title: "Cluster", key: "c", element: clusterPage.element, shown: (place) => { clusterPage.show(place); stream.begin(); } },
]);

/**
 * Runs a statement that shows the first rows of a table, in a tab of its own.
 *
 * @param {string} namespace
 * @param {string} name
 */
function preview(namespace, name) {
  const sql = `SELECT *\nFROM ${qualified(namespace, name)}\nLIMIT 100`;
  tabs.open(sql, name);
  run({ sql, parameters: [] }, 0);
}

/**
 * Shows a statement in the editor; it does not run by itself.
 *
 * @param {string} sql
 * @param {string} title
 * @param {(string | null)[]} [parameters]
 */
function openSql(sql, title, parameters) {
  tabs.open(sql, title, parameters);
  pages.go("sql");
}

/**
 * Runs a statement for the active tab.
 *
 * @param {Statement} statement
 * @param {number} offset where it begins in the editor
 */
async function run(statement, offset) {
  const { sql } = statement;
  const tab = tabs.active;
  waiting.get(tab.id)?.abort();
  const controller = new AbortController();
  const since = performance.now();
  waiting.set(tab.id, controller);
  editor.markError(null);
  show(tab.id, { kind: "running", sql, since });
  /** @type {View} */
  let view;
  try {
    const result = await runInSession(tab.id, statement, controller.signal);
    view = { kind: "result", statement, result, title: tab.title };
    keep(sql, result.elapsed_ms, result.row_count, null);
    if (result.command !== undefined) tables.refresh();
  } catch (error) {
    const ms = performance.now() - since;
    view = viewOfError(error, sql, offset, ms);
    if (view.kind === "error") keep(sql, ms, null, view.error.code);
  }
  if (waiting.get(tab.id) !== controller) return;
  waiting.delete(tab.id);
  show(tab.id, view);
  if (view.kind === "error" && view.error.position !== null && tab === tabs.active) {
    editor.markError(offset + codeUnits(sql, view.error.position), view.error.message);
  }
}

/**
 * @param {string} tab
 * @param {Statement} statement
 * @param {AbortSignal} signal
 */
async function runInSession(tab, statement, signal) {
  const options = { maxRows: FIRST_ROWS, signal, keep: true };
  try {
    return await runSql(statement, { ...options, session: await sessions.of(tab) });
  } catch (error) {
    // A session that is gone has run nothing.
    if (!(error instanceof ApiError && error.body.code === "08003")) throw error;
    sessions.forget(tab);
    notify("A new session: settings and temporary tables of the old one are gone");
    return runSql(statement, { ...options, session: await sessions.of(tab) });
  }
}

/**
 * What a tab holds on the server goes with it; its text is kept.
 *
 * @param {string} id
 */
function closeTab(id) {
  const closed = tabs.close(id);
  if (!closed) return;
  waiting.get(id)?.abort();
  waiting.delete(id);
  forgetView(id);
  sessions.end(id);
  editor.forget(id);
  if (closed.sql.trim() !== "") notify(`“${closed.title}” closed`, { label: "Undo", act: () => openSql(closed.sql, closed.title, closed.parameters) });
}

/** @param {string} tab whose rows are not shown any more */
function forgetView(tab) {
  const view = views.get(tab);
  const kept = view?.kind === "result" ? view.result.result : undefined;
  if (kept) forgetResult(kept.id);
  views.delete(tab);
}

/**
 * @param {unknown} error
 * @param {string} sql
 * @param {number} offset
 * @param {number} ms
 * @returns {View}
 */
function viewOfError(error, sql, offset, ms) {
  if (error instanceof DOMException && error.name === "AbortError") return { kind: "cancelled", ms };
  if (error instanceof ApiError && error.body.kind === "cancelled") return { kind: "cancelled", ms };
  if (error instanceof ApiError) return { kind: "error", sql, offset, error: error.body, ms };
  throw error;
}

/**
 * @param {string} tab
 * @param {View} view
 */
function show(tab, view) {
  forgetView(tab);
  views.set(tab, view);
  if (tab === tabs.active.id) showActive();
}

function showActive() {
  const view = views.get(tabs.active.id) ?? { kind: "nothing" };
  results.show(view);
  editor.setRunning(view.kind === "running");
}

/**
 * @param {string} sql
 * @param {number} ms
 * @param {number | null} rows
 * @param {string | null} error
 */
function keep(sql, ms, rows, error) {
  remember({ sql: sql.startsWith(EXPLAIN) ? sql.slice(EXPLAIN.length) : sql, at: Date.now(), ms, rows, error });
}

/** @param {string} sql */
function withoutEnd(sql) {
  return sql.replace(/[\s;]+$/, "");
}

let toastTimer = 0;

/**
 * @param {string} text
 * @param {{ label: string, act: () => void }} [action] a button beside it
 */
function notify(text, action) {
  const close = () => toast.classList.remove("shown");
  toast.replaceChildren(text, ...(action ? [h("button", { type: "button", class: "link", onclick: () => { close(); action.act(); } }, action.label)] : []));
  toast.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(close, action ? 8000 : 2600);
}

/** When the server last answered, ms since 1970. @type {number | null} */
let lastAnswer = null;

/** Queries that run and that ended, for pages that choose among them. @type {import("./api.js").QueryInfo[]} */
let remembered = [];

const stream = new LiveStream({
  address: () => `/v1/live?${new URLSearchParams(topics())}`,
  changed: (topic, document) => {
    lastAnswer = Date.now();
    // What the role may not see is not shown; the page says so.
    if (document.error === undefined) SEEN[topic]?.(document);
  },
  begun: () => {
    document.body.classList.remove("lost");
    showRole();
  },
  lost: () => {
    document.body.classList.add("lost");
    top_.showLost(lastAnswer);
  },
});

/** What the page in view shows, as parameters of the stream. @returns {Record<string, string>} */
function topics() {
  const page = pages.active?.name ?? "";
  const logged = page === "queries" ? queriesPage.logFilter() : null;
  /** @type {Record<string, Record<string, string | number>>} */
  const of = {
    home: { shapes: SHAPES_ON_HOME },
    sql: { queries: RECENT_IN_LIVE },
    queries: queriesPage.isPaused ? {} : { queries: RECENT_MAX, hive: "true", ...(logged === null ? {} : { log: JSON.stringify(logged) }) },
    cluster: { cluster: SHAPES_OF_CLUSTER, ...(clusterPage.open === "" ? {} : { daemon: clusterPage.open, daemon_since: clusterPage.newest }) },
    shapes: { shapes: SHAPES_MAX, queries: RECENT_MAX },
  };
  const shared = { status: samples.newest, tables: page === "tables" ? TABLES_SHOWN_EVERY_S : TABLES_EVERY_S };
  return Object.fromEntries(Object.entries({ ...shared, ...of[page] }).map(([name, value]) => [name, String(value)]));
}

/** What to do with each topic's document. @type {Record<string, (document: any) => void>} */
const SEEN = {
  status(now) {
    top_.show(now);
    samples.add(now);
    pages.offer("cluster", now.cluster !== null);
    if (pages.active?.name === "home") home.showStatus(now, samples);
    if (pages.active?.name === "sql") live.showStatus(now, samples);
  },
  queries({ running, recent }) {
    remembered = [...running, ...recent];
    if (pages.active?.name === "sql") live.showQueries(running, recent);
    if (pages.active?.name === "queries" && !queriesPage.isPaused) queriesPage.showQueries(running, recent);
    if (pages.active?.name === "shapes") shapesPage.showQueries(remembered);
  },
  shapes({ shapes, known }) {
    if (pages.active?.name === "home") home.showShapes(shapes);
    else shapesPage.showShapes(shapes, known);
  },
  tables({ namespaces }) {
    tables.show(namespaces);
    if (pages.active?.name === "tables") tablesPage.showTables(namespaces);
  },
  cluster(all) {
    clusterPage.showCluster(all);
  },
  daemon(one) {
    clusterPage.showDaemon(clusterPage.open, one);
  },
  hive({ sessions: open, operations }) {
    queriesPage.hive.show(open, operations);
  },
  log({ queries }) {
    queriesPage.showLog(queries);
  },
};

/** Who asks; asked for anew after the connection was lost, as another one may have signed in. */
async function showRole() {
  try {
    const who = await me();
    top_.showRole(who);
    home.showRole(who);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

/** Walks through the three places where the keyboard works. */
function nextPlace() {
  const places = [
    /** @type {HTMLElement | null} */ (tables.tree.querySelector("[tabindex='0']")),
    /** @type {HTMLElement | null} */ (editor.area),
    results.grid.scroller.isConnected ? results.grid.scroller : null,
  ].filter((place) => place !== null);
  const current = places.findIndex((place) => place.contains(document.activeElement) || place.parentElement?.contains(document.activeElement));
  places[(current + 1) % places.length]?.focus();
}

/** When `g` was pressed, whose second key names a page. */
let goAt = -Infinity;

document.addEventListener("keydown", (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  const typing = event.target instanceof HTMLInputElement || (event.target instanceof HTMLElement && event.target.isContentEditable);
  const follows = event.timeStamp - goAt < SECOND_KEY_MS;
  goAt = event.key === "g" && plain && !typing ? event.timeStamp : -Infinity;
  if (follows && plain && !typing && pages.goByKey(event.key)) goAt = -Infinity;
  else if (event.key === "F6") nextPlace();
  else if (event.key === "/" && !typing && plain) findTable();
  else if (event.key === "?" && !typing) openHelp();
  else return;
  event.preventDefault();
});

function findTable() {
  pages.go("sql");
  tables.filter.focus();
}

/** A link may carry a query; it is shown, never run by itself. */
function openLinked() {
  const linked = new URLSearchParams(location.hash.slice(1));
  const sql = linked.get("sql");
  if (!sql) return;
  history.replaceState(null, "", location.pathname);
  tabs.open(sql, "Linked query", linkedParameters(linked.get("parameters")));
  pages.go("sql");
}

/**
 * @param {string | null} text
 * @returns {(string | null)[]} none where the link is not one of ours
 */
function linkedParameters(text) {
  try {
    const values = JSON.parse(text ?? "[]");
    return Array.isArray(values) ? values.map((value) => (value === null ? null : String(value))) : [];
  } catch {
    return [];
  }
}

/** The bar between editor and results can be moved. */
function splitter() {
  const bar = h("div", { class: "splitter", role: "separator", tabindex: "0", "aria-orientation": "horizontal", "aria-label": "Height of the editor", "aria-valuemin": "120", "aria-valuenow": "300" });
  const set = (/** @type {number} */ px) => {
    const height = Math.min(Math.max(px, 120), Math.max(120, innerHeight - 200));
    editor.element.style.height = `${height}px`;
    bar.setAttribute("aria-valuenow", String(Math.round(height)));
  };
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    const start = editor.element.offsetHeight - event.clientY;
    const move = (/** @type {PointerEvent} */ moved) => set(start + moved.clientY);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", () => bar.removeEventListener("pointermove", move), { once: true });
  });
  bar.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 24 : event.key === "ArrowUp" ? -24 : 0;
    if (step === 0) return;
    set(editor.element.offsetHeight + step);
    event.preventDefault();
  });
  return bar;
}

document.getElementById("top")?.replaceChildren(...top_.parts(pages.nav));
workbench.append(
  h("nav", { class: "side", id: "side", "aria-label": "Tables" }, ...tables.parts),
  h("main", { class: "work", id: "work", "aria-label": "Queries and results" }, editor.element, splitter(), results.element),
  h("aside", { class: "live", id: "live", "aria-label": "Activity" }, ...live.parts));
document.body.append(...pages.all.map((page) => page.element), pages.unknown, toast);
tabs.addEventListener("change", showActive);
tabs.addEventListener("unsaved", () => notify("This browser does not keep the text: its storage is full or switched off"));
addEventListener("pagehide", (event) => {
  if (!event.persisted) for (const tab of [...views.keys()]) forgetView(tab);
});
addEventListener("hashchange", openLinked);
openLinked();
showActive();
pages.offer("cluster", false);
pages.start();
// Also where the address names no page.
stream.begin();
