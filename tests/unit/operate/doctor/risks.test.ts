import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { riskySettings } from "../../../../src/operate/doctor/users.ts";
import { readConfig } from "../../../../src/lib/config.ts";

describe("a setting", () => {
  test.each([
    ["WEBHOOK_ALLOWED_NETWORKS", "0.0.0.0/0", "fault"],
    ["WEBHOOK_ALLOWED_NETWORKS", "10.0.0.0/8,::/0", "fault"],
    ["WEBHOOK_ALLOWED_NETWORKS", "0.0.0.0/6", "fault"],
    ["WEBHOOK_ALLOWED_NETWORKS", "127.0.0.1/32", "advice"],
    ["WEBHOOK_ALLOWED_NETWORKS", "169.0.0.0/8", "advice"],
    ["WEBHOOK_ALLOWED_NETWORKS", "::1", "advice"],
    ["WEBHOOK_ALLOW_HTTP", "1", "advice"],
    ["TRUSTED_PROXIES", "0.0.0.0/0", "fault"],
    ["TRUSTED_PROXIES", "127.0.0.1/32,::/0", "fault"],
    ["RATE_LIMITS", "off", "advice"],
  ])("%s=%s is named as %s", (name, value, kind) => {
    expect(named({ [name]: value })).toEqual([[kind, expect.stringContaining(name)]]);
  });

  test.each([
    ["WEBHOOK_ALLOWED_NETWORKS", "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7,8.0.0.0/7"],
    ["WEBHOOK_ALLOW_HTTP", "0"],
    ["TRUSTED_PROXIES", "127.0.0.1/32,10.0.0.0/8,fc00::/7"],
    ["RATE_LIMITS", "on"],
  ])("%s=%s is not named", (name, value) => {
    expect(named({ [name]: value })).toEqual([]);
  });
});

describe("the file of a master key", () => {
  const folder = mkdtempSync(join(tmpdir(), "risks-"));
  const path = join(folder, "master.key");
  writeFileSync(path, masterKey());
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each([0o400, 0o600, 0o440, 0o640])("may have the mode %o", (mode) => {
    chmodSync(path, mode);
    expect(named({ MASTER_KEY: "", MASTER_KEY_FILE: path })).toEqual([]);
  });

  test.each([
    [0o644, "0644"],
    [0o604, "0604"],
    [0o620, "0620"],
    [0o666, "0666"],
  ])("is named if its mode is %o", (mode, shown) => {
    chmodSync(path, mode);
    expect(named({ MASTER_KEY: "", MASTER_KEY_FILE: path })).toEqual([
      ["advice", `the file of MASTER_KEY_FILE has the mode ${shown}`],
    ]);
    expect(named({ MASTER_KEY_PREVIOUS_FILE: path })).toEqual([
      ["advice", `the file of MASTER_KEY_PREVIOUS_FILE has the mode ${shown}`],
    ]);
  });
});

function masterKey() {
  return Buffer.alloc(32, 1).toString("base64");
}

function named(settings: Record<string, string>) {
  const env = {
    DATABASE_URL: "postgres://unused.invalid/test",
    REDIS_URL: "redis://unused.invalid",
    MASTER_KEY: masterKey(),
    ...settings,
  };
  return riskySettings(readConfig(env), env).map(({ kind, said }) => [kind, said]);
}
