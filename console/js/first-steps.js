// What to do first on a server without tables.

import { h } from "./dom.js";

const SAMPLE = `CREATE TABLE first_report (day date, account_id bigint, impressions bigint, clicks bigint)
PARTITIONED BY (month(day)) ORDER BY (account_id, day);

INSERT INTO first_report
SELECT DATE '2025-12-31' + value, value % 12, value * 1000, value * 21
FROM generate_series(1, 366) AS s(value);

SELECT account_id, sum(impressions) AS impressions, sum(clicks) AS clicks
FROM first_report
WHERE day >= DATE '2026-06-01'
GROUP BY account_id
ORDER BY account_id;
`;

/** @param {import("./show-sql.js").SqlActions} actions */
export function firstSteps(actions) {
  const host = location.hostname;
  return h("section", { class: "card wide two first-steps", "aria-label": "First steps", hidden: true },
    h("h2", {}, "First steps"),
    h("p", {}, "This server has no tables yet."),
    h("ol", {},
      h("li", {}, "Make a small table, fill it and run a report: ", h("button", { type: "button", onclick: () => actions.openSql(SAMPLE, "First report") }, "Open in SQL editor"), " then choose ", h("b", {}, "Run all"), "."),
      h("li", {}, "Load a file of your own, CSV, TSV, JSON or ORC: ", h("code", {}, "stoa load data.csv --into my_table --create")),
      h("li", {}, "Connect with PostgreSQL's clients, by default on port 5433: ", h("code", {}, `psql -h ${host} -p 5433`))));
}
