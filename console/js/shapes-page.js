// Shapes: statements that differ only in their literals, counted together.

import { h, icon, reconcile, setText } from "./dom.js";
import { ago, count, dollars, duration, durationsOf, percent, plural, short, sizesOf } from "./format.js";
import { paint } from "./highlight.js";
import { Listing } from "./listing.js";
import { pathText } from "./paths.js";
import { paintStatement } from "./queries-page.js";
import { matcherOf } from "./shape-text.js";
import { showSql } from "./show-sql.js";
import { isOwn, shapesStatement } from "./statements.js";

/** @typedef {import("./api.js").Shape} Shape */
/** @typedef {import("./api.js").QueryInfo} QueryInfo */

const RECENT_MAX = 12;
/** Columns that are computed in the statement, too. */
const IN_SQL = new Map([["short_path", "short_path_share"], ["reused", "reused_share"]]);

export class ShapesPage {
  /** @type {Shape[]} */
  #shapes = [];
  #open = "";
  /** @type {(sql: string) => boolean} */
  #matches = () => false;

  /** @param {import("./show-sql.js").SqlActions & { refresh: () => void }} actions */
  constructor(actions) {
    this.actions = actions;
    this.known = h("span", { class: "muted tabular" });
    this.listing = new Listing({
      label: "Shapes", key: (/** @type {Shape} */ shape) => shape.sql, open: (shape) => this.open(shape.sql === this.#open ? "" : shape.sql),
      empty: "No statement has ended yet.", columns: columns(), sort: { name: "total_ms", down: true }, sorted: () => this.sql.update(),
    });
    this.sql = showSql("Shapes", () => this.#statement(), actions);
    this.text = h("pre", { class: "statement", tabindex: "0", "aria-label": "Text without literals" });
    this.facts = h("dl", { class: "facts-list" });
    this.recentTitle = h("h3", {}, "Recent");
    this.recent = h("ul", { class: "queries", id: "shape-recent" });
    this.details = h("aside", { class: "page-details", "aria-label": "Shape", hidden: true },
      h("header", {}, h("h2", {}, "Shape"), h("span", { class: "spring" }),
        h("button", { type: "button", class: "icon-button", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.open("") }, icon("close"))),
      this.text, this.facts, this.recentTitle, this.recent);
    this.element = h("main", {
      class: "page split", "aria-label": "Shapes", hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.open(""),
    },
      h("div", { class: "page-main" },
        h("section", { "aria-label": "Shapes" }, h("h2", {}, "Shapes", this.known, h("span", { class: "spring" }), this.sql.button), this.sql.panel, this.listing.element)),
      this.details);
  }

  /**
   * @param {Shape[]} shapes
   * @param {number} known
   */
  showShapes(shapes, known) {
    this.#shapes = shapes.filter((shape) => !isOwn(shape));
    setText(this.known, `${plural(known, "shape")} since the start${known > shapes.length ? `, ${count(shapes.length)} shown` : ""}`);
    this.listing.show(this.#shapes);
    this.#showFacts();
  }

  /** @param {QueryInfo[]} all ended and running */
  showQueries(all) {
    const found = this.#open === "" ? [] : all.filter((query) => this.#matches(query.sql)).slice(0, RECENT_MAX);
    setText(this.recentTitle, found.length === 0 ? "None of the queries remembered is of this shape" : "Recent queries of this shape");
    reconcile(this.recent, found, (query) => String(query.id), (query) => this.#example(query), (element, query) => {
      element.dataset["state"] = query.state;
      setText(/** @type {HTMLElement} */ (element.querySelector(".state")), query.sqlstate ?? duration(query.elapsed_ms));
      setText(/** @type {HTMLElement} */ (element.querySelector(".what")), `${plural(query.rows, "row")} · ${pathText(query.path).toLowerCase()}`);
      setText(/** @type {HTMLElement} */ (element.querySelector(".time")), `${query.user} · ${ago(Date.now() - query.started_unix_ms)}`);
    });
  }

  /**
   * Shows the text of a shape and its recent queries.
   *
   * @param {string} sql `""` for none
   */
  open(sql) {
    this.#open = sql;
    this.#matches = matcherOf(sql);
    this.details.hidden = sql === "";
    paint(this.text, sql);
    this.listing.mark(sql);
    this.#showFacts();
    this.recent.replaceChildren();
    this.actions.refresh();
  }

  /** @param {QueryInfo} query */
  #example(query) {
    const code = h("code", {});
    paint(code, query.sql.replace(/\s+/g, " ").slice(0, 300));
    return h("li", {}, h("button", { type: "button", class: "query", title: `${query.sql}\n\nOpen in SQL editor`, onclick: () => this.actions.openSql(query.sql, `Query ${query.id}`) },
      code, h("span", { class: "facts" }, h("span", { class: "state" }), h("span", { class: "what" }), h("span", { class: "time" }))));
  }

  #showFacts() {
    const shape = this.#shapes.find((candidate) => candidate.sql === this.#open);
    if (!shape) return this.facts.replaceChildren();
    const facts = columns().filter((column) => column.name !== "sql").map((column) => [column.title ?? column.label, factOf(column, shape)]);
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  #statement() {
    const { name, down } = this.listing.sort ?? { name: "total_ms", down: true };
    return shapesStatement(IN_SQL.get(name) ?? name, down);
  }
}

/**
 * A value alone, in a unit of its own.
 *
 * @param {import("./listing.js").Column<Shape>} column
 * @param {Shape} shape
 */
function factOf(column, shape) {
  const inUnit = column.unit?.([Number(column.value(shape))]) ?? String;
  return column.text ? column.text(shape, inUnit) : inUnit(Number(column.value(shape)));
}

/** @returns {import("./listing.js").Column<Shape>[]} */
function columns() {
  const unit = durationsOf;
  return [
    { name: "total_ms", label: "Total", title: "Time of all together", numeric: true, unit, value: (shape) => shape.total_ms },
    { name: "queries", label: "Queries", title: "Statements that ended", numeric: true, value: (shape) => shape.queries, text: (shape) => count(shape.queries) },
    { spare: true, name: "failed", label: "Failed", numeric: true, value: (shape) => shape.failed, text: (shape) => count(shape.failed) },
    { name: "p50_ms", label: "p50", numeric: true, unit, value: (shape) => shape.p50_ms ?? -1, text: (shape, inUnit) => (shape.p50_ms === null ? "–" : inUnit(shape.p50_ms)) },
    { spare: true, name: "p95_ms", label: "p95", numeric: true, unit, value: (shape) => shape.p95_ms ?? -1, text: (shape, inUnit) => (shape.p95_ms === null ? "–" : inUnit(shape.p95_ms)) },
    { name: "p99_ms", label: "p99", numeric: true, unit, value: (shape) => shape.p99_ms ?? -1, text: (shape, inUnit) => (shape.p99_ms === null ? "–" : inUnit(shape.p99_ms)) },
    { spare: true, name: "max_ms", label: "Longest", title: "The longest that was computed", numeric: true, unit, value: (shape) => shape.max_ms },
    { spare: true, name: "short_path", label: "Short path", title: "Share answered without the planner", numeric: true, value: (shape) => shape.short_path / Math.max(shape.queries, 1), text: (shape) => percent(shape.short_path / Math.max(shape.queries, 1)) },
    { spare: true, name: "reused", label: "Reused", title: "Share given the answer of an equal statement; latencies are of the others", numeric: true, value: (shape) => shape.reused / Math.max(shape.queries, 1), text: (shape) => percent(shape.reused / Math.max(shape.queries, 1)) },
    { spare: true, name: "hit_ratio", label: "Hits", title: "Share of chunks that were in memory", numeric: true, value: (shape) => shape.hit_ratio ?? -1, text: (shape) => (shape.hit_ratio === null ? "–" : percent(shape.hit_ratio)) },
    { spare: true, name: "rows", label: "Rows", numeric: true, value: (shape) => shape.rows, text: (shape) => short(shape.rows) },
    { spare: true, name: "bytes_read", label: "Read", title: "Bytes read from storage", numeric: true, value: (shape) => shape.bytes_read, unit: sizesOf, text: (shape, inUnit) => (shape.bytes_read === 0 ? "–" : inUnit(shape.bytes_read)) },
    { spare: true, name: "requests", label: "Requests", title: "Read requests to storage", numeric: true, value: (shape) => shape.requests, text: (shape) => (shape.requests === 0 ? "–" : short(shape.requests)) },
    { spare: true, name: "cost_usd", label: "Cost", title: "Price of the requests to object stores", numeric: true, value: (shape) => shape.cost_usd, text: (shape) => (shape.cost_usd === 0 ? "–" : dollars(shape.cost_usd)) },
    { name: "sql", label: "Statement", wide: true, value: (shape) => shape.sql, paint: paintStatement },
  ];
}
