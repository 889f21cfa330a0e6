import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Resolver } from "node:dns/promises";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { NameResolver, systemLookup } from "../../../src/lib/name-resolver.ts";
import { startNameServer, type NameServer } from "../../support/network/name-server.ts";
import { lacks } from "../../support/needs.ts";

describe("the hosts file", () => {
  test("has localhost, which is not queried", async () => {
    expect(await systemLookup("localhost")).toContain("127.0.0.1");
  });

  test("is read again after a change, and counts as empty if it is missing", async () => {
    const { lookup } = new NameResolver({
      hostsFile,
      resolvFile,
      newChannel: () => {
        throw new Error("asked for");
      },
    });
    const found = () => lookup("a.test").catch(({ message }: Error) => message);
    expect(await found()).toBe("asked for");
    writeFileSync(hostsFile, "10.0.0.1 a.test\n");
    expect(await found()).toEqual(["10.0.0.1"]);
    writeFileSync(hostsFile, "10.0.0.1 a.test\nfd00::1 a.test\n");
    expect(await found()).toEqual(["10.0.0.1", "fd00::1"]);
    rmSync(hostsFile);
    expect(await found()).toBe("asked for");
  });
});

describe.skipIf(lacks("mounts"))("a name server", () => {
  let server: NameServer;
  let lookup: NameResolver["lookup"];

  beforeAll(async () => {
    server = await startNameServer({
      "both.test": () => ({ addresses: ["10.0.0.1", "10.0.0.2", "::1"] }),
      "alias.test": () => ({ alias: "both.test" }),
      "old.test": () => ({ addresses: ["10.0.0.3"] }),
      "new.test": () => ({ addresses: ["::3"] }),
      "hook.svc.near.test": () => ({ addresses: ["10.0.0.4"] }),
      "broken.near.test": () => "failure",
      "broken.far.test": () => ({ addresses: ["10.0.0.5"] }),
      "broken.test": () => "failure",
      "silent.near.test": () => "silence",
      "silent.far.test": () => ({ addresses: ["10.0.0.6"] }),
    });
    const newChannel = () => {
      const channel = new Resolver({ timeout: 100, tries: 1 });
      channel.setServers([server.address]);
      return channel;
    };
    ({ lookup } = new NameResolver({ hostsFile, resolvFile, newChannel }));
  });
  afterAll(() => server.stop());

  const found = (host: string) => lookup(host).catch(({ message }: Error) => message);

  test("is queried for both families, and their addresses alternate", async () => {
    expect(await found("both.test")).toEqual(["10.0.0.1", "::1", "10.0.0.2"]);
    expect(await found("alias.test")).toEqual(["10.0.0.1", "::1", "10.0.0.2"]);
    expect(await found("old.test")).toEqual(["10.0.0.3"]);
    expect(await found("new.test")).toEqual(["::3"]);
  });

  test("is queried in the search domains too, by the current resolv.conf", async () => {
    expect(await found("other.svc")).toBe("other.svc has no address");
    writeFileSync(resolvFile, "search near.test far.test\noptions ndots:5\n");
    expect(await found("hook.svc")).toEqual(["10.0.0.4"]);
    expect(server.asked("hook.svc")).toBe(0);
    expect(await found("both.test")).toEqual(["10.0.0.1", "::1", "10.0.0.2"]);
    expect(server.asked("both.test.far.test")).toBe(1);
  });

  test("that fails does not end the search in other domains, and one that is silent does", async () => {
    expect(await found("broken")).toEqual(["10.0.0.5"]);
    expect(await found("broken.test")).toBe("DNS fails for broken.test: ESERVFAIL");
    expect(await found("silent")).toBe("DNS did not respond for silent in time");
    expect(server.asked("silent.far.test")).toBe(0);
  });
});

const folder = mkdtempSync(join(tmpdir(), "names-"));

const hostsFile = join(folder, "hosts");

const resolvFile = join(folder, "resolv.conf");

afterAll(() => rmSync(folder, { recursive: true }));
