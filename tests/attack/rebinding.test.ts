import { describe, expect, test } from "bun:test";

import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import type { Zone } from "../support/network/name-server.ts";
import { startProxy, type TestProxy } from "../support/network/proxy.ts";
import { startRawReceiver } from "../support/network/raw-receiver.ts";
import { until } from "../support/network/receiver.ts";
import type { Tenant } from "../support/outbox.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { startBesideNames } from "../support/processes/beside-names.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";

/*
 * DNS rebinding against the running processes, with a real name server that an attacker controls. 127.0.0.2 stands for a
 * public address. 127.0.0.1 stands for our internal network: a server listens there on the same port and must get nothing.
 */

describe.skipIf(lacks("mounts"))("a name", () => {
  const urlOf = (name: string, path = "/") => `http://${name}:${outside.port}${path}`;

  /** Delivers one event to each URL, each for a new partner; answers the recorded outcomes of the first attempts. */
  async function deliver(urls: readonly string[]): Promise<Record<string, string>> {
    const ids = new Map<string, string>();
    const tenants: Tenant[] = [];
    for (const url of urls) {
      const { tenant, subscriptionId } = await world.subscribe(url);
      ids.set(subscriptionId, url);
      tenants.push(tenant);
    }
    await world.emit(tenants);
    const attempts = () => world.db.sql<{ id: string; ending: string }[]>`
      select distinct on (subscription_id) subscription_id as id, coalesce(error_code, outcome) as ending
        from delivery_attempts where subscription_id = any(${[...ids.keys()]}) order by subscription_id, id`;
    await until("all are tried", async () => (await attempts()).length === urls.length);
    const rows = await attempts();
    return Object.fromEntries(rows.map(({ id, ending }) => [ids.get(id) ?? "", ending]));
  }

  test("is looked up at registration, and rejected if it resolves to an internal address", async () => {
    const api = await ApiProcess.start(world.env, world.names);
    try {
      const { headers, root, send } = await world.signIn(api);
      for (const [name, [ends]] of Object.entries(NAMES)) {
        const one = { label: "x", webhook_url: urlOf(name), delivery_kind: "immediate" };
        const made = await send("POST", "", one);
        expect([name, made.status]).toEqual([name, ends === "blocked_address" ? 422 : 201]);
        expect([name, world.names.asked(name) > 0]).toEqual([name, true]);
        if (made.status === 201)
          await fetch(`${root}/${String(made.body["id"])}`, { method: "DELETE", headers });
      }
    } finally {
      api.kill();
    }
    expect(inside.accepted + outside.accepted).toBe(0);
  });

  test("is looked up again for each connection, and never connects to an internal address", async () => {
    const dispatcher = new DispatcherProcess(world.env, world.names);
    dispatcher.start();
    try {
      const expected = Object.entries(NAMES).map(([name, [ends]]) => [urlOf(name), ends]);
      expect(await deliver(expected.map(([url = ""]) => url))).toEqual(
        Object.fromEntries(expected),
      );
      const [moved, redirects] = [urlOf("rebinds.test"), urlOf("public.test", "/redirect")];
      expect(await deliver([moved, redirects])).toEqual({
        [moved]: "blocked_address",
        [redirects]: "http_status",
      });
    } finally {
      await dispatcher.stop();
    }
    expect(inside.accepted).toBe(0);
    expect(outside.requests.every((one) => !one.includes(INSIDE))).toBe(true);
  });

  test("is looked up by the dispatcher even if WEBHOOK_PROXY_URL is set, and the proxy gets only checked addresses", async () => {
    const proxy: TestProxy = await startProxy();
    const url = `http://${INSIDE}:${proxy.port}`;
    const dispatcher = new DispatcherProcess({ ...world.env, WEBHOOK_PROXY_URL: url }, world.names);
    dispatcher.start();
    try {
      const [known, inner] = [urlOf("public.test"), urlOf("inside.test")];
      expect(await deliver([known, inner])).toEqual({
        [known]: "delivered",
        [inner]: "blocked_address",
      });
    } finally {
      await dispatcher.stop();
      proxy.stop();
    }
    expect(new Set(proxy.authorities)).toEqual(new Set([`${PUBLIC}:${outside.port}`]));
    expect(inside.accepted).toBe(0);
  });
});

const PUBLIC = "127.0.0.2";

const INSIDE = "127.0.0.1";

const to =
  (...addresses: string[]) =>
  () => ({ addresses });

const as = (alias: string) => () => ({ alias });

/** The names, each with the recorded outcome of an attempt and its DNS answers. */
const NAMES: Readonly<Record<string, readonly [ends: string, zone: Zone[string]]>> = {
  "public.test": ["delivered", to(PUBLIC)],
  "alias.test": ["delivered", as("public.test")],
  "inside.test": ["blocked_address", to(INSIDE)],
  "behind.test": ["blocked_address", to(PUBLIC, INSIDE)],
  "before.test": ["blocked_address", to(INSIDE, PUBLIC)],
  "last-of-many.test": ["blocked_address", to(...Array.from({ length: 20 }, () => PUBLIC), INSIDE)],
  "other-family.test": ["blocked_address", to(PUBLIC, "::1")],
  "mapped.test": ["blocked_address", to("::ffff:127.0.0.1")],
  "nowhere.test": ["blocked_address", to("0.0.0.0")],
  "metadata.test": ["blocked_address", to("169.254.169.254")],
  "chain.test": ["blocked_address", as("chain-2.test")],
  "chain-2.test": ["blocked_address", as("inside.test")],
  "loop.test": ["dns", as("loop.test")],
  "unknown.test": ["dns", () => "unknown"],
  "failure.test": ["dns", () => "failure"],
  "empty.test": ["dns", to()],
  // The name is public at its registration and at the first attempt, and internal afterwards.
  "rebinds.test": ["delivered", (nth) => ({ addresses: [nth <= 2 ? PUBLIC : INSIDE] })],
};

const world = fixture(() => {
  const zone = Object.entries(NAMES).map(([name, [, answers]]) => [name, answers] as const);
  return startBesideNames(Object.fromEntries(zone), PUBLIC);
}, !lacks("mounts"));

const OK = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const inside = fixture(() => startRawReceiver(OK, { address: INSIDE }), !lacks("mounts"));
const redirect = (port: number) =>
  `HTTP/1.1 307 Over there\r\nLocation: http://${INSIDE}:${port}/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
const outside = fixture(
  () =>
    startRawReceiver(
      (socket, request) =>
        void socket.end(request.includes("/redirect") ? redirect(inside.port) : OK),
      { address: PUBLIC, port: inside.port },
    ),
  !lacks("mounts"),
);
