/**
 * Go's first program has its whole library compiled: without optimizing, and without C, in two thirds of the time. The
 * same for every program, because other flags are another library.
 */
export const GO_ENV: Readonly<Record<string, string>> = {
  CGO_ENABLED: "0",
  GOFLAGS: [process.env["GOFLAGS"] ?? "", "-gcflags=all=-N"].join(" ").trim(),
};
