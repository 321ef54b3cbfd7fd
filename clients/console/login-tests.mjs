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
};
