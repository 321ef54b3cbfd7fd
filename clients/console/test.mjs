// The console in a real browser: node test.mjs URL [--screenshot FILE]
//
// Environment: PLAYWRIGHT (module to drive the browser with), CHROMIUM (the browser).
// Each test gets a new page of one browser; the last line printed is the sum.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const url = process.argv[2];
const keep = process.argv[3] === "--screenshot" ? process.argv[4] : undefined;
const screenshot = keep ?? join(process.env.STOA_SCRATCH ?? tmpdir(), "console.png");
const module = process.env.PLAYWRIGHT ? pathToFileURL(process.env.PLAYWRIGHT).href : "playwright-core";
const { chromium } = await import(module);

const ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";
const SCREENSHOT_BYTES_MAX = 300_000;

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

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
  const page = await context.newPage();
  page.offences = watch(page);
  await page.goto(url);
  await page.getByText("ready", { exact: true }).waitFor();
  return page;
}

async function run(page, sql) {
  await page.fill("#sql", sql);
  await page.press("#sql", "Control+Enter");
}

const cell = (page, row, column) => page.locator(`#cell-${row}-${column}`);
const recent = (page, text) => page.locator("#recent li", { hasText: text }).first();

async function post(sql) {
  const response = await fetch(new URL("v1/sql", url), { method: "POST", body: sql });
  const document = await response.json();
  assert.ok(response.ok, `${sql}: ${JSON.stringify(document)}`);
  return document;
}

const tests = {
  async "opens, and asks nobody but the server"(page) {
    assert.equal(await page.title(), "Stoa");
    await page.getByText("Queries per second").waitFor();
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
};

/** A page that shows what the console can do, for docs/. */
async function takeScreenshot() {
  await post("DROP TABLE IF EXISTS console_report");
  await post(`CREATE TABLE ad_report (day date, account_id bigint, campaign_id bigint, device text, region text,
    impressions bigint, clicks bigint, conversions bigint, cost decimal(18, 4)) PARTITIONED BY (month(day)) ORDER BY (account_id, day)`);
  await post(`INSERT INTO ad_report
    SELECT CAST(CAST(19723 + value % 366 AS integer) AS date), value / 366, value % 7,
           CASE value % 3 WHEN 0 THEN 'phone' WHEN 1 THEN 'desktop' ELSE 'tablet' END,
           CASE value % 4 WHEN 0 THEN 'tokyo' WHEN 1 THEN 'osaka' WHEN 2 THEN 'nagoya' END,
           9000 + value * 7919 % 51000, 180 + value * 104729 % 1400, value * 31 % 90,
           CAST(value * 7919 % 900000 AS decimal(18, 4)) / 1000
    FROM generate_series(0, 366 * 40 - 1)`);
  await post("FLUSH TABLE ad_report");
  const page = await open();
  const report = (account) => `SELECT day, sum(impressions) AS impressions, sum(clicks) AS clicks,\n       sum(conversions) AS conversions, sum(cost) AS cost, max(region) AS region\nFROM ad_report\nWHERE account_id = ${account} AND day BETWEEN DATE '2024-12-01' AND DATE '2024-12-31'\nGROUP BY day ORDER BY day`;
  // Some traffic, so that the charts have something to draw.
  const end = Date.now() + (keep ? 240_000 : 3_000);
  const clients = Array.from({ length: 2 }, async (_, client) => {
    for (let account = client; Date.now() < end; account += 1) {
      await post(report(account % 40));
      await new Promise((resolve) => setTimeout(resolve, 50 + 150 * Math.random()));
    }
  });
  await page.locator(".table-name", { hasText: "ad_report" }).click();
  await page.mouse.move(700, 880);
  await run(page, `-- Last month of one account\n${report(17)}`);
  await cell(page, 0, 0).waitFor();
  await page.waitForTimeout(end - Date.now() - 1000);
  await page.screenshot({ path: screenshot });
  await Promise.all(clients);
  const { size } = await stat(screenshot);
  assert.ok(size < SCREENSHOT_BYTES_MAX, `${screenshot} has ${size} bytes`);
  await page.context().close();
  await post("DROP TABLE ad_report");
}

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
  await test("makes a picture", takeScreenshot);
} catch (error) {
  failed += 1;
  console.log(`FAILED  preparation\n${error.stack ?? error}`);
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed === 0 ? 0 : 1);
