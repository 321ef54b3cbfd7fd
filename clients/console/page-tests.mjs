// The pages beside the editor: home, tables, queries, shapes; and what holds for all of them.

import assert from "node:assert/strict";

import { lowestContrast } from "./contrast.mjs";
import { cell, crowd, events, figure, go, json, killAll, post, text, until, url, write } from "./harness.mjs";
import { openHiveSession } from "./hive-client.mjs";

export const pageTests = {
  async "opens, and asks nobody but the server"(page) {
    assert.equal(await page.title(), "SQL · Stoa");
    await page.locator("#live").getByText("Queries per second").waitFor();
    await page.goto("about:blank");
    await page.goto(url);
    await page.getByRole("main", { name: "Home" }).getByText("Queries per second").waitFor();
  },

  async "shows at home how the server is"(page) {
    await post("INSERT INTO console_fresh VALUES (1), (2), (3)");
    for (let account = 0; account < 8; account += 1) await post(`SELECT sum(clicks) FROM console_report WHERE account_id = ${account}`);
    await go(page, "Home");
    const shown = async (name) => figure(page, name).innerText();
    await until("reports are counted", async () => Number((await shown("answered")).replaceAll(",", "")) >= 1);
    const status = await json("v1/status");
    assert.ok(status.cache.bytes > 0 && status.cache.reports_answered > 0, JSON.stringify(status.cache));
    for (const [name, wanted] of [["hit-ratio", /^[\d.]+ %$/], ["cache-bytes", /of .*iB$/], ["computing", new RegExp(`^0 of ${status.executors.slots}$`)], ["waiting", /^0$/], ["p99", /\d m?s$/], ["log", /segment/], ["running", /^\d+$/]]) {
      await until(`${name} is ${wanted}`, async () => wanted.test(await shown(name)));
    }
    // They are fresh for half a minute, whenever this machine comes to look.
    await until("fresh rows are shown", async () => {
      if (/console_fresh \d/.test(await shown("fresh-tables"))) return true;
      await post("INSERT INTO console_fresh VALUES (4)");
      return false;
    });
    // A line, or a dot where there is one sample only.
    for (const name of ["Rate", "Cache", "Ingest", "Executors", "Latency"]) {
      const card = page.getByRole("region", { name: name === "Rate" ? "Queries per second" : name, exact: true }).and(page.locator(".home .card"));
      await card.locator(".chart path, .chart circle").first().waitFor({ state: "attached" });
    }
    assert.match(await page.locator(".top-shapes").innerText(), /console_report/);
  },

  async "shows the daemons of a cluster, and which of them need somebody"(page) {
    const home = page.getByRole("main", { name: "Home" });
    const card = home.getByRole("region", { name: "Cluster", exact: true });
    await go(page, "Home");
    await home.getByText("Queries per second").waitFor();
    assert.equal(await card.isVisible(), false, "a server alone has no cluster");
    assert.equal(await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Cluster" }).isVisible(), false);
    const daemon = (id, more) => ({
      daemon: id, host: "one", state: "up", is_this: false, is_reached: true, incarnation: 1, joined_unix_ms: Date.now() - 9000, state_since_unix_ms: Date.now() - 9000,
      peer_address: "one:1", pg_address: "one:5433", http_address: "one:15002", flight_address: "one:15003", zone: "", build: "stoa 0.1.0",
      executors: 2, cache_bytes: 1, calls: 1, calls_failed: 0, calls_in_flight: 0, round_trip_us: 250, ...more,
    });
    await page.route("**/v1/live?*", async (route) => {
      const status = await json("v1/status");
      status.cluster = { epoch: 7, exact: true, up: 2, logs: 3, logs_orphaned: 1, takeovers: 0, copied_rows: 1234, copied_bytes: 1, shipping_bytes: 1, reports_forwarded: 1, reports_hedged: 0, reports_for_others: 1, statements_distributed: 0, statements_distributed_failed: 0, statements_for_others: 0 };
      status.daemons = [daemon("00000000000000aa", { is_this: true }), daemon("00000000000000bb", { host: "two", http_address: "two:15002" }), daemon("00000000000000cc", { host: "three", state: "dead", is_reached: false })];
      await route.fulfill(events({ status }));
    });
    // Another page wants another stream.
    await go(page, "Tables");
    await go(page, "Home");
    await card.waitFor();
    const lines = await card.locator(".daemons li").allInnerTexts();
    assert.equal(lines.length, 3);
    assert.match(lines[0], /one 00000000 \(this one\).*up/s);
    assert.match(lines[1], /three 00000000.*dead/s);
    assert.match(lines[2], /two 00000000.*answers in/s);
    assert.equal(await card.locator(".daemons .state.bad").innerText(), "dead");
    assert.deepEqual(await card.locator(".daemons a[href]").evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["http://two:15002/"]);
    assert.equal(await figure(page, "orphaned").innerText(), "1");
    assert.ok(await figure(page, "orphaned").evaluate((place) => place.classList.contains("bad")));
    await card.getByRole("button", { name: "Show SQL" }).press("Enter");
    assert.ok((await post(await card.locator(".sql-panel pre").innerText())).columns.length > 0);
    await page.unroute("**/v1/live?*");
    await until("the card goes", async () => !(await card.isVisible()));
  },

  async "walks from page to page by link, key and history"(page) {
    await go(page, "Queries");
    assert.match(page.url(), /#\/queries$/);
    await page.reload();
    await page.getByRole("main", { name: "Queries", exact: true }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Queries" }).getAttribute("aria-current"), "page");
    for (const [key, name] of [["h", "Home"], ["t", "Tables"], ["p", "Shapes"], ["q", "Queries"]]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("main", { name, exact: true }).waitFor();
    }
    await page.goBack();
    await page.getByRole("main", { name: "Shapes" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.locator("#sql:focus").waitFor();
    await write(page, "");
    await page.keyboard.type("gh");
    assert.equal(await text(page), "gh", "typing goes nowhere");
  },

  async "shows the SQL behind its numbers, which runs"(page) {
    let seen = 0;
    for (const title of ["Home", "Queries", "Shapes"]) {
      await go(page, title);
      const main = page.getByRole("main", { name: title, exact: true });
      const closed = main.getByRole("button", { name: "Show SQL" });
      while ((await closed.count()) > 0) await closed.first().press("Enter");
      for (const panel of await main.locator("section:not([hidden]) .sql-panel").all()) {
        const sql = await panel.locator("pre").innerText();
        assert.match(sql, /FROM system\./);
        const { columns } = await post(sql);
        assert.ok(columns.length > 0);
        seen += 1;
      }
      assert.equal(await main.getByRole("button", { name: "Hide SQL" }).count(), await main.locator("section:not([hidden]) .sql-panel").count());
    }
    assert.ok(seen >= 10, `${seen} statements`);
    await go(page, "Tables");
    await page.getByRole("grid", { name: "Tables" }).locator("tbody tr", { hasText: "console_report" }).click();
    const table = page.getByRole("complementary", { name: "Table" });
    for (const [section, wanted] of [["Overview", "DESCRIBE EXTENDED"], ["Files", "SHOW FILES FROM"], ["Snapshots", "SHOW SNAPSHOTS FROM"]]) {
      await table.getByRole("button", { name: section, exact: true }).click();
      await table.getByRole("button", { name: "Show SQL" }).click();
      const sql = await table.locator(".sql-panel pre").innerText();
      assert.equal(sql, `${wanted} console_report`);
      assert.ok((await post(sql)).rows.length > 0);
    }
    await page.getByRole("main", { name: "Tables" }).getByRole("button", { name: "Show SQL" }).click();
    assert.ok((await post(await page.locator(".page-main .sql-panel:visible pre").innerText())).rows.some((row) => row[1] === "console_report"));
    await go(page, "Shapes");
    await page.getByRole("main", { name: "Shapes" }).getByRole("button", { name: "Open in SQL editor" }).click();
    assert.match(await text(page), /FROM system\.query_shapes/);
    assert.equal(await page.locator(".tab.active").innerText(), "Shapes");
    await page.press("#sql", "Control+Enter");
    await cell(page, 0, 0).waitFor();
    assert.match(await page.locator(".grid-head").innerText(), /p99_ms/);
  },

  async "gives the same numbers in SQL"(page) {
    await post("SELECT sum(clicks) FROM console_report WHERE account_id = 3");
    await go(page, "Shapes");
    const row = page.getByRole("grid", { name: "Shapes" }).locator("tbody tr", { hasText: "SELECT sum(clicks) FROM console_report WHERE account_id = $L0i" });
    await row.waitFor();
    await until("page and SQL agree", async () => {
      const { rows } = await post("SELECT queries, failed FROM system.query_shapes WHERE sql = 'SELECT sum(clicks) FROM console_report WHERE account_id = $L0i'");
      return String((await row.locator("td").allInnerTexts()).slice(1, 3)) === String(rows[0]);
    });
  },

  async "counts statements by shape, sorts them and opens examples"(page) {
    for (const day of ["2024-05-01", "2024-06-01"]) await post(`SELECT count(*), 'it''s' AS text FROM console_report WHERE day = DATE '${day}' AND impressions > 1.5;`);
    await go(page, "Shapes");
    const grid = page.getByRole("grid", { name: "Shapes" });
    const row = grid.locator("tbody tr", { hasText: "day = $L" });
    await row.click();
    const details = page.getByRole("complementary", { name: "Shape" });
    assert.equal(await details.locator("pre").innerText(), "SELECT count(*), $L0s AS text FROM console_report WHERE day = $L1d AND impressions > $L2n");
    const examples = details.locator("#shape-recent li");
    await examples.nth(1).waitFor();
    assert.equal(await examples.count(), 2);
    for (const column of ["Queries", "p95", "Short path"]) {
      const head = grid.getByRole("columnheader", { name: column });
      await head.getByRole("button").click();
      assert.equal(await head.getAttribute("aria-sort"), "descending");
    }
    await grid.getByRole("columnheader", { name: "Queries" }).getByRole("button").press("Enter");
    const counts = (await grid.locator("tbody tr td:nth-child(2)").allInnerTexts()).map((text) => Number(text.replaceAll(",", "")));
    assert.deepEqual(counts, counts.toSorted((a, b) => b - a));
    await page.getByRole("button", { name: "Show SQL" }).and(page.locator(":visible")).click();
    assert.match(await page.locator(".sql-panel:visible").innerText(), /ORDER BY queries DESC/);
    await examples.first().getByRole("button").click();
    assert.match(await text(page), /DATE '2024-06-01'/);
  },

  async "finds the statements of a shape as the server counts them"(page) {
    const mark = `c${Date.now()}`;
    const texts = [
      `SELECT 1 AS ${mark}`, `select  'a''b' AS ${mark}`, `SELECT DATE '2024-01-01' AS ${mark} ;`, `SELECT timestamp '2024-01-01 10:00:00' AS ${mark}`,
      `SELECT 1.50 AS ${mark}`, `SELECT 1 + 2 AS "${mark} (a.b*c)"`, `SELECT 7 AS ${mark} -- a comment`, `SELECT 1e3 AS ${mark}`,
      `EXPLAIN SELECT 1 AS ${mark}`, `SELECT '${"long ".repeat(80)}' || E'x' AS ${mark}`, `SELECT '' AS ${mark}\n\n`,
    ];
    for (const sql of texts) await post(sql);
    const { shapes } = await json("v1/shapes?most=1000");
    const found = await page.evaluate(async ([all, wanted]) => {
      const { matcherOf } = await import("/js/shape-text.js");
      const matchers = all.map(matcherOf);
      return wanted.map((sql) => matchers.flatMap((matches, index) => (matches(sql) ? [all[index]] : [])));
    }, [shapes.map((shape) => shape.sql), texts]);
    for (const [index, of] of found.entries()) assert.equal(of.length, 1, `${texts[index]}: ${JSON.stringify(of)}`);
  },

  async "lists what runs and what waits, and kills it"(page) {
    try {
      const all = await crowd();
      await go(page, "Queries");
      const grid = page.getByRole("grid", { name: "Running and queued queries" });
      const rows = grid.locator('tbody tr:has-text("console_report")');
      await rows.nth(all - 1).waitFor();
      await page.getByRole("region", { name: "Now" }).getByText(`${all - 1} running · 1 queued`).waitFor();
      assert.equal(await grid.locator('tr[data-state="queued"]').count(), 1);
      assert.equal(await grid.locator('tr[data-state="running"]').count(), all - 1);
      const queued = grid.locator('tr[data-state="queued"]');
      const id = await queued.locator("td").first().innerText();
      await queued.getByRole("button", { name: `Kill query ${id}` }).click();
      await queued.waitFor({ state: "detached" });
      // By keyboard: to the first row, into its details, to their button.
      await grid.locator("tbody tr").first().focus();
      await page.keyboard.press("Enter");
      const details = page.getByRole("complementary", { name: "Query" });
      const killed = /\d+/.exec(await details.locator("h2").innerText())?.[0];
      await details.getByRole("button", { name: "Kill" }).press("Enter");
      await details.getByText("cancelled", { exact: true }).waitFor();
      await go(page, "Home");
      await until("home counts those that compute", async () => (await figure(page, "computing").innerText()).startsWith(`${all - 2} of`));
      await go(page, "Queries");
      await page.getByRole("button", { name: "Failed" }).click();
      const ended = page.getByRole("grid", { name: "Ended queries" });
      for (const wanted of [id, killed]) await ended.locator('tr[data-state="cancelled"]').locator("td:first-child", { hasText: new RegExp(`^${wanted}$`) }).waitFor();
    } finally {
      await killAll();
    }
  },

  async "lists sessions of HiveServer2's clients and what they run"(page) {
    await go(page, "Queries");
    await page.getByRole("region", { name: "Now" }).waitFor();
    const region = page.getByRole("region", { name: "HiveServer2 sessions" });
    assert.equal(await region.isVisible(), false, "there is no such client");
    const session = await openHiveSession("console_hive");
    try {
      const row = region.locator("tbody tr", { hasText: "console_hive" });
      await row.waitFor();
      assert.match(await region.locator("h2").innerText(), /1 session/);
      await session.run("SELECT count(*) AS console_operation FROM console_report a, console_report b, console_report c, console_report d WHERE a.clicks + b.clicks + c.clicks + d.clicks = -99");
      await row.locator("code", { hasText: "console_operation" }).waitFor();
      await row.click();
      const details = page.getByRole("complementary", { name: "Query" });
      await details.getByText("console_hive over hive").waitFor();
      await details.getByRole("button", { name: "Kill" }).click();
      await details.getByText("cancelled", { exact: true }).waitFor();
    } finally {
      await killAll();
      await session.close();
    }
    await region.waitFor({ state: "hidden" });
  },

  async "lists what took long, what came last and what failed"(page) {
    await fetch(new URL("v1/sql", url), { method: "POST", body: "SELECT 7 / 0 AS console_failure" });
    await go(page, "Queries");
    const ended = page.getByRole("grid", { name: "Ended queries" });
    await ended.locator("tbody tr").first().waitFor();
    // By their numbers: what ends meanwhile may be among them at the next look.
    await until("the slowest is the first one", async () => {
      const { recent } = await json("v1/queries?recent=256");
      const slowest = recent.toSorted((a, b) => b.elapsed_ms - a.elapsed_ms)[0];
      return Number(await ended.locator("tbody tr td:first-child").first().innerText()) === slowest?.id;
    });
    await page.getByRole("button", { name: "Latest" }).click();
    await until("the latest is the first one", async () => {
      const ids = (await ended.locator("tbody tr td:first-child").allInnerTexts()).map(Number);
      assert.deepEqual(ids, ids.toSorted((a, b) => b - a));
      return ids[0] === Math.max(...(await json("v1/queries?recent=256")).recent.map(({ id }) => id));
    });
    await page.getByRole("button", { name: "Failed" }).click();
    const failure = ended.locator("tbody tr", { hasText: "console_failure" });
    await failure.first().click();
    const details = page.getByRole("complementary", { name: "Query" });
    assert.match(await details.innerText(), /22012/);
    await page.keyboard.press("Escape");
    await details.waitFor({ state: "hidden" });
    await failure.first().focus();
    await page.keyboard.press("Enter");
    await details.getByRole("button", { name: "Open in SQL editor" }).press("Enter");
    assert.equal(await text(page), "SELECT 7 / 0 AS console_failure");
  },

  async "shows a table with its files, bounds and sort quality"(page) {
    await go(page, "Tables");
    const grid = page.getByRole("grid", { name: "Tables" });
    const row = grid.locator("tbody tr", { hasText: "public.console_layers" });
    await row.click();
    assert.match(page.url(), /#\/tables\/public\/console_layers$/);
    const details = page.getByRole("complementary", { name: "Table" });
    await details.locator("h2", { hasText: "console_layers" }).waitFor();
    assert.match(await details.innerText(), /Sorted by\s+account_id/);
    assert.match(await details.innerText(), /account_id\s+bigint/);
    const sections = details.getByRole("group", { name: "What of the table" });
    await sections.getByRole("button", { name: "Files" }).press("Enter");
    const listed = await json("v1/tables/public/console_layers/files");
    assert.equal(listed.files_total, 3);
    assert.match(await details.innerText(), /2 of 3 files overlap \(66 %\)[\s\S]*1.67 on average, 2 at most/);
    const files = details.getByRole("grid", { name: "Data files" }).locator("tbody tr");
    const bounds = await files.locator("td:last-child").allInnerTexts();
    assert.deepEqual(bounds, ["1 – 100", "50 – 150", "150 – 250"]);
    assert.deepEqual(await files.locator("td:nth-last-child(2)").allInnerTexts(), ["2", "2", "1"]);
    // Fresh rows come as they are written; until they are in files, half a minute later.
    await until("a fresh row is shown", async () => {
      await post("INSERT INTO console_layers VALUES (7)");
      const shown = details.locator("dt", { hasText: "Fresh rows" }).locator("xpath=following-sibling::dd[1]");
      return /^[1-9]/.test(await shown.innerText());
    });
    await sections.getByRole("button", { name: "Snapshots" }).click();
    await details.locator("td", { hasText: "(current)" }).waitFor();
    await page.reload();
    await details.locator("h2", { hasText: "console_layers" }).waitFor();
    await details.getByRole("button", { name: "Close" }).focus();
    await page.keyboard.press("Escape");
    await details.waitFor({ state: "hidden" });
    assert.match(page.url(), /#\/tables$/);
  },

  async "shows the files of one table partition"(page) {
    await page.goto(`${url}#/tables/public/console_report`);
    const details = page.getByRole("complementary", { name: "Table" });
    await details.getByRole("group", { name: "What of the table" }).getByRole("button", { name: "Files" }).click();
    const files = details.getByRole("grid", { name: "Data files" }).locator("tbody tr");
    await files.nth(11).waitFor();
    const partitions = details.getByRole("grid", { name: "Table partitions" }).locator("tbody tr");
    assert.equal(await partitions.count(), 12);
    await partitions.filter({ hasText: "day_month=2024-03" }).click();
    await details.getByText("Files of day_month=2024-03").waitFor();
    assert.equal(await files.count(), 1);
    assert.match(await files.innerText(), /2024-03-01 – 2024-03-31/);
    await details.getByRole("button", { name: "First rows" }).click();
    await cell(page, 0, 0).waitFor();
    assert.match(await text(page), /FROM console_report/);
  },

  async "shows how fast a query reads, and the plan of one that ended"(page) {
    const sql = "SELECT device, sum(impressions) AS shown FROM console_report WHERE day >= DATE '2024-11-15' GROUP BY device";
    await post(sql);
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    const row = page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: "AS shown" }).first();
    await row.click();
    const details = page.getByRole("complementary", { name: "Query" });
    await details.getByRole("button", { name: "Show plan" }).press("Enter");
    await details.locator(".plan .operator-name", { hasText: "ReportExec" }).waitFor();
    await details.getByRole("button", { name: "Run again with times" }).click();
    await details.locator(".chip", { hasText: "files 2 of 12" }).waitFor();
    const cells = await details.locator(".plan-row:not(.plan-head)").first().locator('[role="cell"]').allInnerTexts();
    assert.match(cells[1], /^\d/);
    assert.match(cells[2], /[mµ]?s$/);
    await post("INSERT INTO console_fresh VALUES (9)");
    await page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: "VALUES (9)" }).first().click();
    await details.getByText("Only of statements that read.").waitFor();
    // An INSERT that took long has a plan of its own.
    await until("the other plan is gone", async () => (await details.locator(".chip", { hasText: "files 2 of 12" }).count()) === 0);
    try {
      await crowd();
      await page.getByRole("grid", { name: "Running and queued queries" }).locator('tr[data-state="running"]').first().click();
      await details.getByText(/\/s read, .* rows\/s given/).waitFor();
      await details.getByRole("img", { name: /^Bytes read per second/ }).waitFor();
      const again = details.getByRole("button", { name: "Run again with times" });
      await until("it cannot be run again while it runs", async () => (await again.count()) === 0);
    } finally {
      await killAll();
    }
  },

  async "shows what a query found in memory, and how often a shape does"(page) {
    for (const account of [4, 5, 6]) await post(`SELECT max(clicks) AS found FROM console_report WHERE account_id = ${account}`);
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    const ended = page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: "AS found" });
    await ended.first().click();
    const details = page.getByRole("complementary", { name: "Query" });
    assert.match(await details.innerText(), /Chunks\s+\d+ % of \d+ in memory/);
    assert.doesNotMatch(await details.innerText(), /\$/, "local files cost nothing");
    // A report keeps its one operator.
    await details.getByText("as it ran").waitFor();
    assert.match(await details.locator(".plan-row:not(.plan-head)").innerText(), /ReportExec[\s\S]*rows selected/);
    await go(page, "Shapes");
    const row = page.getByRole("grid", { name: "Shapes" }).locator("tbody tr", { hasText: "AS found" });
    await row.click();
    const facts = page.getByRole("complementary", { name: "Shape" });
    assert.match(await facts.innerText(), /Share of chunks that were in memory\s+[\d.]+ %[\s\S]*Price of the requests to object stores\s+–/);
    const amounts = await page.evaluate(async () => {
      const [{ dollars }, { parsePlan, operatorsOfTree }] = await Promise.all([import("/js/format.js"), import("/js/plan.js")]);
      const metrics = [{ name: "cost_nanodollars", value: 400, unit: "count" }];
      const tree = operatorsOfTree({ name: "ReportExec", detail: "", rows: 1, compute_ms: 1, metrics, inputs: [] });
      const text = parsePlan("ReportExec: table=t, metrics=[output_rows=1, cost_nanodollars=1.20 K, hedges=0]");
      return [dollars(0), dollars(0.0123), dollars(12.345), tree[0].metrics.get("cost_nanodollars"), text[0].metrics.get("cost_nanodollars")];
    });
    assert.deepEqual(amounts, ["$0", "$0.012", "$12.35", "$0.00000040", "$0.0000012"]);
  },

  async "shows the plan of a query as it runs, and as it ran"(page) {
    try {
      await crowd();
      await go(page, "Queries");
      await page.getByRole("grid", { name: "Running and queued queries" }).locator('tr[data-state="running"]').first().click();
      const details = page.getByRole("complementary", { name: "Query" });
      await details.getByText("as it runs").waitFor();
      const operator = (name) => details.locator(".plan-row", { hasText: name }).first();
      assert.match(await operator("OrcScanExec").innerText(), /table=public\.console_report[\s\S]*files\s+\d+ of \d+/);
      const cells = async () => operator("CrossJoinExec").locator('[role="cell"]').allInnerTexts();
      const rows = async () => Number((await cells())[1].replaceAll(",", ""));
      const before = await rows();
      await until("its rows grow", async () => (await rows()) > Math.max(before, 1));
      assert.match((await cells())[2], /s$/);
      await details.getByRole("progressbar", { name: "Share of the rows" }).waitFor();
      // In one step: between two, the plan may be drawn anew.
      await details.evaluate((panel) => panel.querySelector(".plan").focus());
      const grown = await rows();
      await until("they grow again", async () => (await rows()) > grown);
      assert.ok(await details.evaluate((panel) => panel.querySelector(".plan") === document.activeElement), "focus stays");
      await details.getByRole("button", { name: "Kill" }).click();
      await details.getByText("as it ran").waitFor();
      assert.ok((await rows()) >= grown);
      const bars = details.getByRole("progressbar");
      await until("there is no progress", async () => (await bars.count()) === 0);
    } finally {
      await killAll();
    }
  },

  async "columns have one unit, percentiles are no more than the longest, and stalls are at home"(page) {
    for (const account of [1, 2, 3, 4, 5]) await post(`SELECT min(clicks) AS one_unit FROM console_report WHERE account_id = ${account}`);
    await post("SELECT count(*) AS slow FROM generate_series(1, 3000000) AS s(n) WHERE n % 7 = 3");
    await go(page, "Shapes");
    const grid = page.getByRole("grid", { name: "Shapes" });
    await grid.locator("tbody tr", { hasText: "AS one_unit" }).waitFor();
    await grid.locator("tbody tr", { hasText: "AS slow" }).waitFor();
    const units = await grid.evaluate((table) => [...table.querySelectorAll("thead th")].flatMap((head, column) => {
      if (!["total_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "bytes_read"].includes(head.dataset.column)) return [];
      const all = [...table.tBodies[0].rows].map((row) => row.cells[column].textContent).filter((text) => text !== "–");
      return [[head.dataset.column, [...new Set(all.map((text) => text.split(" ").at(-1)))], all.every((text) => /^(< )?[\d,.]+ \S+$/.test(text))]];
    }));
    assert.deepEqual(units.map(([column]) => column), ["total_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "bytes_read"]);
    for (const [column, all, isValue] of units) assert.ok(all.length === 1 && isValue, `${column}: ${all.join(", ")}`);
    const { rows } = await post("SELECT sql, p50_ms, p95_ms, p99_ms, max_ms FROM system.query_shapes");
    for (const [sql, p50, p95, p99, longest] of rows) assert.ok(p50 <= p95 && p95 <= p99 && p99 <= longest + 1e-6, `${sql}: ${[p50, p95, p99, longest]}`);
    const texts = await page.evaluate(async () => {
      const { durationsOf, sizesOf } = await import("/js/format.js");
      return [[0.004, 0.5, 0.9], [0.5, 12, 999], [0.00001, 1500, 180_000], [0]].map((all) => all.map(durationsOf(all)).join(" "))
        .concat([[0, 900], [10, 2048, 5_000_000]].map((all) => all.map(sizesOf(all)).join(" ")));
    });
    assert.deepEqual(texts, ["4.00 µs 500 µs 900 µs", "0.500 ms 12.0 ms 999 ms", "< 0.0001 s 1.50 s 180 s", "0 µs", "0 B 900 B", "< 0.0001 MiB 0.0020 MiB 4.77 MiB"]);
    // What the console asks for itself is not among what users ask.
    await go(page, "SQL");
    await page.getByRole("tree", { name: "Tables" }).locator('[data-key="system"]').click();
    await until("it has asked", async () => (await json("v1/shapes?most=1000")).shapes.some(({ sql }) => sql.includes("console_columns")));
    await go(page, "Shapes");
    await grid.locator("tbody tr", { hasText: "AS slow" }).waitFor();
    assert.equal(await grid.locator("tbody tr", { hasText: "console_columns" }).count(), 0);
    await go(page, "Home");
    const { executors } = await json("v1/status");
    await until("stalls are shown", async () => /longest wait [\d.]+ (µs|ms|s)$/.test(await figure(page, "stalls").innerText()));
    if (executors.executor_stalls + executors.planner_stalls + executors.io_stalls === 0) assert.match(await figure(page, "stalls").innerText(), /^none/);
  },

  async "turns dark and light"(page) {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByRole("button", { name: /^Light, dark/ }).click();
    const dark = await ground();
    assert.notEqual(dark, light);
    await page.reload();
    assert.equal(await ground(), dark);
  },

  async "can be read in light and dark"(page) {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const title of ["Home", "Tables", "Queries", "Shapes"]) {
        await go(page, title);
        const texts = title === "Home" ? ".home h2, .home .figure, .card-facts dt" : `main:not([hidden]) h2, main:not([hidden]) tbody td, main:not([hidden]) th .sort`;
        await page.locator(texts).locator("visible=true").first().waitFor();
        const worst = await page.locator(texts).evaluateAll(lowestContrast);
        assert.ok(worst.ratio >= 4.5, `${title} in ${colorScheme}: ${worst.ratio.toFixed(2)} for ${worst.text}`);
      }
    }
  },
};
