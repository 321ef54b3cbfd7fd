// Long lists: complete, with the number of all, and of few elements however long they are. The server is real; the lists
// come from the test, since thousands of tables would take it minutes to make.

import assert from "node:assert/strict";

import { events, figure, go, json, url } from "./harness.mjs";

const MANY = 5000;
/** Elements of a whole page; a list of all rows would have 60,000. */
const NODES_MAX = 8000;

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);
const few = async (page, what) => {
  const found = await nodes(page);
  console.log(`        ${what}: ${found} elements`);
  assert.ok(found <= NODES_MAX, `${what}: ${found} elements`);
};

const summary = (n) => ({ name: `table_${String(n).padStart(4, "0")}`, kind: "events", comment: null, rows: n, fresh_rows: 1, bytes: n * 1000, files: 1, partitioned_by: [], sorted_by: [], committed_unix_ms: 1_700_000_000_000, error: null });
const namespaces = [{ name: "public", tables: Array.from({ length: MANY }, (_, n) => summary(n)) }];

/** A page whose stream tells of many tables. */
async function withTables(page) {
  const status = await json("v1/status");
  status.ingest = namespaces[0].tables.map(({ name }, n) => ({ table: `public.${name}`, fresh_rows: n + 1, fresh_bytes: 1, oldest_ms: 5, flushes: 0, failures: 0, last_error: null, busy: false }));
  await page.route("**/v1/live?*", (route) => route.fulfill(events({ status, tables: { namespaces } })));
  await page.goto("about:blank");
  await page.goto(`${url}#/tables`);
}

const file = (n) => ({ path: `file:///w/public/t/data/${n}.orc`, partition: `day=${n}`, rows: n, bytes: n + 1, stripes: 1, sorted: true, depth: 1, snapshot_id: "1", bounds: { day: [String(n), String(n)] } });

/** A table of many files, table partitions, snapshots and columns. */
async function withFiles(page) {
  const all = Array.from({ length: MANY }, (_, n) => file(n));
  const details = {
    ...summary(7), namespace: "public", location: "file:///w/public/t", metadata_location: "file:///w/public/t/metadata/1.json",
    columns: Array.from({ length: 2000 }, (_, n) => ({ id: n, name: `column_${n}`, type: "bigint", nullable: true, comment: null })),
    properties: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`property.${n}`, String(n)])),
    snapshots_total: MANY,
    snapshots: Array.from({ length: MANY }, (_, n) => ({ id: String(MANY - n), parent_id: null, committed_unix_ms: 1_700_000_000_000 - n, operation: "append", current: n === 0, summary: { "total-files-size": String(n), "total-records": String(n) } })),
  };
  const files = {
    snapshot_id: "1", files_total: MANY, rows: 1, bytes: 1, columns: ["day"], sort: null, partitions_total: MANY, files: all,
    partitions: all.map(({ partition, rows, bytes }) => ({ partition, files: 1, rows, bytes, overlapping: 0, depth_max: 1 })),
  };
  await page.route("**/v1/tables/public/table_0007?*", (route) => route.fulfill({ json: details }));
  await page.route("**/v1/tables/public/table_0007/files?*", (route) => route.fulfill({ json: files }));
}

export const listTests = {
  async "lists thousands of tables, a part at a time"(page) {
    await withTables(page);
    const grid = page.getByRole("grid", { name: "Tables" });
    const rows = grid.locator("tbody tr");
    await rows.first().waitFor();
    await few(page, "5,000 tables");
    await page.getByText("5,000 tables").waitFor();
    const pager = page.getByRole("group", { name: "Parts of tables" });
    assert.match(await pager.innerText(), /1 to 100 of 5,000/);
    // The largest first; all of them are sorted, not only those in view.
    assert.match(await rows.first().innerText(), /table_4999/);
    await grid.getByRole("columnheader", { name: "Table" }).getByRole("button").click();
    assert.match(await rows.first().innerText(), /table_0000/);
    await pager.getByRole("button", { name: "Last" }).click();
    assert.match(await pager.innerText(), /4,901 to 5,000 of 5,000/);
    assert.match(await rows.last().innerText(), /table_4999/);
    assert.ok(await pager.getByRole("button", { name: "Next" }).isDisabled());
    await pager.getByRole("button", { name: "First" }).click();
    // By keyboard, over the end of a part and back.
    await rows.last().evaluate((row) => { row.tabIndex = 0; row.focus(); });
    await page.keyboard.press("ArrowDown");
    assert.match(await pager.innerText(), /101 to 200/);
    assert.match(await page.locator("tr:focus").innerText(), /table_0100/);
    await page.keyboard.press("ArrowUp");
    assert.match(await page.locator("tr:focus").innerText(), /table_0099/);
    await page.getByRole("searchbox", { name: "Filter of the list" }).fill("table_3210");
    assert.equal(await rows.count(), 1);
    assert.equal(await pager.isVisible(), false);
    await page.getByText("1 of 5,000 tables").waitFor();
    await few(page, "one of them");
    await go(page, "Home");
    const fresh = figure(page, "fresh-tables");
    await fresh.filter({ hasText: "table_4999" }).waitFor();
    assert.match(await fresh.innerText(), /^public\.table_4999 5,000, .* and 4,980 more$/);
  },

  async "shows the tree of thousands of tables, a part at a time"(page) {
    await withTables(page);
    await go(page, "SQL");
    const tree = page.getByRole("tree", { name: "Tables" });
    await tree.getByRole("treeitem", { name: /table_0000/ }).waitFor();
    await few(page, "the tree");
    const more = tree.getByRole("treeitem", { name: "4,800 more of 5,000" });
    await more.focus();
    await page.keyboard.press("Enter");
    await tree.getByRole("treeitem", { name: /table_0200/ }).waitFor();
    assert.match(await page.locator("[role=treeitem]:focus").innerText(), /table_0200/);
    await tree.getByRole("treeitem", { name: "200 before these" }).click();
    await tree.getByRole("treeitem", { name: /table_0000/ }).waitFor();
    await page.getByRole("searchbox", { name: "Filter tables" }).fill("table_4321");
    await tree.getByRole("treeitem", { name: /table_4321/ }).waitFor();
    assert.equal(await tree.locator(".table-name").count(), 1);
  },

  async "lists thousands of files, table partitions, snapshots and columns, a part at a time"(page) {
    await withFiles(page);
    await withTables(page);
    await page.goto(`${url}#/tables/public/table_0007`);
    const details = page.getByRole("complementary", { name: "Table" });
    const part = (name) => details.getByRole("group", { name: `Parts of ${name}` });
    await part("columns").getByText("1 to 100 of 2,000").waitFor();
    await part("properties").getByText("1 to 100 of 300").waitFor();
    await few(page, "2,000 columns");
    await part("columns").getByRole("button", { name: "Next" }).click();
    await details.getByText("column_100", { exact: true }).waitFor();
    const section = (name) => details.getByRole("group", { name: "What of the table" }).getByRole("button", { name }).click();
    await section("Files");
    await part("data files").getByText("1 to 100 of 5,000").waitFor();
    await part("table partitions").getByText("1 to 100 of 5,000").waitFor();
    await few(page, "5,000 files in as many table partitions");
    const bars = details.getByRole("img", { name: /Sizes of table partitions: 5000/ }).locator("rect");
    assert.equal(await bars.count(), 200, "neighbours become one bar");
    const files = details.getByRole("grid", { name: "Data files" });
    await files.getByRole("columnheader", { name: "Rows" }).getByRole("button").click();
    assert.match(await files.locator("tbody tr").first().innerText(), /4,999/, "the largest of all comes first");
    await section("Snapshots");
    await part("snapshots").getByText("1 to 100 of 5,000").waitFor();
    await few(page, "5,000 snapshots");
    await part("snapshots").getByRole("button", { name: "Last" }).click();
    await details.getByRole("button", { name: "Roll back" }).last().waitFor();
    assert.match(await details.locator("tbody tr").last().innerText(), /append/);
  },

  async "lists all queries that are remembered, a part at a time"(page) {
    const { recent } = await json("v1/queries?recent=1");
    const all = Array.from({ length: 256 }, (_, n) => ({ ...recent[0], id: n + 1, elapsed_ms: n, sql: `SELECT ${n}` }));
    const status = await json("v1/status");
    await page.route("**/v1/live?*", (route) => route.fulfill(events({ status, queries: { running: all.map((query) => ({ ...query, id: query.id + 1000, state: "running" })), recent: all } })));
    await page.goto("about:blank");
    await page.goto(`${url}#/queries`);
    await page.getByRole("group", { name: "Parts of ended queries" }).getByText("1 to 100 of 256").waitFor();
    await page.getByRole("group", { name: "Parts of running and queued queries" }).getByText("1 to 100 of 256").waitFor();
    await few(page, "512 queries");
  },
};
