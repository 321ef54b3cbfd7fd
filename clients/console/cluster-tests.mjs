// The page Cluster, on three daemons that are one server.
//
// Environment: STOA_DAEMONS, their URLs with blanks between them; STOA_DAEMON_PIDS, their processes in the same order. The
// first one serves the console.

import assert from "node:assert/strict";

import { go, post, until } from "./harness.mjs";

const urls = (process.env.STOA_DAEMONS ?? "").split(" ");
const pids = (process.env.STOA_DAEMON_PIDS ?? "").split(" ").map(Number);
const from = async (nth, path) => (await fetch(new URL(path, urls[nth]))).json();
const idOf = async (nth) => (await from(nth, "v1/status")).this_daemon.daemon;
const at = async (nth, sql) => assert.ok((await fetch(new URL("v1/sql", urls[nth]), { method: "POST", body: sql })).ok, sql);

const daemons = (page) => page.getByRole("grid", { name: "Daemons", exact: true }).locator("tbody tr");
const lineOf = (page, id) => daemons(page).and(page.locator(`[data-key="${id}"]`));
const cell = async (page, list, line, column) => {
  const heads = await page.getByRole("grid", { name: list, exact: true }).locator("thead th").evaluateAll((all) => all.map((head) => head.dataset.column));
  return line.locator("td").nth(heads.indexOf(column)).innerText();
};

/** The events of a kind, of the last one hundred. */
const eventsOf = (page, kind) => page.getByRole("list", { name: "Events" }).locator("li", { has: page.locator(".what", { hasText: new RegExp(`^${kind}$`) }) });

export const clusterTests = {
  async "lists all daemons with their sums, which are what each says itself"(page) {
    await post("CREATE TABLE IF NOT EXISTS shared (n bigint)");
    for (const nth of [0, 1, 2]) {
      for (let n = 0; n <= nth; n += 1) {
        await at(nth, `INSERT INTO shared VALUES (${n})`);
        await at(nth, `SELECT n FROM shared WHERE n = ${nth}${n}`);
      }
    }
    await go(page, "Cluster");
    await until("all are up and answer", async () => (await daemons(page).filter({ hasText: /stoa \d/ }).filter({ hasText: "up" }).count()) === 3);
    assert.equal(await daemons(page).count(), 4, "three, and all together");
    // Rows that are not in files, of each and of all.
    const own = await Promise.all([0, 1, 2].map(async (nth) => (await from(nth, "v1/status")).log.appended_rows));
    assert.deepEqual(own, [1, 2, 3]);
    await page.getByRole("searchbox", { name: "Filter figures" }).fill("log.appended_rows");
    const line = page.getByRole("grid", { name: "Figures of all daemons", exact: true }).locator("tbody tr");
    await until("the sum is shown", async () => (await line.count()) === 1 && (await cell(page, "Figures of all daemons", line, "sum")) === "6");
    assert.equal(await cell(page, "Figures of all daemons", line, "min"), "1");
    assert.equal(await cell(page, "Figures of all daemons", line, "max"), "3");
    // The sums stay below, whatever is sorted by.
    for (const column of ["Zone", "Memory", "Daemon"]) {
      await page.getByRole("grid", { name: "Daemons", exact: true }).getByRole("button", { name: column, exact: true }).click();
      assert.match(await daemons(page).last().innerText(), /^All daemons/);
    }
    await until("the processors in use are known", async () => /^\d+\.\d\d$/.test(await cell(page, "Daemons", daemons(page).last(), "cpu")));
    const shapes = page.getByRole("grid", { name: "Shapes of all daemons" }).locator("tbody tr", { hasText: "FROM shared WHERE n =" });
    await until("the statements of all count together", async () => (await shapes.count()) === 1 && (await cell(page, "Shapes of all daemons", shapes, "queries")) === "6");
    // A daemon that was held up for long may have joined twice.
    await until("all have joined", async () => new Set(await eventsOf(page, "joined").locator(":nth-child(3)").allInnerTexts()).size === 3);
  },

  async "goes into one daemon, from another one's console"(page) {
    await go(page, "Cluster");
    const id = await idOf(2);
    await lineOf(page, id).click();
    const details = page.getByRole("complementary", { name: "Daemon" });
    await details.getByText(id, { exact: true }).waitFor();
    assert.match(page.url(), new RegExp(`#/cluster/${id}$`));
    const { http_address } = (await from(0, "v1/cluster")).daemons.find((daemon) => daemon.daemon === id);
    assert.equal(await details.locator(`a[href="http://${http_address}/"]`).count(), 1);
    const rows = details.locator("dd[data-key='dd log.appended_rows']");
    await until("its own figures are shown", async () => (await rows.innerText()) === "3");
    await details.locator(".chart path, .chart circle").first().waitFor({ state: "attached" });
    await page.keyboard.press("Escape");
    await until("it is closed", async () => !(await details.isVisible()));
    assert.match(page.url(), /#\/cluster$/);
  },

  async "shows who died, and when"(page) {
    await go(page, "Cluster");
    const id = await idOf(2);
    await lineOf(page, id).filter({ hasText: "up" }).waitFor();
    process.kill(pids[2], "SIGKILL");
    await eventsOf(page, "died").filter({ hasText: id.slice(0, 8) }).waitFor({ timeout: 60_000 });
    await lineOf(page, id).locator("td.bad", { hasText: "dead" }).waitFor();
    await page.getByRole("list", { name: "Alerts" }).locator("li", { hasText: `daemon_died: daemon ${id}` }).waitFor();
    await eventsOf(page, "took over").waitFor({ timeout: 60_000 });
    // The others go on, and are what is added up.
    await page.getByRole("searchbox", { name: "Filter figures" }).fill("log.appended_rows");
    const line = page.getByRole("grid", { name: "Figures of all daemons", exact: true }).locator("tbody tr");
    await until("it is not among the sums", async () => (await cell(page, "Figures of all daemons", line, "max")) !== "3");
  },
};
