// What everybody needs to reach the console: widths, contrast and names (axe), titles, addresses, no connection, the
// log of queries.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import { cell, events, go, json, open, post, run, until, url, write } from "./harness.mjs";

const PAGES = ["home", "sql", "tables", "tables/public/console_report", "queries", "shapes", "nowhere"];
/** What finds faults; runs in the page. */
export const axe = await readFile(join(dirname(process.env.PLAYWRIGHT ?? ""), "../axe-core/axe.min.js"), "utf8");

/** What reaches over the window's right edge, and is not scrolled by itself. */
function overflow() {
  const isScrolled = (element) => {
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible" && at.getBoundingClientRect().right <= innerWidth + 1) return true;
    }
    return false;
  };
  const beyond = [...document.querySelectorAll("body *")].filter((element) => {
    const { width, height, right } = element.getBoundingClientRect();
    return width > 0 && height > 0 && right > innerWidth + 1 && !isScrolled(element);
  });
  return { page: document.documentElement.scrollWidth - innerWidth, beyond: beyond.slice(0, 5).map((element) => `${element.tagName}.${element.getAttribute("class")}`) };
}

async function shown(page, place) {
  await page.goto("about:blank");
  await page.goto(`${url}#/${place}`);
  await page.locator("main:visible").first().waitFor();
  if (place === "sql") {
    await run(page, "SELECT value, value * 2 AS twice, 'a text that is long enough to make the column wide' AS words, NULL AS nothing FROM generate_series(1, 50000) AS s(value)");
    await page.locator(".more").waitFor();
  } else if (place.includes("/")) {
    await page.getByRole("complementary", { name: "Table" }).locator("h2").waitFor();
  } else if (place !== "nowhere" && place !== "home") {
    await page.locator("main:visible tbody tr").first().waitFor();
  }
}

export const accessTests = {
  async "no page is wider than a phone's or a tablet's screen"(page) {
    for (const width of [390, 1024]) {
      await page.setViewportSize({ width, height: 844 });
      for (const place of PAGES) {
        await shown(page, place);
        assert.deepEqual(await page.evaluate(overflow), { page: 0, beyond: [] }, `${place} at ${width}`);
        await page.getByText("ready", { exact: true }).waitFor();
      }
    }
  },

  async "a long result makes few elements, on a phone too"(page) {
    await page.setViewportSize({ width: 390, height: 844 });
    await shown(page, "sql");
    assert.ok((await page.locator(".grid .row").count()) < 80);
    assert.ok((await page.locator("*").count()) < 2500, `${await page.locator("*").count()} elements`);
  },

  async "axe finds nothing on any page, in both themes"() {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1440, 390]) {
        const page = await open({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
        for (const place of PAGES) {
          await shown(page, place);
          await page.evaluate(axe);
          const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations
            .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, any }) => `${target.join(" ")} (${any[0]?.message ?? ""})`).join("; ")}`));
          assert.deepEqual(found, [], `${place}, ${colorScheme}, ${width}`);
        }
        await page.context().close();
      }
    }
  },

  async "axe finds nothing in dialogs and details"() {
    const page = await open({ bypassCSP: true });
    await page.evaluate(axe);
    const check = async (what) => {
      const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map(({ id, nodes }) => `${id}: ${nodes[0].target.join(" ")}`));
      assert.deepEqual(found, [], what);
    };
    await write(page, "SELECT $1; SELEC 2");
    await page.keyboard.press("Control+Alt+Enter");
    await page.locator(".error").waitFor();
    await check("an error");
    await page.getByRole("button", { name: /^History/ }).click();
    await check("history");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Keys" }).click();
    await check("keys");
    await page.keyboard.press("Escape");
    await go(page, "Queries");
    await page.getByRole("button", { name: "Log", exact: true }).click();
    await page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr").first().click();
    await check("a query");
    await page.context().close();
  },

  async "each page has its title, and an unknown address says so"(page) {
    for (const [place, title] of [["home", "Home · Stoa"], ["sql", "SQL · Stoa"], ["tables/public/console_report", "public.console_report · Tables · Stoa"], ["shapes", "Shapes · Stoa"]]) {
      await page.goto(`${url}#/${place}`);
      await until(title, async () => (await page.title()) === title);
    }
    await page.goto(`${url}#/nowhere/at/all`);
    const unknown = page.getByRole("main", { name: "Unknown address" });
    await unknown.getByText("#/nowhere/at/all").waitFor();
    assert.equal(await page.title(), "No such page · Stoa");
    assert.equal((await page.goto(`${url}nowhere`)).status(), 404);
    await unknown.getByText("/nowhere").waitFor();
    await unknown.getByRole("link", { name: "Tables" }).click();
    await page.getByRole("grid", { name: "Tables" }).waitFor();
    // Programs get an error that they can read.
    const answer = await fetch(new URL("nowhere", url));
    assert.deepEqual([answer.status, (await answer.json()).error.kind], [404, "not_found"]);
  },

  async "says what to do first on a server without tables"(page) {
    const status = await json("v1/status");
    await page.route("**/v1/live?*", (route) => route.fulfill(events({ status, tables: { namespaces: [{ name: "public", tables: [] }] } })));
    await page.goto(`${url}#/home`);
    await page.reload();
    const first = page.getByRole("region", { name: "First steps" });
    await first.waitFor();
    await first.getByRole("button", { name: "Open in SQL editor" }).click();
    await page.locator("#sql").waitFor();
    await post("DROP TABLE IF EXISTS first_report");
    await page.getByRole("button", { name: "Run all" }).click();
    await cell(page, 11, 2).waitFor();
    await page.unroute("**/v1/live?*");
    await page.goto(`${url}#/home`);
    await page.reload();
    await page.getByRole("main", { name: "Home" }).waitFor();
    await until("there are tables", async () => !(await first.isVisible()));
    await post("DROP TABLE first_report");
  },

  async "sorts rows, and makes columns wider"(page) {
    await run(page, "SELECT * FROM (VALUES (10, 'b', 12345678901234567890.5::decimal(30, 1)), (9, 'a', NULL), (100, NULL, 12345678901234567890.4::decimal(30, 1))) AS t(id, name, large)");
    await cell(page, 2, 0).waitFor();
    const column = async (index) => [await cell(page, 0, index).innerText(), await cell(page, 1, index).innerText(), await cell(page, 2, index).innerText()];
    const head = (name) => page.getByRole("columnheader", { name });
    await head("id").click();
    assert.deepEqual(await column(0), ["9", "10", "100"], "as numbers");
    assert.equal(await head("id").getAttribute("aria-sort"), "ascending");
    await head("id").click();
    assert.deepEqual(await column(0), ["100", "10", "9"]);
    await head("id").click();
    assert.deepEqual(await column(0), ["10", "9", "100"], "as they came");
    await head("name").click();
    assert.deepEqual(await column(1), ["a", "b", "NULL"], "NULL is last");
    await head("large").click();
    assert.deepEqual((await column(2)).map((value) => value.slice(-2)), [".4", ".5", "LL"], "all digits count");
    await cell(page, 0, 0).click();
    const width = async () => head("id").evaluate((part) => part.offsetWidth);
    const before = await width();
    await page.keyboard.press("Alt+ArrowRight");
    assert.ok((await width()) > before);
    await page.keyboard.press("s");
    assert.deepEqual(await column(0), ["9", "10", "100"]);
    const edge = await head("name").locator(".resize").evaluate((part) => part.getBoundingClientRect().toJSON());
    const wide = await head("name").evaluate((part) => part.offsetWidth);
    await page.mouse.move(edge.x + 3, edge.y + 10);
    await page.mouse.down();
    await page.mouse.move(edge.x + 83, edge.y + 10);
    await page.mouse.up();
    assert.ok(Math.abs((await head("name").evaluate((part) => part.offsetWidth)) - wide - 80) < 3);
    assert.deepEqual(await column(0), ["9", "10", "100"], "that sorted nothing");
  },

  async "without a connection, says since when, and dims what is old"(page) {
    await go(page, "Home");
    await page.locator(".bar-fill").first().waitFor({ state: "attached" });
    await page.route("**/v1/**", (route) => route.abort());
    // Another page wants another stream.
    await go(page, "Tables");
    await go(page, "Home");
    await page.getByText(/no connection · last answer \d\d:\d\d:\d\d/).waitFor();
    assert.ok(Number(await page.getByRole("main", { name: "Home" }).evaluate((main) => getComputedStyle(main).opacity)) < 0.7);
    const widths = await page.locator(".home .bar-fill").evaluateAll((fills) => fills.map((fill) => fill.getBoundingClientRect().width));
    assert.deepEqual([...new Set(widths)], [0], "meters are empty");
    await page.unroute("**/v1/**");
    await page.getByText("ready", { exact: true }).waitFor();
    assert.equal(await page.getByRole("main", { name: "Home" }).evaluate((main) => getComputedStyle(main).opacity), "1");
  },

  async "errors are sentences"(page) {
    await run(page, "SELECT * FROM no_such_table");
    await page.locator(".error-message").waitFor();
    for (const part of await page.locator(".error-message, .error-hint").allInnerTexts()) assert.match(part, /^[^a-z].*[.?!]$/s);
  },

  async "failed queries are there minutes later, by user, text and time"(page) {
    const mark = `lost${Date.now()}`;
    await fetch(new URL("v1/sql", url), { method: "POST", body: `SELECT 1 / 0 AS ${mark}` });
    // Quick ones push it out of what the registry remembers.
    for (let n = 0; n < 30; n += 1) await Promise.all(Array.from({ length: 10 }, (_, m) => post(`SELECT ${n * 10 + m} AS crowd`)));
    assert.equal((await json("v1/queries?recent=256")).recent.filter(({ sql }) => sql.includes(mark)).length, 0);
    await go(page, "Queries");
    await page.getByRole("button", { name: "Failed" }).click();
    const ended = page.getByRole("grid", { name: "Ended queries" });
    await ended.locator("tbody tr", { hasText: mark }).waitFor();
    await page.getByRole("button", { name: "Log", exact: true }).click();
    const filter = page.getByRole("search", { name: "Filter of the log" });
    await filter.getByLabel("Statement or error").fill(mark.toUpperCase());
    await until("one is left", async () => (await ended.locator("tbody tr").count()) === 1);
    await filter.getByLabel("User").fill("nobody");
    await until("none is left", async () => (await ended.locator("tbody tr").count()) === 0);
    await filter.getByLabel("User").fill("");
    await filter.getByLabel("State", { exact: true }).selectOption("failed");
    await ended.locator("tbody tr", { hasText: mark }).click();
    const details = page.getByRole("complementary", { name: "Query" });
    assert.match(await details.innerText(), /22012/);
    await details.getByRole("button", { name: "Copy link" }).click();
    await page.locator(".toast.shown").waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    await page.goto("about:blank");
    await page.goto(link);
    assert.match(await details.locator("pre").innerText(), new RegExp(mark));
    await page.goto(`${url}#/queries/987654321`);
    await details.getByText("does not know this query").waitFor();
  },

  async "lists of queries can be stopped, and lead to shapes"(page) {
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: /^Paused at/ }).waitFor();
    const mark = `paused${Date.now()}`;
    await post(`SELECT 17 AS ${mark}`);
    await page.waitForTimeout(2500);
    const row = page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr", { hasText: mark });
    assert.equal(await row.count(), 0);
    await page.getByRole("button", { name: /^Paused at/ }).click();
    await row.first().click();
    await page.getByRole("complementary", { name: "Query" }).getByRole("button", { name: "Its shape" }).click();
    assert.match(await page.getByRole("complementary", { name: "Shape" }).locator("pre").innerText(), new RegExp(mark));
  },

  async "tables can be filtered, and looked at as they were"(page) {
    await post("DROP TABLE IF EXISTS console_versions");
    await post("CREATE TABLE console_versions (n bigint)");
    for (const n of [1, 2]) await post(`INSERT INTO console_versions VALUES (${n}); FLUSH TABLE console_versions`);
    await go(page, "Tables");
    const rows = page.getByRole("grid", { name: "Tables" }).locator("tbody tr");
    await page.getByLabel("Filter of the list").fill("VERSIONS");
    await until("one is left", async () => (await rows.count()) === 1);
    await rows.first().click();
    const details = page.getByRole("complementary", { name: "Table" });
    await details.getByRole("group", { name: "What of the table" }).getByRole("button", { name: "Snapshots" }).click();
    await details.getByRole("button", { name: "Look at it" }).last().click();
    await page.locator("#sql").waitFor();
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+Enter");
    await cell(page, 0, 0).waitFor();
    assert.equal(await page.locator(".grid .row").count(), 1);
    assert.equal(await cell(page, 0, 0).innerText(), "1");
  },
};
