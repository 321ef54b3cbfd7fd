// The text box of the SQL editor: what is selected can be read, brackets, errors, the formatter, find.

import assert from "node:assert/strict";

import { cell, run, text, write } from "./harness.mjs";

const SQL = "-- a comment\nSELECT day, 'text' AS words, 42 AS number, \"name\"\nFROM console_report WHERE note IS NULL AND account_id IN (1, 2)";

/** Contrast by the formula of WCAG 2, of colours as computed styles have them. */
function ratio([a, b]) {
  const light = (color) => /rgba?\(([^)]+)\)/.exec(color)[1].split(",").slice(0, 3).map(Number)
    .map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
  const [x, y] = [light(a), light(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

export const editorTests = {
  async "shows what is selected, in both themes"(page) {
    await write(page, SQL);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const focused of [true, false]) {
        await page.locator("#sql").focus();
        await page.keyboard.press("Control+a");
        if (!focused) await page.getByRole("button", { name: "Run", exact: false }).first().focus();
        await page.locator(".cm-selectionBackground").first().waitFor();
        const { behind, paper, texts } = await page.evaluate(() => ({
          behind: getComputedStyle(document.querySelector(".cm-selectionBackground")).backgroundColor,
          paper: getComputedStyle(document.querySelector(".cm-editor")).backgroundColor,
          texts: [...document.querySelectorAll(".cm-line, .cm-line span")].map((part) => [part.textContent, getComputedStyle(part).color]),
        }));
        assert.ok(texts.length > 8, "there are colours");
        for (const [part, color] of texts) {
          const contrast = ratio([color, behind]);
          assert.ok(contrast >= 4.5, `${colorScheme}: ${contrast.toFixed(2)} for ${part}`);
        }
        assert.ok(ratio([behind, paper]) >= 1.3, `${colorScheme}: what is selected is to be seen: ${ratio([behind, paper]).toFixed(2)}`);
      }
    }
    // The browser itself draws nothing over it: the pixels of the text stay.
    assert.equal(await page.locator(".cm-content").evaluate((area) => getComputedStyle(area.querySelector(".cm-line"), "::selection").backgroundColor), "rgba(0, 0, 0, 0)");
  },

  async "matches and closes brackets"(page) {
    await write(page, "");
    await page.keyboard.type("SELECT count(");
    assert.equal(await text(page), "SELECT count()");
    await page.keyboard.type("*)");
    assert.equal(await text(page), "SELECT count(*)");
    await page.locator(".cm-matchingBracket").nth(1).waitFor();
    assert.deepEqual(await page.locator(".cm-matchingBracket").allInnerTexts(), ["(", ")"]);
  },

  async "underlines an error at its place, until it is edited"(page) {
    await run(page, "SELECT 1;\nSELECT day,\n  impresions FROM console_report");
    await page.locator(".squiggle", { hasText: "impresions" }).waitFor();
    assert.match(await page.locator(".squiggle").getAttribute("title"), /impresions/);
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.type(" ");
    await page.locator(".squiggle").waitFor({ state: "detached" });
  },

  async "formats a text without changing what it says"(page) {
    await write(page, "select day,sum(impressions) as shown from console_report where account_id in (select 1 union all select 2) and note is null group by day order by 1;select 'a;  b' as \"C d\" -- end");
    await page.keyboard.press("Alt+Shift+F");
    assert.equal(await text(page), "select day, sum(impressions) as shown\nfrom console_report\nwhere account_id in (\n  select 1\n  union all\n  select 2\n)\n  and note is null\ngroup by day\norder by 1;\n\nselect 'a;  b' as \"C d\" -- end\n");
    await page.keyboard.press("Control+z");
    assert.match(await text(page), /^select day,sum/);
    const changed = await page.evaluate(async () => {
      const [{ formatSql }, { tokensOf }, statements] = await Promise.all([import("/js/format-sql.js"), import("/js/sql-tokens.js"), import("/js/statements.js")]);
      const said = (sql) => JSON.stringify(tokensOf(sql).filter(({ kind }) => kind !== "blank").map((token) => token.text));
      const texts = [
        ...Object.values(statements).flatMap((value) => (typeof value === "string" ? [value] : typeof value === "object" ? Object.values(value) : [])),
        "SELECT a- -1,b::int,c[1],f( x ),CASE WHEN a AND b THEN 1 ELSE 2 END FROM t JOIN (SELECT 1 -- one\n) AS u ON t.a=u.b", "SELECT $$ x; y $$, E'\\'', interval '1 day', x IS NOT DISTINCT FROM y",
        "CREATE TABLE t (a int, b decimal(18, 4)) PARTITIONED BY (month(a)) ORDER BY (b)", "INSERT INTO t (a,b) VALUES (1,2),(3,4) RETURNING a", "(((", "'", "/* open", "",
      ];
      return texts.filter((sql) => {
        const once = formatSql(sql);
        return said(once) !== said(sql) || formatSql(once) !== once;
      });
    });
    assert.deepEqual(changed, []);
  },

  async "finds in the text, and comments lines"(page) {
    await write(page, "SELECT 1\nFROM console_report");
    await page.keyboard.press("Control+f");
    await page.keyboard.type("report");
    await page.locator(".cm-searchMatch").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#sql").focus();
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Control+/");
    assert.equal(await text(page), "-- SELECT 1\n-- FROM console_report");
  },

  async "can be left by keyboard"(page) {
    await write(page, "SELECT 1");
    await page.keyboard.press("Tab");
    assert.equal(await text(page), "SELECT 1  ");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "run");
  },

  async "keeps a large text quick"(page) {
    const typed = "SELECT 5001 AS last";
    // The quickest of all keys: what a machine that does much else gives to one of them.
    const quickest = async (text) => {
      await write(page, text);
      let ms = Infinity;
      for (const key of typed) {
        const began = performance.now();
        await page.keyboard.type(key);
        ms = Math.min(ms, performance.now() - began);
      }
      return ms;
    };
    const small = await quickest("SELECT 1;\n");
    const large = await quickest(Array.from({ length: 5000 }, (_, n) => `SELECT ${n} AS n, 'text ${n}' AS words;`).join("\n"));
    assert.ok(large < 10 * small + 50, `a key takes ${large.toFixed(1)} ms, and ${small.toFixed(1)} ms in a small text`);
    // Lines out of view make no elements.
    assert.ok((await page.locator(".cm-line").count()) < 300);
    await page.keyboard.press("Control+Enter");
    await cell(page, 0, 0).waitFor();
    assert.equal(await cell(page, 0, 0).innerText(), "5001");
  },
};
