// Runs the programs of docs/examples unchanged, with tokens of a listening server and with forged ones.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  type CryptoKey,
  decodeJwt,
  generateKeyPair,
  importJWK,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from "jose";

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { issueToken, type TokenGrant } from "../../src/auth/sign-in/open-session.ts";
import { listSigningKeys } from "../../src/auth/keys/queries.ts";
import { startApi } from "../support/api.ts";
import { fixture } from "../support/fixture.ts";
import { createDatabase } from "../support/postgres.ts";
import { composerWith } from "../support/processes/composer.ts";
import { GO_ENV } from "../support/processes/go.ts";
import { pythonWith } from "../support/processes/python.ts";
import { addTenants, addUser } from "../support/tenants.ts";
import { lacks, skipped } from "../support/needs.ts";

describe("the programs that check a token", () => {
  test("are all covered here", () => {
    expect(readdirSync(SAMPLES).toSorted()).toEqual(Object.keys(PROGRAMS).toSorted());
  });

  for (const [sample, command] of Object.entries(PROGRAMS))
    test.skipIf(command === undefined)(
      `${sample} gives the right verdict on every token`,
      async () => {
        const child = Bun.spawn([...(command ?? [])], {
          cwd: folder,
          env: { ...process.env, REVIEWRELAY: api.root, SERVICE_TOKEN: serviceToken },
          stdin: Buffer.from(tokens.map(({ token }) => `${token}\n`).join("")),
          stdout: "pipe",
          stderr: "pipe",
        });
        const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
        const verdicts = out
          .trimEnd()
          .split("\n")
          .map((line) => line.trimEnd());
        expect([tokens.map(({ name }, i) => [name, verdicts[i]]), err]).toEqual([
          tokens.map(({ name, keys, asked }) => [name, `${keys} ${asked}`]),
          expect.any(String),
        ]);
      },
    );
});

const SAMPLES = join(ROOT, "docs/examples");
const folder = mkdtempSync(join(tmpdir(), "check-token-"));
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(async () => {
  const port = await freePort();
  const root = `http://127.0.0.1:${port}`;
  const started = await startApi({ db: database.db, config: { serverRoot: root } });
  started.listen(port);
  return { ...started, root };
});

const python = pythonWith("check-token", ["pyjwt[crypto]==2.10.1"]);
const vendor = composerWith("check-token", ["firebase/php-jwt:^7.0"]);

/** The command that runs each program; undefined without its language or its packages. */
const PROGRAMS: Readonly<Record<string, readonly string[] | undefined>> = {
  "check-token.mjs": lacks("node") ? undefined : ["node", "check-token.mjs"],
  "check_token.py": python === undefined ? undefined : [python, "check_token.py"],
  "check_token.go": lacks("go") || !hasGoPackages() ? undefined : ["./check-token-go"],
  "check_token.php": vendor === undefined ? undefined : ["php", "check_token.php"],
  "check_token.rb": lacks("ruby", "ruby-jwt") ? undefined : ["ruby", "check_token.rb"],
};

interface Token {
  readonly name: string;
  readonly token: string;
  /** The user whom a program sees by the keys, and by introspection; `-` if it refuses the token. */
  readonly keys: number | "-";
  readonly asked: number | "-";
}

let tokens: readonly Token[] = [];
let serviceToken = "";

beforeAll(async () => {
  for (const name of readdirSync(SAMPLES)) cpSync(join(SAMPLES, name), join(folder, name));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  if (vendor !== undefined) symlinkSync(vendor, join(folder, "vendor"));
  serviceToken = await issueServiceToken();
  tokens = await makeTokens();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Downloads the packages of the Go program and builds it; returns false if they cannot be had. */
function hasGoPackages(): boolean {
  cpSync(join(SAMPLES, "check_token.go"), join(folder, "check_token.go"));
  const steps = [
    ["go", "mod", "init", "example.com/app"],
    ["go", "get", "github.com/golang-jwt/jwt/v5@v5.3.1", "github.com/MicahParks/keyfunc/v3@v3.9.1"],
    ["go", "build", "-o", "check-token-go", "check_token.go"],
  ];
  const env = { ...process.env, ...GO_ENV };
  const options = { cwd: folder, env, stdout: "ignore", stderr: "ignore" } as const;
  if (steps.every((command) => Bun.spawnSync(command, options).success)) return true;
  return !skipped("proxy of Go modules");
}

async function issueServiceToken(): Promise<string> {
  const token = await api.login(tenants.superAdmin.email);
  const make = async (path: string, body: object) =>
    (await api.call("POST", path, { token, body })).body;
  const { id } = await make("/admin/services", { name: "Site", scopes: ["tokens:introspect"] });
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const issued = await make(`/admin/services/${String(id)}/tokens`, {
    name: "one",
    expires_at: expiresAt,
  });
  return String(issued["access_token"]);
}

async function makeTokens(): Promise<Token[]> {
  const { id: companyId, owner } = tenants.partners[0];
  const gone = await addUser(database.db, {
    companyId,
    role: "partner_admin",
    email: "gone@p1.test",
  });
  const issue = async (over: Partial<TokenGrant>) => {
    const base = { kind: "access", familyId: null, clientId: null, impersonatorId: null } as const;
    const grant = { ...base, userId: owner.id, scope: "*", ttlS: 3_600, now: new Date(), ...over };
    const { db } = database;
    return (await db.transaction((tx) => issueToken(tx, api.deps.keys, grant))).token;
  };
  const [valid, loggedOut, ofGone] = [
    await issue({}),
    await api.login(owner.email),
    await issue({ userId: gone.id }),
  ];
  await api.call("GET", "/logout", { token: loggedOut });
  await database.db.sql`update users set is_active = false where id = ${gone.id}`;

  const [row] = (await listSigningKeys(database.db)).filter(({ state }) => state === "current");
  if (row === undefined) throw new Error("There is no current key.");
  const { kid, publicJwk, sealedPrivateKey } = row;
  const privateJwk = JSON.parse(api.deps.box.open(sealedPrivateKey, `signing-key:${kid}`));
  const ours = await importJWK(privateJwk, "RS256");
  const foreign = (await generateKeyPair("RS256")).privateKey;
  const claims = decodeJwt(valid);
  const sign = (over: JWTPayload, key: CryptoKey | Uint8Array, alg = "RS256") =>
    new SignJWT({ ...claims, ...over }).setProtectedHeader({ alg, kid, typ: "at+jwt" }).sign(key);
  const hmacKey = new TextEncoder().encode(JSON.stringify(publicJwk));
  const minuteAgo = new Date(Date.now() - 60_000);

  const [accepted, refused] = [
    { keys: owner.id, asked: owner.id },
    { keys: "-", asked: "-" },
  ] as const;
  return [
    { name: "valid", token: valid, ...accepted },
    { name: "of one scope", token: await issue({ scope: "reviews:read" }), ...accepted },
    { name: "signed again", token: await sign({}, ours), ...accepted },
    { name: "revoked", token: loggedOut, keys: owner.id, asked: "-" },
    { name: "of an inactive user", token: ofGone, keys: gone.id, asked: "-" },
    {
      name: "without an end",
      token: await issue({ kind: "dashboard_pat", ttlS: null, box: api.deps.box }),
      keys: "-",
      asked: owner.id,
    },
    { name: "expired", token: await issue({ ttlS: 10, now: minuteAgo }), ...refused },
    { name: "of another scope", token: await issue({ scope: "webhooks:read" }), ...refused },
    { name: "of a mailed code", token: await issue({ scope: "password:reset" }), ...refused },
    { name: "refresh token", token: await issue({ kind: "refresh" }), ...refused },
    { name: "of a service", token: serviceToken, ...refused },
    {
      name: "another issuer",
      token: await sign({ iss: "https://other.example" }, ours),
      ...refused,
    },
    { name: "another audience", token: await sign({ aud: `${api.root}/v2` }, ours), ...refused },
    { name: "another key", token: await sign({}, foreign), ...refused },
    { name: "HMAC by the public key", token: await sign({}, hmacKey, "HS256"), ...refused },
    { name: "alg none", token: new UnsecuredJWT(claims).encode(), ...refused },
    { name: "no token", token: "x", ...refused },
    { name: "valid, after all others", token: valid, ...accepted },
  ];
}
