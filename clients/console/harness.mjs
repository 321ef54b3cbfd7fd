// The browser, the server, and what all tests do with them.
//
// Environment: PLAYWRIGHT (module to drive the browser with), CHROMIUM (the browser), CONSOLE_DIR (for work on the
// console: a folder whose files are served in the place of
// those that the binary contains).

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const url = process.argv[2];
const module = process.env.PLAYWRIGHT ? pathToFileURL(process.env.PLAYWRIGHT).href : "playwright-core";
const { chromium } = await import(module);

export const browser = await chromium.launch({
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
    // A password in the address is one of the tests'.
    const address = request.url().replace(/\/\/[^/@]*@/, "//");
    if (!address.startsWith(url) && !/^(data|blob):/.test(request.url())) offences.push(`foreign request: ${request.url()}`);
  });
  page.on("console", (message) => {
    // Answers that are errors are noted by the browser; the tests provoke some.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) offences.push(`console: ${message.text()}`);
  });
  return offences;
}

/** A new page that shows nothing yet. */
export async function openPage(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
  if (process.env.CONSOLE_DIR) {
    await context.route(/\.(js|css|svg)$/, (route) => route.fulfill({ path: join(process.env.CONSOLE_DIR, new URL(route.request().url()).pathname.replace(/^\/a\/[^/]+/, "")) }));
  }
  const page = await context.newPage();
  page.offences = watch(page);
  return page;
}

export async function open(options = {}, address = "#/sql") {
  const page = await openPage(options);
  await page.goto(url + address);
  await page.getByText("ready", { exact: true }).waitFor();
  return page;
}

/** Goes to a page by its link. */
export async function go(page, title) {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title }).click();
  await page.getByRole("main", { name: title === "SQL" ? "Queries and results" : title }).waitFor();
}

/** Puts a text into the editor, in the place of what is there; the caret is behind it. */
export async function write(page, sql) {
  await page.locator("#sql").focus();
  await page.keyboard.press("Control+a");
  await page.evaluate((text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.querySelector("#sql").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, sql);
}

/** The editor's text. */
export async function text(page) {
  await page.locator("#sql").waitFor();
  return page.locator("#sql").evaluate((area) => [...area.querySelectorAll(".cm-line")].map((line) => (line.querySelector(".cm-placeholder") ? "" : line.textContent)).join("\n"));
}

/** Runs all that is written; several statements, too. */
export async function run(page, sql) {
  await write(page, sql);
  await page.keyboard.press("Control+Alt+Enter");
}

export const cell = (page, row, column) => page.locator(`#cell-${row}-${column}`);
export const recent = (page, text) => page.locator("#recent li", { hasText: text }).first();

export const figure = (page, name) => page.locator(`[data-figure="${name}"]`);
export const json = async (path) => (await fetch(new URL(path, url))).json();

/** A live stream that tells each topic once, for routes that stand in for the server. */
export const events = (topics) => ({
  contentType: "text/event-stream",
  body: Object.entries(topics).map(([topic, document]) => `event: ${topic}\ndata: ${JSON.stringify({ v: document })}\n\n`).join(""),
});

/** Waits until something is so, for what no element shows. */
export async function until(what, holds) {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Scans that never end, more than may compute at once; none of them shares another's answer. */
export async function crowd() {
  const { slots } = (await json("v1/status")).executors;
  const from = "console_report a, console_report b, console_report c, console_report d";
  for (let n = 1; n <= slots + 1; n += 1) {
    fetch(new URL("v1/sql", url), { method: "POST", body: `SELECT count(*) FROM ${from} WHERE a.clicks + b.clicks + c.clicks + d.clicks = -${n}` }).catch(() => {});
  }
  await until("one query waits", async () => (await json("v1/status")).executors.waiting === 1);
  return slots + 1;
}

export async function killAll() {
  for (const { id } of (await json("v1/queries")).running) await fetch(new URL(`v1/queries/${id}`, url), { method: "DELETE" });
  await until("nothing runs", async () => (await json("v1/queries")).running.length === 0);
}

export async function post(sql) {
  const response = await fetch(new URL("v1/sql", url), { method: "POST", body: sql });
  const document = await response.json();
  assert.ok(response.ok, `${sql}: ${JSON.stringify(document)}`);
  return document;
}

/** The tables that the tests look at. */
export async function prepare() {
  await post("DROP TABLE IF EXISTS console_report");
  await post(`CREATE TABLE console_report (day date, account_id bigint, device text, impressions bigint, clicks bigint, cost decimal(18, 4), note text)
    PARTITIONED BY (month(day)) ORDER BY (account_id, day)`);
  await post(`INSERT INTO console_report
    SELECT DATE '2023-12-31' + value, value % 12,
           CASE value % 3 WHEN 0 THEN 'phone' WHEN 1 THEN 'desktop' ELSE 'tablet' END,
           value * 1000, value * 21, CAST(value AS decimal(18, 4)) / 7,
           CASE WHEN value % 2 = 1 THEN 'odd' END
    FROM generate_series(1, 366) AS s(value)`);
  await post("FLUSH TABLE console_report");
  // Three files: two hold the same accounts, the third begins where the second ends.
  await post("DROP TABLE IF EXISTS console_layers");
  await post("CREATE TABLE console_layers (account_id bigint) ORDER BY (account_id) TBLPROPERTIES ('stoa.compaction.min-input-files' = '100')");
  for (const [from, to] of [[1, 100], [50, 150], [150, 250]]) await post(`INSERT INTO console_layers SELECT value FROM generate_series(${from}, ${to}) AS s(value); FLUSH TABLE console_layers`);
  await post("DROP TABLE IF EXISTS console_fresh");
  await post("CREATE TABLE console_fresh (n bigint)");
}
