// The picture for docs/: home while the server is asked for reports.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { stat } from "node:fs/promises";

const BYTES_MAX = 300_000;
const BENCH_ROWS = "1000000";

/** Takes it: after minutes of `stoa bench` if it is to be kept, else after a few statements. */
export async function takePicture({ page, file, keep, url, post }) {
  const stop = await (keep ? underBench(page, url, post) : underStatements(post));
  await page.waitForTimeout(1500);
  await page.screenshot({ path: file });
  await stop();
  const { size } = await stat(file);
  assert.ok(size < BYTES_MAX, `${file} has ${size} bytes`);
}

async function underStatements(post) {
  for (let n = 0; n < 20; n += 1) await post(`SELECT count(*) FROM generate_series(1, 10) WHERE value > ${n}`);
  return async () => {};
}

/** Five minutes of reports and small writes, which go on while the picture is taken. */
async function underBench(page, url, post) {
  const bench = (...options) => [process.env.STOA_BIN, ["bench", ...options, "--rows", BENCH_ROWS, "--log-level", "error"]];
  execFileSync(...bench("generate", "--warehouse", process.env.STOA_WAREHOUSE), { stdio: "ignore" });
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
