// The console in a real browser: node test.mjs URL [--screenshot FILE]
//
// Environment: PLAYWRIGHT (module to drive the browser with), CHROMIUM (the browser); for a picture that is
// kept, also STOA_BIN, STOA_WAREHOUSE and STOA_PG_PORT of the server, which `stoa bench` then asks for reports.
// Each test gets a new page of one browser; the last line printed is the sum.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { lowestContrast } from "./contrast.mjs";
import { takePicture } from "./picture.mjs";

const url = process.argv[2];
const keep = process.argv[3] === "--screenshot" ? process.argv[4] : undefined;
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
    for (const [key, name] of [["h", "Home"], ["p", "Shapes"], ["q", "Queries"]]) {
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
    await page.locator(".details h2", { hasText: "console_report" }).waitFor();
    assert.match(await page.locator(".details").innerText(), /Partitioned by\s+month\(day\)/);
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
      for (const title of ["Home", "Queries", "Shapes"]) {
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
