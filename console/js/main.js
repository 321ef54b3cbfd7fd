// Puts the page together and runs what the editor asks for.

import { ApiError, cluster, clusterDaemon, forgetResult, hiveSessions, me, queries, queryLog, runSql, shapes, status, tables as listTables } from "./api.js";
import { ClusterPage } from "./cluster-page.js";
import { confirmed } from "./confirm.js";
import { h } from "./dom.js";
import { Editor } from "./editor.js";
import { remember } from "./history.js";
import { Home } from "./home.js";
import { Live } from "./live.js";
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
const TABLES_EVERY_MS = 15_000;
/** On their own page tables are looked at more often. */
const TABLES_SHOWN_EVERY_MS = 3000;
const RECENT_IN_LIVE = 60;
const RECENT_MAX = 256;
/** The log on disk is looked at less often. */
const LOG_EVERY_MS = 3000;
const SHAPES_ON_HOME = 20;
const SHAPES_MAX = 200;
const SHAPES_OF_CLUSTER = 50;
/** What an open page may ask for, on average. */
const BYTES_PER_S = 10_000;
const WAIT_MS_MAX = 8000;
const POLLED = /^\/v1\/(status|queries|query-log|shapes|tables|cluster)/;
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
  notify,
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
  refresh: () => {
    logReadAt = -Infinity;
    refreshPage();
  },
  open: (...place) => pages.go("queries", ...place),
  openShape: (sql) => {
    shapesPage.open(sql);
    pages.go("shapes");
  },
});
const shapesPage = new ShapesPage({ openSql, notify, refresh: () => refreshPage() });
const tablesPage = new TablesPage({
  openSql, notify,
  open: (namespace, name) => pages.go("tables", namespace, name),
  close: () => pages.go("tables"),
  refresh: () => {
    tablesReadAt = -Infinity;
    refreshPage();
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
  { name: "home", title: "Home", key: "h", element: home.element, shown: shownPage },
  { name: "sql", title: "SQL", key: "s", element: workbench, shown: () => { shownPage(); editor.load().catch(() => notify("The editor could not be loaded: reload the page")); editor.focus(); } },
  { name: "tables", title: "Tables", key: "t", element: tablesPage.element, shown: (place) => { tablesPage.show(place); tablesReadAt = -Infinity; shownPage(); } },
  { name: "queries", title: "Queries", key: "q", element: queriesPage.element, shown: (place) => { queriesPage.show(place); logReadAt = -Infinity; shownPage(); } },
  { name: "shapes", title: "Shapes", key: "p", element: shapesPage.element, shown: shownPage },
  { name: "cluster", title: "Cluster", key: "c", element: clusterPage.element, shown: (place) => { clusterPage.show(place); shownPage(); } },
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
  refreshPage();
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

async function refreshStatus() {
  try {
    const now = await status(samples.newest);
    if (lastAnswer === null || document.body.classList.contains("lost")) showRole();
    lastAnswer = Date.now();
    document.body.classList.remove("lost");
    top_.show(now);
    samples.add(now);
    pages.offer("cluster", now.cluster !== null);
    if (pages.active?.name === "home") home.showStatus(now, samples);
    if (pages.active?.name === "sql") live.showStatus(now, samples);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    document.body.classList.add("lost");
    top_.showLost(lastAnswer);
  }
}

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

/** When the tables page read its list. */
let tablesReadAt = -Infinity;

/** When the log of queries was read. */
let logReadAt = -Infinity;

/** What each page asks for besides the status. @type {Record<string, () => Promise<void>>} */
const READ = {
  async home() {
    home.showShapes((await shapes(SHAPES_ON_HOME)).shapes);
  },
  async sql() {
    const { running, recent } = await queries(RECENT_IN_LIVE);
    live.showQueries(running, recent);
  },
  async tables() {
    if (performance.now() - tablesReadAt < TABLES_SHOWN_EVERY_MS) return;
    tablesReadAt = performance.now();
    tablesPage.showTables((await listTables()).namespaces);
  },
  async queries() {
    if (queriesPage.isPaused) return;
    const { running, recent } = await queries(RECENT_MAX);
    queriesPage.showQueries(running, recent);
    queriesPage.hive.show(...(await hiveSessions()));
    const filter = queriesPage.logFilter();
    if (filter === null || performance.now() - logReadAt < LOG_EVERY_MS) return;
    logReadAt = performance.now();
    queriesPage.showLog(await queryLog(filter));
  },
  async cluster() {
    const daemon = clusterPage.open;
    const [all, one] = await Promise.all([
      cluster(SHAPES_OF_CLUSTER),
      // One that does not answer is marked so in the list.
      daemon === "" ? null : clusterDaemon(daemon, clusterPage.newest).catch(() => null),
    ]);
    clusterPage.showCluster(all);
    if (one) clusterPage.showDaemon(daemon, one);
  },
  async shapes() {
    const [counted, { running, recent }] = await Promise.all([shapes(SHAPES_MAX), queries(RECENT_MAX)]);
    shapesPage.showShapes(counted.shapes, counted.known);
    shapesPage.showQueries([...running, ...recent]);
  },
};

async function refreshPage() {
  try {
    await READ[pages.active?.name ?? ""]?.();
  } catch (error) {
    // Without a connection the top line says so.
    if (!(error instanceof ApiError)) throw error;
  }
}

function shownPage() {
  refreshStatus();
  refreshPage();
}

/** Asks once a second while the page is in view, and less often where answers are long. */
function poll() {
  let tablesAt = 0;
  let received = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (POLLED.test(new URL(entry.name).pathname)) received += /** @type {PerformanceResourceTiming} */ (entry).transferSize;
    }
  }).observe({ type: "resource" });
  const tick = async () => {
    if (document.visibilityState === "visible") {
      await Promise.all([refreshStatus(), refreshPage()]);
      if (performance.now() - tablesAt > TABLES_EVERY_MS || tablesAt === 0) {
        tablesAt = performance.now();
        tables.refresh();
      }
    }
    const wait = Math.min(Math.max(1000, (received / BYTES_PER_S) * 1000), WAIT_MS_MAX);
    received = 0;
    performance.clearResourceTimings();
    setTimeout(tick, wait);
  };
  tick();
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") refreshStatus();
  });
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

document.getElementById("top")?.append(...top_.parts(pages.nav));
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
poll();
