// Nothing runs twice, nothing that was written is lost: results that stay on the server, statements one by one, tabs
// in several windows, sessions.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { cell, json, post, run, text, until, url, write } from "./harness.mjs";

const count = async (table) => (await post(`SELECT count(*) FROM ${table}`)).rows[0][0];

async function emptyTable(name) {
  await post(`DROP TABLE IF EXISTS ${name}`);
  await post(`CREATE TABLE ${name} (n bigint)`);
}

export const safetyTests = {
  async "downloads and more rows do not run a statement again"(page) {
    await emptyTable("console_once");
    await run(page, "INSERT INTO console_once VALUES (1);\nSELECT value FROM generate_series(1, 25000) AS once(value)");
    await page.locator(".more").waitFor();
    const started = (await json("v1/status")).totals.started;
    for (const [label, lines] of [["CSV", 25_001], ["Arrow", 0]]) {
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: label, exact: true }).click()]);
      const content = await readFile(await file.path(), "latin1");
      if (lines > 0) assert.equal(content.trim().split("\n").length, lines);
      assert.ok(content.length > 25_000);
    }
    await page.locator(".more button").click();
    await page.locator(".result-bar", { hasText: "25,000 rows" }).waitFor();
    const own = (await json("v1/queries?recent=256")).recent.filter(({ sql }) => sql.includes("AS once(value)"));
    assert.equal(own.length, 1, "the SELECT ran once");
    assert.ok((await json("v1/status")).totals.started - started < 25, "nothing but what the page asks by itself");
    assert.equal(await count("console_once"), 1);
  },

  async "a result goes with its tab"(page) {
    const answer = page.waitForResponse((response) => response.url().includes("/v1/sql?") && response.url().includes("keep=true"));
    await run(page, "SELECT 1 AS n");
    const { result } = await (await answer).json();
    assert.equal((await fetch(new URL(`v1/results/${result.id}`, url))).status, 200);
    await page.getByRole("tab").first().press("Delete");
    await until("it is gone", async () => (await fetch(new URL(`v1/results/${result.id}`, url))).status === 404);
    // And with the window.
    const [again] = await Promise.all([page.waitForResponse((response) => response.url().includes("keep=true")), run(page, "SELECT 2 AS n")]);
    const { result: last } = await again.json();
    await page.goto("about:blank");
    await until("it is gone, too", async () => (await fetch(new URL(`v1/results/${last.id}`, url))).status === 404);
  },

  async "says so where a result was cut"(page) {
    await page.route("**/v1/results/*", async (route) => {
      if (route.request().method() !== "GET") return route.continue();
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), state: "cut", rows: 3, reason: "the result is larger than the server keeps" } });
    });
    await run(page, "SELECT value FROM generate_series(1, 3) AS s(value)");
    await cell(page, 2, 0).waitFor();
    await page.getByRole("button", { name: "CSV", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The server kept the first 3 rows").waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Download these rows" }).click()]);
    assert.equal(await readFile(await file.path(), "utf8"), "value\n1\n2\n3\n");
  },

  async "runs the statement at the caret, a selection, or all"(page) {
    await emptyTable("console_caret");
    const sql = "INSERT INTO console_caret VALUES (1);\n\nSELECT 'second; one' AS words;\nINSERT INTO console_caret VALUES (2), (3);";
    await write(page, sql);
    await page.keyboard.press("Control+Home");
    for (const key of ["ArrowDown", "ArrowDown", "End"]) await page.keyboard.press(key);
    assert.deepEqual(await page.locator(".cm-statement").allInnerTexts(), ["SELECT 'second; one' AS words;"]);
    await page.keyboard.press("Control+Enter");
    await cell(page, 0, 0).waitFor();
    assert.equal(await cell(page, 0, 0).innerText(), "second; one");
    assert.equal(await count("console_caret"), 0, "nothing beside it ran");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+Enter");
    await page.locator(".result-bar", { hasText: "INSERT 0 2" }).waitFor();
    assert.equal(await count("console_caret"), 2);
    // A selection alone.
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.press("Control+Enter");
    await page.locator(".result-bar", { hasText: "INSERT 0 1" }).waitFor();
    assert.equal(await count("console_caret"), 3);
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Control+Alt+Enter");
    await until("all ran", async () => (await count("console_caret")) === 6);
    await page.getByRole("button", { name: "Run all" }).click();
    await until("all ran again", async () => (await count("console_caret")) === 9);
    await write(page, "SELECT 1");
    assert.equal(await page.getByRole("button", { name: "Run all" }).isVisible(), false);
  },

  async "cuts texts into statements as the server does"(page) {
    const texts = [
      "SELECT 1; SELECT 2", ";;SELECT 1;;", "SELECT 'a;b'; SELECT \"c;d\" FROM (SELECT 1 AS \"c;d\") AS t", "SELECT $$x;y$$; SELECT $a$;$$;$a$",
      "SELECT E'\\';'; SELECT 'it''s;'", "-- one; two\nSELECT 1 /* ; /* ; */ ; */; SELECT 2", "SELECT 'ä😀;' AS \"ü\"; SELECT '😀'", "SELECT 1 -- end;",
    ];
    const cut = await page.evaluate(async (all) => {
      const { statementsOf } = await import("/js/sql-tokens.js");
      return all.map((sql) => statementsOf(sql).map(({ text }) => text));
    }, texts);
    for (const [index, sql] of texts.entries()) {
      const before = (await json("v1/status")).totals.started;
      await post(sql);
      const { recent } = await json("v1/queries?recent=20");
      const ran = recent.slice(0, cut[index].length).map((query) => query.sql).reverse();
      // The server leaves comments around a statement in its text.
      assert.ok(cut[index].every((one, n) => ran[n]?.includes(one)), `${sql}: ${JSON.stringify([ran, cut[index]])}`);
      assert.ok((await json("v1/status")).totals.started - before >= cut[index].length);
    }
  },

  async "stepping through history comes back to the text, and can be undone"(page) {
    await run(page, "SELECT 'old one' AS words");
    await cell(page, 0, 0).waitFor();
    await write(page, "SELECT 'not run yet'");
    await page.keyboard.press("Alt+ArrowUp");
    assert.equal(await text(page), "SELECT 'old one' AS words");
    await page.keyboard.press("Alt+ArrowDown");
    assert.equal(await text(page), "SELECT 'not run yet'");
    await page.keyboard.press("Alt+ArrowUp");
    await page.keyboard.type(" -- more");
    await page.keyboard.press("Control+z");
    await page.keyboard.press("Control+z");
    assert.equal(await text(page), "SELECT 'not run yet'");
  },

  async "each tab has its own undo"(page) {
    await write(page, "SELECT 'one'");
    await page.getByRole("button", { name: "New tab" }).click();
    await write(page, "SELECT 'two'");
    await page.getByRole("tab").first().click();
    assert.equal(await text(page), "SELECT 'one'");
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("x");
    await page.getByRole("tab").nth(1).click();
    await page.getByRole("tab").first().click();
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+z");
    assert.equal(await text(page), "SELECT 'one'");
  },

  async "closed tabs can be had again"(page) {
    await write(page, "SELECT 'closed by mistake'");
    await page.getByRole("tab").first().press("Delete");
    assert.equal(await text(page), "");
    await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
    assert.equal(await text(page), "SELECT 'closed by mistake'");
    await page.getByRole("tab", { selected: true }).press("Delete");
    await page.reload();
    await page.getByRole("button", { name: /^History/ }).click();
    await page.getByRole("button", { name: "Closed tabs", exact: true }).click();
    await page.locator(".history-list li", { hasText: "closed by mistake" }).first().getByRole("button").click();
    assert.equal(await text(page), "SELECT 'closed by mistake'");
  },

  async "two windows do not overwrite each other's texts"(page) {
    const other = await page.context().newPage();
    await write(page, "SELECT 'from the first'");
    await other.goto(`${url}#/sql`);
    await other.locator("#sql").waitFor();
    assert.equal(await text(other), "SELECT 'from the first'");
    await other.getByRole("button", { name: "New tab" }).click();
    await write(other, "SELECT 'of the second'");
    await page.getByRole("tab", { name: "Query 2" }).waitFor();
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.type(", 2");
    // The text that both show is the same in both.
    await other.getByRole("tab").first().click();
    await until("the second window has it", async () => (await text(other)) === "SELECT 'from the first', 2");
    await other.keyboard.press("Control+z");
    await page.getByRole("tab", { name: "Query 2" }).click();
    assert.equal(await text(page), "SELECT 'of the second'");
    await other.close();
    await page.reload();
    assert.equal(await text(page), "SELECT 'of the second'");
    await page.getByRole("tab").first().click();
    assert.match(await text(page), /^SELECT 'from the first'/);
  },

  async "says so if the browser keeps no text"(page) {
    await page.evaluate(() => { Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); }; });
    await write(page, "SELECT 'lost?'");
    await page.locator(".toast.shown", { hasText: "does not keep the text" }).waitFor();
  },

  async "settings and temporary tables are of one tab"(page) {
    await run(page, "SET timezone = 'Asia/Tokyo'; CREATE TEMP TABLE console_mine (n int); INSERT INTO console_mine VALUES (7)");
    await page.locator(".result-bar", { hasText: "INSERT" }).waitFor();
    await run(page, "SELECT n, current_setting('timezone') AS zone FROM console_mine");
    await cell(page, 0, 1).waitFor();
    assert.deepEqual([await cell(page, 0, 0).innerText(), await cell(page, 0, 1).innerText()], ["7", "Asia/Tokyo"]);
    await page.getByRole("button", { name: "New tab" }).click();
    await run(page, "SELECT n FROM console_mine");
    await page.locator(".error .badge", { hasText: "42P01" }).waitFor();
    // Whoever reloads the page has it still.
    await page.reload();
    await page.getByRole("tab").first().click();
    await run(page, "SELECT n AS again FROM console_mine");
    await cell(page, 0, 0).waitFor();
    assert.equal(await cell(page, 0, 0).innerText(), "7");
    await page.getByRole("tab", { selected: true }).press("Delete");
    await until("it is gone with its tab", async () => (await post("SELECT count(*) FROM information_schema.tables WHERE table_name = 'console_mine'")).rows[0][0] === 0);
  },

  async "goes on in a new session where the old one has ended"(page) {
    const opened = page.waitForResponse((response) => response.url().includes("/v1/sessions"));
    await run(page, "SELECT 1 AS n");
    await cell(page, 0, 0).waitFor();
    const { session } = await (await opened).json();
    await fetch(new URL(`v1/sessions/${session}`, url), { method: "DELETE" });
    await run(page, "SELECT 2 AS n");
    await page.locator(".toast.shown", { hasText: "new session" }).waitFor();
    await page.locator("#cell-0-0", { hasText: "2" }).waitFor();
  },

  async "cancels what a tab that is closed still runs"(page) {
    await run(page, "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 9");
    await page.locator("#running li").first().waitFor();
    await page.getByRole("tab").first().press("Delete");
    await until("it is cancelled", async () => (await json("v1/queries")).running.length === 0);
  },
};

