import { describe, expect, test } from "bun:test";
import {
  addressRefusal,
  checkNewWebhookUrl,
  checkWebhookUrl,
  type EgressPolicy,
  MAX_URL_CHARS,
  parseNetworks,
  resolveChecked,
} from "../../../src/lib/egress.ts";
import type { Lookup } from "../../../src/lib/name-resolver.ts";
import { PRIVATE_SPELLINGS } from "../../support/network/private-spellings.ts";

describe("addressRefusal", () => {
  test.each(RANGES)(
    "refuses %s up to its first and last address, and not its neighbours",
    (_, range) => {
      const { first, last } = range;
      const middle = { ...first, value: (first.value + last.value) / 2n };
      const neighbours = [
        { ...first, value: first.value - 1n },
        { ...last, value: last.value + 1n },
      ].filter(({ bits, value }) => value >= 0n && value < 2n ** BigInt(bits));
      for (const point of [first, middle, last, ...neighbours]) {
        const text = textOf(point);
        const refusal = addressRefusal(text, STRICT);
        expect([text, refusal?.startsWith(text)]).toEqual([text, isSpecial(point) || undefined]);
      }
    },
  );

  test.each(["::8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])("refuses %s", (text) => {
    expect(addressRefusal(text, STRICT)).toStartWith(text);
  });

  test("lets ordinary public addresses pass", () => {
    for (const address of ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e"])
      expect(addressRefusal(address, STRICT)).toBeUndefined();
  });

  test("refuses what is not an address, and an address with a zone", () => {
    for (const text of [
      "",
      "example.com",
      "127.1",
      "01.2.3.4",
      "1.2.3",
      "2600::1%eth0",
      "2600:::1",
    ])
      expect(addressRefusal(text, STRICT)).toContain("not an IP address");
  });

  test("permits an address of a blocked range that lies in an allowed network", () => {
    expect(addressRefusal("127.0.0.1", LOOPBACK)).toBeUndefined();
    expect(addressRefusal("::1", LOOPBACK)).toBeUndefined();
    expect(addressRefusal("10.0.0.1", LOOPBACK)).toContain("private");
  });

  test("an allowed IPv4 network does not permit its forms inside IPv6", () => {
    for (const form of ["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"])
      expect(addressRefusal(form, LOOPBACK)).toBeString();
  });
});

describe("parseNetworks", () => {
  test("reads networks and single addresses, separated by commas or spaces", () => {
    const policy = {
      allowHttp: false,
      allowedNetworks: parseNetworks("10.1.0.0/16,fd00::/8  192.168.7.7"),
    };
    for (const address of ["10.1.255.255", "fdab::1", "192.168.7.7"])
      expect(addressRefusal(address, policy)).toBeUndefined();
    for (const address of ["10.2.0.0", "fc00::1", "192.168.7.8"])
      expect(addressRefusal(address, policy)).toBeString();
  });

  test("takes an empty list for none, and a zero prefix for all of a family", () => {
    expect(parseNetworks(" ")).toEqual([]);
    const policy = { allowHttp: false, allowedNetworks: parseNetworks("0.0.0.0/0") };
    expect(addressRefusal("127.0.0.1", policy)).toBeUndefined();
    expect(addressRefusal("::1", policy)).toBeString();
  });

  test.each([
    "localhost",
    "10.0.0.0/33",
    "fd00::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.1/8",
    "10.0.0.0/-1",
    "10/8",
  ])("throws for %s and names it", (item) => {
    expect(() => parseNetworks(`127.0.0.0/8, ${item}`)).toThrow(`"${item}"`);
  });
});

describe("checkWebhookUrl", () => {
  test.each(PRIVATE_SPELLINGS)("refuses the private address spelled %s", (host) => {
    expect(refusalOf(`https://${host}/hook`)).toBe(
      "blocked_address: must resolve to a public address",
    );
    expect(refusalOf(`https://${host}:8443`)).toStartWith("blocked_address");
  });

  test.each([
    ["", "absolute URL"],
    ["example.com/hook", "absolute URL"],
    ["https:example.com", "absolute URL"],
    ["https:///example.com", "absolute URL"],
    ["//example.com", "absolute URL"],
    ["ftp://example.com", "absolute URL"],
    ["file:///etc/passwd", "absolute URL"],
    ["javascript:alert(1)", "absolute URL"],
    ["https://", "absolute URL"],
    ["https://exa mple.com", "spaces"],
    [" https://example.com", "spaces"],
    ["https://example.com/a\tb", "spaces"],
    ["https://example.com/\r\nX: y", "spaces"],
    ["https://example.com/\u0000", "control characters"],
    ["https:\\\\example.com", "backslashes"],
    ["http://example.com", "https"],
    ["https://user@example.com", "user name"],
    ["https://:pw@example.com", "user name"],
    ["https://@example.com", "user name"],
    ["https://example.com/#part", "fragment"],
    ["https://example.com/#", "fragment"],
    ["https://example.com:0/", "port 0"],
    ["https://example.com:65536/", "absolute URL"],
    ["https://256.1.1.1/", "absolute URL"],
    ["https://[fe80::1%25eth0]/", "absolute URL"],
    ["https://a..example.com/", "host name"],
    ["https://example.com../", "host name"],
    ["https://./", "host name"],
    ["https://*.example.com/", "host name"],
    ["https://exa!mple.com/", "host name"],
    [`https://${"a".repeat(64)}.com/`, "host name"],
    [`https://${"a.".repeat(127)}com/`, "host name"],
  ])("refuses %j as an invalid URL", (raw, reason) => {
    expect(refusalOf(raw)).toStartWith("invalid_url: must ");
    expect(refusalOf(raw)).toContain(reason);
  });

  test("reads the target out of a URL, with the host in one spelling and the query kept", () => {
    expect(checkWebhookUrl("HTTPS://Hooks.Example.COM.:8443/a%20b?x=1&y=@", STRICT)).toEqual({
      kind: "target",
      target: {
        secure: true,
        host: "hooks.example.com",
        isLiteral: false,
        port: 8443,
        path: "/a%20b?x=1&y=@",
        authority: "hooks.example.com:8443",
        origin: "https://hooks.example.com:8443",
      },
    });
  });

  test("leaves the scheme's own port out of the Host header and brackets IPv6 there only", () => {
    const name = checkWebhookUrl("https://例え.jp:443", STRICT);
    expect(name).toMatchObject({ target: { authority: "xn--r8jz45g.jp", port: 443, path: "/" } });
    const literal = checkWebhookUrl("http://[::1]:8080/x", LOOPBACK);
    expect(literal).toMatchObject({
      target: { host: "::1", isLiteral: true, authority: "[::1]:8080" },
    });
    expect(checkWebhookUrl("http://127.1", LOOPBACK)).toMatchObject({
      target: { host: "127.0.0.1", port: 80 },
    });
  });

  test("accepts labels of 63 and names of 253 characters", () => {
    expect(refusalOf(`https://${"a".repeat(63)}.com/`)).toBe("accepted");
    expect(refusalOf(`https://${"a.".repeat(125)}com/`)).toBe("accepted");
  });

  test(`accepts ${MAX_URL_CHARS} characters and refuses one more`, () => {
    const longest = "https://example.com/".padEnd(MAX_URL_CHARS, "x");
    expect(refusalOf(longest)).toBe("accepted");
    expect(refusalOf(`${longest}x`)).toContain("at most 2048 characters");
  });

  test("accepts http and localhost only where the policy allows them", () => {
    expect(refusalOf("http://localhost:3000/hook", LOOPBACK)).toBe("accepted");
    expect(refusalOf("http://hooks.localhost/", LOOPBACK)).toBe("accepted");
    expect(refusalOf("http://example.com/", LOOPBACK)).toBe("accepted");
    expect(refusalOf("http://10.0.0.1/", LOOPBACK)).toStartWith("blocked_address");
  });
});

describe("resolveChecked", () => {
  test("returns every address of a name if all are permitted", async () => {
    const lookup = giving("8.8.8.8", "2606:4700::1111");
    expect(await resolveChecked("example.com", STRICT, { lookup })).toEqual({
      kind: "resolved",
      addresses: ["8.8.8.8", "2606:4700::1111"],
    });
  });

  test("refuses a name if one of its addresses is refused", async () => {
    const lookup = giving("8.8.8.8", "2606:4700::1111", "10.0.0.1");
    const resolution = await resolveChecked("example.com", STRICT, { lookup });
    expect(resolution).toEqual({ kind: "refused", reason: "10.0.0.1 is a private address" });
  });

  test("checks an IP literal without a look-up", async () => {
    expect(await resolveChecked("8.8.8.8", STRICT, { lookup: failing })).toMatchObject({
      kind: "resolved",
    });
    expect(await resolveChecked("::1", STRICT, { lookup: failing })).toMatchObject({
      kind: "refused",
    });
  });

  test("reports a name without addresses, a failing look-up and an abort as unresolved", async () => {
    const signal = AbortSignal.abort();
    for (const options of [{ lookup: giving() }, { lookup: failing }, { lookup: silent, signal }])
      expect(await resolveChecked("example.com", STRICT, options)).toMatchObject({
        kind: "unresolved",
      });
  });
});

describe("checkNewWebhookUrl", () => {
  const url = "https://hooks.example.com/";

  test("refuses a name that resolves to a refused address", async () => {
    const check = await checkNewWebhookUrl(url, STRICT, { lookup: giving("127.0.0.1") });
    expect(check).toMatchObject({ kind: "refused", code: "blocked_address" });
  });

  test("accepts a name that resolves to public addresses or does not resolve", async () => {
    for (const lookup of [giving("8.8.8.8"), failing])
      expect(await checkNewWebhookUrl(url, STRICT, { lookup })).toMatchObject({ kind: "target" });
  });

  test("accepts a name whose look-up is slower than the bound, and refuses one just within it", async () => {
    const slow = await checkNewWebhookUrl(url, STRICT, {
      lookup: givingLate(200, "127.0.0.1"),
      boundMs: 30,
    });
    expect(slow.kind).toBe("target");
    const quick = await checkNewWebhookUrl(url, STRICT, {
      lookup: givingLate(10, "127.0.0.1"),
      boundMs: 500,
    });
    expect(quick.kind).toBe("refused");
  });

  test("refuses a bad URL without a look-up", async () => {
    expect(await checkNewWebhookUrl("https://10.0.0.1", STRICT, { lookup: failing })).toMatchObject(
      {
        kind: "refused",
      },
    );
  });
});

/**
 * The rows of the IANA registries of IPv4 and IPv6 special-purpose addresses, and what is blocked besides: multicast, a
 * metadata address of Azure, and earlier forms of IPv6 addresses.
 */
const SPECIAL = `
  0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
  192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
  192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
  255.255.255.255/32
  ::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
  2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32
  2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
  224.0.0.0/4 168.63.129.16/32 ::/96 fec0::/10 ff00::/8 ::/3 4000::/2 8000::/1`
  .trim()
  .split(/\s+/);

/** An address as a number, and a number as an address. */
interface Point {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

function pointOf(text: string): Point {
  if (!text.includes(":"))
    return { bits: 32, value: text.split(".").reduce((sum, one) => sum * 256n + BigInt(one), 0n) };
  const [head = [], tail] = text.split("::").map((side) => side.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - head.length - (tail?.length ?? 0) }, () => "0");
  const groups = [...head, ...zeros, ...(tail ?? [])];
  return { bits: 128, value: groups.reduce((sum, one) => sum * 65_536n + BigInt(`0x${one}`), 0n) };
}

function textOf({ bits, value }: Point): string {
  const [size, radix, mark] = bits === 32 ? ([8n, 10, "."] as const) : ([16n, 16, ":"] as const);
  const parts = Array.from({ length: bits / Number(size) }, (_, i) =>
    ((value >> (size * BigInt(i))) % 2n ** size).toString(radix),
  );
  return parts.toReversed().join(mark);
}

interface Range {
  readonly first: Point;
  readonly last: Point;
}

const RANGES: readonly (readonly [string, Range])[] = SPECIAL.map((row) => {
  const [base = "", length] = row.split("/");
  const first = pointOf(base);
  const last = { ...first, value: first.value + 2n ** BigInt(first.bits - Number(length)) - 1n };
  return [row, { first, last }];
});

const isSpecial = ({ bits, value }: Point) =>
  RANGES.some(
    ([, { first, last }]) => first.bits === bits && first.value <= value && value <= last.value,
  );

const STRICT: EgressPolicy = { allowHttp: false, allowedNetworks: [] };

const LOOPBACK: EgressPolicy = {
  allowHttp: true,
  allowedNetworks: parseNetworks("127.0.0.0/8, ::1/128"),
};

function refusalOf(raw: string, policy = STRICT): string {
  const check = checkWebhookUrl(raw, policy);
  return check.kind === "refused" ? `${check.code}: ${check.reason}` : "accepted";
}

/** Stand-ins for DNS. */
function giving(...addresses: string[]): Lookup {
  return async () => addresses;
}

function givingLate(ms: number, address: string): Lookup {
  return () => Bun.sleep(ms).then(() => [address]);
}

function failing(): Promise<string[]> {
  return Promise.reject(new Error("ENOTFOUND"));
}

function silent(): Promise<string[]> {
  return new Promise(() => {});
}
