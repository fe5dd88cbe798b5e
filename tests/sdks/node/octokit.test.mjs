// Octokit through the proxy: the same objects as without it.

import assert from "node:assert/strict";
import test from "node:test";
import { graphql } from "@octokit/graphql";
import { Octokit } from "@octokit/rest";
import { start } from "./support.mjs";

const repo = { owner: "octo", repo: "tap" };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const client = (baseUrl) => new Octokit({ baseUrl, auth: "k", log: quiet });

test("octokit: REST and GraphQL are the same", async (t) => {
  const { direct, tap } = await start(t, "github");
  const look = async (baseUrl) => {
    const { rest } = client(baseUrl);
    const ask = graphql.defaults({ baseUrl, headers: { authorization: "token k" } });
    return [
      (await rest.users.getAuthenticated()).data,
      (await rest.repos.get(repo)).data,
      (await rest.issues.create({ ...repo, title: "a leak" })).data,
      await ask("query { viewer { login } }"),
    ];
  };
  const seen = await look(tap);
  assert.deepEqual(seen, await look(direct));
  assert.equal(seen[3].viewer.login, "octo");
});

test("octokit: the pages of a list are all fetched through the tap", async (t) => {
  const { tap, log } = await start(t, "github");
  const octokit = client(tap);
  const through = [];
  octokit.hook.after("request", (answer) => through.push(answer.headers["x-standpipe-pool"]));
  const issues = await octokit.paginate(octokit.rest.issues.listForRepo, { ...repo, per_page: 1 });
  assert.deepEqual(issues.map((issue) => issue.number), [1, 2, 3]);
  assert.deepEqual(through, Array(3).fill("github/core"));
  assert.equal((await log()).length, 3);
});

test("octokit: errors are its own", async (t) => {
  const { direct, tap } = await start(t, "github");
  const look = async (baseUrl, status) => {
    const headers = { "x-fail": `${status}`, "x-standpipe-wait": "0" };
    const call = client(baseUrl).rest.repos.get({ ...repo, headers });
    const { name, message, status: found } = await call.catch((error) => error);
    return { name, message, found };
  };
  for (const status of [401, 403, 404, 422, 500]) {
    const seen = await look(tap, status);
    assert.deepEqual(seen, await look(direct, status));
    assert.equal(seen.found, status);
  }
});

test("octokit: an exhausted quota is refused as GitHub does, by the ledger", async (t) => {
  const { tap, log } = await start(t, "github", ["--kind", "fixed", "--requests", "4/h"]);
  const { rest } = client(tap);
  const call = () => rest.repos.get({ ...repo, headers: { "x-standpipe-wait": "0" } });
  const refused = async () => {
    for (let calls = 0; calls < 5; calls++) {
      const error = await call().then(() => null, (error) => error);
      if (error) return error;
    }
    throw new Error("it was never refused");
  };
  const error = await refused();
  assert.equal(error.status, 429);
  assert.equal(error.response.headers["x-standpipe-origin"], "ledger");
  const calls = await log();
  assert.ok(calls.length > 1 && calls.every((each) => each.admitted));
});
