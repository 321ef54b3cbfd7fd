// The pictures for docs/: home while the server is asked for reports, light and dark; the pages SQL, Tables
// and Queries, the last with the plan of a query as it runs.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";

import { write } from "./harness.mjs";

const BYTES_MAX = 300_000;
const BENCH_ROWS = "1000000";

/** Takes it: after minutes of `stoa bench` if it is to be kept, else after a few statements. */
export async function takePicture({ page, file, keep, url, post }) {
  const stop = await (keep ? underBench(page, url, post) : underStatements(post));
  await page.waitForTimeout(1500);
  await shoot(page, file);
  await page.emulateMedia({ colorScheme: "dark" });
  await shoot(page, file.replace(/\.png$/, "-dark.png"));
  await stop();
}

async function underStatements(post) {
  for (let n = 0; n < 20; n += 1) await post(`SELECT count(*) FROM generate_series(1, 10) AS s(value) WHERE value > ${n}`);
  return async () => {};
}

const CHARTED = `SELECT day, sum(impressions) AS impressions, sum(clicks) * 40 AS clicks_40
FROM ad_report
WHERE account_id BETWEEN $1 AND $2 AND day >= $3
GROUP BY day ORDER BY `;

/** `console-sql.png`, `console-tables.png`, `console-queries.png` and the last in dark, of a table that `stoa bench` makes. */
export async function takePagePictures({ page, dir, url }) {
  generate();
  await page.reload();
  await page.locator(".table-name", { hasText: "ad_report" }).click();
  await write(page, `${CHARTED}day`);
  for (const [index, value] of ["1000000", "1050000", "2025-09-01"].entries()) await page.getByLabel(`Parameter $${index + 1}`).fill(value);
  // Once more when it is warm.
  for (let n = 0; n < 3; n += 1) {
    await page.press("#sql", "Control+Enter");
    await page.locator(".spinner").waitFor({ state: "detached" });
  }
  await page.getByRole("button", { name: "Chart" }).click();
  await page.getByLabel("clicks_40").check();
  await write(page, CHARTED);
  await page.press("#sql", "Control+End");
  await page.keyboard.type("im");
  await page.getByRole("listbox", { name: "Completions" }).getByRole("option").first().waitFor();
  await shoot(page, join(dir, "console-sql.png"));
  await page.goto(`${url}#/tables/public/ad_report`);
  await page.getByRole("group", { name: "What of the table" }).getByRole("button", { name: "Files" }).click();
  await page.getByRole("grid", { name: "Data files" }).locator("tbody tr").first().waitFor();
  await shoot(page, join(dir, "console-tables.png"));
  await takeRunning(page, dir, url);
}

/** Joins that take long enough to be looked at, each with a grouping: products of single rows are nothing for the short path. */
const JOINED = `SELECT a.device, count(*) AS pairs, sum(a.clicks * b.clicks) AS clicks
FROM ad_report a JOIN ad_report b ON a.device = b.device
WHERE a.day >= DATE '2025-09-01'
GROUP BY a.device ORDER BY pairs DESC`;

async function takeRunning(page, dir, url) {
  for (let n = 0; n < 6; n += 1) await fetch(new URL("v1/sql", url), { method: "POST", body: `SELECT region, sum(clicks) AS clicks FROM ad_report WHERE account_id = ${1_000_000 + n} GROUP BY region` });
  const stop = new AbortController();
  for (const limit of [10, 20]) fetch(new URL("v1/sql", url), { method: "POST", body: `${JOINED} LIMIT ${limit}`, signal: stop.signal }).catch(() => {});
  await page.goto(`${url}#/queries`);
  await page.getByRole("grid", { name: "Running and queued queries" }).locator("tbody tr").first().click();
  const details = page.getByRole("complementary", { name: "Query" });
  await details.getByText("as it runs").waitFor();
  await page.waitForTimeout(20_000);
  await details.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await shoot(page, join(dir, "console-queries.png"));
  await page.emulateMedia({ colorScheme: "dark" });
  await shoot(page, join(dir, "console-queries-dark.png"));
  stop.abort();
}

async function shoot(page, file) {
  await page.screenshot({ path: file });
  const { size } = await stat(file);
  assert.ok(size < BYTES_MAX, `${file} has ${size} bytes`);
}

function bench(...options) {
  return [process.env.STOA_BIN, ["bench", ...options, "--rows", BENCH_ROWS, "--log-level", "error"]];
}

function generate() {
  execFileSync(...bench("generate", "--warehouse", process.env.STOA_WAREHOUSE, "--recreate"), { stdio: "ignore" });
}

/** Five minutes of reports and small writes, which go on while the picture is taken. */
async function underBench(page, url, post) {
  generate();
  const reports = spawn(...bench("report", "--url", url.replace(/\/$/, ""), "--port", process.env.STOA_PG_PORT,
    "--clients", "2", "--mode", "simple", "--duration", "600s", "--ingest", "2000"), { stdio: "ignore" });
  process.once("exit", () => reports.kill());
  const ended = new Promise((resolve) => { reports.once("exit", resolve); });
  const scans = [
    () => "SELECT device, sum(impressions) AS impressions, sum(cost) AS cost FROM ad_report GROUP BY device",
    (n) => `SELECT account_id, sum(clicks) AS clicks FROM ad_report GROUP BY account_id ORDER BY 2 DESC LIMIT ${5 + n}`,
  ];
  const end = Date.now() + 305_000;
  for (let n = 0; Date.now() < end; n += 1) {
    assert.equal(reports.exitCode, null, "stoa bench report ended early");
    await post(scans[n % scans.length](n));
    await page.waitForTimeout(900);
  }
  return async () => {
    reports.kill("SIGINT");
    await ended;
  };
}
