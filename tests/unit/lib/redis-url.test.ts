import { expect, test } from "bun:test";

import { checkRedisUrl, sentinelOptions } from "../../../src/lib/settings-reader.ts";

test("one server has no Sentinels", () => {
  for (const url of ["redis://localhost", "rediss://user:word@redis.example:6380/2"]) {
    checkRedisUrl(url);
    expect(sentinelOptions(url)).toBeUndefined();
  }
});

test("Sentinels are listed before the name of their master", () => {
  expect(sentinelOptions("redis+sentinel://one:1,two,[::1]:3/mymaster")).toMatchObject({
    sentinels: [
      { host: "one", port: 1 },
      { host: "two", port: 26_379 },
      { host: "::1", port: 3 },
    ],
    name: "mymaster",
    db: 0,
  });
});

test("user, password and database belong to the server; Sentinels have separate credentials", () => {
  const url =
    "rediss+sentinel://user:p%40ss:word@one/main/3?sentinel_username=s&sentinel_password=p%26w";
  checkRedisUrl(url);
  expect(sentinelOptions(url)).toMatchObject({
    username: "user",
    password: "p@ss:word",
    db: 3,
    sentinelUsername: "s",
    sentinelPassword: "p&w",
    enableTLSForSentinelMode: true,
  });
  const bare = sentinelOptions("redis+sentinel://:word@one/main");
  expect([bare?.username, bare?.password, bare?.sentinelPassword, bare?.tls]).toEqual([
    undefined,
    "word",
    undefined,
    undefined,
  ]);
});

test.each([
  ["http://localhost", "must be a URL with redis://"],
  ["redis://one:1,two:2", "must be a URL with redis://"],
  ["redis+sentinel://one:1", "must name the Sentinels' master"],
  ["redis+sentinel://one:1/", "must name the Sentinels' master"],
  ["redis+sentinel://one:1/main/x", "must name the Sentinels' master"],
  ["redis+sentinel://one:1,:2/main", "has a Sentinel that is not host:port"],
  ["redis+sentinel://one/main?role=slave", "has options other than"],
  ["redis+cluster://one:1,two:2", "must not be a Redis Cluster"],
  ["redis-cluster://one:1", "must not be a Redis Cluster"],
])("%s is rejected", (url, why) => {
  expect(() => checkRedisUrl(url)).toThrow(why);
});
