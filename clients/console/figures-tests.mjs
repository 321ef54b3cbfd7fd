// Figures that can be trusted: each number of Home is what the statement beside it gives, asked by psql; reused answers,
// reports and scans are apart; charts go from minutes to a week.
//
// Environment: STOA_PG_PORT of the server that is tested.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpus } from "node:os";
import { promisify } from "node:util";

import { bytes, count, duration, percent, rate, short, shortDuration } from "../../console/js/format.js";
import { cell, figure, go, json, post, until, url, write } from "./harness.mjs";

const run = promisify(execFile);

/** The answer to a statement as psql has it: objects of texts, `""` for NULL. */
async function psql(sql) {
  const { stdout } = await run("psql", ["-X", "-h", "127.0.0.1", "-p", process.env.STOA_PG_PORT, "-U", "stoa", "-d", "stoa", "-A", "-F", "\x1f", "-R", "\x1e", "-P", "footer=off", "-c", sql]);
  const [head = "", ...rows] = stdout.replace(/\n$/, "").split("\x1e");
  const names = head.split("\x1f");
  return rows.filter((row) => row !== "").map((row) => Object.fromEntries(row.split("\x1f").map((value, index) => [names[index], value])));
}

const card = (page, name) => page.locator(".home .card").and(page.getByRole("region", { name, exact: true }));

/** The statements that a card shows: of its figures, and of its chart. */
async function statements(page, name) {
  const region = card(page, name);
  const closed = region.getByRole("button", { name: "Show SQL" });
  if (await closed.count()) await closed.press("Enter");
  return (await region.locator(".sql-panel pre").innerText()).split(/;\s*\n/);
}

const ms = (value) => (value === "" ? "–" : shortDuration(Number(value)));
const whole = (value) => count(Number(value));

/** By card: each figure as text, from the first row of the card's statement. */
const FIGURES = {
  "Queries per second": {
    rate: (row) => rate(Number(row.per_second)), hour: (row) => short(Number(row.per_hour)), running: (row) => whole(row.running),
    finished: (row) => short(Number(row.finished)), failed: (row) => short(Number(row.failed)),
  },
  Latency: Object.fromEntries(["p50", "p95", "p99"].map((name) => [name, (row) => (row[`${name}_ms`] === "" ? "–" : duration(Number(row[`${name}_ms`])))])),
  Executors: {
    computing: (row) => `${whole(row.running)} of ${whole(row.slots)}`, waiting: (row) => whole(row.waiting), refused: (row) => short(Number(row.refused)),
    executors: (row) => whole(row.executors), "waiting-limit": (row) => `${whole(row.waiting)} of ${whole(row.queue_max)} places taken`,
  },
  Cache: {
    "hit-ratio": (row) => percent(row.hit_ratio === "" ? null : Number(row.hit_ratio)), "cache-bytes": (row) => `${bytes(Number(row.bytes))} of ${bytes(Number(row.bytes_max))}`,
    entries: (row) => whole(row.entries), answered: (row) => whole(row.reports_answered), templates: (row) => whole(row.templates), reused: (row) => whole(row.results_reused),
  },
  Ingest: { "fresh-rows": (row) => short(Number(row.fresh_rows)), writers: (row) => whole(row.appends_waiting), written: (row) => whole(row.appended_rows) },
  Processors: { processors: (row) => whole(row.processors) },
};

/** Rows of a small table, by its first cell. */
const rowsOf = async (page, name) => Object.fromEntries(await card(page, name).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.dataset.key, [...row.querySelectorAll("td")].map((td) => td.textContent)])));

const TABLES = {
  "Latency by path": (row) => [row.path, [whole(row.queries), ms(row.p50_ms), ms(row.p95_ms), ms(row.p99_ms), ms(row.max_ms)]],
  "Latency by pool": (row) => [row.pool, [`${whole(row.running)} of ${whole(row.slots)}`, whole(row.queries), ms(row.p50_ms), ms(row.p95_ms), ms(row.p99_ms), ms(row.wait_p99_ms)]],
};

/** What a card shows now. */
async function shown(page, name) {
  if (TABLES[name]) return rowsOf(page, name);
  const names = Object.keys(FIGURES[name]);
  return Object.fromEntries(await Promise.all(names.map(async (each) => [each, await figure(page, each).innerText()])));
}

/** What a card should show by the answer of its statement. */
const wanted = (name, rows) => (TABLES[name] ? Object.fromEntries(rows.map(TABLES[name])) : Object.fromEntries(Object.entries(FIGURES[name]).map(([each, text]) => [each, text(rows[0])])));

/** Once more than once: reports, a scan whose answer is given again, a setting, an error. */
async function asks() {
  for (let account = 0; account < 6; account += 1) await post(`SELECT sum(clicks) FROM console_report WHERE account_id = ${account}`);
  for (let n = 0; n < 4; n += 1) await post("SELECT count(*) FROM (SELECT account_id, row_number() OVER (ORDER BY clicks) AS place FROM console_report) AS ranked WHERE place % 7 = 0");
  await post("SET TimeZone = 'UTC'");
  await fetch(new URL("v1/sql", url), { method: "POST", body: "SELECT 1 / 0" });
}

export const figuresTests = {
  async "shows numbers that psql gets from the statement beside them"(page) {
    await asks();
    await go(page, "Home");
    await until("figures are there", async () => /\d/.test(await figure(page, "p99").innerText()));
    for (const name of [...Object.keys(FIGURES), ...Object.keys(TABLES)]) {
      const [statement = ""] = await statements(page, name);
      let last = "";
      // Numbers of the last seconds change: what psql is told is what the page shows just before or just after.
      await until(`${name}: the page shows what psql gets`, async () => {
        const before = await shown(page, name);
        const answer = wanted(name, await psql(statement));
        await page.waitForTimeout(1300);
        const after = await shown(page, name);
        const differs = Object.keys(answer).filter((each) => ![before[each], after[each]].map(String).includes(String(answer[each])));
        last = differs.map((each) => `${each}: ${before[each]} or ${after[each]}, psql ${answer[each]}`).join("; ");
        return differs.length === 0;
      }).catch((error) => assert.fail(`${error.message}: ${last}`));
    }
  },

  async "has the statements beside the editor, too"(page) {
    await asks();
    const live = page.locator("#live");
    for (const [name, region] of [["rate", "Rate"], ["latency", "Latency"]]) {
      const part = live.getByRole("region", { name: region, exact: true });
      await part.getByRole("button", { name: "Show SQL" }).press("Enter");
      const [figures = "", chart = ""] = (await part.locator(".sql-panel pre").innerText()).split(/;\s*\n/);
      assert.ok((await psql(chart)).length > 0, chart);
      await until(`${name}: the page shows what psql gets`, async () => {
        const texts = async () => (await part.locator(".figure").allInnerTexts()).map((text) => text.trim());
        const before = await texts();
        const [row = {}] = await psql(figures);
        const answer = name === "rate" ? [rate(Number(row.per_second))] : [row.p50_ms, row.p95_ms, row.p99_ms].map((value) => (value === "" ? "–" : duration(Number(value))));
        await page.waitForTimeout(1300);
        const after = await texts();
        return answer.every((text, index) => [before[index], after[index]].includes(text));
      });
    }
  },

  async "draws what psql gets from the statement of a chart"(page) {
    await go(page, "Home");
    const charts = { "Queries per second": ["per_second", "reused_per_second"], Processors: ["process_cpu_ratio", "machine_cpu_ratio"], Executors: ["computing", "waiting"], "Fresh rows by table": ["fresh_rows"] };
    for (const [name, columns] of Object.entries(charts)) {
      const all = await statements(page, name);
      const statement = all.at(-1);
      assert.match(statement, /FROM system\.history\s+WHERE step_s = 1/);
      const region = card(page, name);
      await until(`${name}: as many points as rows`, async () => {
        const drawn = await region.locator(".chart").evaluate((svg) => [...svg.querySelectorAll("path[class^=line-]")].reduce((sum, path) => sum + path.getAttribute("d").split("L").length, 0) + svg.querySelectorAll("circle").length);
        const rows = await psql(statement);
        const there = rows.reduce((sum, row) => sum + columns.filter((column) => row[column] !== "").length, 0);
        assert.ok(there > 0, statement);
        return Math.abs(drawn - there) <= 3 * columns.length;
      });
    }
    // The newest point, as the pointer shows it.
    const region = card(page, "Processors");
    const [, statement] = await statements(page, "Processors");
    await region.locator(".chart").scrollIntoViewIfNeeded();
    const box = await region.locator(".chart").boundingBox();
    await until("the pointer shows one of the newest rows", async () => {
      await page.mouse.move(box.x + box.width - 50, box.y + 30);
      await page.mouse.move(box.x + box.width - 48, box.y + 30);
      const tip = await region.locator(".chart-tip").textContent();
      const rows = (await psql(statement)).slice(-4);
      return rows.some((row) => tip.startsWith(`server ${percent(Number(row.process_cpu_ratio))}  machine ${percent(Number(row.machine_cpu_ratio))}`));
    });
  },

  async "keeps answers given again apart from computed ones"(page) {
    await asks();
    await go(page, "Home");
    const paths = async () => Object.fromEntries((await json("v1/status")).latency_paths.map((row) => [row.path, row]));
    const before = await paths();
    await asks();
    const after = await paths();
    // The window moves on: what was there before may have left it.
    assert.ok(after.reused.queries >= 4 && after.short.queries >= 5, JSON.stringify({ before, after }));
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    const ended = page.getByRole("grid", { name: "Ended queries" });
    const reused = ended.locator("tbody tr", { hasText: "row_number" }).filter({ hasText: "reused" });
    await reused.first().waitFor();
    await reused.first().click();
    await page.getByRole("complementary", { name: "Query" }).getByText("Results reused", { exact: true }).waitFor();
    await go(page, "Shapes");
    const shape = page.getByRole("grid", { name: "Shapes" }).locator("tbody tr", { hasText: "row_number" });
    await shape.waitFor();
    const heads = await page.getByRole("grid", { name: "Shapes" }).locator("thead th").allInnerTexts();
    const place = heads.findIndex((head) => head.trim() === "Reused");
    const [of] = (await json("v1/shapes?most=1000")).shapes.filter(({ sql }) => sql.includes("row_number"));
    await until("the share is that of the server", async () => (await shape.locator("td").nth(place).innerText()) === percent(of.reused / of.queries));
    assert.ok(of.reused >= 3 && of.queries > of.reused, JSON.stringify(of));
  },

  async "goes from five minutes to a week"(page) {
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/v1/history")) asked.push(new URL(request.url()).searchParams); });
    await go(page, "Home");
    const ranges = page.getByRole("group", { name: "Range of the charts" });
    assert.deepEqual(await ranges.getByRole("button").allInnerTexts(), ["5 min", "1 h", "6 h", "24 h", "7 d"]);
    assert.equal(asked.length, 0, "the stream brings the last five minutes");
    await until("ten seconds are a sample", async () => (await json("v1/history?step_s=10")).rows.length > 0);
    for (const [name, step, interval, text] of [["1 h", 10, "1 hour", "the last hour"], ["6 h", 60, "6 hours", "the last six hours"], ["24 h", 60, "1 day", "the last day"], ["7 d", 600, "7 days", "the last week"]]) {
      asked.length = 0;
      await ranges.getByRole("button", { name, exact: true }).press("Enter");
      await page.getByRole("img", { name: `Queries per second over ${text}` }).waitFor();
      await until("it is asked for", async () => asked.length > 0);
      assert.equal(asked[0].get("step_s"), String(step));
      const statement = (await statements(page, "Latency by path")).at(-1);
      assert.ok(statement.includes(`step_s = ${step} `) && statement.includes(`'${interval}'`), statement);
      await psql(statement);
      if (name === "1 h") await card(page, "Processors").locator(".chart path, .chart circle").first().waitFor({ state: "attached" });
    }
    const before = asked.length;
    await page.waitForTimeout(3000);
    assert.ok(asked.length - before <= 1, "a range of days is not asked for each second");
    await ranges.getByRole("button", { name: "5 min" }).click();
    await page.getByRole("img", { name: "Queries per second over the last five minutes" }).waitFor();
  },

  async "counts processors as the machine does"(page) {
    const busy = () => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1000;
    const [before] = [busy()];
    const [row] = await psql("SELECT processors, cpu_busy_s, memory_bytes_max FROM system.machine");
    const after = busy();
    // Linux counts in ticks; libuv leaves out time of software interrupts.
    assert.ok(Number(row.cpu_busy_s) >= before - 1 && Number(row.cpu_busy_s) <= after * 1.05 + 60, `${before} ${row.cpu_busy_s} ${after}`);
    await go(page, "Home");
    await until("the page has it", async () => (await figure(page, "processors").innerText()) === row.processors);
    await until("and the memory", async () => (await figure(page, "machine-memory").innerText()).endsWith(`of ${bytes(Number(row.memory_bytes_max))}`));
    for (const name of ["Processors", "Disks", "Network"]) await card(page, name).locator(".chart path, .chart circle").first().waitFor({ state: "attached" });
  },

  async "shows the time of a join in its own line of the plan"(page) {
    const sql = "SELECT count(*) AS console_join FROM generate_series(1, 300000) AS a(v) JOIN generate_series(1, 300000) AS b(w) ON a.v % 1000 = b.w AND a.v > b.w";
    const line = (plan) => plan.locator(".plan-row", { hasText: "HashJoinExec" });
    await write(page, sql);
    await page.press("#sql", "Control+Shift+Enter");
    const analyzed = page.getByRole("table", { name: "Plan" });
    await line(analyzed).waitFor();
    assert.match(await line(analyzed).getByRole("cell").nth(2).innerText(), /\d (ms|s)$/);
    // The same of the statement itself, as it ran.
    await write(page, sql);
    await page.press("#sql", "Control+Enter");
    await cell(page, 0, 0).waitFor();
    await go(page, "Queries");
    await page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: "AS console_join" }).filter({ hasNotText: "EXPLAIN" }).first().click();
    const details = page.getByRole("complementary", { name: "Query" });
    await details.getByText("as it ran").waitFor();
    const own = line(details.getByRole("table", { name: "Plan" }));
    assert.match(await own.innerText(), /join time/);
    const time = await own.getByRole("cell").nth(2).innerText();
    assert.match(time, /\d (ms|s)$/);
    assert.notEqual(time, "0.00 ms");
  },
};
