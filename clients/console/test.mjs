// The console in a real browser: node test.mjs URL [--screenshot FILE] [--pictures DIR]
//
// Environment: PLAYWRIGHT (module to drive the browser with), CHROMIUM (the browser); for pictures that are
// kept, also STOA_BIN, STOA_WAREHOUSE and STOA_PG_PORT of the server, which `stoa bench` then asks for reports.
// Each test gets a new page of one browser; the last line printed is the sum.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { lowestContrast } from "./contrast.mjs";
import { takePagePictures, takePicture } from "./picture.mjs";

const url = process.argv[2];
const argument = (name) => (process.argv[3] === name ? process.argv[4] : undefined);
const keep = argument("--screenshot");
const pictures = argument("--pictures");
const screenshot = keep ?? join(process.env.STOA_SCRATCH ?? tmpdir(), "console.png");
const module = process.env.PLAYWRIGHT ? pathToFileURL(process.env.PLAYWRIGHT).href : "playwright-core";
const { chromium } = await import(module);

const ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

/** What a page must not do, gathered while it is used. */
function watch(page) {
  const offences = [];
  page.on("pageerror", (error) => offences.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) offences.push(`foreign request: ${request.url()}`);
  });
  page.on("console", (message) => {
    // Answers that are errors are noted by the browser; the tests provoke some.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) offences.push(`console: ${message.text()}`);
  });
  return offences;
}

async function open(options = {}, address = "#/sql") {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
  const page = await context.newPage();
  page.offences = watch(page);
  await page.goto(url + address);
  await page.getByText("ready", { exact: true }).waitFor();
  return page;
}

/** Goes to a page by its link. */
async function go(page, title) {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title }).click();
  await page.getByRole("main", { name: title === "SQL" ? "Queries and results" : title }).waitFor();
}

async function run(page, sql) {
  await page.fill("#sql", sql);
  await page.press("#sql", "Control+Enter");
}

const cell = (page, row, column) => page.locator(`#cell-${row}-${column}`);
const recent = (page, text) => page.locator("#recent li", { hasText: text }).first();

const figure = (page, name) => page.locator(`[data-figure="${name}"]`);
const json = async (path) => (await fetch(new URL(path, url))).json();

/** Waits until something is so, for what no element shows. */
async function until(what, holds) {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Scans that never end, more than may compute at once; none of them shares another's answer. */
async function crowd() {
  const { slots } = (await json("v1/status")).admission;
  const from = "console_report a, console_report b, console_report c, console_report d";
  for (let n = 1; n <= slots + 1; n += 1) {
    fetch(new URL("v1/sql", url), { method: "POST", body: `SELECT count(*) FROM ${from} WHERE a.clicks + b.clicks + c.clicks + d.clicks = -${n}` }).catch(() => {});
  }
  await until("one query waits", async () => (await json("v1/status")).admission.waiting === 1);
  return slots + 1;
}

async function killAll() {
  for (const { id } of (await json("v1/queries")).running) await fetch(new URL(`v1/queries/${id}`, url), { method: "DELETE" });
  await until("nothing runs", async () => (await json("v1/queries")).running.length === 0);
}

async function post(sql) {
  const response = await fetch(new URL("v1/sql", url), { method: "POST", body: sql });
  const document = await response.json();
  assert.ok(response.ok, `${sql}: ${JSON.stringify(document)}`);
  return document;
}

const tests = {
  async "opens, and asks nobody but the server"(page) {
    assert.equal(await page.title(), "Stoa");
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
    assert.ok(status.cache.bytes > 0 && status.reports.answered > 0, JSON.stringify(status.cache));
    assert.match(await shown("hit-ratio"), /^[\d.]+ %$/);
    assert.match(await shown("cache-bytes"), /of .*iB$/);
    await until("nothing computes", async () => (await shown("computing")) === `0 / ${status.admission.slots}`);
    assert.equal(await shown("waiting"), "0");
    assert.match(await shown("p99"), /ms|s$/);
    assert.match(await shown("fresh-tables"), /console_fresh 3/);
    assert.match(await shown("log"), /segment/);
    assert.ok(Number(await shown("running")) >= 0);
    // A line, or a dot where there is one sample only.
    for (const name of ["Rate", "Cache", "Ingest", "Executors", "Latency"]) {
      const card = page.getByRole("region", { name: name === "Rate" ? "Queries per second" : name, exact: true }).and(page.locator(".home .card"));
      await card.locator(".chart path, .chart circle").first().waitFor({ state: "attached" });
    }
    assert.match(await page.locator(".top-shapes").innerText(), /console_report/);
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
    await page.fill("#sql", "");
    await page.keyboard.type("gh");
    assert.equal(await page.inputValue("#sql"), "gh", "typing goes nowhere");
  },

  async "shows the SQL behind its numbers, which runs"(page) {
    let seen = 0;
    for (const title of ["Home", "Queries", "Shapes"]) {
      await go(page, title);
      const main = page.getByRole("main", { name: title, exact: true });
      const closed = main.getByRole("button", { name: "Show SQL" });
      while ((await closed.count()) > 0) await closed.first().press("Enter");
      for (const panel of await main.locator(".sql-panel").all()) {
        const sql = await panel.locator("pre").innerText();
        assert.match(sql, /FROM system\./);
        const { columns } = await post(sql);
        assert.ok(columns.length > 0);
        seen += 1;
      }
      assert.equal(await main.getByRole("button", { name: "Hide SQL" }).count(), await main.locator(".sql-panel").count());
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
    assert.match(await page.inputValue("#sql"), /FROM system\.query_shapes/);
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
    assert.match(await page.inputValue("#sql"), /DATE '2024-06-01'/);
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
      assert.equal(await grid.locator('tr[data-state="queued"]').count(), 1);
      assert.equal(await grid.locator('tr[data-state="running"]').count(), all - 1);
      assert.match(await page.getByRole("region", { name: "Now" }).innerText(), new RegExp(`${all - 1} running · 1 queued`));
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
      await until("home counts those that compute", async () => (await figure(page, "computing").innerText()).startsWith(`${all - 2} /`));
      await go(page, "Queries");
      await page.getByRole("button", { name: "Failed" }).click();
      const ended = page.getByRole("grid", { name: "Ended queries" });
      for (const wanted of [id, killed]) await ended.locator('tr[data-state="cancelled"]').locator("td:first-child", { hasText: new RegExp(`^${wanted}$`) }).waitFor();
    } finally {
      await killAll();
    }
  },

  async "lists what took long, what came last and what failed"(page) {
    await fetch(new URL("v1/sql", url), { method: "POST", body: "SELECT 7 / 0 AS console_failure" });
    await go(page, "Queries");
    const ended = page.getByRole("grid", { name: "Ended queries" });
    await ended.locator("tbody tr").first().waitFor();
    const slowest = Math.max(...(await json("v1/queries?recent=256")).recent.map((query) => query.elapsed_ms));
    const first = async () => ended.locator("tbody tr").first().locator("td").allInnerTexts();
    const shown = /^([\d.]+) (ms|s)$/.exec((await first())[2]);
    if (shown) assert.ok(Math.abs(Number(shown[1]) * (shown[2] === "s" ? 1000 : 1) - slowest) <= slowest * 0.02 + 0.1, `${await first()}: ${slowest}`);
    await page.getByRole("button", { name: "Latest" }).click();
    const ids = (await ended.locator("tbody tr td:first-child").allInnerTexts()).map(Number);
    assert.deepEqual(ids, ids.toSorted((a, b) => b - a));
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
    assert.equal(await page.inputValue("#sql"), "SELECT 7 / 0 AS console_failure");
  },

  async "shows tables and their columns"(page) {
    const table = page.locator(".table-name", { hasText: "console_report" });
    await table.click();
    await page.locator(".columns .name", { hasText: "impressions" }).waitFor();
    assert.match(await page.locator(".inside-facts").first().innerText(), /366 rows[\s\S]*partitioned by month\(day\)/);
    await table.hover();
    await table.getByRole("button", { name: /^About/ }).click();
    const details = page.getByRole("complementary", { name: "Table" });
    await details.locator("h2", { hasText: "console_report" }).waitFor();
    assert.match(await details.innerText(), /Partitioned by\s+month\(day\)/);
    await page.goBack();
    await page.locator("#sql:visible").waitFor();
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
    // Fresh rows come as they are written.
    await post("INSERT INTO console_layers VALUES (7)");
    await details.locator("dt", { hasText: "Fresh rows" }).locator("xpath=following-sibling::dd[1]").getByText("1", { exact: true }).waitFor();
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
    assert.match(await page.inputValue("#sql"), /FROM console_report/);
  },

  async "completes tables, columns and keywords"(page) {
    await page.fill("#sql", "");
    await page.focus("#sql");
    const list = page.getByRole("listbox", { name: "Completions" });
    const typed = async (text) => page.keyboard.type(text);
    await typed("se");
    await list.getByRole("option").first().waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.inputValue("#sql"), "select");
    await page.fill("#sql", "SELECT  FROM console_report AS r WHERE r.");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+Space");
    await list.getByRole("option").first().waitFor();
    assert.deepEqual((await list.locator("li code").allInnerTexts()).slice(0, 3), ["day", "account_id", "device"]);
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.getAttribute("#sql", "aria-activedescendant"), "suggest-1");
    await page.keyboard.press("Enter");
    assert.equal(await page.inputValue("#sql"), "SELECT  FROM console_report AS r WHERE r.account_id");
    // Columns of the tables that are named further on come first.
    await page.evaluate(() => document.querySelector("#sql").setSelectionRange(7, 7));
    await typed("imp");
    await list.locator('li[aria-selected="true"]', { hasText: "impressions" }).waitFor();
    await list.locator("li", { hasText: "impressions" }).click();
    assert.match(await page.inputValue("#sql"), /^SELECT impressions FROM/);
    await page.fill("#sql", "SELECT count(*) FROM ");
    await page.keyboard.press("Control+End");
    await typed("console_la");
    await list.locator("li", { hasText: "console_layers" }).waitFor();
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "hidden" });
    // Enter takes nothing that was not chosen.
    await typed("y");
    await list.locator("li", { hasText: "console_layers" }).waitFor();
    await page.keyboard.press("Enter");
    assert.equal(await page.inputValue("#sql"), "SELECT count(*) FROM console_lay\n");
    await page.fill("#sql", "SELECT 'sel");
    await page.keyboard.press("Control+Space");
    assert.equal(await list.isVisible(), false, "nothing within a string");
    await page.fill("#sql", "SELECT * FROM system.");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+Space");
    await list.locator("li", { hasText: "query_shapes" }).waitFor();
  },

  async "asks for parameters"(page) {
    await page.fill("#sql", "SELECT count(*) AS found, $2 AS note, '$9' AS text FROM console_report WHERE account_id = $1 -- $7");
    const fields = page.getByRole("group", { name: "Parameters" }).getByRole("textbox");
    assert.equal(await fields.count(), 2);
    await page.getByLabel("Parameter $1").fill("3");
    await page.getByLabel("Parameter $2").fill("it's");
    await page.getByLabel("Parameter $2").press("Enter");
    await cell(page, 0, 0).waitFor();
    assert.deepEqual([await cell(page, 0, 0).innerText(), await cell(page, 0, 1).innerText()], ["31", "it's"]);
    await page.getByLabel("Parameter $1").fill("three");
    await page.press("#sql", "Control+Enter");
    await page.locator(".error .badge", { hasText: "22P02" }).waitFor();
    await page.reload();
    assert.equal(await page.getByLabel("Parameter $1").inputValue(), "three");
    await page.getByLabel("Parameter $1").fill("3");
    await page.getByLabel("Parameter $2").fill("");
    await page.press("#sql", "Control+Enter");
    await cell(page, 0, 0).waitFor();
    assert.equal(await cell(page, 0, 1).innerText(), "NULL");
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.locator(".toast.shown").waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /"parameters":\["3",null\]/);
  },

  async "gives a link with statement and parameters, which opens elsewhere"(page) {
    const sql = "SELECT $1 AS \"a & b\", 'ü#%'\nFROM console_fresh";
    await page.fill("#sql", sql);
    await page.getByLabel("Parameter $1").fill("17 & 4");
    await page.getByRole("button", { name: "Copy a link" }).click();
    await page.locator(".toast.shown").waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(new URL(link).hash.length > 10 && !new URL(link).search, link);
    await page.evaluate(() => localStorage.clear());
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByText("ready", { exact: true }).waitFor();
    assert.equal(await page.inputValue("#sql"), sql);
    assert.equal(await page.getByLabel("Parameter $1").inputValue(), "17 & 4");
  },

  async "draws rows as lines and bars"(page) {
    await run(page, "SELECT day, sum(impressions) AS impressions, CASE WHEN sum(clicks) > 2000 THEN sum(clicks) END AS clicks FROM console_report GROUP BY day ORDER BY day LIMIT 120");
    await cell(page, 0, 0).waitFor();
    const choices = page.getByRole("group", { name: "Show as" });
    await choices.getByRole("button", { name: "Chart" }).press("Enter");
    const chart = page.locator(".result-chart");
    await chart.locator("path.series-0").waitFor();
    assert.equal(await chart.getAttribute("aria-label"), "Lines of impressions by day, 120 points");
    const series = page.getByRole("group", { name: "Values" });
    await series.getByLabel("clicks").check();
    await chart.locator("path.series-1").waitFor();
    assert.deepEqual(await page.locator(".legend li").allInnerTexts(), ["impressions", "clicks"]);
    await page.getByRole("group", { name: /^Chart/ }).focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    assert.match(await page.locator(".result-chart-frame .chart-tip").innerText(), /2024-01-03\s+·\s+impressions 3000\s+·\s+clicks NULL/);
    await page.getByLabel("Kind of chart").selectOption("bar");
    // NULL has no bar.
    assert.equal(await chart.locator("rect.series-0").count(), 120);
    assert.equal(await chart.locator("rect.series-1").count(), 120 - 95);
    const heights = await chart.locator("rect.series-0").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("height"))));
    assert.ok(Math.abs(heights[119] / heights[59] - 2) < 0.05, `${heights[119]} to ${heights[59]}`);
    await page.getByRole("button", { name: "New tab" }).click();
    await page.getByRole("tab").first().click();
    await chart.locator("rect.series-1").first().waitFor();
    await choices.getByRole("button", { name: "Rows" }).click();
    await cell(page, 2, 1).waitFor();
    await run(page, "SELECT 'only' AS words");
    await cell(page, 0, 0).waitFor();
    assert.equal(await choices.count(), 0);
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
    await details.locator(".plan .operator-name", { hasText: "OrcScanExec" }).waitFor();
    await details.getByRole("button", { name: "Run again with times" }).click();
    await details.locator(".chip", { hasText: "files 2 of 12" }).waitFor();
    const cells = await details.locator(".plan-row:not(.plan-head)").first().locator('[role="cell"]').allInnerTexts();
    assert.match(cells[1], /^\d/);
    assert.match(cells[2], /[mµ]?s$/);
    await post("INSERT INTO console_fresh VALUES (9)");
    await page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: "VALUES (9)" }).first().click();
    await details.getByText("Only of statements that read.").waitFor();
    assert.equal(await details.locator(".plan").count(), 0);
    try {
      await crowd();
      await page.getByRole("grid", { name: "Running and queued queries" }).locator('tr[data-state="running"]').first().click();
      await details.getByText(/\/s read, .* rows\/s given/).waitFor();
      await details.getByRole("img", { name: /^Bytes read per second/ }).waitFor();
      assert.equal(await details.getByRole("button", { name: "Run again with times" }).count(), 0);
    } finally {
      await killAll();
    }
  },

  async "runs a query and shows its rows"(page) {
    await run(page, "SELECT day, impressions, note FROM console_report ORDER BY day LIMIT 3");
    await cell(page, 0, 0).waitFor();
    assert.equal(await cell(page, 0, 0).innerText(), "2024-01-01");
    assert.equal(await cell(page, 2, 1).innerText(), "3000");
    assert.equal(await cell(page, 1, 2).innerText(), "NULL");
    assert.match(await cell(page, 1, 2).getAttribute("class"), /null/);
    assert.match(await page.locator(".result-bar").innerText(), /3 rows/);
    assert.equal(await page.locator(".grid-head .type").first().innerText(), "date");
  },

  async "lists it among recent queries, which open in a tab"(page) {
    await run(page, "SELECT 'find me again' AS words");
    await recent(page, "find me again").click();
    assert.equal(await page.inputValue("#sql"), "SELECT 'find me again' AS words");
    assert.equal(await page.locator(".tab").count(), 2);
  },

  async "shows where a statement is wrong and what to do"(page) {
    await run(page, "SELECT day,\n       impresions\nFROM console_report");
    await page.locator(".error").waitFor();
    assert.equal(await page.locator(".error .badge").innerText(), "42703");
    assert.match(await page.locator(".error-message").innerText(), /impresions/);
    await run(page, "SELECT 1;\n\nSELEC 2");
    await page.locator(".error .badge", { hasText: "42601" }).waitFor();
    assert.match(await page.locator(".code-frame").innerText(), /line 3, character 1/);
    assert.equal(await page.locator(".squiggle").innerText(), "SELEC");
    await run(page, "SELECT 1 / 0 AS nothing");
    await page.locator(".error .badge", { hasText: "22012" }).waitFor();
    assert.match(await recent(page, "1 / 0").innerText(), /22012/);
  },

  async "cancels its own query"(page) {
    await run(page, ENDLESS);
    await page.locator("#running li").first().waitFor();
    await page.click("#cancel");
    await page.locator(".result-bar", { hasText: "Cancelled" }).waitFor();
    await page.locator("#running li").waitFor({ state: "detached" });
    assert.ok(await page.locator("#run").isVisible());
  },

  async "cancels any running query from the list"(page) {
    await run(page, ENDLESS);
    await page.locator("#running li").first().hover();
    await page.locator("#running .cancel").first().click();
    await page.locator(".result-bar", { hasText: "Cancelled" }).waitFor();
    await page.locator('#recent li[data-state="cancelled"]').first().waitFor();
  },

  async "draws the plan of EXPLAIN ANALYZE"(page) {
    await page.fill("#sql", "SELECT sum(impressions) FROM console_report WHERE day >= DATE '2024-12-01';");
    await page.click("#explain");
    await page.locator(".plan .operator-name", { hasText: "AggregateExec" }).first().waitFor();
    assert.match(await page.locator(".plan").innerText(), /files 1 of 12/);
  },

  async "keeps only the rows in view"(page) {
    await run(page, "SELECT value, value * 2 AS twice FROM generate_series(1, 25000) ORDER BY value");
    await page.locator(".more").waitFor();
    assert.ok((await page.locator(".grid .row").count()) < 80);
    await page.locator(".grid").focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+End");
    assert.equal(await cell(page, 9999, 1).innerText(), "20000");
    await page.locator(".more button").click();
    await page.locator(".result-bar", { hasText: "25,000 rows" }).waitFor();
  },

  async "walks, selects and copies cells by keyboard"(page) {
    await run(page, "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS t(id, name)");
    await cell(page, 2, 0).waitFor();
    await page.locator(".grid").focus();
    for (const key of ["ArrowDown", "ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight", "Control+c"]) await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "2\tb\n3\t");
    await page.getByRole("button", { name: "Copy CSV" }).click();
    await page.locator(".toast.shown").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "id,name\n1,a\n2,b\n3,\n");
  },

  async "downloads all rows"(page) {
    // Without the picker a headless browser could not answer.
    await page.evaluate(() => { window.showSaveFilePicker = undefined; });
    await run(page, "SELECT value FROM generate_series(1, 12000)");
    await page.locator(".more").waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV", exact: true }).click()]);
    assert.match(file.suggestedFilename(), /\.csv$/);
    const { size } = await stat(await file.path());
    assert.ok(size > 12_000 * 5, `${size} bytes`);
  },

  async "remembers texts, tabs and history"(page) {
    await run(page, "SELECT 'in history' AS words");
    await cell(page, 0, 0).waitFor();
    await page.getByRole("button", { name: "New tab" }).click();
    await page.fill("#sql", "SELECT 'second tab'");
    await page.reload();
    assert.equal(await page.inputValue("#sql"), "SELECT 'second tab'");
    await page.getByRole("button", { name: /^History/ }).click();
    await page.locator(".history-list li", { hasText: "in history" }).getByRole("button").click();
    assert.equal(await page.inputValue("#sql"), "SELECT 'in history' AS words");
  },

  async "shows what a link carries, without running it"(page) {
    const before = (await (await fetch(new URL("v1/status", url))).json()).queries.started;
    await page.goto("about:blank");
    await page.goto(`${url}#sql=${encodeURIComponent("DROP TABLE console_report")}`);
    await page.getByText("ready", { exact: true }).waitFor();
    assert.equal(await page.inputValue("#sql"), "DROP TABLE console_report");
    const after = (await (await fetch(new URL("v1/status", url))).json()).queries.started;
    assert.equal(after, before);
  },

  async "sees new tables without being told"(page) {
    await run(page, "CREATE TABLE console_new (a bigint)");
    await page.locator(".table-name", { hasText: "console_new" }).waitFor();
    await run(page, "DROP TABLE console_new");
    await page.locator(".table-name", { hasText: "console_new" }).waitFor({ state: "detached" });
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
        await page.locator(texts).first().waitFor();
        const worst = await page.locator(texts).evaluateAll(lowestContrast);
        assert.ok(worst.ratio >= 4.5, `${title} in ${colorScheme}: ${worst.ratio.toFixed(2)} for ${worst.text}`);
      }
    }
  },
};

async function prepare() {
  await post("DROP TABLE IF EXISTS console_report");
  await post(`CREATE TABLE console_report (day date, account_id bigint, device text, impressions bigint, clicks bigint, cost decimal(18, 4), note text)
    PARTITIONED BY (month(day)) ORDER BY (account_id, day)`);
  await post(`INSERT INTO console_report
    SELECT CAST(CAST(19722 + value AS integer) AS date), value % 12,
           CASE value % 3 WHEN 0 THEN 'phone' WHEN 1 THEN 'desktop' ELSE 'tablet' END,
           value * 1000, value * 21, CAST(value AS decimal(18, 4)) / 7,
           CASE WHEN value % 2 = 1 THEN 'odd' END
    FROM generate_series(1, 366)`);
  await post("FLUSH TABLE console_report");
  // Three files: two hold the same accounts, the third begins where the second ends.
  await post("DROP TABLE IF EXISTS console_layers");
  await post("CREATE TABLE console_layers (account_id bigint) ORDER BY (account_id) TBLPROPERTIES ('stoa.compaction.min-input-files' = '100')");
  for (const [from, to] of [[1, 100], [50, 150], [150, 250]]) await post(`INSERT INTO console_layers SELECT value FROM generate_series(${from}, ${to}); FLUSH TABLE console_layers`);
  await post("DROP TABLE IF EXISTS console_fresh");
  await post("CREATE TABLE console_fresh (n bigint)");
}

let [passed, failed] = [0, 0];

async function test(name, body) {
  const began = performance.now();
  try {
    await body();
    passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}

try {
  // First, while the server has seen nothing else.
  await test("makes a picture", async () => {
    const page = await open({}, "#/home");
    await takePicture({ page, file: screenshot, keep: keep !== undefined, url, post });
    await page.context().close();
  });
  if (pictures) {
    await test("makes pictures of pages", async () => {
      const page = await open({}, "#/sql");
      await takePagePictures({ page, dir: pictures, url });
      await page.context().close();
    });
  }
  await prepare();
  for (const [name, body] of Object.entries(tests)) {
    await test(name, async () => {
      const page = await open();
      page.setDefaultTimeout(20_000);
      try {
        await body(page);
        assert.deepEqual(page.offences, []);
      } finally {
        await page.context().close();
      }
    });
  }
} catch (error) {
  failed += 1;
  console.log(`FAILED  preparation\n${error.stack ?? error}`);
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed === 0 ? 0 : 1);
