// The SQL editor: tables beside it, statements, results, tabs and links.

import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";

import { cell, recent, run, text, until, url, write } from "./harness.mjs";

const ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";

export const sqlTests = {
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

  async "completes tables, columns and keywords"(page) {
    await write(page, "");
    const list = page.getByRole("listbox", { name: "Completions" });
    const typed = async (text) => page.keyboard.type(text);
    const labels = list.locator("li .cm-completionLabel");
    await typed("se");
    await list.getByRole("option").first().waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await text(page), "select");
    await write(page, "SELECT  FROM console_report AS r WHERE r.");
    await page.keyboard.press("Control+Space");
    await list.getByRole("option").first().waitFor();
    assert.deepEqual((await labels.allInnerTexts()).slice(0, 3), ["day", "account_id", "device"]);
    await page.keyboard.press("ArrowDown");
    const chosen = await list.locator("li[aria-selected]").getAttribute("id");
    assert.equal(await page.getAttribute("#sql", "aria-activedescendant"), chosen);
    await page.keyboard.press("Enter");
    assert.equal(await text(page), "SELECT  FROM console_report AS r WHERE r.account_id");
    // Columns of the tables that are named further on come first.
    await page.keyboard.press("Control+Home");
    for (let n = 0; n < 7; n += 1) await page.keyboard.press("ArrowRight");
    await typed("imp");
    await list.locator("li[aria-selected]", { hasText: "impressions" }).waitFor();
    await list.locator("li", { hasText: "impressions" }).first().click();
    assert.match(await text(page), /^SELECT impressions FROM/);
    // Without a FROM, columns of all tables are proposed.
    await write(page, "SELECT ");
    await typed("impr");
    await list.locator("li.column", { hasText: "column of console_report" }).waitFor();
    await page.keyboard.press("Escape");
    await write(page, "SELECT count(*) FROM ");
    await typed("console_la");
    await list.locator("li", { hasText: "console_layers" }).waitFor();
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
    // Enter takes nothing that was not chosen.
    await typed("y");
    await list.locator("li", { hasText: "console_layers" }).waitFor();
    await page.keyboard.press("Enter");
    assert.equal(await text(page), "SELECT count(*) FROM console_lay\n");
    await write(page, "SELECT 'sel");
    await page.keyboard.press("Control+Space");
    assert.equal(await list.isVisible(), false, "nothing within a string");
    await write(page, "SELECT * FROM system.");
    await page.keyboard.press("Control+Space");
    await list.locator("li", { hasText: "query_shapes" }).waitFor();
  },

  async "asks for parameters"(page) {
    await write(page, "SELECT count(*) AS found, $2 AS note, '$9' AS text FROM console_report WHERE account_id = $1 -- $7");
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
    await write(page, sql);
    await page.getByLabel("Parameter $1").fill("17 & 4");
    await page.getByRole("button", { name: "Copy a link" }).click();
    await page.locator(".toast.shown").waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(new URL(link).hash.length > 10 && !new URL(link).search, link);
    await page.evaluate(() => localStorage.clear());
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByText("ready", { exact: true }).waitFor();
    assert.equal(await text(page), sql);
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

  async "draws a series for each value of a column, on a logarithmic axis, and saves a picture"(page) {
    await run(page, "SELECT day, device, impressions FROM console_report WHERE day < DATE '2024-01-10' ORDER BY day");
    await cell(page, 0, 0).waitFor();
    await page.getByRole("group", { name: "Show as" }).getByRole("button", { name: "Chart" }).click();
    await page.getByLabel("A series for each").selectOption("1");
    const chart = page.locator(".result-chart");
    await chart.locator(".series-2").first().waitFor();
    assert.deepEqual((await page.locator(".legend li").allInnerTexts()).toSorted(), ["desktop", "phone", "tablet"]);
    assert.match(await chart.getAttribute("aria-label"), /by day, 9 points/);
    // Each day has one device: all values stand alone, and are to be seen.
    assert.equal(await chart.locator("circle").count(), 9);
    await page.getByRole("checkbox", { name: "logarithmic" }).check();
    const ticks = await chart.locator(".chart-grid text[text-anchor=end]").allTextContents();
    assert.deepEqual(ticks, ["1000", "10.0 K"]);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save picture" }).click()]);
    assert.match(file.suggestedFilename(), /\.png$/);
    const picture = await readFile(await file.path());
    assert.equal(picture.subarray(1, 4).toString(), "PNG");
    assert.ok(picture.length > 4000, `${picture.length} bytes`);
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
    assert.equal(await text(page), "SELECT 'find me again' AS words");
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
    await write(page, "SELECT sum(impressions + 1) FROM console_report WHERE day >= DATE '2024-12-01';");
    await page.click("#explain");
    await page.locator(".plan .operator-name", { hasText: "AggregateExec" }).first().waitFor();
    assert.match(await page.locator(".plan").innerText(), /files 1 of 12/);
  },

  async "keeps only the rows in view"(page) {
    await run(page, "SELECT value, value * 2 AS twice FROM generate_series(1, 25000) AS s(value) ORDER BY value");
    await page.locator(".more").waitFor();
    assert.ok((await page.locator(".grid .row").count()) < 80);
    await page.locator(".grid").focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+End");
    assert.equal(await cell(page, 9999, 1).innerText(), "20000");
    await page.locator(".more button").click();
    await page.locator(".result-bar", { hasText: "25,000 rows" }).waitFor();
  },

  async "a pinned column stays in view, wherever the others are"(page) {
    const columns = Array.from({ length: 40 }, (_, n) => `n * 100 + ${n} AS "column ${n}"`).join(", ");
    await run(page, `SELECT ${columns} FROM generate_series(1, 500) AS s(n)`);
    await cell(page, 0, 0).waitFor();
    const grid = page.locator(".grid");
    const head = (n) => page.locator(".grid .head", { hasText: new RegExp(`column ${n}(?!\\d)`) });
    const scroll = (left, top = 0) => grid.evaluate((scroller, to) => scroller.scrollTo(to[0], to[1]), [left, top]);
    /** Left and right edge in the view, of head and cell alike. */
    const edges = async (row, n) => {
      const view = await grid.boundingBox();
      const [top, box] = [await head(n).boundingBox(), await cell(page, row, n).boundingBox()];
      assert.ok(Math.abs(top.x - box.x) < 1 && Math.abs(top.width - box.width) < 1, JSON.stringify([top, box]));
      return { left: box.x - view.x, right: view.x + view.width - (box.x + box.width) };
    };
    const natural = await edges(0, 2);
    await head(2).hover();
    await head(2).getByRole("button", { name: "Pin column 2" }).click();
    assert.equal(await page.locator(".grid .head[aria-sort]").count(), 0, "that sorted nothing");
    assert.deepEqual(await edges(0, 2), natural, "in its place while that is in view");
    await scroll(99_999, 99_999);
    await cell(page, 499, 39).waitFor();
    const gutter = (await page.locator(".grid-head .gutter").boundingBox()).width;
    await until("it is beside the row numbers", async () => Math.abs((await edges(499, 2)).left - gutter) < 1);
    assert.equal(await cell(page, 499, 2).innerText(), "50002");
    assert.equal(await cell(page, 499, 1).count(), 0, "others are not there");
    // What is below a pinned column is not read through it, nor clicked.
    const box = await cell(page, 499, 2).boundingBox();
    assert.equal(await page.evaluate(([x, y]) => document.elementFromPoint(x, y).id, [box.x + box.width / 2, box.y + box.height / 2]), "cell-499-2");
    // A column on the right is pinned by key, and is there at the right edge from the left end on.
    await cell(page, 499, 38).click();
    await page.keyboard.press("p");
    await scroll(0, 0);
    await cell(page, 0, 1).waitFor();
    await until("it is at the right edge", async () => (await edges(0, 38)).right < 20);
    assert.equal(await cell(page, 0, 38).innerText(), "138");
    // Walking does not hide the active cell behind a pinned one.
    await cell(page, 0, 3).click();
    const isOnTop = (id, side) => page.evaluate(([name, edge]) => {
      const box = document.getElementById(name)?.getBoundingClientRect();
      return box && document.elementFromPoint(edge === "right" ? box.right - 3 : box.left + 3, box.top + 9)?.id === name;
    }, [id, side]);
    for (let n = 0; n < 34; n += 1) await page.keyboard.press("ArrowRight");
    await until("column 37 is beside the pinned 38", () => isOnTop("cell-0-37", "right"));
    for (let n = 0; n < 34; n += 1) await page.keyboard.press("ArrowLeft");
    await until("column 3 is beside the pinned 2", () => isOnTop("cell-0-3", "left"));
    // Sorting and widths are of the column, pinned or not; few elements exist.
    await head(2).click();
    await head(2).click();
    await until("it is sorted", async () => (await cell(page, 0, 2).innerText()) === "50002");
    assert.ok((await page.locator(".grid .cell").count()) < 1500);
    // The same statement again keeps pins; another one does not.
    await page.keyboard.press("Escape");
    await page.locator("#sql").press("Control+Enter");
    await until("it ran again", async () => (await cell(page, 0, 2).innerText()) === "102");
    assert.equal(await page.locator(".grid .head.pinned").count(), 2);
    await head(2).getByRole("button", { name: "Pin column 2" }).click();
    assert.equal(await page.locator(".grid .head.pinned").count(), 1);
    await run(page, "SELECT 1 AS other");
    await until("another result", async () => (await page.locator(".grid .head").count()) === 1);
    assert.equal(await page.locator(".grid .head.pinned").count(), 0);
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
    await run(page, "SELECT value FROM generate_series(1, 12000) AS s(value)");
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
    await write(page, "SELECT 'second tab'");
    await page.reload();
    assert.equal(await text(page), "SELECT 'second tab'");
    await page.getByRole("button", { name: /^History/ }).click();
    await page.locator(".history-list li", { hasText: "in history" }).getByRole("button").click();
    assert.equal(await text(page), "SELECT 'in history' AS words");
  },

  async "shows what a link carries, without running it"(page) {
    const before = (await (await fetch(new URL("v1/status", url))).json()).totals.started;
    await page.goto("about:blank");
    await page.goto(`${url}#sql=${encodeURIComponent("DROP TABLE console_report")}`);
    await page.getByText("ready", { exact: true }).waitFor();
    assert.equal(await text(page), "DROP TABLE console_report");
    const after = (await (await fetch(new URL("v1/status", url))).json()).totals.started;
    assert.equal(after, before);
  },

  async "sees new tables without being told"(page) {
    await run(page, "CREATE TABLE console_new (a bigint)");
    await page.locator(".table-name", { hasText: "console_new" }).waitFor();
    await run(page, "DROP TABLE console_new");
    await page.locator(".table-name", { hasText: "console_new" }).waitFor({ state: "detached" });
  },
};
