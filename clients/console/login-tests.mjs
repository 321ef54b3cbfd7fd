// A server that asks for passwords: who am I, signing out, what a plain role sees.
//
// Environment: STOA_ROLES: two roles with passwords, `plain:password superuser:password`.

import assert from "node:assert/strict";

import { cell, go, run, until, url } from "./harness.mjs";

const [plain = "", boss = ""] = (process.env.STOA_ROLES ?? "").split(" ");

/** Signs in as browsers do: they keep the password for the site. */
async function signIn(page, credentials) {
  await page.goto(url.replace("//", `//${credentials}@`));
  await page.goto(`${url}#/home`);
  await page.getByText("ready", { exact: true }).waitFor();
}

export const loginTests = {
  async "says who is signed in, and signs out"(first) {
    for (const [credentials, text] of [[plain, "ann"], [boss, "bob · superuser"]]) {
      // The browser's page about the refused password would come between.
      const page = await first.context().newPage();
      await signIn(page, credentials);
      const role = page.locator(".role");
      await role.getByText("Sign out").waitFor();
      assert.ok((await role.innerText()).startsWith(text), await role.innerText());
      assert.equal(await page.locator(".role-note").isVisible(), credentials === plain, "what a plain role does not see is said");
      const [answer] = await Promise.all([page.waitForResponse(/sign-out/), role.getByText("Sign out").click()]);
      assert.equal(answer.status(), 401);
      // The browser has forgotten the password. It would ask for one here, which a headless one cannot.
      await page.waitForURL(/chrome-error/);
      await assert.rejects(page.goto(url), /ERR_INVALID_AUTH_CREDENTIALS/);
    }
  },

  async "signing out in one window ends what another one is told"(first) {
    const [page, other] = [await first.context().newPage(), await first.context().newPage()];
    await signIn(page, plain);
    await other.goto(`${url}#/queries`);
    await other.getByText("ready", { exact: true }).waitFor();
    const signOut = page.locator(".role").getByText("Sign out");
    await Promise.all([page.waitForResponse(/sign-out/), signOut.click()]);
    await other.getByText(/no connection/).waitFor();
    // Somebody else signs in: both windows are theirs.
    await signIn(await first.context().newPage(), boss);
    await other.locator(".role").getByText("bob").waitFor();
  },

  async "a plain role sees its own statements, on all pages without an error"(page) {
    await signIn(page, plain);
    for (const title of ["SQL", "Tables", "Queries", "Shapes", "Home"]) {
      await go(page, title);
      await page.waitForTimeout(300);
    }
    await go(page, "SQL");
    await run(page, "SELECT 1 AS mine");
    await cell(page, 0, 0).waitFor();
    await go(page, "Queries");
    await page.getByRole("button", { name: "Latest" }).click();
    const users = page.getByRole("grid", { name: "Ended queries" }).locator("tbody tr td:nth-last-child(2)");
    await until("there are statements", async () => (await users.count()) > 0);
    for (const user of await users.allInnerTexts()) assert.match(user, /^ann/);
  },

  async "what a plain role may not do to a table is refused, and said so"(page) {
    // The superuser makes it, and lets ann read it.
    const ask = async (credentials, sql) => {
      const answer = await fetch(new URL("v1/sql", url), { method: "POST", body: sql, headers: { authorization: `Basic ${btoa(credentials)}` } });
      return [answer.status, await answer.json()];
    };
    for (const sql of ["DROP TABLE IF EXISTS guarded", "CREATE TABLE guarded (n bigint)", "INSERT INTO guarded VALUES (1)", "FLUSH TABLE guarded", "INSERT INTO guarded VALUES (2)", "FLUSH TABLE guarded", "GRANT SELECT ON guarded TO ann"]) {
      assert.equal((await ask(boss, sql))[0], 200, sql);
    }
    await signIn(page, plain);
    await page.goto(`${url}#/tables/public/guarded`);
    const table = page.getByRole("complementary", { name: "Table" });
    await table.locator("h2", { hasText: "guarded" }).waitFor();
    const dialog = page.getByRole("dialog");
    const refused = async (go) => {
      await dialog.getByRole("button", { name: go, exact: true }).click();
      await dialog.locator(".dialog-trouble .badge", { hasText: "42501" }).waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    };
    for (const [label, go] of [["Compact", "Compact"], ["Expire snapshots", "Expire"], ["Drop", "Drop"]]) {
      await table.getByRole("group", { name: "Change the table" }).getByRole("button", { name: label }).click();
      await refused(go);
    }
    await table.getByRole("button", { name: "Rename" }).click();
    await dialog.getByLabel("New name").fill("mine_now");
    await refused("Rename");
    await table.getByRole("button", { name: "Snapshots", exact: true }).click();
    await table.getByRole("button", { name: "Roll back" }).click();
    await refused("Roll back");
    // What is missing is said in a sentence.
    await page.getByRole("main", { name: "Tables" }).getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("textbox", { name: "Table", exact: true }).fill("of_her_own");
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    const trouble = dialog.locator(".dialog-trouble");
    await trouble.locator(".badge", { hasText: "42501" }).waitFor();
    const said = await trouble.innerText();
    assert.match(said, /Permission denied: only a superuser may create tables\./, said);
    assert.match(said, /The role is "ann"\./, said);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // Neither into a table that she may only read, nor into one of her own making.
    for (const name of ["guarded.csv", "of_her_own.csv"]) {
      await page.getByLabel("File to load").setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from("n\n3\n") });
      await refused("Load");
    }
    assert.deepEqual((await ask(boss, "SELECT count(*), (SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public') FROM guarded"))[1].rows, [[2, 1]]);
  },
};
