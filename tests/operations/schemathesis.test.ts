import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Role } from "../../src/http/principal.ts";
import { PASSWORD } from "../support/api.ts";
import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { pythonWith } from "../support/processes/python.ts";

/*
 * Schemathesis, a published fuzzer of OpenAPI documents, calls every operation as a user of every role and without a
 * token. `SCHEMATHESIS_CASES` limits the cases of one operation and role.
 */
const CASES = process.env["SCHEMATHESIS_CASES"] ?? "5";
const LIMIT_MS = 3_600_000;
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
  "response_headers_conformance",
].join(",");
/** Event streams do not end, and the others end the token of the run. Both have tests of their own. */
const LEFT_OUT = "(stream|logout|revoking-token|reset-password|change-password|oauth/revoke)$";

const OPTIONS = `--phases examples,coverage,fuzzing --max-examples ${CASES} --seed 1 --checks ${CHECKS} --exclude-path-regex ${LEFT_OUT} --continue-on-failure --no-color`;

const python = pythonWith("schemathesis", ["schemathesis"]);
if (python === undefined) console.warn("Python's schemathesis is missing: its test is skipped.");

const { api, tenants, stop } = await startAttackedApi();
const folder = mkdtempSync(join(tmpdir(), "schemathesis-"));
const document = join(folder, "openapi.json");
await Bun.write(document, JSON.stringify(await describedWith431()));

test.skipIf(python === undefined).each([...peopleOf(), ["nobody", undefined]] as const)(
  "Schemathesis as %s finds no status 500 and no answer that the document does not describe",
  async (_, email) => {
    const command = `${python} -m schemathesis.cli run ${document} --url ${api.root} ${OPTIONS}`;
    const header = email === undefined ? [] : ["--header", await authorizationOf(email)];
    const child = Bun.spawn([...command.split(" "), ...header], {
      cwd: folder,
      stdout: "pipe",
      stderr: "inherit",
    });
    const printed = await new Response(child.stdout).text();
    const status = await child.exited;
    // The address of a failed request may have many kilobytes.
    const lines = printed.split("\n").map((line) => line.slice(0, 500));
    const failures = lines.slice(lines.findIndex((line) => line.includes("= FAILURES =")));
    console.log((status === 0 ? lines.slice(-12) : failures).join("\n"));
    expect([status, api.said.includes("request.failed")]).toEqual([0, false]);
  },
  LIMIT_MS,
);

/** One user of each role, of the first partner and its first account. */
function peopleOf(): [Role, string][] {
  const [{ owner, admin, accounts }] = tenants.partners;
  const [account] = accounts;
  return [tenants.superAdmin, owner, admin, account.owner, account.user, account.locationUser].map(
    (user) => [user.role, user.email],
  );
}

/** The document with status 431 in each operation. Its introduction describes that status once for all (contract 2.13). */
async function describedWith431(): Promise<unknown> {
  const response = await fetch(`${api.root}/openapi.json`);
  const answer = { description: "The path or a header is too long." };
  return JSON.parse(await response.text(), (_, value) =>
    value?.operationId === undefined
      ? value
      : { ...value, responses: { ...value.responses, 431: answer } },
  );
}

async function authorizationOf(email: string): Promise<string> {
  const { body } = await api.login(email, PASSWORD);
  return `Authorization: Bearer ${String(body["token"])}`;
}

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await stop();
});
