import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { BASE_PATH } from "../../src/http/access.ts";
import { PASSWORD } from "../support/api.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { pythonWith } from "../support/processes/python.ts";
import { startSignInWorld } from "../support/sign-in.ts";
import type { Tenants, TestUser } from "../support/tenants.ts";
import { type Belongings, settleIn } from "../support/victims.ts";

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

const ROLES = [
  "super_admin",
  "partner_owner",
  "partner_admin",
  "account_owner",
  "account_user",
  "location_user",
] as const;

/** Signs in every few seconds, because a request of the run may end the session of the run. */
const SIGN_IN = `
import json, os, urllib.request
import schemathesis

@schemathesis.auth(refresh_interval=3)
class SignIn:
    def get(self, case, context):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(os.environ["LOGIN_URL"], os.environ["LOGIN"].encode(), headers)
        return json.load(urllib.request.urlopen(request))["token"]

    def set(self, case, data, context):
        case.headers["Authorization"] = "Bearer " + data
`;

const python = pythonWith("schemathesis", ["schemathesis"]);
if (python === undefined) console.warn("Python's schemathesis is missing: its test is skipped.");

test.skipIf(python === undefined).each([...ROLES, "nobody"] as const)(
  "Schemathesis as %s finds no status 500 and no answer that the document does not describe",
  async (role) => {
    // Each role has stores of its own, because the requests of one may lock out the users of another.
    const world = await startSignInWorld();
    const api = await ApiProcess.start({
      DATABASE_URL: world.database.url,
      MASTER_KEY: Buffer.from(world.api.deps.config.masterKey).toString("base64"),
    });
    const folder = mkdtempSync(join(tmpdir(), "schemathesis-"));
    const user = role === "nobody" ? undefined : userOf(world.tenants, role);
    await Bun.write(join(folder, "sign_in.py"), user === undefined ? "" : SIGN_IN);
    await Bun.write(
      join(folder, "openapi.json"),
      JSON.stringify(await described(api, await settleIn(world, 0))),
    );
    const command = `${python} -m schemathesis.cli run openapi.json --url ${api.root} ${OPTIONS}`;
    const child = Bun.spawn(command.split(" "), {
      cwd: folder,
      env: {
        ...process.env,
        SCHEMATHESIS_HOOKS: "sign_in",
        PYTHONPATH: folder,
        LOGIN_URL: `${api.root}${BASE_PATH}/login`,
        LOGIN: JSON.stringify({ email: user?.email, password: PASSWORD }),
      },
      stdout: "pipe",
      stderr: "inherit",
    });
    const printed = await new Response(child.stdout).text();
    const status = await child.exited;
    // The address of a failed request may have many kilobytes.
    const lines = printed.split("\n").map((line) => line.slice(0, 500));
    const failures = lines.slice(lines.findIndex((line) => line.includes("= FAILURES =")));
    console.log((status === 0 ? lines.slice(-12) : failures).join("\n"));
    const hasFailed = api.said.includes("request.failed");
    api.kill();
    await world.stop();
    rmSync(folder, { recursive: true });
    expect([status, hasFailed]).toEqual([0, false]);
  },
  LIMIT_MS,
);

/** The user of a role, of the first partner and its first account. */
function userOf({ superAdmin, partners }: Tenants, role: (typeof ROLES)[number]): TestUser {
  const [{ owner, admin, accounts }] = partners;
  const [account] = accounts;
  const people = [superAdmin, owner, admin, account.owner, account.user, account.locationUser];
  const found = people.find((one) => one.role === role);
  if (found === undefined) throw new Error(`Nobody is ${role}.`);
  return found;
}

/**
 * The document, in which half of the ids in paths are those of the caller's records, and with status 431 in each operation.
 * Its introduction describes that status once for all (contract 2.13). A record that is deleted would be missing to the
 * requests after it, so paths of DELETE stay as they are.
 */
async function described(api: ApiProcess, own: Belongings): Promise<unknown> {
  const document = (await (await fetch(`${api.root}/openapi.json`)).json()) as Described;
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(operations)) {
      operation.responses["431"] = { description: "The path or a header is too long." };
      for (const parameter of operation.parameters ?? []) {
        const [prefix = ""] = /^(?:\/[\w-]+){2}\/\{\w+\}/.exec(path.replace(BASE_PATH, "")) ?? [];
        const id =
          own.get(`{${parameter.name}}`) ??
          (prefix.endsWith(`{${parameter.name}}`) ? own.get(prefix) : undefined);
        if (parameter.in === "path" && id !== undefined && method !== "delete")
          parameter.schema = { anyOf: [{ enum: [id] }, parameter.schema] };
      }
    }
  return document;
}

interface Described {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly responses: Record<string, unknown>;
            readonly parameters?: { readonly name: string; readonly in: string; schema: unknown }[];
          }
        >
      >
    >
  >;
}
