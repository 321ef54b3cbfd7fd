// What docs/first-minutes.md tells a new user to do, on a server without tables: a step of the page is a step here. Fails on any
// error in the browser's console, and on any answer of 400 or above but for the mistake that is made on purpose.
//
// Environment: STOA_BIN, a server's binary.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { cell, go, openPage, until, write } from "./harness.mjs";
import { startServer } from "./own-server.mjs";

const page_ = await readFile(new URL("../../docs/first-minutes.md", import.meta.url), "utf8");

/** The steps of the page, by what is printed bold. */
const STEPS = {
  async "Make a table and run a report"(page) {
    await page.getByRole("region", { name: "First steps" }).getByRole("button", { name: "Open in SQL editor" }).click();
    await page.locator("#sql").waitFor();
    await page.getByRole("button", { name: "Run all" }).click();
    await cell(page, 11, 2).waitFor();
    // Days 152 to 366 are from June on; of account 0, those that are multiples of 12.
    const days = Array.from({ length: 366 }, (_, n) => n + 1).filter((n) => n >= 152 && n % 12 === 0);
    const clicks = days.reduce((sum, n) => sum + 21 * n, 0);
    assert.equal(await cell(page, 0, 0).innerText(), "0");
    assert.equal((await cell(page, 0, 2).innerText()).replace(/\D/g, ""), String(clicks));
  },

  async "See it as a chart"(page) {
    await page.getByRole("button", { name: "Chart" }).click();
    await page.locator(".result-chart .mark").first().waitFor({ state: "attached" });
    await page.getByRole("button", { name: "Rows", exact: true }).click();
    await cell(page, 0, 0).waitFor();
  },

  async "Sort, pin and copy"(page) {
    const head = page.locator(".grid .head", { hasText: "clicks" });
    await head.click();
    await head.click();
    await page.locator('.grid .head[aria-sort="descending"]').waitFor();
    await head.hover();
    await head.getByRole("button", { name: "Pin clicks" }).click();
    await page.locator(".grid .head.pinned").waitFor();
    await cell(page, 0, 0).click();
    for (const key of ["Shift+ArrowRight", "Control+c"]) await page.keyboard.press(key);
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^\d+\t\d+$/);
  },

  async "Ask with parameters"(page) {
    await page.getByRole("button", { name: "New tab" }).click();
    await write(page, said("SELECT day, clicks FROM first_report WHERE account_id = $1 ORDER BY day"));
    await page.getByLabel("Parameter $1").fill("7");
    await page.locator("#sql").press("Control+Enter");
    // Days 7, 19, … of 366.
    await until("its 30 days are there", async () => /\b30 rows/.test(await page.locator(".result-bar").innerText()));
    assert.equal(await cell(page, 0, 0).innerText(), "2026-01-07");
  },

  async "Take all rows with you"(page) {
    // Without the picker a headless browser could not answer.
    await page.evaluate(() => { window.showSaveFilePicker = undefined; });
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV", exact: true }).click()]);
    const lines = (await readFile(await file.path(), "utf8")).trimEnd().split("\n");
    assert.deepEqual([lines.length, lines[0], lines[1]], [31, "day,clicks", `2026-01-07,${7 * 21}`]);
  },

  async "See why it was quick"(page) {
    await page.locator("#sql").press("Control+Shift+Enter");
    await page.locator(".plan-row .operator-name").first().waitFor();
  },

  async "Make a mistake"(page) {
    page.mistakes = 1;
    await write(page, said("SELECT clics FROM first_report"));
    await page.locator("#sql").press("Control+Enter");
    await page.locator(".error-message", { hasText: "clics" }).waitFor();
    await page.locator(".error", { hasText: "clicks" }).waitFor();
  },

  async "Look at the table"(page) {
    await go(page, "Tables");
    await page.getByRole("grid", { name: "Tables" }).locator("tbody tr", { hasText: "first_report" }).click();
    const details = page.getByRole("complementary", { name: "Table" });
    await details.locator("h2", { hasText: "first_report" }).waitFor();
    await details.getByText("account_id").first().waitFor();
  },

  async "Look at what ran"(page) {
    await go(page, "Queries");
    const ended = page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr");
    await ended.filter({ hasText: "INSERT INTO first_report" }).first().click();
    await page.getByRole("complementary", { name: "Query" }).locator("h2").waitFor();
    await go(page, "Shapes");
    await page.getByRole("grid", { name: "Shapes" }).locator("tbody tr").first().waitFor();
  },

  async "Keep your place"(page) {
    await go(page, "SQL");
    await page.reload();
    await page.getByText("ready", { exact: true }).waitFor();
    await until("the tabs are there", async () => (await page.getByRole("tab").count()) >= 2);
    // Not in the editor, where it is a text.
    await go(page, "Home");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
  },
};

/** A text that the page has in code, lines joined. */
function said(text) {
  assert.ok(page_.replace(/\s+/g, " ").includes(`\`${text}\``), `the page does not say ${text}`);
  return text;
}

export const firstMinutesTests = {
  async "the first ten minutes pass without a single error"() {
    const steps = [...page_.matchAll(/^\d+\. \*\*(.+?)\.\*\*/gm)].map((step) => step[1]);
    assert.deepEqual(steps, Object.keys(STEPS), "the page and this test have the same steps");
    const directory = await mkdtemp(join(tmpdir(), "stoa-first."));
    const server = await startServer(directory, 0);
    const page = await openPage({ acceptDownloads: true });
    const errors = [];
    page.mistakes = 0;
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("requestfailed", (request) => {
      // What the page gives up itself: streams when another page is shown, what is under way when it is loaded anew,
      // downloads, which the browser takes over.
      const failure = request.failure()?.errorText;
      if (failure !== "net::ERR_ABORTED") errors.push(`${request.url()}: ${failure}`);
    });
    page.on("response", (response) => {
      if (response.status() < 400) return;
      if (page.mistakes > 0 && response.url().includes("/v1/sql")) page.mistakes -= 1;
      else errors.push(`${response.status()} ${response.url()}`);
    });
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !/status of 4\d\d/.test(message.text())) errors.push(`${message.type()}: ${message.text()}`);
    });
    page.setDefaultTimeout(20_000);
    try {
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: `http://127.0.0.1:${server.port}` });
      await page.goto(`http://127.0.0.1:${server.port}/`);
      for (const [name, step] of Object.entries(STEPS)) {
        try {
          await step(page);
        } catch (error) {
          throw new Error(`${name}: ${error.message}`, { cause: error });
        }
        assert.deepEqual(errors, [], name);
      }
      assert.equal(page.mistakes, 0, "the mistake was an error");
    } finally {
      await page.context().close();
      await server.end("SIGTERM");
      await rm(directory, { recursive: true });
    }
  },
};
