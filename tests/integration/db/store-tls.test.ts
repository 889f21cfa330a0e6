// TLS to PostgreSQL and Redis (docs/operations/production.md), with a real server and certificates of the tests' authority.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chownSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";

import { connect } from "../../../db/client.ts";
import {
  type RunningStore,
  startEmbeddedPostgres,
} from "../../../scripts/demo/stores/embedded-postgres.ts";
import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { installPostgres, postgresMajor } from "../../../scripts/demo/stores/postgres-versions.ts";
import { checkTls } from "../../../src/operate/doctor/surroundings.ts";
import { ConfigError, readConfig } from "../../../src/lib/config.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { connectRedis } from "../../../src/lib/redis.ts";
import { sentinelOptions } from "../../../src/lib/settings-reader.ts";
import { silentLog } from "../../support/dispatch.ts";
import {
  CA,
  HOOK_TEST,
  LOOPBACK_ADDRESSES,
  SELF_SIGNED,
  type ServerCertificate,
} from "../../support/network/certificates.ts";

const UNKNOWN = "UNABLE_TO_VERIFY_LEAF_SIGNATURE";
const OTHER_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

const folder = mkdtempSync(join(tmpdir(), "rr-tls-"));
const ca = join(folder, "ca.pem");
const otherCa = join(folder, "other.pem");
writeFileSync(ca, CA);
writeFileSync(otherCa, SELF_SIGNED.cert);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("PostgreSQL", () => {
  let server: RunningStore;

  beforeAll(async () => {
    // The first start makes the folder of the server, whose user alone may read the key.
    await (await start()).stop();
    server = await start(LOOPBACK_ADDRESSES);
  }, 120_000);
  afterAll(() => server.stop());

  test.each([
    ["", false],
    ["?sslmode=disable", false],
    ["?sslmode=prefer", true],
    ["?sslmode=require", true],
    ["?sslmode=require&prepare=false", true],
    [`?sslmode=verify-full&sslrootcert=${ca}`, true],
    [`?prepare=false&sslrootcert=${encodeURIComponent(ca)}&sslmode=verify-full`, true],
  ])("with %s connects, encrypted: %p", async (parameters, expected) => {
    expect(await tried(parameters)).toBe(expected);
  });

  test.each([
    ["an unknown authority", "?sslmode=verify-full", "127.0.0.1", UNKNOWN],
    ["an unknown authority", "?sslmode=verify-full&sslrootcert=system", "127.0.0.1", UNKNOWN],
    ["the wrong authority", `?sslmode=verify-full&sslrootcert=${otherCa}`, "127.0.0.1", UNKNOWN],
    ["the wrong name", `?sslmode=verify-full&sslrootcert=${ca}`, "localhost", OTHER_NAME],
  ])("is refused for %s (%s, %s)", async (_, parameters, host, code) => {
    expect(await tried(parameters, host)).toBe(code);
  });

  test("with a certificate of another name than the address is refused, and so is a server without TLS", async () => {
    await server.stop();
    server = await start(HOOK_TEST);
    expect(await tried(`?sslmode=verify-full&sslrootcert=${ca}`)).toBe(OTHER_NAME);
    expect(await tried("?sslmode=require")).toBe(true);
    await server.stop();
    server = await start();
    for (const parameters of ["?sslmode=require", `?sslmode=verify-full&sslrootcert=${ca}`])
      expect(await tried(parameters)).not.toBeBoolean();
    expect(await tried("?sslmode=prefer")).toBe(false);
  }, 120_000);

  const port = freePort();

  /** Starts the server, which accepts TLS if it has a certificate. */
  async function start(certificate?: ServerCertificate): Promise<RunningStore> {
    if (certificate !== undefined) install(certificate);
    return startEmbeddedPostgres({
      folder: join(folder, "pg"),
      port: await port,
      durable: false,
      native: installPostgres(postgresMajor(process.env["TEST_POSTGRES"])),
      log: openSync(join(folder, "postgres.log"), "a"),
      settings: certificate === undefined ? [] : ["ssl=on"],
    });
  }

  function install({ cert, key }: ServerCertificate): void {
    const data = join(folder, "pg", "data");
    const { uid, gid } = statSync(data);
    for (const [name, text] of Object.entries({ "server.crt": cert, "server.key": key })) {
      writeFileSync(join(data, name), text, { mode: 0o600 });
      chownSync(join(data, name), uid, gid);
    }
  }

  /** Connects with these parameters; answers whether the session is encrypted, or the code of the error. */
  async function tried(parameters: string, host = "127.0.0.1"): Promise<unknown> {
    const url = server.url.replace("127.0.0.1", host);
    const db = connect(`${url}${parameters}`, { max: 1, name: "tls" });
    try {
      const [row] = await db.sql<{ ssl: boolean }[]>`
        select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
      return row?.ssl;
    } catch (error) {
      return fieldsOf(fieldsOf(error)["cause"] ?? error)["code"];
    } finally {
      await db.close();
    }
  }
});

describe("Redis behind TLS", () => {
  const plain = new URL(process.env["TEST_REDIS_URL"] ?? "");
  const proxies: Server[] = [];
  afterAll(() => proxies.forEach((one) => one.close()));

  /** Serves TLS in front of the tests' Redis, whose build has none; answers the port. */
  async function behind(certificate: ServerCertificate): Promise<number> {
    const proxy = createServer(certificate, (client) => {
      const redis = connectTcp(Number(plain.port), plain.hostname);
      client.pipe(redis).pipe(client);
      for (const one of [client, redis])
        one.on("error", () => [client, redis].forEach((each) => each.destroy()));
    });
    proxies.push(proxy);
    const port = await freePort();
    await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve));
    return port;
  }

  async function tried(port: number, parameters: string, host = "127.0.0.1"): Promise<string> {
    const user = plain.password === "" ? "" : `${plain.username}:${plain.password}@`;
    const url = `rediss://${user}${host}:${port}${parameters}`;
    try {
      const redis = await connectRedis(url, silentLog);
      const answer = await redis.ping();
      redis.disconnect();
      return answer;
    } catch (error) {
      return error instanceof Error ? "refused" : String(error);
    }
  }

  test("is reached with its authority, and refused for an unknown or a wrong one", async () => {
    const port = await behind(LOOPBACK_ADDRESSES);
    expect(await tried(port, `?ssl_ca_certs=${ca}`)).toBe("PONG");
    expect(await tried(port, `/0?ssl_ca_certs=${encodeURIComponent(ca)}`)).toBe("PONG");
    expect(await tried(port, "")).toBe("refused");
    expect(await tried(port, `?ssl_ca_certs=${otherCa}`)).toBe("refused");
  });

  test("is refused for the name of another host", async () => {
    expect(await tried(await behind(HOOK_TEST), `?ssl_ca_certs=${ca}`)).toBe("refused");
    const port = await behind(LOOPBACK_ADDRESSES);
    expect(await tried(port, `?ssl_ca_certs=${ca}`, "localhost")).toBe("refused");
  });
});

describe("a setting", () => {
  const REQUIRED = {
    DATABASE_URL: "postgres://db.example/rr",
    REDIS_URL: "redis://redis.example",
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  const errorsOf = (env: Readonly<Record<string, string>>): readonly string[] => {
    try {
      readConfig({ ...REQUIRED, ...env });
      return [];
    } catch (error) {
      return error instanceof ConfigError ? error.errors : [String(error)];
    }
  };
  const database = (query: string) =>
    errorsOf({ DATABASE_URL: `postgres://u:p@a:1,b:2/x${query}` });

  test.each([
    ["?sslmode=verify-ca", "must have an sslmode of disable, prefer, require, verify-full."],
    ["?sslmode=on", "must have an sslmode of disable, prefer, require, verify-full."],
    [`?sslmode=require&sslrootcert=${ca}`, "has sslrootcert, which needs sslmode=verify-full."],
    [`?sslrootcert=${ca}`, "has sslrootcert, which needs sslmode=verify-full."],
    [
      "?sslmode=verify-full&sslrootcert=/nowhere.pem",
      "has an sslrootcert that names a file that cannot be read (ENOENT).",
    ],
    [
      `?sslmode=verify-full&sslrootcert=${import.meta.path}`,
      "has an sslrootcert that names a file without a certificate in PEM form.",
    ],
  ])("DATABASE_URL with %s is refused with the reason", (query, reason) => {
    expect(database(query)).toEqual([`DATABASE_URL ${reason}`]);
  });

  test.each(["", "?sslmode=prefer", `?sslmode=verify-full&sslrootcert=${ca}`])(
    "DATABASE_URL with %j is accepted",
    (query) => {
      expect(database(query)).toEqual([]);
    },
  );

  test.each([
    [`redis://a?ssl_ca_certs=${ca}`, "has ssl_ca_certs, which needs rediss://."],
    [
      "rediss://a?ssl_ca_certs=/nowhere.pem",
      "has an ssl_ca_certs that names a file that cannot be read (ENOENT).",
    ],
    [
      "rediss+sentinel://a/m?ssl_ca_certs=/nowhere.pem",
      "has an ssl_ca_certs that names a file that cannot be read (ENOENT).",
    ],
    [`redis+sentinel://a/m?ssl_ca_certs=${ca}`, "has ssl_ca_certs, which needs rediss://."],
  ])("REDIS_URL %s is refused with the reason", (url, reason) => {
    expect(errorsOf({ REDIS_URL: url })).toEqual([`REDIS_URL ${reason}`]);
  });

  test("of Sentinels passes the authority to the Sentinels and to the server", () => {
    const options = sentinelOptions(`rediss+sentinel://a/m?ssl_ca_certs=${ca}`);
    expect(options).toMatchObject({ tls: { ca: [CA] }, sentinelTLS: { ca: [CA] } });
  });

  test.each([
    ["postgres://127.0.0.1/x", "rediss://r.example", undefined],
    ["postgres://localhost/x", "redis://[::1]:6379", undefined],
    ["postgres://db.example/x?sslmode=verify-full", "redis://127.0.0.9", undefined],
    ["postgres://a,db.example/x", "redis://localhost", "DATABASE_URL"],
    ["postgres://db.example/x?sslmode=require", "redis://localhost", "DATABASE_URL"],
    ["postgres://localhost/x", "redis://r.example", "REDIS_URL"],
    ["postgres://localhost/x", "redis+sentinel://r.example/m", "REDIS_URL"],
    ["postgres://localhost/x", "rediss+sentinel://r.example/m", undefined],
  ])("%s and %s: the doctor names %p", (databaseUrl, redisUrl, named) => {
    const finding = checkTls({ databaseUrl, maintenanceDatabaseUrl: databaseUrl, redisUrl });
    expect(finding.kind).toBe(named === undefined ? "ok" : "advice");
    if (named !== undefined) expect(finding.said).toContain(named);
  });
});
