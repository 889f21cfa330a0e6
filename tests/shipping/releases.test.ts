// Restores the databases of earlier releases, migrates each to the schema of the head, and works on it.
import { afterAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

import { connect } from "../../db/client.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { created } from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { signIn, succeed } from "./demo.ts";
import type { DumpHeader } from "./make-dump.ts";

const FOLDER = join(import.meta.dir, "releases");
const dumps = readdirSync(FOLDER).filter((name) => name.endsWith(".sql.gz"));

describe.each(dumps)("the database of %s", (name) => {
  test("is migrated, keeps sign-ins, subscriptions and attempts, and delivers what it held", async () => {
    const { header, sql } = readDump(name);
    const env = { ...(await restore(sql)), MASTER_KEY: header.masterKey };
    await succeed(["src/operate/main.ts", "migrate"], env, ROOT);

    const receiver = await Receiver.start();
    ends.push(() => receiver.stop());
    const api = await ApiProcess.start(env);
    ends.push(() => api.kill());
    const request = await signIn(api, header);
    const call = async (...args: Parameters<typeof request>) => Object(await request(...args));
    const { data } = await call("GET", "/partner/webhooks");
    expect(data.map((one: { label: string }) => one.label).toSorted()).toEqual([
      "Nightly",
      "Orders",
    ]);
    const orders = data.find((one: { label: string }) => one.label === "Orders");
    expect(orders).toMatchObject({ is_active: false, disabled_reason: "manual" });
    const webhook = `/partner/webhooks/${orders.id}`;
    const deliveries = await call("GET", `${webhook}/deliveries?limit=100`);
    expect(deliveries.data).toHaveLength(header.attempts);
    const delivery = await call("GET", `${webhook}/deliveries/${deliveries.data[0].event_id}`);
    expect(delivery.attempts[0].request_body).toEqual(expect.any(String));

    await call("PATCH", webhook, { webhook_url: receiver.url });
    await call("POST", `${webhook}/enable`);
    const dispatcher = new DispatcherProcess({ ...env });
    dispatcher.start();
    ends.push(() => dispatcher.stop());
    const { provider, siteId, held } = header;
    expect(await api.report(provider, [created(siteId, "new")])).toMatchObject({ status: 200 });
    await until("the deliveries", () => receiver.received.length > held.length);
    expect(receiver.eventIds.slice(0, held.length)).toEqual([...held]);
    const { secret } = await call("POST", `${webhook}/secret`);
    for (const { body, headers } of receiver.received)
      expect(headers["x-svc-signature"]).toBe(
        `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
      );
  });
});

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

function readDump(name: string): { header: DumpHeader; sql: string } {
  const sql = gunzipSync(readFileSync(join(FOLDER, name))).toString();
  return { header: JSON.parse(sql.slice("-- ".length, sql.indexOf("\n"))), sql };
}

/** Fills a new database; returns the settings of processes that work on it. */
async function restore(sql: string): Promise<Record<string, string>> {
  const server = process.env["TEST_DATABASE_URL"] ?? "";
  const name = `release_${crypto.randomUUID().slice(0, 8)}`;
  const administer = async (statement: string, url = server) => {
    const db = connect(url, { max: 1, name: "test" });
    await db.sql.unsafe(statement);
    await db.close();
  };
  await administer(`create database "${name}"`);
  ends.push(() => administer(`drop database "${name}" with (force)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  await administer(sql, url.href);
  return {
    DATABASE_URL: url.href,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `${name}:`,
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
}
